"""Device arrays: NumPy arrays over the stand-in's memory, that mix with no array of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _memory, _state
from . import _timeline as timeline
from ._surface import METHODS, bind

__all__ = ["emit", "ndarray", "unwrap"]


class ndarray:
    """An array on a device."""

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __new__(
        cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> ndarray:
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        kind = np.dtype(dtype)
        made = object.__new__(cls)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        if memptr is None:
            from . import cuda

            memptr = cuda.alloc(size)
            strides = np.empty(shape, np.uint8, order=order).strides if strides is None else strides
            strides = tuple([one * kind.itemsize for one in strides]) if order == "F" else None
        made._over(shape, kind, memptr, strides)
        made.base = None
        return made

    def _over(self, shape: tuple[int, ...], dtype: np.dtype[Any], data: Any, strides: Any) -> None:
        self.data = data
        offset = data._offset
        raw = _memory._bytes_of(data.mem)
        if 0 in shape:
            self._a = np.empty(shape, dtype) if strides is None else np.ndarray(shape, dtype, bytearray(), 0, strides)
        else:
            self._a = np.ndarray(shape, dtype, raw, offset, strides)

    # What it is

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    strides = property(lambda self: self._a.strides)
    T = property(lambda self: self.transpose())

    @property
    def flags(self) -> Any:
        """Contiguity."""
        return _Flags(self._a)

    @property
    def device(self) -> Any:
        """Where it is."""
        return self.data.device

    @property
    def real(self) -> ndarray:
        """The real part, in the same memory."""
        return emit("real", lambda a: a.real if a.dtype.kind == "c" else a, (self,))  # type: ignore[no-any-return]

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> ndarray:
        """The imaginary part, in the same memory; zeros of a real array."""
        return emit("imag", lambda a: a.imag, (self,))  # type: ignore[no-any-return]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        stream = _state.current_line(self.data.device_id).number
        return {
            "shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "version": 3, "stream": stream,
            "strides": None if self.flags.c_contiguous else self.strides, "data": (self.data.ptr, False),
        }  # fmt: skip

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        import cupy

        function = getattr(cupy, ufunc.__name__, None)
        if function is None:
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        return (function if method == "__call__" else getattr(function, method))(*inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        import cupy

        found: Any = cupy
        for part in [*function.__module__.split(".")[1:], function.__name__]:
            found = getattr(found, part, None)
        if found is None:
            return NotImplemented
        return found(*args, **kwargs)

    # To and from the host

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        """The values on the host."""
        line = _state.current_line(self.data.device_id) if stream is None else stream._line
        if out is None:
            out = np.empty(self.shape, self.dtype, order="C" if order in "AK" else order)
        elif (out.shape, out.dtype) != (self.shape, self.dtype):
            raise TypeError("get: out is of another shape or dtype")
        if not self.size:
            return out
        root = _memory._root(self.data.mem)
        _memory.refuse_copy_in_capture(line, "D2H transfers")
        if blocking:
            timeline.launch(line, [root], [], "get")
            timeline.wait(line.clock)
            out[...] = self._a
        else:
            timeline.launch(line, [root], [], "get")
            values = np.ascontiguousarray(self._a).reshape(-1).view(np.uint8).copy()
            # By its address alone: a copy under way keeps no memory of the host alive.
            target = _memory._host_bytes(out.ctypes.data, out.nbytes)
            if not _memory.is_pinned(target):
                timeline.wait(line.clock)
                target[...] = values
            else:
                target.fill(_memory.POISON)
                line.pending.append(timeline.Work(line, lambda: np.copyto(target, values)))
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        """The values of a host array."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self.flags.c_contiguous or self.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        if not self.size:
            return
        arr = np.ascontiguousarray(arr) if self.flags.c_contiguous else np.asfortranarray(arr)
        self.data.copy_from_host_async(arr.ctypes.data, self.nbytes, stream)

    def _look(self, name: str) -> np.ndarray:
        line = _state.current_line(self.data.device_id)
        _memory.refuse_copy_in_capture(line, "D2H transfers")
        timeline.launch(line, [_memory._root(self.data.mem)], [], name)
        timeline.wait(line.clock)
        return self._a

    def item(self, *args: Any) -> Any:
        """One element as a Python number; the host waits for it."""
        return self._look("item").item(*args)

    def tolist(self) -> Any:
        """The elements as Python numbers; the host waits for them."""
        return self._look("tolist").tolist()

    def __bool__(self) -> bool:
        return bool(self._look("bool"))

    def __int__(self) -> int:
        return int(self._look("int"))

    def __float__(self) -> float:
        return float(self._look("float"))

    def __complex__(self) -> complex:
        return complex(self._look("complex"))

    def __index__(self) -> int:
        return self._look("index").__index__()

    def __len__(self) -> int:
        return len(self._a)

    def __repr__(self) -> str:
        return repr(self._look("repr"))

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # Elements

    def __getitem__(self, key: Any) -> Any:
        masks = _has_mask(key)
        if masks:
            for one in masks:
                one._look("getitem with a mask")
        return emit("getitem", lambda a, k: a[_inside(a, k)], (self, key), eager=bool(masks))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError(f"Unsupported type {type(value)}")
        for one in _has_mask(key) if isinstance(value, ndarray) and value.size != 1 else ():
            one._look("setitem with a mask")
        emit("setitem", _put, (self, key, value), writes=(self,))

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        """The same bits as another dtype."""
        return emit("view", lambda a: a.view(a.dtype if dtype is None else dtype), (self,))  # type: ignore[no-any-return]

    def fill(self, value: Any) -> None:
        """One value everywhere."""
        emit("fill", lambda a, v: a.fill(v.item() if isinstance(v, np.ndarray) else v), (self, value), writes=(self,))

    def sort(self, axis: int = -1, *, kind: Any = None) -> None:
        """In order, in place."""
        emit("sort", lambda a: a.sort(axis), (self,), writes=(self,))

    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        from ._exchange import export

        return export(self, stream, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.data.device_id)


class _Flags:
    def __init__(self, array: np.ndarray) -> None:
        self.c_contiguous, self.f_contiguous = array.flags.c_contiguous, array.flags.f_contiguous
        self.owndata = False

    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous)
    forc = property(lambda self: self.f_contiguous or self.c_contiguous)


def _has_mask(key: Any) -> list[ndarray]:
    keys = key if isinstance(key, tuple) else (key,)
    return [one for one in keys if isinstance(one, ndarray) and one.dtype == bool]


def _inside(array: np.ndarray, key: Any) -> Any:
    """Indices outside wrap around silently, as on the device."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if not any([isinstance(one, np.ndarray) and one.dtype.kind in "iu" for one in keys]):
        return key
    taken = sum(
        [
            one.ndim if isinstance(one, np.ndarray) and one.dtype == bool else one is not None and one is not ...
            for one in keys
        ]
    )
    dim = 0
    for i, one in enumerate(keys):
        if one is ...:
            dim += array.ndim - taken
        elif isinstance(one, np.ndarray) and one.dtype.kind in "iu":
            size = array.shape[dim]
            keys[i] = one % size if size else one
            dim += 1
        elif isinstance(one, np.ndarray):
            dim += one.ndim
        elif one is not None:
            dim += 1
    return tuple(keys)


def _put(array: np.ndarray, key: Any, value: Any) -> None:
    array[_inside(array, key)] = value


def unwrap(value: Any, found: list[ndarray]) -> Any:
    """NumPy's arrays in place of the device's, which are collected; an array of the host raises."""
    if isinstance(value, ndarray):
        found.append(value)
        return value._a
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if type(value) in (list, tuple):
        return type(value)([unwrap(one, found) for one in value])
    if type(value) is dict:
        return {key: unwrap(one, found) for key, one in value.items()}
    return value


def emit(
    name: str, compute: Callable[..., Any], args: tuple[Any, ...], kwargs: Any = None, *,
    writes: tuple[ndarray, ...] = (), out: Any = None, eager: bool = False,
) -> Any:  # fmt: skip
    """Run a function of NumPy's arrays as work on the current stream; its results are device arrays.

    ``writes`` and ``out`` are the arrays that it changes. Results that lie in the memory of an argument are views.
    """
    found: list[ndarray] = []
    plain, named = unwrap(args, found), unwrap(kwargs or {}, found)
    line = _state.current_line()
    device = _state.current_device()
    for one in found:
        if one.data.device_id != device and one.size:
            raise ValueError(
                f"Array device must be same as the current device: array device = {one.data.device_id} while current = {device}"
            )
    targets = [*writes, *([] if out is None else [out])]
    roots = [_memory._root(one.data.mem) for one in found if one.size]
    for root in dict.fromkeys(roots):
        if root.__class__ is _memory.Memory and root.pending is not None:
            root.read_on(line, name)  # what was on its way is there now, or it is a race
    if line.graph is not None:
        for one in targets:
            line.graph.note(_memory._root(one.data.mem))
    with np.errstate(all="ignore"):
        result = compute(*plain, **named)
    made = _adopted(result, found, out)
    fresh = {
        i: one for i, one in enumerate(_flat(made)) if isinstance(one, ndarray) and one.__dict__.pop("_fresh", False)
    }
    touched = [_memory._root(one.data.mem) for one in (*targets, *fresh.values()) if one.size]
    if touched or eager:
        timeline.launch(line, roots, dict.fromkeys(touched), name)
        if line.graph is not None:
            for one in fresh.values():
                line.graph.note(_memory._root(one.data.mem))
            line.graph.work.append(_again(compute, plain, named, fresh))
            line.graph.kept.append((found, made))
        for one in fresh.values():
            one._a[...] = one.__dict__["_values"]
    for one in fresh.values():
        del one.__dict__["_values"]
    return made


def _again(compute: Any, plain: Any, named: Any, fresh: dict[int, ndarray]) -> Callable[[], None]:
    def run() -> None:
        with np.errstate(all="ignore"):
            found = _flat(compute(*plain, **named))
        for i, target in fresh.items():
            target._a[...] = found[i]

    return run


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in _flat(part)]
    return [value]


def _adopted(result: Any, inputs: list[ndarray], out: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return (
            type(result)([_adopted(one, inputs, out) for one in result])
            if type(result) in (tuple, list)
            else tuple([_adopted(one, inputs, out) for one in result])
        )
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    for one in inputs if out is None else [out, *inputs]:
        if result is one._a:
            return one
    result = np.asarray(result)
    if result.base is not None:
        for one in inputs:
            view = _view_of(one, result)
            if view is not None:
                return view
    made = ndarray(result.shape, result.dtype, None, None, "F" if result.flags.fnc else "C")
    if not result.flags.forc and result.size:
        made = _like(result)
    made.__dict__["_fresh"], made.__dict__["_values"] = True, result
    return made


def _like(result: np.ndarray) -> ndarray:
    order = sorted(range(result.ndim), key=lambda i: -abs(result.strides[i]))
    made = ndarray([result.shape[i] for i in order], result.dtype)
    back = [order.index(i) for i in range(result.ndim)]
    turned = made._a.transpose(back)
    view = object.__new__(ndarray)
    view._a, view.data, view.base = turned, made.data, None
    return view


def _view_of(one: ndarray, result: np.ndarray) -> ndarray | None:
    root = _memory._root(one.data.mem)
    address = result.__array_interface__["data"][0]
    if not result.size:
        if not _base_is(result, one._a):
            return None
        address = one.data.ptr
    elif not root.ptr <= address < root.ptr + max(root.size, 1):
        return None
    view = object.__new__(ndarray)
    view.base = one if one.base is None else one.base
    view._over(
        result.shape, result.dtype, _memory.MemoryPointer(one.data.mem, address - one.data.mem.ptr), result.strides
    )
    return view


def _base_is(result: Any, array: np.ndarray) -> bool:
    while result is not None:
        if result is array:
            return True
        result = getattr(result, "base", None)
    return False


def _method(name: str) -> Callable[..., Any]:
    parameters = METHODS[name].get("parameters")

    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        bind(f"ndarray.{name}", parameters, args, kwargs)
        if parameters is not None and "out=" in parameters:
            kwargs = {key.rstrip("="): one for key, one in zip(parameters, args, strict=False)} | kwargs
            kwargs = {key: one for key, one in kwargs.items() if key != "out" or one is not None}
            args = ()
        out = kwargs.get("out")

        def compute(array: np.ndarray, *plain: Any, **named: Any) -> Any:
            return getattr(array, name)(*plain, **named)

        return emit(name, compute, (self, *args), kwargs, out=out)

    method.__name__ = name
    return method


for _name in (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip", "compress", "conj", "conjugate",
    "copy", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat",
    "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var",
):  # fmt: skip
    setattr(ndarray, _name, _method(_name))
