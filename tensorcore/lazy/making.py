"""Making deferred values: which of them, as which program, whether it is known, and running it step by step.

A program is recognised when it comes again: only the first is run step by step as it stands, the second is prepared
(optimised and planned), and from then on it is replayed; a long one is prepared later.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from signal import SIGINT
from typing import TYPE_CHECKING, Any

from tensorcore.backend.program import Program, Value, filled
from tensorcore.backend.turns import renewed
from tensorcore.errors import IndexOutside, KernelMissing, UsageError
from tensorcore.lazy import account
from tensorcore.lazy.drafts import Draft, Work, collect, pending_of
from tensorcore.lazy.kernels import pure_kernels
from tensorcore.lazy.plan import prepare
from tensorcore.lazy.record import Call, Deferred, leaf, line_of
from tensorcore.lazy.tracks import Track

try:  # those of ``signal`` look numbers up in an enum, which costs more than a small program: 20 us for the three calls
    from _signal import getsignal, signal
except ImportError:  # not CPython
    from signal import getsignal, signal

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend
    from tensorcore.lazy.backend import LazyBackend

__all__ = ["limits", "realise", "relieve", "run_steps"]

_lock = renewed(threading.RLock())
# Bytes and calls that are pending from which on it is worth to look for garbage among them first: 50 ms.
_HEAVY = 1 << 26
_MANY = 4096
# A program has to come once more for each so many steps before it is planned, which takes 0.2 s for them.
_LONG = 1000
_TRIES = 4  # tracks laid for a program whose log never is the same again


class Limits:
    """How much may be written down before it is made.

    Attributes:
        bytes: of the values that were written down.
        steps: calls.
        programs: how many programs are remembered.
    """

    def __init__(self) -> None:
        self.bytes = 1 << 30
        self.steps = 20_000
        self.programs = 256


limits = Limits()


class Known:
    """A program that was run before.

    Attributes:
        program: as it was written down, with the numbers that vary as inputs.
        candidates: pairs of an output and an input that it may be written over.
        numbers: those of the last run, in the order of the steps.
        varying: the places among them of those that were not the same at every run.
        plans: take natives, answer with those of the outputs; by the pairs of an output and an input that it is written
            over.
        runs, followed, tracks: how often it came, how often by following a track, and how many were laid.
    """

    __slots__ = ("candidates", "followed", "numbers", "plans", "program", "runs", "tracks", "varying")

    def __init__(self, numbers: list[Any]) -> None:
        self.program: Program | None = None
        self.candidates: tuple[tuple[int, int], ...] = ()
        self.numbers = numbers
        self.varying: list[int] = []
        self.plans: dict[tuple[tuple[int, int], ...], Callable[..., tuple[Any, ...]]] = {}
        self.runs = self.tracks = self.followed = 0


_known: OrderedDict[Any, Known] = OrderedDict()


def relieve(backend: LazyBackend) -> None:
    """Make all that is pending, if that is really as much as the limits say."""
    with _lock:
        full = _is_full(backend)
        if full and (backend.pending > _HEAVY or len(backend.log) > _MANY):
            gc.collect()  # what only circles of objects hold is not worth making
            full = _is_full(backend)
        if full:
            try:
                realise(backend, None, "budget")
            except account.Forbidden:
                raise
            except Exception:
                # What cannot be made says so to whoever reads it, not to the next line that writes something down.
                for one in pending_of(backend):
                    with suppress(Exception):
                        realise(backend, [one], "budget")


def _is_full(backend: LazyBackend) -> bool:
    """Whether more than half of what the limits allow is pending, which is counted anew."""
    found = pending_of(backend)
    backend.pending = sum([one.call.nbytes for one in found])
    return backend.pending > limits.bytes // 2 or len(found) > limits.steps // 2


def realise(backend: LazyBackend, asked: Sequence[Deferred] | None, cause: str | None = None) -> None:
    """Make these values, and what was written down from the same ones; all that is pending where None.

    Args:
        cause: what for; the function that the user's program called where None.
    """
    with _lock:
        frame = sys._getframe(1)
        started = time.perf_counter()
        account.check(frame, cause)
        size, steps, replayed = _make(backend, asked)
        account.note(frame, cause, size, steps, time.perf_counter() - started, replayed)


def _make(backend: LazyBackend, asked: Sequence[Deferred] | None) -> tuple[int, int, bool]:
    """Bytes, steps, and whether it was a replay."""
    if asked is None:
        found = _run(backend, pending_of(backend), ())
    else:
        size = sum([_bring(one) for one in asked if one.call.kernel is None and one.call.part is None])
        try:
            followed = _followed(backend, asked)
            if followed is not None:
                return followed
            found = _run(backend, collect(backend, asked), asked)
        except Exception:
            if any([one.operands == (_lost,) for one in asked]):
                raise
            # It may have come from what was only made along with it.
            found = _run(backend, collect(backend, asked, along=False), asked)
        found = size + found[0], found[1], found[2]
    pending_of(backend, settle=True)
    return found


def _followed(backend: LazyBackend, asked: Sequence[Deferred]) -> tuple[int, int, bool] | None:
    """As ``_make`` where the log is what it was before the program that made such values the last time."""
    count = len(backend.log)
    known, track, size = backend.tracks.get((count, *[one.call for one in asked]), (None, None, 0))
    if known is None or known.varying is not track.varying:
        return None
    work = track.follow(backend.log[track.first : count], asked)
    if work is None:
        return None
    known.followed += 1
    steps = track.count
    brought = sum([_bring(one) for one in work.inputs if one.native is None])
    _replay(backend, known, work, work.outputs, work.varied)
    backend.pending = max(0, backend.pending - size)
    del backend.log[track.first : count]
    return brought + size, steps, True


def _run(backend: LazyBackend, members: list[Deferred], asked: Sequence[Deferred]) -> tuple[int, int, bool]:
    if not members:
        return 0, 0, False
    draft = Draft(members)
    outputs = draft.held(members, asked)
    members.clear()
    size = sum([_bring(one) for one in draft.inputs if one.native is None])
    known = _recognised((id(backend.target), *draft.key), draft)
    if known.program is None:
        known.program = draft.program(outputs, known.varying)
        known.candidates = draft.candidates(outputs)
    known.runs += 1
    varied = [draft.numbers[i] for i in known.varying]
    computed = sum([one.call.nbytes for one in draft.steps])
    planned = known.runs > 1 + len(draft.steps) // _LONG
    if planned:
        if asked and known.tracks <= _TRIES + known.followed:
            _track(backend, known, draft, asked, outputs, computed)
        _replay(backend, known, draft, outputs, varied)
    else:
        natives = [*[one.native for one in draft.inputs], *varied]
        _hand_out(outputs, run_steps(known.program, backend.target, natives, draft.steps))
    backend.pending = max(0, backend.pending - computed)
    return size + computed, len(draft.steps), planned


def _track(
    backend: LazyBackend,
    known: Known,
    draft: Draft,
    asked: Sequence[Deferred],
    outputs: Sequence[Deferred],
    size: int,
) -> None:
    """Remember the log as it is, if what is pending there is of this program, but for what was there before it."""
    log = [None if (one := reference()) is None or one.native is not None else one for reference in backend.log[:]]
    first = next(i for i, one in enumerate(log) if one in draft.places)
    if any([one is not None and one not in draft.places for one in log[first:]]):
        return
    if len(backend.tracks) > limits.programs:
        backend.tracks.clear()
    known.tracks += 1
    track = Track(log, first, draft, asked, outputs, known.varying)
    backend.tracks[(len(log), *[one.call for one in asked])] = known, track, size


def _hand_out(outputs: Sequence[Deferred], made: Sequence[Any]) -> None:
    for one, native in zip(outputs, made, strict=True):
        one.native = native
        one.operands = ()


def _replay(backend: LazyBackend, known: Known, work: Work, outputs: Sequence[Deferred], varied: Sequence[Any]) -> None:
    """Make the outputs of a program by its plan."""
    assert known.program is not None
    target = backend.target
    into = work.replaced(known.candidates) if target.capabilities.host else ()
    plan = known.plans.get(into)
    if plan is None:
        forms = [one.call.forms[0] for one in work.inputs]
        strides = [None if one is None or one.dense else one.strides for one in forms] + [None] * len(known.varying)
        plan = known.plans[into] = prepare(known.program, target, into=dict(into), strides=strides)
    natives = [*[one.native for one in work.inputs], *varied]
    if into:
        # Ctrl-C waits: a program that writes over its inputs is run as a whole, or not at all.
        came: list[Any] = []
        before = getsignal(SIGINT)
        waits = callable(before)
        try:
            if waits:
                signal(SIGINT, lambda *given: came.append(given))
        except ValueError:  # on another thread than the main one, where no signal arrives
            waits = False
        try:
            _hand_out(outputs, plan(*natives))
        except BaseException as error:
            found = error
            if isinstance(error, Exception):
                try:
                    run_steps(known.program, target, natives, work.steps)
                except Exception as located:
                    found = located
            for one in outputs:
                one.call, one.operands = leaf(one.call.forms[0].based).call, (_lost,)  # type: ignore[union-attr]
            raise found from None
        finally:
            if waits:
                signal(SIGINT, before)
        if came:
            before(*came[-1])  # type: ignore[operator, misc]
        return
    try:
        made = plan(*natives)
    except Exception as error:
        # Step by step, which says which step it was: nothing was written over, so it can be run again.
        made = run_steps(known.program, target, natives, work.steps)
        warnings.warn(f"lazy: a plan failed where its steps do not: {error!r}; please report it", stacklevel=2)
    _hand_out(outputs, made)


def _lost() -> Any:
    raise UsageError(
        "lazy: expected values that an earlier program made, got none, for an error stopped it midway, after it had begun to "
        "write over its inputs; load the last checkpoint, or make the tensor anew"
    )


def _recognised(key: Any, draft: Draft) -> Known:
    """What is known of this program; numbers that are not those of the last run become its inputs."""
    known = _known.get(key)
    if known is None:
        known = _known[key] = Known(draft.numbers)
        if len(_known) > limits.programs:
            _known.popitem(last=False)
        return known
    _known.move_to_end(key)
    if known.numbers != draft.numbers:
        other = {i for i, (a, b) in enumerate(zip(known.numbers, draft.numbers, strict=True)) if a != b}
        if not other <= set(known.varying):
            known.varying = sorted({*known.varying, *other})
            known.program = None
            known.plans.clear()
            known.runs = 0
        known.numbers = draft.numbers
    return known


def _bring(one: Deferred) -> int:
    """Make a value that no kernel makes; how many bytes that were."""
    if one.native is not None:
        return 0
    one.native = one.operands[0]()
    one.operands = ()
    return int(one.call.nbytes)


def run_steps(program: Program, target: Backend, natives: Sequence[Any], steps: Sequence[Deferred]) -> list[Any]:
    """Run a program as it stands; values that are not needed any more are freed, and an error names the line."""
    kernels = pure_kernels(target)
    as_native, array = target.as_native, target.array
    values: dict[int, Any] = dict(enumerate(natives))
    last = _last_uses(program)
    kept = {one.number for one in program.outputs}
    number = len(program.inputs)

    for i, step in enumerate(program.steps):
        operands = [filled(one, values) for one in step.operands]
        options = {key: filled(one, values) for key, one in step.options.items()}
        try:
            made = kernels[step.kernel](*operands, **options)
        except Exception as error:
            raise _located(error, step.kernel, steps[i]) from None
        del operands, options
        if len(step.makes) == 1 and not isinstance(made, tuple | list):
            values[number] = made if type(made) is array else as_native(made)
            number += 1
        else:
            found = _counted(made, steps[i].call)
            if len(found) != len(step.makes):
                raise KernelMissing(
                    f"{step.kernel}: expected {len(step.makes)} results on {target}, got {len(found)}; run it without lazy"
                )
            for one in found:
                values[number] = one if type(one) is array else as_native(one)
                number += 1
        for dead in last.get(i, ()):
            if dead not in kept:
                values.pop(dead, None)
    return [values[one.number] for one in program.outputs]


def _counted(made: Any, call: Call) -> list[Any]:
    """The results that a call counts; a kernel may answer with more, for which nobody asked."""
    if len(made) == len(call.forms):
        return [one for one, form in zip(made, call.forms, strict=True) if form is not None]
    return [one for one in made if one is not None]


def _last_uses(program: Program) -> dict[int, list[int]]:
    """For each step the values that no later one takes."""
    last: dict[int, int] = {}

    def use(operand: Any, i: int) -> None:
        if type(operand) is Value:
            last[operand.number] = i
        elif type(operand) is tuple:
            for one in operand:
                use(one, i)

    number = len(program.inputs)
    for i, step in enumerate(program.steps):
        for _ in step.makes:
            last[number] = i
            number += 1
        for operand in step.operands:
            use(operand, i)
        for option in step.options.values():
            use(option, i)
    found: dict[int, list[int]] = {}
    for value, i in last.items():
        found.setdefault(i, []).append(value)
    return found


def _located(error: Exception, kernel: str, step: Deferred) -> Exception:
    """The error with the line that wrote the step down."""
    kernel = step.call.options.get("kernel", kernel.partition(":")[0])
    where = f"written down as '{kernel}' at {line_of(*step.line[2:])}"
    if type(error) is IndexError:  # a kernel's own
        return IndexOutside(
            f"{kernel}: expected every index inside its dimension, got one outside: {error}; check the index ({where})"
        )
    text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    error.args = (f"{text} ({where})", *error.args[1:])
    return error
