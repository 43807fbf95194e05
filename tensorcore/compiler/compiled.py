"""Compiled functions: a bounded list of traced calls, each with its guards, and the account of what was traced and why."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore.backend.turns import renewed
from tensorcore.compiler.entry import MISSED, Entry
from tensorcore.compiler.pieces import Pieces
from tensorcore.compiler.trace import trace
from tensorcore.tape.mode import mode

__all__ = ["Compiled", "Explanation"]

_CHANGES = 3
_tracing = renewed(threading.Lock())  # a trace looks at devices that all threads share


def _is_unusual() -> bool:
    """Whether a mode of autograd is on that sees single calls."""
    return bool(mode.levels or mode.anomaly or mode.packers or mode.around is not None or mode.walks)


class Explanation:
    """What a compiled function traced, what it runs, and why it traced again.

    Attributes:
        traces: how often the function ran to be written down.
        replays: how many calls ran what was written down.
        eager: how many calls ran the function as it is.
        kernels: the calls that one replay makes, for each trace that can be replayed.
        fused: how many of these do several steps.
        peak: the most bytes that one replay takes for arrays of its own, for each of them.
        reasons: for each trace after the first, which guards did not hold; and why calls could not be replayed.
        broken: how many calls ran in pieces, between which Python went on.
        programs: how many programs these ran, and of these ``planned`` as they were planned before.
        breaks: how many programs ended at a line, by line.
    """

    def __init__(self, compiled: Compiled) -> None:
        entries = [one for one in compiled.entries if one.reason is None]
        self.name = compiled.name
        self.traces, self.eager = compiled.traces, compiled.eager
        self.replays = sum(one.replays for one in compiled.entries)
        self.kernels = [sum(plan.kernels for plan in one.plans) for one in entries]
        self.fused = [sum(plan.fused for plan in one.plans) for one in entries]
        self.peak = [max([plan.peak for plan in one.plans], default=0) for one in entries]
        runs = "runs in pieces" if compiled.pieces else "runs eagerly"
        self.reasons = [*compiled.log, *[f"{runs}: {one.reason}" for one in compiled.entries if one.reason]]
        if compiled.off is not None:
            self.reasons.append(f"{runs} from now on: {compiled.off}")
        pieces = compiled.pieces
        self.broken, self.programs, self.planned, self.breaks = 0, 0, 0, dict[str, int]()
        if pieces is not None:
            self.broken, self.programs, self.planned = pieces.calls, pieces.programs, pieces.replays
            self.breaks = dict(pieces.breaks)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.traces} traces, {self.replays} replays, {self.eager} calls run eagerly"]
        for kernels, fused, peak in zip(self.kernels, self.fused, self.peak, strict=True):
            lines.append(f"  a replay makes {kernels} kernel calls, {fused} of them fused, in {peak} bytes of its own")
        if self.broken:
            lines.append(
                f"  {self.broken} calls in pieces: {self.programs} programs, {self.planned} of them planned before"
            )
            lines += [f"  a value is needed at {line}: {times} times" for line, times in self.breaks.items()]
        return "\n".join([*lines, *[f"  {one}" for one in self.reasons]])

    __repr__ = __str__


class Compiled:
    """What stands for a compiled function.

    Args:
        function: what is called where nothing was written down for a call like it.
        fullgraph: raise where a call cannot be replayed, instead of running it as it is.
        limit: how many traces are kept; calls that would need more run as they are.
        compile: what stands in the place of the backend's ``compile``, or None.
        breaks: run calls that cannot be replayed in pieces, instead of as they are.
    """

    def __init__(
        self, function: Callable[..., Any], fullgraph: bool = False, limit: int = 8, compile: Any = None,
        breaks: bool = False,
    ) -> None:  # fmt: skip
        self.function, self.fullgraph, self.limit, self.compile = function, fullgraph, limit, compile
        self.breaks = breaks
        self.name = getattr(function, "__qualname__", None) or type(function).__name__
        self.forget()

    def forget(self) -> None:
        """Start again from nothing."""
        self.entries: list[Entry] = []
        self.states: dict[tuple[int, Any], tuple[Any, Any]] = {}  # where calls put tensors in the place of others
        self.log: list[str] = []
        self.traces = self.eager = self.changes = 0
        self.warned = False
        self.off: str | None = None  # why nothing is traced any more
        self.pieces: Pieces | None = None  # what runs a call that cannot be replayed, where breaks were asked for

    def explain(self) -> Explanation:
        """What was traced, what runs, and why."""
        return Explanation(self)

    def __reduce__(self) -> Any:
        return Compiled, (self.function, self.fullgraph, self.limit, self.compile, self.breaks)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for entry in self.entries:
            if entry.check(args, kwargs):
                if entry.run is None:
                    break
                result = entry.run(args, kwargs)
                if result is MISSED:
                    continue
                entry.replays += 1
                return result
        else:
            return self._missed(args, kwargs)
        return self._uncompiled(args, kwargs)

    def _uncompiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call as it is, or in pieces."""
        if self.pieces is None or _is_unusual() or mode.tracer is not None or not _tracing.acquire(blocking=False):
            self.eager += 1
            return self.function(*args, **kwargs)
        try:
            return self.pieces.run(self.function, args, kwargs)
        finally:
            _tracing.release()

    def _missed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if mode.tracer is not None:
            return self.function(*args, **kwargs)  # part of what another one traces
        if self.off is not None or _is_unusual():
            return self._uncompiled(args, kwargs)
        why = self._why(args, kwargs)
        if len(self.entries) >= self.limit:
            self._warn(why)
            return self._uncompiled(args, kwargs)
        if not _tracing.acquire(blocking=False):
            self.eager += 1
            return self.function(*args, **kwargs)
        try:
            if why:
                self.log.append(f"traced again: {why}")
            self.traces += 1
            result, entry = trace(self.function, args, kwargs, self.fullgraph, self.compile, (*self.states.values(),))
        finally:
            _tracing.release()
        device = entry.device
        if self.breaks and self.pieces is None and device is not None and device.array is np.ndarray:
            self.pieces = Pieces(device, self.compile)
        if entry.unsettled:
            # Its guards will not hold for the next call; a function that changes them every time is not traced for ever.
            self.log.append(f"not kept: {entry.reason}")
            self.changes += 1
            self.states |= {(id(holder), key): (holder, key) for holder, key in entry.replaced}
            if self.changes >= _CHANGES:
                self.off = entry.reason
        else:
            self.entries.insert(0, entry)
        return result

    def _why(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The first guard that fails in each of the traces; empty before the first."""
        found = [
            next(one.guards.failing(args, kwargs), "a value that the call checks came out otherwise")
            for one in self.entries
        ]
        return "; ".join(dict.fromkeys(found))

    def _warn(self, why: str) -> None:
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"compile: {self.name} was traced {self.traces} times, the limit of {self.limit}, and calls like none of "
                f"these run eagerly from now on; the last one differs in: {why}. Keep it the same from call to call, pass "
                f"it as a tensor, or compile with options={{'limit': ...}}",
                UserWarning,
                stacklevel=5,
            )
