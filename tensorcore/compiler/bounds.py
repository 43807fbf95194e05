"""Numbers that are only compared: a trace remembers how each comparison came out, a replay checks that it does again."""

from __future__ import annotations

from typing import Any

__all__ = ["Bound", "Bounds"]


class Bounds:
    """The comparisons of the smallest and the largest index of one array, and how they came out."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str, int, bool]] = []

    def __call__(self, low: int, high: int) -> bool:
        """Whether two other numbers compare alike."""
        both = (low, high)
        return all(getattr(int(both[i]), name)(other) is result for i, name, other, result in self.found)


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
        result = getattr(int(self), name)(other)
        self.bounds.found.append((self.which, name, other, result))
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
