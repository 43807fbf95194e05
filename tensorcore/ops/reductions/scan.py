"""Scans: running sums, products and extremes along a dim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import UnsupportedDtype
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import PLAIN_FLOATS, apply, apply_into
from tensorcore.ops.define import Op
from tensorcore.ops.fused import differentiate
from tensorcore.ops.inplace import is_free
from tensorcore.ops.kinds import COMPLEX, FLOATING, REAL
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import written
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.complex import conjugate
from tensorcore.ops.record import record
from tensorcore.ops.reductions.extreme import put_back, values_and_places
from tensorcore.ops.reductions.reduce import check_floating, check_real, over_dims, return_type, stored, way_along
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]

_cumsum = Op("cumsum", "input", "Running sums along a dim.", register=False,
             grads=dict(input=lambda g, dim: _from_the_end(g, dim)))  # fmt: skip
_cumsum_back = Op(
    "cumsum_back",
    "input",
    "Running sums along a dim from its end.",
    register=False,
    backward_name="CumsumBackward0",
    grads=dict(input=lambda g, dim: apply(_cumsum, (g,), {"dim": dim})),
)
_cumprod = Op("cumprod", "input", "Running products along a dim.", register=False,
              grads=dict(input=lambda g, input, out, dim: _cumprod_gradient(g, input, out, dim)))  # fmt: skip


def _from_the_end(g: Tensor, dim: int) -> Tensor:
    """The sum of each element and all after it: the transpose of ``cumsum``."""
    return apply(_cumsum_back, (g,), {"dim": dim})


def _cumprod_gradient(g: Tensor, input: Tensor, out: Tensor, dim: int) -> Tensor:
    if not input.native.shape or input.native.shape[dim] == 1:
        return g
    if mode.tracer is not None and not mode.enabled:
        return _cumprod_gradient_of_any(g, input, out, dim)
    # Examples of a vmap differ in whether they have a zero.
    if input.device.many or not bool((input.detach() != 0).all()):
        return differentiate(lambda x: _cumprod_by_hand(x, dim), (input,), g)[0]
    return _from_the_end(g * conjugate(out), dim) / conjugate(input)


def _cumprod_gradient_of_any(g: Tensor, input: Tensor, out: Tensor, dim: int) -> Tensor:
    """The same without a look at the values, which are others in each replay: behind the first zero nothing counts."""
    zero: Any = input == 0
    count = zero.cumsum(dim)
    first = zero & (count == 1)
    others: Any = where(first, 1.0, input)
    usual = _from_the_end(g * conjugate(out), dim) / conjugate(where(zero, 1.0, input))
    at_zero = _from_the_end(where(count >= 1, g * conjugate(others.cumprod(dim)), 0.0), dim)
    return where(count == 0, usual, where(first, at_zero, 0.0))


def _cumprod_by_hand(x: Tensor, dim: int) -> Tensor:
    """Running products by multiplications alone, whose derivatives of any order hold where elements are zero."""
    shape = tuple(x.native.shape)
    n = shape[dim]
    step = 1
    while step < n:
        # Every element times the one ``step`` before it; those near the start times 1.
        moved = apply(_shifted, (x,), {"dim": dim, "step": step})
        start = x.new_zeros([n if i == dim else 1 for i in range(len(shape))])
        start.narrow(dim, 0, step).fill_(1)
        x = x * (moved + start)
        step *= 2
    return x


_shifted = Op("shifted", "input", "The elements moved along a dim, zeros before them.", register=False,
              grads=dict(input=lambda g, dim, step: apply(_shifted, (g,), {"dim": dim, "step": -step})))  # fmt: skip


def _scan(op: Op, input: Tensor, dim: int, dtype: Any, out: Any) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op.name, input=input)
    if dtype is None and type(dim) is int and input.dtype.is_floating_point:
        ndim = len(input.native.shape)
        if -ndim <= dim < ndim:
            options = {"dim": dim % ndim}
            made = apply(op, (input,), options) if out is None else apply_into(op, (input,), options, input.dtype, out)
            if made is not None:
                return made  # type: ignore[no-any-return]
    at = rules.wrap_dim(op.name, dim, len(input.native.shape))
    if dtype is None and isinstance(out, Tensor) and out.dtype is not dtypes.bool_:
        dtype = out.dtype
    if dtype is None and input.dtype.kind in ("bool", "integer"):
        dtype = dtypes.int64
    if dtype is not None:
        input = input.to(dtypes.as_dtype(dtype, op.name))
    if input.dtype is dtypes.bool_:
        raise UnsupportedDtype(
            f"{op.name}: expected a dtype of numbers, got torch.bool: not implemented for it; pass int64"
        )
    return stored(op.name, apply(op, (input,), {"dim": at}), out, input)


def _scanning(op: Op) -> Callable[..., Any]:
    return way_along(op, FLOATING | COMPLEX | {dtypes.int64}, {"dim": ...})


def _scanned_over(kernel: str) -> Callable[..., bool]:
    """What scans along a dim in place, in the calls that most are; whether it did."""

    def scanned_over(input: Tensor, given: tuple[Any, ...], **options: Any) -> bool:
        dim = given[0] if len(given) == 1 and not options else None
        if type(dim) is not int or not is_free(input) or not input.dtype.is_floating_point:
            return False
        native, kernels = input.native, input.device.kernels
        ndim = len(native.shape)
        if not -ndim <= dim < ndim:
            return False
        try:
            made = kernels[kernel](native, dim=dim % ndim)
        except MemoryError:  # the complete call makes room
            return False
        kernels["copy"](native, made)
        written(input)
        return True

    return scanned_over


@over_dims(samples=samples.along_dim, writes=True, overwritten=_scanned_over("cumsum"), way=_scanning(_cumsum))
def cumsum(input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The sum of each element and all before it along ``dim``; integers and bools are summed as int64."""
    return _scan(_cumsum, input, dim, dtype, out)


@over_dims(samples=samples.along_dim, writes=True, overwritten=_scanned_over("cumprod"), way=_scanning(_cumprod))
def cumprod(input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The product of each element and all before it along ``dim``; integers and bools are multiplied as int64."""
    return _scan(_cumprod, input, dim, dtype, out)


def plain_powers(x: Tensor, count: int) -> Tensor | None:
    """The powers from 0 to ``count - 1`` of each element in a new last dim, of numbers that are not recorded; None for others."""
    if type(x) is not Tensor or x.node is not None or not (x.dtype in PLAIN_FLOATS or x.dtype.is_complex) or count < 1:
        return None
    kernels, shape, dtype = x.device.kernels, tuple(x.native.shape), x.dtype
    last, whole = len(shape), (*shape, count)
    try:
        if count == 1:
            return new_tensor(kernels["full"](whole, 1, dtype=dtype), dtype, x.device)  # type: ignore[no-any-return]
        repeated = kernels["expand"](kernels["unsqueeze"](x.native, dim=last), shape=(*shape, count - 1))
        parts = [kernels["full"]((*shape, 1), 1, dtype=dtype), kernels["contiguous"](repeated)]
        made = kernels["cumprod"](kernels["cat"](parts, dim=last, shape=whole), dim=last)
    except MemoryError:  # the complete call makes room
        return None
    return new_tensor(made, dtype, x.device)  # type: ignore[no-any-return]


def _running_op(name: str) -> Op:
    return Op(name, "input", "The extreme so far, and where it is.", register=False, grads=dict(
        input=lambda g, at, dim, input_shape: put_back(g, at, dim, True, input_shape, unique=False)))  # fmt: skip


_cummax, _cummin = _running_op("cummax"), _running_op("cummin")
_Cummax, _Cummin = return_type("cummax"), return_type("cummin")


def _running(op: Op, answer: Any, input: Tensor, dim: int, out: Any) -> Any:
    check_real(op.name, input)
    at = rules.wrap_dim(op.name, dim, len(input.native.shape))
    return values_and_places(op.name, answer, op, input, {"dim": at}, out, input)


@over_dims(samples=samples.along_dim, way=way_along(_cummax, REAL, {"dim": ...}, _Cummax))
def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The largest element so far along ``dim`` and where it was met last, as ``(values, indices)``."""
    if type(input) is not Tensor:
        check_tensors("cummax", input=input)
    return _running(_cummax, _Cummax, input, dim, out)


@over_dims(samples=samples.along_dim, way=way_along(_cummin, REAL, {"dim": ...}, _Cummin))
def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The smallest element so far along ``dim`` and where it was met last, as ``(values, indices)``."""
    if type(input) is not Tensor:
        check_tensors("cummin", input=input)
    return _running(_cummin, _Cummin, input, dim, out)


_logcumsumexp = Op("logcumsumexp", "input", "Running log-sum-exp along a dim.", register=False, grads=dict(
    # exp(input - out) is the weight of each element in its own result; later ones follow by their ratio.
    input=lambda g, input, dim: differentiate(lambda x: _logcumsumexp_by_hand(x, dim), (input,), g)[0]))  # fmt: skip


def _logcumsumexp_by_hand(x: Tensor, dim: int) -> Tensor:
    if not x.native.shape or 0 in x.native.shape:
        return x * 1.0
    top = (x.real if x.dtype.is_complex else x).detach().amax(dim, True)
    return cumsum((x - top).exp(), dim).log() + top


@over_dims(samples=samples.along_dim, way=way_along(_logcumsumexp, FLOATING | COMPLEX, {"dim": ...}))
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """``log(cumsum(exp(input)))`` along ``dim``, computed without overflow."""
    if type(input) is not Tensor:
        check_tensors("logcumsumexp", input=input)
    if not input.dtype.is_complex:
        check_floating("logcumsumexp", input)
    at = rules.wrap_dim("logcumsumexp", dim, len(input.native.shape))
    native = input.device.kernels["logcumsumexp"](input.native, dim=at)
    made = new_tensor(native, input.dtype, input.device)
    if mode.enabled and input.node is not None:
        record(_logcumsumexp, (input,), {"dim": at}, made)
    return stored("logcumsumexp", made, out, input)
