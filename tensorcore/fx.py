"""``torch.fx`` for programs that mark functions in passing: nothing is traced symbolically, so marks change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["wrap"]


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """The function, or its name, itself: there is no symbolic trace that it had to stay whole in."""
    return fn_or_name


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"fx: expected 'wrap', got {name!r}; there are no symbolic traces here, take torch.compile or forward hooks instead"
    )
