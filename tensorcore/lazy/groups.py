"""Partition of a program into groups that one kernel may compute, and steps that stand alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.lazy.kinds import ACTIVATIONS, DRAWS, ELEMENTWISE, REDUCTIONS, ROWS, VIEWING, reads

__all__ = ["Unit", "partition"]

LARGEST = 64  # steps of a group: what a backend compiles should not grow without bound


class Unit(NamedTuple):
    """Steps that run as one, by their positions in the program, in order."""

    steps: tuple[int, ...]


class _Group:
    __slots__ = ("above", "bit", "closed", "members", "space")

    def __init__(self, bit: int, above: int, position: int, space: tuple[int, ...] | None) -> None:
        self.bit, self.above, self.members, self.space = bit, above, [position], space
        self.closed = space is None


def partition(program: Program, fits: Callable[[int], bool] = lambda position: True) -> list[Unit]:
    """The steps in units, in an order in which these can run; a unit of several steps holds fusible ones alone.

    A step joins the group of one of its operands where both loop over the same shape and no path leads out of the group
    and back into it. Groups of one operand's chain that meet are made one. A group does not go on behind a step that cannot
    be fused: its results would be kept over that.

    Args:
        fits: whether the backend can fuse the step at a position at all.
    """
    specs = program.specs()
    groups: list[_Group] = []
    maker: dict[int, _Group] = {}
    number = len(program.inputs)
    barrier = -1  # the last step that computed something and cannot be fused: nothing joins a group from before it
    above_draws = 0  # numbers are drawn in the order of the program
    for i, step in enumerate(program.steps):
        space = _space(step, specs)
        space = space if space is not None and fits(i) else None
        sources = {id(maker[one]): maker[one] for one in reads(step) if one in maker}.values()
        above = above_draws if step.kernel in DRAWS else 0
        for one in sources:
            above |= one.above | one.bit
        group = None
        if space is not None:
            for one in sorted(sources, key=lambda one: -len(one.members)):
                if one.closed or one.space != space or len(one.members) >= LARGEST or one.members[-1] < barrier:
                    continue
                if _reachable(above & ~one.bit, one, groups):
                    continue
                group = one
                break
        if group is None:
            group = _Group(1 << len(groups), above, i, space)
            groups.append(group)
            if step.kernel in DRAWS:
                above_draws |= group.bit | group.above
        else:
            group.members.append(i)
            _lift(group, above & ~group.bit, groups)
            for one in list(sources):
                if one is not group and one.members and one.members[-1] > barrier and _mergeable(one, group, groups):
                    _absorb(one, group, groups, maker)
        if space is None and step.kernel not in VIEWING:
            barrier = i
        for k in range(len(step.makes)):
            maker[number + k] = group
        number += len(step.makes)
    return _ordered([one for one in groups if one.members])


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


def _reachable(above: int, group: _Group, groups: list[_Group]) -> bool:
    """Whether one of the groups in ``above`` comes after ``group``."""
    return any(above >> i & 1 and one.above & group.bit for i, one in enumerate(groups))


def _lift(group: _Group, above: int, groups: list[_Group]) -> None:
    """Note that a group comes after others, and with it all that come after it."""
    if above & ~group.above:
        group.above |= above
        for one in groups:
            if one.above & group.bit:
                one.above |= above


def _mergeable(one: _Group, group: _Group, groups: list[_Group]) -> bool:
    if one.closed or one.space != group.space or len(one.members) + len(group.members) > LARGEST:
        return False
    # No path between the two but the direct one.
    return not _reachable(group.above & ~one.bit, one, groups) and not _reachable(one.above, group, groups)


def _absorb(one: _Group, group: _Group, groups: list[_Group], maker: dict[int, _Group]) -> None:
    group.members = sorted([*one.members, *group.members])
    group.above &= ~one.bit
    _lift(group, one.above, groups)
    for other in groups:
        if other.above & one.bit and other is not group:
            other.above = (other.above & ~one.bit) | group.bit | group.above
    for number, held in maker.items():
        if held is one:
            maker[number] = group
    one.members, one.closed, one.above = [], True, 0


def _ordered(groups: list[_Group]) -> list[Unit]:
    """The groups by the first of their members, as far as who needs whom allows."""
    waiting = sorted(groups, key=lambda one: one.members[0])
    done, units = 0, []
    alive = 0
    for one in groups:
        alive |= one.bit
    while waiting:
        for i, one in enumerate(waiting):
            if not one.above & alive & ~done:
                units.append(Unit(tuple(one.members)))
                done |= one.bit
                del waiting[i]
                break
        else:
            raise AssertionError("partition: expected units that can be ordered, got a circle")
    return units
