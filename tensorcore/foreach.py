"""One op over a list of tensors: ``torch._foreach_add_(weights, grads, alpha=-0.1)``, as optimizers of one's own call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.tensor import Tensor

_ONE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
)
_TWO = "add sub mul div pow maximum minimum clamp_max clamp_min"
_THREE = "addcdiv addcmul lerp"
_NAMES = [*_ONE.split(), *_TWO.split(), *_THREE.split()]

__all__ = [f"_foreach_{name}{mark}" for name in _NAMES for mark in ("", "_")]
__all__ += ["_foreach_copy_", "_foreach_norm", "_foreach_zero_"]


def _foreach_norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> list[Tensor]:
    """The norm of each tensor, as ``linalg.vector_norm`` has it."""
    from tensorcore import linalg

    return [linalg.vector_norm(one, ord, dtype=dtype) for one in _tensors("_foreach_norm", self)]


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> None:
    """Write each source into its tensor."""
    for one, (source,) in _rows("_foreach_copy_", self, src):
        one.copy_(source, non_blocking)


def _foreach_zero_(self: Sequence[Tensor]) -> None:
    """Fill each tensor with zeros."""
    for one in _tensors("_foreach_zero_", self):
        one.zero_()


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _make(name)
    return found


def _make(name: str) -> Callable[..., Any]:
    method, writes = name.removeprefix("_foreach_"), name.endswith("_")
    three = method.rstrip("_") in ("addcdiv", "addcmul")
    # maximum and minimum have no form with a number, and none in place
    method = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(method.rstrip("_"), method.rstrip("_")) + "_" * writes

    def each(self: Sequence[Tensor], *others: Any, **options: Any) -> list[Tensor] | None:
        scales: Any = None
        if three:
            scales = others[2] if len(others) == 3 else options.pop("value", options.pop("scalars", 1))
            others = (*others[:2], scales)
        elif not others:
            named = [key for key in ("other", "scalar", "exponent", "scalars", "tensors1", "weight") if key in options]
            others = tuple(options.pop(key) for key in named)
        made = []
        for one, given in _rows(name, self, *others):
            if three:
                made.append(getattr(one, method)(*given[:2], value=_number(given[2])))
            else:
                made.append(getattr(one, method)(*given, **options))
        return None if writes else made

    each.__name__ = each.__qualname__ = name
    each.__doc__ = f"``{method}`` of each tensor; what else is given is one for all of them, or one for each."
    return each


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _tensors(name: str, self: Any) -> list[Tensor]:
    if not isinstance(self, (list, tuple)) or not all(isinstance(one, Tensor) for one in self):
        raise ArgumentTypeError(f"{name}: expected a list of tensors, got {type(self).__name__}; put them in a list")
    if not self:
        raise UsageError(f"{name}: expected a list with at least one tensor, got an empty one; leave out the call")
    return list(self)


def _rows(name: str, self: Any, *others: Any) -> list[tuple[Tensor, tuple[Any, ...]]]:
    """Each tensor with what belongs to it: the same from what is no list, else its own."""
    tensors = _tensors(name, self)
    columns = []
    for other in others:
        if (
            isinstance(other, Tensor)
            and other.dim() == 1
            and len(other) == len(tensors)
            and name.startswith("_foreach_addc")
        ):
            other = other.tolist()
        alone = not isinstance(other, (list, tuple))
        if not alone and len(other) != len(tensors):
            raise UsageError(
                f"{name}: expected as many others as tensors, {len(tensors)}, got {len(other)}; tensor lists must have the "
                "same number of tensors"
            )
        columns.append([other] * len(tensors) if alone else other)
    return list(zip(tensors, zip(*columns, strict=True) if columns else [()] * len(tensors), strict=True))
