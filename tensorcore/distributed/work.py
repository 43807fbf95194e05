"""Work: a collective that was started, to be waited for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tensorcore.futures import Future

if TYPE_CHECKING:
    from tensorcore.distributed.group import ProcessGroup

__all__ = ["Work"]


class Work:
    """A collective under way. Its tensors must not be touched before ``wait`` has returned.

    It goes on by itself: the transport moves it while this thread computes.
    """

    def __init__(
        self,
        group: ProcessGroup,
        number: int,
        handles: list[Any],
        finish: Callable[[], None] | None,
        result: Any = None,
        source: int = -1,
    ) -> None:
        self._group, self._number, self._handles, self._finish = group, number, handles, finish
        self._result = result
        self._source = source
        self._error: BaseException | None = None
        self._done = False

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Return True once the results are there. Raises CommunicatorError, and CommunicatorTimeout after the timeout.

        ``timeout``: a timedelta or seconds; that of the group where None.
        """
        if self._error is not None:
            raise self._error
        if not self._done:
            seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
            try:
                self._group.complete(self._number, self._handles, seconds or None)
                if self._finish is not None:
                    self._finish()
            except BaseException as error:
                self._error = error
                raise
            self._done, self._handles, self._finish = True, [], None
        return True

    def is_completed(self) -> bool:
        """Whether the results are there. Never blocks."""
        if not self._done and self._error is None and all([one.done() for one in self._handles]):
            self.wait()
        return self._done or self._error is not None

    def is_success(self) -> bool:
        """Whether it ended without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """The error that it ended with."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors with the results."""
        self.wait()
        return list(self._result)

    def source_rank(self) -> int:
        """Of a receive: the rank that sent."""
        return self._source

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def get_future(self) -> Future:
        """A Future of the list of result tensors."""
        return Future(make=self.result, ready=self.is_completed)
