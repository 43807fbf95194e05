"""Switches that PyTorch has for exactness against speed: the precision of products, denormals, repeated warnings."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from tensorcore.errors import UsageError

__all__ = [
    "Switches", "_assert", "get_float32_matmul_precision", "is_warn_always_enabled", "set_float32_matmul_precision",
    "set_flush_denormal", "set_warn_always",
]  # fmt: skip


def _assert(condition: Any, message: str) -> None:
    """``assert`` as a function, under the name that PyTorch's traceable programs call."""
    assert condition, message


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
        raise UsageError(f"set_warn_always: expected a bool, got {b!r}; pass True or False")
    Switches.warn_always = b


def is_warn_always_enabled() -> bool:
    """What ``set_warn_always`` was told."""
    return Switches.warn_always
