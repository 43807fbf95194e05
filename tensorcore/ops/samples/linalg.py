"""Calls to test the functions of matrices with; see ``samples/__init__.py``.

Matrices are drawn so that they are far from singular, and their eigenvalues and singular values apart: elsewhere no
two libraries agree, nor finite differences with formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = [
    "cholesky_solve", "components", "cond", "diagonal", "factor", "frobenius_norm", "hermitian", "hermitian_only", "householder",
    "invertible", "ldl_solve", "linalg_cross", "linalg_vander", "low_rank", "lstsq", "lu_old", "lu_solve", "lu_solve_old",
    "lu_unpack", "matrices", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "nuclear_norm", "ormqr",
    "pinv", "pinverse", "positive", "positive_old", "qr", "qr_old",  "solve", "solve_triangular", "square", "svd",
    "svd_old", "tensorinv", "tensorsolve", "triangular_solve", "vecdot",
]  # fmt: skip

Make = Callable[..., Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]


def _far(array: Make, *shape: int) -> Any:
    """Matrices whose diagonals outweigh the rest, each entry differently."""
    rows, columns = shape[-2:]
    weights = np.zeros((rows, columns))
    at = np.arange(min(rows, columns))
    weights[at, at] = 3.0 + 1.5 * at
    return array(*shape, low=-0.6, high=0.6) + weights


def _definite(array: Make, *shape: int) -> Any:
    made = _far(array, *shape)
    return (made + made.swapaxes(-1, -2)) / 2


def _swaps(*batch: int) -> Any:
    """Row swaps of matrices of three rows."""
    return np.broadcast_to(np.array([2, 3, 3], np.int32), (*batch, 3)).copy()


def square(array: Make) -> Iterator[Call]:
    """Square matrices: one, a batch, one by one."""
    yield (_far(array, 3, 3),), {}
    yield (_far(array, 2, 4, 4),), {}
    yield (array(1, 1, low=0.5),), {}


def invertible(array: Make) -> Iterator[Call]:
    """As ``square``, with a batch in two dims."""
    yield from square(array)
    yield (_far(array, 2, 1, 2, 2),), {}


def matrices(array: Make) -> Iterator[Call]:
    """Square, tall and wide matrices, batches."""
    yield (_far(array, 3, 3),), {}
    yield (_far(array, 4, 2),), {}
    yield (_far(array, 2, 2, 3),), {}


def hermitian(array: Make) -> Iterator[Call]:
    """Symmetric matrices, by either triangle."""
    yield (_definite(array, 3, 3),), {}
    yield (_definite(array, 2, 4, 4), "U"), {}


def hermitian_only(array: Make) -> Iterator[Call]:
    """Symmetric matrices, also those that need blocks of two."""
    yield (_definite(array, 3, 3),), {}
    yield (np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.5], [1.0, 0.5, 0.1]]),), {"hermitian": True}
    yield (_definite(array, 2, 4, 4),), {}


def positive(array: Make) -> Iterator[Call]:
    """Positive-definite matrices, by either triangle."""
    yield (_definite(array, 3, 3),), {}
    yield (_definite(array, 2, 4, 4),), {"upper": True}


def positive_old(array: Make) -> Iterator[Call]:
    """As ``positive``, the triangle by position."""
    yield (_definite(array, 3, 3),), {}
    yield (_definite(array, 2, 4, 4), True), {}


def solve(array: Make) -> Iterator[Call]:
    """Matrices and vectors on the right, from either side, broadcast."""
    yield (_far(array, 3, 3), array(3, 2)), {}
    yield (_far(array, 3, 3), array(3)), {}
    yield (_far(array, 2, 3, 3), array(2, 3)), {}
    yield (_far(array, 2, 1, 3, 3), array(2, 3, 1)), {}
    yield (_far(array, 3, 3), array(2, 3)), {"left": False}


def solve_triangular(array: Make) -> Iterator[Call]:
    """Either triangle, from either side, with and without its diagonal, broadcast."""
    yield (_far(array, 3, 3), array(3, 2)), {"upper": True}
    yield (_far(array, 3, 3), array(2, 3)), {"upper": False, "left": False}
    yield (_far(array, 2, 3, 3), array(3, 2)), {"upper": False, "unitriangular": True}
    yield (_far(array, 3, 3), array(2, 2, 3)), {"upper": True, "left": False, "unitriangular": True}


def lu_unpack(array: Make) -> Iterator[Call]:
    """Factors of square, tall and wide matrices."""
    yield (_far(array, 3, 3), _swaps()), {}
    yield (_far(array, 2, 4, 3), _swaps(2)), {}
    yield (_far(array, 3, 4), _swaps()), {"unpack_pivots": False}


def lu_solve(array: Make) -> Iterator[Call]:
    """From either side, with the adjoint, broadcast."""
    yield (_far(array, 3, 3), _swaps(), array(3, 2)), {}
    yield (_far(array, 2, 3, 3), _swaps(2), array(3, 2)), {"adjoint": True}
    yield (_far(array, 3, 3), _swaps(), array(2, 3)), {"left": False}
    yield (_far(array, 3, 3), _swaps(), array(2, 2, 3)), {"left": False, "adjoint": True}


def lu_solve_old(array: Make) -> Iterator[Call]:
    """The right side first."""
    yield (array(3, 2), _far(array, 3, 3), _swaps()), {}


def lu_old(array: Make) -> Iterator[Call]:
    """With and without the places of zero pivots."""
    yield (_far(array, 3, 3),), {}
    yield (_far(array, 2, 4, 3),), {"get_infos": True}


def matrix_power(array: Make) -> Iterator[Call]:
    """Powers of both signs."""
    for n in (0, 1, 2, 5, -2):
        yield (array(3, 3) + 4 * np.eye(3), n), {}


def tensorinv(array: Make) -> Iterator[Call]:
    """Dims of one size in front and behind."""
    yield (_far(array, 6, 6).reshape(2, 3, 3, 2),), {}
    yield (_far(array, 4, 4).reshape(4, 2, 2),), {"ind": 1}


def tensorsolve(array: Make) -> Iterator[Call]:
    """Dims in their order, and some moved to the end."""
    yield (_far(array, 6, 6).reshape(2, 3, 3, 2), array(2, 3)), {}
    yield (_far(array, 6, 6).reshape(2, 3, 6).transpose(2, 0, 1), array(2, 3)), {"dims": (0,)}


def cholesky_solve(array: Make) -> Iterator[Call]:
    """Either triangle, broadcast."""
    yield (array(3, 2), _far(array, 3, 3)), {}
    yield (array(2, 1, 3, 2), _far(array, 2, 3, 3), True), {}


def factor(array: Make) -> Iterator[Call]:
    """Triangular factors."""
    yield (_far(array, 3, 3),), {}
    yield (_far(array, 2, 3, 3), True), {}


def ldl_solve(array: Make) -> Iterator[Call]:
    """Factors without blocks of two; symmetric and Hermitian."""
    rows = np.array([1, 2, 3], np.int32)
    yield (np.tril(_far(array, 3, 3)), rows, array(3, 2)), {}
    yield (np.tril(_far(array, 2, 3, 3)), np.stack([rows, rows]), array(3, 2)), {"hermitian": True}


def qr(array: Make) -> Iterator[Call]:
    """Those modes and shapes of square, tall and wide matrices that have a derivative."""
    yield (_far(array, 3, 3),), {}
    yield (_far(array, 4, 2),), {}
    yield (_far(array, 2, 2, 4),), {}
    yield (_far(array, 2, 4), "complete"), {}


def qr_old(array: Make) -> Iterator[Call]:
    """Some columns of Q, or all."""
    yield (_far(array, 4, 2),), {}
    yield (_far(array, 2, 3), False), {}


def householder(array: Make) -> Iterator[Call]:
    """As many reflections as columns, and fewer."""
    yield (array(4, 3), array(3, low=0.2, high=0.8)), {}
    yield (array(2, 4, 3), array(2, 2, low=0.2, high=0.8)), {}


def ormqr(array: Make) -> Iterator[Call]:
    """From either side, with the adjoint."""
    yield (array(4, 3), array(3, low=0.2, high=0.8), array(4, 2)), {}
    yield (array(2, 4, 3), array(2, 3, low=0.2, high=0.8), array(2, 2, 4)), {"left": False}
    yield (array(4, 3), array(3, low=0.2, high=0.8), array(4, 2), True, True), {}


def svd(array: Make) -> Iterator[Call]:
    """All vectors or those with a value, of tall and wide matrices."""
    yield (_far(array, 3, 3),), {}
    yield (_far(array, 2, 4, 2),), {"full_matrices": False}
    yield (_far(array, 2, 4), False), {}
    yield (_far(array, 4, 2),), {}


def svd_old(array: Make) -> Iterator[Call]:
    """Some vectors, all, none."""
    yield (_far(array, 4, 2),), {}
    yield (_far(array, 2, 3), False), {}
    yield (_far(array, 2, 3), True, False), {}


def pinv(array: Make) -> Iterator[Call]:
    """Square, tall and wide matrices, tolerances, Hermitian ones."""
    yield (_far(array, 3, 3),), {}
    yield (_far(array, 4, 2),), {"rtol": 1e-3}
    yield (_far(array, 2, 2, 3),), {"atol": 0.1}
    yield (_definite(array, 3, 3),), {"hermitian": True}


def pinverse(array: Make) -> Iterator[Call]:
    """Tall matrices."""
    yield (_far(array, 4, 2),), {}
    yield (_far(array, 3, 3), 1e-4), {}


def lstsq(array: Make) -> Iterator[Call]:
    """Every driver; more rows than columns, fewer, vectors."""
    yield (_far(array, 4, 2), array(4, 3)), {}
    yield (_far(array, 2, 4, 2), array(2, 4)), {"driver": "gels"}
    yield (_far(array, 2, 4), array(2, 3)), {"driver": "gelsd"}
    yield (_far(array, 4, 2), array(4, 1)), {"driver": "gelss"}
    yield (_far(array, 3, 3), array(3, 2), 1e-6), {}


def matrix_norm(array: Make) -> Iterator[Call]:
    """Every order, several dims."""
    for ord in ("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf")):
        yield (_far(array, 3, 4), ord), {}
    yield (_far(array, 3, 2, 4).swapaxes(0, 1), "nuc", (1, 2)), {"keepdim": True}
    yield (array(3, 2, 4), 1, (2, 0)), {"keepdim": True}
    yield (array(3, 2, 4),), {"dim": (0, 2)}


def norm(array: Make) -> Iterator[Call]:
    """Norms of vectors and of matrices."""
    yield (array(2, 3, 4),), {}
    yield (array(5), 3), {}
    yield (_far(array, 3, 3), "nuc"), {}
    yield (_far(array, 3, 3), 2), {}
    yield (array(2, 3, 4), 1), {"dim": 1, "keepdim": True}
    yield (array(2, 3, 4), float("inf")), {"dim": (0, 2)}
    yield (array(2, 3, 4),), {"dim": (0, 2)}


def nuclear_norm(array: Make) -> Iterator[Call]:
    """The last two dims, and named ones."""
    yield (_far(array, 3, 4),), {}
    yield (_far(array, 2, 3, 4), (1, 2)), {"keepdim": True}


def frobenius_norm(array: Make) -> Iterator[Call]:
    """One dim and two."""
    yield (array(3, 4), 1), {}
    yield (array(2, 3, 4), (0, 2)), {"keepdim": True}


def cond(array: Make) -> Iterator[Call]:
    """Every order."""
    for p in (None, "fro", "nuc", 1, -1, 2, -2, float("inf")):
        yield (_far(array, 3, 3), p), {}
    yield (_far(array, 2, 4, 2),), {}


def matrix_rank(array: Make) -> Iterator[Call]:
    """Full and short ranks; tolerances."""
    yield (_far(array, 3, 4),), {}
    yield (np.outer(array(3, low=0.5), array(4, low=0.5)),), {}
    yield (_far(array, 2, 3, 3),), {"atol": 4.0}
    yield (_definite(array, 3, 3),), {"hermitian": True, "rtol": 0.7}


def matrix_exp(array: Make) -> Iterator[Call]:
    """Small and large matrices in one batch."""
    yield (array(3, 3),), {}
    yield (array(2, 4, 4) * np.array([0.01, 3.0]).reshape(2, 1, 1),), {}


def multi_dot(array: Make) -> Iterator[Call]:
    """Matrices, and vectors at the ends."""
    yield ([array(2, 3), array(3, 4), array(4, 2)],), {}
    yield ([array(3), array(3, 4), array(4)],), {}
    yield ([array(2, 3), array(3)],), {}


def vecdot(array: Make) -> Iterator[Call]:
    """Along the last dim and another, broadcast."""
    yield (array(2, 3), array(3)), {}
    yield (array(2, 3), array(2, 1)), {"dim": 0}


def linalg_cross(array: Make) -> Iterator[Call]:
    """Vectors along the last dim and another, broadcast."""
    yield (array(2, 3), array(1, 3)), {}
    yield (array(3, 2), array(3, 2)), {"dim": 0}


def diagonal(array: Make) -> Iterator[Call]:
    """The last two dims, and others."""
    yield (array(2, 3, 4),), {}
    yield (array(2, 3, 4),), {"offset": 1, "dim1": 0, "dim2": 2}


def linalg_vander(array: Make) -> Iterator[Call]:
    """As many powers as elements, or more."""
    yield (array(3),), {}
    yield (array(2, 3),), {"N": 5}


def triangular_solve(array: Make) -> Iterator[Call]:
    """Either triangle, transposed, with ones on the diagonal."""
    yield (array(3, 2), _far(array, 3, 3)), {}
    yield (array(3, 2), _far(array, 2, 3, 3)), {"upper": False, "transpose": True}
    yield (array(2, 3, 2), _far(array, 3, 3)), {"unitriangular": True}


def low_rank(array: Make) -> Iterator[Call]:
    """As many values as there are, which no random number changes."""
    yield (_far(array, 5, 4), 4), {}
    yield (_far(array, 4, 5), 4), {"niter": 1}


def components(array: Make) -> Iterator[Call]:
    """As many components as there are: the rows' mean takes one away."""
    yield (_far(array, 5, 4), 4), {}
    yield (_far(array, 4, 5), 3), {"niter": 1}
