"""All parameters of a model as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tensorcore.errors import ArgumentTypeError
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters in one row, on the tape."""
    return cat([one.reshape(-1) for one in parameters])  # type: ignore[attr-defined]


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Point each parameter at its part of the vector."""
    if not isinstance(vec, Tensor):
        raise ArgumentTypeError(f"expected torch.Tensor, but got: {type(vec)}; pass parameters_to_vector(...)")
    at = 0
    for one in parameters:
        count = one.numel()
        one.data = vec[at : at + count].view(tuple(one.shape)).data  # type: ignore[index]
        at += count
