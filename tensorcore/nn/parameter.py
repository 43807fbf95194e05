"""Parameter and Buffer: tensors that a Module lists when they are assigned to it."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.nn.uninitialized import UninitializedBuffer, UninitializedParameter, is_lazy
from tensorcore.parameter import Parameter
from tensorcore.tape.memory import Version
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class _BufferType(type(Tensor)):
    """``isinstance(x, Buffer)`` reads a mark on the tensor."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.__dict__.get("_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that a Module keeps among its buffers: part of its state, and not trained.

    Args:
        data: the values; the buffer shares their memory.
        persistent: whether ``state_dict`` lists it.
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            from tensorcore.ops.creation.create import empty

            data = empty(0)
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(f"Buffer: expected data to be a Tensor, got {data!r}; wrap it in torch.tensor(...)")
        self = new_tensor(data.native, data.dtype, data.device)
        if data.version is None:
            data.version = Version()
        self.version = data.version
        self.__dict__.update(_is_buffer=True, persistent=persistent)
        return self.requires_grad_() if data.requires_grad else self
