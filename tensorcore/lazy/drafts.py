"""From deferred values to a program: which have to be made, in which order, what tells it from others."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.kernels import STOPPING
from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.dtypes import bool_, complex128, float64, int64
from tensorcore.lazy.record import Deferred, frozen

if TYPE_CHECKING:
    from tensorcore.lazy.backend import LazyBackend

__all__ = ["KINDS", "LOOPED", "Draft", "Work", "collect", "pending_of"]

_STOPPING = STOPPING | {"checked"}
KINDS = {int: int64, float: float64, complex: complex128, bool: bool_}


def _looped() -> int:
    """What getrefcount says of something that one list and one name refer to: another number in another Python."""
    held = [object()]
    for i in range(1):
        one = held[i]
        found = sys.getrefcount(one)
    return found


LOOPED = _looped()


def pending_of(backend: LazyBackend, settle: bool = False) -> list[Deferred]:
    """What is written down, still wanted and not made, in order.

    Args:
        settle: whether all else leaves the log now, and not only where it is the most of it.
    """
    log = backend.log
    count = len(log)  # other threads go on writing down behind it
    found = [value for reference in log[:count] if (value := reference()) is not None and value.native is None]
    if settle or 2 * len(found) < count:
        log[:count] = [weakref.ref(one) for one in found]
    return found


def collect(backend: LazyBackend, asked: Sequence[Deferred], along: bool = True) -> list[Deferred]:
    """What has to be made for ``asked`` and, ``along`` with it, whatever else was written down from any of that; in order.

    So nothing is computed twice, and what lies between need not be kept for later.
    """
    wanted: set[Deferred] = set()
    _reach(list(asked), wanted)
    pending = pending_of(backend)
    for one in pending if along else ():
        if one in wanted:
            continue
        if one.call.part is not None:
            if one.operands[0] in wanted:
                wanted.add(one)
        elif _depends(one.operands, wanted):
            wanted.add(one)
            _reach(list(one.operands), wanted)
    return [one for one in pending if one in wanted]


def _reach(stack: list[Any], wanted: set[Deferred]) -> None:
    """Add these and all that they are made of, as far as it is not made."""
    for one in stack:  # it grows
        kind = type(one)
        if kind is Deferred:
            if one.native is None and one not in wanted:
                wanted.add(one)
                stack += one.operands
        elif kind is tuple:
            stack += one


def _depends(operands: tuple[Any, ...], on: set[Deferred]) -> bool:
    for one in operands:
        if type(one) is Deferred:
            # What no kernel makes is read, not computed: others that read it have nothing to do with this.
            if one in on and (one.call.kernel is not None or one.call.part is not None):
                return True
        elif type(one) is tuple and _depends(one, on):
            return True
    return False


class Work:
    """What a program takes and does this time.

    Attributes:
        inputs: the values that it takes.
        steps: the calls, in order.
    """

    inputs: list[Deferred]

    @property
    def steps(self) -> list[Deferred]:
        raise NotImplementedError

    @property
    def references(self) -> list[int]:
        """What getrefcount says of each input that nobody has but this program."""
        raise NotImplementedError

    def replaced(self, candidates: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Those of the pairs whose input's memory nobody has any more: that is what a parameter was before an optimizer's step."""
        count, inputs, own = sys.getrefcount, self.inputs, self.references
        found = []
        for pair in candidates:
            one = inputs[pair[1]]
            if count(one) > own[pair[1]]:
                continue
            native = one.native
            # A view leads to other memory than its own; an array that is none belongs to the value alone, as in a list.
            if isinstance(native, np.ndarray) and not isinstance(native.base, np.ndarray) and count(native) <= LOOPED:
                found.append(pair)
        return tuple(found)


class Draft(Work):
    """A program as it is put together.

    Attributes:
        key: tells it from other programs.
        numbers: among the operands, in order.
    """

    def __init__(self, members: list[Deferred]) -> None:
        self.key: list[Any] = []
        self.inputs: list[Deferred] = []
        self._steps: list[Deferred] = []
        self.numbers: list[Any] = []
        self.uses: dict[Deferred, int] = {}
        self.places: dict[Deferred, int] = {}  # of a value: at or above 0 of a result, below 0 of an input
        count = 0
        places, uses, key, code = self.places, self.uses, self.key, self._code
        for one in members:
            call = one.call
            if call.part is not None:
                parent = one.operands[0]
                uses[parent] = uses.get(parent, 0) + 1
                places[one] = places[parent] + call.part
            elif call.kernel is not None:  # a value that is brought has no operands that are values
                key.append(call)
                code(one.operands)
                places[one] = count
                count += len(call.parts) or 1
                self._steps.append(one)

    @property
    def steps(self) -> list[Deferred]:
        return self._steps

    def _code(self, operands: tuple[Any, ...]) -> None:
        places, uses, append = self.places, self.uses, self.key.append
        for operand in operands:
            kind = type(operand)
            if kind is Deferred:
                uses[operand] = uses.get(operand, 0) + 1
                place = places.get(operand)
                if place is None:
                    self.inputs.append(operand)
                    place = places[operand] = -len(self.inputs)
                    append(operand.call)
                append(place)
            elif kind is tuple:
                append("(")
                self._code(operand)
                append(")")
            elif kind in KINDS:
                append(kind if operand or kind is bool else frozen(operand))
                self.numbers.append(operand)
            else:
                append(operand)

    def program(self, outputs: Sequence[Deferred], varying: Sequence[int]) -> Program:
        """With the numbers at the places ``varying`` as inputs behind the others."""
        first = len(self.inputs) + len(varying)
        numbers = itertools.count()
        specs = [_form(one).spec for one in self.inputs]
        specs += [Spec((), KINDS[type(self.numbers[i])]) for i in varying]
        steps = []
        for one in self.steps:
            kernel, _, named = str(one.call.kernel).partition(":")
            operands, options = [self._operand(each, varying, numbers) for each in one.operands], one.call.options
            if named:
                names = named.split(",")
                held = dict(zip(names, operands[-len(names) :], strict=True))
                operands = operands[: -len(names)]
                # What a writing kernel takes by keyword is among the options of its step.
                if kernel == "update":
                    options = {**options, "options": (*options["options"], *held.items())}
                else:
                    options = {**options, **held}
            made = tuple([form.spec for form in one.call.forms if form is not None])
            steps.append(Step(kernel, tuple(operands), options, made))
        return Program(tuple(specs), tuple(steps), tuple([self._value(one, first) for one in outputs]))

    def _operand(self, operand: Any, varying: Sequence[int], numbers: Iterator[int]) -> Any:
        # No closure that calls itself: such a circle would keep the arrays of this draft until the next collection.
        kind = type(operand)
        if kind is Deferred:
            return self._value(operand, len(self.inputs) + len(varying))
        if kind is tuple:
            return tuple([self._operand(one, varying, numbers) for one in operand])
        if kind in KINDS and (at := next(numbers)) in varying:
            return Value(len(self.inputs) + varying.index(at))
        return operand

    def _value(self, one: Deferred, first: int) -> Value:
        place = self.places[one]
        return Value(place + first if place >= 0 else -place - 1)

    def held(self, members: list[Deferred], asked: Sequence[Deferred] = ()) -> list[Deferred]:
        """The values that somebody else than the calls of this program has, which are its outputs.

        Nothing keeps count of them but Python: each is referred to by ``members`` and the loop here, by the tables of this
        draft, and by the operands of other members. Whatever is more is somebody else.
        """
        named = set(map(id, asked))
        uses, places, count = self.uses, self.places, sys.getrefcount
        found, key = [], []
        for one in members:
            call = one.call
            if call.several:
                continue
            # The tables of places and of uses, the list of steps, and the operands.
            times = uses.get(one)
            own = LOOPED + 1 + (call.kernel is not None) + (times + 1 if times else 0)
            if count(one) > own or id(one) in named:
                found.append(one)
                key.append(places[one])
        self.key.append(tuple(key))
        return found

    def candidates(self, outputs: Sequence[Deferred]) -> tuple[tuple[int, int], ...]:
        """Pairs of positions of an output and of an input that it could be written over, by the structure alone.

        Nothing is written over before the last step that values may stop with an error: after one, all inputs must be what
        they were.
        """
        stops = [i for i, one in enumerate(self.steps) if str(one.call.kernel).partition(":")[0] in _STOPPING]
        safe = set(map(id, self.steps[max(stops, default=-1) + 1 :]))
        found: dict[int, int] = {}
        for i, one in enumerate(outputs):
            before = self._before(one) if id(one if one.call.part is None else one.operands[0]) in safe else None
            if before is not None and before not in found and _form(self.inputs[before]) is one.call.forms[0]:
                found[before] = i
        return tuple([(i, before) for before, i in found.items()])

    @property
    def references(self) -> list[int]:
        # The list and the name, two tables, and the operands of the steps.
        return [LOOPED + 2 + self.uses[one] for one in self.inputs]

    def _before(self, one: Deferred) -> int | None:
        """The position of the input that a value was written over."""
        if one.call.part is not None:
            step = one.operands[0]
            if not str(step.call.kernel).startswith("update:"):
                return None
            target = step.call.options["targets"][one.call.part]
            operand = step.operands[target[0]][target[1]] if type(target) is tuple else step.operands[target]
        else:
            operand = one.operands[0] if one.operands else None
        place = self.places.get(operand) if type(operand) is Deferred else None
        return -place - 1 if place is not None and place < 0 else None


def _form(one: Deferred) -> Any:
    return one.call.forms[0]
