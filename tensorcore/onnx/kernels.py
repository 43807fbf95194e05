"""Kernels that compute as ONNX nodes: elementwise, reductions, products. Opset 18."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorcore.errors import UsageError
from tensorcore.onnx.tracer import Trace, handler

__all__ = ["number_of", "shape_of"]


def _like(*values: Any) -> Any:
    """The first array among them, whose dtype numbers take."""
    return next(one for one in values if isinstance(one, np.ndarray))


# Elementwise

_ONE = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "clone": "Identity", "contiguous": "Identity", "positive": "Identity", "cos": "Cos", "cosh": "Cosh", "erf": "Erf",
    "exp": "Exp", "floor": "Floor", "isinf": "IsInf", "isnan": "IsNaN", "log": "Log", "logical_not": "Not", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin",
    "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_TWO = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min", "eq": "Equal",
    "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "lt": "Less", "logical_and": "And", "logical_or": "Or",
    "logical_xor": "Xor", "clamp_min": "Max", "clamp_max": "Min",
}  # fmt: skip


def _one(kind: str) -> Any:
    return lambda t, result, x, **options: t.node(kind, x)


def _two(kind: str) -> Any:
    def write(t: Trace, result: Any, x: Any, y: Any, **options: Any) -> str:
        like = _like(x, y)
        return t.node(kind, t.name(x, like), t.name(y, like))

    return write


for _name, _kind in _ONE.items():
    handler(_name)(_one(_kind))
for _name, _kind in _TWO.items():
    handler(_name)(_two(_kind))


def _of_bits(logical: str, bits: str) -> Any:
    def write(t: Trace, result: Any, *values: Any) -> str:
        like = _like(*values)
        return t.node(logical if like.dtype.kind == "b" else bits, *[t.name(one, like) for one in values])

    return write


for _name, _kind in {"and": "And", "or": "Or", "xor": "Xor", "not": "Not"}.items():
    handler(f"bitwise_{_name}")(_of_bits(_kind, f"Bitwise{_kind}"))


@handler("ne")
def _ne(t: Trace, result: Any, x: Any, y: Any) -> str:
    return t.node("Not", _two("Equal")(t, result, x, y))


@handler("expm1")
def _expm1(t: Trace, result: Any, x: Any) -> str:
    return t.node("Sub", t.node("Exp", x), t.name(1, x))


@handler("log1p")
def _log1p(t: Trace, result: Any, x: Any) -> str:
    return t.node("Log", t.node("Add", x, t.name(1, x)))


def _log_of(base: float) -> Any:
    return lambda t, result, x: t.node("Div", t.node("Log", x), t.name(math.log(base), x))


handler("log2")(_log_of(2.0))
handler("log10")(_log_of(10.0))


@handler("rsqrt")
def _rsqrt(t: Trace, result: Any, x: Any) -> str:
    return t.node("Reciprocal", t.node("Sqrt", x))


@handler("square")
def _square(t: Trace, result: Any, x: Any) -> str:
    return t.node("Mul", x, x)


@handler("trunc")
def _trunc(t: Trace, result: Any, x: Any) -> str:
    return t.node("Mul", t.node("Sign", x), t.node("Floor", t.node("Abs", x)))


@handler("floor_divide")
def _floor_divide(t: Trace, result: Any, x: Any, y: Any) -> str:
    like = _like(x, y)
    if like.dtype.kind == "f":
        return t.node("Floor", t.node("Div", t.name(x, like), t.name(y, like)))
    whole = t.node("Sub", t.name(x, like), t.node("Mod", t.name(x, like), t.name(y, like)))
    return t.node("Div", whole, t.name(y, like))


@handler("remainder")
def _remainder(t: Trace, result: Any, x: Any, y: Any) -> str:
    like = _like(x, y)
    x, y = t.name(x, like), t.name(y, like)
    if like.dtype.kind != "f":
        return t.node("Mod", x, y)
    return t.node("Sub", x, t.node("Mul", t.node("Floor", t.node("Div", x, y)), y))


@handler("fmod")
def _fmod(t: Trace, result: Any, x: Any, y: Any) -> str:
    like = _like(x, y)
    return t.node("Mod", t.name(x, like), t.name(y, like), fmod=1)


@handler("clamp")
def _clamp(t: Trace, result: Any, x: Any, low: Any, high: Any) -> str:
    return t.node("Min", t.node("Max", x, t.name(low, x)), t.name(high, x))


@handler("where")
def _where(t: Trace, result: Any, condition: Any, x: Any, y: Any) -> str:
    return t.node("Where", condition, t.name(x, result), t.name(y, result))


@handler("masked_fill")
def _masked_fill(t: Trace, result: Any, x: Any, mask: Any, value: Any) -> str:
    return t.node("Where", mask, t.name(value, result), x)


@handler("cast")
def _cast(t: Trace, result: Any, x: Any, *, dtype: Any) -> str:
    return t.node("Cast", x, to=number_of(result.dtype))


def number_of(dtype: Any) -> int:
    """ONNX's number of a NumPy dtype."""
    from onnx import helper

    try:
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    except (KeyError, ValueError) as error:
        raise UsageError(f"onnx.export: expected a dtype that ONNX has, got {dtype}; convert the model") from error


# Reductions

_REDUCTIONS = {
    "sum": "ReduceSum", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin", "mean": "ReduceMean",
    "logsumexp": "ReduceLogSumExp",
}  # fmt: skip


def _axes(t: Trace, x: Any, dim: Any) -> Any:
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return t.name(np.asarray([*dims], np.int64))


def _reduction(kind: str) -> Any:
    def write(
        t: Trace, result: Any, x: Any, *, dim: Any = None, keepdim: bool = False, dtype: Any = None, **options: Any
    ) -> str:
        source = t.name(x)
        if result.dtype != x.dtype:
            source = t.node("Cast", source, to=number_of(result.dtype))
        return t.node(kind, source, _axes(t, x, dim), keepdims=int(keepdim))

    return write


for _name, _kind in _REDUCTIONS.items():
    handler(_name)(_reduction(_kind))


def _quantified(kind: str) -> Any:
    def write(t: Trace, result: Any, x: Any, *, dim: Any = None, keepdim: bool = False, **options: Any) -> str:
        number = t.node("Cast", t.node("Cast", x, to=number_of(np.bool_)), to=number_of(np.int64))
        return t.node("Cast", t.node(kind, number, _axes(t, x, dim), keepdims=int(keepdim)), to=number_of(np.bool_))

    return write


handler("all")(_quantified("ReduceMin"))
handler("any")(_quantified("ReduceMax"))


@handler("norm")
def _norm(t: Trace, result: Any, x: Any, *, p: float, dim: Any = None, keepdim: bool = False) -> str:
    kind = {1.0: "ReduceL1", 2.0: "ReduceL2"}.get(float(p))
    if kind is None:
        raise UsageError(f"onnx.export: expected a norm of order 1 or 2, got {p}; write it with pow and sum")
    return t.node(kind, x, _axes(t, x, dim), keepdims=int(keepdim))


def _place_of(kind: str) -> Any:
    def write(t: Trace, result: Any, x: Any, *, dim: int | None = None, keepdim: bool = False) -> str:
        if dim is not None:
            return t.node(kind, x, axis=dim, keepdims=int(keepdim))
        flat = t.node(kind, t.node("Reshape", x, t.name(np.asarray([-1], np.int64))), axis=0, keepdims=0)
        return t.node("Reshape", flat, shape_of(t, result.shape)) if keepdim else flat

    return write


def _extreme(kind: str, place: str) -> Any:
    def write(t: Trace, result: Any, x: Any, *, dim: int, keepdim: bool = False) -> list[str]:
        keep = int(keepdim)
        return [t.node(kind, x, _axes(t, x, dim), keepdims=keep), t.node(place, x, axis=dim, keepdims=keep)]

    return write


handler("argmax")(_place_of("ArgMax"))
handler("argmin")(_place_of("ArgMin"))
handler("max_dim")(_extreme("ReduceMax", "ArgMax"))
handler("min_dim")(_extreme("ReduceMin", "ArgMin"))


@handler("topk")
def _topk(
    t: Trace, result: Any, x: Any, *, k: int, dim: int, largest: bool = True, sorted: bool = True, **options: Any
) -> Any:
    return t.node("TopK", x, t.sizes(k), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))


@handler("sort")
def _sort(t: Trace, result: Any, x: Any, *, dim: int, descending: bool = False, **options: Any) -> Any:
    return t.node("TopK", x, t.sizes(x.shape[dim]), outputs=2, axis=dim, largest=int(descending), sorted=1)


@handler("cumsum")
def _cumsum(t: Trace, result: Any, x: Any, *, dim: int, dtype: Any = None) -> str:
    source = x if result.dtype == x.dtype else t.node("Cast", x, to=number_of(result.dtype))
    return t.node("CumSum", source, t.name(np.asarray(dim, np.int64)))


@handler("softmax")
def _softmax(t: Trace, result: Any, x: Any, *, dim: int) -> str:
    return t.node("Softmax", x, axis=dim)


@handler("log_softmax")
def _log_softmax(t: Trace, result: Any, x: Any, *, dim: int) -> str:
    return t.node("LogSoftmax", x, axis=dim)


# Products


@handler("matmul")
def _matmul(t: Trace, result: Any, x: Any, y: Any) -> str:
    return t.node("MatMul", x, y)


@handler("linear")
def _linear(t: Trace, result: Any, x: Any, weight: Any, bias: Any) -> str:
    if x.ndim == 2 and weight.ndim == 2:
        return t.node("Gemm", x, weight, bias, transB=1)
    made = t.node("MatMul", x, t.node("Transpose", weight, perm=[1, 0]) if weight.ndim == 2 else weight)
    return made if bias is None else t.node("Add", made, bias)


def shape_of(t: Trace, shape: Any) -> str:
    """A shape as an input of a node."""
    return t.sizes(*shape)
