"""Dual numbers: tensors that carry a tangent along, and the level on which they do.

Tangents follow the tape, so that dual tensors require grad, and ``no_grad`` inside a level makes constants.
"""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tensorcore.autograd.tangents import SILENT, Alias, behind, push, reached
from tensorcore.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError
from tensorcore.ops.inplace import share_version
from tensorcore.tape.memory import next_order
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, bare_node
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """The two halves of a dual tensor; the tangent is None for a tensor that has none."""

    primal: Any
    tangent: Any


class _Dual(Alias):
    """The op of a dual tensor, at which the search for tangents ends."""

    node_name = "MakeDualBackward"


_DUAL = _Dual()


class _Level:
    """The dual tensors made so far, and the tangents that are known of what was computed from them."""

    def __init__(self) -> None:
        self.start = next_order()
        self.ends: MutableMapping[Node, Any] = WeakKeyDictionary()
        self.known: MutableMapping[Node, Any] = WeakKeyDictionary()
        self.enabled = mode.enabled


class _Current(threading.local):
    level: _Level | None = None


_current = _Current()


def enter_dual_level() -> int:
    """Begin the level: from here on there can be dual tensors. Returns its number, which is 0."""
    if _current.level is not None:
        raise GradientError(
            "enter_dual_level: Nested forward mode AD is not supported at the moment, got a second level; leave the first "
            "one, or nest func.jvp"
        )
    _current.level = _Level()
    # Tangents follow the tape, which is written also where the caller wants no gradients.
    mode.enabled = True
    mode.settle()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tensors are dual no more."""
    held = _current.level
    if held is None or level not in (None, 0):
        raise GradientError(
            f"exit_dual_level: Trying to exit a forward AD level that was not the last one that was created, got "
            f"{'no level at all' if held is None else level}; enter_dual_level() first"
        )
    _current.level = None
    mode.enabled = held.enabled
    mode.settle()


class dual_level:
    """A ``with`` inside which there can be dual tensors; it cannot be nested."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor, in the same memory, with ``tangent`` (of its shape) as the direction of its change.

    What is computed from it has tangents too; :func:`unpack_dual` gives them.
    """
    held = _current.level
    if held is None:
        raise GradientError(
            "make_dual: Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first, got none"
        )
    for name, one in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"make_dual: expected {name} to be a Tensor, got {one!r}; use torch.tensor(...)")
    for name, one in (("primal", tensor), ("tangent", tangent)):
        if one.dtype.kind not in ("floating", "complex"):
            raise ArgumentError(f"make_dual: Expected {name} to be floating point or complex, but got: {one.dtype}")
    if tuple(tensor.native.shape) != tuple(tangent.native.shape):
        raise ShapeError(
            f"make_dual: Trying to set a forward gradient that has a different size than that of the original Tensor, this "
            f"is not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}, got those; give it the tensor's shape"
        )
    if _tangent(held, tensor) is not None:
        raise GradientError(
            "make_dual: Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is "
            "not supported, got one; unpack_dual() it first"
        )
    if _tangent(held, tangent) is not None:
        raise GradientError(
            "make_dual: Setting a forward grad that itself has a forward gradient at the same level 0 is not supported, "
            "got one; unpack_dual() it first"
        )
    made = new_tensor(tensor.native, tensor.dtype, tensor.device)
    made.version = share_version(tensor)
    made.node = bare_node(_DUAL, (tensor.node,), tuple(tensor.native.shape), tensor.dtype)
    held.ends[made.node] = True
    held.known[made.node] = tangent if tangent.dtype is tensor.dtype else tangent.to(tensor.dtype)
    return made  # type: ignore[no-any-return]


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent, None where it has none or there is no level."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"unpack_dual: expected a Tensor, got {type(tensor).__name__}; use torch.tensor(...)")
    held = _current.level
    tangent = None if held is None else _tangent(held, tensor)
    if held is None or tangent is None:
        return UnpackedDualTensor(tensor, None)
    made = new_tensor(tensor.native, tensor.dtype, tensor.device)
    made.version = share_version(tensor)
    if reached([tensor.node], held.ends, held.start)[1]:
        made.node = bare_node(SILENT, (tensor.node,), tuple(tensor.native.shape), tensor.dtype)
        held.known[made.node] = None
    return UnpackedDualTensor(made, tangent)


def _tangent(level: _Level, tensor: Tensor) -> Any:
    if tensor.node is None or not level.ends:
        return None
    nodes, outside = reached([tensor.node], level.ends, level.start)
    given = [one for one in level.known.values() if isinstance(one, Tensor)]
    push(nodes, level.known, outside or any(one.node is not None for one in given))
    return behind(tensor.node, level.known)
