"""The names of PyTorch's compiled module that programs and libraries use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tensorcore.errors import LinAlgError as _LinAlgError
from tensorcore.ops.placement import as_device, destination
from tensorcore.overrides import DisableTorchFunctionSubclass
from tensorcore.overrides import disabled as _disabled_torch_function_impl
from tensorcore.tape.mode import mode as _mode
from tensorcore.tensor import Tensor as _Tensor

__all__ = ["DisableTorchFunctionSubclass", "_LinAlgError", "_disabled_torch_function_impl"]
DisableTorchFunction = DisableTorchFunctionSubclass
_TensorMeta = type(_Tensor)


def _log_api_usage_once(event: str) -> None:
    """Where PyTorch's libraries report that they are in use: nobody is told."""


def _get_tracing_state() -> None:
    """The trace that PyTorch's tracer is writing: there is none."""


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, ``non_blocking`` and memory format that the arguments of a module's ``to`` name, None where they do not."""
    device, dtype = destination(args, kwargs)
    flag = next((one for one in args if isinstance(one, bool)), kwargs.get("non_blocking", False))
    return None if device is None else as_device(device), dtype, flag, kwargs.get("memory_format")


def _are_functorch_transforms_active() -> bool:
    """Whether this line runs inside ``vmap``."""
    return bool(_mode.levels)


_nn = SimpleNamespace(_parse_to=_parse_to)


def __getattr__(name: str) -> Any:
    """The switches of PyTorch's fusers, ``_jit_set_...`` and ``_jit_override_...``, take a value; there are no fusers to switch."""
    if name.startswith(("_jit_set_", "_jit_override_")):
        return lambda *values: False
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
