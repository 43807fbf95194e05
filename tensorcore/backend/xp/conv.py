"""Convolutions in one to three dims, and their two gradients: windows copied side by side, then matrix products.

Arrays are (batch, channels, *sizes), weights (out channels, channels of a group, *kernel). The copies
are made for a block of samples at a time, in a buffer that stays in the processor's cache.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.windows import taps

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# Bytes of one block's copied windows: 32 x 64 x 16 x 16 -> 128 runs 1.3 times as long with all at once.
_BLOCK = 1 << 19
# Under this many outputs a sample, one product for the whole block beats one for each sample.
_FEW = 64


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp, host = backend.xp, backend.capabilities.host
    matmul = xp.matmul

    def wide(x: Native) -> Native:
        """Half floats in float32, as they are computed in."""
        return x.astype(np.float32) if x.itemsize == 2 and x.dtype.kind not in "iu" else x

    class Plan:
        """The sizes of one convolution, and where its windows lie."""

        def __init__(
            self, shape: Any, weight_shape: Any, counts: Any, stride: Any, padding: Any, dilation: Any, groups: int
        ):
            self.batch, self.channels = shape[:2]
            self.sizes = tuple(shape[2:])
            self.kernel = tuple(weight_shape[2:])
            self.counts = tuple(counts)
            self.groups = groups
            self.outs = weight_shape[0] // groups
            self.depth = weight_shape[1] * prod(self.kernel)  # the inner size of a group's product
            self.pixels = prod(self.counts)
            self.pointwise = prod(self.kernel) == 1 and set(stride) == {1} and not any(padding)
            self.depthwise = weight_shape[1] == 1 and groups > 1 and not self.pointwise
            self.taps = taps(self.sizes, self.counts, self.kernel, stride, padding, dilation)

        def blocks(self, itemsize: int) -> tuple[int, list[tuple[int, int]]]:
            """The samples of a block, and the blocks' bounds."""
            each = max(1, self.channels * prod(self.kernel) * self.pixels * itemsize)
            size = max(1, min(self.batch, _BLOCK // each))
            return size, [(start, min(start + size, self.batch)) for start in range(0, self.batch, size)]

        def windows(self, dtype: Any, samples: int, together: bool) -> tuple[Native, Native]:
            """A buffer for the windows, as what a product reads and as (samples, channels, *kernel, *counts).

            With ``together`` the samples stand beside the pixels: (groups, depth, samples * pixels);
            else each has its own matrix: (samples, groups, depth, pixels).
            """
            shape = (self.channels, *self.kernel)
            if together:
                buffer = xp.zeros((*shape, samples, *self.counts), dtype)
                return buffer.reshape(self.groups, self.depth, samples * self.pixels), xp.moveaxis(
                    buffer, len(shape), 0
                )
            buffer = xp.zeros((samples, *shape, *self.counts), dtype)
            return buffer.reshape(samples, self.groups, self.depth, self.pixels), buffer

        def gather(self, x: Native, windows: Native) -> None:
            for position, outputs, inputs in self.taps:
                windows[(slice(None), slice(None), *position, *outputs)] = x[(slice(None), slice(None), *inputs)]

        def scatter(self, windows: Native, x: Native) -> None:
            for position, outputs, inputs in self.taps:
                x[(slice(None), slice(None), *inputs)] += windows[(slice(None), slice(None), *position, *outputs)]

        def beside(self, g: Native) -> Native:
            """(samples, channels, *counts) as (groups, outs, samples * pixels)."""
            rows = g.reshape(len(g), self.groups, self.outs, self.pixels).transpose(1, 2, 0, 3)
            return rows.reshape(self.groups, self.outs, len(g) * self.pixels)

    def by_parts(name: str, x: Native, y: Native, sign: int, **options: Any) -> Native:
        """What is linear in complex ``x`` and ``y``, whose imaginary part has that sign, by the kernel of real numbers."""
        kernel = partial(backend.kernels[name], **options)
        a, b, c, d = [xp.ascontiguousarray(part) for part in (x.real, x.imag, y.real, y.imag)]
        last = (None,) if name == "conv" else ()
        real, imaginary = kernel(b, d, *last), kernel(a, d, *last)
        made = xp.empty(real.shape, x.dtype)
        xp.add(kernel(a, c, *last), real * -sign, out=made.real)
        xp.add(kernel(b, c, *last), imaginary * sign, out=made.imag)
        return made

    def conv(x: Native, weight: Native, bias: Native | None, *, counts: Any, stride: Any, padding: Any, dilation: Any,
             groups: int) -> Native:  # fmt: skip
        """Sums of products of a window and the weight, at every place; ``counts`` is how many there are along each dim."""
        dtype = x.dtype
        if dtype.kind == "c" and host:
            made = by_parts(
                "conv", x, weight, 1, counts=counts, stride=stride, padding=padding, dilation=dilation, groups=groups
            )
            return made if bias is None else xp.add(made, bias.reshape(-1, *[1] * len(counts)), out=made)
        x, weight = wide(x), wide(weight)
        plan = Plan(x.shape, weight.shape, counts, stride, padding, dilation, groups)
        made = xp.empty((plan.batch, weight.shape[0], *plan.counts), x.dtype)
        matrix = weight.reshape(groups, plan.outs, plan.depth)
        rows = made.reshape(plan.batch, groups, plan.outs, plan.pixels)
        if plan.depth == 0:
            made[...] = 0
        elif plan.pointwise:
            matmul(matrix, x.reshape(plan.batch, groups, plan.depth, plan.pixels), out=rows)
        elif plan.depthwise:
            depthwise(plan, x, weight, made)
        elif plan.pixels:
            together = plan.pixels < _FEW
            size, blocks = plan.blocks(x.itemsize)
            columns, windows = plan.windows(x.dtype, size, together)
            for start, stop in blocks:
                if stop - start < size:
                    columns, windows = plan.windows(x.dtype, stop - start, together)
                plan.gather(x[start:stop], windows)
                if together:
                    found = matmul(matrix, columns).reshape(groups, plan.outs, stop - start, plan.pixels)
                    rows[start:stop] = found.transpose(2, 0, 1, 3)
                else:
                    matmul(matrix, columns, out=rows[start:stop])
        if bias is not None:
            made += bias.reshape(-1, *[1] * len(plan.counts))
        return made.astype(dtype, copy=False)

    def depthwise(plan: Plan, x: Native, weight: Native, made: Native) -> None:
        """Each channel with kernels of its own: too thin for products, so one multiplication for each tap."""
        made[...] = 0
        x = x[:, :, None]
        made = made.reshape(plan.batch, plan.groups, plan.outs, *plan.counts)
        weight = weight.reshape(plan.groups, plan.outs, *plan.kernel)
        ones = (None,) * len(plan.kernel)
        for sample, into in zip(x, made, strict=True):
            for position, outputs, inputs in plan.taps:
                by = weight[(..., *position)][(..., *ones)]
                into[(slice(None), slice(None), *outputs)] += sample[(slice(None), slice(None), *inputs)] * by

    def conv_input_gradient(g: Native, weight: Native, *, shape: Any, stride: Any, padding: Any, dilation: Any,
                            groups: int) -> Native:  # fmt: skip
        """The adjoint of ``conv`` in its input, of ``shape``; also the transposed convolution."""
        dtype, options = (
            g.dtype,
            {"shape": shape, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups},
        )
        if dtype.kind == "c" and host:
            return by_parts("conv_input_gradient", g, weight, -1, **options)
        g, weight = wide(g), wide(weight)
        weight = weight.conj() if weight.dtype.kind == "c" else weight
        plan = Plan(shape, weight.shape, g.shape[2:], stride, padding, dilation, groups)
        made = xp.zeros(shape, g.dtype)
        if not made.size or not g.size:
            return made.astype(dtype, copy=False)
        matrix = weight.reshape(groups, plan.outs, plan.depth).transpose(0, 2, 1)
        rows = g.reshape(plan.batch, groups, plan.outs, plan.pixels)
        if plan.pointwise:
            matmul(matrix, rows, out=made.reshape(plan.batch, groups, plan.depth, plan.pixels))
        elif plan.depthwise:
            back = g.reshape(plan.batch, groups, plan.outs, *plan.counts)
            kernel = weight.reshape(groups, plan.outs, *plan.kernel)
            ones = (None,) * len(plan.kernel)
            for sample, into in zip(back, made, strict=True):
                for position, outputs, inputs in plan.taps:
                    product = sample[(slice(None), slice(None), *outputs)] * kernel[(..., *position)][(..., *ones)]
                    into[(slice(None), *inputs)] += product[:, 0] if plan.outs == 1 else product.sum(axis=1)
        else:
            together = plan.pixels < _FEW
            size, blocks = plan.blocks(g.itemsize)
            columns, windows = plan.windows(g.dtype, size, together)
            for start, stop in blocks:
                if stop - start < size:
                    columns, windows = plan.windows(g.dtype, stop - start, together)
                matmul(matrix, plan.beside(g[start:stop]) if together else rows[start:stop], out=columns)
                plan.scatter(windows, made[start:stop])
        return made.astype(dtype, copy=False)

    def conv_weight_gradient(g: Native, x: Native, *, shape: Any, stride: Any, padding: Any, dilation: Any,
                             groups: int) -> Native:  # fmt: skip
        """The adjoint of ``conv`` in its weight, of ``shape``."""
        dtype, options = (
            g.dtype,
            {"shape": shape, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups},
        )
        if dtype.kind == "c" and host:
            return by_parts("conv_weight_gradient", g, x, -1, **options)
        g, x = wide(g), wide(x)
        x = x.conj() if x.dtype.kind == "c" else x
        plan = Plan(x.shape, shape, g.shape[2:], stride, padding, dilation, groups)
        made = xp.zeros((groups, plan.outs, plan.depth), g.dtype)
        if not made.size or not g.size:
            return made.reshape(shape).astype(dtype, copy=False)
        if plan.depthwise:
            kernel = made.reshape(groups, plan.outs, *plan.kernel)
            back = g.reshape(plan.batch, groups, plan.outs, *plan.counts)
            axes = tuple(range(2, 2 + len(plan.counts)))
            for sample, into in zip(back, x[:, :, None], strict=True):
                for position, outputs, inputs in plan.taps:
                    product = sample[(slice(None), slice(None), *outputs)] * into[(slice(None), slice(None), *inputs)]
                    kernel[(..., *position)] += product.sum(axis=axes)
        else:
            size, blocks = plan.blocks(g.itemsize)
            columns, windows = plan.windows(g.dtype, size, True)
            for start, stop in blocks:
                if stop - start < size:
                    columns, windows = plan.windows(g.dtype, stop - start, True)
                plan.gather(x[start:stop], windows)
                made += matmul(plan.beside(g[start:stop]), columns.transpose(0, 2, 1))
        return made.reshape(shape).astype(dtype, copy=False)

    def unfold(x: Native, *, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Native:
        """Each window as a column: (batch, channels * taps, windows)."""
        plan = Plan(x.shape, (1, x.shape[1], *kernel), counts, stride, padding, dilation, 1)
        columns, windows = plan.windows(x.dtype, plan.batch, False)
        plan.gather(x, windows)
        return columns.reshape(plan.batch, plan.depth, plan.pixels)

    def fold(g: Native, *, shape: Any, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Native:
        """The adjoint of ``unfold``: columns added up where their windows lie in ``shape``."""
        plan = Plan(shape, (1, shape[1], *kernel), counts, stride, padding, dilation, 1)
        made = xp.zeros(shape, wide(g[:0]).dtype)
        plan.scatter(g.reshape(plan.batch, plan.channels, *plan.kernel, *plan.counts), made)
        return made.astype(g.dtype, copy=False)

    return {function.__name__: function for function in (
        conv, conv_input_gradient, conv_weight_gradient, unfold, fold,
    )}  # fmt: skip
