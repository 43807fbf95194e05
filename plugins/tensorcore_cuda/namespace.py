"""CuPy as the kernels of ``XPBackend`` know NumPy: what it lacks, made of what it has."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tensorcore.plugin import dtypes
from tensorcore_cuda.blas import Blas

__all__ = ["Namespace"]

Native = Any
_BFLOAT16 = dtypes.bfloat16.numpy
_REDUCTIONS = (
    "sum", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "cumsum", "cumprod", "mean", "var", "std", "sort",
    "argsort", "argpartition", "clip", "dot", "tensordot", "einsum", "searchsorted", "nansum",
)  # fmt: skip


class Namespace:
    """CuPy's functions; those without a kernel for a dtype run in a wider one."""

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.blas = cupy, Blas(cupy)
        self.__name__, self.__version__ = cupy.__name__, cupy.__version__
        self.add = _Reducible(cupy, "add", lambda x, *rest: x.sum(*rest), lambda x, *rest: x.cumsum(*rest))
        self.multiply = _Reducible(cupy, "multiply", lambda x, *rest: x.prod(*rest), lambda x, *rest: x.cumprod(*rest))
        self.maximum = _Reducible(cupy, "maximum", lambda x, axis, dtype, out, keep: x.max(axis, out, keep))
        self.minimum = _Reducible(cupy, "minimum", lambda x, axis, dtype, out, keep: x.min(axis, out, keep))
        self.logical_and = _Reducible(cupy, "logical_and", lambda x, axis, dtype, out, keep: x.all(axis, out, keep))
        self.logical_or = _Reducible(cupy, "logical_or", lambda x, axis, dtype, out, keep: x.any(axis, out, keep))
        self.logaddexp = _Reducible(cupy, "logaddexp", self._logsumexp)
        for name in _REDUCTIONS:
            setattr(self, name, _widened(cupy, getattr(cupy, name)))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.cupy, name)
        if isinstance(found, self.cupy.ufunc):
            found = _Elementwise(self.cupy, found)
        self.__dict__[name] = found
        return found

    @property
    def special(self) -> Any:
        """CuPy's part of SciPy's special functions."""
        return import_module("cupyx.scipy.special")

    def matmul(self, x: Native, y: Native, out: Native | None = None) -> Native:
        """CuPy's for integers and single vectors; by cuBLAS otherwise, half types too."""
        if not self.blas.takes(x, y):
            return _widened(self.cupy, self.cupy.matmul)(x, y, **({} if out is None else {"out": out}))
        if out is None or (out.flags.c_contiguous and out.dtype == x.dtype):
            return self.blas.product(x, y, out)
        out[...] = self.blas.product(x, y)
        return out

    def ascontiguousarray(self, x: Native, dtype: Any = None) -> Native:
        """CuPy's, which like NumPy's makes a 0-d array one of one dim; kernels want it as it was."""
        return self.cupy.ascontiguousarray(x, dtype).reshape(x.shape)

    def _logsumexp(self, x: Native, axis: Any, dtype: Any, out: Any, keep: bool) -> Native:
        top = x.max(axis, None, True)
        top = self.cupy.where(self.cupy.isinf(top), x.dtype.type(0), top)
        made = self.cupy.log(self.cupy.exp(x - top).sum(axis, None, None, True)) + top
        return made if keep else made.reshape([n for i, n in enumerate(x.shape) if i != axis % x.ndim])


def _widened(cupy: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in single precision where it is given bfloat16."""

    def call(x: Native, *rest: Any, **named: Any) -> Any:
        if getattr(x, "dtype", None) != _BFLOAT16:
            return function(x, *rest, **named)
        rest = tuple([_wide(one) for one in rest])
        made = function(x.astype(np.float32), *rest, **{key: _wide(one) for key, one in named.items()})
        return made.astype(_BFLOAT16) if made.dtype == np.float32 else made

    return call


def _wide(value: Any) -> Any:
    return value.astype(np.float32) if getattr(value, "dtype", None) == _BFLOAT16 else value


class _Elementwise:
    """One of CuPy's ufuncs, and a wider dtype where it has no kernel for that of its arguments."""

    def __init__(self, cupy: Any, ufunc: Any) -> None:
        self.cupy, self.ufunc = cupy, ufunc
        self.__name__ = ufunc.name.removeprefix("cupy_")

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        try:
            return self.ufunc(*args, out=out, **named)
        except TypeError:
            if not any([getattr(one, "dtype", None) == _BFLOAT16 for one in (*args, out)]):
                raise
        made = self.ufunc(*map(_wide, args), **named)
        if out is not None:
            out[...] = made
            return out
        return made.astype(_BFLOAT16) if made.dtype == np.float32 else made


class _Reducible(_Elementwise):
    """A ufunc with NumPy's ``reduce``, ``accumulate``, ``reduceat`` and ``at``."""

    def __init__(self, cupy: Any, name: str, reduction: Any, scan: Any = None) -> None:
        super().__init__(cupy, getattr(cupy, name))
        self.reduction, self.scan = reduction, scan

    def reduce(self, x: Native, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Native:
        """Over ``axis``: one, several, all (None) or no dims (an empty tuple)."""
        if type(axis) is tuple and not axis:
            return self.cupy.array(x, dtype)
        if x.dtype == _BFLOAT16:
            made = self.reduction(x.astype(np.float32), axis, dtype, None, keepdims)
            return made.astype(_BFLOAT16) if dtype is None and made.dtype == np.float32 else made
        return self.reduction(x, axis, dtype, out, keepdims)

    def accumulate(self, x: Native, axis: int = 0, dtype: Any = None) -> Native:
        """Along ``axis``; where CuPy has no scan, by doubling steps: log2(n) kernels."""
        if self.scan is not None:
            return self.scan(x, axis, dtype)
        made = self.cupy.array(x, dtype, order="C")
        before, n, step = (slice(None),) * axis, x.shape[axis], 1
        while step < n:
            made[(*before, slice(step, None))] = self(
                made[(*before, slice(step, None))], made[(*before, slice(0, n - step))]
            )
            step *= 2
        return made

    def reduceat(self, x: Native, indices: Native, axis: int = 0) -> Native:
        """Sums of the parts that start at ``indices``."""
        return self.ufunc.reduceat(x, indices, axis)

    def at(self, x: Native, indices: Any, values: Any) -> None:
        """In place, each of equal indices counted."""
        kind = x.dtype
        if kind.kind == "c":
            part = kind.type(0).real.dtype
            for side in ("real", "imag"):
                wide = self.cupy.array(getattr(x, side))
                self.at(wide, indices, getattr(self.cupy.asarray(values, kind), side).astype(part))
                setattr(x, side, wide)
            return
        if self.__name__ == "multiply":
            self._multiply_at(x, indices, values)
            return
        wanted = _ATOMIC.get((kind.kind, kind.itemsize, self.__name__), _ATOMIC.get((kind.kind, kind.itemsize)))
        if wanted is None:
            self.ufunc.at(x, indices, values)
            return
        wide = x.astype(wanted)
        self.ufunc.at(wide, indices, values.astype(wanted) if hasattr(values, "dtype") else values)
        x[...] = wide.astype(kind)

    def _multiply_at(self, x: Native, indices: Any, values: Any) -> None:
        """There is no atomic product: on the host."""
        keys = indices if isinstance(indices, tuple) else (indices,)
        found = x.get()
        given = values.get() if hasattr(values, "get") else values
        np.multiply.at(found, tuple([one.get() if hasattr(one, "get") else one for one in keys]), given)
        x[...] = self.cupy.asarray(found)


# The dtype in which the device's atomic operations exist, by kind and bytes of the dtype asked for.
_ATOMIC: dict[tuple[Any, ...], Any] = {
    ("b", 1): np.int32, ("i", 1): np.int32, ("i", 2): np.int32, ("u", 1): np.uint32, ("u", 2): np.uint32,
    ("V", 2): np.float32, ("f", 2): np.float32, ("f", 2, "add"): np.float32,
}  # fmt: skip
