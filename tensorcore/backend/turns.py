"""One thread at a time for each piece of work, and an error instead of a deadlock where threads wait in a ring.

Of a fork only the thread that forks goes on in the child, so nobody there would release what another thread held.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Circle", "Turns", "in_child", "renewed"]


def in_child(function: Callable[[], Any]) -> None:
    """Call a function in each child of a fork, before it goes on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def renewed(lock: Any) -> Any:
    """The lock, which a child of a fork finds free, whoever held it."""
    in_child(lock._at_fork_reinit)
    return lock


class Circle(Exception):
    """A thread would wait for work that it is itself in the middle of."""


class Turns:
    """Who does which work just now, and who waits for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._workers: dict[Hashable, int] = {}  # what is being done, and the thread that does it
        self._waiting: dict[int, Hashable] = {}  # threads that wait for their turn, and what for
        in_child(self._alone)

    def _alone(self) -> None:
        """In a child of a fork nobody else goes on with what was begun."""
        me = threading.get_ident()
        self._changed, self._waiting = threading.Condition(), {}
        self._workers = {work: worker for work, worker in self._workers.items() if worker == me}

    @contextmanager
    def take(self, work: Hashable) -> Iterator[None]:
        """Let one thread at a time do this work; raise Circle in one that would wait for itself."""
        me = threading.get_ident()
        with self._changed:
            while (worker := self._workers.get(work)) is not None:
                # A plugin may ask for devices of another while it loads, and that one for devices of the first:
                # whoever closes such a ring of waiting threads is told.
                while worker is not None and worker != me:
                    worker = self._workers.get(self._waiting.get(worker))
                if worker == me:
                    raise Circle
                self._waiting[me] = work
                try:
                    self._changed.wait()
                finally:
                    del self._waiting[me]
            self._workers[work] = me
        try:
            yield
        finally:
            with self._changed:
                del self._workers[work]
                self._changed.notify_all()
