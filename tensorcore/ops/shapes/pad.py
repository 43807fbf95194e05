"""Tensors made larger at their edges, and channels put into other orders or into space."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from tensorcore.backend.windows import beyond_edges
from tensorcore.errors import ArgumentTypeError, ShapeError, UnknownMode, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.pool import put_back, taken
from tensorcore.ops.operands import check_tensors, factor
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.convert import contiguous, with_channels_of
from tensorcore.ops.shapes.views_part import slice_op
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["channel_shuffle", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle"]

_MODES = ("reflect", "replicate", "circular")


@operation(samples=samples.pad, method=False)
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """More elements at the edges, or fewer.

    Args:
        pad: how many before and after the last dim, then before and after the one before it, ...;
            negative ones take away (mode ``constant``).
        mode: ``constant``, ``reflect`` (without the edge), ``replicate`` (the edge) or ``circular``.
        value: what ``constant`` fills with, 0 if None.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"pad: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    if type(pad) is not tuple and not isinstance(pad, Iterable):
        raise ArgumentTypeError(f"pad: argument 'pad' must be tuple of ints, got {pad!r}; pass two for each dim")
    amounts = rules.as_shape("pad", (pad,) if isinstance(pad, (tuple, list)) else tuple(pad))
    shape = tuple(input.native.shape)
    if mode == "constant":
        return _constant(input, *_within(shape, amounts), 0 if value is None else value)
    if mode not in _MODES:
        raise UnknownMode(f"pad: Unrecognised padding mode {mode}; pass constant, reflect, replicate or circular")
    options = _around(mode, shape, amounts, value)
    if not any(amounts):
        return input.clone()  # type: ignore[attr-defined,no-any-return]
    made = _from_edges(input, **options)
    return contiguous(made) if mode == "circular" else made


def _pairs(shape: tuple[int, ...], amounts: tuple[int, ...]) -> list[tuple[int, int]]:
    """How many before and after each dim, from the first dim on."""
    if len(amounts) % 2:
        raise UsageError(f"pad: Padding length must be divisible by 2, got {len(amounts)}; pass pairs")
    if len(amounts) // 2 > len(shape):
        raise ShapeError(
            f"pad: Padding length should be less than or equal to two times the input dimension, got {amounts} for {list(shape)}"
        )
    pairs = [(0, 0)] * (len(shape) - len(amounts) // 2)
    pairs += zip(amounts[-2::-2], amounts[::-2], strict=True)  # the last dim's stand first
    return pairs


@lru_cache(1024)
def _around(mode: str, shape: tuple[int, ...], amounts: tuple[int, ...], value: Any) -> dict[str, Any]:
    """The options of a kernel that pads by what is within the edges; whatever is wrong with them raises."""
    pairs = _pairs(shape, amounts)
    if value is not None and value != 0:
        raise UsageError(f'pad: Padding mode "{mode}" doesn\'t take in value argument, got {value}')
    padded = len(amounts) // 2
    if padded not in (1, 2, 3) or len(shape) not in (padded + 1, padded + 2):
        raise UnknownMode(
            f"pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, got {amounts} for {list(shape)}"
        )
    around = list(zip(shape, pairs, strict=True))
    made = tuple([n + sum(pair) for n, pair in around])
    sizes = made[-padded:]
    if mode == "circular":  # only what is left can go around
        none = any(max(pair) > 0 and n + min(pair[0], 0) + min(pair[1], 0) < 1 for n, pair in around)
    else:  # one of the sizes is enough, as in PyTorch: the result has no elements then
        none = 0 in shape[-padded - 1 :] or max(sizes) < 1
    if none or min(sizes) < 0:
        raise ShapeError(
            f"pad: input is too small for {mode} padding: a negative padding or an empty dim leaves nothing to repeat, got "
            f"{list(shape)} and {amounts}; take away less"
        )
    for dim, (n, pair) in enumerate(around):
        if mode == "reflect" and any(pair) and max(pair) >= n:
            raise ShapeError(
                f"pad: Padding size should be less than the corresponding input dimension, but got: padding {pair} at "
                f"dimension {dim} of input {list(shape)}"
            )
        if mode == "circular" and max(pair) > n:
            raise ShapeError(f"pad: Padding value causes wrapping around more than once, got {pair} for a size of {n}")
    return {"mode": mode, "pads": tuple([one for pair in pairs[-padded:] for one in pair]), "shape": made}


def _from_edges(input: Tensor, mode: str, pads: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """The last dims padded to that shape: in one kernel where the device has it."""
    if input.device.kernels["edge_pad"]:
        return apply(_EDGE_PADS[mode, len(pads) // 2], (input,), {"mode": mode, "pads": pads, "shape": shape})  # type: ignore[no-any-return]
    sizes = tuple(input.native.shape)
    for dim, pair in enumerate(zip(pads[::2], pads[1::2], strict=True), len(sizes) - len(pads) // 2):
        if any(pair):
            input = taken(input, dim, beyond_edges(mode, sizes[dim], *pair))
    return input


def _back_from_edges(g: Tensor, mode: str, pads: tuple[int, ...], input_shape: tuple[int, ...]) -> Tensor:
    """The adjoint of what one kernel padded."""
    shape = tuple(input_shape)
    if g.device.kernels["edge_pad_gradient"]:
        return apply(_edge_gradient, (g,), {"mode": mode, "pads": pads, "shape": shape})  # type: ignore[no-any-return]
    for dim, pair in enumerate(zip(pads[::2], pads[1::2], strict=True), len(shape) - len(pads) // 2):
        if any(pair):
            g = put_back(g, dim, beyond_edges(mode, shape[dim], *pair), shape[dim])
    return g


def _edge_pad(backward_name: str) -> Op:
    return Op("edge_pad", "input", "The input and what lies beyond its edges.", register=False,
              backward_name=backward_name, grads=dict(input=_back_from_edges))  # fmt: skip


_EDGE_PADS = {
    (mode, dims): _edge_pad(f"{word}Pad{dims}DBackward0") for mode, word in (("reflect", "Reflection"), ("replicate", "Replication"))
    for dims in (1, 2, 3)
} | {("circular", dims): _edge_pad("CopySlices") for dims in (1, 2, 3)}  # fmt: skip
_edge_gradient = Op(
    "edge_pad_gradient", "input", "The adjoint of padding by what is within the edges.", register=False,
    grads=dict(input=lambda g, mode, pads, input_shape: _from_edges(g, mode, pads, tuple(input_shape))),
)  # fmt: skip


Key = tuple[slice, ...]


@lru_cache(1024)
def _within(shape: tuple[int, ...], amounts: tuple[int, ...]) -> tuple[Key | None, tuple[int, ...], Key]:
    """What is left of the input where that is less than all, the shape of the result, and where in it that lies."""
    pairs, negative = _pairs(shape, amounts), False
    for n, (ahead, behind) in zip(shape, pairs, strict=True):
        if ahead < 0 or behind < 0:
            negative = True
            if n + ahead + behind < 0 or n + min(ahead, 0) + min(behind, 0) < 0:
                raise ShapeError(
                    f"pad: The input size {n}, plus negative padding {ahead} and {behind}, resulted in a negative output size, "
                    f"got {list(shape)}; take away less"
                )
    left = tuple([slice(max(-ahead, 0), n - max(-behind, 0)) for n, (ahead, behind) in zip(shape, pairs, strict=True)])
    whole = tuple([n + ahead + behind for n, (ahead, behind) in zip(shape, pairs, strict=True)])
    key = tuple(
        [slice(max(ahead, 0), size - max(behind, 0)) for size, (ahead, behind) in zip(whole, pairs, strict=True)]
    )
    return left if negative else None, whole, key


def _constant(input: Tensor, left: Key | None, whole: tuple[int, ...], key: Key, value: Any) -> Tensor:
    if left is not None:
        input = slice_op.view(input, {"key": left})
    options = {"shape": whole, "key": key, "value": factor("pad", "value", value, input.dtype)}
    return apply(_pad, (input,), options)  # type: ignore[no-any-return]


_pad = Op("constant_pad", "input", "The input within a constant.", register=False, backward_name="ConstantPadNdBackward0",
          grads=dict(input=lambda g, key: slice_op.view(g, {"key": key})))  # fmt: skip


@operation(samples=samples.pixel_shuffle, method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., channels * r**2, height, width) as (..., channels, height * r, width * r)."""
    return _pixel_shuffle(input, upscale_factor)


@before("pixel_shuffle", "contiguous")
def _pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    if type(input) is not Tensor:
        check_tensors("pixel_shuffle", input=input)
    shape, r = tuple(input.native.shape), rules.whole("pixel_shuffle", "upscale_factor", upscale_factor)
    if len(shape) < 3:
        raise ShapeError(
            f"pixel_shuffle: expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r < 1 or shape[-3] % (r * r):
        raise ShapeError(
            f"pixel_shuffle: expects its input's 'channel' dimension to be divisible by the square of upscale_factor, got "
            f"{shape[-3]} and {r}"
        )
    front, (c, h, w) = shape[:-3], shape[-3:]
    n = len(front)
    return _dealt(input, (*front, c // (r * r), r, r, h, w), (*range(n), n, n + 3, n + 1, n + 4, n + 2),
                  (*front, c // (r * r), h * r, w * r))  # fmt: skip


@operation(samples=samples.pixel_unshuffle, method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., channels, height * r, width * r) as (..., channels * r**2, height, width)."""
    return _pixel_unshuffle(input, downscale_factor)


@before("pixel_unshuffle", "contiguous")
def _pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    if type(input) is not Tensor:
        check_tensors("pixel_unshuffle", input=input)
    shape, r = tuple(input.native.shape), rules.whole("pixel_unshuffle", "downscale_factor", downscale_factor)
    if len(shape) < 3:
        raise ShapeError(
            f"pixel_unshuffle: expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r < 1 or shape[-2] % r or shape[-1] % r:
        raise ShapeError(
            f"pixel_unshuffle: expects height and width to be divisible by downscale_factor, got {list(shape[-2:])} and {r}"
        )
    front, (c, h, w) = shape[:-3], shape[-3:]
    n = len(front)
    return _dealt(input, (*front, c, h // r, r, w // r, r), (*range(n), n, n + 2, n + 4, n + 1, n + 3),
                  (*front, c * r * r, h // r, w // r))  # fmt: skip


def _dealt(input: Tensor, split: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """The elements seen in the shape ``split``, its dims in another order, as new memory of ``shape``."""
    if input.node is None and type(input) is Tensor:
        kernels = input.device.kernels
        native = kernels["view"](input.native, shape=split)
        if native is not None:
            turned = kernels["permute"](native, dims=order)
            native = kernels["contiguous"](turned)
            if native is turned:  # dims of one element changed places: that moves nothing
                native = kernels["clone"](native)
            made = new_tensor(kernels["view"](native, shape=shape), input.dtype, input.device)
            return with_channels_of(made, input)
    return with_channels_of(input.reshape(split).permute(order).reshape(shape), input)  # type: ignore[attr-defined]


@operation(samples=samples.channel_shuffle, method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (batch, channels, ...), in ``groups`` runs, dealt out one from each run in turn.

    From "ShuffleNet", Zhang et al. 2017.
    """
    return _channel_shuffle(input, groups)


@before("channel_shuffle", "contiguous")
def _channel_shuffle(input: Tensor, groups: int) -> Tensor:
    if type(input) is not Tensor:
        check_tensors("channel_shuffle", input=input)
    shape = tuple(input.native.shape)
    if len(shape) < 3:
        raise ShapeError(f"channel_shuffle: expected an input of more than 2 dims, got {list(shape)}; unsqueeze it")
    if groups < 1 or shape[1] % groups:
        raise ShapeError(
            f"channel_shuffle: Number of channels must be divisible by groups, got {shape[1]} channels and {groups} groups; "
            f"choose a divisor"
        )
    runs = (shape[0], groups, shape[1] // groups, *shape[2:])
    return _dealt(input, runs, (0, 2, 1, *range(3, len(runs))), shape)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The same as :func:`channel_shuffle`."""
    return channel_shuffle(input, groups)
