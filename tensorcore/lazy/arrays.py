"""Lazy arrays: the memory that views share, whose current value is a deferred one, and how writes change it.

No deferred value is ever changed. A write gives the memory another value, made of the one before, and every array of
that memory reads the new one from then on.
"""

from __future__ import annotations

import itertools
from typing import Any

from tensorcore.backend.arrays import Array
from tensorcore.lazy.kinds import GIVEN
from tensorcore.lazy.record import Call, Deferred, Form

__all__ = ["LazyArray", "around", "chain_of", "view"]

Chain = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
_addresses = itertools.count(1 << 20, 1 << 40)


class LazyArray(Array):
    """The native array of a lazy device.

    One that shows a memory as it is stands for that memory; all views of it refer to it.

    Attributes:
        form: how it lies in its memory; ``shape`` and ``dtype`` are the form's.
        parent: the array that it is a view of, None where it is none.

    Attributes of one that is no view:
        value: what the memory holds now, in the form ``form``.
        writes: how often that was replaced.

    Attributes of views:
        root: the array that stands for the memory.
        call: how the view is taken of ``parent``.
        seen: the value that was read last, when the memory had had ``stamp`` writes.
    """

    __slots__ = (
        "_address", "call", "dtype", "form", "parent", "root", "seen", "shape", "stamp", "value", "writes",
    )  # fmt: skip

    form: Form
    shape: tuple[int, ...]
    parent: LazyArray | None
    value: Deferred
    writes: int
    root: LazyArray
    call: Call
    seen: Deferred | None
    stamp: int
    _address: int

    @property
    def memory(self) -> LazyArray:
        """What stands for its memory."""
        return self if self.parent is None else self.root

    @property
    def address(self) -> int:
        """A number that tells its memory from all other; no place anywhere."""
        memory = self.memory
        try:
            return memory._address
        except AttributeError:  # nobody asked yet
            memory._address = found = next(_addresses)
            return found

    def __repr__(self) -> str:
        return f"LazyArray(shape={self.shape}, dtype={self.form.dtype})"


def around(value: Deferred, one: Form) -> LazyArray:
    """An array over new memory that holds ``value``."""
    made = LazyArray()
    made.form = one
    made.shape = one.shape
    made.dtype = one.dtype
    made.parent = None
    made.value = value
    made.writes = 0
    return made


def view(parent: LazyArray, call: Call) -> LazyArray:
    """The view of an array that a call of a kernel makes."""
    one = call.forms[0]
    assert one is not None
    made = LazyArray()
    made.form = one
    made.shape = one.shape
    made.dtype = one.dtype
    made.root = parent if parent.parent is None else parent.root
    made.parent = parent
    made.call = call
    made.seen = None
    made.stamp = -1
    return made


def chain_of(array: LazyArray) -> tuple[Chain, list[int]]:
    """The views that lead from the memory to an array: names of kernels, and pairs of their options.

    The ints of an index are put aside, in order, with ``GIVEN`` in their place: a loop over rows writes to one place after
    the other, and is one program.
    """
    steps = []
    numbers: list[int] = []
    while array.parent is not None:
        steps.append((str(array.call.kernel), array.call.options))
        array = array.parent
    chain = []
    for kernel, options in reversed(steps):
        if kernel == "index":
            options = {"key": tuple([_put_aside(one, numbers) for one in options["key"]])}
        chain.append((kernel, tuple(options.items())))
    return tuple(chain), numbers


def _put_aside(one: Any, numbers: list[int]) -> Any:
    if type(one) is int:
        numbers.append(one)
        return GIVEN
    if type(one) is slice:
        return slice(*[_put_aside(each, numbers) for each in (one.start, one.stop, one.step)])
    return one
