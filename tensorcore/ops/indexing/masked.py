"""Reading and writing where a mask is true or in the flattened tensor, and counting what is where."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.define import Op, without_derivative
from tensorcore.ops.indexing.parse import long
from tensorcore.ops.indexing.writing import both, call, renamed, same_dtype, scalar
from tensorcore.ops.inplace import _apart, is_free
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import HIGHEST, LOWEST, PLAIN_INTEGERS, check_tensors
from tensorcore.ops.output import store, written
from tensorcore.ops.record import record
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "argwhere",
    "bincount",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "nonzero",
    "put",
    "take",
]

_masked_fill = Op(
    "masked_fill", "input mask value", "One value where a mask is true.", register=False,
    grads=dict(input=lambda g, mask: masked_fill(g, mask, 0), value=lambda g, mask: masked_fill(g, mask.logical_not(), 0).sum()),
)  # fmt: skip
_masked_select = Op(
    "masked_select", "input mask", "The elements where a mask is true.", register=False,
    grads=dict(input=lambda g, mask, input_shape: masked_scatter(
        g.new_zeros(rules.broadcast("masked_select", tuple(input_shape), tuple(mask.native.shape))), mask, g)),
)  # fmt: skip
_masked_scatter = Op(
    "masked_scatter", "input mask source", "Elements of another tensor where a mask is true.", register=False,
    grads=dict(input=lambda g, mask: masked_fill(g, mask, 0),
               source=lambda g, mask, source_shape: _unselected(masked_select(g, mask), source_shape)),
)  # fmt: skip
_take = Op("take", "input index", "Elements at indices into the flattened tensor.", register=False,
           grads=dict(input=lambda g, input_shape, index: put(g.new_zeros(input_shape), index, g, True)))  # fmt: skip
_put = Op(
    "put", "input index source", "Elements written at indices into the flattened tensor.", register=False,
    grads=dict(input=lambda g, index, accumulate: g if accumulate else put(g, index, g.new_zeros(index.shape), False),
               source=lambda g, index, source_shape: take(g, index).reshape(source_shape)),
)  # fmt: skip
_masked_fill_tensor = renamed(_masked_fill, 1)


def _mask(op: str, mask: Any) -> None:
    if not isinstance(mask, Tensor):
        raise ArgumentTypeError(f"{op}: expected mask to be a Tensor, got {mask!r}; compare a tensor with something")
    if mask.dtype is not dtypes.bool_:
        raise DtypeError(f"{op}: expected BoolTensor for mask, got {mask.dtype}; convert it with .bool()")


@both("masked_fill")
def masked_fill(name: str, write: bool, input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``input`` with one value (a number or a 0-d tensor) where ``mask``, which broadcasts, is true."""
    if type(mask) is not Tensor or mask.dtype is not dtypes.bool_:
        _mask(name, mask)
    elif (
        (type(value) is float or type(value) is int)
        and (input.dtype.is_floating_point or (input.dtype in PLAIN_INTEGERS and LOWEST <= value <= HIGHEST))
        and input.native.shape == mask.native.shape
        and input.device is mask.device
        and (
            (is_free(input) and (input.version is None or input.version is not mask.version))
            if write
            else input.node is None
        )
    ):
        dtype, device = input.dtype, input.device
        kernels = device.kernels
        number = kernels["full"]((), value if dtype.is_floating_point else int(value), dtype=dtype)
        if write:
            kernels["masked_fill"](input.native, mask.native, number, out=input.native)
            written(input)
            return input
        try:
            return new_tensor(kernels["masked_fill"](input.native, mask.native, number), dtype, device)  # type: ignore[no-any-return]
        except MemoryError:
            pass  # tried once more, with the caches freed
    shape = tuple(input.native.shape)
    if shape != mask.native.shape:
        made = rules.broadcast(name, shape, tuple(mask.native.shape))
        if write and made != shape:
            raise ShapeError(
                f"{name}: output with shape {list(shape)} doesn't match the broadcast shape {list(made)}, got a mask larger than "
                f"the tensor; use masked_fill"
            )
    op = _masked_fill_tensor if isinstance(value, Tensor) else _masked_fill
    return call(op, (input, mask, scalar(name, input, value)), {}, DimensionError, write)


@operation(samples=samples.masked_select)
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where ``mask`` (which broadcasts with the tensor) is true, as a vector."""
    if type(input) is not Tensor:
        check_tensors("masked_select", input=input)
    _mask("masked_select", mask)
    shape, sizes = input.native.shape, mask.native.shape
    if shape != sizes:
        whole = rules.broadcast("masked_select", tuple(shape), tuple(sizes))
        if whole == shape:  # as most masks that are smaller
            mask = new_tensor(mask.device.kernels["expand"](mask.native, shape=whole), mask.dtype, mask.device)
    made = apply(_masked_select, (input, mask))
    return made if out is None else store("masked_select", made, out, input, mask, all_of_it=True)


@both("masked_scatter")
def masked_scatter(name: str, write: bool, input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements of ``source``, one after the other, where ``mask``, which broadcasts, is true."""
    if (made := _scattered_plainly(input, mask, source, write)) is not None:
        return made
    _mask(name, mask)
    same_dtype(name, input, source, "source")
    shape = rules.broadcast(name, tuple(input.native.shape), tuple(mask.native.shape))
    if shape != tuple(input.native.shape):
        if write:
            raise ShapeError(
                f"{name}: output with shape {list(input.native.shape)} doesn't match the broadcast shape {list(shape)}, "
                f"got a larger mask; use masked_scatter"
            )
        input = input.expand(shape)  # type: ignore[attr-defined]
    if tuple(mask.native.shape) != shape:
        mask = mask.expand(shape).contiguous()  # type: ignore[attr-defined]
        if (made := _scattered_plainly(input, mask, source, write)) is not None:
            return made
    if write:
        source = _apart(source, input)
    # Without values nobody can count, and nothing is read.
    count = mask.device.kernels["count_true"](mask.native) if mask.device.capabilities.values else 0
    if count > source.numel():
        raise ShapeError(
            f"{name}: Number of elements of source < number of ones in mask, got {source.numel()} "
            f"< {count}; give more elements"
        )
    return call(_masked_scatter, (input, mask, source), {}, DimensionError, write)


def _stretches(mask: Tensor, input: Tensor) -> bool:
    """Whether a mask broadcasts to the shape of the input."""
    sizes, shape = mask.native.shape, input.native.shape
    missing = len(shape) - len(sizes)
    return missing >= 0 and all(one in (1, shape[missing + i]) for i, one in enumerate(sizes))


def _scattered_plainly(input: Any, mask: Any, source: Any, write: bool) -> Tensor | None:
    """The result of a call without a history and of one shape; None for other calls."""
    if not (
        type(input) is type(mask) is type(source) is Tensor
        and source.dtype is input.dtype
        and mask.dtype is dtypes.bool_
    ):
        return None
    device, version = input.device, input.version if write else None
    if mask.device is not device or source.device is not device or not device.capabilities.values:
        return None
    if (
        source.node is not None
        or (mask.native.shape != input.native.shape and (write or not _stretches(mask, input)))
        or not (is_free(input) if write else input.node is None)
    ):
        return None
    if version is not None and (mask.version is version or source.version is version):
        return None
    chosen = mask.native
    if chosen.shape != input.native.shape:
        chosen = device.kernels["contiguous"](device.kernels["expand"](chosen, shape=tuple(input.native.shape)))
    if (write and source is input) or device.kernels["count_true"](chosen) > source.numel():
        return None
    natives, kernel = (input.native, chosen, source.native), device.kernels["masked_scatter"]
    if write:
        kernel(*natives, out=input.native)
        written(input)
        return input  # type: ignore[no-any-return]
    try:
        return new_tensor(kernel(*natives), input.dtype, device)
    except MemoryError:
        return None  # the complete call makes room


# Places and counts


@operation(samples=samples.unary_plain)
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The indices of the elements that are not zero: a row for each, or with ``as_tuple`` a vector for each dim."""
    if type(input) is not Tensor:
        check_tensors("nonzero", input=input)
    device = input.device
    if as_tuple:
        return tuple([new_tensor(one, dtypes.int64, device) for one in device.kernels["nonzero_by_dim"](input.native)])
    made = new_tensor(device.kernels["nonzero"](input.native), dtypes.int64, device)
    return made if out is None else store("nonzero", made, out)


@operation(samples=samples.unary_plain)
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row for each."""
    if type(input) is not Tensor:
        check_tensors("argwhere", input=input)
    return nonzero(input)


_bincount = Op("bincount", "input weights", "How often each value is met, weighted.", register=False,
               grads=dict(weights=without_derivative("bincount")))  # fmt: skip


@operation(samples=samples.bincount)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each value from 0 on is in ``input``, or the sum of its ``weights``."""
    if type(input) is not Tensor or (weights is not None and type(weights) is not Tensor):
        check_tensors("bincount", input=input, **{} if weights is None else {"weights": weights})
    minlength = rules.whole("bincount", "minlength", minlength)
    if input.ndim != 1 or input.dtype.kind != "integer":
        raise ShapeError(
            f"bincount: bincount only supports 1-d non-negative integral inputs, got {input.ndim}-d of {input.dtype}"
        )
    if minlength < 0:
        raise ShapeError(f"bincount: minlength should be >= 0, got {minlength}; pass 0 or more")
    if input.numel() and input.device.kernels["lowest"](input.native) < 0:
        raise ShapeError(
            "bincount: bincount only supports 1-d non-negative integral inputs, got a negative one; shift them"
        )
    if weights is not None and tuple(weights.native.shape) != tuple(input.native.shape):
        raise ShapeError(
            f"bincount: weights should be 1-d and have the same length as input, got {list(weights.shape)}"
        )
    if not input.numel():
        weights = None  # of nothing PyTorch makes counts, not sums
    dtype = dtypes.int64 if weights is None else dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    native = input.device.kernels["bincount"](
        input.native, weights=None if weights is None else _real_part(weights).native, minlength=minlength
    )
    made = new_tensor(native, dtype, input.device)
    if mode.enabled and weights is not None and weights.node is not None:
        record(_bincount, (input, weights), None, made)
    return made


@operation(samples=samples.take)
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at ``index`` into the flattened tensor, in the index's shape."""
    if type(input) is not Tensor:
        check_tensors("take", input=input)
    long("take", index, names=("int64",))
    if out is not None and (done := apply_into(_take, (input, index), {}, input.dtype, out)) is not None:
        return done
    made = call(_take, (input, index), {}, DimensionError, False)
    return made if out is None else store("take", made, out, input, index, all_of_it=True)


@both("put")
def put(name: str, write: bool, input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with the elements of ``source`` written at ``index`` into the flattened tensor.

    Args:
        accumulate: add to what is there; equal indices all count.
    """
    if not (type(index) is type(source) is Tensor and index.dtype is dtypes.int64 and source.dtype is input.dtype):
        long(name, index, names=("int64",))
        same_dtype(name, input, source, "source")
    if index.native.shape != source.native.shape and index.numel() != source.numel():
        raise DimensionError(
            f"{name}: put_(): Expected source and index to have the same number of elements, got {source.numel()} and "
            f"{index.numel()}; give as many"
        )
    return call(_put, (input, index, source), {"accumulate": accumulate}, DimensionError, write)


def _unselected(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a source of which a mask took only the first elements."""
    total = prod(shape)
    rest = total - g.numel()
    if rest:
        g = cat([g, g.new_zeros(rest)])  # type: ignore[attr-defined]
    return g.reshape(shape)  # type: ignore[attr-defined]


def _real_part(weights: Tensor) -> Tensor:
    return weights.real if weights.dtype.is_complex else weights  # type: ignore[attr-defined, no-any-return]
