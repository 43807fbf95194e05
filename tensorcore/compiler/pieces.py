"""Graph breaks: a call that reads values runs as Python, and what its kernels do between two reads runs as one program.

A kernel that is put off answers with an array of the right layout that has no values yet. Where Python needs a value, and
where the call ends, all that was put off is computed: the first time kernel by kernel, from the second time on by a plan.
So Python sees what it ever saw, at the lines where it did.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend, Kernel, MissingKernel
from tensorcore.backend.kernels import EAGER, NEEDS_VALUES
from tensorcore.backend.shapes import VIEWS
from tensorcore.backend.watch import Replaced, unwatch, watch
from tensorcore.compiler.build import needed_steps, program_of
from tensorcore.compiler.log import Call, Log, arrays
from tensorcore.compiler.tracer import UPDATES, Tracer
from tensorcore.dtypes import from_numpy_dtype
from tensorcore.lazy.kinds import ACTIVATIONS, ELEMENTWISE, REDUCTIONS, ROWS
from tensorcore.lazy.plan import prepare
from tensorcore.lazy.record import line_of, user_line
from tensorcore.tape.aside import Event
from tensorcore.tape.mode import mode

__all__ = ["Pieces"]

_KEPT = 64  # programs that are remembered
_LAYOUTS = 4096
# What values may stop, such as a division of ints, has to stop at its line.
_STOPPING = frozenset(["floor_divide", "fmod", "pow", "remainder", "trunc_divide"])
# What may become part of a fused kernel; others, such as products, gain nothing by waiting.
_PUT_OFF = (ELEMENTWISE | ACTIVATIONS | REDUCTIONS | ROWS | {"clone", "contiguous", "full"}) - _STOPPING
# Methods that look at values, and which of their arguments are arrays.
_METHODS = {"to_host": (0,), "draw": (1, 2, 3, 4), "copy_from": ()}
_MISSING = object()


class Known:
    """A program that was run before.

    Attributes:
        plan: its plan, with the places of what that takes; None while there is none.
        wanted: the places of the arrays that it made values of.
        then: the program that came after it the last time.
    """

    __slots__ = ("plan", "runs", "then", "wanted")

    def __init__(self, wanted: frozenset[int] = frozenset()) -> None:
        self.runs = 0
        self.plan: tuple[Callable[..., Any], list[int]] | None = None
        self.wanted = wanted
        self.then: Known | None = None


class Pieces:
    """The programs of one function between its reads.

    Attributes:
        breaks: how many programs ended at each line where Python needed a value.
        calls: how many calls ran so.
        programs: how many programs they ran, and of these ``replays`` by a plan.
    """

    def __init__(self, device: Backend, compile: Any = None) -> None:
        self.device, self.compile = device, compile
        # Of what a kernel gives for arrays of some layouts: None where it has to run at once.
        self.layouts: dict[Any, tuple[bool, list[Any]] | None] = {}
        self.known: OrderedDict[Any, Known] = OrderedDict()
        self.first = Known()  # stands before the first program of a call
        self.breaks: dict[str, int] = {}
        self.calls = self.programs = self.replays = 0

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function; its kernels are put off."""
        self.calls += 1
        with _Run(self):
            return function(*args, **kwargs)


class _Run(Log):
    """One call."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces, self.last = pieces, pieces.first
        super().__init__(pieces.device)
        self.busy = False
        self.replaced = Replaced()
        self._thread = threading.get_ident()

    def begin(self) -> None:
        """A new log, which will likely be that of the program that came after the last one before."""
        then = self.last.then
        self.likely: frozenset[int] = frozenset() if then is None else then.wanted
        super().begin()

    def __enter__(self) -> _Run:
        watch(self._around, self.device)
        for name, places in _METHODS.items():
            self.replaced.put(self.device, name, self._settling(getattr(self.device, name), places))
        self.replaced.put(self.device, "as_strided", self._as_strided(self.device.as_strided))
        mode.trace(self)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.settle()
        finally:
            mode.trace(None)
            self.replaced.give_back()
            unwatch(self._around, self.device)

    # What the compiler asks of whoever is at ``mode.tracer``

    def call(self, event: Event, run: Callable[[], Any]) -> Any:
        """Python makes the call as ever."""
        return run()

    def fail(self, reason: str) -> None:
        """What comes is no part of what was put off."""
        self.settle()

    # Putting off

    def _around(self, device: Backend, name: str, kernel: Kernel) -> Kernel:
        if name in EAGER:
            return MissingKernel(device, name)
        put = (
            self._view if name in VIEWS else self._write if name in ("copy", "fill") or name in UPDATES
            else self._plain if name in _PUT_OFF else self._at_once
        )  # fmt: skip

        def put_off(*natives: Any, **options: Any) -> Any:
            if self.busy or threading.get_ident() != self._thread:
                return kernel(*natives, **options)
            return put(name, kernel, natives, options)

        return put_off

    def _view(self, name: str, kernel: Kernel, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        result = kernel(*natives, **options)
        if result is not None and result is not natives[0]:
            self.note(Call(name, kernel, natives, options, (result,)))
            if id(natives[0]) in self.made:
                self.made.add(id(result))
        return result

    def _write(self, name: str, kernel: Kernel, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        for one in natives[: UPDATES.get(name, 1)]:
            if one is not None and id(one) not in self.made:
                self.written.add(self.device.storage_key(one))
        self.note(Call(name, kernel, natives, options, ()))
        return natives[0] if name not in UPDATES else None

    def _plain(self, name: str, kernel: Kernel, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        out = options.get("out")
        if out is None and name == "add" and len(natives) == 3:
            natives, out = natives[:2], natives[2]
            options = {"out": out}
        if out is not None:
            if id(out) not in self.made:
                self.written.add(self.device.storage_key(out))
            self.note(Call(name, kernel, natives, options, ()))
            return out
        codes, forms = self.codes(natives, numbers=name not in ELEMENTWISE)
        also, others = self.codes(tuple(options.values())) if options else ((), ())
        try:
            key = name, forms, *options, others
            layouts = self.pieces.layouts.get(key, _MISSING)
        except TypeError:
            layouts = None
        if layouts is None or layouts is _MISSING:
            self.uncount(natives, options)
            made = self._at_once(name, kernel, natives, options)
            if layouts is _MISSING:
                if len(self.pieces.layouts) >= _LAYOUTS:
                    self.pieces.layouts.clear()
                self.pieces.layouts[key] = self._layouts(made, natives)
            return made
        several, each = layouts
        if not several and each[0] is None:  # it leaves such a call to others
            self.uncount(natives, options)
            return None
        made = tuple([None if one is None else self._empty(i, *one) for i, one in enumerate(each, len(self.order))])
        self.calls.append(Call(name, kernel, natives, options, made))
        self.key += (name, codes, *options, also)
        for one, layout in zip(made, each, strict=True):
            if one is not None:
                self.enter(one, layout[3])
                self.made.add(id(one))
        return made if several else made[0]

    def _at_once(self, name: str, kernel: Kernel, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        given = [*arrays(natives), *arrays(tuple(options.values()))]
        if any(map(self.waits, given)):
            self.settle(name in NEEDS_VALUES)
        self.busy = True
        try:
            return kernel(*natives, **options)
        finally:
            self.busy = False

    def _settling(self, own: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
        def settling(*args: Any, **options: Any) -> Any:
            if not self.busy and threading.get_ident() == self._thread:
                given = [args[i] for i in places if i < len(args)]
                if not places or any(map(self.waits, arrays(tuple(given)))):
                    self.settle(reads=True)
            return own(*args, **options)

        return settling

    def _as_strided(self, own: Callable[..., Any]) -> Callable[..., Any]:
        def as_strided(native: Any, shape: Any, strides: Any, offset: int) -> Any:
            made = own(native, shape, strides, offset)
            if not self.busy and threading.get_ident() == self._thread and self.waits(native):
                self.settle(reads=True)
            return made

        return as_strided

    def _layouts(self, made: Any, natives: tuple[Any, ...]) -> Any:
        """Of what a kernel gave; None where it has to run at once: it gave numbers, or memory that was there."""
        several = type(made) is tuple or type(made) is list
        if several and len(made) < 2:
            return None
        device, each = self.device, made if several else (made,)
        keys = {device.storage_key(one) for one in arrays(natives)}
        found = []
        for one in each:
            native = device.as_native(one) if hasattr(one, "shape") else one
            if native is None:
                found.append(None)
            elif type(native) is not np.ndarray or device.storage_key(native) in keys:
                return None
            else:
                form = native.shape, native.strides, native.dtype
                found.append((native.shape, from_numpy_dtype(native.dtype), device.strides(native), form))
        return several, found

    def _empty(self, place: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...], form: Any) -> Any:
        """An array of a layout; where it was nobody's the last time, over memory that is only taken if it is written."""
        make = self.device.allocate if place in self.likely else _untouched
        made = make(shape, dtype)
        if made.strides == form[1] or 0 in shape:
            return made
        # As dense as the one that was seen, in another order of its dims.
        order = sorted(range(len(shape)), key=lambda i: -strides[i])
        return make(tuple([shape[i] for i in order]), dtype).transpose(np.argsort(order))

    # Computing what was put off

    def settle(self, reads: bool = False) -> None:
        """Compute all that was put off; ``reads`` says that Python needs a value, at the line where it is."""
        if not self.calls or self.busy:
            return
        self.busy = True
        try:
            self._compute()
        except BaseException:
            for one in self.order:
                if id(one) in self.made and one.dtype.kind in "fc":
                    one[...] = np.nan  # whoever goes on with it shall see it
            raise
        finally:
            self.begin()
            self.busy = False
        if reads:
            line = line_of(*user_line(sys._getframe(1)))
            self.pieces.breaks[line] = self.pieces.breaks.get(line, 0) + 1

    def _compute(self) -> None:
        pieces, order = self.pieces, self.order
        wanted = self.wanted()
        keys = list(map(self.device.storage_key, order)) if self.written else []
        known = None
        try:
            key = *self.key, tuple(wanted), tuple([keys.index(one) for one in keys])
            known = pieces.known[key] = pieces.known.pop(key, None) or Known(frozenset(wanted))
        except TypeError:  # an option without a hash
            pass
        pieces.programs += 1
        if known is not None:
            self.last.then, self.last = known, known
            if len(pieces.known) > _KEPT:
                pieces.known.popitem(last=False)
            known.runs += 1
            if known.runs == 2:
                known.plan = self._planned(wanted)
            if known.plan is not None:
                plan, places = known.plan
                plan(*[order[i] for i in places])
                pieces.replays += 1
                return
        for call in self.calls:
            if call.name in VIEWS:
                continue
            made = call.kernel(*call.natives, **call.options)
            for place, one in zip(call.results, made if len(call.results) > 1 else (made,), strict=False):
                if place is not None:
                    place[...] = one

    def _planned(self, wanted: list[int]) -> tuple[Callable[..., Any], list[int]] | None:
        """A plan of what is in the log, and the places of the arrays that it takes; None where there can be none."""
        tracer, device = Tracer(), self.device
        tracer.device = device
        for call in self.calls:
            made = call.results or (call.options.get("out"),)
            tracer.note(device, call.name, call.natives, dict(call.options), made if len(made) > 1 else made[0])
        if tracer.reason is not None:
            return None
        writes = []
        for place in wanted:
            native = self.order[place]
            value = tracer.value_of(native)
            writes.append((value, tracer.outside(native)))
        tracer.cut()
        if tracer.reason is not None:
            return None
        segment = tracer.segments[0]
        segment.writes += writes
        program, inputs, _, into = program_of(segment, needed_steps(segment, set()), [], tracer)
        unwatch(self._around, device)  # a plan keeps the kernels themselves
        try:
            strides = [tracer.strides.get(one) for one in inputs]
            plan = prepare(program, device, into=into, strides=strides, compile=self.pieces.compile)
        finally:
            watch(self._around, device)
        return plan, [self.places[id(tracer.given[one])] for one in inputs]


def _untouched(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.empty(shape, dtype.numpy)
