"""LRScheduler: what all learning rate schedulers share, and the two that take functions."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.optim.optimizer import Optimizer
from tensorcore.tape.aside import aside
from tensorcore.tensor import Tensor

__all__ = ["LRScheduler", "LambdaLR", "MultiplicativeLR", "Rates", "assign", "checked", "held", "per_group"]

Rates = list[Any]

_EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
    "used instead of the new chainable form, where available."
)


class LRScheduler:
    """The base of schedulers: after each step or epoch it sets the ``lr`` of an optimizer's groups.

    A subclass writes ``get_lr``, which gives the next rate of each group; those here write ``rates`` behind it.
    A rate that is a tensor is filled, so that it stays the same tensor.

    Args:
        optimizer: whose groups are scheduled.
        last_epoch: how many steps were taken already, less one; needs ``initial_lr`` in the groups where not -1.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = aside()(cls.step)  # type: ignore[method-assign]

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer)
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", held(group, "lr"))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                        f"last_epoch >= 0, got last_epoch={last_epoch}; load the optimizer's state first"
                    )
        self.base_lrs = [held(group, "initial_lr") for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        if not hasattr(optimizer, "_scheduled_step"):
            optimizer._scheduled_step = _function(optimizer.step)  # type: ignore[attr-defined]
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the first rates."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> Rates:
        """The next rate of each group, for ``step`` alone; ``get_last_lr`` is for everybody else."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        return self.rates()

    def rates(self) -> Rates:
        """The next rate of each group."""
        raise NotImplementedError

    def get_last_lr(self) -> Rates:
        """The rates that were set last."""
        return self._last_lr

    @aside()
    def step(self, epoch: int | None = None) -> None:
        """Set the next rates; call it after the optimizer's ``step``.

        Args:
            epoch: deprecated; the number of the step whose rates are set.
        """
        if self._step_count == 1:
            _check_order(self.optimizer)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            rates = self.get_lr() if epoch is None or closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: Iterable[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            assign(group, "lr", rate)
        self._last_lr: Rates = self._current()

    def _current(self) -> Rates:
        return [held(group, "lr") for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> Rates:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        self.__dict__.update(state_dict)


class _FunctionLR(LRScheduler):
    """Factors from functions of the step number, one for each group."""

    lr_lambdas: list[Callable[[int], float]]

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(checked(optimizer).param_groups)
        several = isinstance(lr_lambda, (list, tuple))
        if several and len(lr_lambda) != count:
            raise ArgumentError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}; pass one for each group")
        self.lr_lambdas = list(lr_lambda) if several else [lr_lambda] * count
        for one in self.lr_lambdas:
            if not callable(one):
                raise ArgumentTypeError(f"lr_lambda should be a function, but got {type(one).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of the functions only the attributes of callable objects."""
        state = {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if isinstance(one, types.FunctionType) else dict(one.__dict__) for one in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_FunctionLR):
    """The first rate times ``lr_lambda(step)``."""

    def rates(self) -> Rates:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_FunctionLR):
    """The current rate times ``lr_lambda(step)``."""

    def rates(self) -> Rates:
        if self._is_initial:
            return self._current()
        return [rate * f(self.last_epoch) for rate, f in zip(self._current(), self.lr_lambdas, strict=True)]


def checked(optimizer: Any) -> Optimizer:
    """The optimizer, if it is one."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(
            f"{type(optimizer).__name__} is not an Optimizer, got {optimizer!r}; pass torch.optim.SGD(...)"
        )
    return optimizer


def held(group: dict[str, Any], key: str) -> Any:
    """An option of a group; a copy of one that is a tensor, which the next step will fill."""
    value = group[key]
    return value.clone() if isinstance(value, Tensor) else value  # type: ignore[attr-defined]


def assign(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a group; a tensor stays, and takes the value."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def per_group(name: str, value: Any, count: int) -> list[Any]:
    """An option of a scheduler as a list with one value for each group."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ArgumentError(
            f"{name} must have the same length as optimizer.param_groups, got {len(values)} for {count}"
        )
    return [one.clone() if isinstance(one, Tensor) else one for one in values]  # type: ignore[attr-defined]


def _function(method: Any) -> Any:
    return getattr(method, "__func__", method)


def _check_order(optimizer: Any) -> None:
    """Warn where the second step of a scheduler comes before the first of its optimizer, or where nobody can say."""
    if _function(optimizer.step) is not optimizer._scheduled_step:
        warnings.warn(
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization; make sure "
            "to call `optimizer.step()` before `lr_scheduler.step()`",
            UserWarning,
            stacklevel=3,
        )
    elif not getattr(optimizer, "_opt_called", False):
        warnings.warn(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`, which skips the first value of the "
            "learning rate schedule; call `optimizer.step()` before `lr_scheduler.step()`",
            UserWarning,
            stacklevel=3,
        )
