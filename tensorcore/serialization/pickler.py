"""Pickles in which tensors have PyTorch's names, and storages stand beside."""

from __future__ import annotations

import collections
import pickle
import sys
from typing import Any

from tensorcore import dtypes, formats
from tensorcore.backend.base import Backend
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.parameter import Parameter
from tensorcore.serialization.copies import warn_of_hooks
from tensorcore.serialization.names import STORAGES, Global, device_name, storage_name
from tensorcore.serialization.options import location_tag
from tensorcore.storage import TypedStorage, UntypedStorage, storage_of
from tensorcore.tensor import Tensor

__all__ = ["pickler_class"]

_TENSOR, _MIXED = Global("torch._utils", "_rebuild_tensor_v2"), Global("torch._utils", "_rebuild_tensor_v3")
_META = Global("torch._utils", "_rebuild_meta_tensor_no_storage")
_PARAMETER = Global("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = Global("torch._utils", "_rebuild_parameter_with_state")
_OF_TYPE = Global("torch._tensor", "_rebuild_from_type_v2")
_TENSOR_CLASS, _SIZE, _DEVICE = Global("torch", "Tensor"), Global("torch", "Size"), Global("torch", "device")
_SPARSE = Global("torch._utils", "_rebuild_sparse_tensor")
_LAYOUT = Global("torch.serialization", "_get_layout")
_DTYPES = {one: Global("torch", one.name) for one in dtypes.ALL}
_WITH_STORAGE = frozenset(STORAGES.values())


class _View:
    """A storage as elements of one dtype, of None for bytes."""

    __slots__ = ("dtype", "storage")

    def __init__(self, storage: UntypedStorage, dtype: dtypes.dtype | None) -> None:
        self.storage, self.dtype = storage, dtype


def pickler_class(module: Any) -> Any:
    """A Pickler for ``save`` on top of that of a module such as pickle or dill.

    It must be one written in Python: CPython's own one writes no name that it cannot import.
    """
    if module is None or module is pickle:
        return _of(pickle._Pickler)  # type: ignore[attr-defined]
    base = getattr(module, "Pickler", None)
    if not (isinstance(base, type) and issubclass(base, pickle._Pickler)):  # type: ignore[attr-defined]
        raise ArgumentError(
            f"save: expected a pickle_module with a Pickler written in Python, got {module!r}; leave it out"
        )
    return _of(base)


def _of(base: Any) -> Any:
    class Pickler(base):  # type: ignore[misc]
        """Writes the tensors of one file; ``storages`` are those that it named, by key."""

        dispatch = dict(base.dispatch)  # noqa: RUF012

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.storages: dict[UntypedStorage, str] = {}
            self.dtypes: dict[UntypedStorage, dtypes.dtype | None] = {}

        def named(self, view: _View) -> tuple[Any, ...]:
            """The storage as PyTorch's files name it."""
            key = self.storages.setdefault(view.storage, str(len(self.storages)))
            size = view.storage.nbytes() // (view.dtype.itemsize if view.dtype else 1)
            return "storage", storage_name(view.dtype), key, sys.intern(location_tag(view.storage)), size

        def persistent_id(self, obj: Any) -> Any:
            kind = type(obj)
            if kind is _View:
                return self.named(obj)
            if kind is UntypedStorage:
                return self.named(_View(obj, None))
            return self.named(_View(obj.untyped(), obj.dtype)) if kind is TypedStorage else None

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Tensor) and type(obj).__reduce_ex__ is Tensor.__reduce_ex__:
                return self.reduced(obj)
            if hasattr(type(obj), "instead"):  # a sparse tensor
                parts = [one.detach() for one in obj.parts]
                rest = (Size(obj.shape), obj.coalesced) if obj.is_sparse else (Size(obj.shape),)
                return _SPARSE, (obj.layout, (*parts, *rest))
            if isinstance(obj, Backend):
                return _DEVICE, device_name(obj)
            return NotImplemented

        def reduced(self, tensor: Tensor) -> Any:
            """The call that makes the tensor."""
            warn_of_hooks(tensor)
            cls = type(tensor)
            state = {key: value for key, value in tensor.__dict__.items() if key != "_grad"}
            if cls is Tensor and isinstance(tensor, Parameter):
                state.pop("_is_param")
                beside = (_Call(*self.described(tensor, False)), tensor.requires_grad, collections.OrderedDict())
                return (_PARAMETER_WITH_STATE, (*beside, state)) if state else (_PARAMETER, beside)
            function, arguments = self.described(tensor, tensor.requires_grad)
            if cls is Tensor and not state:
                return function, arguments
            return _OF_TYPE, (function, _TENSOR_CLASS if cls is Tensor else cls, arguments, state)

        def described(self, tensor: Tensor, requires_grad: bool) -> tuple[Global, tuple[Any, ...]]:
            """The function and the arguments for a tensor of the plain class."""
            size, device = tuple(tensor.native.shape), tensor.device
            strides, offset = device.layout(tensor.native)
            if not device.capabilities.values:
                return _META, (tensor.dtype, size, strides, requires_grad)
            storage, dtype = storage_of(device, tensor.native), tensor.dtype
            rest = (offset, size, strides, requires_grad, collections.OrderedDict())
            if dtype in _WITH_STORAGE and self.dtypes.setdefault(storage, dtype) is dtype:
                return _TENSOR, (_View(storage, dtype), *rest)
            # A storage has one dtype in PyTorch's files: a view of another one names its own, and so do the dtypes that came
            # after its classes of storages.
            return _MIXED, (_View(storage, None), *rest, dtype)

        def save_name(self, obj: Any) -> None:
            """Write a Global, or what stands for one, by its name alone."""
            name = obj if type(obj) is Global else _DTYPES[obj]
            if self.proto >= 4:
                self.save(name.module)
                self.save(name.name)
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())
            self.memoize(obj)

        def save_size(self, obj: Size) -> None:
            """Write a shape."""
            self.save_reduce(_SIZE, (tuple(obj),), obj=obj)

        def save_layout(self, obj: formats.layout) -> None:
            """Write how values lie in memory."""
            self.save_reduce(_LAYOUT, (repr(obj),), obj=obj)

        def save_call(self, obj: Any) -> None:
            """Write a call within a call."""
            self.save_reduce(obj.function, obj.arguments, obj=obj)

        dispatch[Global] = dispatch[dtypes.dtype] = save_name
        dispatch[Size] = save_size
        dispatch[formats.layout] = save_layout
        dispatch[_Call] = save_call

    return Pickler


class _Call:
    __slots__ = ("arguments", "function")

    def __init__(self, function: Global, arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments = function, arguments
