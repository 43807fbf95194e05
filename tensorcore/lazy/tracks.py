"""What was written down, recognised at a glance when it comes again: a few comparisons for each call of the log.

A :class:`Draft` works out which values a program makes, which of them leave it and what tells it from others. A
:class:`Track` remembers what that was for a log of certain calls, and finds the same in the next log if that is the
same: the same calls, on the same operands among themselves, held by as many. It is a function written for that log:
nothing in it is looked up but what may differ.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.lazy.drafts import KINDS, LOOPED, Draft, Work
from tensorcore.lazy.record import Deferred, frozen

__all__ = ["Track"]


def _named() -> int:
    """What getrefcount says of something that one name refers to: another number in another Python."""
    one = object()
    return sys.getrefcount(one)


_NAMED = _named()


class Track:
    """The log of a program that was made, as a function that compares another one with it.

    Args:
        log: what was written down, with None in the place of what is dead or was made before.
        first: where the program begins in it; what is pending before has nothing to do with it.
        draft: what was found of it.
        asked, outputs: what was asked for, and what leaves the program.
        varying: which of the draft's numbers are inputs of the program.

    Attributes:
        first, varying: as they were given.
        count: of the calls of the program.
        references: what getrefcount says of each input that nobody else has.
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
        self.count = len(draft.steps)
        # Of each input: the list and the name, and the operands.
        self.references = [LOOPED + draft.uses[one] for one in draft.inputs]
        self._names: dict[Deferred, str] = {}
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {"Deferred": Deferred, "count": sys.getrefcount, "frozen": frozen}
        self._numbers: list[str] = []  # of the draft, as they are called here
        self._varying, self._fresh = set(varying), itertools.count()
        left, named = set(outputs), set(asked)
        for i, one in enumerate(log[first:]):
            if one is None:
                self._lines += [f"v = r{i}()", "if v is not None and v.native is None: return None"]
                continue
            name = self._names[one] = f"v{i}"
            self._lines.append(f"{name} = r{i}()")
            self._unless(f"{name} is None or {name}.call is not {self._object(one.call)} or {name}.native is not None")
            self._operands(f"{name}.operands", one.operands)
            if one not in named and not one.call.several:
                own = _NAMED + draft.uses.get(one, 0)
                self._unless(f"count({name}) {'<=' if one in left else '!='} {own}")
        for i, one in enumerate(asked):
            self._unless(f"asked[{i}] is not {self._names[one]}")
        found = [self._listed(some) for some in (draft.inputs, outputs, draft.steps)]
        found.append(f"[{', '.join(self._numbers[i] for i in varying)}]")
        references = "".join(f"r{i}, " for i in range(len(log) - first))
        body = "".join(f"    {line}\n" for line in (f"{references}= log", *self._lines, f"return {', '.join(found)}"))
        exec(compile(f"def follow(log, asked):\n{body}", "<track>", "exec"), self._objects)
        self._follow: Callable[..., tuple[Any, ...] | None] = self._objects.pop("follow")
        del self._names, self._lines, self._objects, self._numbers, self._varying, self._fresh

    def follow(self, log: Sequence[Callable[[], Deferred | None]], asked: Sequence[Deferred]) -> Follower | None:
        """What a draft of this log, from its first entry on, would find; None if it is another one."""
        found = self._follow(log, asked)
        return None if found is None else Follower(self.references, *found)

    def _operands(self, source: str, operands: tuple[Any, ...]) -> None:
        """Lines that compare what a call takes, or a tuple in that; a call says how many there are."""
        if not operands:
            return
        places = [f"o{next(self._fresh)}" for _ in operands]
        self._lines.append(f"{''.join(f'{place}, ' for place in places)}= {source}")
        for place, one in zip(places, operands, strict=True):
            kind = type(one)
            if kind is tuple:
                self._operands(place, one)
            elif kind is Deferred and one in self._names:
                self._unless(f"{place} is not {self._names[one]}")
            elif kind is Deferred:
                self._names[one] = place
                made = one.call.kernel is not None or one.call.part is not None
                self._unless(
                    f"type({place}) is not Deferred or {place}.call is not {self._object(one.call)}"
                    + (f" or {place}.native is None" if made else "")
                )
            elif kind in KINDS:
                self._number(place, one, kind)
            elif one is not None:
                self._unless(f"type({place}) is not {self._object(kind)} or {place} != {self._object(one)}")
            else:
                self._unless(f"{place} is not None")

    def _number(self, place: str, one: Any, kind: type) -> None:
        varies = len(self._numbers) in self._varying
        self._numbers.append(place)
        self._unless(f"type({place}) is not {self._object(kind)}")
        if kind is bool:
            if not varies:
                self._unless(f"{place} is not {one}")
        elif varies and one:
            self._unless(f"not {place}")  # zero is another program
        else:
            self._unless(f"{place} != {self._object(one)}")
            if not one and kind is not int:  # and which zero it is
                self._unless(f"frozen({place}) != {self._object(frozen(one))}")

    def _unless(self, condition: str) -> None:
        self._lines.append(f"if {condition}: return None")

    def _object(self, value: Any) -> str:
        name = f"c{id(value)}"
        self._objects[name] = value
        return name

    def _listed(self, values: Sequence[Deferred]) -> str:
        return f"[{', '.join(self._names[one] for one in values)}]"


class Follower(Work):
    """What a log that was followed holds: the same as a draft of it."""

    def __init__(
        self,
        references: list[int],
        inputs: list[Deferred],
        outputs: list[Deferred],
        steps: list[Deferred],
        varied: list[Any],
    ) -> None:
        self.inputs, self.outputs, self.varied = inputs, outputs, varied
        self._steps, self._references = steps, references

    @property
    def steps(self) -> list[Deferred]:
        return self._steps

    @property
    def references(self) -> list[int]:
        return self._references
