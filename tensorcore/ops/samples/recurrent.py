"""Calls to test the recurrent ops with; see ``samples/__init__.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn", "rnn_cell"]

Make = Callable[..., Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]


def _weights(array: Make, rows: int, features: int, size: int, biases: bool = True) -> list[Any]:
    # Small ones: a large weight doubles the rounding of each step in the next.
    found = [array(rows, features, low=-0.4, high=0.4), array(rows, size, low=-0.4, high=0.4)]
    return [*found, array(rows), array(rows)] if biases else found


def lstm(array: Make) -> Iterator[Call]:
    """One layer; two of both directions without biases; projected states."""
    yield (
        (
            array(4, 2, 3),
            [array(1, 2, 5), array(1, 2, 5)],
            _weights(array, 20, 3, 5),
            True,
            1,
            0.0,
            False,
            False,
            False,
        ),
        {},
    )
    deep = [one for width in (3, 3, 10, 10) for one in _weights(array, 20, width, 5, False)]
    yield (array(2, 4, 3), [array(4, 2, 5), array(4, 2, 5)], deep, False, 2, 0.0, True, True, True), {}
    projected = [*_weights(array, 20, 3, 2), array(2, 5)]
    yield (array(4, 2, 3), [array(1, 2, 2), array(1, 2, 5)], projected, True, 1, 0.0, False, False, False), {}


def gru(array: Make) -> Iterator[Call]:
    """One layer; two of both directions without biases."""
    yield (array(4, 2, 3), array(1, 2, 5), _weights(array, 15, 3, 5), True, 1, 0.0, False, False, False), {}
    deep = [one for width in (3, 3, 10, 10) for one in _weights(array, 15, width, 5, False)]
    yield (array(2, 4, 3), array(4, 2, 5), deep, False, 2, 0.0, True, True, True), {}


def rnn(array: Make) -> Iterator[Call]:
    """One layer; two of both directions without biases."""
    yield (array(4, 2, 3), array(1, 2, 5), _weights(array, 5, 3, 5), True, 1, 0.0, False, False, False), {}
    deep = [one for width in (3, 3, 10, 10) for one in _weights(array, 5, width, 5, False)]
    yield (array(2, 4, 3), array(4, 2, 5), deep, False, 2, 0.0, True, True, True), {}


def lstm_cell(array: Make) -> Iterator[Call]:
    """With and without biases."""
    yield (array(2, 3), [array(2, 5), array(2, 5)], *_weights(array, 20, 3, 5)), {}
    yield (array(2, 3), (array(2, 5), array(2, 5)), *_weights(array, 20, 3, 5, False)), {}


def gru_cell(array: Make) -> Iterator[Call]:
    """With and without biases."""
    yield (array(2, 3), array(2, 5), *_weights(array, 15, 3, 5)), {}
    yield (array(2, 3), array(2, 5), *_weights(array, 15, 3, 5, False)), {}


def rnn_cell(array: Make) -> Iterator[Call]:
    """With and without biases."""
    yield (array(2, 3), array(2, 5), *_weights(array, 5, 3, 5)), {}
    yield (array(2, 3), array(2, 5), *_weights(array, 5, 3, 5, False)), {}
