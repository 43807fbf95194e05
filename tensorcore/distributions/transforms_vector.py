"""Transforms of vectors and matrices: onto simplices, triangular factors and correlations, reshaped, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.transform import Transform
from tensorcore.distributions.transforms_number import clipped_sigmoid
from tensorcore.distributions.utils import _sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix
from tensorcore.dtypes import finfo
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.grids import eye
from tensorcore.ops.layers.activation import logsigmoid, softplus
from tensorcore.ops.linalg.cholesky import cholesky
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.ops.shapes.pad import pad

__all__ = [
    "CatTransform", "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "ReshapeTransform",
    "SoftmaxTransform", "StackTransform", "StickBreakingTransform",
]  # fmt: skip


def _few(transform: Transform, shape: Any, least: int) -> None:
    if len(shape) < least:
        raise ArgumentError(
            f"{type(transform).__name__}: Too few dimensions on input, got {len(shape)} where one value has {least}"
        )


class SoftmaxTransform(Transform):
    """``y = softmax(x)``, of which ``log(y)`` is taken as the inverse."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    _interchangeable = True

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _few(self, shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors onto a simplex of one more dim: each number breaks off a part of what is left of a stick of length 1.

    Zeros break it into equal parts: Stan Development Team, "Stan reference manual", "Unit simplex".
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True
    _interchangeable = True

    def _call(self, x: Any) -> Any:
        part = clipped_sigmoid(x - _left(x).log())
        rest = (1 - part).cumprod(-1)
        return pad(part, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        part = y[..., :-1]
        rest = (1 - part.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return part.log() - rest.log() + _left(part).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - _left(x).log()
        return (logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _few(self, shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        _few(self, shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


def _left(x: Any) -> Any:
    """How many parts of the stick follow each of the numbers along the last dim."""
    return arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)


class LowerCholeskyTransform(Transform):
    """Square matrices onto lower triangular ones with a positive diagonal: the exponential of theirs."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    _interchangeable = True

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices onto positive-definite ones: products of their triangular factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    _interchangeable = True

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of length d (d - 1) / 2 onto Cholesky factors of d x d correlation matrices.

    Hyperbolic tangents are the partial correlations, row by row, each of what the row has left of its length 1:
    Stan Development Team, "Stan reference manual", "Cholesky factors of correlation matrices".
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - partial.square()).sqrt().cumprod(-1)
        partial = partial + eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return partial * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = pad((1 - y.square().cumsum(-1))[..., :-1], [1, 0], value=1)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """That of the numbers below the diagonal of ``y``."""
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        return 0.5 * left.log().sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _few(self, shape, 1)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ArgumentError(
                f"CorrCholeskyTransform: Input is not a flattened lower-diagonal number, got {count}; pass d (d - 1) / 2"
            )
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        _few(self, shape, 2)
        if shape[-2] != shape[-1]:
            raise ArgumentError(f"CorrCholeskyTransform: Input is not square, got shape {list(shape)}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class ReshapeTransform(Transform):
    """The last dims of shape ``in_shape`` in the shape ``out_shape``."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ArgumentError(
                f"ReshapeTransform: in_shape, out_shape have different numbers of elements, got {in_shape} and {out_shape}"
            )
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._replaced(shape, self.out_shape, self.in_shape)

    def _replaced(self, shape: Any, before: Size, after: Size) -> Size:
        _few(self, shape, len(before))
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != before:
            raise ArgumentError(f"ReshapeTransform: Shape mismatch: expected {before}, got {tuple(shape[cut:])}")
        return Size((*shape[:cut], *after))


class _Pieces(Transform):
    """What transforms have in common that treat pieces along a dim each in its own way."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [one.with_cache(cache_size) for one in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _split(self, value: Any) -> Sequence[Any]:
        raise NotImplementedError

    def _joined(self, pieces: list[Any], dim: int) -> Any:
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        made = super().with_cache(cache_size)
        made.transforms = [one.with_cache(cache_size) for one in self.transforms]
        return made

    @property
    def bijective(self) -> bool:
        return all(one.bijective for one in self.transforms)

    def _call(self, x: Any) -> Any:
        pieces = zip(self.transforms, self._split(x), strict=True)
        return self._joined([one(piece) for one, piece in pieces], self.dim)

    def _inverse(self, y: Any) -> Any:
        pieces = zip(self.transforms, self._split(y), strict=True)
        return self._joined([one.inv(piece) for one, piece in pieces], self.dim)

    def _determinants(self, x: Any, y: Any) -> list[Any]:
        pieces = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return [one.log_abs_det_jacobian(mine, result) for one, mine, result in pieces]


class CatTransform(_Pieces):
    """Transforms of pieces of the lengths ``lengths`` (1 each unless told otherwise) that lie one after the other along ``dim``."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ArgumentError(
                f"CatTransform: expected a length for each of {len(self.transforms)} transforms, got {len(self.lengths)}"
            )

    @property
    def event_dim(self) -> int:
        return max(one.event_dim for one in self.transforms)

    @property
    def length(self) -> int:
        """The size of the dim."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([one.domain for one in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([one.codomain for one in self.transforms], self.dim, self.lengths)

    def _split(self, value: Any) -> Sequence[Any]:
        if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != self.length:
            raise ArgumentError(
                f"CatTransform: expected {self.length} along dim {self.dim}, got shape {list(value.shape)}; pass pieces of "
                f"lengths {self.lengths}"
            )
        return value.split(self.lengths, self.dim)

    def _joined(self, pieces: list[Any], dim: int) -> Any:
        return cat(pieces, dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        widest = self.event_dim
        found = self._determinants(x, y)
        found = [_sum_rightmost(one, widest - t.event_dim) for one, t in zip(found, self.transforms, strict=True)]
        # The dim as counted from the end; where it is inside one value, the pieces add up.
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + widest
        return cat(found, dim) if dim < 0 else sum(found)


class StackTransform(_Pieces):
    """A transform for each slice along ``dim``."""

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([one.domain for one in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([one.codomain for one in self.transforms], self.dim)

    def _split(self, value: Any) -> Sequence[Any]:
        if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != len(self.transforms):
            raise ArgumentError(
                f"StackTransform: expected {len(self.transforms)} slices along dim {self.dim}, got shape {list(value.shape)}"
            )
        return value.unbind(self.dim)

    def _joined(self, pieces: list[Any], dim: int) -> Any:
        return stack(pieces, dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return stack(self._determinants(x, y), self.dim)
