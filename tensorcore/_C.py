"""The names of PyTorch's compiled module that programs with tensor subclasses use."""

from __future__ import annotations

from tensorcore.overrides import DisableTorchFunctionSubclass
from tensorcore.overrides import disabled as _disabled_torch_function_impl

__all__ = ["DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]
DisableTorchFunction = DisableTorchFunctionSubclass
