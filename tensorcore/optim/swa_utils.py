"""Averages of a model's weights: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.nn.batchnorm import _BatchNorm
from tensorcore.nn.module import Module
from tensorcore.ops.creation.create import tensor
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import LRScheduler, Rates, checked, per_group
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """For ``AveragedModel(multi_avg_fn=...)``: means that keep ``decay`` of themselves at each update."""
    _check_decay(decay)

    @no_grad()
    def update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
        for average, value in zip(averages, values, strict=True):
            _towards(average, value, 1 - decay)

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """For ``AveragedModel(multi_avg_fn=...)``: the means of all values (Izmailov et al., arXiv:1803.05407)."""

    @no_grad()
    def update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
        weight = 1 / (count.double() + 1) if isinstance(count, Tensor) else 1 / (int(count) + 1)
        for average, value in zip(averages, values, strict=True):
            _towards(average, value, weight)

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """For ``AveragedModel(avg_fn=...)``: a mean that keeps ``decay`` of itself at each update."""
    _check_decay(decay)

    @no_grad()
    def update(average: Any, value: Any, count: Any) -> Tensor:
        return decay * average + (1 - decay) * value  # type: ignore[no-any-return]

    return update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """For ``AveragedModel(avg_fn=...)``: the mean of all values."""

    @no_grad()
    def update(average: Any, value: Any, count: Any) -> Tensor:
        return average + (value - average) / (count + 1)  # type: ignore[no-any-return]

    return update


class AveragedModel(Module):
    """A model whose parameters are means of another one's.

    Args:
        model: is copied.
        device: where the means are kept; where the model is if None.
        avg_fn: of a mean, a new value and the count of values in the mean, gives the next mean.
        multi_avg_fn: the same for lists of means and values of one device and dtype, in place. Where neither is given
            all values count the same.
        use_buffers: average buffers too; else they are copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise _Both("Only one of avg_fn and multi_avg_fn should be provided, got both")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the values of ``model`` into the means; the first ones are the means."""
        held = chain(self.module.parameters(), self.module.buffers()) if self.use_buffers else self.parameters()
        given = chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()
        pairs = [(one.detach(), two.detach().to(one.device)) for one, two in zip(held, given, strict=False)]
        if self.n_averaged.device.all_values((self.n_averaged == 0).native).all():
            for average, value in pairs:
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in pairs:
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        else:
            groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for average, value in pairs:
                averages, values = groups.setdefault((average.device, average.dtype), ([], []))
                averages.append(average)
                values.append(value)
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, _), (averages, values) in groups.items():
                update(averages, values, self.n_averaged.to(device))
        if not self.use_buffers:
            for one, two in zip(self.module.buffers(), model.buffers(), strict=True):
                one.detach().copy_(two.detach().to(one.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Set the running statistics of a model's batch norms to the means over the batches of ``loader``.

    Args:
        loader: gives inputs, or lists and tuples whose first is one.
        device: where the inputs go.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # the mean of all batches
    for batch in loader:
        first = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(first if device is None else first.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """From the current rates to ``swa_lr`` within ``anneal_epochs`` steps, where they stay.

    Args:
        swa_lr: one for all groups, or one for each.
        anneal_strategy: ``cos`` or ``linear``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", swa_lr, len(checked(optimizer).param_groups))
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def rates(self) -> Rates:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        made = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            # The rate that this way began with, from the one that it has come to.
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            made.append(goal * now + start * (1 - now))
        return made

    def _part(self, step: int) -> float:
        """How far a step is on the way."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2


class _Both(UsageError, AssertionError):
    """What PyTorch asserts."""


def _towards(average: Any, value: Any, part: Any) -> None:
    """Move a mean towards a value; ``part`` is a number, or a tensor where looking at it would stop a trace."""
    if isinstance(part, Tensor) and average.dtype.itemsize < 4 and average.dtype.is_floating_point:
        average.copy_(average.float().lerp(value.float(), part.float()))
    elif isinstance(part, Tensor) and (average.dtype.is_floating_point or average.dtype.is_complex):
        average.lerp_(value, part.to(average.dtype))
    elif average.dtype.is_floating_point or average.dtype.is_complex:
        average.lerp_(value, part)
    else:
        average.copy_(average + (value - average) * part)


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ArgumentError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
