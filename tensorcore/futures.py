"""Future: a value that is there later, in the form that communication hooks return."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that is set once, or computed by whoever waits for it first.

    What ``then`` and ``add_done_callback`` were given runs when the value is set or first waited for, in that thread.
    """

    def __init__(
        self, *, devices: Any = None, make: Callable[[], Any] | None = None, ready: Callable[[], bool] | None = None
    ) -> None:
        self._make, self._ready = make, ready
        self._value: Any = None
        self._error: BaseException | None = None
        self._done = False
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Whether ``wait`` would return at once."""
        if not self._done and self._ready is not None and self._ready():
            self._settle()
        return self._done

    def wait(self) -> Any:
        """The value; raises the exception that was set in its place."""
        if not self._done:
            self._settle()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self) -> Any:
        """The value of one that is done."""
        if not self.done():
            raise RuntimeError("value: expected a Future that is done, got one that is not; wait() for it")
        return self.wait()

    def set_result(self, result: Any) -> None:
        """Give it its value."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Have ``wait`` raise this."""
        self._finish(None, result)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of what ``callback`` makes of this one, once it is done."""

        def make() -> Any:
            if not self._done:
                self._settle()
            return callback(self)

        return Future(make=make, ready=self.done)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call ``callback`` with this Future when it is done."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def _settle(self) -> None:
        if self._make is None:
            raise RuntimeError(
                "wait: expected a Future whose value somebody sets, got one that nobody has; set_result it"
            )
        try:
            value = self._make()
        except Exception as error:
            self._finish(None, error)
        else:
            self._finish(value, None)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        if self._done:
            raise RuntimeError("set_result: expected a Future that is not done, got one that is; set it once")
        self._value, self._error, self._done, self._make = value, error, True, None
        for callback in self._callbacks:
            callback(self)


def collect_all(futures: Iterable[Future]) -> Future:
    """A Future of the list of these, done when all are."""
    given = list(futures)

    def make() -> list[Future]:
        for one in given:
            if not one._done:
                one._settle()
        return given

    return Future(make=make, ready=lambda: all(one.done() for one in given))


def wait_all(futures: Iterable[Future]) -> list[Any]:
    """The values of all of them."""
    return [one.wait() for one in futures]
