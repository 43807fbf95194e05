"""Learning rate schedulers that go up and down: cycles, one cycle, and restarts."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import LRScheduler, Rates, assign, checked, per_group

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


class CyclicLR(LRScheduler):
    """Up from ``base_lr`` to ``max_lr`` and back, again and again (Smith, arXiv:1506.01186).

    Args:
        step_size_up, step_size_down: steps of the way up, and down; as many down as up where None.
        mode: ``triangular``, ``triangular2`` (each cycle half as high as the last) or ``exp_range`` (its height times
            ``gamma`` at each step).
        scale_fn: the height, as a function of the number of the cycle or of the step, as ``scale_mode`` says
            (``cycle`` or ``iterations``); ``mode`` counts for nothing then.
        cycle_momentum: move the momentum (or the first beta) against the rate, between its two bounds.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = checked(optimizer).param_groups
        lowest = per_group("base_lr", base_lr, len(groups))
        self.max_lrs = per_group("max_lr", max_lr, len(groups))
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ArgumentError(f"mode is invalid and scale_fn is None, got mode={mode!r}; pass 'triangular'")
        if last_epoch == -1:
            for group, rate in zip(groups, lowest, strict=True):
                assign(group, "lr", rate)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1, self.base_momentums, self.max_momentums = _momenta(
                optimizer, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, by its number or that of the step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def rates(self) -> Rates:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        part *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                _set_momentum(group, self.use_beta1, high - (high - low) * part)
        return [low + (high - low) * part for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of ``scale_fn`` only the attributes of a callable object."""
        state = super().state_dict()
        function = state["_scale_fn_custom"]
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class CosineAnnealingWarmRestarts(LRScheduler):
    """Along half a cosine down to ``eta_min``, then from the top again (SGDR, Loshchilov and Hutter, arXiv:1608.03983).

    Args:
        T_0: the steps to the first restart.
        T_mult: how many times longer each way down is than the last.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ArgumentError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ArgumentError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ArgumentError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def rates(self) -> Rates:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the next rates.

        Args:
            epoch: where in the schedule to be, which may be within an epoch; the next step where None.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ArgumentError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # The ways down make a geometric series.
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)


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
        rise = _phase(float(pct_start * self.total_steps) - 1, "initial_lr max_lr max_momentum base_momentum")
        end = self.total_steps - 1
        if three_phase:
            back = _phase(float(2 * pct_start * self.total_steps) - 2, "max_lr initial_lr base_momentum max_momentum")
            self._schedule_phases = [rise, back, _phase(end, "initial_lr min_lr max_momentum max_momentum")]
        else:
            self._schedule_phases = [rise, _phase(end, "max_lr min_lr base_momentum max_momentum")]
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, top in zip(groups, per_group("max_lr", max_lr, len(groups)), strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self.use_beta1, _, _ = _momenta(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def rates(self) -> Rates:
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        rates = []
        for group in self.optimizer.param_groups:
            start: float = 0
            for i, phase in enumerate(self._schedule_phases):
                end = phase["end_step"]
                if step <= end or i == len(self._schedule_phases) - 1:
                    part = (step - start) / (end - start)
                    rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
                    if self.cycle_momentum:
                        ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                        _set_momentum(group, self.use_beta1, self._between(*ends, part))
                    break
                start = end
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _phase(end: float, names: str) -> dict[str, Any]:
    """A part of a cycle: its last step, and the names of the options that it leads from and to."""
    start_lr, end_lr, start_momentum, end_momentum = names.split()
    return {
        "end_step": end, "start_lr": start_lr, "end_lr": end_lr, "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }  # fmt: skip


def _momenta(optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> tuple[bool, list[Any], list[Any]]:
    """Whether the momentum is the first beta, and its bounds, which the groups note."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ArgumentError(
            f"optimizer must support momentum or beta1 with `cycle_momentum` option enabled, got "
            f"{type(optimizer).__name__}; pass cycle_momentum=False"
        )
    use_beta1, groups = "betas" in optimizer.defaults, optimizer.param_groups
    lowest = per_group("base_momentum", base, len(groups))
    highest = per_group("max_momentum", top, len(groups))
    if last_epoch == -1:
        for group, high, low in zip(groups, highest, lowest, strict=True):
            _set_momentum(group, use_beta1, high)
            group["max_momentum"], group["base_momentum"] = high, low
    return use_beta1, lowest, highest


def _set_momentum(group: dict[str, Any], use_beta1: bool, momentum: float) -> None:
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


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
