"""Switches that PyTorch has for exactness against speed: the precision of products, denormals, repeated warnings, checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.tape.aside import SWITCH, tells
from tensorcore.tensor import Tensor

__all__ = [
    "Switches", "_assert", "_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented",
    "_check_tensor_all", "_check_tensor_all_with", "_check_type", "_check_value",
    "get_float32_matmul_precision", "is_warn_always_enabled", "set_float32_matmul_precision",
    "set_flush_denormal", "set_warn_always",
]  # fmt: skip


def _assert(condition: Any, message: str) -> None:
    """``assert`` as a function, under the name that PyTorch's traceable programs call."""
    assert condition, message


def _assert_async(condition: Any, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError where a tensor of one element is zero; PyTorch's does so when its device gets there."""
    if not condition.item():
        raise UsageError(f"_assert_async: {message}; got {condition.item()}")


def _check_with(kind: type[Exception], cond: bool, message: Callable[[], Any] | None = None) -> None:
    if not isinstance(cond, bool):
        raise ArgumentTypeError(f"_check: cond must be a bool, but got {type(cond).__name__}; compare, or call bool()")
    if not cond:
        raise kind("Expected cond to be True, but got False" if message is None else str(message()))


# The checks of traceable programs: each raises its own kind of error, with the text of ``message()``.
_check = partial(_check_with, RuntimeError)
_check_index = partial(_check_with, IndexError)
_check_value = partial(_check_with, ValueError)
_check_type = partial(_check_with, TypeError)
_check_not_implemented = partial(_check_with, NotImplementedError)


def _check_tensor_all_with(kind: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of this kind unless all of a tensor of bools are True."""
    if not isinstance(cond, Tensor) or cond.dtype is not dtypes.bool_:
        raise ArgumentTypeError(
            f"_check_tensor_all: cond must be a tensor of dtype torch.bool, but got {cond!r}; compare"
        )
    _check_with(kind, bool(cond.all().item()), message)  # type: ignore[attr-defined]


# All of a tensor, with PyTorch's usual kind of error.
_check_tensor_all = partial(_check_tensor_all_with, RuntimeError)


def _check_is_size(i: Any, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """Raise RuntimeError unless ``0 <= i``, and ``i <= max`` where there is one."""
    _check(bool(i >= 0), message)
    _check(max is None or bool(i <= max), message)


class Switches:
    """Where they stand. A backend with a faster way that is less exact asks here before it takes it."""

    warn_always: ClassVar[bool] = False
    precision: ClassVar[str] = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 matrices must be: ``highest``, ``high`` or ``medium``. The host's always are."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"set_float32_matmul_precision: {precision!r} is not one of 'highest', 'high', or 'medium'; it has no effect",
            stacklevel=2,
        )
        return
    Switches.precision = precision


@tells(SWITCH)
def get_float32_matmul_precision() -> str:
    """How exact products of float32 matrices must be."""
    return Switches.precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether numbers too small to be normal ones are now taken for 0: they are not, so False."""
    if not isinstance(mode, bool):
        raise UsageError(f"set_flush_denormal: expected a bool, got {mode!r}; pass True or False")
    return False


def set_warn_always(b: bool, /) -> None:
    """Accepted; how often a warning shows is up to Python's filters."""
    if not isinstance(b, bool):
        raise ArgumentTypeError(f"set_warn_always: expected a bool, got {b!r}; pass True or False")
    Switches.warn_always = b


@tells(SWITCH)
def is_warn_always_enabled() -> bool:
    """What ``set_warn_always`` was told."""
    return Switches.warn_always
