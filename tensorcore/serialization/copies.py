"""Copies of tensors and storages: what ``copy.deepcopy`` and ``pickle`` make of them."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any, SupportsIndex

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.errors import ArgumentTypeError, GradientError
from tensorcore.ops.kinds import method
from tensorcore.parameter import Parameter
from tensorcore.storage import UntypedStorage, storage_of, tensor_over
from tensorcore.tensor import Tensor

__all__ = ["rebuild_storage", "rebuild_tensor", "warn_of_hooks"]


def rebuild_tensor(
    cls: type, storage: Any, dtype: Any, offset: int, size: Any, stride: Any, requires_grad: bool, notes: dict[str, Any]
) -> Tensor:
    """A tensor over a storage, as ``Tensor.__reduce_ex__`` described it."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ArgumentTypeError(f"load: expected a kind of Tensor, got {cls!r}; the file is damaged")
    made = tensor_over(storage, dtype, size, stride, offset, cls)
    made.__dict__.update(notes)
    return made.requires_grad_() if requires_grad else made


def rebuild_storage(device: Backend, dtype: Any, size: int, values: Any) -> UntypedStorage:
    """A storage of ``size`` elements, with these bytes if there are any."""
    if values is None:
        return storage_of(device, device.allocate((size,), dtype))
    array = np.frombuffer(values, dtype.numpy)
    # A buffer that may be written to was handed over (pickle's protocol 5): the storage is that memory, without a copy.
    return storage_of(device, device.share_host(array) if array.flags.writeable else device.from_host(array))


def warn_of_hooks(tensor: Tensor) -> None:
    """Say that a copy will have no hooks where the tensor has some."""
    if tensor.node is not None and (tensor._notes() if tensor.grad_fn is None else {}).get("tensor_hooks"):
        warnings.warn(
            "pickle: expected a tensor without hooks, got one whose backward hooks will not be serialized; "
            "register them again on the copy",
            stacklevel=3,
        )


def _reduce_tensor(self: Tensor, protocol: SupportsIndex) -> Any:
    warn_of_hooks(self)
    return rebuild_tensor, _parts(self)


def _parts(self: Tensor) -> tuple[Any, ...]:
    """What ``rebuild_tensor`` makes it of again."""
    strides, offset = self.device.layout(self.native)
    notes = {key: value for key, value in self.__dict__.items() if key != "_grad"}
    storage = storage_of(self.device, self.native)
    size = tuple(self.native.shape)
    return type(self), storage, self.dtype, offset, size, strides, self.requires_grad, notes


def _reduce_storage(self: UntypedStorage, protocol: int) -> Any:
    native = self._native
    dtype = dtypes.from_numpy_dtype(native.dtype)
    values: Any = None
    if self.device.capabilities.values:
        values = pickle.PickleBuffer(self._bytes()) if protocol >= 5 else self._bytes().tobytes()
    return rebuild_storage, (self.device, dtype, native.shape[0], values)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with a storage of its own, which views copied in the same ``memo`` share again."""
    if not self.is_leaf:
        raise GradientError(
            "deepcopy: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
            "the moment, got the result of an op; use detach() before"
        )
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    cls, storage, dtype, offset, size, stride, requires_grad, notes = _parts(self)
    # As in PyTorch, a parameter's copy is bare: no gradient, no attributes.
    bare = isinstance(self, Parameter)
    notes = {"_is_param": True} if bare and "_is_param" in notes else {} if bare else copy.deepcopy(notes, memo)
    made = rebuild_tensor(cls, storage.__deepcopy__(memo), dtype, offset, size, stride, requires_grad, notes)
    memo[id(self)] = made
    if not bare and self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    return made


method(_reduce_tensor, "__reduce_ex__")
method(_deepcopy, "__deepcopy__")
UntypedStorage.__reduce_ex__ = _reduce_storage  # type: ignore[method-assign, assignment]
