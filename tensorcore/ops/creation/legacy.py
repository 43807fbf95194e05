"""PyTorch's older ways to make tensors and to name their types: ``Tensor(2, 3)``, ``FloatTensor``, ``x.new(...)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.registry import device as find_device
from tensorcore.errors import ArgumentError, ArgumentTypeError, DeviceError
from tensorcore.formats import Size
from tensorcore.ops.creation.create import empty, tensor
from tensorcore.ops.kinds import method
from tensorcore.ops.placement import as_device, host_device, set_default_device
from tensorcore.parameter import Parameter
from tensorcore.storage import TypedStorage, UntypedStorage
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor", "set_default_tensor_type", "typename",
]  # fmt: skip


class _TensorType(type):
    """``isinstance(x, FloatTensor)`` reads the dtype and the device; calling it makes a tensor of that type."""

    dtype: dtypes.dtype
    kind: str | None  # of the device; None for the host

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and _kind(instance.device) == cls.kind

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        own = host_device() if cls.kind is None else find_device(cls.kind)
        given = own if device is None else as_device(device)
        if given.type != own.type:
            raise DeviceError(
                f"{cls.__name__}: legacy constructor expects device type: {own.type} but device type: {given.type} was "
                "passed; use torch.tensor(..., device=...)"
            )
        return _made(cls.__name__, cls.dtype, given, args)

    def __repr__(cls) -> str:
        return f"<class '{_word(cls.dtype, cls.kind)}'>"


# The dtypes by what they were called.
_WORDS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte", "int8": "Char",
    "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip
_DTYPES = {f"{_WORDS[one.name]}Tensor": one for one in dtypes.ALL if one.name in _WORDS}


def tensor_type(name: str, kind: str | None = None) -> Any:
    """The type of that name, such as ``FloatTensor``, for the host or for a kind of device."""
    room = "torch" if kind is None else f"torch.{kind}"
    return _TensorType(
        name, (), {"dtype": _DTYPES[name], "kind": kind, "is_cuda": kind is not None, "__module__": room}
    )


BFloat16Tensor = tensor_type("BFloat16Tensor")
BoolTensor = tensor_type("BoolTensor")
ByteTensor = tensor_type("ByteTensor")
CharTensor = tensor_type("CharTensor")
DoubleTensor = tensor_type("DoubleTensor")
FloatTensor = tensor_type("FloatTensor")
HalfTensor = tensor_type("HalfTensor")
IntTensor = tensor_type("IntTensor")
LongTensor = tensor_type("LongTensor")
ShortTensor = tensor_type("ShortTensor")


def set_default_tensor_type(t: Any) -> None:
    """Make tensors of this type where no dtype and no device are named.

    Args:
        t: a floating type, such as ``torch.DoubleTensor``, or its name.
    """
    if isinstance(t, _TensorType):
        dtype, kind = t.dtype, t.kind
    elif isinstance(t, str):
        dtype, kind = _parsed("set_default_tensor_type", t)
    else:
        raise ArgumentTypeError(
            f"set_default_tensor_type: invalid type object, got {t!r}; only floating-point types are supported as the "
            "default type, such as torch.DoubleTensor"
        )
    dtypes.set_default_dtype(dtype)
    set_default_device(kind)


def typename(obj: Any, /) -> str:
    """The name of an object's type: ``torch.FloatTensor`` and the like for tensors."""
    if isinstance(obj, Tensor):
        return obj.type()  # type: ignore[attr-defined, no-any-return]
    named = obj if hasattr(obj, "__qualname__") else obj.__class__
    room = getattr(named, "__module__", None) or ""
    return named.__qualname__ if room in ("", "builtins") else f"{room}.{named.__qualname__}"


def construct(cls: type, *args: Any, data: Any = None, size: Any = None, device: Any = None, **options: Any) -> Tensor:
    """``Tensor(2, 3)`` of undefined values in that shape, or ``Tensor([...])``; of the default dtype.

    Args:
        args: sizes, or one of: a sequence or array of values, a tensor or a storage, whose memory is shared.
        options: ``requires_grad`` and a parameter's own marks, of a program that makes a parameter anew by what it finds:
            ``type(p)(data, requires_grad=False, **p.__dict__)``. The class of a parameter is Tensor.
    """
    if options and cls is Tensor and options.keys() <= {"_is_param", "requires_grad"}:
        return Parameter(*args, requires_grad=options.get("requires_grad", True))
    if options:
        raise ArgumentTypeError(
            f"Tensor: expected sizes or values, got {sorted(options)} too; use torch.tensor or nn.Parameter"
        )
    if size is not None:
        args = tuple(size)
    elif data is not None:
        args = (data,)
    if len(args) == 1 and isinstance(args[0], Tensor):
        made = _same(args[0])
    else:
        made = _made("Tensor", dtypes.get_default_dtype(), as_device(device), args)
    return made if cls is Tensor else new_tensor(made.native, made.dtype, made.device, cls)


@method
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of the same dtype and device: of undefined values in a shape, or of the values in a sequence."""
    return _made("new", self.dtype, self.device if device is None else as_device(device), args)


@method
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
    """The tensor's type in the words of old programs, such as ``torch.FloatTensor``; or the tensor as another type.

    Args:
        dtype: a dtype, such a word, or such a type.
    """
    kind = _kind(self.device)
    if dtype is None:
        return _word(self.dtype, kind)
    if isinstance(dtype, dtypes.dtype):
        return self.to(dtype)  # type: ignore[attr-defined]
    if isinstance(dtype, _TensorType):
        wanted, kind = dtype.dtype, dtype.kind
    elif isinstance(dtype, str):
        wanted, kind = _parsed("type", dtype)
    elif dtype is Tensor:
        wanted = dtypes.get_default_dtype()
    else:
        raise _invalid("type", dtype)
    target = self.device if kind == _kind(self.device) else host_device() if kind is None else find_device(kind)
    return self.to(target, wanted)  # type: ignore[attr-defined]


def _made(op: str, dtype: dtypes.dtype, device: Any, args: tuple[Any, ...]) -> Tensor:
    """What the arguments of an old constructor ask for."""
    if len(args) != 1 or isinstance(args[0], Size) or (hasattr(args[0], "__index__") and _counts(args[0])):
        return empty(*args or (0,), dtype=dtype, device=device)
    data = args[0]
    if isinstance(data, (TypedStorage, UntypedStorage)):
        return new_tensor(empty(0, dtype=dtype, device=device).native, dtype, device).set_(data)  # type: ignore[attr-defined, no-any-return]
    if isinstance(data, Tensor):
        if data.dtype is not dtype or data.device is not device:
            raise ArgumentTypeError(
                f"{op}: expected a tensor of {dtype} on {device}, got one of {data.dtype} on {data.device}; convert it "
                "with .to(...)"
            )
        return _same(data)
    if isinstance(data, str) or not (isinstance(data, np.ndarray) or hasattr(data, "__len__")):
        raise ArgumentTypeError(
            f"{op}: data must be a sequence, got {data.__class__.__name__}; pass sizes as ints, or values in a list"
        )
    if not isinstance(data, np.ndarray):
        data = list(data)
    return tensor(data, dtype=dtype, device=device)


def _counts(value: Any) -> bool:
    """Whether something with ``__index__`` is a size: tensors and arrays of several elements have one that raises."""
    return not isinstance(value, (bool, Tensor, np.ndarray))


def _same(data: Tensor) -> Tensor:
    return data.view(data.shape)  # type: ignore[attr-defined, no-any-return]


def _kind(device: Any) -> str | None:
    return None if device.capabilities.host else device.type


def _word(dtype: dtypes.dtype, kind: str | None) -> str:
    return f"torch.{'' if kind is None else kind + '.'}{_WORDS[dtype.name]}Tensor"


def _parsed(op: str, text: str) -> tuple[dtypes.dtype, str | None]:
    """The dtype and the kind of device in a word such as ``torch.cuda.FloatTensor``."""
    room, _, name = text.rpartition(".")
    library, _, kind = room.partition(".")
    if library != "torch" or name not in _DTYPES:
        raise _invalid(op, text)
    return _DTYPES[name], kind or None


def _invalid(op: str, value: Any) -> ArgumentError:
    return ArgumentError(f"{op}: invalid type: {value!r}, got it; pass a dtype, or a word such as 'torch.FloatTensor'")
