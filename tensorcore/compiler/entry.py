"""What is kept of a traced call: its guards, and the function that replays it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.compiler.guards import Guards

__all__ = ["MISSED", "Entry"]

MISSED = object()  # what a replay answers with where a check fails before anything was written


class Entry:
    """A traced call.

    Attributes:
        check: whether a call is like it.
        run: what replays it; None where ``reason`` says why that cannot be.
        plans: what it runs.
        unsettled: whether the call itself changed what its guards look at.
        replaced: where the call put tensors in the place of others, of a call that cannot be replayed.
        device: what it computed on, None where it called no kernel.
    """

    def __init__(self, guards: Guards, run: Callable[..., Any] | None, plans: list[Any], reason: str | None) -> None:
        self.guards, self.run, self.plans, self.reason = guards, run, plans, reason
        self.replays = 0
        self.unsettled = False
        self.replaced: list[tuple[Any, Any]] = []
        self.device: Any = None
        guards.settle()
        self.check = guards.check
