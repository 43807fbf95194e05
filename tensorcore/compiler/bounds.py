"""Values that only decide, and numbers that are only compared: a replay checks that all comes out as in the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Bound", "Bounds", "Values"]


class Bounds:
    """The comparisons of the smallest and the largest index of one array, and how they came out."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Callable[[int, Any], Any], Any, Any]] = []

    def __call__(self, low: int, high: int) -> bool:
        """Whether two other numbers compare alike."""
        both = (int(low), int(high))
        return all(compare(both[i], other) is result for i, compare, other, result in self.found)


class Values:
    """What a decision was made by."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)

    def __call__(self, values: Any) -> bool:
        """Whether others are the same, bit by bit."""
        return bool(values.tobytes() == self.values.tobytes())


class Bound(int):
    """An int that notes what it is compared with."""

    bounds: Bounds
    which: int

    @classmethod
    def of(cls, value: int, bounds: Bounds, which: int) -> Bound:
        """``value``, which is the smallest (0) or the largest (1)."""
        made = cls(value)
        made.bounds, made.which = bounds, which
        return made

    def _compared(self, name: str, other: Any) -> Any:
        compare = getattr(int, name)
        result = compare(int(self), other)
        self.bounds.found.append((self.which, compare, other, result))
        return result

    def __lt__(self, other: Any) -> Any:
        return self._compared("__lt__", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("__le__", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("__gt__", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("__ge__", other)

    def __eq__(self, other: object) -> Any:
        return self._compared("__eq__", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("__ne__", other)

    __hash__ = int.__hash__
