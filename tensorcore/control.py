"""Choices and loops as functions, and Python's numbers under the names that traceable programs call them by."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.tensor import Tensor

__all__ = [
    "SymBool", "SymFloat", "SymInt", "cond", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not",
    "sym_sqrt", "sym_sum", "while_loop",
]  # fmt: skip


class SymInt:
    """A number of PyTorch's symbolic traces, which programs ask for by ``isinstance``: here sizes are Python's, and none is one."""

    def __init__(self, *given: Any) -> None:
        raise UsageError(
            f"{type(self).__name__}: expected a number of Python's, got {given}; there are no symbolic traces here"
        )


class SymFloat(SymInt):
    """As ``SymInt``, for floats."""


class SymBool(SymInt):
    """As ``SymInt``, for bools."""


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """``true_fn(*operands)`` where ``pred`` holds, else ``false_fn(*operands)``; the one that is chosen is recorded.

    Args:
        pred: a bool, or a tensor of one element, which is waited for.
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise UsageError(f"cond: Expected pred to be bool or tensor, got {pred!r}; compare it first")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise UsageError(f"cond: Expected pred to be bool or single-element tensor, got {list(pred.shape)}; use where")
    if not callable(true_fn) or not callable(false_fn):
        raise UsageError(f"cond: Expect both branches to be callable, got {true_fn!r} and {false_fn!r}; pass functions")
    if not isinstance(operands, (tuple, list)):
        raise UsageError(f"cond: Expect operands to be a tuple of tensors, got {operands!r}; put it in a tuple")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """What ``body_fn``, which answers as many values as it takes, makes of the inputs while ``cond_fn`` of them holds."""
    if not callable(cond_fn) or not callable(body_fn):
        raise UsageError(f"while_loop: Expect cond_fn and body_fn to be callable, got {cond_fn!r} and {body_fn!r}")
    if not isinstance(carried_inputs, (tuple, list)):
        raise UsageError(f"while_loop: Expect carried_inputs to be a tuple, got {carried_inputs!r}; put it in a tuple")
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        made = body_fn(*carried)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(carried):
            raise UsageError(f"while_loop: expected body_fn to answer {len(carried)} values, got {len(made)}")
        carried = made
    return carried


def sym_int(a: Any) -> int:
    """``int(a)``."""
    return builtins.int(a)


def sym_float(a: Any) -> float:
    """``float(a)``."""
    return builtins.float(a)


def sym_not(a: Any) -> bool:
    """``not a``."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, a float if one of them is."""
    return _extreme("sym_max", builtins.max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if one of them is."""
    return _extreme("sym_min", builtins.min, a, b)


def _extreme(name: str, function: Any, a: Any, b: Any) -> Any:
    for one in (a, b):
        if not isinstance(one, (int, float)):
            raise ArgumentTypeError(f"{name}: expected ints or floats, got {one!r}; use maximum or minimum for tensors")
    found = function(a, b)
    return builtins.float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """``t if b else f``, of two values of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise ArgumentTypeError(f"sym_ite: expected a bool and two values of one type, got {b!r}, {t!r} and {f!r}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of the arguments, or of those in a list."""
    return builtins.sum(args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)


def sym_sqrt(a: Any) -> float:
    """``math.sqrt(a)``."""
    return math.sqrt(a)
