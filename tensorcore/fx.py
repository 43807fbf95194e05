"""``torch.fx`` for programs that mark functions in passing: nothing is traced symbolically, so marks change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore import deeper
from tensorcore.errors import UsageError
from tensorcore.nn.module import Module

__all__ = ["GraphModule", "Node", "Proxy", "wrap"]


class Proxy:
    """A value of a symbolic trace, which programs ask for by ``isinstance``: there is none."""

    def __init__(self, *given: Any, **options: Any) -> None:
        raise UsageError(
            f"{type(self).__name__}: expected torch.compile or forward hooks, got a symbolic trace; there are none here"
        )


class Node(Proxy):
    """As ``Proxy``, for a step of a trace."""


class GraphModule(Proxy, Module):
    """As ``Proxy``, for the module that a trace becomes."""


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """The function, or its name, itself: there is no symbolic trace that it had to stay whole in."""
    return fn_or_name


def _get_proxy_mode() -> None:
    """The symbolic trace that this line runs in: there is none."""


# Where programs that take another way inside a trace ask for it.
experimental = deeper.module(
    f"{__name__}.experimental",
    proxy_tensor=deeper.module(f"{__name__}.experimental.proxy_tensor", get_proxy_mode=_get_proxy_mode),
)
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"fx: expected 'wrap' or a class to ask for by isinstance, got {name!r}; there are no symbolic traces here, take "
        "torch.compile or forward hooks instead"
    )
