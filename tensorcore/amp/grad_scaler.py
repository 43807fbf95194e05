"""GradScaler: losses scaled up, so that gradients do not vanish in a narrow dtype, and gradients scaled down again."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any, cast

from tensorcore import dtypes
from tensorcore.amp.autocast_mode import available
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.ops.creation.create import full
from tensorcore.ops.output import written
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.shapes.join import stack
from tensorcore.tape.aside import aside
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Where an optimizer is in an iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Order(UsageError, AssertionError):
    """What PyTorch asserts."""


class GradScaler:
    """Scales losses by a factor that grows while gradients are finite and shrinks when they are not.

    An iteration is ``scale(loss).backward()``, perhaps ``unscale_(optimizer)`` to look at the gradients,
    ``step(optimizer)``, which skips the step where a gradient is not finite, and ``update()``.

    Args:
        device: the type of device that the losses are on.
        init_scale: the first factor.
        growth_factor: of the factor, after ``growth_interval`` steps in a row without a skip.
        backoff_factor: of the factor, after a skip.
        enabled: False makes ``step`` the optimizer's own, and all else do nothing.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and not available(device):
            name = device.upper()
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {name} is not available.  Disabling.", stacklevel=2
            )
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise _Order(f"The growth factor must be > 1.0, got {growth_factor}.")
        if backoff_factor >= 1.0:
            raise _Order(f"The backoff factor must be < 1.0, got {backoff_factor}.")
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        # On the device of the first loss, once there is one.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_fresh)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each one in a (nested) iterable, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                device = outputs.device
                self._scale = full((), self._init_scale, dtype=dtypes.float32, device=device)
                self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32, device=device)
            return outputs * self._scale.to(outputs.device)  # type: ignore[attr-defined]
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ArgumentError(f"outputs must be a Tensor or an iterable of Tensors, got {type(outputs).__name__}")

    @aside()
    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, once before its step."""
        if not self._enabled:
            return
        self._check("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise UsageError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise UsageError("unscale_() is being called after step().")
        # In float64: the reciprocal of a factor that float32 holds may be one that it does not.
        factor = self._scale.to(dtypes.float64).reciprocal().to(dtypes.float32)  # type: ignore[union-attr]
        state["found_inf_per_device"] = self._look(optimizer, factor)
        state["stage"] = OptState.UNSCALED

    @aside()
    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step with gradients divided by the factor; no step where one of them is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise UsageError("Closure use is not currently supported if GradScaler is enabled.")
        self._check("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise UsageError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._own_scaling(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            found = state["found_inf_per_device"].values()
            if not found:
                raise _Order("No inf checks were recorded for this optimizer, got no gradients; call backward() first")
            result = None if any(one.item() for one in found) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _own_scaling(self, optimizer: Any, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that divides gradients itself, by its attribute ``grad_scale``."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let "
                "the optimizer use them directly.",
                FutureWarning,
                stacklevel=4,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        unscaled = state["stage"] is OptState.UNSCALED
        if not unscaled:
            state["found_inf_per_device"] = self._look(optimizer, None)
        scale: Any = self._scale
        optimizer.grad_scale = None if unscaled else getattr(optimizer, "grad_scale", 1.0) * scale
        optimizer.found_inf = sum(one.to(scale.device) for one in state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    @aside()
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the factor to what the steps of this iteration found, or set it."""
        if not self._enabled:
            return
        self._check("update")
        held = cast("Any", self._scale)
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (
                new_scale.device.name != self._device or new_scale.numel() != 1 or new_scale.requires_grad
            ):
                raise _Order(
                    f"new_scale should be a float or a 1-element tensor on {self._device} with requires_grad=False, got "
                    f"{new_scale!r}"
                )
            if not isinstance(new_scale, (float, Tensor)):
                raise ArgumentTypeError(f"new_scale should be a float or a 1-element tensor, got {new_scale!r}")
            held.copy_(new_scale.reshape(())) if isinstance(new_scale, Tensor) else held.fill_(new_scale)
        else:
            found = [
                one for state in self._per_optimizer_states.values() for one in state["found_inf_per_device"].values()
            ]
            if not found:
                raise _Order("No inf checks were recorded prior to update, got no step(); call it first")
            self._follow(sum(one.to(held.device) for one in found))
        self._per_optimizer_states = defaultdict(_fresh)

    def _follow(self, found: Any) -> None:
        """Adjust the factor to ``found``, which is not 0 where a gradient was not finite: without looking at it."""
        scale, tracker = cast("Any", self._scale), cast("Any", self._growth_tracker)
        with no_grad():
            skipped, count = found > 0, tracker + 1
            grown, due = scale * self._growth_factor, count == self._growth_interval
            # A factor that float32 cannot hold would make every gradient infinite.
            kept = where(due & grown.isfinite(), grown, scale)
            scale.copy_(where(skipped, scale * self._backoff_factor, kept))
            tracker.copy_(where(skipped | due, 0, count))

    def _look(self, optimizer: Any, factor: Tensor | None) -> dict[Any, Tensor]:
        """Multiply gradients by a factor; for each device 1.0 where one of them is not finite, and 0.0."""
        grads: dict[Any, list[Any]] = {}
        for group in optimizer.param_groups:
            for one in group["params"]:
                if one.grad is None:
                    continue
                if factor is not None and one.grad.dtype is dtypes.float16:
                    raise ArgumentError(
                        "Attempting to unscale FP16 gradients, got one; keep the parameters in float32 and let autocast "
                        "cast them"
                    )
                grads.setdefault(one.grad.device, []).append(one.grad)
        with no_grad():
            return {device: _unscaled(device, some, factor) for device, some in grads.items()}

    def _check(self, name: str) -> None:
        if self._scale is None:
            raise _Order(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                f"outputs) earlier in the iteration."
            )

    # Numbers

    def get_scale(self) -> float:
        """The factor; 1.0 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """What the factor is multiplied with after a number of steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set it."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the factor is multiplied with after a skip."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set it."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps in a row the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set it."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    # State

    def state_dict(self) -> dict[str, Any]:
        """The factor, how it changes, and the count of steps since it grew; empty where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; nothing happens where scaling is off."""
        if not self._enabled:
            return
        if not state_dict:
            raise UsageError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        scale, tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_scale, self._init_growth_tracker = scale, tracker
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(scale)  # type: ignore[attr-defined]
            self._growth_tracker.fill_(tracker)  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._enabled:
            if self._per_optimizer_states:
                raise _Order(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update(), got one in between."
                )
            # The next loss says on which device they are.
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker())
            state.update(_scale=None, _growth_tracker=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _fresh() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _unscaled(device: Any, grads: list[Any], factor: Tensor | None) -> Tensor:
    """Multiply gradients on one device by a factor; 1.0 where one of them was not finite, and 0.0."""
    kernel = device.kernels["unscale"]
    here = None if factor is None else factor.to(device)  # type: ignore[attr-defined]
    if kernel:
        number = 1.0 if here is None else here.item() if device.capabilities.host else here.native
        found = new_tensor(device.as_native(kernel([one.native for one in grads], factor=number)), dtypes.bool_, device)
        for one in grads:
            written(one)
    else:
        found = stack([one.isfinite().all() for one in grads]).all().logical_not()  # type: ignore[attr-defined]
        for one in grads if here is not None else ():
            one.mul_(here)
    return found.to(dtypes.float32)  # type: ignore[attr-defined, no-any-return]
