"""Calls to test the products, convolutions, pools, embeddings and paddings with; see ``samples/__init__.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = [
    "addmm", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cross", "einsum", "embedding", "embedding_bag", "fold", "fractional2d", "fractional3d",
    "inner", "linear", "local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d", "matmul",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "pad", "pixel_shuffle", "pixel_unshuffle", "pool1d", "pool2d",
    "pool3d", "tensordot", "unfold",
]  # fmt: skip

Make = Callable[..., Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]


def _simple(*shapes: tuple[int, ...], **options: Any) -> Callable[[Make], Iterator[Call]]:
    """One call with tensors of these shapes."""

    def samples(array: Make) -> Iterator[Call]:
        yield tuple(array(*shape) for shape in shapes), options

    return samples


def matmul(array: Make) -> Iterator[Call]:
    """Every case: vectors, matrices, batches that broadcast, size 0."""
    for a, b in (
        ((3,), (3,)), ((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
        ((2, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((2, 3), (5, 3, 4)), ((0, 3), (3, 4)), ((2, 0), (0, 4)),
    ):  # fmt: skip
        yield (array(*a), array(*b)), {}


def inner(array: Make) -> Iterator[Call]:
    """Vectors, matrices, a 0-d tensor."""
    yield (array(3), array(3)), {}
    yield (array(2, 3), array(4, 3)), {}
    yield (array(), array(3)), {}


mm, bmm = _simple((2, 3), (3, 4)), _simple((2, 3, 4), (2, 4, 5))
mv, dot, outer = _simple((2, 3), (3,)), _simple((3,), (3,)), _simple((3,), (2,))
matrix = _simple((3, 4))
addmv = _simple((2,), (2, 3), (3,), beta=0.5, alpha=2.0)
baddbmm = _simple((2, 1, 5), (2, 3, 4), (2, 4, 5), beta=0.5, alpha=2.0)
addbmm = _simple((3, 5), (2, 3, 4), (2, 4, 5), beta=0.5, alpha=2.0)
addr = _simple((3, 2), (3,), (2,), beta=0.5, alpha=2.0)
bilinear = _simple((4, 2), (4, 3), (5, 2, 3), (5,))
kron = _simple((2, 3), (3, 2))
chain = _simple((2, 3), (3, 4), (4, 2))


def addmm(array: Make) -> Iterator[Call]:
    """A full and a broadcast input, scaled and not."""
    yield (array(2, 4), array(2, 3), array(3, 4)), {}
    yield (array(4), array(2, 3), array(3, 4)), {"beta": 0.5, "alpha": 2.0}


def linear(array: Make) -> Iterator[Call]:
    """With and without bias; one, two and three dims."""
    yield (array(2, 3), array(4, 3), array(4)), {}
    yield (array(2, 3), array(4, 3)), {}
    yield (array(3), array(4, 3), array(4)), {}
    yield (array(2, 5, 3), array(4, 3), array(4)), {}


def cross(array: Make) -> Iterator[Call]:
    """Vectors along a named dim, broadcast."""
    yield (array(3), array(3)), {"dim": 0}
    yield (array(2, 3), array(1, 3)), {"dim": 1}


def einsum(array: Make) -> Iterator[Call]:
    """Contractions, diagonals, sums, an ellipsis, sublists."""
    yield ("ij,jk->ik", array(2, 3), array(3, 4)), {}
    yield ("ii->i", array(3, 3)), {}
    yield ("bij,bjk", array(2, 3, 4), array(2, 4, 2)), {}
    yield ("...ij,jk->...ik", array(2, 2, 3), array(3, 2)), {}
    yield ("i,j,k->kij", array(2), array(3), array(2)), {}
    yield (array(2, 3), [0, 1], array(3, 4), [1, 2], [2, 0]), {}


def tensordot(array: Make) -> Iterator[Call]:
    """Dims by count and by name."""
    yield (array(2, 3, 4), array(3, 4, 5)), {"dims": 2}
    yield (array(2, 3, 4), array(4, 2, 5)), {"dims": ([0, 2], [1, 0])}


def conv1d(array: Make) -> Iterator[Call]:
    """Strides, paddings, dilations, groups."""
    yield (array(2, 3, 7), array(4, 3, 3), array(4)), {}
    yield (array(2, 4, 7), array(4, 2, 3)), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}


def conv2d(array: Make) -> Iterator[Call]:
    """Strides, paddings, dilations, groups, depthwise, no batch."""
    yield (array(2, 3, 6, 5), array(4, 3, 3, 2), array(4)), {}
    yield (array(2, 4, 6, 5), array(6, 2, 3, 2)), {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}
    yield (array(1, 3, 5, 5), array(6, 1, 3, 3), array(6)), {"groups": 3, "padding": "same"}
    yield (array(3, 4, 4), array(2, 3, 1, 1)), {}


def conv3d(array: Make) -> Iterator[Call]:
    """Three dims."""
    yield (array(1, 2, 4, 3, 4), array(2, 2, 2, 2, 2), array(2)), {"padding": 1, "stride": 2}


def conv_tbc(array: Make) -> Iterator[Call]:
    """Time first, with and without padding."""
    yield (array(5, 2, 3), array(2, 3, 4), array(4)), {}
    yield (array(5, 2, 3), array(3, 3, 2), array(2), 1), {}


def conv_transpose1d(array: Make) -> Iterator[Call]:
    """One dim."""
    yield (array(2, 3, 4), array(3, 2, 3), array(2)), {"stride": 2, "padding": 1, "output_padding": 1}


def conv_transpose2d(array: Make) -> Iterator[Call]:
    """Two dims, with groups and dilation."""
    yield (array(2, 3, 3, 3), array(3, 2, 2, 3), array(2)), {}
    yield (array(1, 4, 3, 3), array(4, 1, 2, 3)), {"stride": 2, "groups": 2, "dilation": (2, 1)}
    yield (array(1, 2, 3, 3), array(2, 1, 2, 3), array(1)), {"stride": (3, 2), "output_padding": (2, 3), "dilation": 4}


def conv_transpose3d(array: Make) -> Iterator[Call]:
    """Three dims."""
    yield (array(1, 2, 2, 2, 2), array(2, 2, 2, 2, 2)), {"stride": 2}


def unfold(array: Make) -> Iterator[Call]:
    """Blocks side by side and overlapping."""
    yield (array(2, 3, 4, 5), (2, 3)), {}
    yield (array(1, 2, 5, 5), 3), {"stride": 2, "padding": 1}


def fold(array: Make) -> Iterator[Call]:
    """Blocks that overlap."""
    yield (array(2, 18, 9), (4, 5), (2, 3)), {}
    yield (array(1, 18, 9), (5, 5), 3), {"stride": 2, "padding": 1}


def pool1d(array: Make) -> Iterator[Call]:
    """Windows of one dim."""
    yield (array(2, 3, 7), 2), {}
    yield (array(2, 3, 7), 3), {"stride": 2, "padding": 1, "ceil_mode": True}


def pool2d(array: Make) -> Iterator[Call]:
    """Windows side by side, overlapping, over the edge."""
    yield (array(2, 3, 6, 5), 2), {}
    yield (array(2, 3, 6, 5), (3, 2)), {"stride": 2, "padding": 1, "ceil_mode": True}
    yield (array(3, 6, 5), 2), {"stride": 3}


def pool3d(array: Make) -> Iterator[Call]:
    """Windows of three dims."""
    yield (array(1, 2, 4, 5, 4), 2), {}


def _adaptive(ndim: int) -> Callable[[Make], Iterator[Call]]:
    def samples(array: Make) -> Iterator[Call]:
        yield (array(2, 3, *(6, 5, 7)[:ndim]), (3, 2, 4)[:ndim]), {}
        yield (array(2, 3, *(6, 5, 7)[:ndim]), 1), {}

    return samples


adaptive1d, adaptive2d, adaptive3d = _adaptive(1), _adaptive(2), _adaptive(3)


def lp_pool1d(array: Make) -> Iterator[Call]:
    """Norms of windows."""
    yield (array(2, 3, 7, low=0.1), 2, 3), {}


def lp_pool2d(array: Make) -> Iterator[Call]:
    """Norms of windows."""
    yield (array(2, 3, 6, 4, low=0.1), 2.0, 2), {"stride": 1}


def embedding(array: Make) -> Iterator[Call]:
    """Repeated rows, a padding row, scaled gradients."""
    at = np.array([[1, 2, 1], [0, 4, 4]])
    yield (at, array(5, 3)), {}
    yield (at, array(5, 3)), {"padding_idx": 1}
    yield (at, array(5, 3)), {"scale_grad_by_freq": True}


def pad(array: Make) -> Iterator[Call]:
    """All modes; a crop."""
    yield (array(2, 3, 4), (1, 2)), {}
    yield (array(2, 3, 4), (1, -1, 0, 2)), {"value": 1.5}
    yield (array(2, 3, 4), (2, 1)), {"mode": "reflect"}
    yield (array(1, 2, 3, 4), (2, 1, 1, 0)), {"mode": "replicate"}
    yield (array(1, 2, 3, 4), (2, 1, 1, 0)), {"mode": "circular"}


def channel_shuffle(array: Make) -> Iterator[Call]:
    """Two and three runs of channels."""
    yield (array(2, 6, 2, 3), 3), {}
    yield (array(1, 4, 3), 2), {}


def pixel_shuffle(array: Make) -> Iterator[Call]:
    """Channels to space."""
    yield (array(2, 8, 3, 2), 2), {}


def pixel_unshuffle(array: Make) -> Iterator[Call]:
    """Space to channels."""
    yield (array(2, 2, 4, 6), 2), {}


def lp_pool3d(array: Make) -> Iterator[Call]:
    """Norms of windows."""
    yield (array(1, 2, 4, 4, 5, low=0.1), 2.0, 2), {}


def _unpool(ndim: int) -> Callable[[Make], Iterator[Call]]:
    def samples(array: Make) -> Iterator[Call]:
        """Maxima of windows of two, and where they were: at the windows' starts."""
        size = 2 * 3
        corner = np.arange(0, size, 2)
        places = sum(
            np.meshgrid(*[corner * size**i for i in reversed(range(ndim))], indexing="ij"), np.zeros((), np.int64)
        )
        yield (array(2, 2, *[3] * ndim), np.broadcast_to(places, (2, 2, *[3] * ndim)).copy(), 2), {}

    return samples


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)


def embedding_bag(array: Make) -> Iterator[Call]:
    """Bags of one length and of several, an empty one; all modes, weights, padding."""
    square, line = np.array([[1, 2, 1], [0, 4, 4]]), np.array([1, 2, 4, 4, 0, 3])
    starts = np.array([0, 2, 2, 5])
    for mode in ("sum", "mean", "max"):
        yield (square, array(5, 3)), {"mode": mode}
        yield (line, array(5, 3), starts), {"mode": mode, "padding_idx": 4}
    yield (line, array(5, 3), starts), {"scale_grad_by_freq": True}
    yield (line, array(5, 3), starts), {"mode": "sum", "per_sample_weights": array(6)}
    yield (square, array(5, 3)), {"mode": "sum", "per_sample_weights": array(2, 3), "padding_idx": -1}


def fractional2d(array: Make) -> Iterator[Call]:
    """Windows by count and by ratio, at given places."""
    yield (array(2, 3, 7, 6), 2, (3, 4)), {"_random_samples": array(2, 3, 2, low=0.0, high=0.99)}
    yield (array(3, 7, 6), (3, 2)), {"output_ratio": (0.5, 0.6), "_random_samples": array(1, 3, 2, low=0.0, high=0.99)}
    yield (
        (array(2, 3, 7, 6), 2, (3, 4)),
        {"return_indices": True, "_random_samples": array(2, 3, 2, low=0.0, high=0.99)},
    )


def fractional3d(array: Make) -> Iterator[Call]:
    """Windows by count and by ratio, at given places."""
    yield (array(1, 2, 5, 4, 6), 2, (3, 2, 4)), {"_random_samples": array(1, 2, 3, low=0.0, high=0.99)}
    yield (
        (array(2, 5, 4, 6), 2),
        {
            "output_ratio": (0.5, 0.5, 0.6),
            "return_indices": True,
            "_random_samples": array(1, 2, 3, low=0.0, high=0.99),
        },
    )


def local_response_norm(array: Make) -> Iterator[Call]:
    """Even and odd numbers of neighbours, one to three dims behind the channels."""
    yield (array(2, 4, 3), 3), {}
    yield (array(2, 5, 2, 3), 2), {"alpha": 0.5, "beta": 0.5, "k": 2.0}
    yield (array(1, 3, 2, 2, 2), 5), {}
