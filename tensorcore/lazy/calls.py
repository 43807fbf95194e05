"""Kernels that write down one call: those with a shape rule, and views.

A call is recognised by the forms of what it takes and its options; the shape rule runs for new ones alone.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from tensorcore.backend.base import Kernel
from tensorcore.errors import ValuesMissing
from tensorcore.lazy.arrays import LazyArray, view
from tensorcore.lazy.making import limits, relieve
from tensorcore.lazy.record import Call, Deferred, call_of, frozen

if TYPE_CHECKING:
    from tensorcore.lazy.recording import Recorder

__all__ = ["NUMBERS", "is_simple", "recording", "viewed", "viewing"]

NUMBERS = frozenset([int, float, bool, complex])
_ABSENT = object()
_SIMPLE = NUMBERS | {LazyArray, type(None)}
getframe, reference = sys._getframe, weakref.ref


def recording(recorder: Recorder, kind: str, numbers: bool) -> Kernel:
    """A kernel with a shape rule. ``numbers`` says that its result's shape may depend on numbers it is given."""
    read, log, lines = recorder.read, recorder.log, recorder.lines
    calls: dict[Any, Call] = {}

    def kernel(x: Any = _ABSENT, y: Any = _ABSENT, /, *more: Any, out: LazyArray | None = None, **options: Any) -> Any:
        known: tuple[Any, ...] = ()
        operands: Any
        # A shorter way to the same, for what most calls are.
        if type(x) is LazyArray and x.parent is None and not options and not more:
            if type(y) is LazyArray:
                if y.parent is None:
                    known, operands = (x.form, y.form), (x.value, y.value)
            elif y is _ABSENT:
                known, operands = (x.form,), (x.value,)
            elif type(y) in NUMBERS and not numbers:
                known, operands = (x.form, type(y)), (x.value, y)
        if not known:
            key: list[Any] = []
            operands = []
            for one in () if x is _ABSENT else (x,) if y is _ABSENT else (x, y, *more):
                if type(one) is LazyArray:
                    if one.parent is None:  # at the start of its memory
                        key.append(one.form)
                        operands.append(one.value)
                    else:
                        key.append(one.form.based)
                        operands.append(read(one))
                else:
                    if one is None or type(one) is str:
                        key.append(one)
                    else:
                        key.append(frozen(one) if numbers or type(one) not in NUMBERS else type(one))
                    operands.append(one)
            if options:
                for name, one in options.items():
                    key += (name, type(one), one if type(one) is not float else one.hex())
            known, operands = tuple(key), tuple(operands)
        try:
            call = calls.get(known)
        except TypeError:  # a list among the options, or a slice
            call, known = None, ()
        if call is None:
            natives = () if x is _ABSENT else (x,) if y is _ABSENT else (x, y, *more)
            try:
                call, value, lasting = recorder.general(kind, natives, options)
            except ValuesMissing:  # the shape depends on what is counted here, such as repeats
                return recorder.needing(kind)(*natives, **options)
            if known and lasting:
                if len(calls) > 4096:
                    calls.clear()
                calls[known] = call
        elif call.kernel is None:
            return None
        else:
            # All of ``write_down`` is written out here, and of ``around`` below: a call of Python's for each is a third of the time.
            at = len(log)
            if recorder.pending > limits.bytes or at > limits.steps:
                relieve(recorder)
                at = len(log)
            value = Deferred()
            value.call = call
            value.operands = operands
            value.native = None
            try:
                line = lines[at]
                before, depth, code, place = line
                if before is not call or (frame := getframe(depth)).f_code is not code or frame.f_lasti != place:
                    line = recorder.line(call)
            except (IndexError, ValueError):
                line = recorder.line(call)
            value.line = line
            log.append(reference(value))
            recorder.pending += call.nbytes
        if out is not None:
            recorder.put(out, value)
            return out
        if call.several:
            return recorder.parts(call, value)
        one = call.forms[0]
        if one is None:
            return None
        made = LazyArray()
        made.form = one
        made.shape = one.shape
        made.dtype = one.dtype
        made.parent = None
        made.value = value
        made.writes = 0
        return made

    return kernel


def viewed(parent: LazyArray, name: str, options: dict[str, Any]) -> Any:
    key = (name, parent.form, *options, *map(frozen, options.values()))
    call = call_of(name, key, (parent.form,), options)
    return None if call.kernel is None else view(parent, call)


def viewing(name: str) -> Kernel:
    calls: dict[Any, Call] = {}

    def kernel(x: LazyArray, **options: Any) -> LazyArray | None:
        if name == "index":  # True is another place than 1, and equal to it
            return viewed(x, name, options)  # type: ignore[no-any-return]
        key = (x.form, *options, *options.values())
        try:
            call = calls.get(key)
        except TypeError:  # a list among them
            return viewed(x, name, options)  # type: ignore[no-any-return]
        if call is not None:
            return view(x, call)
        made = viewed(x, name, options)
        if made is not None:
            if len(calls) > 4096:
                calls.clear()
            calls[key] = made.call
        return made  # type: ignore[no-any-return]

    return kernel


def is_simple(one: Any) -> bool:
    """Whether an operand is its own part of the key of a call, and nothing but its form or its value."""
    return type(one) in _SIMPLE or (type(one) is tuple and all(type(each) is int for each in one))
