"""Memory exchanged with others: NumPy, DLPack, the buffer protocol, and the array API's namespace."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from functools import cache
from mmap import ACCESS_COPY, ACCESS_WRITE, mmap
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend import registry
from tensorcore.backend.base import Backend
from tensorcore.errors import ArgumentError, ArgumentTypeError, DeviceError, GradientError, UsageError, not_bool
from tensorcore.ops import late
from tensorcore.ops.creation.create import as_tensor, from_numpy, made, tensor
from tensorcore.ops.define import OPS
from tensorcore.ops.kinds import method
from tensorcore.ops.output import written
from tensorcore.ops.placement import as_device, host_device
from tensorcore.ops.rules import whole
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["asarray", "from_dlpack", "from_file", "frombuffer", "to_dlpack"]

_STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12")


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """``obj`` as a tensor, sharing its memory where possible.

    Args:
        obj: a tensor, a NumPy array or number, an object with ``__dlpack__`` or a buffer, a number, a nested sequence.
        copy: True for memory of its own, False to raise where it cannot be shared, None to share where possible.
        requires_grad: that of ``obj`` where None, which is False for all but tensors.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype, "asarray")
    if isinstance(obj, Tensor):
        found = obj
        if requires_grad is not None and requires_grad != found.requires_grad:
            found = found.detach()
    elif isinstance(obj, (np.ndarray, np.generic)):
        shared = isinstance(obj, np.ndarray) and copy is not True
        found = from_numpy(obj if shared else np.array(obj))  # type: ignore[arg-type]
    elif hasattr(obj, "__dlpack__"):
        found = from_dlpack(obj)
    elif dtypes.kind_of(obj) is None and _has_buffer(obj):
        found = frombuffer(obj, dtype=dtypes.get_default_dtype() if wanted is None else wanted)
    else:
        if copy is False:
            raise ArgumentError(
                f"asarray: can't alias arbitrary sequence into a tensor, got {type(obj).__name__}; leave out copy"
            )
        return tensor(obj, dtype=wanted, device=device, requires_grad=bool(requires_grad))
    target = found.device if device is None and isinstance(obj, Tensor) else as_device(device)
    converted = found.to(target, found.dtype if wanted is None else wanted)  # type: ignore[attr-defined]
    if copy is False and converted is not found:
        raise ArgumentError(
            f"asarray: can't alias tensor with dtype '{found.dtype}' on {found.device} into dtype '{converted.dtype}' "
            "on "
            f"{target}, got copy=False; leave it out"
        )
    if copy is True and converted is found and not isinstance(obj, np.generic):
        converted = found.clone()  # type: ignore[attr-defined]
    return converted.requires_grad_() if requires_grad and not converted.requires_grad else converted


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector over the memory of an object with a buffer, such as a bytearray.

    Args:
        count: how many elements; all that there are where it is negative.
        offset: bytes to leave out at the start.
    """
    wanted = dtypes.as_dtype(dtype, "frombuffer")
    if not _has_buffer(buffer):
        raise ArgumentError(
            f"frombuffer: object does not implement Python buffer protocol, got {type(buffer).__name__}; pass bytes"
        )
    view = memoryview(buffer)
    length, size = view.nbytes, wanted.itemsize
    if not length or not count:
        raise ArgumentError(
            f"frombuffer: both buffer length ({length}) and count ({count}) must not be 0, got one that is; use "
            "empty(0)"
        )
    if not 0 <= offset < length:
        raise ArgumentError(
            f"frombuffer: offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} "
            "bytes) "
            f"minus 1, got {offset}; pass a smaller one"
        )
    left = length - offset
    if count < 0 and left % size:
        raise ArgumentError(
            f"frombuffer: buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element "
            "size "
            f"({size}), got {left}; pass count"
        )
    count = left // size if count < 0 else count
    if count * size > left:
        raise ArgumentError(
            f"frombuffer: requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be "
            "greater "
            f"than actual buffer length ({length} bytes), got count={count}; ask for less"
        )
    if view.readonly:
        warnings.warn(
            "frombuffer: expected a writable buffer, got one that is not: writes to the tensor will fail; copy the "
            "buffer "
            "to protect its data or make it writable before",
            stacklevel=2,
        )
    array = np.frombuffer(view, np.uint8, count * size, offset).view(wanted.numpy)
    device = host_device()
    return made(device.share_host(array), wanted, device, requires_grad)


def from_file(filename: Any, shared: bool | None = None, size: int = 0, *, dtype: Any = None, layout: Any = None,
              device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``size`` elements over the memory of a file, of which only what is used is read.

    Args:
        shared: True for writes that go to the file, which is made, or made longer, where it is too short; else they stay here.
    """
    if shared not in (None, True, False) or type(shared) is int:
        raise not_bool("from_file", "shared", shared)
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, "from_file")
    needed = whole("from_file", "size", size) * wanted.itemsize
    try:
        with open(filename, "a+b" if shared else "rb") as file:
            length = file.seek(0, 2)
            if shared and length < needed:
                file.truncate(needed)
                length = needed
            if not 0 <= needed <= length:
                raise UsageError(
                    f"from_file: file <{filename}> size <{length}> is smaller than the required mapping size <{needed}>, got "
                    f"size={size} of {wanted}; ask for less"
                )
            held = (
                mmap(file.fileno(), needed, access=ACCESS_WRITE if shared else ACCESS_COPY) if needed else bytearray()
            )
    except OSError as error:
        raise UsageError(f"from_file: unable to open file <{filename}>: {error.strerror} ({error.errno})") from error
    host = host_device()
    here = made(host.share_host(np.frombuffer(held, wanted.numpy)), wanted, host, False)
    here = here if device is None else here.to(device)  # type: ignore[attr-defined]
    return here.requires_grad_(requires_grad) if requires_grad else here


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an object that has ``__dlpack__``, on the device that it says.

    Args:
        ext_tensor: the object, or a capsule that ``to_dlpack`` or an object's ``__dlpack__()`` gave, which is used up.
        device: where the tensor is to be; a copy where that is another device.
        copy: True for memory of its own, False to raise where it cannot be shared.
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__") or not hasattr(ext_tensor, "__dlpack_device__"):
        raise ArgumentTypeError(
            f"from_dlpack: expected an object with __dlpack__ and __dlpack_device__, got {type(ext_tensor).__name__}; "
            f"pass a tensor or an array"
        )
    kind, index = ext_tensor.__dlpack_device__()
    target = None if device is None else as_device(device)
    if target is not None and (target.dlpack_type, target.index) == (kind, index):
        source = target  # of several devices in one memory, the one that was asked for
    else:
        source = _device_of(int(kind), int(index))
        target = target or source
    if copy is False and target is not source:
        raise ArgumentError(f"from_dlpack: expected memory on {target}, got some on {source}; leave out copy=False")
    native, dtype = source.from_dlpack(ext_tensor, copy=copy)
    return new_tensor(native, dtype, source).to(target)  # type: ignore[no-any-return]


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over the memory of a tensor, for one call of some library's ``from_dlpack``: ``tensor.__dlpack__()``."""
    return tensor.__dlpack__()  # type: ignore[attr-defined]


class _Capsule:
    """A DLPack capsule as an object with the protocol's methods."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        from tensorcore.backend.xp.dlpack import capsule_device  # imports ctypes

        return capsule_device(self.capsule)


# Methods of tensors


@method
def is_initialized(self: Tensor) -> bool:
    """Whether the values are there; those of a lazy tensor are made when one is needed."""
    parts: tuple[Tensor, ...] = getattr(self, "parts", ())  # of a sparse one
    return all(map(is_initialized, parts)) if parts else self.device.is_made(self.native)


@method
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The values as a NumPy array, which shares the memory of a tensor on the host.

    Args:
        force: detach, and copy to the host, where that is in the way.
    """
    if not force and self.node is not None and mode.enabled:
        raise GradientError(
            "numpy: Can't call numpy() on Tensor that requires grad, got one; use tensor.detach().numpy() instead"
        )
    if not force and not self.device.capabilities.host and self.device.wraps is None:
        raise ArgumentTypeError(
            f"numpy: can't convert {self.device} device type tensor to numpy, got one; use Tensor.cpu() to copy the "
            "tensor to "
            f"host memory first"
        )
    if self.dtype is dtypes.bfloat16:
        raise ArgumentTypeError(
            "numpy: Got unsupported ScalarType BFloat16, which NumPy has not; convert it with .float()"
        )
    return self.device.to_host(self.native)


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """The values for NumPy's functions, as ``numpy()`` gives them."""
    values = numpy(self)
    if dtype is not None and values.dtype != dtype:
        if copy is False:
            raise ArgumentError(
                f"__array__: expected dtype {values.dtype} for a shared array, got {dtype}; leave out copy=False"
            )
        return values.astype(dtype)
    return values.copy() if copy else values


def _array_ufunc(self: Tensor, ufunc: Any, how: str, *inputs: Any, **kwargs: Any) -> Any:
    """What NumPy's functions do with tensors, and what ``array * tensor`` is.

    A function that is an op here is that op, gradient included. Others run in NumPy on the values, and the results are
    tensors; those that were given arrays to write to give these.
    """
    name = _op_names().get(ufunc)
    if name in late.FUNCTIONS:
        late.find(name)
    if how == "__call__" and not kwargs and name in OPS:
        values = [from_numpy(one) if isinstance(one, np.ndarray) else one for one in inputs]
        if not isinstance(values[0], Tensor):  # a number first: some ops take one only after a tensor
            values[0] = as_tensor(values[0], device=self.device)
        with suppress(ArgumentTypeError):  # of an op that takes no numbers, which NumPy's function does
            return OPS[name].function(*values)  # type: ignore[misc]
    outs = kwargs.get("out", ())
    if outs:
        kwargs["out"] = tuple(_to_array(one) for one in outs)
    found = getattr(ufunc, how)(*map(_to_array, inputs), **kwargs)
    for one in outs:
        if isinstance(one, Tensor):
            written(one)
    if outs:
        return outs[0] if len(outs) == 1 else outs
    return tuple(map(_from_array, found)) if isinstance(found, tuple) else _from_array(found)


@cache
def _op_names() -> dict[Any, str]:
    from tensorcore.backend.xp.elementwise import BINARY, UNARY

    return {getattr(np, function): op for op, function in (UNARY | BINARY).items()} | {np.matmul: "matmul"}


def _to_array(value: Any) -> Any:
    return numpy(value) if isinstance(value, Tensor) else value


def _from_array(value: Any) -> Any:
    return from_numpy(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The module whose functions take this tensor, as the array API asks for it."""
    if api_version not in (None, *_STANDARDS):
        raise ArgumentError(
            f"__array_namespace__: expected one of the versions {', '.join(_STANDARDS)}, got {api_version!r}; leave it out"
        )
    return sys.modules["tensorcore"].array_api  # the facade imports it, which stands above this module


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device, as the array API spells it.

    Args:
        stream: None; copies are ordered as all other work of a device is.
    """
    if stream is not None:
        raise ArgumentError(f"to_device: expected stream to be None, got {stream!r}; leave it out")
    return self.to(device)  # type: ignore[attr-defined, no-any-return]


def _dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over this tensor's memory, which another library makes an array of.

    Args:
        stream: of the consumer, None on the host.
        max_version: the newest DLPack version that the consumer reads.
        dl_device: where it wants the memory, as ``__dlpack_device__`` gives it.
        copy: True for a copy, False to raise where one is needed.
    """
    if self.node is not None:
        raise BufferError("__dlpack__: Can't export tensors that require gradient, got one; use tensor.detach()")
    return self.device.to_dlpack(
        self.native, self.dtype, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """The device in DLPack's numbers: its type and its index."""
    kind = self.device.dlpack_type
    if kind is None:
        raise ArgumentError(
            f"__dlpack_device__: Unknown device type {self.device} for Dlpack, got one; move it to the host"
        )
    return kind, self.device.index


def _cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """Address, shape and strides for libraries that know this protocol; only tensors in CUDA memory have it."""
    if self.node is not None:
        raise GradientError(
            "__cuda_array_interface__: Can't get it on Variable that requires grad, got one; use var.detach() first"
        )
    found = self.device.array_interface(self.native)
    if found is None:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor, got one on {self.device}; move it first"
        )
    return found


def _device_of(kind: int, index: int) -> Backend:
    """The device here that has this number in DLPack's list."""
    host = host_device()
    if host.dlpack_type == kind:
        return host
    for name in registry.backends():
        found = registry.device(name)
        if found.dlpack_type == kind:
            return registry.device(name, index)
    raise DeviceError(
        f"from_dlpack: expected memory of a device that is here, got DLPack's device type {kind}; move it to the host"
    )


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


method(_array, "__array__")
method(_array_ufunc, "__array_ufunc__")
method(_array_namespace, "__array_namespace__")
method(_to_device, "to_device")
method(_dlpack, "__dlpack__")
method(_dlpack_device, "__dlpack_device__")
Tensor.__cuda_array_interface__ = property(_cuda_array_interface)  # type: ignore[attr-defined]
Tensor.__array_priority__ = 1000  # type: ignore[attr-defined]
