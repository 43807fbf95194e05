"""The account of what was made: why, for which line of the user's program, how much, how long; and forbidding it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tensorcore.errors import UsageError
from tensorcore.lazy.record import line_of, user_frame, user_line

__all__ = ["Forbidden", "Realisation", "check", "clear", "forbid", "note", "realisations", "report"]

_MOST = 10_000  # older ones are forgotten
_entries: deque[Realisation] = deque(maxlen=_MOST)
_forbidden = threading.local()
# What the functions are called in the account that Python calls by other names.
_NAMES = {
    "__bool__": "bool", "__float__": "float", "__int__": "int", "__index__": "index", "__complex__": "complex",
    "__iter__": "iter", "__format__": "format", "_array": "numpy", "__reduce_ex__": "pickle",
    "__deepcopy__": "deepcopy", "_contains": "in", "_reduce_storage": "pickle",
}  # fmt: skip
_tuple = tuple.__new__
_AROUND = ("wrapped",)  # what decorators put around a method
_OF_OBJECTS = ("__init__", "__call__")  # say little without the class


class Realisation(NamedTuple):
    """One time that deferred values were made.

    Attributes:
        cause: the function that needed a value: ``item``, ``bool``, ``numpy``, ``evaluate``, ``nonzero``, ``budget`` ...
        code, at: where the user's program called it.
        bytes: of all values that were computed or brought, from a file for instance.
        steps: calls of kernels that were written down.
        seconds: how long it took.
        replayed: whether the program had been prepared before.
    """

    cause: str
    code: CodeType
    at: int
    bytes: int
    steps: int
    seconds: float
    replayed: bool

    @property
    def line(self) -> str:
        """``file:line`` of the user's program."""
        return line_of(self.code, self.at)


class Forbidden(UsageError):
    """A value was needed where ``forbid`` does not let it be made."""


def check(frame: FrameType, cause: str | None) -> None:
    """Raise where making values is forbidden on this thread."""
    if getattr(_forbidden, "depth", 0):
        raise Forbidden(
            f"lazy: expected no value to be needed inside forbid(), got '{cause or cause_of(frame, user_frame(frame)[0])}' at "
            f"{line_of(*user_line(frame))}; move it out of the block, or do without the value"
        )


def note(frame: FrameType, cause: str | None, size: int, steps: int, seconds: float, replayed: bool) -> None:
    """Enter one time that values were made."""
    outer, _ = user_frame(frame)
    why = cause or cause_of(frame, outer)
    # Without the frame of Python's that a named tuple is made in.
    _entries.append(_tuple(Realisation, (why, outer.f_code, outer.f_lasti, size, steps, seconds, replayed)))


def cause_of(frame: FrameType, outer: Any) -> str:
    """The name of the function of this package that the user's program called from the frame ``outer``."""
    name = "?"
    found: Any = frame
    while found is not None and found is not outer:
        code = found.f_code
        if not code.co_name.startswith("<") and code.co_name not in _AROUND:
            name = code.co_name
            if name in _OF_OBJECTS and "self" in found.f_locals:
                name = type(found.f_locals["self"]).__name__
        found = found.f_back
    return _NAMES.get(name, name.strip("_") or name)


def realisations() -> list[Realisation]:
    """All that are remembered, the oldest first."""
    return list(_entries)


def clear() -> None:
    """Forget them."""
    _entries.clear()


def report() -> str:
    """A table of every time that values were made: cause, line, calls, bytes, milliseconds, and whether it was a replay.

    Those of one cause and line are one row.
    """
    rows: dict[tuple[str, str], list[Realisation]] = {}
    for one in list(_entries):
        rows.setdefault((one.cause, one.line), []).append(one)
    table = [("times", "cause", "line", "calls", "bytes", "ms", "replays")]
    for (cause, line), some in rows.items():
        table.append((
            str(len(some)), cause, line, str(sum(one.steps for one in some)), str(sum(one.bytes for one in some)),
            f"{1000 * sum(one.seconds for one in some):.1f}", str(sum(one.replayed for one in some)),
        ))  # fmt: skip
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [
            text.ljust(width) if i in (1, 2) else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


@contextmanager
def forbid() -> Iterator[None]:
    """Inside the block, raise ``Forbidden`` where a deferred value would have to be made; on this thread."""
    _forbidden.depth = getattr(_forbidden, "depth", 0) + 1
    try:
        yield
    finally:
        _forbidden.depth -= 1
