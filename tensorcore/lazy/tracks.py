"""What was written down, recognised at a glance when it comes again: one comparison for each call of the log.

A :class:`Draft` works out which values a program makes, which of them leave it and what tells it from others. A
:class:`Track` remembers what that was for a log of certain calls, and finds the same in the next log if that is the
same: the same calls, on the same operands among themselves, held by as many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorcore.lazy.drafts import KINDS, LOOPED, Draft, Work
from tensorcore.lazy.record import Call, Deferred, frozen

__all__ = ["Track"]

_MANY = sys.maxsize
# What a log's entry is compared with: the call, whether its operands hold others, those met for the first time (position,
# kind, and a call or value), those met before (position, place), and how many may refer to it.
_Step = tuple[Call | None, bool, tuple[Any, ...], tuple[tuple[int, int], ...], int, int]


class Track:
    """The log of a program that was made, as a list of comparisons.

    Args:
        log: what was written down, with None in the place of what is dead or was made before.
        first: where the program begins in it; what is pending before has nothing to do with it.
        draft: what was found of it.
        asked, outputs: what was asked for, and what leaves the program.
        varying: which of the draft's numbers are inputs of the program.

    Attributes:
        first, varying: as they were given.
    """

    def __init__(
        self,
        log: Sequence[Deferred | None],
        first: int,
        draft: Draft,
        asked: Sequence[Deferred],
        outputs: Sequence[Deferred],
        varying: Sequence[int],
    ) -> None:
        self.first, self.varying = first, varying
        self.steps: list[_Step] = []
        places: dict[Deferred, int] = {}
        numbers: list[int] = []
        count = 0
        left = set(outputs)
        named = set(asked)
        for one in log[first:]:
            if one is None:
                self.steps.append((None, False, (), (), 0, 0))
                continue
            fresh: list[Any] = []
            back: list[tuple[int, int]] = []
            nested = any([type(operand) is tuple for operand in one.operands])
            for k, operand in enumerate(_flat(one.operands) if nested else one.operands):
                kind = type(operand)
                if kind is Deferred and operand in places:
                    back.append((k, places[operand]))
                    continue
                if kind is Deferred:
                    fresh.append((k, kind, operand.call))
                    places[operand] = count
                elif kind in KINDS:
                    varies = len(numbers) in varying and bool(operand or kind is bool)
                    fresh.append((k, kind, None if varies else operand))
                    numbers.append(count)
                else:
                    fresh.append((k, kind, operand))
                count += 1
            places[one] = count
            count += 1
            own = LOOPED + draft.uses.get(one, 0)
            low, high = (own + 1, _MANY) if one in left else (own, own)
            if one in named or one.call.several:
                low, high = 0, _MANY
            self.steps.append((one.call, nested, tuple(fresh), tuple(back), low, high))
        self.asked = [places[one] for one in asked]
        self.inputs = [(places[one], draft.uses[one]) for one in draft.inputs]
        self.calls = [places[one] for one in draft.steps]
        self.outputs = [places[one] for one in outputs]
        self.numbers = [numbers[i] for i in varying]

    def follow(self, log: Sequence[Callable[[], Deferred | None]], asked: Sequence[Deferred]) -> Follower | None:
        """What a draft of this log, from its first entry on, would find; None if it is another one."""
        seen: list[Any] = []
        see, count = seen.append, sys.getrefcount
        for reference, (call, nested, fresh, back, low, high) in zip(log, self.steps, strict=True):
            value = reference()
            if value is None or value.native is not None:
                if call is not None:
                    return None
                continue
            if value.call is not call:
                return None
            operands = tuple(_flat(value.operands)) if nested else value.operands
            for k, kind, wanted in fresh:
                one = operands[k]
                if type(one) is not kind:
                    return None
                if kind is Deferred:
                    if one.call is not wanted or (
                        one.native is None and (wanted.kernel is not None or wanted.part is not None)
                    ):
                        return None
                elif wanted is None:  # a number that varies; zero is another program
                    if one is not None and not one and kind is not bool:
                        return None
                elif one != wanted or (not one and frozen(one) != frozen(wanted)):
                    return None
                see(one)
            for k, place in back:
                if operands[k] is not seen[place]:
                    return None
            see(value)
            if not low <= count(value) <= high:
                return None
        for one, place in zip(asked, self.asked, strict=True):
            if one is not seen[place]:
                return None
        return Follower(self, seen)


class Follower(Work):
    """What a log that was followed holds: the same as a draft of it."""

    def __init__(self, track: Track, seen: list[Any]) -> None:
        self.track, self.seen = track, seen
        self.inputs = [seen[place] for place, _ in track.inputs]
        self.outputs = [seen[place] for place in track.outputs]
        self.varied = [seen[place] for place in track.numbers]

    @property
    def steps(self) -> list[Deferred]:
        return [self.seen[place] for place in self.track.calls]

    def references(self, i: int) -> int:
        # The list and the name, the list of what was seen, and the operands.
        return LOOPED + 1 + self.track.inputs[i][1]


def _flat(operands: tuple[Any, ...]) -> Iterator[Any]:
    for one in operands:
        if type(one) is tuple:
            yield from _flat(one)
        else:
            yield one
