"""``Variable``, which has been the tensor itself since PyTorch 0.4."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.tensor import Tensor

__all__ = ["Variable"]


class _VariableType(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(
                f"Variable: Variable data has to be a tensor, but got {type(data).__name__}; wrap it in torch.tensor(...)"
            )
        if volatile:
            warnings.warn(
                "Variable: volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_VariableType):
    """``Variable(tensor)`` is a leaf tensor over the same memory."""
