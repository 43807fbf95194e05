"""Partition of a program into groups that one kernel may compute, and steps that stand alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.lazy.kinds import ACTIVATIONS, ELEMENTWISE, REDUCTIONS, ROWS, VIEWING, reads

__all__ = ["Unit", "partition"]

LARGEST = 64  # steps of a group: what a backend compiles should not grow without bound


class Unit(NamedTuple):
    """Steps that run as one, by their positions in the program, in order."""

    steps: tuple[int, ...]


class _Group:
    """Steps of one span.

    Attributes:
        bit: its own among those of its span.
        above: the bits of those that come before it.
    """

    __slots__ = ("above", "bit", "closed", "members", "space")

    def __init__(self, bit: int, above: int, position: int, space: tuple[int, ...] | None) -> None:
        self.bit, self.above, self.members, self.space = bit, above, [position], space
        self.closed = space is None


def partition(program: Program, fits: Callable[[int], bool] = lambda position: True) -> list[Unit]:
    """The steps in units, in an order in which these can run; a unit of several steps holds fusible ones alone.

    A step joins the group of one of its operands where both loop over the same shape and no path leads out of the group
    and back into it. Groups of one operand's chain that meet are made one. A group does not go on behind a step that cannot
    be fused: its results would be kept over that. So the program falls into spans, each of which ends with such a step; who
    comes before whom is only asked within one, and the work grows with the program and not with its square.

    Args:
        fits: whether the backend can fuse the step at a position at all.
    """
    specs = program.specs()
    units: list[Unit] = []
    span = _Span()
    number = len(program.inputs)
    for i, step in enumerate(program.steps):
        space = _space(step, specs)
        space = space if space is not None and fits(i) else None
        made = range(number, number + len(step.makes))
        number += len(step.makes)
        if space is None and step.kernel not in VIEWING:
            units += span.units()
            units.append(Unit((i,)))
            span = _Span()
        else:
            span.take(i, space, list(reads(step)), made)
    return units + span.units()


class _Span:
    """The groups between two steps that compute something and cannot be fused.

    Attributes:
        early: views of what was there before, which nothing here needs to come before.
    """

    def __init__(self) -> None:
        self.early: list[Unit] = []
        self.groups: list[_Group] = []
        self.steps: dict[int, int] = {}  # by the number of a value: the position of the step that makes it
        self.maker: dict[int, _Group] = {}  # by the position of a step

    def take(self, i: int, space: tuple[int, ...] | None, operands: list[int], made: range) -> None:
        """Put a step into a group."""
        found = [self.maker[self.steps[one]] for one in operands if one in self.steps]
        sources = {id(one): one for one in found}.values()
        above = 0
        for one in sources:
            above |= one.above | one.bit
        if space is None and not above:
            self.early.append(Unit((i,)))
            return
        group = self._host(space, above, sources) if space is not None else None
        if group is None:
            group = _Group(1 << len(self.groups), above, i, space)
            self.groups.append(group)
        else:
            group.members.append(i)
            self._lift(group, above & ~group.bit)
            for one in sources:
                if one is not group and self._mergeable(one, group):
                    self._absorb(one, group)
        self.maker[i] = group
        self.steps.update(dict.fromkeys(made, i))

    def units(self) -> list[Unit]:
        """The groups by the first of their members, as far as who needs whom allows."""
        waiting = sorted([one for one in self.groups if one.members], key=lambda one: one.members[0])
        units, missing = self.early, 0
        for one in waiting:
            missing |= one.bit
        while waiting:
            at = next((i for i, one in enumerate(waiting) if not one.above & missing), None)
            if at is None:
                raise AssertionError("partition: expected units that can be ordered, got a circle")
            one = waiting.pop(at)
            units.append(Unit(tuple(one.members)))
            missing &= ~one.bit
        return units

    def _host(self, space: tuple[int, ...], above: int, sources: Iterable[_Group]) -> _Group | None:
        """The group of an operand that a step can join."""
        for one in sorted(sources, key=lambda one: -len(one.members)):
            if one.closed or one.space != space or len(one.members) >= LARGEST:
                continue
            if not self._reachable(above & ~one.bit, one):
                return one
        return None

    def _reachable(self, above: int, group: _Group) -> bool:
        """Whether one of the groups in ``above`` comes after ``group``."""
        while above:
            lowest = above & -above
            if self.groups[lowest.bit_length() - 1].above & group.bit:
                return True
            above ^= lowest
        return False

    def _lift(self, group: _Group, above: int) -> None:
        """Note that a group comes after others, and with it all that come after it."""
        if above & ~group.above:
            group.above |= above
            for one in self.groups:
                if one.above & group.bit:
                    one.above |= above

    def _mergeable(self, one: _Group, group: _Group) -> bool:
        if one.closed or one.space != group.space or len(one.members) + len(group.members) > LARGEST:
            return False
        # No path between the two but the direct one.
        return not self._reachable(group.above & ~one.bit, one) and not self._reachable(one.above, group)

    def _absorb(self, one: _Group, group: _Group) -> None:
        group.members = sorted([*one.members, *group.members])
        group.above &= ~one.bit
        self._lift(group, one.above)
        for other in self.groups:
            if other.above & one.bit and other is not group:
                other.above = (other.above & ~one.bit) | group.bit | group.above
        for position in one.members:
            self.maker[position] = group
        one.members, one.closed, one.above = [], True, 0


def _space(step: Step, specs: list[Spec]) -> tuple[int, ...] | None:
    """The shape that a fusible step loops over, None for a step that stands alone."""
    if len(step.makes) != 1 or any(type(one) is tuple for one in step.operands):
        return None
    name = step.kernel
    shape: tuple[int, ...]
    if name in ELEMENTWISE or name in ACTIVATIONS:
        shape = step.makes[0].shape
    elif name in ROWS or name in REDUCTIONS:
        first = step.operands[0]
        if not isinstance(first, Value):
            return None
        shape = specs[first.number].shape
        dims = step.options.get("dim")
        last = tuple(range(len(shape)))
        dims = last if dims is None else (dims % len(shape),) if isinstance(dims, int) and shape else dims
        if not shape or not dims or tuple(sorted(dims)) != last[len(shape) - len(dims) :]:
            return None
    else:
        return None
    return shape if shape and 0 not in shape else None
