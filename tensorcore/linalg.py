"""Linear algebra under PyTorch's names: factorisations, solutions, eigenvalues, norms and products of matrices."""

from __future__ import annotations

from tensorcore.errors import LinAlgError
from tensorcore.ops.cholesky import cholesky, cholesky_ex, ldl_factor, ldl_factor_ex, ldl_solve
from tensorcore.ops.determinant import det, slogdet
from tensorcore.ops.eigen import eig, eigh, eigvals, eigvalsh
from tensorcore.ops.linalg import matmul, matrix_power
from tensorcore.ops.lu import lu, lu_factor, lu_factor_ex, lu_solve
from tensorcore.ops.matrix_function import cross, diagonal, matrix_exp, multi_dot, vander, vecdot
from tensorcore.ops.matrix_norm import cond, matrix_norm, matrix_rank, norm
from tensorcore.ops.qr import householder_product, qr
from tensorcore.ops.solve import inv, inv_ex, solve, solve_ex, tensorinv, tensorsolve
from tensorcore.ops.statistics import vector_norm
from tensorcore.ops.svd import lstsq, pinv, svd, svdvals
from tensorcore.ops.triangular import solve_triangular

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm",
    "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip
