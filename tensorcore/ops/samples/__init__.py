"""Calls to test the ops with: each function yields pairs of positional and keyword arguments.

``array(*shape, low=-2.0, high=2.0)`` makes the numbers, a NumPy array of float64; a test turns
every array among the arguments into a tensor of the dtype, layout and library it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = [
    "along_dim", "batch_norm", "chances", "count", "dim_reduction", "dropped", "dropped_channels", "dropped_images",
    "dropped_volumes", "extremes", "filled", "find_function", "group_norm", "instance_norm", "layer_norm", "norm",
    "one_dim_reduction", "pair", "positive", "reduction", "repeated", "rms_norm", "segments", "sorted_rows", "top", "unary",
    "unary_matrix", "vector_norm", "weights",
]  # fmt: skip

Make = Callable[..., Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]


def find_function(library: Any, name: str) -> Callable[..., Any] | None:
    """The function of an op's name in a library laid out as PyTorch is, wherever it keeps it; None where it has none.

    ``linalg_inv`` is the ``inv`` of its ``linalg``.
    """
    if name.startswith("linalg_"):
        library, name = library.linalg, name.removeprefix("linalg_")
    for place in ("nn.functional", "", "linalg", "special", "fft", "Tensor"):
        room = library
        for part in place.split(".") if place else ():
            room = getattr(room, part, None)
        found = getattr(room, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def unary(array: Make) -> Iterator[Call]:
    """One tensor of any value."""
    yield (array(3, 4),), {}
    yield (array(),), {}
    yield (array(2, 0, 3),), {}


def positive(array: Make) -> Iterator[Call]:
    """One tensor of values over 0."""
    yield (array(3, 4, low=0.2),), {}
    yield (array(low=0.5),), {}


def pair(array: Make) -> Iterator[Call]:
    """Two tensors that broadcast, or a tensor and a number."""
    yield (array(3, 4), array(3, 4)), {}
    yield (array(3, 1), array(2, 1, 4)), {}
    yield (array(3, 4), array()), {}
    yield (array(3, 4), 1.5), {}


def reduction(array: Make) -> Iterator[Call]:
    """A tensor reduced over all, one, and several dims."""
    yield (array(2, 3, 4),), {}
    yield (array(2, 3, 4), 1), {}
    yield (array(2, 3, 4), (0, -1)), {"keepdim": True}
    yield (array(), 0), {}


def one_dim_reduction(array: Make) -> Iterator[Call]:
    """A tensor reduced over all, or along one dim."""
    yield (array(2, 3, 4),), {}
    yield (array(2, 3, 4), 1), {}
    yield (array(2, 3, 4), -1), {"keepdim": True}
    yield (array(), 0), {}


def dim_reduction(array: Make) -> Iterator[Call]:
    """A tensor reduced along dims that must be named."""
    yield (array(2, 3, 4), 1), {}
    yield (array(2, 3, 4), (0, -1)), {"keepdim": True}
    yield (array(), 0), {}


def along_dim(array: Make) -> Iterator[Call]:
    """A tensor and a dim to go along."""
    yield (array(2, 3, 4), 1), {}
    yield (array(2, 3, 4), -1), {}
    yield (array(), 0), {}


def count(array: Make) -> Iterator[Call]:
    """A tensor and dims, nothing else."""
    yield (array(2, 3, 4),), {}
    yield (array(2, 3, 4), (0, 2)), {}


def top(array: Make) -> Iterator[Call]:
    """A tensor and how many elements to take, or which."""
    yield (array(2, 5), 2), {}
    yield (array(4, 3, 2), 3), {"dim": 0}
    yield (array(), 1), {}


def norm(array: Make) -> Iterator[Call]:
    """Norms of several orders, of all elements and along dims."""
    yield (array(2, 3, 4),), {}
    yield (array(2, 3, 4), 1, 1), {}
    yield (array(2, 3, 4), 3, (0, -1)), {"keepdim": True}
    yield (array(2, 3, 4), float("inf"), 2), {}
    yield (array(2, 3, 4), 1.5), {}


def vector_norm(array: Make) -> Iterator[Call]:
    """Norms of every order, of all elements and along dims."""
    yield from norm(array)
    yield (array(3, 4), 0), {"dim": 1}
    yield (array(3, 4), float("-inf")), {}
    yield (array(3, 4), -1.5, (0, 1)), {"keepdim": True}


def unary_matrix(array: Make) -> Iterator[Call]:
    """One matrix."""
    yield (array(3, 4),), {}


def layer_norm(array: Make) -> Iterator[Call]:
    """Inputs of layer norm, with and without weight and bias."""
    yield (array(2, 3, 4), (4,), array(4), array(4)), {}
    yield (array(2, 3, 4), (3, 4), array(3, 4)), {"eps": 1e-3}
    yield (array(3, 4), [4]), {}


def rms_norm(array: Make) -> Iterator[Call]:
    """Inputs of RMS norm, with and without weight."""
    yield (array(2, 3, 4), (4,), array(4)), {"eps": 1e-5}
    yield (array(2, 3, 4), (3, 4)), {"eps": 1e-5}


def group_norm(array: Make) -> Iterator[Call]:
    """Inputs of group norm, with and without weight and bias."""
    yield (array(2, 4, 3), 2, array(4), array(4)), {}
    yield (array(2, 6, 2, 2), 3), {}


def batch_norm(array: Make) -> Iterator[Call]:
    """Batches with their own statistics; the running ones are written to, so none are passed."""
    yield (array(4, 3), None, None, array(3), array(3)), {"training": True}
    yield (array(2, 3, 4, 2), None, None), {"training": True, "eps": 1e-3}


def instance_norm(array: Make) -> Iterator[Call]:
    """Samples with their own statistics."""
    yield (array(2, 3, 4), None, None, array(3), array(3)), {}
    yield (array(2, 3, 4, 2),), {}


def repeated(array: Make) -> Iterator[Call]:
    """Numbers among which some are equal."""
    yield (np.array([3, 1, 1, 2, 3]),), {"return_inverse": True, "return_counts": True}
    yield (np.array([[1, 1], [0, 2], [1, 1]]),), {"dim": 0, "return_counts": True}


def filled(array: Make) -> Iterator[Call]:
    """A tensor and a number."""
    yield (array(3, 4), 2), {}
    yield (array(), -1), {}


def extremes(array: Make) -> Iterator[Call]:
    """A tensor, alone and with a dim by name."""
    yield (array(3, 4),), {}
    yield (array(2, 3, 4),), {"dim": 1}
    yield (array(2, 3, 4),), {"dim": -1, "keepdim": True}


def sorted_rows(array: Make) -> Iterator[Call]:
    """Numbers in order, and some to be put among them."""
    yield (np.sort(array(6)), array(3, 4)), {}
    yield (np.sort(array(2, 6)), array(2, 3)), {"right": True}
    yield (np.sort(array(2, 6)), array(2, 3)), {"side": "right", "out_int32": True}


def dropped(array: Make) -> Iterator[Call]:
    """A tensor, the chance that an element is dropped, and that this is training."""
    yield (array(3, 4), 0.5, True), {}
    yield (array(5), 0.2, False), {}


def dropped_channels(array: Make) -> Iterator[Call]:
    """A batch of channels."""
    yield (array(2, 3, 4), 0.5, True), {}


def dropped_images(array: Make) -> Iterator[Call]:
    """A batch of channels of pictures."""
    yield (array(2, 3, 4, 2), 0.5, True), {}


def dropped_volumes(array: Make) -> Iterator[Call]:
    """A batch of channels of volumes."""
    yield (array(2, 3, 2, 2, 2), 0.5, True), {}


def chances(array: Make) -> Iterator[Call]:
    """A tensor of probabilities."""
    yield (array(3, 4, low=0.0, high=1.0),), {}


def weights(array: Make) -> Iterator[Call]:
    """A tensor of weights, and how many of them are drawn."""
    yield (array(3, 4, low=0.1, high=1.0), 2), {}
    yield (array(4, low=0.1, high=1.0), 6, True), {}


def segments(array: Make) -> Iterator[Call]:
    """Numbers, and how many each segment has; of other arguments that do not fit PyTorch reads whatever lies there."""
    yield (array(6, 2), "sum"), {"lengths": np.array([2, 0, 3, 1])}
    yield (array(6), "mean"), {"lengths": np.array([2, 4]), "initial": 1.5}
    yield (array(5, 2), "max"), {"lengths": np.array([2, 3])}
    yield (array(5), "prod"), {"lengths": np.array([1, 2, 2])}
    yield (array(4, 2), "min"), {"lengths": np.array([3, 1])}
