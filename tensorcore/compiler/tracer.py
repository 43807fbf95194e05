"""The tracer: while a function runs as ever, it writes the kernel calls down as steps that change nothing.

Writes into arrays become new values of the memory they go to; views taken of it before are taken anew when they are
read again. What the function does apart from tensors is not seen: it happens in the call that is traced, once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend, Kernel, MissingKernel
from tensorcore.backend.kernels import EAGER, NEEDS_VALUES, WRITES
from tensorcore.backend.program import Step, Value
from tensorcore.backend.registry import made_devices
from tensorcore.backend.shapes import VIEWS
from tensorcore.backend.twister import Twister
from tensorcore.backend.watch import Replaced, unwatch, watch
from tensorcore.compiler.bounds import Bound, Bounds, Values
from tensorcore.compiler.memories import Known, Memories, Memory, spec_of
from tensorcore.compiler.objects import flat_tensors, is_library
from tensorcore.errors import UsageError
from tensorcore.lazy.account import cause_of
from tensorcore.lazy.kinds import used
from tensorcore.lazy.record import is_inside, user_frame
from tensorcore.ops.creation.random import Generator, default_generator
from tensorcore.tape.aside import Event
from tensorcore.tape.mode import mode

__all__ = ["UPDATES", "Tracer"]

_METHODS = ("all_values", "to_host", "from_host", "share_host", "allocate", "as_strided", "random", "draw", "copy_from")
_PLACED = ("add_rows", "take_rows")  # kernels whose option ``index`` is an array of the host, on any device
UPDATES = {"track_statistics": 2}  # kernels that write to their first operands, and to how many


class Tracer(Memories):
    """Writes down what this thread's kernels do while ``with`` lasts.

    Args:
        fullgraph: raise at what cannot be written down, instead of going on without writing.

    Attributes:
        line: of the program, where something happened that cannot be replayed.
        events: calls left to Python, each after the segment of the same position.
    """

    def __init__(self, fullgraph: bool = False) -> None:
        super().__init__()
        self.fullgraph = fullgraph
        self.line = ""
        self.events: list[Event] = []
        self.on_event: Callable[[Event | None], None] | None = None
        self.draws: list[int] = []  # the values that were drawn, in order
        self.sources: dict[int, Any] = {}  # what draws, by ``id``
        self.strangers = False  # whether something else draws, which cannot be put back
        self.done: set[int] = set()  # the segments after which a replay does what cannot be taken back
        self._drawn_before: Iterator[int] | None = None  # those of them that are drawn again
        self.shared: dict[int, Any] = {}  # constants that lie in the memory of an array that Python holds
        self.final: int | None = None  # where the backward pass behind the call begins, by segment
        self.late: set[int] = set()  # the gradients that arrive at it
        self.looked_at: list[
            tuple[Any, bytes]
        ] = []  # arrays that Python has of what is the same in each replay, and what they held
        self._inside = False
        self._thread = threading.get_ident()
        self._replaced = Replaced()

    def __enter__(self) -> Tracer:
        watch(self._around)
        for device in made_devices():
            if device.capabilities.values and device.wraps is None:
                for name in _METHODS:
                    self._patch(device, name)
        mode.trace(self)
        return self

    def __exit__(self, *error: object) -> None:
        mode.trace(None)
        self._replaced.give_back()
        unwatch(self._around)

    # What the compiler asks and says

    def fail(self, reason: str) -> None:
        """Stop writing: this call cannot be replayed."""
        if self.reason is not None:
            return
        self.line = _line()
        self.reason = reason
        if self.fullgraph:
            raise UsageError(f"compile: expected a function that can be replayed as one graph, got one that {reason} "
                             f"at {self.line}; compute it in tensors (where, clamp, ...), or drop fullgraph=True to run "
                             f"such calls without compiling")  # fmt: skip

    def fail_unless_paused(self, reason: str) -> None:
        """As ``fail``, where the trace does not look away."""
        if not self._inside:
            self.fail(reason)

    def call(self, event: Any, run: Callable[[], Any]) -> Any:
        """Let Python make a call that is not written down, and that each replay makes again."""
        if self.reason is not None or self._inside:
            return run()
        self.part()
        if self.on_event is not None:
            self.on_event(None)
        self.cut()
        seeds = isinstance(event.owner, Generator)
        if not (seeds or event.again):
            self.done.add(len(self.events))
        self.events.append(event)
        self._inside = True
        try:
            result = run()
        finally:
            self._inside = False
        if seeds:
            self._draws_from(event.owner.host)
        if self.on_event is not None:
            self.on_event(event)
        return result

    @contextmanager
    def drawing_again(self, first: int) -> Iterator[None]:
        """In the block, what is drawn are the numbers that the call drew before, from the ``first`` time on."""
        before, self._drawn_before = self._drawn_before, iter(self.draws[first:])
        try:
            yield
        finally:
            self._drawn_before = before

    def pause(self, paused: bool) -> None:
        """Look away, or look on again."""
        self._inside = paused

    # Looking on

    def _around(self, device: Backend, name: str, kernel: Kernel) -> Kernel:
        if name in EAGER:
            return MissingKernel(device, name)

        def traced(*natives: Any, **options: Any) -> Any:
            if self._inside or self.reason is not None or threading.get_ident() != self._thread:
                return kernel(*natives, **options)
            if device.wraps is not None or not device.capabilities.values:
                return kernel(*natives, **options)
            self._inside = True
            try:
                result = kernel(*natives, **options)
                if type(result) is tuple or type(result) is list:
                    result = tuple([self._native(device, one) for one in result])
                else:
                    result = self._native(device, result)
                return self.note(device, name, natives, dict(options), result)
            finally:
                self._inside = False

        return traced

    def _patch(self, device: Backend, name: str) -> None:
        own = getattr(device, name)
        note = getattr(self, f"_note_{name}")

        def traced(*args: Any, **options: Any) -> Any:
            if self._inside or self.reason is not None or threading.get_ident() != self._thread:
                return own(*args, **options)
            self._inside = True
            try:
                result = own(*args, **options)
                note(device, result, *args, **options)
            finally:
                self._inside = False
            return result

        self._replaced.put(device, name, traced)

    def _native(self, device: Backend, value: Any) -> Any:
        return device.as_native(value) if type(value) is not device.array and hasattr(value, "shape") else value

    def note(self, device: Backend, name: str, natives: tuple[Any, ...], options: dict[str, Any], result: Any) -> Any:
        if not self._one_device(device, name):
            return result
        if name == "index_bounds":
            bounds = Bounds()
            self._check("bounds", self.value_of(natives[0]), bounds)
            return Bound.of(result[0], bounds, 0), Bound.of(result[1], bounds, 1)
        if name in ("copy", "fill"):
            self.write(natives[0], self.filled(natives[0], natives[1]), self._dense(natives[1:]))
        elif name in VIEWS:
            if result is not None:
                self._view(natives[0], result, name, options)
        elif name in UPDATES:
            self._update(name, natives, options)
        elif name in NEEDS_VALUES and all(map(self.is_fixed, used(self._operand([*natives, *options.values()])))):
            for one in result if type(result) is tuple else (result,):
                if type(one) is device.array:
                    self._note_from_host(device, one, None)
        elif name in NEEDS_VALUES or name in WRITES:
            self.fail(f"calls the kernel {name!r}, which depends on values," if name in NEEDS_VALUES else
                      f"calls the kernel {name!r} outside of an optimizer")  # fmt: skip
        else:
            self._plain(device, name, natives, options, result)
        return result

    def _plain(self, device: Backend, name: str, natives: Any, options: dict[str, Any], result: Any) -> None:
        out = options.pop("out", None)
        if out is None and name == "add" and len(natives) == 3:
            natives, out = natives[:2], natives[2]
        operands = tuple([self._operand(one) for one in natives])
        placed = name in _PLACED
        options = {
            key: self._place(one) if placed and key == "index" else self._operand(one) for key, one in options.items()
        }
        if self.reason is not None:
            return
        results = result if type(result) is tuple else (result,)
        if type(result) is tuple and len(result) == 1:
            self.fail(f"calls the kernel {name!r}, which answers with a tuple of one,")
        if not all(one is None or type(one) is device.array for one in results):
            self.fail(f"asks for a number that the kernel {name!r} computes")
        if self.reason is not None:
            return
        if out is not None:
            made = self.emit(name, operands, options, spec_of(result))[0]
            self.write(out, made, self._dense(natives))
            return
        if any(one is given for one in results for given in natives if one is not None):
            if len(results) > 1:
                self.fail(f"calls the kernel {name!r}, which answers with what it was given,")
            return
        keys = list(map(self.key_of, results))
        if any(key in self._memories for key in keys if key is not None):
            self.fail(f"calls the kernel {name!r}, which answers with memory of another array,")
            return
        numbers = self.emit(name, operands, options, *[spec_of(one) for one in results])
        for one, number, key in zip(results, numbers, keys, strict=True):
            if one is not None:
                self.enter(one, Memory("made", number), number, key)

    def _view(self, source: Any, result: Any, name: str, options: dict[str, Any]) -> None:
        if result is source:
            return
        parent = self.find(source)
        options = {key: tuple(one) if type(one) is list else one for key, one in options.items()}
        number = self.emit(name, (Value(self._value(parent)),), options, spec_of(result))[0]
        self._lies(result, number)
        step = name, tuple(options.items())
        self.know(result, Known(result, parent.memory, number, parent, step))

    def _update(self, name: str, natives: tuple[Any, ...], options: dict[str, Any]) -> None:
        targets = tuple(i for i in range(UPDATES[name]) if natives[i] is not None)
        if len({id(self.find(natives[i]).memory) for i in targets}) < len(targets):
            self.fail(f"calls the kernel {name!r}, which writes to one memory twice,")
        operands = tuple([self._operand(one) for one in natives])
        specs = [spec_of(natives[i]) for i in targets]
        given = {"kernel": name, "targets": targets, "options": tuple(options.items())}
        for i, number in zip(targets, self.emit("update", operands, given, *specs), strict=True):
            self.write(natives[i], number)

    # Methods of the device

    def _note_to_host(self, device: Backend, result: Any, native: Any) -> None:
        if not self._one_device(device, "to_host"):
            return
        if self.is_fixed(self.value_of(native)):
            self.looked_at.append((result, result.tobytes()))
        else:
            self.fail(f"reads a value of a tensor, {_where()},")

    def _note_all_values(self, device: Backend, result: Any, native: Any) -> None:
        """Values that a decision is made by: the call is replayed as long as they are the same."""
        if self._one_device(device, "all_values"):
            self._check("values", self.value_of(native), Values(result))

    def _check(self, kernel: str, value: int, holds: Any) -> None:
        """Have replays check a value before they do what cannot be taken back: what they drew by then can.

        The backward pass behind the call is checked by the forward pass, at what does not depend on the gradient that arrives.
        """
        if self.is_fixed(value):
            return
        here = len(self.segments) - 1
        last = self.last_free() if self.final is None else min(self.last_free(), self.final - 1)
        if self.strangers:
            self.fail(f"checks a value of a tensor, {_where()}, after it drew from a generator that cannot be put back")
        elif last == here or self._brought(value, last):
            self.segments[last].steps.append((Step(kernel, (Value(value),), {"holds": holds}, ()), ()))
        elif self.final is None:
            self.fail(f"checks a value of a tensor, {_where()}, after a step that cannot be taken back,")
        else:
            self.fail(f"reads a value of a tensor, {_where()},")

    def last_free(self) -> int:
        """The last segment before which a replay has done nothing that cannot be taken back."""
        ends = (i for i, one in enumerate(self.segments) if i in self.done or one.writes)
        return min(ends, default=len(self.segments) - 1)

    def _brought(self, value: int, last: int) -> bool:
        """Whether what makes a value was moved to where nothing is done yet that stays."""
        changed = set()
        for event in self.events[last:]:
            written = event.writes()
            if written is None:
                return False
            for one in flat_tensors(written):
                if type(one.native) is one.device.array:
                    changed.add(one.device.storage_key(one.native))
        return self.brought_forward(value, last, self.late, changed)

    def _note_from_host(self, device: Backend, result: Any, array: Any) -> None:
        if self._one_device(device, "from_host"):
            number = self._fresh()
            self.specs[number] = spec_of(result)
            self.constants[number] = device.as_native(device.kernels["clone"](result))  # the call may write to its own
            self.enter(result, Memory("constant", number), number, self.key_of(result))

    def _note_share_host(self, device: Backend, result: Any, array: Any) -> None:
        owner = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if owner is not None:  # guards look into arrays of NumPy's, and into no other library's
            self.fail("makes a tensor over memory that is not NumPy's own")
            return
        self._note_from_host(device, result, array)
        if self.reason is None:
            self.shared[self.value_of(result)] = array

    def unshared(self) -> None:
        """Stop where a tensor over the memory of an array of Python's is more than the numbers in it, at the end of the call."""
        if any(array.tobytes() != held for array, held in self.looked_at):
            self.fail("writes to an array of NumPy's that shares the memory of a tensor")
        for number, array in self.shared.items():
            held = self.device.to_host(self.constants[number])  # type: ignore[union-attr]
            if held.tobytes() != array.tobytes():
                self.fail("writes to an array that Python holds, over whose memory it made a tensor")

    def _note_allocate(self, device: Backend, result: Any, shape: Any, dtype: Any) -> None:
        if self._one_device(device, "allocate"):
            number = self.emit("full", (tuple(shape), 0), {"dtype": dtype}, spec_of(result))[0]
            self.enter(result, Memory("made", number), number, self.key_of(result))

    def _note_as_strided(
        self, device: Backend, result: Any, native: Any, shape: Any, strides: Any, offset: int
    ) -> None:
        if not self._one_device(device, "as_strided"):
            return
        options = {"shape": tuple(shape), "strides": tuple(strides), "offset": offset - device.layout(native)[1]}
        self._view(native, result, "as_strided", options)

    def _note_random(
        self, device: Backend, result: Any, kind: str, shape: Any, dtype: Any, generator: Any = None, **options: Any
    ) -> None:
        if not self._one_device(device, "random"):
            return
        given = {"kind": kind, "shape": tuple(shape), "dtype": dtype, "generator": generator,
                 "options": tuple(options.items())}  # fmt: skip
        if any(hasattr(one, "shape") for one in options.values()):
            self.fail("draws numbers by values of a tensor")
            return
        self._draws_from(default_generator.host if generator is None else generator)
        self._drawn(result, "random", (), given)

    def _note_draw(self, device: Backend, result: Any, op: str, function: Any, *natives: Any) -> None:
        if self._one_device(device, "draw"):
            operands = tuple([self._operand(one) for one in natives])
            held = [one.cell_contents for one in function.__closure__ or ()]
            sources = [one for one in held if isinstance(one, Twister)]
            self._draws_from(sources[0] if sources else None)
            self._drawn(result, "draw", operands, {"op": op, "function": function})

    def _draws_from(self, source: Any) -> None:
        """Remember what draws: a replay that stops at a check puts it back."""
        if hasattr(source, "go_back"):
            self.sources[id(source)] = source
        else:
            self.strangers = True

    def _drawn(self, result: Any, kernel: str, operands: tuple[Any, ...], options: dict[str, Any]) -> None:
        if self._drawn_before is None:
            number = self.emit(kernel, operands, options, spec_of(result))[0]
            self.draws.append(number)
        else:
            number = next(self._drawn_before, -1)
            if self.specs.get(number) != spec_of(result):
                self.fail("draws other numbers when it is computed again")
                return
        self.enter(result, Memory("made", number), number, self.key_of(result))

    def _note_copy_from(self, device: Backend, result: Any, other: Backend, native: Any) -> None:
        self.fail("copies a tensor from one device to another")

    # Arrays

    def _one_device(self, device: Backend, name: str) -> bool:
        if self.device is None:
            self.device = device
        if self.device is not device:
            self.fail(f"computes on two devices, {self.device} and {device}")
        return self.device is device

    def _dense(self, natives: Any) -> bool:
        """Whether all of the arrays lie in row-major order, and what is computed of them element by element does too."""
        device: Any = self.device
        return all(type(one) is not device.array or device.is_contiguous(one) for one in natives)

    def _place(self, index: np.ndarray) -> Value:
        """Places that the frontend found on the host, of sizes and of what else guards look at: no tensor's array."""
        number = self._fresh()
        self.specs[number], self.constants[number] = spec_of(index), np.array(index)
        return Value(number)

    def _operand(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, complex, str):
            return value
        if self.device is not None and type(value) is self.device.array:
            return Value(self.value_of(value))
        if type(value) is list or type(value) is tuple:
            return tuple([self._operand(one) for one in value])
        return value


def _where() -> str:
    """Which function of this package, or the gradient of which, does what happens now."""
    frame: Any = sys._getframe(1)
    outer, _ = user_frame(frame)
    found: Any = frame
    while found is not None and found is not outer:
        name: str = found.f_code.co_filename
        if name.startswith("<backward of "):
            return f"in the gradient of {name.removeprefix('<backward of ').rstrip('>')}"
        found = found.f_back
    return f"in {cause_of(frame, outer)}()"


def _line() -> str:
    """The innermost line that is not this package's own, or Python's."""
    frame: Any = sys._getframe(1)
    while frame is not None and (is_inside(frame.f_code) or is_library(frame.f_globals.get("__name__"))):
        frame = frame.f_back
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
