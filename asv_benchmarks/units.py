"""Numbers as people read them. A machine with nothing but a GPU and its libraries has this too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["duration", "share", "shown", "size"]


def duration(seconds: float) -> str:
    """Three digits and the unit that suits: 730 ns, 1.32 us, 2.40 ms, 1.05 s."""
    for unit, one in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= one * 0.9995:
            number = seconds / one
            return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def size(count: float) -> str:
    """Bytes in the unit that suits: 312 kB, 96.1 MB."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def shown(number: float, unit: str) -> str:
    """Seconds, bytes or a count, as people read them."""
    return duration(number) if unit == "s" else size(number) if unit == "bytes" else f"{number:.0f}"


def share(result: Mapping[str, Any]) -> str:
    """The share of the machine's limit that a row reaches, nothing where its limit is not known."""
    return f"{100 * result['limit'] / result['ours']:.0f} %" if result.get("limit") else ""
