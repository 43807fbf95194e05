"""Linear algebra under PyTorch's names: factorisations, solutions, eigenvalues, norms and products of matrices."""

from __future__ import annotations

from tensorcore.errors import LinAlgError
from tensorcore.ops.linalg.cholesky import cholesky, cholesky_ex, ldl_factor, ldl_factor_ex, ldl_solve
from tensorcore.ops.linalg.determinant import det, slogdet
from tensorcore.ops.linalg.eigen import eig, eigh, eigvals, eigvalsh
from tensorcore.ops.linalg.lu import lu, lu_factor, lu_factor_ex, lu_solve
from tensorcore.ops.linalg.matrix_function import cross, diagonal, matrix_exp, matrix_power, multi_dot, vander, vecdot
from tensorcore.ops.linalg.matrix_norm import cond, matrix_norm, matrix_rank, norm
from tensorcore.ops.linalg.products import matmul
from tensorcore.ops.linalg.qr import householder_product, qr
from tensorcore.ops.linalg.solve import inv, inv_ex, solve, solve_ex, tensorinv, tensorsolve
from tensorcore.ops.linalg.svd import lstsq, pinv, svd, svdvals
from tensorcore.ops.linalg.triangular import solve_triangular
from tensorcore.ops.reductions.statistics import vector_norm

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm",
    "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip
