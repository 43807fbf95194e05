"""Fused kernels over sequences: attention, and the loss of an alignment between frames and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# How many scores are worked on at a time: they stay in the cache between the two products.
_BLOCK = 1 << 18


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. Half types are computed in float32."""
    xp = backend.xp

    def wide(x: Native) -> Native:
        return x.astype(np.float32) if x.dtype.itemsize <= 2 else x

    # Attention: what the arrays are stands with the op, ops/layers/attention.py

    def blocks(query: Native, key: Native) -> list[tuple[Any, Any]]:
        """Slices of (batch, heads) of the query, and the heads of the key that they meet."""
        batch, heads, rows, _ = query.shape
        repeat, columns = heads // key.shape[1], key.shape[2]
        whole = heads if batch * heads * rows * columns <= _BLOCK else max(1, _BLOCK // max(rows * columns, 1))
        if whole >= heads:
            step = max(1, _BLOCK // max(heads * rows * columns, 1))
            mine = slice(None) if repeat == 1 else xp.arange(heads) // repeat
            return [((slice(b, b + step),), (slice(b, b + step), mine)) for b in range(0, batch, step)]
        found = []
        for b in range(batch):
            for start in range(0, heads, whole):
                stop = min(start + whole, heads)
                mine = slice(start, stop) if repeat == 1 else xp.arange(start, stop) // repeat
                found.append(((slice(b, b + 1), slice(start, stop)), (slice(b, b + 1), mine)))
        return found

    def scored(query: Native, key: Native, mask: Any, allowed: Any, scale: float) -> Native:
        scores = xp.matmul(query * query.dtype.type(scale), key.swapaxes(-1, -2))
        if mask is not None:
            if mask.dtype == np.bool_:
                xp.copyto(scores, -np.inf, where=~mask)
            else:
                scores += mask
        if allowed is not None:
            xp.copyto(scores, -np.inf, where=~allowed)
        return scores

    def prepared(query: Native, key: Native, mask: Any, causal: bool) -> tuple[Any, Any]:
        shape = (*query.shape[:3], key.shape[2])
        if mask is not None:
            mask = xp.broadcast_to(wide(mask) if mask.dtype != np.bool_ else mask, shape)
        return mask, xp.tri(shape[2], shape[3], dtype=np.bool_) if causal else None

    def attention(
        query: Native, key: Native, value: Native, mask: Any, *, causal: bool, scale: float
    ) -> tuple[Native, Native]:
        """Softmax of scaled products, times the values; and for each row the logarithm of its sum of exponentials."""
        q, k, v = wide(query), wide(key), wide(value)
        made = xp.empty((*q.shape[:3], v.shape[3]), q.dtype)
        sums = xp.empty(q.shape[:3], q.dtype)
        mask, allowed = prepared(query, key, mask, causal)
        for mine, theirs in blocks(q, k):
            scores = scored(q[mine], k[theirs], None if mask is None else mask[mine], allowed, scale)
            top = scores.max(-1, keepdims=True)
            top[top == -np.inf] = 0  # of a row without anything to attend to
            scores -= top
            xp.exp(scores, out=scores)
            total = scores.sum(-1, keepdims=True)
            sums[mine] = (xp.log(total) + top)[..., 0]
            total[total == 0] = 1
            part = xp.matmul(scores, v[theirs])
            part /= total
            made[mine] = part
        return made.astype(query.dtype, copy=False), sums

    def attention_backward(
        g: Native,
        query: Native,
        key: Native,
        value: Native,
        mask: Any,
        sums: Native,
        *,
        needs: Any,
        causal: bool,
        scale: float,
    ) -> tuple[Any, ...]:
        """The gradients of ``attention``; the weights are computed again from the sums."""
        wanted = [need and one is not None for need, one in zip(needs, (query, key, value, mask), strict=True)]
        sent, q, k, v = wide(g), wide(query), wide(key), wide(value)
        back = [xp.zeros(one.shape, q.dtype) if need else None for need, one in zip(wanted[:3], (q, k, v), strict=True)]
        added = xp.zeros((*q.shape[:3], k.shape[2]), q.dtype) if wanted[3] else None
        full_mask, allowed = prepared(query, key, mask, causal)
        shift = xp.where(sums == -np.inf, q.dtype.type(0), sums)[..., None]
        for mine, theirs in blocks(q, k):
            keys, values, into = k[theirs], v[theirs], sent[mine]
            weights = scored(q[mine], keys, None if full_mask is None else full_mask[mine], allowed, scale)
            weights -= shift[mine]
            xp.exp(weights, out=weights)
            if back[2] is not None:
                gathered(back[2], theirs, xp.matmul(weights.swapaxes(-1, -2), into))
            if not (wanted[0] or wanted[1] or wanted[3]):
                continue
            slope = xp.matmul(into, values.swapaxes(-1, -2))
            slope -= (slope * weights).sum(-1, keepdims=True)
            slope *= weights
            if added is not None:
                added[mine] = slope
            slope *= q.dtype.type(scale)
            if back[0] is not None:
                back[0][mine] = xp.matmul(slope, keys)
            if back[1] is not None:
                gathered(back[1], theirs, xp.matmul(slope.swapaxes(-1, -2), q[mine]))
        if added is not None:
            added = reduced(added, mask.shape)
        return tuple(
            [
                None if one is None else one.astype(like.dtype, copy=False)
                for one, like in zip((*back, added), (query, key, value, mask), strict=True)
            ]
        )

    def gathered(back: Native, where: Any, part: Native) -> None:
        """Add up ``part`` at the heads that several heads of the query share."""
        if len(where) == 2 and not isinstance(where[1], slice):
            for i, head in enumerate(where[1].tolist()):
                back[where[0], head] += part[:, i]
        else:
            back[where] = part

    def reduced(x: Native, shape: Any) -> Native:
        dims = tuple([i for i, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if b == 1 and a != 1])
        return x.sum(dims, keepdims=True) if dims else x

    # Connectionist temporal classification: what the arrays are stands with the op, ops/layers/ctc.py

    def step(alpha: Native, skips: Native) -> Native:
        """One step of the sums over paths: stay, or come from the state before, or where allowed from two before."""
        made = alpha.copy()
        made[:, 1:] = xp.logaddexp(made[:, 1:], alpha[:, :-1])
        two = xp.where(skips[:, 2:], alpha[:, :-2], -np.inf)
        made[:, 2:] = xp.logaddexp(made[:, 2:], two)
        return made

    def ctc_loss(
        log_probs: Native, labels: Native, skips: Native, *, frames: Any, counts: Any, infinite: bool
    ) -> tuple[Native, Native]:
        """The negative logarithm of the sum over all paths of each sample, and the sums up to each frame and state."""
        length, batch, _ = log_probs.shape
        emitted = xp.take_along_axis(log_probs, labels[None], 2)
        alpha = xp.full((length, *labels.shape), -np.inf, log_probs.dtype)
        ends, lasts = xp.asarray(frames), 2 * xp.asarray(counts)
        if length:
            alpha[0, :, 0] = emitted[0, :, 0]
            if labels.shape[1] > 1:
                alpha[0, :, 1] = xp.where(lasts > 0, emitted[0, :, 1], -np.inf)
        for t in range(1, length):
            alpha[t] = step(alpha[t - 1], skips)
            alpha[t] += emitted[t]
        rows = xp.arange(batch)
        if not length:
            return xp.where(lasts == 0, 0.0, np.inf).astype(log_probs.dtype), alpha
        final = alpha[xp.maximum(ends - 1, 0), rows]
        both = xp.logaddexp(final[rows, lasts], xp.where(lasts > 0, final[rows, xp.maximum(lasts - 1, 0)], -np.inf))
        both = xp.where(ends > 0, both, xp.where(lasts == 0, 0.0, -np.inf))
        return (-both).astype(log_probs.dtype), alpha

    def ctc_loss_backward(
        g: Native,
        log_probs: Native,
        labels: Native,
        skips: Native,
        alpha: Native,
        *,
        needs: Any,
        frames: Any,
        counts: Any,
        infinite: bool,
    ) -> tuple[Any, ...]:
        """The gradient of ``ctc_loss`` less what the logarithm of a softmax before it takes away: see ops/layers/ctc.py."""
        length, batch, _ = log_probs.shape
        emitted = xp.take_along_axis(log_probs, labels[None], 2)
        ends, lasts, rows = xp.asarray(frames), 2 * xp.asarray(counts), xp.arange(batch)
        states = xp.arange(labels.shape[1])
        start = (states == lasts[:, None]) | ((states == lasts[:, None] - 1) & (lasts > 0)[:, None])
        ahead = xp.zeros_like(skips)
        ahead[:, :-2] = skips[:, 2:]
        beta = xp.empty(alpha.shape, log_probs.dtype)
        found = xp.exp(log_probs)
        final = alpha[xp.maximum(ends - 1, 0), rows] if length else xp.full(labels.shape, -np.inf)
        loss = -xp.logaddexp.reduce(xp.where(start, final, -np.inf), 1)
        begin, later = xp.where(start, 0.0, -np.inf), xp.full(labels.shape, -np.inf, log_probs.dtype)
        last = set(frames)
        for t in range(length - 1, -1, -1):
            made = beta[t]
            made[:] = later
            xp.logaddexp(later[:, :-1], later[:, 1:], out=made[:, :-1])
            made[:, :-2] = xp.logaddexp(made[:, :-2], xp.where(ahead[:, :-2], later[:, 2:], -np.inf))
            if t + 1 in last:
                made[:] = xp.where((ends == t + 1)[:, None], begin, made)
            later = made + emitted[t]
        share = xp.exp(alpha + beta + loss[:, None])
        for s in range(labels.shape[1]):
            found[:, rows, labels[:, s]] -= share[:, :, s]
        found[xp.arange(length)[:, None] >= ends] = 0
        if infinite:
            found[:, loss == np.inf] = 0
            g = xp.where(loss == np.inf, 0, g)
        found *= g[:, None]
        return found, None, None

    return {function.__name__: function for function in (attention, attention_backward, ctc_loss, ctc_loss_backward)}
