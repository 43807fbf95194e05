"""From deferred values to a program: which have to be made, in which order, what tells it from others."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.backend.shapes_linalg import FACTORISATIONS
from tensorcore.dtypes import bool_, complex128, float64, int64
from tensorcore.lazy.record import Deferred, frozen

if TYPE_CHECKING:
    from tensorcore.lazy.backend import LazyBackend

__all__ = ["Draft", "collect", "pending_of"]

# Kernels that values may stop with an error: an index out of range, a matrix that is singular.
_STOPPING = frozenset([
    *(name for names, *_ in FACTORISATIONS for name in names.split()),
    "cross_entropy", "embedding", "embedding_gradient", "embedding_pick", "gather", "index_add", "index_copy", "index_fill",
    "index_put", "index_select", "index_tensors", "max_unpool", "nll_loss", "pick", "put", "put_picked", "scatter",
    "scatter_reduce", "take",
])  # fmt: skip
_KINDS = {int: int64, float: float64, complex: complex128, bool: bool_}


def _looped() -> int:
    """What getrefcount says of something that one list and one name refer to: another number in another Python."""
    held = [object()]
    for i in range(1):
        one = held[i]
        found = sys.getrefcount(one)
    return found


_LOOPED = _looped()


def pending_of(backend: LazyBackend) -> list[Deferred]:
    """What is written down, still wanted and not made, in order."""
    found = [value for reference in backend.log if (value := reference()) is not None and value.native is None]
    if 2 * len(found) < len(backend.log):
        backend.log[:] = [weakref.ref(one) for one in found]
    return found


def collect(backend: LazyBackend, asked: Sequence[Deferred], along: bool = True) -> list[Deferred]:
    """What has to be made for ``asked`` and, ``along`` with it, whatever else was written down from any of that; in order.

    So nothing is computed twice, and what lies between need not be kept for later.
    """
    wanted: set[Deferred] = set()
    _reach(list(asked), wanted)
    pending = pending_of(backend)
    for one in pending if along else ():
        if one not in wanted and _depends(one.operands, wanted):
            _reach([one], wanted)
    return [one for one in pending if one in wanted]


def _reach(stack: list[Any], wanted: set[Deferred]) -> None:
    """Add these and all that they are made of, as far as it is not made."""
    while stack:
        one = stack.pop()
        kind = type(one)
        if kind is Deferred:
            if one.native is None and one not in wanted:
                wanted.add(one)
                stack.extend(one.operands)
        elif kind is tuple:
            stack.extend(one)


def _depends(operands: tuple[Any, ...], on: set[Deferred]) -> bool:
    for one in operands:
        kind = type(one)
        if kind is Deferred:
            # What no kernel makes is read, not computed: others that read it have nothing to do with this.
            if one in on and (one.call.kernel is not None or one.call.part is not None):
                return True
        elif kind is tuple and _depends(one, on):
            return True
    return False


class Draft:
    """A program as it is put together.

    Attributes:
        key: tells it from other programs.
        inputs: the values that it takes.
        steps: the calls, in order; ``makes`` has what each value is the result of.
        numbers: among the operands, in order.
    """

    def __init__(self, members: list[Deferred]) -> None:
        self.key: list[Any] = []
        self.inputs: list[Deferred] = []
        self.steps: list[Deferred] = []
        self.numbers: list[Any] = []
        self.uses: dict[Deferred, int] = {}
        self.places: dict[Deferred, int] = {}  # of a value: at or above 0 of a result, below 0 of an input
        count = 0
        places, key, code = self.places, self.key, self._code
        for one in members:
            call = one.call
            if call.part is not None:
                parent = one.operands[0]
                self.uses[parent] = self.uses.get(parent, 0) + 1
                places[one] = places[parent] + call.part
                continue
            if call.kernel is None:  # a value that is brought: it has no operands that are values
                continue
            key.append(call)
            for operand in one.operands:
                code(operand)
            places[one] = count
            count += len(call.parts) or 1
            self.steps.append(one)

    def _code(self, operand: Any) -> None:
        kind = type(operand)
        if kind is Deferred:
            self.uses[operand] = self.uses.get(operand, 0) + 1
            place = self.places.get(operand)
            if place is None:
                self.inputs.append(operand)
                place = self.places[operand] = -len(self.inputs)
                self.key.append(operand.call)
            self.key.append(place)
        elif kind is tuple:
            self.key.append("(")
            for one in operand:
                self._code(one)
            self.key.append(")")
        elif kind in _KINDS:
            self.key.append(kind if operand or kind is bool else frozen(operand))
            self.numbers.append(operand)
        else:
            self.key.append(operand)

    def program(self, outputs: Sequence[Deferred], varying: Sequence[int]) -> Program:
        """With the numbers at the places ``varying`` as inputs behind the others."""
        first = len(self.inputs) + len(varying)
        at = 0

        def given(operand: Any) -> Any:
            nonlocal at
            kind = type(operand)
            if kind is Deferred:
                return self._value(operand, first)
            if kind is tuple:
                return tuple([given(one) for one in operand])
            if kind in _KINDS:
                at += 1
                if at - 1 in varying:
                    return Value(len(self.inputs) + varying.index(at - 1))
            return operand

        specs = [_form(one).spec for one in self.inputs]
        specs += [Spec((), _KINDS[type(self.numbers[i])]) for i in varying]
        steps = []
        for one in self.steps:
            kernel, _, named = str(one.call.kernel).partition(":")
            operands, options = [given(each) for each in one.operands], one.call.options
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

    def _value(self, one: Deferred, first: int) -> Value:
        place = self.places[one]
        return Value(place + first if place >= 0 else -place - 1)

    def held(self, members: list[Deferred], asked: Sequence[Deferred] = ()) -> list[Deferred]:
        """The values that somebody else than the calls of this program has, which are its outputs.

        Nothing keeps count of them but Python: each is referred to by ``members`` and the loop here, by the tables of this
        draft, and by the operands of other members. Whatever is more is somebody else.
        """
        named, steps = set(map(id, asked)), set(map(id, self.steps))
        uses, count = self.uses, sys.getrefcount
        found = []
        for one in members:
            if one.call.several:
                continue
            own = _LOOPED + 1 + (id(one) in steps) + (one in uses) + uses.get(one, 0)
            if id(one) in named or count(one) > own:
                found.append(one)
        self.key.append(tuple([self.places[one] for one in found]))
        return found

    def replaced(self, outputs: Sequence[Deferred]) -> tuple[tuple[int, int], ...]:
        """Pairs of positions of an output and of an input of its form whose memory nobody has any more.

        That is what a parameter was before an optimizer's step. Nothing is written over before the last step that values
        may stop with an error: after one, all inputs must be what they were.
        """
        stops = [i for i, one in enumerate(self.steps) if str(one.call.kernel).partition(":")[0] in _STOPPING]
        safe = set(map(id, self.steps[max(stops, default=-1) + 1 :]))
        count, uses = sys.getrefcount, self.uses
        free: dict[Any, list[int]] = {}
        for i in range(len(self.inputs)):  # enumerate would hold the value too
            one = self.inputs[i]
            # Besides the list and the name: two tables, and the operands of the steps.
            if count(one) > _LOOPED + 2 + uses[one]:
                continue
            native = one.native
            # A view leads to other memory than its own; an array that is none belongs to the value alone, as in a list.
            if isinstance(native, np.ndarray) and not isinstance(native.base, np.ndarray) and count(native) <= _LOOPED:
                free.setdefault(_form(one), []).append(i)
        found = []
        for i, one in enumerate(outputs):
            before = self._before(one) if id(one if one.call.part is None else one.operands[0]) in safe else None
            some = free.get(one.call.forms[0], [])
            if before is not None and before in some:
                some.remove(before)
                found.append((i, before))
        return tuple(found)

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
