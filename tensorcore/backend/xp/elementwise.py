"""Elementwise kernels: one function of the namespace each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorcore.dtypes import ALL

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# Kernel name -> function of the namespace.
UNARY = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "bitwise_not": "bitwise_not", "ceil": "ceil", "conj": "conjugate", "cos": "cos", "cosh": "cosh",
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "floor": "floor", "isfinite": "isfinite", "isinf": "isinf",
    "isnan": "isnan", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "logical_not": "logical_not",
    "neg": "negative", "round": "rint", "sign": "sign", "signbit": "signbit", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "tan": "tan", "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip
BINARY = {
    "add": "add", "atan2": "arctan2", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "copysign": "copysign", "div": "true_divide", "eq": "equal",
    "floor_divide": "floor_divide", "fmod": "fmod", "ge": "greater_equal", "gt": "greater", "hypot": "hypot",
    "le": "less_equal", "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "lt": "less", "maximum": "maximum", "minimum": "minimum", "mul": "multiply", "ne": "not_equal",
    "nextafter": "nextafter", "pow": "power", "remainder": "remainder", "sub": "subtract",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp
    # The functions themselves: one Python frame less. The frontend mends NumPy's scalars for 0-d results.
    table: dict[str, Kernel] = {name: getattr(xp, function) for name, function in (UNARY | BINARY).items()}
    # A 0-d array of the right dtype: a Python 0 costs 0.2 us more to convert.
    zeros = {one.numpy: xp.zeros((), backend.xp_dtype(one)) for one in ALL}
    maximum = xp.maximum

    def relu(x: Native, out: Any = None) -> Native:
        return maximum(x, zeros[x.dtype], out=out)

    def where(condition: Native, x: Native, y: Native) -> Native:
        return xp.asarray(xp.where(condition, x, y))

    table.update(relu=relu, where=where)
    return table

