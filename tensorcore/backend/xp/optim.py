"""Optimizer steps: whole groups of parameters at once, in place, in pieces that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# Elements of one piece. A step reads and writes each piece several times: from the second time on it comes
# from the cache, so a big parameter passes through memory once. A million float32 take 490 us in pieces of
# 2**13, 180 in pieces of 2**16, and more again beyond.
PIECE = 1 << 16


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp
    add, subtract, multiply, divide, maximum, sqrt = xp.add, xp.subtract, xp.multiply, xp.divide, xp.maximum, xp.sqrt
    piece = PIECE if xp is np else None

    def sgd_step(
        params: Sequence[Native],
        grads: Sequence[Native],
        momenta: Sequence[Native] | None,
        grad_scale: Native | None = None,
        found_inf: Native | None = None,
        *,
        lr: float,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
        first: bool = False,
    ) -> None:
        """One step of stochastic gradient descent, in place.

        Args:
            momenta: a buffer for each parameter, None where ``momentum`` is 0.
            grad_scale, found_inf: 0-d arrays. The gradients are divided by the first, in place; nothing else happens where
                the second is not 0.
            first: the buffers hold nothing yet and take the gradients as they are.
        """
        if not proceeds(grads, grad_scale, found_inf):
            return

        def step(p: Native, g: Native, *buffer: Native) -> None:
            scratch = xp.empty_like(p)
            g = directed(p, g, scratch, weight_decay, maximize)
            if buffer:
                (b,) = buffer
                if first:
                    b[...] = g
                else:
                    multiply(b, momentum, out=b)
                    if dampening:
                        b += g * (1.0 - dampening)
                    else:
                        add(b, g, out=b)
                if nesterov:
                    look = b * momentum
                    g = add(look, g, out=scratch)
                else:
                    g = b
            subtract(p, multiply(g, lr, out=scratch), out=p)

        for i, p in enumerate(params):
            each((p, grads[i]) if momenta is None else (p, grads[i], momenta[i]), step)

    def adam_step(
        params: Sequence[Native],
        grads: Sequence[Native],
        averages: Sequence[Native],
        squares: Sequence[Native],
        maxima: Sequence[Native] | None,
        counts: Sequence[Native] | None = None,
        grad_scale: Native | None = None,
        found_inf: Native | None = None,
        *,
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        steps: Sequence[float] = (),
        weight_decay: float = 0.0,
        decoupled: bool = False,
        maximize: bool = False,
    ) -> None:
        """One step of Adam (Kingma and Ba, arXiv:1412.6980), in place.

        Args:
            averages, squares: running means of each gradient and of its square.
            maxima: the largest of the second so far (AMSGrad, Reddi et al., openreview ryQu7f-RZ), None for Adam.
            counts: a 0-d array for each parameter: how many steps it has had, which becomes one more.
            grad_scale, found_inf: as for ``sgd_step``; where no step happens, none is counted.
            steps: the counts with this step, in the place of ``counts``.
            decoupled: weight decay shrinks the parameter itself (AdamW, Loshchilov and Hutter, arXiv:1711.05101).
        """
        if not proceeds(grads, grad_scale, found_inf):
            return
        if counts is not None:
            for one in counts:
                add(one, 1, out=one)
            steps = [float(one) for one in counts]
        for i, p in enumerate(params):
            correction = sqrt(1.0 - beta2 ** steps[i])
            size = lr / (1.0 - beta1 ** steps[i])

            def step(
                p: Native, g: Native, m: Native, v: Native, *largest: Native,
                correction: float = float(correction), size: float = size,
            ) -> None:  # fmt: skip
                scratch = xp.empty_like(p)
                if decoupled and weight_decay:
                    multiply(p, 1.0 - lr * weight_decay, out=p)
                    g = directed(p, g, scratch, 0.0, maximize)
                else:
                    g = directed(p, g, scratch, weight_decay, maximize)
                other = xp.empty_like(p) if g is scratch else scratch
                subtract(g, m, out=other)
                multiply(other, 1.0 - beta1, out=other)
                add(m, other, out=m)
                multiply(g, g, out=other)
                multiply(other, 1.0 - beta2, out=other)
                multiply(v, beta2, out=v)
                add(v, other, out=v)
                if largest:
                    v = maximum(largest[0], v, out=largest[0])
                sqrt(v, out=other)
                divide(other, correction, out=other)
                add(other, eps, out=other)
                divide(m, other, out=other)
                multiply(other, size, out=other)
                subtract(p, other, out=p)

            arrays = (p, grads[i], averages[i], squares[i])
            each(arrays if maxima is None else (*arrays, maxima[i]), step)

    def step(
        formula: Callable[..., None], arrays: Sequence[Sequence[Native]], numbers: Sequence[dict[str, Any]]
    ) -> None:
        """One step of many parameters, in place, by a formula of single elements.

        Args:
            formula: takes ``xp``, one parameter, its gradient and what else belongs to it, and the numbers by name;
                it writes all of the arrays but the gradient. Its operators are those of arrays.
            arrays, numbers: what it takes, for each parameter.
        """
        for some, named in zip(arrays, numbers, strict=True):
            each(tuple(some), partial(formula, xp, **named))

    def unscale(grads: Sequence[Native], *, factor: float | Native) -> Native:
        """Multiply arrays in place, and say as a 0-d array whether an element of any of them is not finite.

        Args:
            factor: a number, or a 0-d array where reading one would wait for the device.
        """
        found = False
        plain = isinstance(factor, float)
        for g in grads:
            dense = g.flags.c_contiguous and piece is not None
            for part in pieces((g,)) if dense and g.size > PIECE else ([g],):
                found = found | ~xp.isfinite(part[0]).all()
                if not plain:
                    part[0][...] = part[0] * factor
                elif factor != 1.0:
                    multiply(part[0], factor, out=part[0])
        return xp.asarray(found)

    def norms(arrays: Sequence[Native], *, p: float) -> Native | None:
        """The norms of several arrays as one vector; None for another ``p`` than 1, 2 and infinity, for several
        dtypes, and where nothing is the largest of no elements.
        """
        dtype, largest = arrays[0].dtype, p == float("inf")
        if p not in (1.0, 2.0) and not largest:
            return None
        if any([one.dtype != dtype or (largest and not one.size) for one in arrays]):
            return None
        made = []
        for one in arrays:
            sizes = xp.abs(one.astype(np.float32) if dtype.itemsize == 2 else one).reshape(-1)
            if p == 2.0:
                made.append(xp.sqrt((sizes * sizes).sum()))
            else:
                made.append(sizes.max() if largest else sizes.sum())
        return xp.stack(made).astype(dtype)

    def proceeds(grads: Sequence[Native], grad_scale: Native | None, found_inf: Native | None) -> bool:
        """Whether a step happens, whose gradients are as they should be then."""
        if found_inf is not None and bool(found_inf):
            return False
        if grad_scale is not None:
            for g in grads:
                g[...] = g / grad_scale
        return True

    def directed(p: Native, g: Native, scratch: Native, weight_decay: float, maximize: bool) -> Native:
        """The gradient to descend along: turned round to maximize, with weight decay added."""
        if maximize:
            g = xp.negative(g, out=scratch)
        if weight_decay:
            g = add(g, p * weight_decay, out=scratch)
        return g

    def each(arrays: tuple[Native, ...], step: Callable[..., None]) -> None:
        """Call ``step`` on matching pieces of arrays of one shape, of a dtype that it can compute in."""
        first = arrays[0]
        if first.dtype.itemsize == 2:
            # The 16-bit dtypes are too coarse to compute a step in.
            wide = [one.astype(np.float32) for one in arrays]
            step(*wide)
            for one, result in zip(arrays, wide, strict=True):
                if one is not arrays[1]:
                    one[...] = result
        elif all(one.flags.c_contiguous for one in arrays):
            if first.dtype.kind == "c":
                arrays = tuple([one.view(one.real.dtype) for one in _atleast_1d(arrays)])
            if piece is None or first.size <= piece:
                step(*arrays)
            else:
                for part in pieces(arrays):
                    step(*part)
        elif first.dtype.kind == "c":
            dense = [xp.ascontiguousarray(one) for one in arrays]
            each(tuple(dense), step)
            for one, result in zip(arrays, dense, strict=True):
                if one is not arrays[1]:
                    one[...] = result
        else:
            step(*arrays)

    def pieces(arrays: tuple[Native, ...]) -> Iterator[list[Native]]:
        flat = [one.reshape(-1) for one in arrays]
        for start in range(0, flat[0].size, PIECE):
            yield [one[start : start + PIECE] for one in flat]

    return {"sgd_step": sgd_step, "adam_step": adam_step, "step": step, "unscale": unscale, "norms": norms}


def _atleast_1d(arrays: Any) -> list[Any]:
    return [one.reshape(1) if one.ndim == 0 else one for one in arrays]
