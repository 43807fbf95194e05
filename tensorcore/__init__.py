"""PyTorch's programs on any device: ``import tensorcore as torch``."""

from __future__ import annotations

from tensorcore import autograd, dtypes, interop, memory, ops, printing, serialization, storage
from tensorcore._version import __version__
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import backends
from tensorcore.backend.registry import device as _find_device
from tensorcore.dtypes import (
    bfloat16,
    can_cast,
    complex64,
    complex128,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)  # fmt: skip
from tensorcore.dtypes import bool_ as bool
from tensorcore.ops.operands import result_type
from tensorcore.ops.placement import Default, get_default_device, set_default_device
from tensorcore.printing import get_printoptions, set_printoptions
from tensorcore.tape.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tensorcore.tensor import Size, Tensor

Default.host = "cpu"

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

for _family in (*ops.FAMILIES, interop, memory, serialization, storage):
    for _name in _family.__all__:
        globals()[_name] = getattr(_family, _name)
for _name in ops.METHODS:
    globals()[_name] = getattr(Tensor, _name)

# ``torch.relu`` takes no ``inplace``, unlike ``nn.functional.relu``: the method itself, one frame less.
relu = Tensor.relu  # type: ignore[attr-defined]


class _DeviceType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Backend)

    def __call__(cls, device: object, index: object = None) -> Backend:
        return _find_device(device) if index is None else _find_device(device, index)


class device(metaclass=_DeviceType):
    """``device("cuda:1")`` is the backend that runs there; every device is an instance of this."""


def __getattr__(name: str) -> object:
    # Layers, optimizers and data sets are imported when a program first names them.
    if name in ("nn", "optim", "utils"):
        from importlib import import_module

        return import_module(f"tensorcore.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
