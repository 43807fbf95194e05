"""Modules without the work of their first values, and weights in another memory format."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import UsageError
from tensorcore.nn.module import Module
from tensorcore.ops.placement import get_default_device

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module of a class whose constructor takes ``device``, with parameters of undefined values."""
    import inspect

    if not issubclass(module_cls, Module):
        raise UsageError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise UsageError(f"Module must support a 'device' arg to skip initialization, got {module_cls}")
    device = kwargs.pop("device", None)
    made = module_cls(*args, **kwargs, device="meta")
    return made.to_empty(device=get_default_device() if device is None else device)


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay the weights of all convolutions in two dims out in a memory format."""
    return _converted(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay the weights of all convolutions in three dims out in a memory format."""
    return _converted(module, memory_format, ("Conv3d", "ConvTranspose3d"))


def _converted(module: Any, memory_format: Any, names: tuple[str, ...]) -> Any:
    for one in module.modules():
        if any(cls.__name__ in names for cls in type(one).__mro__):
            one.weight.data = one.weight.detach().clone().contiguous(memory_format=memory_format)
    return module
