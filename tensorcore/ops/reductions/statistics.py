"""Variance, standard deviation and norms."""

from __future__ import annotations

import warnings
from math import inf
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.operands import check_tensors, factor, plain
from tensorcore.ops.reductions.extreme import ties
from tensorcore.ops.reductions.reduce import Dims, count_of, kept, over_dims, stored
from tensorcore.tensor import Tensor

__all__ = ["std", "std_mean", "var", "var_mean", "vector_norm"]


def _away(input: Tensor, dim: Any) -> Tensor:
    return input - input.mean(dim, True)  # type: ignore[attr-defined]


def _free(input: Tensor, dim: Any, correction: float) -> float:
    """The divisor of a variance; NaN where PyTorch's gradient is."""
    left = count_of(tuple(input.native.shape), dim) - correction
    return left if left > 0 else 0.0 * inf if left == 0 else inf if left < 0 else left


def _var_gradient(g: Tensor, input: Tensor, dim: Any, correction: float, keepdim: bool) -> Tensor:
    shape = tuple(input.native.shape)
    return kept(g, shape, dim, keepdim) * (2.0 / _free(input, dim, correction)) * _away(input, dim)


def _std_gradient(g: Tensor, input: Tensor, out: Tensor, dim: Any, correction: float, keepdim: bool) -> Tensor:
    # A deviation of 0 has gradient 0, not 0/0.
    some = (out != 0).to(out.dtype)
    return _var_gradient(g * some / (2.0 * out + (1.0 - some)), input, dim, correction, keepdim)


def _with_mean(of: Any) -> Any:
    def gradient(g: list[Tensor | None], input: Tensor, out: Any, dim: Any, correction: float, keepdim: bool) -> Any:
        shape = tuple(input.native.shape)
        first = None if g[0] is None else of(g[0], input, out[0], dim, correction, keepdim)
        if g[1] is None:
            return first
        second = kept(g[1], shape, dim, keepdim).expand(shape) / float(count_of(shape, dim))
        return second if first is None else first + second

    return gradient


_var = Op("var", "input", "Variance over dims.", register=False, grads=dict(input=_var_gradient))
_std = Op(
    "std", "input", "Standard deviation over dims.", kernel="var", register=False, grads=dict(input=_std_gradient)
)
_var_mean = Op("var_mean", "input", "Variance and mean.", register=False, grads=dict(input=_with_mean(
    lambda g, input, out, *rest: _var_gradient(g, input, *rest))))  # fmt: skip
_std_mean = Op("std_mean", "input", "Standard deviation and mean.", kernel="var_mean", register=False,
               grads=dict(input=_with_mean(_std_gradient)))  # fmt: skip


_ROOTS = (_std, _std_mean)


def _spread_of(op: Op, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any, out: Any) -> Any:
    if type(input) is not Tensor:
        check_tensors(op.name, input=input)
    if isinstance(dim, bool):  # the form var(unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise ArgumentTypeError(f"{op.name}: expected unbiased or correction, got both; pass correction alone")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    elif type(correction) is not int and type(correction) is not float:
        correction = factor(op.name, "correction", correction, dtypes.float64)
    if input.dtype.kind not in ("floating", "complex"):
        raise DtypeError(
            f"{op.name}: std and var only support floating point and complex dtypes, got {input.dtype}; convert it "
            "with .float()"
        )
    shape = input.native.shape
    dims = None if dim is None or not shape else rules.wrap_dims(op.name, dim, len(shape)) or None
    if dim is not None and not shape:
        rules.wrap_dims(op.name, dim, 0)  # says what is wrong
    if count_of(shape, dims) - correction <= 0:
        warnings.warn(
            f"{op.name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input "
            f"numel divided by output numel).",
            stacklevel=4,
        )
    options = {"dim": dims, "keepdim": keepdim, "correction": float(correction), "root": op in _ROOTS}
    real = input.dtype.to_real() if input.dtype.is_complex else input.dtype
    made = apply(op, (input,), options, dtype=(real, input.dtype) if op.kernel == "var_mean" else real)
    return made if out is None else stored(op.name, made, out)


@over_dims(samples=samples.reduction)
def var(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None, out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Variance of all elements, or along ``dim``: squares over the number of elements less ``correction`` (1)."""
    return _spread_of(_var, input, dim, unbiased, keepdim, correction, out)


@over_dims(samples=samples.reduction)
def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None, out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Standard deviation of all elements, or along ``dim``: the root of ``var``."""
    return _spread_of(_std, input, dim, unbiased, keepdim, correction, out)


@over_dims(samples=samples.reduction, method=False)
def var_mean(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> Any:  # fmt: skip
    """Variance and mean, as a pair."""
    return _spread_of(_var_mean, input, dim, unbiased, keepdim, correction, None)


@over_dims(samples=samples.reduction, method=False)
def std_mean(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> Any:  # fmt: skip
    """Standard deviation and mean, as a pair."""
    return _spread_of(_std_mean, input, dim, unbiased, keepdim, correction, None)


# Norms


def _norm_gradient(g: Tensor, input: Tensor, out: Tensor, p: float, dim: Any, keepdim: bool) -> Tensor | None:
    if p == 0:
        return None  # as in PyTorch, a count has no gradient: a leaf's stays None
    shape = tuple(input.native.shape)
    g, out = kept(g, shape, dim, keepdim), kept(out, shape, dim, keepdim)
    if p == 1:
        return g * _sign(input)
    if p in (inf, -inf):
        size, top = input.detach().abs(), out.detach()
        if input.dtype.is_complex:  # whose sizes may differ in a bit from those that the norm's kernel saw
            top = (size.amax if p > 0 else size.amin)(() if dim is None else dim, True)
        weights = apply(ties, (size, top), {"dim": dim, "keepdim": True, "nan": False})
        return g * _sign(input) * weights
    # Where the norm is 0 the gradient is 0, not 0/0.
    some = (out != 0).to(out.dtype)
    safe = out + (1.0 - some)
    if p == 2:
        return input * (g * some / safe)
    size = input.abs()
    if p < 2:
        there = (size != 0).to(size.dtype)
        return _sign(input) * there * (size + (1.0 - there)) ** (p - 1) * (g * some * safe ** (1 - p))
    return input * size ** (p - 2) * (g * some / safe ** (p - 1))


def _sign(input: Tensor) -> Tensor:
    return input.sgn() if input.dtype.is_complex else input.sign()


_norm = Op("linalg_vector_norm", "input", "The p-norm over dims.", kernel="norm", register=False,
           grads=dict(input=_norm_gradient))  # fmt: skip


_EUCLIDEAN = {"p": 2.0, "dim": None, "keepdim": False}


def as_dtype(op: str, x: Tensor, dtype: Any) -> Tensor:
    """``x`` in the dtype that a norm is asked to compute in, which must hold it without loss."""
    if dtype is None:
        return x
    dtype = dtypes.as_dtype(dtype, op)
    if dtype.kind not in ("floating", "complex"):
        raise DtypeError(f"{op}: dtype should be floating point or complex, got {dtype}; pass torch.float64")
    if dtype.is_complex is not x.dtype.is_complex:
        kind = "complex" if x.dtype.is_complex else "real"
        raise DtypeError(f"{op}: dtype should be {kind} for {kind} inputs, got {dtype}; pass one of that kind")
    if dtypes.promote_types(x.dtype, dtype) is not dtype:
        raise DtypeError(
            f"{op}: the dtype of the input ({x.dtype}) should be convertible without narrowing to the specified dtype, got "
            f"{dtype}; pass a wider one"
        )
    return x.to(dtype)


@over_dims(samples=samples.vector_norm, method=False, name="linalg_vector_norm")
def vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None,
                out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The ``ord``-norm of the elements along ``dim`` (of all where None) as vectors: ``sum(|x|**ord)**(1/ord)``.

    ``inf`` and ``-inf`` give the largest and the smallest size, 0 counts what is not zero.
    """
    if (
        type(x) is Tensor
        and x.dtype.is_floating_point
        and dtype is out is None
        and type(ord) in (int, float)
        and (0 < ord < inf or 0 not in x.native.shape)
    ):
        if dim is None and not keepdim and ord == 2:
            return apply(_norm, (x,), _EUCLIDEAN)  # type: ignore[no-any-return]
        ndim = len(x.native.shape)
        along: Any = None
        if type(dim) is int and -ndim <= dim < ndim:
            along = (dim % ndim,)
        elif type(dim) is tuple and dim and ndim:
            along = rules.wrap_dims("linalg.vector_norm", dim, ndim)
        if along is not None or dim is None:
            dims = None if along is None or (len(along) == ndim and not keepdim) else along
            return apply(_norm, (x,), {"p": float(ord), "dim": dims, "keepdim": keepdim})  # type: ignore[no-any-return]
    check_tensors("linalg.vector_norm", x=x)
    if x.dtype.kind not in ("floating", "complex"):
        raise DtypeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input, got {x.dtype}; convert it "
            "with .float()"
        )
    ord = plain(ord)
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        raise ArgumentTypeError(
            f"linalg.vector_norm: expected ord to be a number, got {ord!r}; matrix norms are matrix_norm's"
        )
    x = as_dtype("linalg.vector_norm", x, dtype)
    shape = x.native.shape
    dims = None if dim is None else rules.wrap_dims("linalg.vector_norm", dim, len(shape)) or None
    if not shape or (dims is not None and len(dims) == len(shape) and not keepdim):
        dims = None
    if (ord == inf or ord < 0) and not count_of(shape, dims):
        raise ShapeError(
            f"linalg.vector_norm: cannot compute the {ord} norm on an empty tensor because the operation does not "
            "have an "
            f"identity, got shape {list(shape)}; skip empty inputs"
        )
    options = {"p": float(ord), "dim": dims, "keepdim": keepdim}
    return stored("linalg.vector_norm", apply(_norm, (x,), options, dtype=x.dtype.to_real()), out)
