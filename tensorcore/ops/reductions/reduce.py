"""Reductions: sums, products, means and logical reductions over dims, and what all reductions share."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UnsupportedDtype
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import apply, apply_into, reduction
from tensorcore.ops.define import Op
from tensorcore.ops.fused import differentiate
from tensorcore.ops.kinds import COMPLEX, FLOATING, NUMBERS, install, operation
from tensorcore.ops.operands import check_tensors, plain
from tensorcore.ops.output import check_place, store
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.complex import conjugate
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.ops.signature import checked
from tensorcore.shortcuts import along_way, before, reduced_way
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "all", "any", "count_nonzero", "logsumexp", "mean", "nanmean", "nansum", "prod", "sum", "sum_to_size",
]  # fmt: skip

Dims = int | Sequence[int] | None
# Gradients of up to this many elements are written out; larger ones are expanded views.
SMALL = 4096


def over_dims(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``operation`` for functions with a ``dim``: NumPy's names work too."""
    return operation(numpy=True, **options)


# Those that were made so far, by their names.
RETURN_TYPES: dict[str, Any] = {}


def return_type(name: str, fields: str = "values indices") -> Any:
    """The named tuple that an op of several results returns; it prints as PyTorch's does."""
    made = namedtuple(name, fields)  # type: ignore[misc]
    made.__module__ = "torch.return_types"

    def show(self: Any) -> str:
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"torch.return_types.{name}(\n{parts})"

    made.__repr__ = show  # type: ignore[method-assign, assignment]
    RETURN_TYPES[name] = made
    return made


def spread(g: Tensor, shape: tuple[int, ...], dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """A reduced gradient over the shape from before the reduction."""
    if not mode.enabled and product(shape) <= SMALL:
        kernel = g.device.kernels["spread"]
        if kernel:
            return new_tensor(kernel(g.native, shape=shape, dim=dim, keepdim=keepdim), g.dtype, g.device)
    return kept(g, shape, dim, keepdim).expand(shape)


def kept(g: Tensor, shape: tuple[int, ...], dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """A reduced gradient with the reduced dims at size 1, so that it broadcasts."""
    return g if keepdim or dim is None else g.reshape(rules.reduced(shape, dim, True))


def count_of(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements go into each result."""
    return product(shape) if dim is None else product([shape[i] for i in dim])


@before("stored")
def stored(op: str, made: Any, out: Any, *inputs: Any) -> Any:
    """A result, or the results, written into ``out`` if there is one, which shows no part of the memory of ``inputs``."""
    if out is None:
        return made
    if isinstance(made, Tensor):
        return store(op, made, out, *inputs)
    if not isinstance(out, (tuple, list)) or len(out) != len(made):
        raise ArgumentTypeError(f"{op}: expected out to be a tuple of {len(made)} tensors, got {out!r}; pass a pair")
    for one, place in zip(made, out, strict=True):
        check_place(op, one, place, *inputs)  # all of them before one is written
    placed = [store(op, one, place, *inputs) for one, place in zip(made, out, strict=True)]
    return tuple(placed) if type(made) is tuple else type(made)(*placed)


def applied(op: Op, inputs: tuple[Tensor, ...], options: dict[str, Any], out: Any, dtype: Any = None) -> Any:
    """``apply``, with the result in ``out`` if there is one."""
    if out is not None and (done := apply_into(op, inputs, options, dtype or inputs[0].dtype, out)) is not None:
        return done
    return stored(op.name, apply(op, inputs, options, dtype=dtype), out)


def way_along(
    op: Op, accepts: frozenset[dtypes.dtype], words: dict[str, Any], answer: Any = None, result: Any = None
) -> Callable[..., Any]:
    """The short way of what works along a dim; with ``answer`` it picks elements, and says where they were."""
    return along_way(op, accepts, words, record, store, again, (None, dtypes.int64) if answer else result, answer)


def check_real(op: str, of: Tensor | dtypes.dtype) -> None:
    """Raise for complex numbers, which have no order."""
    kind = of.dtype if isinstance(of, Tensor) else of
    if kind.is_complex:
        raise UnsupportedDtype(
            f"{op}: expected a real dtype, got {kind.name}: not implemented for it; use .abs() or .real"
        )


def check_floating(op: str, *tensors: Tensor) -> None:
    """Raise for integers, bools and complex numbers where PyTorch's kernel takes floating dtypes only."""
    for one in tensors:
        if not one.dtype.is_floating_point:
            raise UnsupportedDtype(
                f"{op}: expected a floating dtype, got {one.dtype}: not implemented for it; convert it with .float()"
            )


# Sums


def closure(op: Op, accepts: Any, slow: Callable[..., Any], calls: Any, dims: Any = True) -> Callable[..., Any]:
    call = functools.wraps(slow)(reduction(op, accepts, checked(slow, op.name, numpy=True), dims is True))
    call.__name__ = call.__qualname__ = op.name
    call = reduced_way(op, again, accepts, dims, store)(call)
    entry = Op(op.name, "input", slow.__doc__ or "", samples=calls, kind="reduction")
    entry.function = call
    return install(call, op.name)


_sum = Op(
    "sum", "input", "Sum over dims.", register=False,
    grads=dict(input=lambda g, input_shape, dim, keepdim: spread(g, input_shape, dim, keepdim)),
)  # fmt: skip
_mean = Op(
    "mean", "input", "Mean over dims.", register=False,
    grads=dict(input=lambda g, input_shape, dim, keepdim: spread(
        g / float(count_of(input_shape, dim)), input_shape, dim, keepdim) if count_of(input_shape, dim) else
        spread(g, input_shape, dim, keepdim)),
)  # fmt: skip
_nansum = Op(
    "nansum", "input", "Sum over dims, without NaN.", register=False,
    grads=dict(input=lambda g, input, input_shape, dim, keepdim:
               kept(g, input_shape, dim, keepdim) * (1.0 - (input != input).to(g.dtype))),
)  # fmt: skip


def dims_of(op: str, input: Tensor, dim: Dims) -> tuple[int, ...] | None:
    """``dim`` as a tuple from the front; None, and an empty tuple too, mean all."""
    if dim is None:
        return None
    dims = rules.wrap_dims(op, dim, len(input.native.shape))
    return dims if dims and input.native.shape else None


def _summing(op: Op, input: Tensor, dim: Dims, keepdim: bool, dtype: Any, out: Any) -> Tensor:
    check_tensors(op.name, input=input)
    dims = dims_of(op.name, input, dim)
    if dtype is None and input.dtype.kind in ("bool", "integer"):
        dtype = dtypes.int64
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype, op.name)
        if dtype.kind == "bool":  # whether any element is there
            made = apply(
                _sum, (input.to(dtype),), {"dim": dims, "keepdim": keepdim, "dtype": dtypes.int64}, dtype=dtypes.int64
            )
            return stored(op.name, made.to(dtype), out)
        if dtype.kind == "integer":
            input = input if input.dtype.kind in ("bool", "integer") else input.to(dtype)
            options = {"dim": dims, "keepdim": keepdim, "dtype": dtype}
            return applied(_sum, (input,), options, out, dtype)  # type: ignore[no-any-return]
        input = input.to(dtype)
    return applied(op, (input,), {"dim": dims, "keepdim": keepdim}, out)  # type: ignore[no-any-return]


def _sum_slow(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None,
              out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Sum of all elements, or of those along ``dim``; integers and bools are summed as int64."""
    if dim is dtype is out is None and keepdim is False and type(input) is Tensor and input.dtype is dtypes.bool_:
        return apply(_count_nonzero, (input,), {"dim": None}, dtype=dtypes.int64)  # type: ignore[no-any-return]  # nothing to convert
    if dtype is None and isinstance(out, Tensor):
        dtype = out.dtype
    return _summing(_sum, input, dim, keepdim, dtype, out)


sum = closure(_sum, FLOATING | COMPLEX | {dtypes.int64}, _sum_slow, samples.reduction)


def _mean_slow(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None,
               out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Mean of all elements, or of those along ``dim``; NaN of no elements. Integers need a floating ``dtype``."""
    check_tensors("mean", input=input)
    dims = dims_of("mean", input, dim)
    wanted = input.dtype if dtype is None else dtypes.as_dtype(dtype, "mean")
    if wanted.kind not in ("floating", "complex"):
        raise DtypeError(
            f"mean: could not infer output dtype. Input dtype must be either a floating point or complex dtype, got "
            f"{wanted}; pass dtype=torch.float32"
        )
    return applied(_mean, (input.to(wanted),), {"dim": dims, "keepdim": keepdim}, out)  # type: ignore[no-any-return]


mean = closure(_mean, FLOATING | COMPLEX, _mean_slow, samples.reduction)


@over_dims(samples=samples.reduction, kind="reduction")
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None,
           out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Sum that counts NaN as zero."""
    if type(input) is not Tensor:
        check_tensors("nansum", input=input)
    if input.dtype.is_complex:
        raise DtypeError(
            f"nansum: does not support complex inputs, got {input.dtype}; sum the real and imaginary parts"
        )
    if input.dtype.kind in ("bool", "integer"):
        return _sum_slow(input, dim, keepdim, dtype=dtype, out=out)
    if dtype is not None:
        check_real("nansum", dtypes.as_dtype(dtype, "nansum"))
    return _summing(_nansum, input, dim, keepdim, dtype, out)


@over_dims(samples=samples.reduction)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None,
            out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Mean of the elements that are not NaN."""
    if type(input) is not Tensor:
        check_tensors("nanmean", input=input)
    if input.dtype.kind not in ("floating", "complex"):
        raise DtypeError(
            f"nanmean: expected input to have floating point or complex dtype, got {input.dtype}; convert it with "
            ".float()"
        )
    wanted = input.dtype if dtype is None else dtypes.as_dtype(dtype, "nanmean")
    if wanted.kind not in ("floating", "complex"):
        raise DtypeError(
            f"nanmean: could not infer output dtype. Optional dtype must be either a floating point or complex dtype, got "
            f"{wanted}; pass dtype=torch.float32"
        )
    numbers = input.detach() == input.detach()
    made = nansum(input, dim, keepdim, dtype=dtype)
    made = made / sum(numbers, dim, keepdim).to(made.dtype)
    return stored("nanmean", made, out)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Sum over what broadcasting stretched, so that the result has the shape ``size``."""
    size = rules.as_shape("sum_to_size", size)
    shape = tuple(input.native.shape)
    extra = len(shape) - len(size)
    if extra < 0 or True in [n not in (1, shape[i + extra]) for i, n in enumerate(size)]:
        raise ShapeError(
            f"sum_to_size: size {{{list(size)}}} is not expandable to size {{{list(shape)}}}, got a tensor of the "
            "latter; pass a size that broadcasts to it"
        )
    dims = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(size) if n == 1 and shape[i + extra] != 1)
    summed = input.sum(dims, True) if dims else input  # type: ignore[attr-defined]
    return summed.reshape(size) if extra else summed  # type: ignore[attr-defined, no-any-return]


Tensor.sum_to_size = sum_to_size  # type: ignore[attr-defined]

# Products


def _tree_product(x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """The product by halves: multiplications alone, whose derivatives of any order hold where elements are zero."""
    shape = tuple(x.native.shape)
    at = 0 if dim is None else dim
    if dim is None:
        x = x.reshape(-1)
    n = product(shape) if dim is None else shape[at]
    while n > 1:
        half = n // 2
        folded = x.narrow(at, 0, half) * x.narrow(at, half, half)
        if n % 2:
            last = x.narrow(at, n - 1, 1)
            if half == 1:
                folded = folded * last
                x, n = folded, 1
                break
            folded = _times_first(folded, last, at)
        x, n = folded, half
    if dim is None:
        return x.reshape([1] * len(shape) if keepdim else [])
    return x if keepdim else x.squeeze(at)


def _times_first(x: Tensor, factor: Tensor, at: int) -> Tensor:
    """``x`` with its first slice along a dim multiplied by ``factor``, out of place."""
    shape = [1] * len(x.native.shape)
    shape[at] = x.native.shape[at]
    first = x.new_zeros(shape)
    first.narrow(at, 0, 1).fill_(1)
    return x * (factor * first + (1.0 - first))


def _prod_gradient(g: Tensor, input: Tensor, out: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    shape = tuple(input.native.shape)
    if not shape:
        return g.reshape(())
    dims = None if dim is None else (dim,)
    if mode.tracer is not None and not mode.enabled:
        return _prod_gradient_of_any(g, input, out, dims, keepdim)
    # Examples of a vmap differ in whether they have a zero.
    if input.device.many or not bool((input.detach() != 0).all()):
        return differentiate(lambda x: _tree_product(x, dim, keepdim), (input,), g)[0]
    return kept(g * conjugate(out), shape, dims, keepdim) / conjugate(input)


def _prod_gradient_of_any(g: Tensor, input: Tensor, out: Tensor, dims: Any, keepdim: bool) -> Tensor:
    """The same without a look at the values, which are others in each replay: with one zero, of that element alone."""
    shape = tuple(input.native.shape)
    zero: Any = input == 0
    rest: Any = where(zero, 1.0, input)
    others = rest.prod() if dims is None else rest.prod(dims[0], keepdim)
    count = zero.sum() if dims is None else zero.sum(dims[0], keepdim)
    count, one = kept(count, shape, dims, keepdim), kept(g * conjugate(others), shape, dims, keepdim)
    usual = kept(g * conjugate(out), shape, dims, keepdim) / conjugate(rest)
    return where(count == 0, usual, where(zero & (count == 1), one, 0.0))


_prod = Op("prod", "input", "Product over dims.", register=False, grads=dict(input=lambda g, input, out, axis, keepdim:
           _prod_gradient(g, input, out, axis, keepdim)))  # fmt: skip


@over_dims(samples=samples.one_dim_reduction, kind="reduction")
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None,
         out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Product of all elements, or of those along ``dim``; integers and bools are multiplied as int64."""
    if type(input) is not Tensor:
        check_tensors("prod", input=input)
    dim = plain(dim)
    if dim is not None and not isinstance(dim, int):
        raise ArgumentTypeError(f"prod: expected dim to be an int or None, got {dim!r}; call it once per dim")
    if dtype is None and isinstance(out, Tensor):
        dtype = out.dtype
    if dtype is None and input.dtype.kind in ("bool", "integer"):
        dtype = dtypes.int64
    if dtype is not None:
        input = input.to(dtypes.as_dtype(dtype, "prod"))
    at = None if dim is None else rules.wrap_dim("prod", dim, len(input.native.shape))
    native = input.device.kernels["prod"](input.native, dim=_one(at, input), keepdim=keepdim)
    made = new_tensor(native, input.dtype, input.device)
    if mode.enabled and input.node is not None:
        record(_prod, (input,), {"axis": at, "keepdim": keepdim}, made)
    return stored("prod", made, out)


def _one(dim: int | None, input: Tensor) -> tuple[int, ...] | None:
    return None if dim is None or not input.native.shape else (dim,)


# Sums of exponentials

_logsumexp = Op(
    "logsumexp", "input", "The logarithm of the sum of exponentials.", register=False,
    grads=dict(input=lambda g, input, input_shape, out, dim, keepdim:
               kept(g, input_shape, dim, keepdim) * conjugate((input - kept(out, input_shape, dim, keepdim)).exp())),
)  # fmt: skip


@over_dims(samples=samples.dim_reduction, kind="reduction")
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``log(sum(exp(input)))`` along ``dim``, computed without overflow."""
    if type(input) is not Tensor:
        check_tensors("logsumexp", input=input)
    if input.dtype.kind in ("bool", "integer"):
        input = input.to(dtypes.get_default_dtype())
    return stored(
        "logsumexp", apply(_logsumexp, (input,), {"dim": dims_of("logsumexp", input, dim), "keepdim": keepdim}), out
    )


# Logical reductions

_all = Op("all", "input", "Whether all elements are true.", register=False)
_any = Op("any", "input", "Whether any element is true.", register=False)


def _logical_way(op: Op) -> Callable[..., Any]:
    return reduced_way(op, again, NUMBERS - {dtypes.uint8}, True, store, dtypes.bool_)


def _logical(op: Op, input: Tensor, dim: Dims, keepdim: bool, out: Any) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op.name, input=input)
    dims = None if dim is None else rules.wrap_dims(op.name, dim, len(input.native.shape))
    if not input.native.shape:
        dims = None
    made = apply(op, (input,), {"dim": dims, "keepdim": keepdim}, dtype=dtypes.bool_)
    if input.dtype is dtypes.uint8:  # as in PyTorch, where uint8 once was the dtype of masks
        made = made.to(dtypes.uint8)
    if out is not None and out.dtype is dtypes.bool_ and input.dtype is dtypes.uint8:
        made = made.to(dtypes.bool_)
    return stored(op.name, made, out)


@over_dims(samples=samples.reduction, kind="reduction", way=_logical_way(_all))
def all(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether all elements, or all along ``dim``, are not zero."""
    return _logical(_all, input, dim, keepdim, out)


@over_dims(samples=samples.reduction, kind="reduction", way=_logical_way(_any))
def any(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether any element, or any along ``dim``, is not zero."""
    return _logical(_any, input, dim, keepdim, out)


_count_nonzero = Op("count_nonzero", "input", "How many elements are not zero.", register=False)


@over_dims(samples=samples.count, kind="reduction")
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements, of all or along ``dim``, are not zero."""
    if type(input) is not Tensor:
        check_tensors("count_nonzero", input=input)
    return apply(_count_nonzero, (input,), {"dim": dims_of("count_nonzero", input, dim)}, dtype=dtypes.int64)
