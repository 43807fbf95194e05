"""Learning rate schedulers: after each step or epoch they set the ``lr`` of an optimizer's groups.

All but OneCycleLR and ReduceLROnPlateau are chainable: each computes the next rate from the current one, so that
several may act on one optimizer.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    Rates,
    StepLR,
    checked,
    per_group,
)

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` and down again within ``total_steps`` (Smith and Topin, arXiv:1708.07120).

    Args:
        total_steps: or ``epochs`` times ``steps_per_epoch``.
        pct_start: the part of the steps that the rate rises.
        anneal_strategy: ``cos`` or ``linear``.
        cycle_momentum: move the momentum (or the first beta) against the rate, between its two bounds.
        div_factor: how much lower than ``max_lr`` the first rate is.
        final_div_factor: how much lower than the first the last rate is.
        three_phase: come back to the first rate in as many steps as the rise, then go down.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        groups = checked(optimizer).param_groups
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ArgumentError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        peak = float(pct_start * self.total_steps) - 1
        rise = (peak, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            back = (
                float(2 * pct_start * self.total_steps) - 2,
                "max_lr",
                "initial_lr",
                "base_momentum",
                "max_momentum",
            )
            fall = (self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
            self._schedule_phases = [rise, back, fall]
        else:
            self._schedule_phases = [rise, (self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, top in zip(groups, per_group("max_lr", max_lr, len(groups)), strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ArgumentError(
                    f"optimizer must support momentum or beta1 with `cycle_momentum` option enabled, got "
                    f"{type(optimizer).__name__}; pass cycle_momentum=False"
                )
            self.use_beta1 = "betas" in optimizer.defaults
            highest = per_group("max_momentum", max_momentum, len(groups))
            lowest = per_group("base_momentum", base_momentum, len(groups))
            if last_epoch == -1:
                for group, high, low in zip(groups, highest, lowest, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        rates = []
        for group in self.optimizer.param_groups:
            start: float = 0
            for i, (end, lr_from, lr_to, momentum_from, momentum_to) in enumerate(self._schedule_phases):
                if step <= end or i == len(self._schedule_phases) - 1:
                    part = (step - start) / (end - start)
                    rates.append(self._between(group[lr_from], group[lr_to], part))
                    if self.cycle_momentum:
                        self._set_momentum(group, self._between(group[momentum_from], group[momentum_to], part))
                    break
                start = end
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class SequentialLR(LRScheduler):
    """Several schedulers, one after the other.

    Args:
        schedulers: of the same optimizer.
        milestones: the steps at which the next one takes over, one fewer than schedulers.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ArgumentError("SequentialLR expects at least one scheduler, got no scheduler; pass a list of them")
        for i, one in enumerate(schedulers):
            if isinstance(one, ReduceLROnPlateau):
                raise ArgumentError(
                    "SequentialLR does not support `ReduceLROnPlateau` scheduler as it requires additional "
                    f"kwargs, got one at {i}"
                )
            if one.optimizer is not optimizer:
                raise ArgumentError(
                    f"SequentialLR expects all schedulers to belong to the same optimizer, got another at {i}"
                )
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                "SequentialLR expects number of schedulers provided to be one more than the number of "
                "milestone points, but "
                f"got number of schedulers {len(schedulers)} and the number of milestones {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        self.optimizer = checked(optimizer)
        # Each scheduler set its first rates when it was made; only those of the first one shall hold.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for one in self._schedulers:
            one.last_epoch -= 1
        self._begin(self._schedulers[0])
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:
        """Set the next rates, with the scheduler whose turn it is."""
        self.last_epoch += 1
        which = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[which]
        if which and self._milestones[which - 1] == self.last_epoch:
            for group in self.optimizer.param_groups:
                group["lr"] = group["initial_lr"]
            scheduler.last_epoch = -1
            self._begin(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    @staticmethod
    def _begin(scheduler: LRScheduler) -> None:
        scheduler._is_initial = True
        scheduler._step_count = 0
        try:
            scheduler.step()
        finally:
            scheduler._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [one.state_dict() for one in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` once a number has not become better for more than ``patience`` steps.

    Args:
        mode: whether ``min`` or ``max`` is better.
        threshold: by how much, as a part (``threshold_mode="rel"``) or as it is (``"abs"``).
        cooldown: steps after a reduction that do not count.
        min_lr: no rate goes below; one number, or one for each group.
        eps: reductions smaller than this are left out.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ArgumentError(f"Factor should be < 1.0, got {factor}; it makes the rate smaller")
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode {mode} is unknown!, expected min or max, got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f"threshold mode {threshold_mode} is unknown!, expected rel or abs, got {threshold_mode!r}"
            )
        self.optimizer = checked(optimizer)
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.min_lrs = per_group("min_lr", min_lr, len(optimizer.param_groups))
        self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self._last_lr = self._current()

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Take note of the number of this epoch, and reduce the rates if it is time."""
        current = float(metrics)
        self.last_epoch += 1
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            rates = self._current()
            lower = [max(rate * self.factor, least) for rate, least in zip(rates, self.min_lrs, strict=True)]
            self._set(new if old - new > self.eps else old for old, new in zip(rates, lower, strict=True))
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._current()

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was a short while ago."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        by = sign * self.threshold
        bound = self.best + by if self.threshold_mode == "abs" else self.best * (1 + by)
        return value < bound if self.mode == "min" else value > bound


def _total_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ArgumentError("You must define either total_steps OR (epochs AND steps_per_epoch), got neither")
    given = (
        {"total_steps": total_steps}
        if total_steps is not None
        else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    )
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ArgumentError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())
