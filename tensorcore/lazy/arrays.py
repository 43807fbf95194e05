"""Lazy arrays: the memory that views share, whose current value is a deferred one, and how writes change it.

No deferred value is ever changed. A write gives the memory another value, made of the one before, and every array of
that memory reads the new one from then on.
"""

from __future__ import annotations

import itertools
from typing import Any

from tensorcore.lazy.kinds import GIVEN
from tensorcore.lazy.record import Call, Deferred, Form

__all__ = ["LazyArray", "Memory", "around", "chain_of", "home", "view"]

Chain = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
_addresses = itertools.count(1 << 20, 1 << 40)


class Memory:
    """What the views of one allocation share.

    Attributes:
        value: what the memory holds now, in the form ``form``.
        writes: how often that was replaced.
        address: no place anywhere, and no other memory has it; None until somebody asks.
    """

    __slots__ = ("__weakref__", "_address", "form", "value", "writes")

    value: Deferred
    form: Form
    writes: int
    _address: int | None

    @property
    def address(self) -> int:
        """A number that tells it from all other memory."""
        if self._address is None:
            self._address = next(_addresses)
        return self._address


class LazyArray:
    """The native array of a lazy device.

    Attributes:
        form: how it lies in its memory; ``shape`` and ``dtype`` are the form's.
        memory: where its values are.
        parent: the array that it is a view of, None where it shows the memory as it is; ``call`` is that view.
        seen: the value that was read last, when the memory had had ``stamp`` writes.
    """

    __slots__ = ("call", "dtype", "form", "memory", "parent", "seen", "shape", "stamp")

    __array_ufunc__ = None  # a NumPy kernel that meets one by mistake fails instead of looping

    form: Form
    shape: tuple[int, ...]
    memory: Memory
    parent: LazyArray | None
    call: Call
    seen: Deferred | None
    stamp: int

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.form.nbytes // self.form.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self.form.dtype.itemsize)

    def __repr__(self) -> str:
        return f"LazyArray(shape={self.shape}, dtype={self.form.dtype})"


def around(value: Deferred, one: Form) -> LazyArray:
    """An array over new memory that holds ``value``."""
    memory = Memory()
    memory.value = value
    memory.form = one
    memory.writes = 0
    memory._address = None
    # As in ``home``: one frame less for each call that is written down.
    made = LazyArray()
    made.form = one
    made.shape = one.shape
    made.dtype = one.dtype
    made.memory = memory
    made.parent = None
    return made


def home(memory: Memory) -> LazyArray:
    """The array that shows all of a memory."""
    made = LazyArray()
    made.form = memory.form
    made.shape = memory.form.shape
    made.dtype = memory.form.dtype
    made.memory = memory
    made.parent = None
    return made


def view(parent: LazyArray, call: Call) -> LazyArray:
    """The view of an array that a call of a kernel makes."""
    one = call.forms[0]
    assert one is not None
    made = LazyArray()
    made.form = one
    made.shape = one.shape
    made.dtype = one.dtype
    made.memory = parent.memory
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
