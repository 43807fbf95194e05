"""The arrays that a trace meets, as values: what each holds now, whose memory it shows, and what came from outside."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.program import Spec, Step, Value
from tensorcore.backend.shapes import VIEWS
from tensorcore.backend.strides import may_overlap
from tensorcore.lazy.kinds import CHECKS, DRAWS, STAYS, reads

__all__ = ["Known", "Memories", "Memory", "Segment", "spec_of"]


class Memory:
    """What the views of one allocation have in common.

    Attributes:
        value: the number of the value that it holds now, of the shape of ``base``.
        kind: ``given`` where it was there before the call, ``constant`` where Python data made it, else ``made``.
        version: counts the writes.
        written: whether this segment wrote to it.
        shared: whether two arrays of it came in that are no views of one another that were seen.
        key: what tells it from others while one of its arrays lives; ``arrays`` is how many do.
    """

    __slots__ = ("arrays", "base", "key", "kind", "shared", "value", "version", "written")

    def __init__(self, kind: str, value: int) -> None:
        self.kind, self.value = kind, value
        self.key: Any = None
        self.version = self.arrays = 0
        self.written = self.shared = False


class Known:
    """An array that was seen: its memory, and by which view it came of which other array.

    It is not kept alive, where it can be referred to weakly: a traced call needs no more memory than an ordinary one.
    """

    __slots__ = ("memory", "parent", "seen", "spec", "step", "value", "version")

    def __init__(self, native: Any, memory: Memory, value: int, parent: Known | None, step: Any) -> None:
        self.memory, self.value, self.parent, self.step = memory, value, parent, step
        self.spec = spec_of(native)
        self.version = memory.version
        self.seen: Any = None

    @property
    def chain(self) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
        """The views that lead here from the array that stands for the whole memory."""
        return () if self.parent is None else (*self.parent.chain, self.step)


class Segment:
    """Steps that run in a row, between two calls that Python makes itself."""

    def __init__(self) -> None:
        self.steps: list[tuple[Step, tuple[int, ...]]] = []
        self.writes: list[tuple[int, int]] = []  # the new value of an input, and the input


class Memories:
    """Values in the place of arrays: writes make new ones, and views taken before are taken anew when they are read.

    Attributes:
        device: whose arrays these are.
        reason: why the call cannot be replayed, None while it can.
        segments: the steps written down.
        given, constants: arrays that came in from outside, and that Python data made, by the number of their value.
        exposed: values that the program holds, as a gradient, since a call that Python made.
        specs, strides: of values by number; strides of those that do not lie in row-major order.
    """

    def __init__(self) -> None:
        self.device: Backend | None = None
        self.reason: str | None = None
        self.segments = [Segment()]
        self.given: dict[int, Any] = {}
        self.constants: dict[int, Any] = {}
        self.exposed: set[int] = set()
        self.specs: dict[int, Spec] = {}
        self.strides: dict[int, tuple[int, ...]] = {}
        self._known: dict[int, Known] = {}
        self._memories: dict[Any, Memory] = {}
        self._apart: list[Memory] = []  # further arrays from outside, of memories that are known already
        self._shows: dict[int, int] = {}  # of views: what they were taken of
        self._fresh = itertools.count().__next__

    def fail(self, reason: str) -> None:
        """Stop writing: this call cannot be replayed."""
        raise NotImplementedError

    def value_of(self, native: Any) -> int:
        """The number of the value that an array holds now."""
        return self._value(self.find(native))

    def memory_of(self, native: Any) -> Memory:
        """The memory under an array."""
        return self.find(native).memory

    def emit(self, kernel: str, operands: tuple[Any, ...], options: dict[str, Any], *specs: Spec) -> list[int]:
        """Write a step; the numbers of what it makes."""
        numbers = tuple(self._fresh() for _ in specs)
        for one, spec in zip(numbers, specs, strict=True):
            self.specs[one] = spec
            if kernel in VIEWS:
                self._shows[one] = operands[0].number
        self.segments[-1].steps.append((Step(kernel, operands, options, specs), numbers))
        return list(numbers)

    def cut(self) -> None:
        """End a segment: what was written to arrays from outside is in their memory from here on."""
        segment = self.segments[-1]
        for memory in [*list(self._memories.values()), *self._apart]:
            if memory.kind == "given":
                if memory.written:
                    base = self.given_value(memory)
                    segment.writes.append((memory.value, base))
                    memory.value = base
                memory.version += 1  # the call may write to it
                memory.written = False
        self.segments.append(Segment())

    def part(self) -> None:
        """Give memories of the function's own that hold the same value, or one of an array from outside, one of their own.

        A copy is a new value in no memory yet; what comes later may tell the two apart.
        """
        taken: set[int] = set()
        for memory in list(self._memories.values()):  # an array may end meanwhile
            if memory.kind != "given":
                root = self.root(memory.value)
                if (
                    root in taken
                    or root in self.given
                    or root in self.exposed
                    or (root in self.constants and root != memory.base)
                ):
                    spec = self.specs[memory.value]
                    memory.value = self.emit("clone", (Value(memory.value),), {}, spec)[0]
                    memory.version += 1
                taken.add(root)

    def own(self, number: int) -> int:
        """A value for the program to keep: that itself, or a copy where it shows a constant."""
        if self.root(number) not in self.constants:
            return number
        return self.emit("clone", (Value(number),), {}, self.specs[number])[0]

    def checks(self, position: int) -> bool:
        """Whether a segment checks values."""
        return any(step.kernel in CHECKS for step, _ in self.segments[position].steps)

    def is_fixed(self, number: int) -> bool:
        """Whether a value is the same in each replay: made of Python's data alone, which guards look at."""
        return all(
            one in self.constants if step is None else step.kernel not in STAYS for one, step in self._makers(number)
        )

    def _makers(self, number: int) -> Iterator[tuple[int, Step | None]]:
        """The values that one is made of, itself among them, each with the step that makes it."""
        makers = {one: step for segment in self.segments for step, numbers in segment.steps for one in numbers}
        waiting, seen = [number], set()
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                step = makers.get(one)
                yield one, step
                waiting.extend(() if step is None else reads(step))

    def brought_forward(self, number: int, last: int, late: set[int], changed: set[Any]) -> bool:
        """Move the steps that make a value into segment ``last``, from those behind it; False where one cannot be.

        What is drawn on the way is drawn before it, in the order of the call.

        Args:
            late: values that are not there yet at its end.
            changed: the keys of memories that calls of Python's behind it write to.
        """
        inner = [entry for segment in self.segments[last + 1 :] for entry in segment.steps]
        needed = {one for one, _ in self._makers(number)}
        drawn = [numbers[0] for step, numbers in inner if step.kernel in DRAWS]
        first = next((i for i in range(len(drawn), 0, -1) if drawn[i - 1] in needed), 0)
        for one in drawn[:first]:
            needed |= {each for each, _ in self._makers(one)}
        moved = [entry for entry in inner if not needed.isdisjoint(entry[1])]
        written = self.exposed | {base for segment in self.segments[last:] for _, base in segment.writes}
        read = {self.root(one) for one in (number, *[one for step, _ in moved for one in reads(step)])}
        held = {self.key_of(self.given[one]) for one in read & self.given.keys()} if changed else set()
        if not (needed.isdisjoint(late) and read.isdisjoint(written) and held.isdisjoint(changed)):
            return False
        self.segments[last].steps += moved
        for segment in self.segments[last + 1 :]:
            segment.steps = [entry for entry in segment.steps if needed.isdisjoint(entry[1])]
        return True

    def expose(self, native: Any) -> int:
        """The value of an array that the program holds from here on: who writes to it later writes to that very array."""
        known = self.find(native)
        memory = known.memory
        if memory.kind != "given":
            memory.value = self.own(memory.value)
            memory.version += 1
        number = self._value(known)
        if memory.kind != "given":
            memory.kind, memory.base, memory.written = "given", memory.value, False
            memory.shared = known.parent is not None  # of a view it is not known whose memory a replay makes it of
            self.exposed.add(self.root(number))
        return number

    def given_value(self, memory: Memory) -> int:
        """The number that an array from outside came in with."""
        return int(memory.base)

    def outside(self, native: Any) -> int:
        """A number for an array as it is before the program, beside that of the value that it holds."""
        number = self._fresh()
        self.specs[number], self.given[number] = spec_of(native), native
        self._lies(native, number)
        return number

    def root(self, number: int) -> int:
        """The value whose memory a value shows."""
        while number in self._shows:
            number = self._shows[number]
        return number

    def key_of(self, native: Any) -> Any:
        """What tells the memory under an array from others; None of an array without elements.

        Such an array may lie in the memory of one that is written to, whose place it must not take.
        """
        device: Any = self.device
        return None if native is None or 0 in native.shape else device.storage_key(native)

    def enter(self, native: Any, memory: Memory, number: int, key: Any) -> Known:
        memory.base = number
        self._lies(native, number)
        known = self.know(native, Known(native, memory, number, None, None))
        if key is not None:
            self._memories[key] = memory
            memory.key = key
        return known

    def know(self, native: Any, known: Known) -> Known:
        """Remember an array as long as it lives."""
        self._known[id(native)] = known
        known.memory.arrays += 1
        try:
            known.seen = weakref.ref(native, functools.partial(_ended, weakref.ref(self), id(native)))
        except TypeError:
            known.seen = native
        return known

    def forget(self, place: int) -> None:
        """An array has ended, by its ``id``, which another one may have from now on; its memory too if it was the last."""
        known = self._known.pop(place, None)
        if known is not None:
            memory = known.memory
            memory.arrays -= 1
            if not memory.arrays and self._memories.get(memory.key) is memory:
                del self._memories[memory.key]

    def _lies(self, native: Any, number: int) -> None:
        device: Any = self.device
        if not device.is_contiguous(native):
            self.strides[number] = device.strides(native)

    def find(self, native: Any) -> Known:
        known = self._known.get(id(native))
        if known is not None:
            return known
        key = self.key_of(native)
        number = self._fresh()
        self.specs[number] = spec_of(native)
        self.given[number] = native
        other = self._memories.get(key)
        if other is None:
            return self.enter(native, Memory("given", number), number, key)
        if other.kind != "given" or other.written:
            self.fail("takes a view of its own memory that was not seen")
        other.shared = True
        memory = Memory("given", number)
        memory.shared = True
        self._apart.append(memory)
        return self.enter(native, memory, number, None)

    def _value(self, known: Known) -> int:
        memory = known.memory
        if known.version != memory.version:
            if known.parent is None:
                known.value = memory.value
            else:
                parent = self._value(known.parent)
                name, options = known.step
                known.value = self.emit(name, (Value(parent),), dict(options), known.spec)[0]
            known.version = memory.version
        return known.value

    def write(self, native: Any, number: int, dense: bool = True) -> None:
        """Note that an array holds a value from now on; ``dense`` says whether that lies in row-major order."""
        known = self.find(native)
        memory = known.memory
        if memory.shared:
            self.fail("writes to memory that two of the tensors it was given share")
            return
        if not self._can_place(known):
            self.fail("writes to a view that may show an element twice, or is of memory in another order")
            return
        number = self._fitted(native, number)
        device: Any = self.device
        if known.parent is None and device.is_contiguous(native):
            memory.value = number if dense else self.emit("contiguous", (Value(number),), {}, self.specs[number])[0]
        else:
            whole = Value(memory.value)
            chain = known.chain
            memory.value = self.emit("place", (whole, Value(number)), {"chain": chain}, self.specs[memory.value])[0]
        memory.version += 1
        memory.written = True

    def _can_place(self, known: Known) -> bool:
        """Whether a write to a view can be one to a row-major copy of its whole memory, each element once.

        Strides that a program names count in memory itself, which must lie as the copy does and be the function's own: of an
        array from outside they may lead to elements that it does not show.
        """
        for name, options in known.chain:
            if name == "windows":
                return False
            if name == "as_strided":
                given = dict(options)
                memory = known.memory
                if (
                    memory.kind != "made"
                    or memory.base in self.strides
                    or may_overlap(given["shape"], given["strides"])
                ):
                    return False
        return True

    def filled(self, target: Any, source: Any) -> int:
        """The value that a copy of ``source``, an array or a number, over ``target`` leaves there."""
        device: Any = self.device
        spec = spec_of(target)
        if type(source) is device.array:
            return self._fitted(target, self.value_of(source))
        return self.emit("full", (spec.shape, source), {"dtype": spec.dtype}, spec)[0]

    def _fitted(self, target: Any, number: int) -> int:
        """A value in the dtype and the shape of an array that it is written to."""
        spec, have = spec_of(target), self.specs[number]
        if have.dtype is not spec.dtype:
            have = Spec(have.shape, spec.dtype)
            number = self.emit("cast", (Value(number),), {"dtype": spec.dtype}, have)[0]
        if have.shape != spec.shape:
            number = self.emit("expand", (Value(number),), {"shape": spec.shape}, spec)[0]
            number = self.emit("contiguous", (Value(number),), {}, spec)[0]
        return number


def _ended(memories: weakref.ref[Memories], place: int, _: object) -> None:
    found = memories()
    if found is not None:
        found.forget(place)


def spec_of(native: Any) -> Spec:
    if native is None:
        return Spec((), dtypes.bool_)
    return Spec(tuple(native.shape), dtypes.from_numpy_dtype(native.dtype))
