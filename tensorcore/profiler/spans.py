"""record_function: a name of the user's own for a part of the program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.profiler.recorder import current

__all__ = ["record_function"]


class record_function:
    """Within a ``with`` or a decorated function, an event of that name around whatever is recorded inside.

    Does nothing while no profiler is on.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"record_function: expected a name, got {name!r}; pass a string")
        self.name, self.args = name, args
        self._event: Any = None
        self._recorder: Any = None

    def __enter__(self) -> record_function:
        self._recorder = current()
        if self._recorder is not None:
            self._event = self._recorder.begin(self.name, "user")
        return self

    def __exit__(self, *error: object) -> None:
        if self._recorder is not None:
            self._recorder.end(self._event)
        self._recorder = self._event = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped
