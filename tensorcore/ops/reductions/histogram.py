"""Histograms: how many elements, or how much weight, fall into each bin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorcore.dtypes import float32
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UnsupportedDtype, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.ops.creation.grids import linspace
from tensorcore.ops.indexing.buckets import searchsorted
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors, plain
from tensorcore.ops.output import store
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import numeric as samples
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["histc", "histogram", "histogramdd"]

_Histogram = return_type("histogram", "hist bin_edges")
_Histogramdd = return_type("histogramdd", "hist bin_edges")


def _check_dtype(op: str, input: Tensor) -> None:
    check_tensors(op, input=input)
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(f"{op}: not implemented for {input.dtype.name}, got one; convert it with .float()")


def _ends(input: Tensor, dim: Any = None) -> tuple[list[float], list[float]]:
    """The smallest and the largest element of each column, or of all; 0 and 1 where there is none or nobody can look."""
    columns = input.native.shape[1] if dim == 0 else 1
    if not input.numel() or not input.device.capabilities.values:
        return [0.0] * columns, [1.0] * columns
    kernels, to_host = input.device.kernels, input.device.to_host
    low, high = [
        to_host(kernels[name](input.native, dim=dim, keepdim=False)).reshape(-1).tolist() for name in ("amin", "amax")
    ]
    return low, high


def _span(op: str, low: Any, high: Any, widen: float) -> tuple[float, float]:
    """The outermost edges, which are to be finite; further apart where they are equal."""
    low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError(f"{op}: range of [{low}, {high}] is not finite, got one; pass finite edges")
    if low > high:
        raise UsageError(f"{op}: max must be larger than min, got [{low}, {high}]; swap them")
    return (low - widen, high + widen) if low == high else (low, high)


def _counts(inside: Tensor, places: Tensor, weights: Any, bins: int, like: Tensor) -> Tensor:
    """The sum of the weights at each place; what is outside goes nowhere."""
    ones = like.new_ones(places.shape) if weights is None else weights.reshape(-1)  # type: ignore[attr-defined]
    return like.new_zeros(bins).index_add(0, where(inside, places, 0), where(inside, ones, 0))  # type: ignore[attr-defined, no-any-return]


@operation(samples=samples.histc)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements fall into each of ``bins`` equal bins from ``min`` to ``max``, in the input's dtype.

    Where both are equal, the smallest and the largest element are the edges. Elements outside, and NaN, are left out.
    """
    if type(input) is not Tensor:
        check_tensors("histc", input=input)
    _check_dtype("histc", input)
    bins = rules.whole("histc", "bins", bins)
    if bins <= 0:
        raise UsageError(f"histc: bins must be > 0, got {bins}; pass at least 1")
    flat: Any = input.detach().reshape(-1)  # type: ignore[attr-defined]
    given: Any = (min, max)
    if min == max and input.numel():
        (least,), (most,) = _ends(flat)
        given = least, most
    low, high = _span("histc", given[0], given[1], 1.0)
    kernel = input.device.kernels["histc"]
    if kernel:
        made = new_tensor(kernel(flat.native, bins=bins, low=low, high=high), input.dtype, input.device)
        return made if out is None else store("histc", made, out)
    first, last, many = [flat.new_tensor(one) for one in (low, high, bins)]  # each step is rounded to the dtype
    inside = (flat >= first) & (flat <= last)
    places = ((where(inside, flat, first) - first) * many / (last - first)).long().clamp_max(bins - 1)
    made = _counts(inside, places, None, bins, flat)
    return made if out is None else store("histc", made, out)


def _edges(op: str, points: Tensor, bins: list[Any], ranges: list[Any] | None) -> list[Tensor]:
    """The edges of each column of (n, d) points: those given, or so many bins between the ends."""
    ends: Any = None
    if ranges is None and not all(isinstance(one, Tensor) for one in bins):
        ends = _ends(points, 0)
    made = []
    for i, one in enumerate(bins):
        if isinstance(one, Tensor):
            if one.ndim != 1 or not one.numel():
                raise ShapeError(
                    f"{op}: expected bin edges as a vector with an element, got {list(one.shape)}; flatten it"
                )
            if one.dtype is not points.dtype:
                raise DtypeError(f"{op}: torch.{op}: input tensor and bins tensors should have the same dtype, got "
                                 f"{points.dtype} and {one.dtype}; convert one")  # fmt: skip
            made.append(one.detach())
            continue
        count = rules.whole(op, "bins", one)
        if count <= 0:
            raise UsageError(f"{op}: bins must be > 0, got {count}; pass at least 1")
        least, most = (ends[0][i], ends[1][i]) if ranges is None else ranges[i]
        low, high = _span(op, least, most, 0.5)
        made.append(linspace(low, high, count + 1, dtype=points.dtype, device=points.device))
    return made


def _binned(op: str, points: Tensor, edges: list[Tensor], weight: Any, density: bool) -> Tensor:
    """The histogram of (n, d) points over the bins between the edges of each dim."""
    counts = tuple([one.numel() - 1 for one in edges])
    together = all([one is None or one.device is points.device for one in (weight, *edges)])
    kernel = points.device.kernels["histogram"] if together and 0 not in counts else None
    if kernel:
        made = _by_kernel(kernel, points, weight, edges)
        return _scaled(made, edges, density)
    inside: Any = None
    place: Any = 0
    for i, edge in enumerate(edges):
        column = points.select(1, i).contiguous()  # type: ignore[attr-defined]
        # The last bin holds its right edge.
        at = (searchsorted(edge.contiguous(), column, right=True) - 1).clamp_max(counts[i] - 1)  # type: ignore[attr-defined]
        within = (column >= edge[0]) & (column <= edge[-1])  # type: ignore[index]
        inside = within if inside is None else inside & within
        place = place * counts[i] + at
    return _scaled(_counts(inside, place, weight, math.prod(counts), points).reshape(counts), edges, density)  # type: ignore[attr-defined]


def _by_kernel(kernel: Any, points: Tensor, weight: Tensor | None, edges: list[Tensor]) -> Tensor:
    """The kernel's sums; of halves, which single precision holds, rounded once."""
    device, natives = points.device, [one.native for one in (points, *edges)]
    weights = None if weight is None else weight.native
    if points.dtype in PLAIN_FLOATS:
        return new_tensor(kernel(natives[0], weights, natives[1:]), points.dtype, device)  # type: ignore[no-any-return]
    cast = device.kernels["cast"]
    wide = [cast(one, dtype=float32) for one in natives]
    made = kernel(wide[0], None if weight is None else cast(weights, dtype=float32), wide[1:])
    return new_tensor(cast(made, dtype=points.dtype), points.dtype, device)  # type: ignore[no-any-return]


def _scaled(made: Any, edges: list[Tensor], density: bool) -> Tensor:
    """Divided by the total and by the widths of the bins, where that is wanted."""
    if density:
        made = made / made.sum()
        for i, edge in enumerate(edges):
            made = made / (edge[1:] - edge[:-1]).reshape([-1 if j == i else 1 for j in range(len(edges))])  # type: ignore[index]
    return made  # type: ignore[no-any-return]


def _check_weight(op: str, input: Tensor, weight: Any, shape: tuple[int, ...]) -> None:
    if weight is None:
        return
    check_tensors(op, weight=weight)
    if weight.dtype is not input.dtype:
        raise DtypeError(
            f"{op}: torch.{op}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
            f"got {input.dtype} and {weight.dtype}; convert one"
        )
    if tuple(weight.native.shape) != shape:
        raise ShapeError(
            f"{op}: torch.{op}: if weight tensor is provided it should have the same shape as the input tensor excluding "
            f"its innermost dimension, got {list(weight.shape)} for {list(shape)}"
        )


@operation(samples=samples.histogram)
def histogram(input: Tensor, bins: Any = 100, *, range: tuple[float, float] | None = None, weight: Tensor | None = None,
              density: bool = False, out: Any = None) -> Any:  # fmt: skip
    """How many elements, or how much ``weight``, fall into each bin, and the edges, as ``(hist, bin_edges)``.

    Args:
        bins: how many, of equal width over ``range`` (else from the smallest to the largest element); or their edges.
        density: divide by the total and by the widths, so that the integral is 1.
    """
    _check_dtype("histogram", input)
    shape = tuple(input.native.shape)
    _check_weight("histogram", input, weight, shape)
    bins = plain(bins)
    if isinstance(bins, Tensor) and range is not None:
        raise ArgumentTypeError("histogram: expected edges or a range, got both; leave the range out")
    points: Any = input.detach().reshape(-1, 1)  # type: ignore[attr-defined]
    edges = _edges("histogram", points, [bins], range and [range])
    made = _binned("histogram", points, edges, None if weight is None else weight.detach(), density)
    return stored("histogram", _Histogram(made, edges[0]), out)


@operation(samples=samples.histogramdd, method=False)
def histogramdd(input: Tensor, bins: Any, range: Sequence[float] | None = None, weight: Tensor | None = None,
                density: bool = False) -> Any:  # fmt: skip
    """The histogram of points (..., d) over bins in d dims, and the edges of each, as ``(hist, bin_edges)``.

    Args:
        bins: how many along each dim, a number for all of them, or a vector of edges for each.
        range: the outermost edges of each dim, two numbers each.
    """
    _check_dtype("histogramdd", input)
    if input.ndim < 2:
        raise ShapeError(
            f"histogramdd: torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.ndim}"
        )
    shape = tuple(input.native.shape)
    _check_weight("histogramdd", input, weight, shape[:-1])
    d = shape[-1]
    bins = plain(bins)
    each = (
        [plain(one) for one in bins]
        if isinstance(bins, (tuple, list))
        else [rules.whole("histogramdd", "bins", bins)] * d
    )
    if any(isinstance(one, Tensor) for one in each):
        check_tensors("histogramdd", **{f"bins[{i}]": one for i, one in enumerate(each)})
    if len(each) != d:
        raise ShapeError(f"histogramdd: torch.histogramdd: expected {d} sequences of bins, but got {len(each)}")
    if range is not None and len(range) != 2 * d:
        raise ShapeError(f"histogramdd: torch.histogramdd: for a {d}-dimensional histogram range should have {2 * d} "
                         f"elements, but got {len(range)}")  # fmt: skip
    points: Any = input.detach().reshape(-1, d)  # type: ignore[attr-defined]
    ranges = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    edges = _edges("histogramdd", points, each, ranges)
    made = _binned("histogramdd", points, edges, None if weight is None else weight.detach(), density)
    return _Histogramdd(made, tuple(edges))
