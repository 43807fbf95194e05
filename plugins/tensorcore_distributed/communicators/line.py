"""The collectives of one communicator in their order, run by whoever waits for them or by a thread of their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

__all__ = ["Line", "Task"]


class Task:
    """One collective: the requests that make it up, one after the other.

    Attributes:
        finished: set when it is done, or ``error`` says why it is not.
    """

    def __init__(self, what: str, steps: Callable[[], Iterator[Any]], small: bool = False) -> None:
        self.what = what
        self.small = small  # whether its requests move next to nothing, and are only waited for
        self.steps = steps
        self.finished = threading.Event()
        self.error: BaseException | None = None

    def run(self, complete: Callable[[Any], None]) -> None:
        """Start each request and have it completed."""
        try:
            for request in self.steps():
                complete(request)
        except BaseException as error:
            self.error = error


class Line:
    """Tasks in the order in which they have to start; never two of them at once.

    Args:
        complete: waits for a request of a task, in the line's own thread.
    """

    def __init__(self, complete: Callable[[Task, Any], None]) -> None:
        self.complete = complete
        self.waiting: deque[Task] = deque()
        self.changed = threading.Condition()
        self.busy = False
        self.driven = False  # whether the thread runs whatever waits
        self.thread: threading.Thread | None = None
        self.closed = False

    def add(self, task: Task) -> Task:
        """Put a task at the end."""
        with self.changed:
            self.waiting.append(task)
            if self.driven:
                self.changed.notify_all()
        return task

    def take(self, task: Task) -> bool:
        """Give the task to the caller, who then runs it, where it is the next one and nothing runs."""
        with self.changed:
            if self.busy or self.driven or not self.waiting or self.waiting[0] is not task:
                return False
            self.busy = True
            self.waiting.popleft()
            return True

    def done(self, task: Task) -> None:
        """The caller has run the task that it took."""
        task.finished.set()
        with self.changed:
            self.busy = False
            self.changed.notify_all()

    def advance(self) -> None:
        """Have all that waits run by the thread of this line."""
        with self.changed:
            if not self.waiting or self.driven:
                return
            self.driven = True
            if self.thread is None:
                self.thread = threading.Thread(target=self._drive, name="tensorcore collectives", daemon=True)
                self.thread.start()
            self.changed.notify_all()

    def close(self) -> None:
        """End the thread once all is done."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        if self.thread is not None:
            self.thread.join()

    def _drive(self) -> None:
        while True:
            with self.changed:
                while self.busy or not (self.driven and self.waiting):
                    self.driven = self.driven and bool(self.waiting)
                    if self.closed:
                        return
                    self.changed.wait()
                task = self.waiting.popleft()
                self.busy = True
            task.run(partial(self.complete, task))
            self.done(task)
