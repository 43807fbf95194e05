"""Elementwise kernels as C text: what each computes of its operands ``a``, ``b``, ``c``, in their type ``W``.

One table, which single kernels and fused programs are generated from. ``W`` is the type that the elements are computed
in: float for the half types.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EXPRESSIONS", "Expression"]

FLOAT, INTEGER, BOOL = "f", "i", "b"


class Expression(NamedTuple):
    """One kernel.

    Attributes:
        text: C, of the operands and then the options by name.
        kinds: of the dtypes it takes: floating, integer, bool.
        result: "same" as the operands, or "bool".
        operands: how many it takes by position; ``first`` says that the first of them is a condition.
        options: numbers it takes by keyword, with their defaults.
        outs: whether it takes ``out``.
    """

    text: str
    kinds: str
    result: str = "same"
    operands: int = 1
    options: tuple[tuple[str, float], ...] = ()
    condition: bool = False


def _all(kinds: str, operands: int, texts: dict[str, str], result: str = "same") -> dict[str, Expression]:
    return {name: Expression(text, kinds, result, operands) for name, text in texts.items()}


_LEAKY = (("negative_slope", 0.01),)
_ELU = (("alpha", 1.0), ("scale", 1.0), ("input_scale", 1.0))
_SOFTPLUS = (("beta", 1.0), ("threshold", 20.0))

EXPRESSIONS: dict[str, Expression] = {
    **_all("f", 1, {name: f"{name}(a)" for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "gelu",
        "lgamma", "log", "log10", "log1p", "log2", "log_sigmoid", "mish", "rsqrt", "sigmoid", "silu", "sin", "sinh", "sqrt",
        "tan", "tanh",
    )}),
    **_all("f", 1, {"ceil": "ceil(a)", "floor": "floor(a)", "round": "rint(a)", "trunc": "trunc(a)",
                    "reciprocal": "W(1) / a"}),
    **_all("fi", 1, {"abs": "absolute(a)", "neg": "W(-a)", "positive": "a", "square": "W(a * a)", "relu": "relu(a)",
                     "sign": "sign_of(a)", "sgn": "sign_or_nan(a)"}),
    **_all("f", 1, {"isnan": "a != a", "isinf": "absolute(a) == limits<W>::infinity()",
                    "isfinite": "absolute(a) < limits<W>::infinity()", "signbit": "signbit(a)"}, "bool"),
    **_all("fib", 1, {"logical_not": "!a"}, "bool"),
    **_all("i", 1, {"bitwise_not": "W(~a)"}),
    **_all("f", 2, {
        "div": "a / b", "pow": "pow(a, b)", "pow_by_number": "power(a, b)", "atan2": "atan2(a, b)", "hypot": "hypot(a, b)",
        "copysign": "copysign(a, b)", "logaddexp": "log_add_exp(a, b)", "fmax": "fmax(a, b)", "fmin": "fmin(a, b)",
    }),
    **_all("fi", 2, {
        "add": "W(a + b)", "sub": "W(a - b)", "mul": "W(a * b)", "maximum": "larger_of(a, b)", "minimum": "smaller_of(a, b)",
        "clamp_min": "larger_of(a, b)", "clamp_max": "smaller_of(a, b)", "floor_divide": "floor_quotient(a, b)",
        "trunc_divide": "cut_quotient(a, b)", "remainder": "floor_remainder(a, b)", "fmod": "cut_remainder(a, b)",
    }),
    **_all("fib", 2, {"eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b",
                      "logical_and": "a && b", "logical_or": "a || b", "logical_xor": "!a != !b"}, "bool"),
    **_all("ib", 2, {"bitwise_and": "W(a & b)", "bitwise_or": "W(a | b)", "bitwise_xor": "W(a ^ b)"}),
    "clamp": Expression("smaller_of(larger_of(a, b), c)", "fi", operands=3),
    "where": Expression("a ? b : c", "fib", operands=3, condition=True),
    "leaky_relu": Expression("a > 0 ? a : a * negative_slope", "f", options=_LEAKY),
    "elu": Expression("elu(a, alpha, scale, input_scale)", "f", options=_ELU),
    "selu": Expression("elu(a, W(1.6732632423543772), W(1.0507009873554805), W(1))", "f"),
    "celu": Expression("elu(a, alpha, W(1), W(1) / alpha)", "f", options=(("alpha", 1.0),)),
    "exponential_unit_backward": Expression("elu_backward(a, b, alpha, scale, input_scale)", "f", operands=2, options=_ELU),
    "softplus": Expression("softplus(a, beta, threshold)", "f", options=_SOFTPLUS),
    "softplus_backward": Expression("softplus_backward(a, b, beta, threshold)", "f", operands=2, options=_SOFTPLUS),
    **_all("f", 2, {f"{name}_backward": f"{name}_backward(a, b)" for name in ("gelu", "log_sigmoid", "mish", "silu")}),
    "relu_backward": Expression("b <= 0 ? W(0) : a", "f", operands=2),
    "leaky_relu_backward": Expression("b > 0 ? a : a * negative_slope", "f", operands=2, options=_LEAKY),
    "tanh_backward": Expression("a * (W(1) - b * b)", "f", operands=2),
    "sigmoid_backward": Expression("a * ((W(1) - b) * b)", "f", operands=2),
    # Under the names that the option ``approximate`` of gelu makes of them.
    "gelu_tanh": Expression("gelu_tanh(a)", "f"),
    "gelu_tanh_backward": Expression("gelu_tanh_backward(a, b)", "f", operands=2),
}  # fmt: skip
