"""Parameter: a tensor that a Module trains."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.ops.creation.create import empty
from tensorcore.tape.memory import Version
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Parameter"]


class _ParameterType(type(Tensor)):
    """``isinstance(x, Parameter)`` reads a mark on the tensor."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and (
            instance.__dict__.get("_is_param", False) if cls is Parameter else type.__instancecheck__(cls, instance)
        )


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that a Module lists among its parameters; it requires grad unless told otherwise.

    ``Parameter(data)`` is a plain Tensor with a mark: were it of another class, every op's attribute
    reads would see two types, and CPython's inline caches for them would miss.
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(
                f"Parameter: expected data to be a Tensor, got {data!r}; wrap it in torch.tensor(...)"
            )
        self = new_tensor(data.native, data.dtype, data.device, Tensor if cls is Parameter else cls)
        if data.version is None:
            data.version = Version()
        self.version = data.version
        self.__dict__["_is_param"] = True
        return self.requires_grad_(requires_grad) if requires_grad else self
