"""Fused kernels of normalisations and losses, with as few temporaries as NumPy allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

Grads = tuple[Any, ...]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. Half types are computed in float32, dims are counted from the front."""
    xp = backend.xp
    largest = xp.maximum.reduce
    table = backend.kernels
    dot = getattr(xp, "vecdot", None)

    def total(x: Native, dim: Any, keepdim: bool = True) -> Native:
        return table["sum"](x, dim=dim, keepdim=keepdim)

    def over(x: Native, y: Any, dims: tuple[int, ...]) -> Native:
        """The sums over ``dims`` of ``x * y`` (or of ``x``), which stay as dims of size 1.

        Over trailing dims of contiguous memory these are dot products: a quarter of the time, and no
        array for the products. BLAS keeps enough partial sums for the errors to be those of pairwise sums.
        """
        first = x.ndim - len(dims)
        if x.size and dims == tuple(range(first, x.ndim)) and dot is not None and x.dtype.kind == "f":
            n = _count(x.shape, dims)
            rows = x.reshape(-1, n)
            if y is None and n <= 4096:
                sums = rows.dot(xp.ones(n, x.dtype))
            else:
                sums = dot(rows, xp.ones(n, x.dtype) if y is None else y.reshape(-1, n))
            return sums.reshape(*x.shape[:first], *[1] * len(dims))
        return total(x if y is None else x * y, dims)

    def sum_over(x: Native, dims: Any) -> Native:
        return total(x, dims) if dims else x

    def wide(x: Native) -> Native:
        return x.astype(np.float32) if x.dtype.itemsize <= 2 else x

    # Softmax

    def softmax(x: Native, *, dim: int) -> Native:
        if not x.size or not x.ndim:
            return xp.asarray(xp.exp(x - x))  # of the infinities and of NaN that is NaN
        full = xp.ascontiguousarray(wide(x))  # whatever it lies like, the result is row-major
        made = full - largest(full, dim, keepdims=True)
        xp.exp(made, out=made)
        made /= over(made, None, (dim,))
        return made.astype(x.dtype, copy=False)

    def softmax_backward(g: Native, out: Native, *, dim: int) -> Native:
        if not out.ndim:
            return xp.zeros_like(g)
        y = wide(out)
        made = wide(g) * y
        made -= y * over(made, None, (dim,))
        return made.astype(out.dtype, copy=False)

    def log_softmax(x: Native, *, dim: int) -> Native:
        if not x.size or not x.ndim:
            return xp.asarray(x - x)
        full = xp.ascontiguousarray(wide(x))  # whatever it lies like, the result is row-major
        made = full - largest(full, dim, keepdims=True)
        made -= xp.log(over(xp.exp(made), None, (dim,)))
        return made.astype(x.dtype, copy=False)

    def log_softmax_backward(g: Native, out: Native, *, dim: int) -> Native:
        if not out.ndim:
            return xp.zeros_like(g)
        made = xp.exp(wide(out))
        full = wide(g)
        made *= over(full, None, (dim,))
        return xp.subtract(full, made, out=made).astype(out.dtype, copy=False)

    # Normalisations: one kernel, the layers differ in the view and the dims

    def standardize(
        x: Native, weight: Any, bias: Any, *, view: Any, dims: Any, affine: Any, eps: float, centre: bool
    ) -> Any:
        """``(x - mean) / sqrt(var + eps) * weight + bias`` over ``dims`` of ``x`` seen in the shape ``view``.

        Without ``centre`` the mean square takes the variance's place. ``affine`` is the shape in which weight
        and bias meet the view. Answers the result, the mean (or None), and the variance.
        """
        full = wide(x).reshape(view)
        count = full.dtype.type(_count(view, dims))
        mean = None
        made = full
        if centre:
            mean = over(full, None, dims)
            mean /= count
            made = full - mean
        var = over(made, made, dims)
        var /= count
        scale = full.dtype.type(1) / xp.sqrt(var + full.dtype.type(eps))
        made = xp.multiply(made, scale, out=made if centre else None)
        if weight is not None:
            made *= wide(weight).reshape(affine)
        if bias is not None:
            made += wide(bias).reshape(affine)
        return made.reshape(x.shape).astype(x.dtype, copy=False), mean, var

    def standardize_backward(
        g: Native, x: Native, weight: Any, bias: Any, mean: Any, var: Native,
        *, needs: Any, view: Any, dims: Any, affine: Any, eps: float, centre: bool, into: Any = None,
    ) -> Grads:  # fmt: skip
        full, g_full = wide(x).reshape(view), wide(g).reshape(view)
        one = full.dtype.type
        scale = one(1) / xp.sqrt(var + one(eps))
        hat = full - mean if centre else full * scale
        if centre:
            hat *= scale
        g_weight = g_bias = g_input = None
        affine = (1,) * (len(view) - len(affine)) + tuple(affine)
        stretched = tuple([i for i, size in enumerate(affine) if size == 1 and view[i] != 1])
        if weight is not None and needs[1]:
            g_weight = sum_over(g_full * hat, stretched).reshape(weight.shape).astype(weight.dtype, copy=False)
        if bias is not None and needs[2]:
            g_bias = sum_over(g_full, stretched).reshape(bias.shape).astype(bias.dtype, copy=False)
        if needs[0]:
            scaled = g_full if weight is None else g_full * wide(weight).reshape(affine)
            count = one(_count(view, dims))
            mixed = over(scaled, hat, dims)
            mixed /= count
            hat *= mixed
            rest = xp.subtract(scaled, hat, out=hat)
            if centre:
                rest -= over(scaled, None, dims) / count
            rest *= scale
            g_input = rest.reshape(x.shape).astype(x.dtype, copy=False)
        return g_input, g_weight, g_bias

    def standardize_by(x: Native, mean: Native, var: Native, weight: Any, bias: Any, *, eps: float) -> Native:
        """``standardize`` per channel (dim 1) with statistics that are given."""
        affine, full = (1, -1, *[1] * (x.ndim - 2)), wide(x)
        scale = full.dtype.type(1) / xp.sqrt(wide(var) + full.dtype.type(eps))
        if weight is not None:
            scale = scale * wide(weight)
        made = full - wide(mean).reshape(affine)
        made *= scale.reshape(affine)
        if bias is not None:
            made += wide(bias).reshape(affine)
        return made.astype(x.dtype, copy=False)

    def track_statistics(
        running_mean: Any, running_var: Any, mean: Native, var: Native, *, momentum: float, count: int
    ) -> None:
        """Move running statistics, in place, towards those of ``standardize``, whose rows of channels are averaged.

        ``count`` is how many values each of them is over: the running variance is the unbiased one.
        """
        for running, now, factor in ((running_mean, mean, 1.0), (running_var, var, count / max(count - 1, 1))):
            if running is not None:
                share = now.reshape(-1, running.size)
                share = (share[0] if len(share) == 1 else xp.mean(share, 0)) * (momentum * factor)
                running *= 1.0 - momentum
                running += share

    # Losses

    def mse_loss(x: Native, target: Native, *, reduction: str) -> Native:
        away = wide(x) - wide(target)
        away = xp.multiply(away, away, out=away[...])
        return finish(away, reduction).astype(x.dtype, copy=False)

    def mse_loss_backward(g: Native, x: Native, target: Native, *, needs: Any, reduction: str) -> Grads:
        away = wide(x) - wide(target)
        factor = 2.0 / away.size if reduction == "mean" and away.size else 2.0
        away = xp.multiply(away, wide(g) * away.dtype.type(factor), out=away[...]).astype(x.dtype, copy=False)
        return (away if needs[0] else None), (-away if needs[1] else None)

    def smooth_l1_loss(x: Native, target: Native, *, reduction: str, limit: float, scale: float) -> Native:
        """``scale`` times half the squared difference over ``limit`` where it is below that, else less half of ``limit``."""
        away = xp.abs(wide(x) - wide(target))
        small = away * away * away.dtype.type(0.5 / limit if limit else 0.0)
        each = xp.where(away < limit, small, away - away.dtype.type(0.5 * limit)) * away.dtype.type(scale)
        return finish(each, reduction).astype(x.dtype, copy=False)

    def smooth_l1_loss_backward(
        g: Native, x: Native, target: Native, *, needs: Any, reduction: str, limit: float, scale: float
    ) -> Grads:
        away = wide(x) - wide(target)
        slope = xp.where(xp.abs(away) < limit, away * away.dtype.type(1 / limit if limit else 0.0), xp.sign(away))
        factor = scale / away.size if reduction == "mean" and away.size else scale
        made = (slope * (wide(g) * away.dtype.type(factor))).astype(x.dtype, copy=False)
        return (made if needs[0] else None), (-made if needs[1] else None)

    def finish(values: Native, reduction: str) -> Native:
        if reduction == "none":
            return values
        return table["mean" if reduction == "mean" else "sum"](values)

    def nll_loss(x: Native, target: Native, weight: Any, *, reduction: str, ignore_index: int) -> Any:
        """The negated elements of ``x`` at the classes along dim 1, weighted; with the sum of the weights for its
        backward."""
        rows = _rows(x)
        flat = target.reshape(rows.shape[0], rows.shape[2])
        kept = flat != ignore_index
        index = xp.where(kept, flat, 0)[:, None, :]
        picked = -wide(xp.take_along_axis(rows, index, axis=1)[:, 0, :])
        each = kept.astype(picked.dtype) if weight is None else xp.where(kept, wide(weight)[index[:, 0, :]], 0)
        each = each.astype(picked.dtype, copy=False)
        picked = xp.where(kept, picked * each, picked.dtype.type(0))
        if reduction == "none":
            return picked.reshape(target.shape).astype(x.dtype, copy=False), each, xp.ones((), each.dtype)
        weights = total(each, None, False)
        made = total(picked, None, False)
        if reduction == "mean":
            made = xp.divide(made, weights, out=made)
        return made.astype(x.dtype, copy=False), each, weights

    def nll_loss_backward(g: Native, x: Native, target: Native, weight: Any, each: Native, weights: Native,
                          *, needs: Any, reduction: str, ignore_index: int) -> Grads:  # fmt: skip
        return put(g, x.shape, x.dtype, target, each, weights, reduction, ignore_index), None, None

    def shares(g: Native, each: Native, weights: Native, reduction: str) -> Native:
        """What comes to each place: nothing to what is ignored, also where that is everything and the mean is NaN."""
        full = wide(g)
        if reduction == "none":
            return each * full.reshape(each.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            return xp.where(each == 0, each, each * (full / weights if reduction == "mean" else full))

    def put(
        g: Native, shape: Any, kind: Any, target: Native, each: Native, weights: Native, reduction: str, ignored: int
    ) -> Native:
        made = xp.zeros(shape, kind)
        flat = target.reshape(each.shape)
        index = xp.where(flat != ignored, flat, 0)[:, None, :]
        amount = -shares(g, each, weights, reduction)
        xp.put_along_axis(_rows(made), index, amount.astype(kind, copy=False)[:, None, :], axis=1)
        return made

    def cross_entropy(x: Native, target: Native, weight: Any, *, reduction: str, ignore_index: int) -> Any:
        """``nll_loss`` of ``log_softmax`` along dim 1 as one: what backward wants is kept, not computed again."""
        logs = log_softmax(wide(x), dim=1)
        made, each, weights = nll_loss(logs, target, weight, reduction=reduction, ignore_index=ignore_index)
        return made.astype(x.dtype, copy=False), logs, each, weights

    def cross_entropy_backward(
        g: Native, x: Native, target: Native, weight: Any, logs: Native, each: Native, weights: Native,
        *, needs: Any, reduction: str, ignore_index: int,
    ) -> Grads:  # fmt: skip
        amount = shares(g, each, weights, reduction)
        made = xp.ascontiguousarray(xp.exp(logs))
        rows = _rows(made)
        rows *= amount[:, None, :]
        flat = target.reshape(each.shape)
        index = xp.where(flat != ignore_index, flat, 0)[:, None, :]
        at = xp.take_along_axis(rows, index, axis=1) - amount[:, None, :]
        xp.put_along_axis(rows, index, at, axis=1)
        return made.astype(x.dtype, copy=False), None, None

    def binary_cross_entropy(x: Native, target: Native, weight: Any, *, reduction: str) -> Native:
        full, wanted = wide(x), wide(target)
        yes, no = (xp.maximum(xp.log(one), full.dtype.type(-100)) for one in (full, 1 - full))
        made = (wanted - 1) * no - wanted * yes
        return finish(xp.asarray(made if weight is None else made * wide(weight)), reduction).astype(
            x.dtype, copy=False
        )

    def binary_cross_entropy_backward(
        g: Native, x: Native, target: Native, weight: Any, *, needs: Any, reduction: str
    ) -> Any:
        full, wanted, scale = wide(x), wide(target), wide(g)
        if reduction == "mean" and full.size:
            scale = scale / full.dtype.type(full.size)
        each = scale if weight is None else scale * wide(weight)
        slope = (full - wanted) / xp.maximum(full * (1 - full), full.dtype.type(1e-12))
        heavy = None
        if needs[2] and weight is not None:
            heavy = scale * binary_cross_entropy(full, wanted, None, reduction="none")
            heavy = heavy.sum(axis=tuple(range(heavy.ndim - weight.ndim)))
            heavy = heavy.sum(axis=tuple([i for i, size in enumerate(weight.shape) if size == 1]), keepdims=True)
            heavy = xp.asarray(heavy).astype(x.dtype, copy=False)
        turned = xp.asarray(each * (xp.log(1 - full) - xp.log(full))).astype(x.dtype, copy=False) if needs[1] else None
        return xp.asarray(each * slope).astype(x.dtype, copy=False), turned, heavy

    def soft_margin_loss(x: Native, target: Native, *, reduction: str) -> Native:
        score = -wide(target) * wide(x)
        made = xp.log1p(xp.exp(-xp.abs(score))) + xp.maximum(score, score.dtype.type(0))
        return finish(xp.asarray(made), reduction).astype(x.dtype, copy=False)

    def soft_margin_loss_backward(g: Native, x: Native, target: Native, *, needs: Any, reduction: str) -> Any:
        full, wanted, scale = wide(x), wide(target), wide(g)
        score = -wanted * full
        if reduction == "mean" and score.size:
            scale = scale / score.dtype.type(score.size)
        made = -scale * (xp.tanh(score * score.dtype.type(0.5)) * score.dtype.type(0.5) + score.dtype.type(0.5))
        turned = xp.asarray(made * full).astype(x.dtype, copy=False) if needs[1] else None
        return xp.asarray(made * wanted).astype(x.dtype, copy=False), turned

    def binary_cross_entropy_with_logits(
        x: Native, target: Native, weight: Any, pos_weight: Any, *, reduction: str
    ) -> Native:
        full, wanted = wide(x), wide(target)
        small = xp.exp(-xp.abs(full))
        soft = xp.log1p(small, out=small[...])
        made = (full >= 0) - wanted  # max(full, 0) - full * wanted would be a difference of infinities
        made *= full
        made += soft
        if pos_weight is not None:
            made = made + (wide(pos_weight) - 1) * wanted * (soft + xp.maximum(-full, full.dtype.type(0)))
        if weight is not None:
            made = made * wide(weight)
        return finish(xp.asarray(made), reduction).astype(x.dtype, copy=False)

    def binary_cross_entropy_with_logits_backward(
        g: Native, x: Native, target: Native, weight: Any, pos_weight: Any, *, needs: Any, reduction: str
    ) -> Any:
        if needs[1] or needs[2] or needs[3]:
            return None  # rare: the decomposition knows those gradients
        full, wanted = wide(x), wide(target)
        chance = xp.tanh(full * full.dtype.type(0.5)) * full.dtype.type(0.5) + full.dtype.type(0.5)
        if pos_weight is None:
            made = chance - wanted
        else:
            factor = wide(pos_weight) * wanted
            made = (factor + 1 - wanted) * chance - factor
        if weight is not None:
            made = made * wide(weight)
        scale = wide(g)
        if reduction == "mean" and made.size:
            scale = scale / full.dtype.type(made.size)
        return xp.asarray(made * scale).astype(x.dtype, copy=False), None, None, None

    return {function.__name__: function for function in (
        softmax, softmax_backward, log_softmax, log_softmax_backward, standardize, standardize_backward, standardize_by,
        track_statistics, mse_loss,
        mse_loss_backward, smooth_l1_loss, smooth_l1_loss_backward, nll_loss, nll_loss_backward, cross_entropy, cross_entropy_backward,
        binary_cross_entropy, binary_cross_entropy_backward, soft_margin_loss, soft_margin_loss_backward,
        binary_cross_entropy_with_logits, binary_cross_entropy_with_logits_backward,
    )}  # fmt: skip


def _count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    count = 1
    for i in dims:
        count *= shape[i]
    return count


def _rows(x: Native) -> Native:
    """Classes along dim 1, everything after it in one dim; memory of a contiguous ``x`` is shared."""
    return x.reshape(x.shape[0], x.shape[1], -1) if 0 not in x.shape else x.reshape(x.shape[0], x.shape[1], 0)
