"""Distances between vectors: of two tensors, of all pairs of rows; and slices shortened."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.ops.define import Op
from tensorcore.ops.fused import differentiate
from tensorcore.ops.inplace import is_free
from tensorcore.ops.kinds import composite, operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store, written
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import check_floating
from tensorcore.ops.reductions.statistics import vector_norm
from tensorcore.ops.samples import numeric as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.ops.shortage import again
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["cdist", "dist", "renorm"]


@operation(samples=samples.dist)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of ``input - other``, which broadcast."""
    if type(input) is not Tensor or type(other) is not Tensor:
        check_tensors("dist", input=input, other=other)
    return vector_norm(input - other, p)


_MODES = {
    None: None, "use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": True, "donot_use_mm_for_euclid_dist": False,
}  # fmt: skip
# PyTorch multiplies matrices from here on; with differences that is as fast up to so many of them, and for short rows always, and has
# more digits.
_MANY, _DIFFERENCES, _SHORT = 25, 1 << 18, 32


# The norms whose gradients a kernel knows.
POWERS = frozenset([1, 2, math.inf])


def _measured(x1: Any, x2: Any, p: float = 2.0) -> Tensor | None:
    """Distances of the rows of two matrices, or of those of two batches, by one kernel, where there is one and nothing is recorded;
    None for other calls."""
    if not (
        type(x1) is type(x2) is Tensor and x1.dtype is x2.dtype and x1.dtype in PLAIN_FLOATS and x1.device is x2.device
    ):
        return None
    a, b = x1.native.shape, x2.native.shape
    if (
        len(b) == 2 < len(a) and x1.node is None and 0 not in a
    ):  # each matrix of a batch and one for all: one long matrix
        made = _measured(x1.reshape(-1, a[-1]), x2, p)  # type: ignore[attr-defined]
        return None if made is None else made.reshape(*a[:-1], b[0])  # type: ignore[attr-defined, no-any-return]
    if not 1 < len(a) == len(b) or a[-1] != b[-1] or a[:-2] != b[:-2] or 0 in a or 0 in b:
        return None
    if p == 2 and a[-1] > _SHORT and a[-2] * b[-2] * a[-1] > _DIFFERENCES:
        return None
    kernel, taped = x1.device.kernels["cdist"], mode.enabled and (x1.node is not None or x2.node is not None)
    if not kernel or (taped and (p == 2 or p not in POWERS)):
        return None
    try:
        native = kernel(x1.native, x2.native, p=float(p))
    except MemoryError as error:
        native = again(x1.device, "cdist", (x1.native, x2.native), {"p": float(p)}, error)
    made = new_tensor(native, x1.dtype, x1.device)
    if taped:
        record(_cdist, (x1, x2), {"p": float(p)}, made)
    return made  # type: ignore[no-any-return]


def pull(g: Any, mine: Any, other: Any, out: Any, p: float, apart: Callable[..., Any]) -> Any:
    """The gradient with regard to the first tensor of the distances ``out`` between its rows and those of the other one, or of each
    other where there is none; ``apart`` are those distances in ops of their own, for walks that are recorded."""
    kernel = None if mode.enabled else mine.device.kernels["distances_gradient"]
    if not kernel:
        return differentiate(apart, (mine,), g)[0]
    natives = [None if one is None else one.native for one in (g, mine, other, out)]
    try:
        native = kernel(*natives, p=p)
    except MemoryError as error:
        native = again(mine.device, "distances_gradient", natives, {"p": p}, error)
    return new_tensor(native, mine.dtype, mine.device)


def _apart(x1: Any, x2: Any, p: float) -> Tensor:
    return between(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


_cdist = Op("cdist", "x1 x2", "Distances of the rows of two.", register=False, backward_name="CdistBackward0", grads=dict(
    x1=lambda g, x1, x2, out, p: pull(g, x1, x2, out, p, lambda x: _apart(x, x2, p)),
    x2=lambda g, x1, x2, out, p: pull(g.mT, x2, x1, out.mT, p, lambda x: _apart(x, x1, p))))  # fmt: skip


@operation(samples=samples.cdist, method=False)
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norm distances of the rows of (..., n, m) to those of (..., k, m), of shape (..., n, k).

    Args:
        compute_mode: whether Euclidean distances come from a matrix product, which is faster and has fewer digits
            (``use_mm_for_euclid_dist``), from the differences (``donot_use_mm_for_euclid_dist``), or from a product
            where one side has more than 25 rows.
    """
    if (
        (type(p) is float or type(p) is int)
        and p >= 0
        and compute_mode in _MODES
        and (made := _measured(x1, x2, p)) is not None
    ):
        return made
    if type(x1) is not Tensor or type(x2) is not Tensor:
        check_tensors("cdist", x1=x1, x2=x2)
    check_floating("cdist", x1, x2)
    if p < 0:
        raise UsageError(f"cdist: cdist only supports non-negative p values, got {p}; pass 0 or more")
    for name, one in (("X1", x1), ("X2", x2)):
        if one.ndim < 2:
            raise ShapeError(f"cdist: cdist only supports at least 2D tensors, {name} got: {one.ndim}D; use unsqueeze")
    a, b = tuple(x1.native.shape), tuple(x2.native.shape)
    if a[-1] != b[-1]:
        raise ShapeError(f"cdist: X1 and X2 must have the same number of columns. X1: {a[-1]} X2: {b[-1]}, got both")
    if compute_mode not in _MODES:
        raise ArgumentError(f"cdist: {compute_mode} is not a valid value for compute_mode, got it; leave it out")
    rules.broadcast("cdist", a[:-2], b[:-2])
    if not a[-1]:  # sums of nothing
        return x1.sum(-1, True) + x2.sum(-1).unsqueeze(-2)  # type: ignore[attr-defined, no-any-return]
    if p == 2:
        chosen = _MODES[compute_mode]
        return _euclidean(x1, x2, max(a[-2], b[-2]) > _MANY if chosen is None else chosen)  # type: ignore[no-any-return]
    if p in POWERS:  # of batches that broadcast
        batch = rules.broadcast("cdist", a[:-2], b[:-2])
        made = _measured(x1.expand((*batch, *a[-2:])), x2.expand((*batch, *b[-2:])), p)  # type: ignore[attr-defined]
        if made is not None:
            return made
    return _apart(x1, x2, p)


def between(away: Any, p: float) -> Tensor:
    """The p-norms of differences along the last dim: of p = 0 how many are not 0, which is a NaN where one of them is."""
    return vector_norm(away, p, -1) if p else away.abs().ceil().clamp(max=1.0).sum(-1)  # type: ignore[no-any-return]


def _ratio(g: Tensor, out: Tensor) -> Tensor:
    """Equal points pull nowhere."""
    return where(out == 0, 0.0, g / where(out == 0, 1.0, out))  # type: ignore[no-any-return]


def _pull(g: Tensor, mine: Any, other: Any, out: Tensor) -> Any:
    ratio: Any = _ratio(g, out)
    return mine * ratio.sum(-1, True) - ratio @ other


def _check_euclidean(x1: Tensor, x2: Tensor, product: bool) -> tuple[Any, ...]:
    check_tensors("_euclidean_dist", x1=x1, x2=x2)
    check_floating("_euclidean_dist", x1, x2)
    return x1, x2, product


@composite(
    inputs="x1 x2", name="_euclidean_dist", check=_check_euclidean, method=False, samples=samples.euclidean,
    grads=dict(x1=lambda g, x1, x2, out: _pull(g, x1, x2, out), x2=lambda g, x1, x2, out: _pull(g.mT, x2, x1, out.mT)),
)  # fmt: skip
def _euclidean(x1: Tensor, x2: Tensor, product: bool = True) -> Tensor:
    """Euclidean distances of all rows of one tensor to all of another."""
    if not product:
        made = _measured(x1, x2)
        return made if made is not None else vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), 2, -1)  # type: ignore[attr-defined]
    x: Any = x1
    y: Any = x2
    left = cat([x * -2, x.square().sum(-1, True), x.new_ones((*x.shape[:-1], 1))], -1)
    right = cat([y, y.new_ones((*y.shape[:-1], 1)), y.square().sum(-1, True)], -1)
    return (left @ right.mT).clamp_min(0).sqrt()  # type: ignore[attr-defined, no-any-return]


def _shortened(input: Tensor, given: tuple[Any, ...], **options: Any) -> bool:
    """``renorm`` in place of a tensor that is free of others, with usual numbers; whether it did."""
    if len(given) != 3 or options or not is_free(input) or input.dtype not in PLAIN_FLOATS or 0 in input.native.shape:
        return False
    p, dim, most = given
    if not (type(p) in _NUMBERS and type(dim) is int and type(most) in _NUMBERS and p > 0 and most >= 0):
        return False
    kernel, ndim = input.device.kernels["renorm"], len(input.native.shape)
    if not kernel or ndim < 2 or not -ndim <= dim < ndim:
        return False
    kernel(input.native, p=float(p), dim=dim % ndim, maxnorm=float(most), out=input.native)
    written(input)
    return True


def _complex_shortened(input: Tensor, p: float, others: tuple[int, ...], most: float) -> Tensor:
    kernels = input.device.kernels
    sizes = kernels["norm"](input.native, p=p, dim=others, keepdim=True)
    factors = kernels["div"](most, kernels["add"](sizes, 1e-7))
    factors = kernels["where"](kernels["gt"](sizes, most), factors, 1.0)
    made = kernels["mul"](input.native, kernels["cast"](factors, dtype=input.dtype))
    return new_tensor(made, input.dtype, input.device)  # type: ignore[no-any-return]


_NUMBERS = frozenset([int, float])


@operation(samples=samples.renorm, writes=True, overwritten=_shortened)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """The tensor with each slice along ``dim`` whose p-norm is over ``maxnorm`` shortened to it."""
    if type(input) is not Tensor:
        check_tensors("renorm", input=input)
    if dtypes.kind_of(p) == "complex" or p <= 0:
        raise UsageError(f"renorm: non-positive-norm not supported, got p={p}; pass one over 0")
    if dtypes.kind_of(maxnorm) == "complex" or maxnorm < 0:
        raise UsageError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}; pass 0 or more")
    if input.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions; use unsqueeze")
    at = rules.wrap_dim("renorm", dim, input.ndim)
    plain = input.node is None and input.dtype in PLAIN_FLOATS and 0 not in input.native.shape
    kernel = input.device.kernels["renorm"] if plain else None
    if kernel:
        native = kernel(input.native, p=float(p), dim=at, maxnorm=float(maxnorm))
        made = new_tensor(native, input.dtype, input.device)
        return made if out is None else store("renorm", made, out, input)
    others = tuple([i for i in range(input.ndim) if i != at])
    if input.dtype.is_complex and input.node is None and math.isfinite(p):
        try:
            made = _complex_shortened(input, float(p), others, float(maxnorm))
            return made if out is None else store("renorm", made, out, input)
        except MemoryError:
            pass  # the complete call makes room
    # As in PyTorch: narrow floats are measured in single precision.
    wide = dtypes.float32 if input.dtype.itemsize == 2 and input.dtype.is_floating_point else None
    size = vector_norm(input, p if math.isfinite(p) else math.inf, others, True, dtype=wide)
    factor = where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)
    made = input.contiguous() * factor.to(input.dtype if not input.dtype.is_complex else size.dtype)
    return made if out is None else store("renorm", made, out, input)
