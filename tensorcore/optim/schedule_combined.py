"""Learning rate schedulers that follow others, or a number that shall become better."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import _EPOCH, LRScheduler, assign, checked

__all__ = ["ChainedScheduler", "ReduceLROnPlateau", "SequentialLR"]


class _Combined(LRScheduler):
    """Schedulers of one optimizer."""

    _schedulers: Sequence[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers."""
        state = {key: value for key, value in super().state_dict().items() if key != "_schedulers"}
        state["_schedulers"] = [one.state_dict() for one in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(state)


class SequentialLR(_Combined):
    """Several schedulers, one after the other.

    Args:
        schedulers: of the same optimizer.
        milestones: the steps at which the next one takes over, one fewer than schedulers.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        _check("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                f"SequentialLR expects number of schedulers provided to be one more than the number of milestone points, "
                f"but got number of schedulers {len(schedulers)} and the number of milestones {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler set its first rates when it was made; only those of the first one shall hold.
        for group in optimizer.param_groups:
            assign(group, "lr", group["initial_lr"])
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Set the next rates, with the scheduler whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Several chainable schedulers that all take a step each time.

    Args:
        schedulers: of the same optimizer.
        optimizer: that one; the first scheduler's where None.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        _check("ChainedScheduler", schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer or schedulers[0].optimizer
        self._last_lr = self._current()

    def step(self) -> None:  # type: ignore[override]
        """Set the next rates, one scheduler after the other."""
        for one in self._schedulers:
            one.step()
        self._last_lr = self._current()


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
        count = len(checked(optimizer).param_groups)
        several = isinstance(min_lr, (list, tuple))
        if several and len(min_lr) != count:
            raise ArgumentError(f"expected {count} min_lrs, got {len(min_lr)}; pass one for each group")
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode {mode} is unknown!, expected min or max, got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f"threshold mode {threshold_mode} is unknown!, expected rel or abs, got {threshold_mode!r}"
            )
        self.optimizer = optimizer
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        self.last_epoch = 0
        self.best = self.mode_worse = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self._last_lr = self._current()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of the number of this epoch, and reduce the rates if it is time.

        Args:
            epoch: deprecated; the number of this epoch.
        """
        current = float(metrics)
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._current()

    def _reduce_lr(self, epoch: int) -> None:  # by PyTorch's name, under which programs replace it
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise UsageError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group being "
                    f"added to the optimizer; set `min_lrs` to a list of that length"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            lower = max(before * self.factor, least)
            if before - lower > self.eps:
                assign(group, "lr", lower)

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was a short while ago."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        by = sign * self.threshold
        bound = best + by if self.threshold_mode == "abs" else best * (1 + by)
        return a < bound if self.mode == "min" else a > bound


def _undo(scheduler: Any) -> None:
    """Take back the step that a scheduler, and each one in it, took when it was made."""
    for one in scheduler._schedulers:
        if hasattr(one, "_schedulers"):
            _undo(one)
        else:
            one.last_epoch -= 1


def _check(name: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    """Raise for schedulers that cannot be combined."""
    if not schedulers:
        raise ArgumentError(f"{name} expects at least one scheduler, but got no scheduler; pass a list of them")
    for i, one in enumerate(schedulers):
        if not hasattr(one, "optimizer"):
            raise ArgumentTypeError(f"{name} at index {i} should have `optimizer` as its attribute, got {one!r}")
        if isinstance(one, ReduceLROnPlateau):
            raise ArgumentError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs, got one at index "
                f"{i}"
            )
        optimizer = optimizer or one.optimizer
        if one.optimizer is not optimizer:
            raise ArgumentError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(one).__name__} of another at index {i}"
            )
