"""Lazy tensors: what is computed on them is written down, and run when a value is needed.

``with tc.lazy():`` makes the tensors inside lazy, as ``device="lazy"`` makes one. ``report`` tells what was made and
why, ``forbid`` raises where something would be, ``budget`` says how much may be put off.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.lazy.account import Forbidden, Realisation, clear, forbid, realisations, report
from tensorcore.lazy.backend import LazyBackend, over
from tensorcore.lazy.draw import LazyGraph, draw
from tensorcore.lazy.files import load
from tensorcore.lazy.making import limits, realise
from tensorcore.ops.creation import create
from tensorcore.ops.placement import as_device
from tensorcore.tensor import Tensor

__all__ = [
    "Forbidden", "LazyBackend", "LazyGraph", "Realisation", "budget", "clear", "draw", "evaluate", "forbid", "load", "over",
    "realisations", "report", "tensor",
]  # fmt: skip


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A lazy tensor of these values: nothing is allocated on the device until one of them is needed."""
    return create.tensor(data, dtype=dtype, device=over(as_device(device)), requires_grad=requires_grad)


def evaluate(*tensors: Tensor) -> None:
    """Make the values of these tensors now, in one program for each device; those of other devices have theirs."""
    wanted: dict[LazyBackend, list[Any]] = {}
    for one in tensors:
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"evaluate: expected tensors, got {type(one).__name__}; pass them one by one")
        if isinstance(one.device, LazyBackend):
            value = one.device.read(one.native)
            if value.native is None:
                wanted.setdefault(one.device, []).append(value)
    for device, values in wanted.items():
        realise(device, values, "evaluate")


def budget(bytes: int | None = None, *, steps: int | None = None) -> tuple[int, int]:
    """How many bytes and calls may be written down before they are made, set where given.

    What is pending is made, with the cause ``budget``, when it would be more.
    """
    for name, value in (("bytes", bytes), ("steps", steps)):
        if value is None:
            continue
        if type(value) is not int or value < 1:
            raise ArgumentError(f"budget: expected {name} to be an int of at least 1, got {value!r}; pass a larger one")
        setattr(limits, name, value)
    return limits.bytes, limits.steps


class _LazyRoom(ModuleType):
    def __call__(self, device: Any = None) -> LazyBackend:
        """The lazy device over ``device``, for a ``with`` block in which tensors are lazy."""
        return over(as_device(device))


sys.modules[__name__].__class__ = _LazyRoom
