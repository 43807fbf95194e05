"""Matrices that stay orthogonal while they are trained."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.dtypes import finfo
from tensorcore.errors import ArgumentError
from tensorcore.nn.module import Module
from tensorcore.nn.utils import parametrize
from tensorcore.ops.creation.create import zeros_like
from tensorcore.ops.creation.grids import eye
from tensorcore.ops.creation.random import randn
from tensorcore.ops.linalg.matrix_function import matrix_power
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["orthogonal"]

_MAPS = ("matrix_exp", "cayley", "householder")


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep the rows or the columns of a weight, whichever are fewer, orthonormal.

    Args:
        orthogonal_map: how the matrix is made of an unconstrained one: ``matrix_exp`` of a skew-symmetric one,
            ``cayley`` of one, or as a product of ``householder`` reflections. None for the first where the weight is
            square or complex, else the last.
        use_trivialization: times a fixed matrix, so that training starts from the weight as it is
            (Lezcano-Casado, arXiv:1909.09501).
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ArgumentError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ArgumentError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _Orthogonal(Module):
    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ArgumentError(
                f"The householder parametrization does not support complex tensors, got {weight.dtype}; use matrix_exp"
            )
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.shape[-2] < X.shape[-1]
        if wide:
            X = X.transpose(-2, -1)
        rows, columns = X.shape[-2:]
        if self.orthogonal_map == "householder":
            below = X.tril(-1)
            tau = 2.0 / (1.0 + (below * below).sum(-2))
            made = _reflected(below, tau)
            # The diagonal holds signs, which are not trained.
            made = made * X.detach().diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
        else:
            below = X.tril()
            if rows != columns:
                below = cat([below, below.new_zeros((*X.shape[:-2], rows, rows - columns))], -1)
            skew = below - below.transpose(-2, -1).conj()
            if self.orthogonal_map == "matrix_exp":
                made = _exponential(skew)
            else:
                one = eye(rows, dtype=X.dtype, device=X.device)
                made = matrix_power(one - skew / 2, -1) @ (one + skew / 2)
            made = made[..., :columns]
        if "base" in self._buffers:
            made = self.base @ made
        return made.transpose(-2, -1) if wide else made

    def right_inverse(self, Q: Any) -> Any:
        with no_grad():
            if Q.shape != self.shape:
                raise ArgumentError(
                    f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
                )
            tall = Q.transpose(-2, -1) if Q.shape[-2] < Q.shape[-1] else Q
            rows, columns = tall.shape[-2:]
            if "base" not in self._buffers:
                if self.orthogonal_map != "householder":
                    raise NotImplementedError(
                        f"It is not possible to assign to the {self.orthogonal_map} parametrization when "
                        f"use_trivialization=False, got a value"
                    )
                packed, tau = _factored(tall)
                diagonal = packed.diagonal(dim1=-2, dim2=-1)
                diagonal.copy_(diagonal.sign())
                diagonal.copy_((tau != 0).to(tau.dtype) * 2 * diagonal - diagonal)
                return packed.transpose(-2, -1) if Q.shape[-2] < Q.shape[-1] else packed
            if rows != columns:
                others = randn(*tall.shape[:-2], rows, rows - columns, dtype=Q.dtype, device=Q.device)
                self.base = _orthonormal(cat([tall, others], -1))
            else:
                self.base = tall.clone() if _is_orthogonal(tall) else _orthonormal(tall)
            start = zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # type: ignore[attr-defined]
            return start


def _is_orthogonal(Q: Any) -> bool:
    rows, columns = Q.shape[-2:]
    one = eye(columns, dtype=Q.dtype, device=Q.device)
    off = (Q.transpose(-2, -1).conj() @ Q - one).abs()
    return bool((off <= 10.0 * rows * finfo(Q.dtype).eps + 1e-5 * one.abs()).all())


def _reflected(below: Any, tau: Any) -> Any:
    """The first columns of the product of reflections ``1 - tau v v^T``, each v a column with 1 above it."""
    rows, columns = below.shape[-2:]
    first = eye(rows, columns, dtype=below.dtype, device=below.device)
    made = first.expand(*below.shape[:-2], rows, columns)
    for i in reversed(range(columns)):
        v = below[..., i : i + 1] + first[:, i : i + 1]
        made = made - tau[..., i, None, None] * (v @ (v.transpose(-2, -1) @ made))
    return made


def _factored(A: Any) -> tuple[Any, Any]:
    """Householder's QR factorisation of a real matrix as LAPACK packs it: R above, reflections below, and their factors."""
    packed = A.clone()
    columns = A.shape[-1]
    tau = A.new_zeros((*A.shape[:-2], columns))
    for i in range(columns):
        x = packed[..., i:, i]
        alpha, rest = x[..., 0], x[..., 1:]
        below = (rest * rest).sum(-1)
        beta = -(alpha * alpha + below).sqrt() * ((alpha >= 0).to(A.dtype) * 2 - 1)
        # LAPACK leaves a column alone that has nothing below the diagonal.
        still = (below == 0).to(A.dtype)
        factor = (beta - alpha) / (beta + (beta == 0).to(A.dtype)) * (1 - still)
        scale = alpha - beta
        v = rest / (scale + (scale == 0).to(A.dtype)).unsqueeze(-1) * (1 - still).unsqueeze(-1)
        full = cat([alpha.new_ones((*alpha.shape, 1)), v], -1).unsqueeze(-1)
        if i + 1 < columns:
            others = packed[..., i:, i + 1 :]
            others.copy_(others - factor[..., None, None] * (full @ (full.transpose(-2, -1) @ others)))
        packed[..., i, i] = beta * (1 - still) + alpha * still
        packed[..., i + 1 :, i] = v
        tau[..., i] = factor
    return packed, tau


def _orthonormal(A: Any) -> Any:
    """The Q of A = QR with a positive diagonal of R; of a complex matrix by Gram and Schmidt, twice."""
    if not A.is_complex():
        packed, tau = _factored(A)
        return _reflected(packed.tril(-1), tau) * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    made: list[Any] = []
    for i in range(A.shape[-1]):
        column = A[..., i : i + 1]
        for _ in range(2):
            for one in made:
                column = column - one @ (one.transpose(-2, -1).conj() @ column)
        made.append(column / (column.abs() ** 2).sum(-2, True).sqrt())
    return cat(made, -1)


def _exponential(A: Any) -> Any:
    """The matrix exponential by its series for A / 2**n, squared n times (Higham, Functions of Matrices, 10.3)."""
    size = float(A.detach().abs().sum(-1).max()) if A.numel() else 0.0
    squarings = max(0, math.ceil(math.log2(size)) + 1) if size > 0 else 0
    scaled = A / 2.0**squarings
    one = eye(A.shape[-1], dtype=A.dtype, device=A.device)
    made = one
    for k in range(18, 0, -1):
        made = one + (scaled @ made) / k
    for _ in range(squarings):
        made = made @ made
    return made
