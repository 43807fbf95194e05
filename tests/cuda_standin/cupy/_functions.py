"""CuPy's functions by NumPy's, within what the recorded surface of real CuPy allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ._array import _put, emit, ndarray
from ._surface import SURFACE, bind

__all__ = ["array", "asnumpy", "from_dlpack", "function", "ufunc"]

# The host waits in these, for the size of the result.
_WAITS = frozenset(
    [
        "nonzero",
        "flatnonzero",
        "argwhere",
        "unique",
        "bincount",
        "histogram",
        "extract",
        "unique_values",
        "unique_counts",
    ]
)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# Functions with kernels of their own, which were written before bfloat16 was there.
_NO_BFLOAT16 = frozenset(
    (
        "sum", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "cumsum", "cumprod", "mean", "var", "std", "sort",
        "argsort", "argpartition", "partition", "bincount", "clip", "dot", "tensordot", "einsum", "searchsorted", "nansum",
    )
)  # fmt: skip
_AT = {
    "add": "int32 int64 float16 float32 float64 uint32 uint64", "subtract": "int32 uint32",
    "maximum": "int32 int64 float32 float64 uint32 uint64", "minimum": "int32 int64 float32 float64 uint32 uint64",
}  # fmt: skip


def _dtype(char: str) -> np.dtype[Any]:
    return _BFLOAT16 if char == "E" else np.dtype(char)


class ufunc:
    """An elementwise function, of the dtypes that real CuPy has it for."""

    def __init__(self, name: str, types: list[str], apply: Any) -> None:
        self.name, self.__name__, self.types, self._apply = f"cupy_{name}", name, types, apply
        loops = [one.split("->") for one in types]
        self._loops = [(tuple(map(_dtype, takes)), tuple(map(_dtype, gives))) for takes, gives in loops]
        self.nin, self.nout = len(self._loops[0][0]), len(self._loops[0][1])
        self.nargs = self.nin + self.nout

    def __call__(
        self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind", where: Any = None
    ) -> Any:
        if len(args) > self.nin:
            out, args = args[self.nin], args[: self.nin]
        if len(args) != self.nin:
            raise TypeError(f"Wrong number of arguments for '{self.name}'")
        if out is not None and not isinstance(out, ndarray):
            raise TypeError(f"return arrays must be of ArrayType, got {type(out).__name__}")
        wanted = None if dtype is None else np.dtype(dtype)
        kinds = [one.dtype if isinstance(one, (ndarray, np.generic)) else one for one in args]
        takes, gives = self._loop(kinds, wanted)
        if out is not None and not np.can_cast(gives[0], out.dtype, casting):
            raise TypeError(
                f"Cannot cast ufunc '{self.name}' output from {gives[0]} to {out.dtype} with casting rule '{casting}'"
            )
        values = [*args, *([] if where is None else [where])]

        def compute(*plain: Any, out: Any = None) -> Any:
            chosen = plain[self.nin :]
            cast = [np.asarray(one).astype(to, copy=False) for one, to in zip(plain, takes, strict=False)]
            found = self._apply(*cast)
            several = isinstance(found, tuple)
            made = [
                np.asarray(one).astype(to, copy=False)
                for one, to in zip(found if several else [found], gives, strict=True)
            ]
            made = [np.array(one, order="K") if any(one is x for x in plain) else one for one in made]
            if out is None:
                return tuple(made) if several else made[0]
            if chosen:
                np.copyto(out, made[0], casting=casting, where=chosen[0])
            else:
                np.copyto(out, made[0], casting=casting)
            return out

        if out is None:
            return emit(self.__name__, compute, tuple(values))
        return emit(self.__name__, compute, tuple(values), {"out": out}, out=out)

    def _loop(self, kinds: list[Any], wanted: Any) -> Any:
        arrays = [one for one in kinds if isinstance(one, np.dtype)]
        numbers = [one for one in kinds if not isinstance(one, np.dtype)]
        for one in numbers:
            if type(one) not in (int, float, bool, complex):
                raise TypeError(f"Unsupported type {type(one)}")
        if wanted is not None:
            for takes, gives in self._loops:
                if gives[0] == wanted:
                    return takes, gives
            raise TypeError(f"No matching signature found for '{self.name}' with dtype {wanted}")
        common = np.result_type(*arrays, *numbers) if arrays else np.result_type(*numbers)
        if len(set(arrays)) > 1:
            common = np.result_type(*arrays)
            if numbers:
                common = np.result_type(common, *numbers)
        each = [common if not isinstance(one, np.dtype) else one for one in kinds]
        for takes, gives in self._loops:
            if all([np.can_cast(one, to) for one, to in zip(each, takes, strict=True)]):
                return takes, gives
        raise TypeError(f"Wrong type ({[str(one) for one in each]}) of arguments for {self.name}")

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Sums and products alone, as in CuPy."""
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        method = array.sum if self.__name__ == "add" else array.prod
        return method(axis, dtype, out, keepdims)

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Running sums and products alone, as in CuPy."""
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")
        method = array.cumsum if self.__name__ == "add" else array.cumprod
        return method(axis, dtype, out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Sums alone, as in CuPy."""
        if self.__name__ != "add":
            raise NotImplementedError(f"`{self.name}.reduceat` is not supported yet")
        return emit("add.reduceat", lambda a, i: np.add.reduceat(a, i, axis, dtype), (array, indices))

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        """In place at indices, of the dtypes that have an atomic operation."""
        if self.__name__ not in _AT:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        if str(a.dtype) not in _AT[self.__name__].split():
            raise TypeError(f"cupy.{self.__name__}.at only supports {_AT[self.__name__]} as data type")

        def compute(array: Any, key: Any, value: Any) -> None:
            from ._array import _inside

            getattr(np, self.__name__).at(array, _inside(array, key), value)

        emit(f"{self.__name__}.at", compute, (a, indices, b), writes=(a,))

    def outer(self, A: Any, B: Any, **kwargs: Any) -> Any:
        """All pairs."""
        return self(A.reshape(A.shape + (1,) * B.ndim), B, **kwargs)

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"


def function(name: str, found: Any, parameters: list[str] | None, module: str = "cupy") -> Callable[..., Any]:
    """NumPy's function as one of device arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        bind(f"{module}.{name}", parameters, args, kwargs)
        if name in _NO_BFLOAT16:
            for one in (*args, *kwargs.values()):
                if isinstance(one, ndarray) and one.dtype == _BFLOAT16:
                    raise TypeError(f"{module}.{name}: no kernel for bfloat16")
        out = kwargs.get("out")
        waits = name in _WAITS or (name == "repeat" and any([isinstance(one, ndarray) for one in args[1:]]))
        if waits:
            for one in args:
                if isinstance(one, ndarray):
                    one._look(name)
        if "blocking" in kwargs:
            kwargs.pop("blocking")
        return emit(name, found, args, kwargs, out=out, eager=waits)

    call.__name__ = call.__qualname__ = name
    return call


# Those that take arrays of the host, or write to an argument


def array(
    obj: Any, dtype: Any = None, copy: bool | None = True, order: str = "K", subok: bool = False, ndmin: int = 0,
    *, blocking: bool = False,
) -> ndarray:  # fmt: skip
    """A device array of anything; an array of the host is sent."""
    if isinstance(obj, ndarray):
        same = dtype is None or np.dtype(dtype) == obj.dtype
        fits = order in "KA" or (order == "C" and obj.flags.c_contiguous) or (order == "F" and obj.flags.f_contiguous)
        if not copy and same and fits and ndmin <= obj.ndim:
            return obj
        return emit("array", lambda a: np.array(a, dtype, order=order, ndmin=ndmin), (obj,))  # type: ignore[no-any-return]
    if isinstance(obj, (list, tuple)) and any([isinstance(one, ndarray) for one in obj]):
        return emit("array", lambda *all: np.array(all, dtype), tuple(obj))  # type: ignore[no-any-return]
    source = np.array(obj, dtype, order="C" if order in "KA" else order, ndmin=ndmin)
    if source.dtype.kind not in "?bBhHiIlLqQefdFDiufcb" and source.dtype != _BFLOAT16:
        raise ValueError(f"Unsupported dtype {source.dtype}")
    made = ndarray(source.shape, source.dtype, order="F" if order == "F" else "C")
    if not isinstance(obj, (int, float, bool, complex, np.generic)):
        made.set(source)
    elif source.size:
        emit("fill", lambda a: a.fill(source.item() if source.dtype.kind != "V" else source), (made,), writes=(made,))
    return made


def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: Any = None, blocking: bool = False
) -> ndarray:
    """``array`` that copies only what it must."""
    return array(a, dtype, copy=False if copy is None else copy, order=order or "K")


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """In row-major order, of at least one dim."""
    made = array(a, dtype, copy=False, order="C")
    return made.reshape(1) if not made.ndim else made  # type: ignore[attr-defined, no-any-return]


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> np.ndarray:
    """A copy on the host."""
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Memory that nobody has written."""
    return ndarray(shape, dtype, order=order)


def empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    """The same in the shape of another array."""
    like = np.empty_like(prototype._a, dtype, order=order, shape=shape)
    return ndarray(like.shape, like.dtype, order="F" if like.flags.fnc else "C")


def copyto(dst: ndarray, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    """Write values, cast and broadcast, where a mask says."""
    named = {} if where is None else {"where": where}
    emit("copyto", lambda d, s, **more: np.copyto(d, s, casting=casting, **more), (dst, src), named, writes=(dst,))


def put_along_axis(arr: ndarray, indices: Any, values: Any, axis: Any) -> None:
    """Write at one index of each line."""
    emit("put_along_axis", lambda a, i, v: np.put_along_axis(a, i, v, axis), (arr, indices, values), writes=(arr,))


def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> Any:
    """Elements along an axis; indices outside wrap around."""

    def compute(array: Any, index: Any, out: Any = None) -> Any:
        return np.take(array, index, axis, out, mode="wrap")

    return emit("take", compute, (a, indices), {} if out is None else {"out": out}, out=out)


def place(arr: ndarray, mask: Any, vals: Any) -> None:
    """Write values where a mask says."""
    emit("place", _put, (arr, mask, vals), writes=(arr,))


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> ndarray:
    """The memory of another library's array."""
    from ._exchange import take_over

    return take_over(array)


def concatenate(tup: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """One after the other."""
    named = {} if out is None else {"out": out}
    return emit("concatenate", lambda *all, **more: np.concatenate(all, axis, **more), tuple(tup), named, out=out)


OWN = {
    one.__name__: one
    for one in (
        array, asarray, ascontiguousarray, asnumpy, empty, empty_like, copyto, put_along_axis, take, place, from_dlpack, concatenate,
    )
}  # fmt: skip


def operators() -> None:
    """Give the arrays their operators, which are ufuncs."""
    import cupy

    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
        "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
        "lshift": "left_shift", "rshift": "right_shift",
    }  # fmt: skip
    compare = {
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
        "eq": "equal",
        "ne": "not_equal",
    }
    for short, name in (names | compare).items():
        apply = getattr(cupy, name)
        setattr(ndarray, f"__{short}__", _operator(apply, False))
        if short in names:
            setattr(ndarray, f"__r{short}__", _operator(apply, True))
            setattr(ndarray, f"__i{short}__", lambda self, other, apply=apply: apply(self, _known(other), out=self))
    for short, name in {"neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}.items():
        found = getattr(cupy, name)
        setattr(ndarray, f"__{short}__", lambda self, apply=found: apply(self))
    ndarray.__matmul__ = lambda self, other: cupy.matmul(self, other)  # type: ignore[attr-defined]


def _operator(apply: Any, turned: bool) -> Any:
    def run(self: ndarray, other: Any) -> Any:
        known = _known(other)
        if known is NotImplemented:
            return NotImplemented
        return apply(known, self) if turned else apply(self, known)

    return run


def _known(other: Any) -> Any:
    if isinstance(other, np.ndarray):
        raise TypeError(f"Unsupported type {type(other)}")
    return other if isinstance(other, (ndarray, int, float, bool, complex, np.generic)) else NotImplemented


def table(module: str, source: Any) -> dict[str, Any]:
    """All names of a module that real CuPy and NumPy both have."""
    made: dict[str, Any] = {}
    for name, spec in SURFACE[module].items():
        found = getattr(source, name, None)
        if found is None:
            continue
        if "types" in spec:
            made[name] = ufunc(name, spec["types"], found)
        elif isinstance(found, type) or not callable(found):
            made[name] = found
        else:
            made[name] = function(name, found, spec.get("parameters"), module)
    return made
