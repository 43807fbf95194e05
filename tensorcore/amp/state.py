"""What this thread's autocast regions ask for, and the casts that follow from it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType, MappingProxyType
from typing import Any

from tensorcore import dtypes
from tensorcore.amp.bodies import Body, count
from tensorcore.amp.lists import ACCELERATOR, CPU
from tensorcore.backend.registry import backends
from tensorcore.backend.registry import device as find_device
from tensorcore.backend.turns import renewed
from tensorcore.dtypes import dtype
from tensorcore.errors import DeviceError, DeviceUnavailable, DtypeError, UnknownDevice, UsageError
from tensorcore.ops import late
from tensorcore.ops.define import OPS
from tensorcore.shortcuts import in_python
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor

__all__ = [
    "acting_as", "again", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "enter",
    "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "is_autocast_enabled", "leave", "regions", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
]  # fmt: skip

# The dtypes that are cast; float64 and all that is not floating stay what they are.
_CAST = frozenset([dtypes.float16, dtypes.bfloat16, dtypes.float32])
# Device types that a program may name though nothing is installed that runs them, and those that were found since.
_NAMED = frozenset(["cpu", "cuda"])
_KNOWN = {*_NAMED}
# Those that programs go through to ask whether a region is on: they are never here, so it is not.
_NAMES = ("hpu", "ipu", "mps", "mtia", "xla", "xpu")


class State(threading.local):
    """One thread's regions.

    Attributes:
        enabled: the device types whose regions are on.
        chosen: the dtypes that were set, by device type.
        active: the dtype for each of the types that are on; None where there are none, and within an op.
        cache: casts of leaves, by the leaf's id: the leaf, its version, whether it was recorded, the cast.
        counted: whether this thread is among those for which the bodies are exchanged.
    """

    enabled: frozenset[str] = frozenset()
    chosen: Mapping[str, dtype] = MappingProxyType({})
    active: dict[str, dtype] | None = None
    cache_enabled = True
    nesting = 0
    counted = False

    def __init__(self) -> None:
        self.cache: dict[tuple[int, dtype], tuple[Tensor, int, bool, Tensor]] = {}

    def settle(self, enabled: frozenset[str], chosen: Mapping[str, dtype], cache_enabled: bool) -> None:
        """Change what is on."""
        self.enabled, self.chosen, self.cache_enabled = enabled, chosen, cache_enabled
        on = bool(enabled)
        self.active = {one: chosen.get(one) or _default(one) for one in enabled} if on else None
        if on is not self.counted:
            if on:
                _find_bodies()
            self.counted = on
            count.enter() if on else count.leave()


state = State()


def regions() -> tuple[Any, ...]:
    """What this thread's regions are, for :func:`leave` and :func:`again`."""
    return state.enabled, state.chosen, state.cache_enabled


def enter(device_type: str, dtype: dtype, enabled: bool, cache_enabled: bool) -> None:
    """Begin a region."""
    name = frozenset([device_type])
    on = state.enabled | name if enabled else state.enabled - name
    state.nesting += 1
    state.settle(on, {**state.chosen, device_type: dtype}, cache_enabled)


def leave(before: tuple[Any, ...]) -> None:
    """End a region: ``before`` is what :func:`regions` found when it began."""
    state.nesting -= 1
    if not state.nesting:
        state.cache.clear()
    state.settle(*before)


@contextmanager
def again(found: tuple[Any, ...]) -> Iterator[None]:
    """Within a ``with`` the regions that :func:`regions` found, whatever is around it, with casts of their own."""
    before, cache = regions(), state.cache
    state.cache = {}
    state.settle(*found)
    try:
        yield
    finally:
        state.settle(*before)
        state.cache = cache


# What a program asks and sets


def acting_as(device_type: str) -> str:
    """The type that regions know devices of a type by: of ``lazy`` that of the device underneath."""
    try:
        return device_type if device_type in _KNOWN else find_device(device_type).acts_as
    except (DeviceUnavailable, UnknownDevice):
        return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for devices of this type."""
    if device_type in _NAMED:
        return True  # without a search for the device, which is long where there is none
    device_type = acting_as(device_type)
    if device_type not in _KNOWN and device_type not in backends():
        return False
    try:
        return bool(find_device(device_type).capabilities.values)
    except (DeviceUnavailable, UnknownDevice):
        return True


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether this thread is inside a region for devices of a type; of the type cuda where None."""
    return _known("cuda" if device_type is None else device_type) in state.enabled


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast on or off on this thread; with a bool alone, for devices of the type cuda."""
    name, on = ("cuda", device_type) if enabled is None else (device_type, enabled)
    one = frozenset([_known(name)])
    state.settle(state.enabled | one if on else state.enabled - one, state.chosen, state.cache_enabled)


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype of regions for devices of a type that name none: bfloat16 on CPUs, elsewhere float16."""
    device_type = _known(device_type)
    return state.chosen.get(device_type) or _default(device_type)


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Choose that dtype on this thread."""
    state.settle(state.enabled, {**state.chosen, _known(device_type): dtype}, state.cache_enabled)


def is_autocast_cache_enabled() -> bool:
    """Whether regions keep the casts of leaves."""
    return state.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Let regions keep the casts of leaves, or not."""
    state.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget the casts of leaves."""
    state.cache.clear()


def autocast_increment_nesting() -> int:
    """Count a region more, and say how many there are."""
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting() -> int:
    """Count a region less, and say how many there are."""
    state.nesting -= 1
    return state.nesting


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"torch.{old} is deprecated. Please use torch.{new} instead.", DeprecationWarning, stacklevel=3)


def is_autocast_cpu_enabled() -> bool:
    """The older name of ``is_autocast_enabled("cpu")``."""
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """The older name of ``set_autocast_enabled("cpu", enabled)``."""
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtype:
    """The older name of ``get_autocast_dtype("cpu")``."""
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """The older name of ``set_autocast_dtype("cpu", dtype)``."""
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtype:
    """The older name of ``get_autocast_dtype("cuda")``."""
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """The older name of ``set_autocast_dtype("cuda", dtype)``."""
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def _default(device_type: str) -> dtype:
    return dtypes.bfloat16 if device_type == "cpu" else dtypes.float16


def _known(device_type: str) -> str:
    device_type = acting_as(device_type)
    if device_type not in _KNOWN and device_type not in _NAMES and device_type not in backends():
        raise DeviceError(
            f"autocast: expected a device type among {sorted({*_KNOWN, *backends()})}, got {device_type!r}; install the "
            f"plugin that offers it"
        )
    if device_type not in _NAMES:
        _KNOWN.add(device_type)
    return device_type


# The casts


def _wrapper(name: str) -> Callable[[FunctionType], Callable[..., Any]]:
    """What the op ``name`` does inside a region, given the function that runs its own body."""

    def make(own: FunctionType) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            active = state.active
            if active is None:
                return own(*args, **options)
            kind = args[0].device.acts_as if args and type(args[0]) is Tensor else _place(args, options, active)
            if kind not in active:
                kind = _place(args, options, active)
                if kind is None:
                    return own(*args, **options)
            what = (CPU if kind == "cpu" else ACCELERATOR).get(name, "as_is")
            if type(what) is not str:
                what = what(*args, **options)  # type: ignore[operator]
            if what == "as_is":
                return own(*args, **options)
            if what != "shielded" and options.get("out") is None:
                args, options = _CASTS[what](name, kind, active[kind], args, options)
            # What an op is made of is not cast again.
            state.active = None
            try:
                return own(*args, **options)
            finally:
                state.active = active

        return call

    return make


def _place(args: tuple[Any, ...], options: dict[str, Any], active: dict[str, dtype]) -> str | None:
    """The type of the first device among the arguments' that a region is on for."""
    return next(
        (one.device.acts_as for one in _tensors((args, options.values())) if one.device.acts_as in active), None
    )


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def _all_to(name: str, kind: str, dtype: dtype, args: tuple[Any, ...], options: dict[str, Any]) -> Arguments:
    return tuple([_to(one, kind, dtype) for one in args]), {key: _to(one, kind, dtype) for key, one in options.items()}


def _all_to_float32(name: str, kind: str, dtype: dtype, args: tuple[Any, ...], options: dict[str, Any]) -> Arguments:
    return _all_to(name, kind, dtypes.float32, args, options)


def _result_in_float32(name: str, kind: str, dtype: dtype, args: tuple[Any, ...], options: dict[str, Any]) -> Arguments:
    first = next(iter(_tensors((args, options.values()))))
    if _eligible(first, kind) and options.get("dtype") is None and not any(type(one) is dtypes.dtype for one in args):
        while args and args[-1] is None:
            args = args[:-1]  # a dtype of None by position is none
        options = {**options, "dtype": dtypes.float32}
    return args, options


def _all_to_widest(name: str, kind: str, dtype: dtype, args: tuple[Any, ...], options: dict[str, Any]) -> Arguments:
    for one in _tensors((args, options.values())):
        if _eligible(one, kind) and one.dtype is not dtype:
            if one.dtype is not dtypes.float32 and dtype is not dtypes.float32:
                raise DtypeError(
                    f"{name}: Unexpected floating ScalarType in at::autocast::prioritize, got {one.dtype.name} in a region "
                    f"of {dtype.name}; convert it with .to(...)"
                )
            dtype = dtypes.float32
    return _all_to(name, kind, dtype, args, options)


def _refused(name: str, kind: str, dtype: dtype, args: tuple[Any, ...], options: dict[str, Any]) -> Arguments:
    raise UsageError(
        f"{name}: torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast, got a call inside a "
        f"region; use torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss without the "
        f"sigmoid before it"
    )


_CASTS = {
    "lower_precision": _all_to, "float32": _all_to_float32, "float32_result": _result_in_float32,
    "promote": _all_to_widest, "banned": _refused,
}  # fmt: skip


def _tensors(values: Any) -> Any:
    for one in values:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, (tuple, list)) or type(one) is type({}.values()):
            yield from _tensors(one)


def _eligible(one: Tensor, kind: str) -> bool:
    return one.dtype in _CAST and one.device.acts_as == kind


def _to(value: Any, kind: str, dtype: dtype) -> Any:
    """A value with the tensors in it cast, where they are of the kind that is cast."""
    if isinstance(value, Tensor):
        if value.dtype is dtype or not _eligible(value, kind):
            return value
        keep = (
            state.cache_enabled
            and value.dtype is dtypes.float32
            and value.requires_grad
            and value.is_leaf
            and value.origin is None
            and not mode.inference
        )
        return _kept(value, dtype) if keep else value.to(dtype)  # type: ignore[attr-defined]
    if type(value) is list or type(value) is tuple:
        return type(value)([_to(one, kind, dtype) for one in value])
    return value


def _kept(leaf: Tensor, dtype: dtype) -> Tensor:
    """The cast of a leaf: once for all calls of a region, so that its gradients are summed before they are cast back."""
    key = id(leaf), dtype
    found = state.cache.get(key)
    # A cast without a place on the tape is none for a recorded call, nor that of a leaf that was written since.
    if found is None or found[1] != leaf._version or found[2] is not mode.enabled:
        found = state.cache[key] = leaf, leaf._version, mode.enabled, leaf.to(dtype)  # type: ignore[attr-defined]
    return found[3]


# Which functions have two bodies

_finding = renewed(threading.Lock())
_found: set[int] = set()
_seen = -1  # how many ops there were at the last look


def _find_bodies() -> None:
    """Take up the functions of all listed ops that are there, once for each."""
    if _seen != len(OPS):
        with _finding:
            _find_new_bodies()


def _find_new_bodies() -> None:
    global _seen
    if _seen < 0:
        # The families of listed ops come now: a first call inside a region is to find them ready.

        for name in {*CPU, *ACCELERATOR}:
            if name in late.FUNCTIONS:
                late.find(name)
    _seen = len(OPS)
    bodies = []
    for name in {*CPU, *ACCELERATOR}:
        for function in _functions(name):
            if id(function) not in _found:
                _found.add(id(function))
                bodies.append(Body(function, _wrapper(name)))
        written = in_python(getattr(Tensor, f"{name}_", None))
        if type(written) is FunctionType and id(written) not in _found:
            # A write goes where it goes: neither it nor what it is made of is cast.
            _found.add(id(written))
            bodies.append(Body(written, _shield))
    count.add(bodies)


def _shield(own: FunctionType) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        active, state.active = state.active, None
        try:
            return own(*args, **options)
        finally:
            state.active = active

    return call


_OPERATORS = {"matmul": ("__matmul__", "__rmatmul__"), "pow": ("__pow__", "__rpow__")}


def _functions(name: str) -> list[FunctionType]:
    """The functions by which an op is called: its own, its method, its operators."""
    import tensorcore.nn.functional as layers

    family, _, rest = name.partition("_")
    found = [getattr(OPS.get(one), "function", None) for one in (name, f"{family}.{rest}")]
    found += [getattr(Tensor, one, None) for one in (name, *_OPERATORS.get(name, ()))]
    found.append(getattr(layers, name, None))
    return [one for one in map(in_python, found) if type(one) is FunctionType]
