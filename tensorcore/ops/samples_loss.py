"""Calls to test the losses with; see ``samples.py`` for what the functions yield."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorcore.ops.samples import Call, Make

__all__ = [
    "classification", "cosine_embedding", "divergence", "embedding", "gaussian", "log_probabilities", "poisson",
    "probabilities", "ranking", "regression", "scores", "triplet", "two_vectors",
]  # fmt: skip


def regression(array: Make) -> Iterator[Call]:
    """Predictions and targets."""
    for reduction in ("mean", "sum", "none"):
        yield (array(3, 4), array(3, 4)), {"reduction": reduction}
    yield (array(), array()), {}


def classification(array: Make) -> Iterator[Call]:
    """Scores, with classes or probabilities as targets."""
    classes = np.array([1, 0, 3])
    for reduction in ("mean", "sum", "none"):
        yield (array(3, 4), classes), {"reduction": reduction}
    yield (array(3, 4), classes, array(4, low=0.5)), {"ignore_index": 0}
    yield (array(2, 3, 2), np.array([[0, 2], [1, 1]])), {"label_smoothing": 0.1}
    yield (array(3, 4), array(3, 4, low=0.1)), {"label_smoothing": 0.2}


def log_probabilities(array: Make) -> Iterator[Call]:
    """Log-probabilities and classes."""
    classes = np.array([1, 0, 3])
    for reduction in ("mean", "sum", "none"):
        yield (array(3, 4), classes), {"reduction": reduction}
    yield (array(3, 4), classes, array(4, low=0.5)), {"ignore_index": 0}
    yield (array(2, 3, 2), np.array([[0, 2], [1, 1]])), {}


def probabilities(array: Make) -> Iterator[Call]:
    """Probabilities and targets between 0 and 1."""
    yield (array(3, 4, low=0.1, high=0.9), array(3, 4, low=0.0, high=1.0)), {}
    yield (array(3, 4, low=0.1, high=0.9), array(3, 4, low=0.0, high=1.0), array(4)), {"reduction": "sum"}


def scores(array: Make) -> Iterator[Call]:
    """Scores of any size and targets between 0 and 1."""
    yield (array(3, 4), array(3, 4, low=0.0, high=1.0)), {}
    yield (array(3, 4), array(3, 4, low=0.0, high=1.0)), {"pos_weight": array(4, low=0.5), "reduction": "sum"}
    yield (array(3, 4), array(3, 4, low=0.0, high=1.0), array(4)), {"reduction": "none"}


def divergence(array: Make) -> Iterator[Call]:
    """Log-probabilities and targets."""
    yield (array(3, 4), array(3, 4, low=0.1, high=1.0)), {"reduction": "batchmean"}
    yield (array(3, 4), array(3, 4)), {"reduction": "sum", "log_target": True}


def two_vectors(array: Make) -> Iterator[Call]:
    """Two batches of vectors."""
    yield (array(3, 4), array(3, 4)), {}


def cosine_embedding(array: Make) -> Iterator[Call]:
    """Two batches of vectors, and whether each pair is alike."""
    yield (array(3, 4), array(3, 4), np.array([1, -1, 1])), {}
    yield (array(4), array(4), np.array(-1)), {"margin": -0.5}


def embedding(array: Make) -> Iterator[Call]:
    """Distances and marks of 1 or -1."""
    yield (array(4), np.array([1, -1, -1, 1])), {}
    yield (array(4), np.array([1, -1, -1, 1])), {"reduction": "none"}


def ranking(array: Make) -> Iterator[Call]:
    """Two scores and which should be higher."""
    yield (array(4), array(4), np.array([1, -1, -1, 1])), {"margin": 0.3}


def triplet(array: Make) -> Iterator[Call]:
    """Anchors, positives and negatives."""
    yield (array(3, 4), array(3, 4), array(3, 4)), {}
    yield (array(3, 4), array(3, 4), array(3, 4)), {"swap": True, "p": 3.0, "reduction": "none"}


def gaussian(array: Make) -> Iterator[Call]:
    """Means, targets and variances."""
    yield (array(3, 4), array(3, 4), array(3, 4, low=0.3)), {}
    yield (array(3, 4), array(3, 4), array(3, 1, low=0.3)), {"full": True, "reduction": "sum"}


def poisson(array: Make) -> Iterator[Call]:
    """Rates or their logarithms, and counts."""
    yield (array(3, 4), array(3, 4, low=0.0, high=5.0)), {"full": True}
    yield (array(3, 4, low=0.3), array(3, 4, low=0.0, high=5.0)), {"log_input": False, "reduction": "sum"}
