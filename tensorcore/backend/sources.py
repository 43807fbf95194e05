"""Where the generator is kept that numbers come from where no other one is passed; importing it imports none of NumPy's."""

from __future__ import annotations

from typing import Any

__all__ = ["Sources", "sources"]


class Sources:
    """The generator of the process, None until it is asked for, and how many threads were given one of their own.

    While there is none of those, nobody need ask which thread draws: that costs 35 ns, this count 5.
    """

    __slots__ = ("process", "threads")

    process: Any
    threads: int


sources = Sources()
sources.process, sources.threads = None, 0
