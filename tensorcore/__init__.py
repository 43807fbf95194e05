"""PyTorch's programs on any device: ``import tensorcore as torch``."""

from __future__ import annotations

from importlib import import_module
from math import e, inf, nan, pi
from typing import Any as _Any

from tensorcore import autograd, dtypes, guests, interop, memory, ops, printing, serialization, storage, threads
from tensorcore._version import __version__
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import device as _find_device
from tensorcore.backend.registry import register_builtin as _register_builtin
from tensorcore.backend.registry import register_wrapper as _register_wrapper
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
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from tensorcore.dtypes import bool_ as bool
from tensorcore.errors import DeviceUnavailable, OutOfMemoryError, UnknownDevice
from tensorcore.formats import (
    Size,
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from tensorcore.memory import empty_cache, memory_stats
from tensorcore.ops.operands import result_type
from tensorcore.ops.placement import Default, get_default_device, set_default_device
from tensorcore.printing import get_printoptions, set_printoptions
from tensorcore.shortcuts import before as _before
from tensorcore.tape.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tensorcore.tensor import Tensor

Default.host = "cpu"

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128
newaxis = None

for _family in (*ops.FAMILIES, interop, serialization, storage, threads):
    for _name in _family.__all__:
        globals()[_name] = getattr(_family, _name)


# What programs ask a tensor about: the kind of its device, and ways of keeping elements that there are not here.
for _name in ("cpu", "cuda", "ipu", "maia", "mps", "mtia", "vulkan", "xla", "xpu"):
    setattr(Tensor, f"is_{_name}", property(_before("is_on", _name)(lambda self, kind=_name: self.device.type == kind)))
for _name in ("mkldnn", "nested", "quantized", "sparse", "sparse_csr"):
    setattr(Tensor, f"is_{_name}", property(lambda self: False))
del _name
Tensor._cdata = property(id)  # by which programs tell whether two names mean one tensor
Tensor._grad = Tensor.grad  # which programs read by both names


def _subclassed(cls: type, **options: object) -> None:
    super(Tensor, cls).__init_subclass__(**options)
    if cls.__module__.partition(".")[0] != "tensorcore":  # ours say by ``instead`` what is done with them
        _overrides().listen()


def _overrides() -> _Any:
    return import_module("tensorcore.overrides")


def _torch_function(cls: type, func: _Any, types: _Any, args: _Any = (), kwargs: _Any = None) -> _Any:
    return _overrides().default(cls, func, types, args, kwargs)


def _make_subclass(cls: type, data: Tensor, require_grad: _Any = False) -> _Any:
    return _overrides().make_subclass(cls, data, require_grad)


def _as_subclass(self: Tensor, cls: type) -> _Any:
    """The same values, memory and history as a tensor of a subclass of Tensor."""
    return _overrides().as_subclass(self, cls)


Tensor.__init_subclass__ = classmethod(_subclassed)
Tensor.__torch_function__ = classmethod(_torch_function)
Tensor._make_subclass = staticmethod(_make_subclass)
Tensor.as_subclass = _as_subclass
_as_subclass.__qualname__ = "as_subclass"
ops.mixed.strangers = lambda *given: _overrides().ask(*given)


class _DeviceType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, str):
            return isinstance(instance, Backend)
        return isinstance(instance, import_module("tensorcore.absent").AbsentDevice)

    def __call__(cls, device: object, index: object = None) -> object:
        try:
            return _find_device(device) if index is None else _find_device(device, index)
        except (DeviceUnavailable, UnknownDevice):
            absent = import_module("tensorcore.absent").AbsentDevice.named(device, index)
            if absent is None:
                raise
            return absent


class device(metaclass=_DeviceType):
    """``device("cuda:1")`` is the backend that runs there; every device is an instance of this."""


def _test_device(name: str) -> None:
    def make(index: int) -> Backend:
        from tensorcore.testing.devices import MAKERS

        return MAKERS[name](index)

    _register_builtin(name, make, listed=False)


for _name in ("null", "pyref", "sim"):
    _test_device(_name)


def _lazy_over(inner: str) -> Backend:
    from tensorcore.lazy import over

    return over(inner or get_default_device())


def _differential_of(inner: str) -> Backend:
    from tensorcore.errors import UnknownDevice
    from tensorcore.wrappers import differential

    names = inner.split(",")
    if len(names) != 2:
        raise UnknownDevice(f"device: expected 'differential:first,second', got {inner!r}; name two devices")
    return differential(*names)


def _trace_of(inner: str) -> Backend:
    from tensorcore.wrappers import trace

    return trace(inner or None)


_register_wrapper("lazy", _lazy_over)
_register_wrapper("differential", _differential_of)
_register_wrapper("trace", _trace_of)

# Imported when a program first names them.
_ROOMS = (
    "_C", "__config__", "_dynamo", "_higher_order_ops", "_inductor", "_subclasses", "_utils", "accelerator", "amp", "ao",
    "array_api", "backends", "compiler", "cpu", "cuda", "distributed", "distributions", "fft", "func", "functional", "fx",
    "futures", "hub", "jit", "lazy", "library", "linalg", "mps", "multiprocessing", "nn", "onnx", "optim", "overrides",
    "profiler", "quantization", "quasirandom", "random", "return_types", "signal", "sparse", "special", "testing", "types",
    "utils", "version", "wrappers", "xpu",
)  # fmt: skip
torch = import_module(__name__)  # the package has itself by its name in PyTorch, and programs spell out torch.torch
# Names of those rooms that PyTorch has here too.
_ELSEWHERE = {
    "vmap": "func",
    "summary": "utils.summary",
    **dict.fromkeys([
        "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "qint8", "quint8",
    ], "absent"),
    **dict.fromkeys([
        "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
        "is_deterministic_algorithms_warn_only_enabled", "set_deterministic_debug_mode", "use_deterministic_algorithms",
    ], "determinism"),
    "autocast": "amp",
    **dict.fromkeys([
        "SymBool", "SymFloat", "SymInt", "cond", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not",
        "sym_sqrt", "sym_sum", "while_loop",
    ], "control"),
    "fallback": "backend.fallback",
    "Future": "futures",
    **dict.fromkeys(["Event", "Stream"], "cuda.streams"),
    "get_device_module": "accelerator",
    "GradScaler": "amp",
    "AcceleratorError": "errors",
    "OutOfMemoryError": "errors",
    "PyTorchFileReader": "serialization.records",
    "DeviceObjType": "jit",
    "ScriptModule": "jit",
    "TensorType": "jit",
    "compile": "compiler",
    "evaluate": "lazy",
    "is_anomaly_check_nan_enabled": "autograd",
    "is_anomaly_enabled": "autograd",
    **dict.fromkeys([
        "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_cpu_dtype",
        "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_cache_enabled", "is_autocast_cpu_enabled",
        "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
        "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
    ], "amp.state"),
    **dict.fromkeys([
        "_assert", "_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented",
        "_check_tensor_all", "_check_tensor_all_with", "_check_type",
        "_check_value", "get_float32_matmul_precision", "is_warn_always_enabled", "set_float32_matmul_precision", "set_flush_denormal",
        "set_warn_always",
    ], "switches"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"tensorcore.{name}")
    if name in _ELSEWHERE:
        found = getattr(import_module(f"tensorcore.{_ELSEWHERE[name]}"), name)
    elif name in ops.METHODS:
        ops.late.settle(name)
        found = getattr(Tensor, name)
    elif name.startswith("_foreach_"):
        found = getattr(import_module("tensorcore.foreach"), name)
    elif name in ops.late.FUNCTIONS:
        found = ops.late.find(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_ELSEWHERE, *ops.METHODS, *ops.late.FUNCTIONS})


guests.welcome()
