"""Locks over forks: only the thread that forks goes on in the child, so nobody there would release what another one held."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["in_child", "renewed"]


def in_child(function: Callable[[], Any]) -> None:
    """Call a function in each child of a fork, before it goes on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def renewed(lock: Any) -> Any:
    """The lock, which a child of a fork finds free, whoever held it."""
    in_child(lock._at_fork_reinit)
    return lock
