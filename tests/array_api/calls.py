"""Calls of each function of the standard, drawn: arrays stand in for tensors, in dtypes that the function takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np

__all__ = ["CALLS", "Draw", "Mix"]

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = SIGNED + UNSIGNED
FLOATING = REAL + COMPLEX
ORDERED = INTEGER + REAL
NUMERIC = INTEGER + FLOATING
ALL = BOOL + NUMERIC
SIZES = st.integers(0, 4)


class Draw:
    """Draws what calls are made of."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))

    def pick(self, *options: Any) -> Any:
        """One of the options."""
        return self.data.draw(st.sampled_from(options))

    def shape(self, low: int = 0, high: int = 3, least: int = 0) -> tuple[int, ...]:
        """A shape of ``low`` to ``high`` dims."""
        return self.data.draw(st.lists(st.integers(least, 4), min_size=low, max_size=high).map(tuple))

    def array(self, dtypes: tuple[str, ...], shape: tuple[int, ...], low: float = -8, high: float = 8) -> np.ndarray:
        """An array of one of the dtypes, NaN and infinities among floats where no range is given."""
        dtype = np.dtype(self.pick(*dtypes))
        if dtype.kind == "b":
            return self.rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            return self.rng.integers(max(low, 0 if dtype.kind == "u" else low), high, shape).astype(dtype)
        values = self.rng.uniform(low, high, shape)
        if dtype.kind == "c":
            values = values + 1j * self.rng.uniform(low, high, shape)
        return np.asarray(values, dtype)

    def special(self, dtypes: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
        """An array with NaN, infinities and zeros of both signs."""
        made = np.array(self.array(dtypes, shape))
        if made.dtype.kind == "f" and made.size:
            places = self.rng.integers(0, made.size, 3)
            made.reshape(-1)[places] = self.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], 3)
        return made

    def axis(self, shape: tuple[int, ...]) -> int:
        """An axis, from the front or from the end."""
        return self.data.draw(st.integers(-len(shape), len(shape) - 1))

    def axes(self, shape: tuple[int, ...]) -> Any:
        """None, one axis, or several, or none of them."""
        if not shape:
            return self.pick(None, ())
        several = st.lists(st.integers(0, len(shape) - 1), unique=True).map(tuple)
        return self.data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1), several))

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with another one to that one."""
        shape = shape[self.data.draw(st.integers(0, len(shape))) :]
        return tuple(1 if self.data.draw(st.booleans()) else size for size in shape)


Mix = tuple[tuple[Any, ...], dict[str, Any]]
Call = Callable[[Draw], Mix]


def _same_kind(d: Draw, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Dtypes that promotion is defined for beside one of these."""
    first = d.pick(*dtypes)
    if first == "bool":
        return BOOL
    if first in FLOATING:
        return tuple(one for one in dtypes if one in FLOATING)
    if first == "uint64":
        return tuple(one for one in dtypes if one in UNSIGNED)
    return tuple(one for one in dtypes if one in INTEGER and one != "uint64")


def _one(dtypes: tuple[str, ...], low: float | None = None, high: float = 8) -> Call:
    def call(d: Draw) -> Mix:
        shape = d.shape()
        return (d.special(dtypes, shape) if low is None else d.array(dtypes, shape, low, high),), {}

    return call


def _two(dtypes: tuple[str, ...], low: float | None = None, high: float = 8, numbers: bool = True) -> Call:
    def call(d: Draw) -> Mix:
        shape, kinds = d.shape(), _same_kind(d, dtypes)
        make = d.special if low is None else (lambda kind, of: d.array(kind, of, low, high))
        first = make(kinds, shape)
        if numbers and first.dtype.kind in "iuf" and d.pick(True, False, False):
            number = d.pick(1, 2, 3) if first.dtype.kind in "iu" else d.pick(0.5, 2.0, 1)
            return ((first, number) if d.pick(True, False) else (number, first)), {}
        return (first, make(kinds, d.broadcast(shape))), {}

    return call


def _reduced(dtypes: tuple[str, ...], least: int = 0, **more: tuple[Any, ...]) -> Call:
    def call(d: Draw) -> Mix:
        shape = d.shape(least=least)
        options = {"axis": d.axes(shape), "keepdims": d.pick(True, False)}
        return (d.array(dtypes, shape, -4, 4),), options | {key: d.pick(*values) for key, values in more.items()}

    return call


def _along(dtypes: tuple[str, ...], least: int = 0, **more: tuple[Any, ...]) -> Call:
    def call(d: Draw) -> Mix:
        shape = d.shape(1, least=least)
        options = {"axis": d.axis(shape)} | {key: d.pick(*values) for key, values in more.items()}
        return (d.array(dtypes, shape, -4, 4),), options

    return call


def _square(dtypes: tuple[str, ...], low: int = 2, **more: tuple[Any, ...]) -> Call:
    def call(d: Draw) -> Mix:
        n = d.data.draw(st.integers(1, 4))
        x = d.array(dtypes, (*d.shape(0, 1), n, n), -1, 1)
        return ((x + 4 * np.eye(n)).astype(x.dtype),), {key: d.pick(*values) for key, values in more.items()}

    return call


def _definite(d: Draw) -> np.ndarray:
    n = d.data.draw(st.integers(1, 4))
    x = d.array(FLOATING, (*d.shape(0, 1), n, n), -1, 1)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 4 * np.eye(n)).astype(x.dtype)


def _matrix(dtypes: tuple[str, ...], least: int = 1, **more: tuple[Any, ...]) -> Call:
    def call(d: Draw) -> Mix:
        return (d.array(dtypes, d.shape(2, 3, least), -2, 2),), {key: d.pick(*values) for key, values in more.items()}

    return call


def _products(d: Draw) -> Mix:
    kinds = _same_kind(d, NUMERIC)
    m, k, n = (d.data.draw(SIZES) for _ in range(3))
    left = d.pick((k,), (m, k), (2, m, k))
    right = d.pick((k,), (k, n), (2, k, n))
    return (d.array(kinds, left, 0, 5), d.array(kinds, right, 0, 5)), {}


def _solve(d: Draw) -> Mix:
    kinds = d.pick(REAL, COMPLEX)
    n = d.data.draw(st.integers(1, 4))
    a = (d.array(kinds, (*d.pick((), (2,)), n, n), -1, 1) + 4 * np.eye(n)).astype(d.pick(*kinds))
    return (a, d.array((str(a.dtype),), d.pick((n,), (n, 3), (2, n, n)), -2, 2)), {}


def _several(name: str) -> Call:
    def call(d: Draw) -> Mix:
        shape, kinds = d.shape(1), _same_kind(d, ALL)
        axis = d.axis(shape)
        arrays = [d.array(kinds, shape) for _ in range(d.pick(1, 2, 3))]
        return (arrays,), {"axis": d.pick(axis, None) if name == "concat" else axis}

    return call


def _clip(d: Draw) -> Mix:
    shape = d.shape()
    x = d.array(ORDERED, shape)
    kind = (str(x.dtype),)
    low = d.pick(None, 1, d.array(kind, d.broadcast(shape), 0, 3))
    high = d.pick(None, 5, d.array(kind, d.broadcast(shape), 4, 7))
    return (x, low, high), {}


def _diff(d: Draw) -> Mix:
    (x,), options = _along(NUMERIC)(d)
    options["n"] = d.pick(1, 2)
    for key in ("prepend", "append"):
        if d.pick(True, False):
            options[key] = d.array((str(x.dtype),), x.shape)
    return (x,), options


def _where(d: Draw) -> Mix:
    shape = d.shape()
    a, b = _two(ALL)(d)[0]
    common = np.broadcast_shapes(np.shape(a), np.shape(b))
    del shape
    return (d.array(BOOL, d.broadcast(common)), a, b), {}


def _take(d: Draw) -> Mix:
    shape = d.shape(1, least=1)
    axis = d.axis(shape)
    size = shape[axis]
    return (d.array(ALL, shape), d.rng.integers(-size, size, d.data.draw(SIZES))), {"axis": axis}


def _take_along(d: Draw) -> Mix:
    shape = d.shape(1, least=1)
    axis = d.axis(shape)
    places = list(shape)
    places[axis] = d.data.draw(SIZES)
    return (d.array(ALL, shape), d.rng.integers(-shape[axis], shape[axis], places)), {"axis": axis}


def _search(d: Draw) -> Mix:
    kind = (d.pick(*ORDERED),)
    x = d.array(kind, (d.data.draw(st.integers(1, 5)),))
    options: dict[str, Any] = {"side": d.pick("left", "right")}
    if d.pick(True, False):
        options["sorter"] = np.argsort(x, kind="stable")
    else:
        x = np.sort(x)
    return (x, d.array(kind, d.shape())), options


def _vecdot(d: Draw) -> Mix:
    kinds, size = _same_kind(d, NUMERIC), d.data.draw(SIZES)
    return (d.array(kinds, (2, size), 0, 5), d.array(kinds, d.pick((size,), (2, size), (3, 1, size)), 0, 5)), {}


def _cross(d: Draw) -> Mix:
    kinds = _same_kind(d, NUMERIC)
    return (d.array(kinds, (2, 3), 0, 5), d.array(kinds, d.pick((3,), (2, 3)), 0, 5)), {}


def _tensordot(d: Draw) -> Mix:
    kinds = _same_kind(d, NUMERIC)
    axes = d.pick(0, 1, 2, ((0, 1), (1, 0)))
    shapes = {0: ((2,), (3, 2)), 1: ((2, 3), (3, 2)), 2: ((2, 3, 4), (3, 4, 2))}.get(
        axes if isinstance(axes, int) else -1
    )
    left, right = shapes or ((2, 3, 4), (3, 2))
    return (d.array(kinds, left, 0, 5), d.array(kinds, right, 0, 5)), {"axes": axes}


def _fourier(dtypes: tuple[str, ...], several: bool = False, least: int = 1) -> Call:
    def call(d: Draw) -> Mix:
        shape = d.shape(1, 3, least)
        options: dict[str, Any] = {"norm": d.pick("backward", "forward", "ortho")}
        if several:
            options["axes"] = d.pick(None, (0,), (-1,), tuple(range(len(shape))))
        else:
            options |= {"axis": d.axis(shape), "n": d.pick(None, 2, 5)}
        return (d.array(dtypes, shape, -2, 2),), options

    return call


def _shape_of(d: Draw) -> Any:
    return d.pick(d.shape(), d.data.draw(SIZES))


def _shifted(d: Draw) -> Mix:
    shape = d.shape(1)
    axis = d.pick(None, d.axis(shape), tuple(range(len(shape))))
    shift = d.pick(1, -2, 0, 5) if not isinstance(axis, tuple) else d.pick(3, tuple(range(1, len(shape) + 1)))
    return (d.array(ALL, shape), shift), {"axis": axis}


def _reshaped(d: Draw) -> Mix:
    x = d.array(ALL, d.shape())
    shape = d.pick((-1,), (x.size,), x.shape[::-1], (1, *x.shape), (x.size, 1))
    return (x, shape), {"copy": d.pick(None, True)}


def _squeezed(d: Draw) -> Mix:
    shape = d.shape(0, 2)
    return (d.array(ALL, (1, *shape, 1)),), {"axis": d.pick(0, -1, (0, -1), (0, len(shape) + 1))}


def _repeated(d: Draw) -> Mix:
    shape = d.shape(1, least=1)
    axis = d.pick(None, d.axis(shape))
    count = int(np.prod(shape)) if axis is None else shape[axis]
    return (d.array(ALL, shape), d.pick(0, 1, 3, d.rng.integers(0, 3, count))), {"axis": axis}


def _arange(d: Draw) -> Mix:
    start, stop = d.pick(0, 2, -3, 1.5), d.pick(5, 0, -4, 7.5)
    options = {"dtype": d.pick(None, *REAL)} if isinstance(start, float) or isinstance(stop, float) else {}
    return (start, stop, d.pick(1, 2, -1, 3)), options


_SIMPLE: dict[tuple[str, ...], str] = {
    REAL: "atan cos sin tan acos asin cosh sinh tanh asinh acosh atanh exp expm1 log log10 log1p log2 sqrt reciprocal signbit",
    ORDERED: "ceil floor round trunc",
    NUMERIC: "abs conj isfinite isinf isnan negative positive real sign square",
    INTEGER + BOOL: "bitwise_invert",
    COMPLEX: "imag",
    BOOL: "logical_not",
}  # fmt: skip
_COMPLEX = "cos sin cosh sinh tanh exp expm1 log log10 log1p log2 sqrt reciprocal acos asin atan asinh acosh atanh tan round sign"
_PAIRS: dict[tuple[str, ...], str] = {
    NUMERIC: "add equal multiply not_equal subtract",
    REAL: "atan2 copysign divide hypot logaddexp nextafter",
    ORDERED: "greater greater_equal less less_equal maximum minimum",
    BOOL: "logical_and logical_or logical_xor",
    INTEGER + BOOL: "bitwise_and bitwise_or bitwise_xor",
}

CALLS: dict[str, Call] = {
    **{name: _one(dtypes) for dtypes, names in _SIMPLE.items() for name in names.split()},
    **{f"{name} complex": _one(COMPLEX, 0.25, 3) for name in _COMPLEX.split()},
    **{name: _two(dtypes) for dtypes, names in _PAIRS.items() for name in names.split()},
    "divide complex": _two(COMPLEX, 1), "pow complex": _two(COMPLEX, 1, 3), "pow": _two(REAL, 0.5, 4),
    "pow integer": _two(INTEGER, 0, 4), "floor_divide": _two(ORDERED, 1), "remainder": _two(ORDERED, 1),
    "bitwise_left_shift": _two(INTEGER, 0, 6), "bitwise_right_shift": _two(INTEGER, 0, 6), "clip": _clip, "where": _where,
    "sum": _reduced(NUMERIC), "prod": _reduced(NUMERIC), "max": _reduced(ORDERED, 1), "min": _reduced(ORDERED, 1),
    "mean": _reduced(FLOATING, 1), "var": _reduced(REAL, 2, correction=(0.0, 1.0)), "std": _reduced(REAL, 2, correction=(0, 0.5)),
    "all": _reduced(ALL), "any": _reduced(ALL), "count_nonzero": _reduced(ALL),
    "cumulative_sum": _along(NUMERIC, include_initial=(True, False)),
    "cumulative_prod": _along(NUMERIC, include_initial=(True, False)), "diff": _diff,
    "argmax": _along(ORDERED, 1, keepdims=(True, False)), "argmin": _along(ORDERED, 1, keepdims=(True, False)),
    "argsort": _along(ORDERED, descending=(True, False)), "sort": _along(ORDERED, descending=(True, False)),
    "nonzero": lambda d: ((d.array(ALL, d.shape(1)),), {}), "searchsorted": _search,
    "isin": lambda d: ((d.array(SIGNED, d.shape()), d.array(SIGNED, d.shape())), {}),  # the reference forgets invert
    "take": _take, "take_along_axis": _take_along,
    **{f"unique_{name}": lambda d: ((d.array(ALL, d.shape(), -3, 3),), {}) for name in ("all", "counts", "inverse", "values")},
    "broadcast_arrays": lambda d: ((lambda shape: (d.array(ALL, shape), d.array(ALL, d.broadcast(shape))))(d.shape()), {}),
    "broadcast_to": lambda d: ((lambda shape: (d.array(ALL, d.broadcast(shape)), shape))(d.shape()), {}),
    "broadcast_shapes": lambda d: ((lambda shape: (shape, d.broadcast(shape)))(d.shape()), {}),
    "concat": _several("concat"), "stack": _several("stack"), "unstack": _along(ALL),
    "expand_dims": lambda d: ((lambda s: ((d.array(ALL, s),), {"axis": d.data.draw(st.integers(-len(s) - 1, len(s)))}))(d.shape())),
    "flip": lambda d: ((lambda s: ((d.array(ALL, s),), {"axis": d.axes(s)}))(d.shape())),
    "moveaxis": lambda d: ((lambda s: ((d.array(ALL, s), d.axis(s), d.axis(s)), {}))(d.shape(1))),
    "permute_dims": lambda d: ((lambda s: ((d.array(ALL, s), tuple(map(int, d.rng.permutation(len(s))))), {}))(d.shape())),
    "repeat": _repeated, "reshape": _reshaped, "roll": _shifted, "squeeze": _squeezed,
    "tile": lambda d: ((d.array(ALL, d.shape()), d.shape(0, 4)), {}),
    "arange": _arange, "asarray": lambda d: ((d.pick(True, 3, 1.5, 2j, [1, 2], [[1.5], [2]], [True, False], []),), {}),
    "eye": lambda d: ((d.data.draw(SIZES), d.pick(None, 0, 3)), {"k": d.pick(0, 1, -2, 9), "dtype": d.pick(None, *NUMERIC)}),
    "full": lambda d: ((_shape_of(d), d.pick(True, 3, 1.5, 2j)), {}),
    "full_like": lambda d: ((d.array(NUMERIC, d.shape()), 3), {"dtype": d.pick(None, *NUMERIC)}),
    "linspace": lambda d: ((d.pick(0, -1.5), d.pick(3, 2.5)),
                           {"num": d.pick(1, 2, 5), "endpoint": d.pick(True, False), "dtype": d.pick(None, *REAL)}),
    "meshgrid": lambda d: (tuple(d.array(("float64",), (d.data.draw(SIZES),)) for _ in range(d.pick(1, 2, 3))),
                           {"indexing": d.pick("xy", "ij")}),
    **{name: lambda d: ((_shape_of(d),), {"dtype": d.pick(None, *ALL)}) for name in ("ones", "zeros")},
    **{f"{name}_like": lambda d: ((d.array(ALL, d.shape()),), {"dtype": d.pick(None, *ALL)}) for name in ("ones", "zeros")},
    **{name: _matrix(ALL, 0, k=(0, 1, -1, 7)) for name in ("tril", "triu")},
    "astype": lambda d: ((d.array(ORDERED, d.shape(), 0, 100), d.pick(*NUMERIC)), {"copy": d.pick(True, False)}),
    "matmul": _products, "linalg.matmul": _products, "vecdot": _vecdot, "tensordot": _tensordot,
    "matrix_transpose": _matrix(ALL), "linalg.cross": _cross,
    "linalg.outer": lambda d: ((lambda k: (d.array(k, (3,), 0, 5), d.array(k, (2,), 0, 5)))(_same_kind(d, NUMERIC)), {}),
    "linalg.cholesky": lambda d: ((_definite(d),), {"upper": d.pick(True, False)}),
    "linalg.det": _square(FLOATING), "linalg.inv": _square(FLOATING), "linalg.slogdet": _square(FLOATING),
    "linalg.diagonal": _matrix(ALL, offset=(0, 1, -1)), "linalg.trace": _matrix(NUMERIC, offset=(0, 1, -1)),
    "linalg.eigvalsh": lambda d: ((_definite(d),), {}),
    "linalg.matrix_norm": _matrix(REAL, keepdims=(True, False), ord=("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf"))),
    "linalg.matrix_power": lambda d: ((*_square(FLOATING)(d)[0], d.pick(0, 1, 2, 3, -2)), {}),
    "linalg.matrix_rank": _matrix(FLOATING), "linalg.pinv": _matrix(FLOATING), "linalg.solve": _solve,
    "linalg.svdvals": _matrix(FLOATING),
    "linalg.vector_norm": _reduced(REAL, 1, ord=(2, 1, 0, 3.5, float("inf"), float("-inf"))),
    "fft.fft": _fourier(COMPLEX), "fft.ifft": _fourier(COMPLEX), "fft.rfft": _fourier(REAL), "fft.irfft": _fourier(COMPLEX, least=2),
    "fft.hfft": _fourier(COMPLEX, least=2), "fft.ihfft": _fourier(REAL), "fft.fftn": _fourier(COMPLEX, True),
    "fft.ifftn": _fourier(COMPLEX, True), "fft.rfftn": _fourier(REAL, True), "fft.irfftn": _fourier(COMPLEX, True, 2),
    "fft.fftfreq": lambda d: ((d.pick(1, 4, 5),), {"d": d.pick(1.0, 0.5)}),
    "fft.rfftfreq": lambda d: ((d.pick(1, 4, 5),), {"d": d.pick(1.0, 0.5)}),
    "fft.fftshift": lambda d: ((lambda s: ((d.array(FLOATING, s),), {"axes": d.pick(None, 0)}))(d.shape(1))),
    "fft.ifftshift": lambda d: ((lambda s: ((d.array(FLOATING, s),), {"axes": d.pick(None, 0)}))(d.shape(1))),
}  # fmt: skip
