"""Regions in which ops choose their dtype: ``autocast``, and what custom Functions need to take part."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.amp.state import (
    acting_as,
    enter,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    leave,
    regions,
)
from tensorcore.backend.registry import device as find_device
from tensorcore.dtypes import dtype
from tensorcore.errors import ArgumentError, ArgumentTypeError, DeviceError, DeviceUnavailable, UnknownDevice
from tensorcore.tensor import Tensor

__all__ = ["autocast", "autocast_decorator", "available", "custom_bwd", "custom_fwd", "is_autocast_available"]

_SUPPORTED = (dtypes.bfloat16, dtypes.float16)


class autocast:
    """A region in which products run in a narrow dtype, and ops that it would harm in float32.

    A context manager and a decorator, for this thread. Weights are cast once in a region; their gradients
    come back in their own dtype. ``lists.py`` says what happens to which op.

    Args:
        device_type: of the tensors that are cast, such as ``cpu`` or ``cuda``.
        dtype: bfloat16 or float16; where None what ``get_autocast_dtype`` gives.
        enabled: False for a region inside another one where nothing is cast.
        cache_enabled: whether the casts of weights are kept until the outermost region ends.
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _check_name(device_type)
        if not is_autocast_available(device_type):
            raise DeviceError(
                f"User specified an unsupported autocast device_type '{device_type}', got no plugin that offers it"
            )
        self.device = acting_as(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and not available(device_type):
            warnings.warn(f"{device_type.upper()} is not available. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in _SUPPORTED:
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, _SUPPORTED))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[Any, ...]] = []

    def __enter__(self) -> autocast:
        self._before.append(regions())
        enter(self.device, self.fast_dtype, self._enabled, self._cache_enabled)
        return self

    def __exit__(self, *exc: object) -> None:
        leave(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise ArgumentTypeError(
                f"autocast()(func) requires a callable, but got {type(function).__name__}; for a context manager write "
                f"`with torch.autocast(device_type=...):`"
            )
        return autocast_decorator(self, function)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """``func`` inside a region of the instance's kind."""

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        # A region of its own for each call: calls of several threads, or of itself, do not share what came before.
        with autocast(
            autocast_instance.device, autocast_instance.fast_dtype, autocast_instance._enabled,
            autocast_instance._cache_enabled,
        ):  # fmt: skip
            return func(*args, **kwargs)

    return inside


def available(device_type: str) -> bool:
    """Whether a device of this type can be used here."""
    try:
        find_device(device_type)
    except (DeviceUnavailable, UnknownDevice):
        return False
    return True


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable[..., Any]:
    """Decorate the ``forward`` of a custom Function for use inside regions.

    Args:
        cast_inputs: cast floating inputs to this dtype, and run outside of the region; None for the region's own casts.
    """
    _check_name(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        inside = is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = inside
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        if not inside:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate the ``backward`` of a custom Function: it runs inside a region where ``forward`` did."""
    _check_name(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward


def _check_name(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ArgumentError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def _cast(value: Any, device_type: str, dtype: dtype) -> Any:
    """Floating tensors in a value, and in what it holds, cast."""
    if isinstance(value, Tensor):
        cast = (
            value.dtype.is_floating_point
            and value.dtype is not dtypes.float64
            and value.device.acts_as == acting_as(device_type)
        )
        return value.to(dtype) if cast else value  # type: ignore[attr-defined]
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        made = (_cast(one, device_type, dtype) for one in value)
        return type(value)(made) if isinstance(value, (list, tuple)) else made
    return value
