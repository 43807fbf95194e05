"""Calls to test the losses with; see ``samples/__init__.py`` for what the functions yield."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorcore.ops.samples import Call, Make

__all__ = [
    "chances", "classification", "cosine_embedding", "divergence", "embedding", "gaussian", "linear_classification",
    "log_probabilities", "multi_margin", "multilabel", "multilabel_margin", "poisson", "probabilities", "ranking",
    "regression", "rows", "scores", "triplet", "triplet_with_distance", "two_vectors",
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


def chances(array: Make) -> Iterator[Call]:
    """Probabilities and targets between 0 and 1, and nothing else."""
    yield (array(3, 4, low=0.1, high=0.9), array(3, 4, low=0.0, high=1.0)), {}


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


def linear_classification(array: Make) -> Iterator[Call]:
    """Classes, probabilities, one sample, several scores."""
    yield (array(3, 2), array(4, 2), np.array([1, 0, 3])), {"linear_bias": array(4), "label_smoothing": 0.1}
    yield (array(3, 2), array(4, 2), array(3, 4, low=0.1)), {"reduction": "sum"}
    yield (array(2), array(4, 2), np.array(1)), {"ignore_index": 0}
    yield (array(2, 3), array(4, 2, 3), np.array([[1, 0], [3, 2]])), {"linear_bias": array(4, 2), "reduction": "none"}


def multi_margin(array: Make) -> Iterator[Call]:
    """One right class for each sample; both powers; weights; one sample."""
    classes = np.array([1, 0, 3])
    for reduction in ("mean", "sum", "none"):
        yield (array(3, 4), classes), {"reduction": reduction}
    yield (array(3, 4), classes, 2, 0.5, array(4, low=0.5)), {}
    yield (array(4), np.array(2)), {"reduction": "none"}


def multilabel_margin(array: Make) -> Iterator[Call]:
    """Labels ended by -1, none, all, one twice; one sample."""
    labels = np.array([[1, 3, -1, 0], [-1, 0, 0, 0], [2, 0, 1, 3], [2, 2, -1, -1]])
    for reduction in ("mean", "sum", "none"):
        yield (array(4, 4), labels), {"reduction": reduction}
    yield (array(4), labels[0]), {"reduction": "none"}


def multilabel(array: Make) -> Iterator[Call]:
    """Scores of any size and targets between 0 and 1."""
    for reduction in ("mean", "sum", "none"):
        yield (array(3, 4), array(3, 4, low=0.0, high=1.0)), {"reduction": reduction}
    yield (array(3, 4), array(3, 4, low=0.0, high=1.0), array(4)), {}


def triplet_with_distance(array: Make) -> Iterator[Call]:
    """Anchors, positives and negatives."""
    yield (array(3, 4), array(3, 4), array(3, 4)), {}
    yield (array(3, 4), array(3, 4), array(3, 4)), {"swap": True, "margin": 0.5, "reduction": "none"}


def rows(array: Make) -> Iterator[Call]:
    """Vectors, and norms of several orders."""
    yield (array(5, 3),), {}
    for p in (1.0, 3.0, float("inf")):
        yield (array(4, 3), p), {}
