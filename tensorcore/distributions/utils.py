"""What distributions share: parameters in one shape, probabilities and log odds, properties computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from numbers import Number
from typing import Any

from tensorcore.dtypes import finfo, get_default_dtype
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import arange, empty
from tensorcore.ops.creation.create import tensor as tensor_of
from tensorcore.ops.shapes.shape import broadcast_tensors
from tensorcore.tape.mode import enable_grad
from tensorcore.tensor import Tensor

__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors and numbers as tensors of one shape; numbers take the dtype and device of the first tensor.

    Raises:
        ArgumentError: for anything else.
    """
    first = None
    for one in values:
        if isinstance(one, Tensor):
            first = one if first is None else first
        elif not isinstance(one, Number):
            raise ArgumentError(
                f"broadcast_all: Input arguments must all be instances of Number or torch.Tensor, got "
                f"{type(one).__name__}; use torch.tensor(...)"
            )
    dtype, device = (get_default_dtype(), None) if first is None else (first.dtype, first.device)
    made = [one if isinstance(one, Tensor) else tensor_of(one, dtype=dtype, device=device) for one in values]
    shape = made[0].shape
    if all([one.shape == shape for one in made]):
        return tuple(made)
    return broadcast_tensors(*made)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log odds (``is_binary``), or along the last dim from logarithms up to a constant."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities whose logarithms, and those of one less them, are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log odds (``is_binary``) or logarithms of probabilities, kept finite."""
    held = clamp_probs(probs)
    return held.log() - (-held).log1p() if is_binary else held.log()


class lazy_property:
    """A property that is computed at its first use, recorded for gradients, and kept on the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangles of matrices (..., n, n), row by row, as vectors; ``diag`` as in ``tril``.

    Raises:
        ArgumentError: for a diagonal that is not there.
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ArgumentError(f"tril_matrix_to_vec: expected diag in [{-size}, {size - 1}], got {diag}")
    return mat[..., _triangle(size, diag, mat.device)]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Matrices whose lower triangles hold the vectors (..., m) row by row; the turn round of ``tril_matrix_to_vec``."""
    # m = (n + diag) (n + diag + 1) / 2 less the rows that a negative diagonal leaves empty, solved for n.
    size = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(size) - size > finfo(vec.dtype).eps:
        raise ArgumentError(
            f"vec_to_tril_matrix: The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
            f"triangular part of a square matrix, got shape {list(vec.shape)}"
        )
    size = round(size)
    made = vec.new_zeros((*vec.shape[:-1], size, size))
    made[..., _triangle(size, diag, vec.device)] = vec
    return made


def _triangle(size: int, diag: int, device: Any) -> Any:
    steps = arange(size, device=device)
    return steps < steps.reshape(-1, 1) + (diag + 1)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Normal numbers of mean 0 and deviation 1."""
    return empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Any, dims: int) -> Any:
    """The sum over the last ``dims`` dims."""
    return value if dims == 0 else value.reshape((*value.shape[: value.dim() - dims], -1)).sum(-1)
