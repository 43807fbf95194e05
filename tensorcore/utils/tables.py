"""Text tables and short numbers, as the profiler, the summary and the memory report print them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["bytes_text", "count_text", "table_text", "time_text"]


def table_text(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, footer: str = "") -> str:
    """Columns with two spaces between them under a rule; the first ``left`` of them are set flush left."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    rule = "  ".join(["-" * width for width in widths])

    def line(cells: Sequence[str]) -> str:
        made = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(made).rstrip()

    return "\n".join([rule, line(heads), rule, *map(line, rows), rule, *([footer] if footer else [])])


def time_text(microseconds: float) -> str:
    """``1.234ms``: a time in the unit that gives it one to three digits before the point."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


def bytes_text(nbytes: float) -> str:
    """``1.50 KiB``: a size in the binary unit that gives it one to four digits before the point."""
    size, unit = float(nbytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{int(size)} B" if unit == "B" else f"{size:.2f} {unit}"


def count_text(count: float) -> str:
    """``1.50 M``: a number in thousands, millions and so on; small ones as they are."""
    size, unit = float(count), ""
    for unit in ("", "K", "M", "G", "T", "P"):
        if abs(size) < 1000 or unit == "P":
            break
        size /= 1000
    return f"{count:g}" if not unit else f"{size:.2f} {unit}"
