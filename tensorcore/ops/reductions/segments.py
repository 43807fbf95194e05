"""Reductions of consecutive segments, whose lengths or bounds a tensor holds."""

from __future__ import annotations

import math
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, KernelMissing, ShapeError, UnsupportedDtype, UsageError
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_optional, check_tensors, plain
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.record import record
from tensorcore.ops.shapes.pad import pad
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor

__all__ = ["segment_reduce"]

_NAMES = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "amax", "amax": "amax", "min": "amin", "amin": "amin"}
_STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}


def _gradient(
    g: Any, data: Any, given: Any, out: Any, dim: int, reduce: str, initial: float | None, lengths: bool
) -> Any:
    bounds = _bounds(given, lengths)
    if reduce == "sum":
        return _shared(g, data, bounds, dim)
    if reduce == "mean":
        return _shared(g / _counts(bounds, out, dim).clamp(min=1.0), data, bounds, dim)
    if reduce == "prod":
        # Of the product of all others there is a quotient where nothing is 0, and else a number in one place at most.
        zero = data == 0
        zeros = _reduced(zero.to(data.dtype), bounds, _options(dim, "sum", None))
        others = _reduced(where(zero, 1.0, data), bounds, _options(dim, "prod", initial))
        none, one = where(zeros == 0, g * others, 0.0), where(zeros == 1, g * others, 0.0)
        return where(zero, _shared(one, data, bounds, dim), _shared(none, data, bounds, dim) / where(zero, 1.0, data))
    found = _shared(out.detach(), data, bounds, dim)
    equal = ((data == found) | ((data != data) & (found != found))).to(data.dtype)
    return _shared(g / _reduced(equal, bounds, _options(dim, "sum", None)).clamp(min=1.0), data, bounds, dim) * equal


_segments = Op("segment_reduce", "data given", "Segments along a dim, reduced.", register=False,
               backward_name="SegmentReduceBackward0", grads=dict(data=_gradient))  # fmt: skip


def _options(
    dim: int, reduce: str, initial: float | None, lengths: bool = False, whole: bool = False
) -> dict[str, Any]:
    """What the kernel takes: whether it is given lengths or bounds, and whether together they must be all of the dim."""
    return {"dim": dim, "reduce": reduce, "initial": initial, "lengths": lengths, "whole": whole}


def _places(bounds: Any, size: int, shape: tuple[int, ...], axis: int) -> tuple[Any, Any]:
    """For each element the number of its segment, and whether it is in one."""
    lead = tuple(bounds.native.shape[:-1])
    numbers = bounds.new_empty(0).new_ones(size).cumsum(0).sub(1).expand((*lead, size)).contiguous()
    at = _searched(bounds, numbers) - 1
    inside = (at >= 0) & (at < bounds.native.shape[-1] - 1)
    lined = (*lead, size, *[1] * (len(shape) - axis - 1))
    wanted = (*shape[:axis], size, *shape[axis + 1 :])
    return at.clamp(0, max(bounds.native.shape[-1] - 2, 0)).reshape(lined).expand(wanted), inside.reshape(lined)


def _searched(bounds: Any, numbers: Any) -> Any:
    from tensorcore.ops.indexing.buckets import searchsorted

    return searchsorted(bounds, numbers, right=True)


def _shared(each: Any, data: Any, bounds: Any, axis: int) -> Any:
    """What belongs to each segment, at each of its elements; 0 at those of none."""
    shape = tuple(data.native.shape)
    if not each.native.shape[axis]:
        return data.new_zeros(shape)
    at, inside = _places(bounds, shape[axis], shape, axis)
    return where(inside, each.gather(axis, at), 0.0)


def _counts(bounds: Any, like: Any, axis: int) -> Any:
    """How many elements each segment has, in the dtype of ``like`` and with its number of dims."""
    counts = bounds[..., 1:] - bounds[..., :-1]
    return counts.to(like.dtype).reshape(*counts.native.shape, *[1] * (len(like.native.shape) - axis - 1))


def _reduced(data: Any, given: Any, options: dict[str, Any]) -> Any:
    """By the device's kernel, which looks at the values it is given, or in other ops."""
    if data.device is given.device and data.device.kernels["segment_reduce"]:
        try:
            return apply(_segments, (data, given), options)
        except ValueError:
            _look(data, given, options)
            raise
    _look(data, given, options)
    bounds = _bounds(given, options["lengths"])
    made = _scattered(data.detach(), bounds, options["dim"], options["reduce"], options["initial"])
    if data.node is not None and mode.enabled:
        record(_segments, (data, given), options, made)
    return made


def _scattered(data: Any, bounds: Any, axis: int, reduce: str, initial: float | None) -> Any:
    """The same by writes to the place of each element's segment; what is in none has a place behind the others."""
    shape = tuple(data.native.shape)
    many = bounds.native.shape[-1] - 1
    made = data.new_full((*shape[:axis], many + 1, *shape[axis + 1 :]), _STARTS[reduce] if initial is None else initial)
    if shape[axis]:
        at, inside = _places(bounds, shape[axis], shape, axis)
        made = made.scatter_reduce(axis, where(inside, at, many), data, "sum" if reduce == "mean" else reduce)
    made = made.narrow(axis, 0, many)
    if reduce != "mean":
        return made.contiguous()
    counts = _counts(bounds, made, axis)
    return where(counts > 0, made / counts.clamp(min=1.0), math.nan if initial is None else initial)


def _bounds(given: Any, lengths: bool) -> Any:
    return pad(given, (1, 0)).cumsum(-1) if lengths else given


def _given(data: Tensor, lengths: Any, offsets: Any, axis: int) -> Any:
    """Lengths or offsets as int64, of a shape that fits."""
    name, given = ("lengths", lengths) if lengths is not None else ("offsets", offsets)
    if given.dtype not in (dtypes.int64, dtypes.int32):
        raise UnsupportedDtype(
            f'segment_reduce: "_segment_reduce_{name}_cpu_kernel1" not implemented for {given.dtype.name}, got it as {name}; '
            "use .long()"
        )
    shape, aimed = tuple(data.native.shape), tuple(given.native.shape)
    if len(aimed) != axis + 1:
        raise ShapeError(
            f"segment_reduce: Expected axis to be the last dimension of {name} but got {axis}, and {name} of {len(aimed)} dims; "
            "give one more dim than there are before axis"
        )
    if aimed[:-1] != shape[:-1][:axis]:
        raise ShapeError(
            f"segment_reduce: expected {name} with the leading dims of data, got {list(aimed)} for data of {list(shape)}; expand it"
        )
    if name == "offsets" and not aimed[-1]:
        raise ShapeError(
            "segment_reduce: expected offsets of one element more than there are segments, got none; pass [0]"
        )
    return given if given.dtype is dtypes.int64 else given.long()


def _look(data: Any, given: Any, options: dict[str, Any]) -> None:
    """Raise where bounds fall, lead outside or, where they must be all of the dim, end before it; not where no values are known."""
    if not given.device.capabilities.values:
        return
    bounds = given.device.all_values(_bounds(given, options["lengths"]).native)
    size = data.native.shape[options["dim"]]
    if (bounds[..., 1:] < bounds[..., :-1]).any() or (bounds.size and bounds[..., 0].min() < 0):
        raise UsageError(
            "segment_reduce: Expected segment_length >= 0 to be true, but lengths contains negative value, or offsets fall, got one; "
            "count again"
        )
    if bounds.size and (bounds[..., -1] != size if options["whole"] else bounds[..., -1] > size).any():
        raise ShapeError(
            "segment_reduce: Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe, and offsets "
            f"to end within it, got others for {size} elements; or pass unsafe=True for lengths that sum to less"
        )


@operation(samples=samples.segments, method=False)
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
                   offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: float | None = None) -> Tensor:  # fmt: skip
    """Consecutive segments along ``axis``, each reduced to one element: of shape ``(*data.shape[:axis], segments, *rest)``.

    Args:
        data: of a floating dtype.
        reduce: ``sum``, ``mean``, ``prod``, ``max`` or ``min``. Equal largest or smallest elements share their gradient.
        lengths: how many elements each segment has, ``(*data.shape[:axis], segments)``; together all there are, unless ``unsafe``.
        offsets: in its place where segments begin, and behind them where the last one ends.
        indices: takes no tensor, as in PyTorch.
        initial: what each segment starts from, and what an empty one gives; without it an empty one gives 0 as its sum, 1
            as its product, NaN as its mean, and the infinities as its extremes.
    """
    check_tensors("segment_reduce", data=data)
    check_optional("segment_reduce", lengths=lengths, indices=indices, offsets=offsets)
    if reduce not in _NAMES:
        raise UsageError(
            f"segment_reduce: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}; pass one of them"
        )
    at = rules.wrap_dim("segment_reduce", axis, len(data.native.shape))
    if indices is not None:
        raise KernelMissing("segment_reduce: indices based reduction is not supported yet, got indices; pass lengths")
    if lengths is None and offsets is None:
        raise UsageError("segment_reduce: Either lengths or offsets must be defined, got neither; pass lengths")
    if not data.dtype.is_floating_point:
        raise UnsupportedDtype(
            f'segment_reduce: "_segment_reduce_cpu" not implemented for {data.dtype.name}, got it; use .float()'
        )
    if not data.native.shape:
        raise ShapeError("segment_reduce: Expected data.dim() >= lengths.dim(), got data of no dims; unsqueeze it")
    initial = plain(initial)
    if initial is not None and dtypes.kind_of(initial) in (None, "complex"):
        raise DtypeError(f"segment_reduce: expected initial to be a real number, got {initial!r}; pass e.g. 0.0")
    given = _given(data, lengths, offsets, at)
    initial = None if initial is None else float(initial)
    options = _options(at, _NAMES[reduce], initial, lengths is not None, lengths is not None and not unsafe)
    return _reduced(data, given, options)  # type: ignore[no-any-return]
