"""Images read at any places: between their elements, and beyond their edges."""

from __future__ import annotations

import warnings
from itertools import product
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, KernelMissing, ShapeError, UnsupportedDtype
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.grids import linspace
from tensorcore.ops.fused import Fused
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.embedding import embedding
from tensorcore.ops.linalg.products import matmul
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.samples import resample as samples
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["affine_grid", "grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"]

_CORNERS = (
    "Default {} behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the old "
    "behavior is desired. See the documentation of grid_sample for details."
)
# Beyond this a place is treated as outside of every image: the next whole numbers do not fit an index.
_FAR = float(2**31 - 2)


@operation(samples=samples.affine_grid, method=False)
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Where an affine map sends each element of an image, for ``grid_sample``: (batch, height, width, 2).

    Args:
        theta: the maps, (batch, 2, 3), or (batch, 3, 4) for volumes: a matrix and a shift, on places from -1 to 1.
        size: that of the image, (batch, channels, height, width), or with a depth before the height.
        align_corners: whether -1 and 1 are the centers of the corner elements, or their outer edges.
    """
    if not isinstance(theta, Tensor):
        raise ArgumentTypeError(
            f"affine_grid: expected argument 'theta' to be a Tensor, got {type(theta).__name__}; use torch.tensor(...)"
        )
    if align_corners is None:
        warnings.warn(_CORNERS.format("grid_sample and affine_grid"), stacklevel=2)
    if not theta.dtype.is_floating_point:
        raise ArgumentError(f"affine_grid: Expected theta to have floating point type, got {theta.dtype}; use .float()")
    size = rules.as_shape("affine_grid", (size,))
    ndim = len(size) - 2
    if ndim not in (2, 3):
        raise KernelMissing(
            f"affine_grid: only supports 4D and 5D sizes, for 2D and 3D affine transforms, got size {list(size)}; reshape"
        )
    if len(theta.native.shape) != 3 or tuple(theta.native.shape[1:]) != (ndim, ndim + 1):
        raise ArgumentError(
            f"affine_grid: Expected a batch of {ndim}D affine matrices of shape Nx{ndim}x{ndim + 1} for size {list(size)}, "
            f"got {list(theta.shape)}; make it fit"
        )
    if min(size) <= 0:
        raise ArgumentError(
            f"affine_grid: Expected non-zero, positive output size, got {list(size)}; leave no size empty"
        )
    if theta.native.shape[0] != size[0]:
        raise ShapeError(
            f"affine_grid: expected one map per image, got theta of {theta.native.shape[0]} and size {list(size)}; expand it"
        )
    device, kernels = theta.device, theta.device.kernels
    places = new_tensor(device.allocate((*size[2:], ndim + 1), theta.dtype), theta.dtype, device)
    for i, n in enumerate(size[2:]):
        # PyTorch's roundings: of a line that nothing moves, the gradient of grid_sample has a jump at each place.
        line = linspace(-1, 1, n, dtype=theta.dtype, device=device) if n > 1 else theta.new_zeros(1)
        line = line if align_corners else line * (n - 1) / n
        column = kernels["index"](places.native, key=(*[slice(None)] * ndim, ndim - 1 - i))
        kernels["copy"](column, kernels["view"](line.native, shape=(n, *[1] * (ndim - 1 - i))))
    kernels["fill"](kernels["index"](places.native, key=(*[slice(None)] * ndim, ndim)), 1)
    return matmul(places.reshape(1, -1, ndim + 1), theta.transpose(1, 2)).reshape(size[0], *size[2:], ndim)


@operation(samples=samples.grid_sample, method=False)
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:  # fmt: skip
    """The values of images at given places: (batch, channels, height, width) at (batch, rows, columns, 2).

    Args:
        input: the images, or volumes (batch, channels, depth, height, width) at (batch, d, h, w, 3).
        grid: places from -1 to 1 as (x, y) or (x, y, z): x goes along the last dim of ``input``.
        mode: ``bilinear`` (trilinear for volumes), ``nearest``, or ``bicubic`` (images only).
        padding_mode: what is beyond the edges: ``zeros``, ``border`` (the edge), or ``reflection``.
        align_corners: whether -1 and 1 are the centers of the corner elements, or their outer edges.

    After "Spatial Transformer Networks", Jaderberg et al. 2015.
    """
    _check(input, grid, mode, padding_mode)
    if align_corners is None:
        warnings.warn(_CORNERS.format("grid_sample and affine_grid"), stacklevel=2)
        align_corners = False
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": bool(align_corners)}
    return _grid_sample((input, grid), options)


_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    *,
    ndim: int | None = None,
) -> Tensor:
    """:func:`grid_sample` with its modes as numbers, in the order in which it lists them."""
    for name, value in (("interpolation_mode", interpolation_mode), ("padding_mode", padding_mode)):
        if value not in (0, 1, 2):
            raise ArgumentError(f"grid_sampler: expected {name} to be 0, 1 or 2, got {value!r}; pass one of these")
    if ndim is not None and isinstance(input, Tensor) and len(input.native.shape) != ndim:
        raise ShapeError(f"grid_sampler: expected {ndim}D input and grid, got input with sizes {list(input.shape)}")
    return grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], bool(align_corners))


def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """:func:`grid_sampler` for images alone."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners, ndim=4)


def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """:func:`grid_sampler` for volumes alone."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners, ndim=5)


def _sampled(input: Tensor, grid: Tensor, *, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    """Sampling in other ops.

    A backend's kernel ``grid_sample(input, grid, *, mode, padding_mode, align_corners)`` takes what the function takes, no size
    of the image being 0, and answers (batch, channels, *places);
    ``grid_sample_backward(g, input, grid, *, needs, ...)`` answers the gradients of both, None where ``needs`` is False.
    Each step from a narrow float to its place in the image is rounded, as in PyTorch: which element is the nearest depends on it.
    """
    sizes = tuple(input.native.shape[2:])
    ndim = len(sizes)
    counts = tuple(grid.native.shape[1:-1])
    flat = grid.reshape(grid.native.shape[0], prod(counts), ndim)
    # One line of places for each dim of the image, from the first.
    places = [_unnormalised(flat.select(2, ndim - 1 - i), n, align_corners) for i, n in enumerate(sizes)]
    if mode == "bicubic":
        taps = _cubic(places, sizes, padding_mode, align_corners)
    else:
        places = [_padded(x, n, padding_mode, align_corners) for x, n in zip(places, sizes, strict=True)]
        taps = _nearest(places) if mode == "nearest" else _linear(places)
    found = _weighted(input, taps, sizes, padding_mode == "zeros")
    return found.reshape(*input.native.shape[:2], *counts)


_grid_sample = Fused(
    "grid_sample", "input grid", "Images read at places.", _sampled, backward_name="GridSampler2DBackward0"
)


def _check(input: Any, grid: Any, mode: str, padding_mode: str) -> None:
    if mode not in _MODES:
        raise ArgumentError(
            f"grid_sample: expected mode to be 'bilinear', 'nearest' or 'bicubic', got {mode!r}; pass one of these"
        )
    if padding_mode not in _PADDINGS:
        raise ArgumentError(
            f"grid_sample: expected padding_mode to be 'zeros', 'border', or 'reflection', got {padding_mode!r}; pass one"
        )
    if not (isinstance(input, Tensor) and isinstance(grid, Tensor)):
        name, one = ("input", input) if not isinstance(input, Tensor) else ("grid", grid)
        raise ArgumentTypeError(
            f"grid_sample: expected argument '{name}' to be a Tensor, got {type(one).__name__}; use torch.tensor(...)"
        )
    shape, places = input.native.shape, grid.native.shape
    if len(shape) not in (4, 5) or len(places) != len(shape):
        raise ShapeError(
            f"grid_sample: expected 4D or 5D input and grid with same number of dimensions, got {list(shape)} and {list(places)}"
        )
    if shape[0] != places[0]:
        raise ShapeError(
            f"grid_sample: expected grid and input to have same batch size, got {list(shape)} and {list(places)}; expand one"
        )
    if places[-1] != len(shape) - 2:
        raise ShapeError(
            f"grid_sample: expected grid to have size {len(shape) - 2} in last dimension, got {list(places)}; one number per dim"
        )
    if 0 in shape[2:]:
        raise ShapeError(f"grid_sample: expected input to have non-empty spatial dimensions, got {list(shape)}; pad it")
    if mode == "bicubic" and len(shape) == 5:
        raise ShapeError("grid_sample: bicubic interpolation only supports 4D input, got 5 dims; use bilinear")
    if input.dtype is not grid.dtype:
        raise DtypeError(
            f"grid_sample: expected input and grid to have the same dtype, got {input.dtype} and {grid.dtype}; convert one"
        )
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(
            f'grid_sample: "grid_sample" not implemented for {input.dtype.name}, got one; use .float()'
        )


def _unnormalised(x: Tensor, n: int, align_corners: bool) -> Tensor:
    """Places from -1 to 1 as numbers of elements."""
    return (x + 1) * ((n - 1) / 2) if align_corners else (x + 1) * (n / 2) - 0.5


def _padded(x: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """The places inside the image that those outside stand for."""
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        x = _reflected(x, n, align_corners)
    seen = x.detach()
    # No gradient at the bounds themselves, as in PyTorch; NaN counts as the first element.
    return where((seen > 0) & (seen < n - 1), x, seen.nan_to_num(0.0).clamp(0, n - 1))


def _reflected(x: Tensor, n: int, align_corners: bool) -> Tensor:
    low = 0.0 if align_corners else -0.5
    span = float(n - 1 if align_corners else n)
    if span == 0:
        return x * 0
    away = (x - low).abs()
    flips = (away.detach() / span).floor()
    extra = away - flips * span
    return where(flips.remainder(2) == 0, extra + low, span - extra + low)


Taps = list[list[tuple[Tensor, Any]]]


def _weighted(input: Tensor, taps: Taps, sizes: tuple[int, ...], bounded: bool) -> Tensor:
    """The pixels at all combinations of the dims' places, times the products of their weights, added up.

    Args:
        taps: for each dim, whole places (batch, places) and their weights.
        bounded: whether places may lie outside, where the image is 0.
    """
    batch, channels = input.native.shape[:2]
    count = prod(sizes)
    # A row for each pixel, and behind them one of zeros for all that is outside.
    rows = input.reshape(batch, channels, count).transpose(1, 2).reshape(batch * count, channels)
    if bounded:
        rows = cat([rows, rows.new_zeros((1, channels))])
    first = arange(0, batch * count, count, device=input.device).unsqueeze(1) if batch else None
    checked = [
        [(at.clamp(0, n - 1), _inside(at, n, bounded), by) for at, by in line]
        for line, n in zip(taps, sizes, strict=True)
    ]
    found, weights = [], []
    for chosen in product(*checked):
        flat, inside, weight = chosen[0]
        for (at, within, by), n in zip(chosen[1:], sizes[1:], strict=True):
            flat, weight = flat * n + at, None if by is None else weight * by
            inside = inside & within if bounded else None
        flat = flat if first is None else flat + first
        found.append(where(inside, flat, batch * count) if bounded else flat)
        weights.append(weight)
    if len(found) == 1:
        values = embedding(found[0], rows)
        values = values if weights[0] is None else values * weights[0].unsqueeze(2)
    else:
        values = (embedding(stack(found), rows) * stack(weights).unsqueeze(3)).sum(0)
    return values.transpose(1, 2)


def _inside(at: Tensor, n: int, bounded: bool) -> Tensor | None:
    return (at >= 0) & (at < n) if bounded else None


def _whole(x: Tensor) -> Tensor:
    """Whole floating places as indices; what is not finite or does not fit becomes a place outside."""
    return where(x.abs() <= _FAR, x, -100.0).to(dtypes.int64)


def _nearest(places: list[Tensor]) -> Taps:
    # Where the grid requires grad, the result depends on it with derivative zero, and PyTorch records that.
    return [
        [(_whole(x.detach().round()), None if x.node is None else x.nan_to_num(0.0, 0.0, 0.0) * 0 + 1)] for x in places
    ]


def _linear(places: list[Tensor]) -> Taps:
    taps = []
    for x in places:
        low = x.detach().floor()
        share = x - low
        at = _whole(low)
        taps.append([(at, 1 - share), (at + 1, share)])
    return taps


def _cubic(places: list[Tensor], sizes: tuple[int, ...], padding_mode: str, align_corners: bool) -> Taps:
    taps = []
    for x, n in zip(places, sizes, strict=True):
        low = x.detach().floor()
        at = [_whole(_padded(low + shift, n, padding_mode, align_corners)) for shift in (-1, 0, 1, 2)]
        taps.append(list(zip(at, _cubic_weights(x - low), strict=True)))
    return taps


def _cubic_weights(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """Keys' kernel at the distances 1 + t, t, 1 - t and 2 - t."""

    def near(x: Any) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]
