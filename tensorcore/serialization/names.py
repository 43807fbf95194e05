"""PyTorch's names for what files are made of, and what each of them builds here."""

from __future__ import annotations

import codecs
import collections
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

from tensorcore import dtypes, formats
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import device as find_device
from tensorcore.errors import DeviceError, LoadError
from tensorcore.formats import Size
from tensorcore.parameter import Parameter
from tensorcore.storage import TypedStorage, UntypedStorage, tensor_over
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "BUILDERS", "CLASSES", "PLAIN", "STORAGES", "Global", "StorageType", "device_name", "storage_name", "values_to_come",
]  # fmt: skip


class Global:
    """Stands for ``module.name`` in what is written: a name of PyTorch's, which need not be installed."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> None:
        """Never called: pickle wants what it writes as a function to look like one."""


class StorageType:
    """Stands for a class of typed storages in what is read; ``dtype`` is None for untyped ones."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: dtypes.dtype | None) -> None:
        self.dtype = dtype


STORAGES = {
    "Bool": dtypes.bool_, "Byte": dtypes.uint8, "Char": dtypes.int8, "Short": dtypes.int16, "Int": dtypes.int32,
    "Long": dtypes.int64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16, "Float": dtypes.float32,
    "Double": dtypes.float64, "ComplexFloat": dtypes.complex64, "ComplexDouble": dtypes.complex128,
}  # fmt: skip
_STORAGE_NAMES: dict[Any, Global] = {dtype: Global("torch", f"{name}Storage") for name, dtype in STORAGES.items()}
_STORAGE_NAMES[None] = Global("torch.storage", "UntypedStorage")


def storage_name(dtype: dtypes.dtype | None) -> Global:
    """PyTorch's class of the storages of a dtype, of untyped ones where None."""
    return _STORAGE_NAMES[dtype]


def device_name(device: Backend) -> tuple[Any, ...]:
    """The arguments of PyTorch's ``device`` for one of ours."""
    return (device.name, device.index) if device.numbered else (device.name,)


# What waits for the values of storages that a file has behind its pickle; None where they are there.
_waiting: ContextVar[list[Callable[[], Any]] | None] = ContextVar("waiting", default=None)


@contextmanager
def values_to_come() -> Iterator[list[Callable[[], Any]]]:
    """While storages are still empty: what has to be called, in order, once they are filled."""
    waiting: list[Callable[[], Any]] = []
    token = _waiting.set(waiting)
    try:
        yield waiting
    finally:
        _waiting.reset(token)


# What the names build. A file chooses the arguments: each one is checked, and none makes more than the file holds.


def tensor_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> Tensor:
    if not isinstance(storage, TypedStorage):
        raise _unfit("a typed storage", storage)
    return _tensor(storage, storage.dtype, offset, size, stride, requires_grad, metadata)


def tensor_v1(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    return tensor_v2(storage, offset, size, stride, False, None)


def tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    if not isinstance(storage, (TypedStorage, UntypedStorage)) or not isinstance(dtype, dtypes.dtype):
        raise _unfit("a storage and a dtype", (storage, dtype))
    return _tensor(storage, dtype, offset, size, stride, requires_grad, metadata)


def meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    from tensorcore.ops.creation.create import empty_strided

    if not isinstance(dtype, dtypes.dtype):
        raise _unfit("a dtype", dtype)
    made = empty_strided(_counts(size), _counts(stride), dtype=dtype, device="meta")
    return made.requires_grad_() if requires_grad else made


def parameter(data: Any, requires_grad: Any, hooks: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise _unfit("a tensor", data)
    return Parameter(data, bool(requires_grad))  # type: ignore[no-any-return]


def parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Tensor:
    return _with_state(parameter(data, requires_grad, hooks), state)


def tensor_of_type(function: Any, cls: Any, args: Any, state: Any) -> Tensor:
    """A tensor with attributes, or of a class of the user's own."""
    if function not in _TENSOR_BUILDERS or not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise _unfit("a kind of tensor", (function, cls))
    made = function(*args)
    if type(made) is not cls and cls is not Parameter:
        made = new_tensor(made.native, made.dtype, made.device, cls).requires_grad_(made.requires_grad)
    return _with_state(made, state)


def size(values: Any = ()) -> Size:
    return Size(_counts(values))


def device(name: Any, index: Any = None) -> Any:
    if not isinstance(name, str) or not isinstance(index, int | None):
        raise _unfit("a device's name and index", (name, index))
    try:
        return find_device(name, index)
    except DeviceError as error:
        full = name if index is None else f"{name}:{index}"
        warnings.warn(f"load: expected the device '{full}', got none here ({error}); its name stands in its place",
                      stacklevel=2)  # fmt: skip
        return full


def a_set(values: Any = ()) -> set[Any]:
    return set(_listed(values))


def a_frozenset(values: Any = ()) -> frozenset[Any]:
    return frozenset(_listed(values))


def a_bytearray(*values: Any) -> bytearray:
    if values and isinstance(values[0], str):
        return bytearray(*[_of(str, one) for one in values])
    return bytearray(*[_of(bytes, one) for one in values])


def a_complex(real: Any, imag: Any) -> complex:
    return complex(_of(float, real), _of(float, imag))


def encoded(text: Any, encoding: Any) -> bytes:
    """Bytes as pickles of protocol 2 write them."""
    return codecs.encode(_of(str, text), _of(str, encoding)) if encoding == "latin1" else _refuse_encoding(encoding)


def ordered_dict(*pairs: Any) -> collections.OrderedDict[Any, Any]:
    return collections.OrderedDict(*[_of((list, tuple, dict), one) for one in pairs])


def a_counter(*counts: Any) -> collections.Counter[Any]:
    return collections.Counter(*[_of(dict, one) for one in counts])


_COMPRESSED = ("csr", "csc", "bsr", "bsc")


def layout(name: Any) -> Any:
    """PyTorch's object for how values lie in memory, where there is one of that name."""
    for one in (formats.strided, formats.sparse_coo, *[getattr(formats, f"sparse_{kind}") for kind in _COMPRESSED]):
        if name == repr(one):
            return one
    raise LoadError(f"load: expected a layout that there is here, got {name!r}; save a dense copy with to_dense()")


def sparse_tensor(kind: Any, data: Any) -> Tensor:
    """A tensor of indices and values; they are checked."""
    from tensorcore.ops.sparse.compressed import KINDS
    from tensorcore.ops.sparse.making import sparse_compressed_tensor, sparse_coo_tensor

    parts = _of(tuple, data)
    # Of older files COO tensors do not say whether their indices are in order.
    count = 2 if kind is formats.sparse_coo else 3
    if kind is formats.strided or not count < len(parts) <= count + 2:
        raise _unfit("the parts of a sparse tensor", (str(kind), len(parts)))
    for one in parts[:count]:
        _of(Tensor, one)
    size = _counts(parts[count])
    waiting = _waiting.get()
    if kind in KINDS:
        if waiting is not None:
            waiting.append(lambda: sparse_compressed_tensor(*parts[:3], size, layout=kind))
            return KINDS[kind].of(parts[:3], size, True)
        return sparse_compressed_tensor(*parts[:3], size, layout=kind)  # type: ignore[no-any-return]
    if waiting is not None:
        waiting.append(lambda: sparse_coo_tensor(*parts[:2], size))
    return sparse_coo_tensor(*parts[:2], size, is_coalesced=len(parts) > 3 and parts[3] is True)  # type: ignore[no-any-return]


PLAIN: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": ordered_dict, "collections.Counter": a_counter, "_codecs.encode": encoded,
    "builtins.set": a_set, "builtins.frozenset": a_frozenset, "builtins.complex": a_complex,
    "builtins.bytearray": a_bytearray, "builtins.slice": slice, "builtins.range": range,
}  # fmt: skip
_TENSOR_BUILDERS = {"_rebuild_sparse_tensor": sparse_tensor, "_rebuild_tensor": tensor_v1,
                    "_rebuild_tensor_v2": tensor_v2, "_rebuild_tensor_v3": tensor_v3,
                    "_rebuild_meta_tensor_no_storage": meta_tensor, "_rebuild_parameter": parameter,
                    "_rebuild_parameter_with_state": parameter_with_state}  # fmt: skip
BUILDERS: dict[str, Any] = {
    **{f"torch._utils.{name}": function for name, function in _TENSOR_BUILDERS.items()},
    **{f"torch.{one.name}": one for one in dtypes.ALL},
    **{f"torch.{name}Storage": StorageType(dtype) for name, dtype in STORAGES.items()},
    "torch.storage.UntypedStorage": StorageType(None),
    "torch.UntypedStorage": StorageType(None),
    "torch._tensor._rebuild_from_type_v2": tensor_of_type,
    "torch.serialization._get_layout": layout,
    "torch.Size": size, "torch.device": device,
    "torch.Tensor": Tensor, "torch.nn.parameter.Parameter": Parameter,
}  # fmt: skip
_TENSOR_BUILDERS = set(_TENSOR_BUILDERS.values())  # type: ignore[assignment]

# Classes whose instances a file may fill after building them.
CLASSES = (dict, list, set, collections.OrderedDict, collections.Counter)


def _tensor(
    storage: Any, dtype: dtypes.dtype, offset: Any, size: Any, stride: Any, requires_grad: Any, metadata: Any
) -> Tensor:
    sizes, strides = _counts(size), _counts(stride)
    if len(sizes) != len(strides) or not isinstance(offset, int) or offset < 0:
        raise _unfit("a size, a stride for each dim and an offset", (offset, size, stride))
    if requires_grad and dtype.kind not in ("floating", "complex"):
        raise _unfit("a dtype that can require grad", dtype)
    if not prod(sizes) and max(sizes) > 1 << 48:
        raise _unfit("a credible size", size)
    made = tensor_over(storage, dtype, sizes, strides, offset)
    # PyTorch conjugates and negates when values are used; here they are stored.
    for mark, method in (("conj", "conj_physical"), ("neg", "neg")):
        if isinstance(metadata, dict) and metadata.get(mark):
            made = _computed(made, method)
    return made.requires_grad_() if requires_grad else made


def _computed(source: Tensor, method: str) -> Tensor:
    waiting = _waiting.get()
    if waiting is None:
        return getattr(source, method)()  # type: ignore[no-any-return]
    target: Any = new_tensor(source.device.kernels["clone"](source.native), source.dtype, source.device)

    def fill() -> None:
        with no_grad():
            target.copy_(getattr(source, method)())

    waiting.append(fill)
    return target  # type: ignore[no-any-return]


def _with_state(tensor: Tensor, state: Any) -> Tensor:
    attributes = state[0] if isinstance(state, tuple) and len(state) == 2 else state
    if attributes:
        tensor.__dict__.update({_of(str, key): value for key, value in _of(dict, attributes).items() if key != "_grad"})
    return tensor


def _counts(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all([isinstance(one, int) and one >= 0 for one in values]):
        raise _unfit("a tuple of ints of 0 or more", values)
    return tuple(values)


def _listed(values: Any) -> Any:
    return _of((list, tuple, set, frozenset), values)


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise _unfit(f"a {getattr(kind, '__name__', 'list')}", value)
    return value


def _refuse_encoding(encoding: Any) -> bytes:
    raise _unfit("bytes as latin1", encoding)


def _unfit(expected: str, got: Any) -> LoadError:
    kind = got if isinstance(got, (int, str, tuple)) else type(got).__name__
    return LoadError(f"load: expected {expected}, got {str(kind)[:100]}; the file is damaged")
