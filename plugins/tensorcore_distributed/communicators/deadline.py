"""Waiting for a request or another thread until a moment, with looks at the others on the way."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from tensorcore.plugin import CommunicatorTimeout

__all__ = ["LOOK", "Deadline", "going"]

_SPINS = 200  # tests before the processor is offered to others
_YIELDS = 20000  # offers before sleeping between tests
_PAUSE, _CROWDED = 3e-5, 2e-4  # seconds: of a sleep between tests, and of an offer that others took
LOOK = 0.05  # seconds between two looks at whether somebody gave up


class Deadline:
    """Waiting until a moment, with looks at the others on the way."""

    crowded = 0.0  # until when the processors are taken to have more to do than there are of them

    def __init__(self, what: str, seconds: float, look: Callable[[], None]) -> None:
        self.what, self.seconds, self.look = what, seconds, look
        self.start = self.looked = time.monotonic()

    def complete(self, request: Any) -> None:
        """Test a request until it is complete."""
        count = 0
        test = request.Test
        while not test():
            count += 1
            if count > _YIELDS:
                time.sleep(0.0005)
            elif count > _SPINS:
                self._offer()
            else:
                continue
            if not count & 63 or count > _YIELDS:
                self.look_around()

    def _offer(self) -> None:
        """Let others have the processor. Where these are many, who sleeps comes back sooner than who only steps aside."""
        now = time.perf_counter()
        if now < Deadline.crowded:
            time.sleep(_PAUSE)
        else:
            os.sched_yield()
            after = time.perf_counter()
            if after - now > _CROWDED:
                Deadline.crowded = after + 1.0

    def join(self, event: threading.Event) -> None:
        """Wait for another thread."""
        while not event.wait(LOOK):
            self.look_around()

    def look_around(self) -> None:
        """Look at the others, now and then, and at the time. Raises CommunicatorTimeout, and what ``look`` raises."""
        now = time.monotonic()
        if now - self.looked >= LOOK:
            self.looked = now
            self.look()
        if now - self.start >= self.seconds:
            raise CommunicatorTimeout(
                f"{self.what}: expected the other ranks within {self.seconds:g} s, got no answer; see what they are doing"
            )


def going(check: Callable[[], None], look: Callable[[], None]) -> Callable[[], None]:
    """What raises where this rank (``check``) or another (``look``) has given up: asked before each write into another's memory.

    The others are looked at now and then: who was stopped on the way looks before it writes on.
    """
    looked = time.monotonic()

    def ask() -> None:
        nonlocal looked
        check()
        now = time.monotonic()
        if now - looked >= LOOK:
            looked = now
            look()

    return ask
