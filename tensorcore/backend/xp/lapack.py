"""Matrix factorisations on the host, by LAPACK through SciPy, which is imported when the first one runs.

Each kernel takes batches of matrices, (..., rows, columns), of float32, float64, complex64 or complex128, and leaves
them as they are. Results that are matrices lie column after column. ``info`` has LAPACK's answer for each matrix: 0,
or where the factorisation met a zero (counted from 1), or did not converge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.xp.batches import MANY, STEPS

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["by_size", "kernels"]

Array = np.ndarray[Any, Any]
# Of NaN and infinities LAPACK may never find the eigenvalues, and MKL's or OpenBLAS's answers differ.
_FAILED = -1


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend; arrays that NumPy does not hold go to the host and back."""
    table = {name: by_size(kernel, name) if name in MANY else kernel for name, kernel in _KERNELS.items()}
    return table if backend.xp is np else {name: _from_host(backend, kernel) for name, kernel in table.items()}


def by_size(kernel: Kernel, name: str) -> Kernel:
    """The kernel, or for batches of small matrices the one that takes them all at once."""
    many, by_hand = MANY[name], name in STEPS

    @wraps(kernel)
    def call(x: Native, *others: Native, **options: Any) -> Any:
        if x.ndim > 2 and x.size and all([one.size for one in others]):
            size, count = max(x.shape[-2:]), prod(x.shape[:-2])
            # Where the two take as long: NumPy's loops are short, our own steps are calls for each row and column.
            if size <= 8 and count >= (2 * size * size if by_hand else 2):
                made = many(x, *others, **options)
                if made is not None:
                    return made
        return kernel(x, *others, **options)

    return call


def _from_host(backend: XPBackend, kernel: Kernel) -> Kernel:
    def call(*natives: Native, **options: Any) -> Any:
        made = kernel(*[backend.to_host(one) for one in natives], **options)
        return tuple(map(backend.from_host, made)) if type(made) is tuple else backend.from_host(made)

    return call


@lru_cache(None)
def _routine(name: str, kind: str) -> Any:
    """LAPACK's or BLAS's routine of that name for NumPy's kind of number."""
    from scipy.linalg import blas, lapack

    return getattr(blas if name == "trsm" else lapack, "sdcz"["fdFD".index(kind)] + name)


@lru_cache(256)
def _room(name: str, kind: str, *sizes: Any) -> Any:
    """How much memory a routine wants to work in for matrices of these sizes."""
    *answers, _ = _routine(f"{name}_lwork", kind)(*sizes)
    return tuple([int(np.real(one)) for one in answers])


def _columns(shape: tuple[int, ...], dtype: Any) -> Array:
    """New memory for matrices that lie column after column."""
    return np.empty((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def _copied(x: Array) -> Array:
    """The matrices, copied column after column."""
    made = _columns(x.shape, x.dtype)
    made[...] = x
    return made


def _each(batch: tuple[int, ...], *arrays: Array) -> Iterator[tuple[Array, ...]]:
    """One matrix (or vector, or number as an array) of each array after the other; batches broadcast to ``batch``."""
    if not batch:
        yield arrays
        return
    flat = []
    for one, inner in ((one, one.ndim - len(batch)) for one in arrays):
        # Column-major batches have no flat view of their own, their transposes do.
        turned = one.swapaxes(-1, -2) if inner == 2 else one
        flat.append((turned.reshape(-1, *turned.shape[one.ndim - inner :]), inner == 2))
    for i in range(prod(batch)):
        yield tuple([one[i].T if turn else one[i] if one.ndim > 1 else one[i : i + 1] for one, turn in flat])


def _put(into: Array, made: Array) -> None:
    """Keep a result that a routine wrote elsewhere: it takes our memory only where that is aligned well enough."""
    if made is not into:
        into[...] = made


def _stretched(x: Array, batch: tuple[int, ...], inner: int = 2) -> Array:
    return x if x.shape[:-inner] == batch else np.broadcast_to(x, (*batch, *x.shape[x.ndim - inner :]))


def _real(dtype: Any) -> Any:
    return np.dtype(dtype.char.lower())


def _no_info(batch: tuple[int, ...]) -> Array:
    return np.zeros(batch, np.int32)


# Triangular factors


def lu_factor(x: Native) -> tuple[Native, Native, Native]:
    """L (below the diagonal, ones on it) and U in one matrix, the row that each row was swapped with, and info."""
    batch, size = x.shape[:-2], min(x.shape[-2:])
    made, info = _copied(x), _no_info(batch)
    pivots = np.empty((*batch, size), np.int32)
    if made.size:
        factor = _routine("getrf", x.dtype.char)
        for matrix, rows, failed in _each(batch, made, pivots, info):
            factors, swapped, failed[...] = factor(matrix, overwrite_a=True)
            _put(matrix, factors)
            np.add(swapped, 1, out=rows, casting="unsafe")
    return made, pivots, info


def lu_solve(lu: Native, pivots: Native, b: Native, *, way: str) -> Native:
    """The solutions X of A X = B from the factors of A, or with its transpose (``way`` T) or its adjoint (``way`` C)."""
    if lu.ndim == 2 < b.ndim:
        return _side_by_side(b, lambda wide: lu_solve(lu, pivots, wide, way=way))
    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    made = _copied(_stretched(b, batch))
    if made.size:
        solve = _routine("getrs", lu.dtype.char)
        for factors, rows, matrix in _each(batch, _stretched(lu, batch), _stretched(pivots, batch, 1), made):
            _put(matrix, solve(factors, rows - 1, matrix, trans="NTC".index(way), overwrite_b=True)[0])
    return made


def _side_by_side(b: Array, solve: Callable[[Array], Array]) -> Array:
    """The solutions for a batch of right sides and one matrix: all columns at once."""
    turned = np.moveaxis(b, -2, 0)
    made = solve(turned.reshape(len(turned), prod(turned.shape[1:]))).reshape(turned.shape)
    return _copied(np.moveaxis(made, 0, -2))


def unpack_pivots(pivots: Native, *, rows: int) -> Native:
    """The order of the rows after all swaps, as int64."""
    if pivots.ndim == 1:
        order = list(range(rows))
        for i, there in enumerate(pivots.tolist()):
            order[i], order[there - 1] = order[there - 1], order[i]
        return np.array(order, np.int64)
    made = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64) - 1
        here, there = made[..., i : i + 1].copy(), np.take_along_axis(made, other, -1)
        np.put_along_axis(made, other, here, -1)
        made[..., i : i + 1] = there
    return made


def inverse(x: Native) -> tuple[Native, Native]:
    """The inverse of each matrix, and info."""
    batch = x.shape[:-2]
    made, info = _copied(x), _no_info(batch)
    if made.size:
        factor, invert = _routine("getrf", x.dtype.char), _routine("getri", x.dtype.char)
        (room,) = _room("getri", x.dtype.char, x.shape[-1])
        for matrix, failed in _each(batch, made, info):
            factors, swapped, failed[...] = factor(matrix, overwrite_a=True)
            # Of a singular one, what dividing by the zero gives.
            _put(matrix, _divided(factors, swapped) if failed else invert(factors, swapped, room, True)[0])
    return made, info


def _divided(lu: Array, swapped: Array) -> Array:
    return _routine("getrs", lu.dtype.char)(lu, swapped, np.eye(len(lu), dtype=lu.dtype, order="F"))[0]  # type: ignore[no-any-return]


def solve_triangular(a: Native, b: Native, *, upper: bool, left: bool, unitriangular: bool) -> Native:
    """The solutions X of A X = B (X A = B where not ``left``) for triangular A; its other triangle is not read."""
    if left and a.ndim == 2 < b.ndim:
        return _side_by_side(
            b, lambda wide: solve_triangular(a, wide, upper=upper, left=True, unitriangular=unitriangular)
        )
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    made = _copied(_stretched(b, batch))
    if made.size:
        solve = _routine("trsm", a.dtype.char)
        for factor, matrix in _each(batch, _stretched(a, batch), made):
            turned = factor.flags.c_contiguous and not factor.flags.f_contiguous
            if turned:  # its transpose lies column after column, and need not be copied
                factor = factor.T
            _put(matrix, solve(1.0, factor, matrix, not left, upper == turned, turned, unitriangular, True))
    return made


def cholesky(x: Native, *, upper: bool) -> tuple[Native, Native]:
    """The triangular factor of each positive-definite matrix, of which only that triangle is read, and info."""
    batch = x.shape[:-2]
    made, info = _copied(x), _no_info(batch)
    if made.size:
        factor = _routine("potrf", x.dtype.char)
        for matrix, failed in _each(batch, made, info):
            triangle, failed[...] = factor(matrix, not upper, True, True)
            _put(matrix, triangle)
        # OpenBLAS goes on at NaN, which is not positive either.
        wrong = np.isnan(np.diagonal(made, 0, -2, -1))
        if wrong.any():
            info[...] = np.where((info == 0) & wrong.any(-1), wrong.argmax(-1) + 1, info)
    return made, info


def ldl_factor(x: Native, *, hermitian: bool) -> tuple[Native, Native, Native]:
    """L and the blocks of D (Bunch and Kaufman 1977) in one lower triangle, the swaps, and info."""
    batch, size = x.shape[:-2], x.shape[-1]
    made, info = _copied(x), _no_info(batch)
    pivots = np.empty((*batch, size), np.int32)
    if made.size:
        name = "hetrf" if hermitian and x.dtype.kind == "c" else "sytrf"
        (room,) = _room(name, x.dtype.char, size)
        factor = _routine(name, x.dtype.char)
        for matrix, rows, failed in _each(batch, made, pivots, info):
            factors, rows[...], failed[...] = factor(matrix, lower=True, lwork=room)
            matrix[...] = np.tril(factors)
    return made, pivots, info


def ldl_solve(ld: Native, pivots: Native, b: Native, *, hermitian: bool) -> Native:
    """The solutions X of A X = B from the factors of A."""
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    made = _copied(_stretched(b, batch))
    if made.size:
        solve = _routine("hetrs" if hermitian and ld.dtype.kind == "c" else "sytrs", ld.dtype.char)
        for factors, rows, matrix in _each(batch, _stretched(ld, batch), _stretched(pivots, batch, 1), made):
            matrix[...] = solve(factors, rows, matrix, lower=True)[0]
    return made


# Orthogonal factors


def geqrf(x: Native) -> tuple[Native, Native]:
    """R on and above the diagonal, Householder's vectors below it, and their factors."""
    batch, (rows, columns) = x.shape[:-2], x.shape[-2:]
    made = _copied(x)
    taus = np.empty((*batch, min(rows, columns)), x.dtype)
    if made.size:
        (room,) = _room("geqrf", x.dtype.char, rows, columns)
        factor = _routine("geqrf", x.dtype.char)
        for matrix, tau in _each(batch, made, taus):
            vectors, tau[...], _, _ = factor(matrix, lwork=room, overwrite_a=True)
            _put(matrix, vectors)
    return made, taus


def householder_product(a: Native, tau: Native) -> Native:
    """The first columns of the product of Householder's reflections."""
    batch = a.shape[:-2]
    made = _copied(a)
    if not tau.shape[-1]:
        made[...] = np.eye(*a.shape[-2:], dtype=a.dtype)
    elif made.size:
        multiply = _routine("ungqr" if a.dtype.kind == "c" else "orgqr", a.dtype.char)
        for matrix, factors in _each(batch, made, tau):
            _put(matrix, multiply(matrix, factors, lwork=64 * a.shape[-1], overwrite_a=True)[0])
    return made


def ormqr(a: Native, tau: Native, c: Native, *, left: bool, transpose: bool) -> Native:
    """The product of Householder's reflections (their adjoint with ``transpose``), times ``c`` from one side."""
    batch = c.shape[:-2]
    made = _copied(c)
    if made.size and tau.shape[-1]:
        real = a.dtype.kind != "c"
        multiply = _routine("ormqr" if real else "unmqr", a.dtype.char)
        way = ("T" if real else "C") if transpose else "N"
        for vectors, factors, matrix in _each(batch, a[..., : tau.shape[-1]], tau, made):
            made_one = multiply("L" if left else "R", way, vectors, factors, matrix, 64 * max(c.shape[-2:]), True)[0]
            _put(matrix, made_one)
    return made


def lstsq(a: Native, b: Native, *, driver: str, rcond: float) -> tuple[Native, Native, Native, Native]:
    """Least-squares solutions by one of LAPACK's drivers: B's memory with the solutions in front, rank, singular values, info."""
    batch, (rows, columns), wide = a.shape[:-2], a.shape[-2:], b.shape[-1]
    made = _columns((*batch, max(rows, columns), wide), a.dtype)
    made[..., :rows, :] = b
    made[..., rows:, :] = 0
    ranks, info = np.zeros(batch, np.int64), _no_info(batch)
    values = np.zeros((*batch, min(rows, columns)), _real(a.dtype))
    if not a.size or not wide:
        made[...] = 0
        return made, ranks, values, info
    for matrix, right, rank, value, failed in _each(batch, _copied(a), made, ranks, values, info):
        right[...], rank[...], value[...], failed[...] = _DRIVERS[driver](matrix, right, rcond)
    return made, ranks, values, info


def _gels(a: Array, b: Array, rcond: float) -> Any:
    (room,) = _room("gels", a.dtype.char, *a.shape, b.shape[1])
    _, made, failed = _routine("gels", a.dtype.char)(a, b, lwork=room)
    return made, 0, 0, failed


def _gelsy(a: Array, b: Array, rcond: float) -> Any:
    (room,) = _room("gelsy", a.dtype.char, *a.shape, b.shape[1], rcond)
    free = np.zeros((a.shape[1], 1), np.int32)
    _, made, _, rank, failed = _routine("gelsy", a.dtype.char)(a, b, free, rcond, room)
    return made, rank, 0, failed


def _gelsd(a: Array, b: Array, rcond: float) -> Any:
    rooms = _room("gelsd", a.dtype.char, *a.shape, b.shape[1], rcond)
    made, values, rank, failed = _routine("gelsd", a.dtype.char)(a, b, *rooms, rcond)
    return made, rank, values, failed


def _gelss(a: Array, b: Array, rcond: float) -> Any:
    (room,) = _room("gelss", a.dtype.char, *a.shape, b.shape[1], rcond)
    _, made, values, rank, _, failed = _routine("gelss", a.dtype.char)(a, b, cond=rcond, lwork=room)
    return made, rank, values, failed


_DRIVERS = {"gels": _gels, "gelsy": _gelsy, "gelsd": _gelsd, "gelss": _gelss}


# Values and vectors


def svd(x: Native, *, full: bool, vectors: bool) -> Any:
    """The singular values from the largest on, info, and with ``vectors`` U and the adjoint of V."""
    batch, (rows, columns) = x.shape[:-2], x.shape[-2:]
    size = min(rows, columns)
    values, info = np.empty((*batch, size), _real(x.dtype)), _no_info(batch)
    u = _columns((*batch, rows, rows if full else size), x.dtype)
    vh = _columns((*batch, columns if full else size, columns), x.dtype)
    if x.size:
        (room,) = _room("gesdd", x.dtype.char, rows, columns, vectors, full)
        factor = _routine("gesdd", x.dtype.char)
        for matrix, left, value, right, failed in _each(batch, _copied(x), u, values, vh, info):
            if not np.isfinite(matrix).all():  # of infinities LAPACK makes NaN and says nothing
                left[...] = value[...] = right[...] = np.nan
                failed[...] = _FAILED
                continue
            a, value[...], b, failed[...] = factor(matrix, vectors, full, room, True)
            if vectors:
                left[...], right[...] = a, b
    else:
        u[...], vh[...] = np.eye(*u.shape[-2:]), np.eye(*vh.shape[-2:])
    return (values, info, u, vh) if vectors else (values, info)


def eigh(x: Native, *, upper: bool, vectors: bool) -> Any:
    """The eigenvalues of Hermitian matrices from the smallest on, info, and eigenvectors in columns; one triangle is read."""
    batch, size = x.shape[:-2], x.shape[-1]
    values, made, info = np.empty((*batch, size), _real(x.dtype)), _copied(x), _no_info(batch)
    if x.size:
        name = "heevd" if x.dtype.kind == "c" else "syevd"
        rooms = _room(name, x.dtype.char, size, vectors, not upper)
        factor = _routine(name, x.dtype.char)
        for matrix, value, failed in _each(batch, made, values, info):
            value[...], columns, failed[...] = factor(matrix, vectors, not upper, *rooms)
            if vectors:
                matrix[...] = columns
    return (values, info, made) if vectors else (values, info)


def eig(x: Native, *, vectors: bool) -> Any:
    """The eigenvalues as complex numbers, info, and eigenvectors of length 1 in columns."""
    batch, size = x.shape[:-2], x.shape[-1]
    dtype = np.dtype(x.dtype.char.upper())
    values, made, info = np.empty((*batch, size), dtype), _columns(x.shape, dtype), _no_info(batch)
    if x.size:
        (room,) = _room("geev", x.dtype.char, size, False, vectors)
        factor = _routine("geev", x.dtype.char)
        for matrix, value, columns, failed in _each(batch, _copied(x), values, made, info):
            if not np.isfinite(matrix).all():
                value[...] = columns[...] = np.nan
                failed[...] = _FAILED
                continue
            *found, _, right, failed[...] = factor(matrix, False, vectors, room, True)
            value[...] = found[0] if len(found) == 1 else found[0] + 1j * found[1]
            if vectors:
                columns[...] = right if len(found) == 1 else _paired(right, found[1])
    return (values, info, made) if vectors else (values, info)


def _paired(packed: Array, imaginary: Array) -> Array:
    """Complex eigenvectors from LAPACK's pairs of columns: real and imaginary part of a vector and its conjugate."""
    made = packed.astype(np.dtype(packed.dtype.char.upper()))
    (first,) = np.nonzero(imaginary > 0)
    made[:, first] += 1j * packed[:, first + 1]
    made[:, first + 1] = made[:, first].conj()
    return made


_KERNELS: dict[str, Kernel] = {function.__name__: function for function in (
    lu_factor, lu_solve, unpack_pivots, inverse, solve_triangular, cholesky, ldl_factor, ldl_solve, geqrf,
    householder_product, ormqr, lstsq, svd, eigh, eig,
)}  # fmt: skip
