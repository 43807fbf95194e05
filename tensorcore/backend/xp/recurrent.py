"""Fused kernels of recurrent layers: one call runs a layer over a whole sequence, another takes its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

Sizes = tuple[int, ...]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. Half types are computed in float32.

    The rows of ``gates``, the input's part of every step, lie one step after the other; step t has
    ``sizes[t]`` of them, never more than the step before. Where a sequence has ended, its state stays as it is.
    The state that came into each row goes to the backward kernel as ``prev``.
    """
    xp = backend.xp

    def wide(x: Native) -> Native:
        return x.astype(np.float32) if x.dtype.itemsize <= 2 else x

    def narrow(like: Native, *found: Native) -> tuple[Native, ...]:
        return tuple([one if one is None else one.astype(like.dtype, copy=False) for one in found])

    def state(grad: Native | None, like: Native) -> Native:
        return xp.zeros_like(like) if grad is None else wide(grad).copy()

    def products(dz: Native, prev: Native) -> Native:
        """The gradient of the weights of all steps at once."""
        return dz.T.dot(prev)

    # LSTM

    def lstm_steps(gates: Native, weight: Native, h0: Native, c0: Native, *, sizes: Sizes, reverse: bool) -> Any:
        """All steps of an LSTM over a packed batch; ``gates`` are the products with the input."""
        full, turned = wide(gates), wide(weight).T
        size = turned.shape[0]
        # A sigmoid is half a tanh of half the argument: all four gates are one call of tanh.
        half = xp.full(4 * size, 0.5, full.dtype)
        half[2 * size : 3 * size] = 1
        shift = xp.full(4 * size, 0.5, full.dtype)
        shift[2 * size : 3 * size] = 0
        turned, full = xp.ascontiguousarray(turned * half), full * half
        acts, (rows, _) = xp.empty(full.shape, full.dtype), full.shape
        made, prev, before, tanhs = (xp.empty((rows, size), full.dtype) for _ in range(4))
        h, c = wide(h0).copy(), wide(c0).copy()
        for start, n in _steps(sizes, reverse):
            end = start + n
            z, entered, state = acts[start:end], prev[start:end], c[:n]
            entered[...] = h[:n]
            before[start:end] = state
            xp.matmul(entered, turned, out=z)
            z += full[start:end]
            xp.tanh(z, out=z)
            z *= half
            z += shift
            state *= z[:, size : 2 * size]
            state += z[:, :size] * z[:, 2 * size : 3 * size]
            xp.tanh(state, out=tanhs[start:end])
            xp.multiply(z[:, 3 * size :], tanhs[start:end], out=made[start:end])
            h[:n] = made[start:end]
        return (*narrow(gates, made, h, c), acts, prev, before, tanhs)

    def lstm_steps_backward(
        g: list[Any], gates: Native, weight: Native, h0: Native, c0: Native, acts: Native, prev: Native,
        before: Native, tanhs: Native, *, sizes: Sizes, reverse: bool, needs: Any,
    ) -> Any:  # fmt: skip
        grads = None if g[0] is None else wide(g[0])
        dh, dc = state(g[1], wide(h0)), state(g[2], wide(c0))
        size = h0.shape[1]
        full = wide(weight)
        i, f, c, o = (acts[:, at * size : (at + 1) * size] for at in range(4))
        # What each gate's gradient is multiplied by, for all steps at once.
        slopes = 1 - acts
        slopes *= acts
        slopes[:, :size] *= c
        slopes[:, size : 2 * size] *= before
        xp.multiply(i, 1 - c * c, out=slopes[:, 2 * size : 3 * size])
        slopes[:, 3 * size :] *= tanhs
        through = o * (1 - tanhs * tanhs)
        dz = slopes
        for start, n in _steps(sizes, not reverse):
            end = start + n
            out, cell, mine = dh[:n], dc[:n], dz[start:end]
            if grads is not None:
                out += grads[start:end]
            cell += out * through[start:end]
            three = mine.reshape(n, 4, size)[:, :3]
            three *= cell[:, None]
            mine[:, 3 * size :] *= out
            cell *= f[start:end]
            xp.matmul(mine, full, out=out)
        return narrow(gates, dz, products(dz, prev) if needs[1] else None, dh if needs[2] else None, dc)

    # GRU

    def gru_steps(
        gates: Native, weight: Native, bias: Native | None, h0: Native, *, sizes: Sizes, reverse: bool
    ) -> Any:
        """All steps of a GRU over a packed batch; ``gates`` are the products with the input."""
        full, turned = wide(gates), wide(weight).T
        size = turned.shape[0]
        turned = turned.copy(order="C")
        turned[:, : 2 * size] *= 0.5
        full = full.copy()
        full[:, : 2 * size] *= 0.5
        shift = None
        if bias is not None:
            shift = wide(bias).copy()
            shift[: 2 * size] *= 0.5
        acts, rows = xp.empty(full.shape, full.dtype), full.shape[0]
        made, prev, inner = (xp.empty((rows, size), full.dtype) for _ in range(3))
        h = wide(h0).copy()
        for start, n in _steps(sizes, reverse):
            end = start + n
            z, entered, hidden, x = acts[start:end], prev[start:end], inner[start:end], full[start:end]
            entered[...] = h[:n]
            xp.matmul(entered, turned, out=z)
            if shift is not None:
                z += shift
            hidden[...] = z[:, 2 * size :]
            both, new = z[:, : 2 * size], z[:, 2 * size :]
            both += x[:, : 2 * size]
            xp.tanh(both, out=both)
            both *= 0.5
            both += 0.5
            new *= z[:, :size]
            new += x[:, 2 * size :]
            xp.tanh(new, out=new)
            out = made[start:end]
            xp.subtract(entered, new, out=out)
            out *= z[:, size : 2 * size]
            out += new
            h[:n] = out
        return (*narrow(gates, made, h), acts, prev, inner)

    def gru_steps_backward(
        g: list[Any], gates: Native, weight: Native, bias: Native | None, h0: Native, acts: Native, prev: Native,
        inner: Native, *, sizes: Sizes, reverse: bool, needs: Any,
    ) -> Any:  # fmt: skip
        grads = None if g[0] is None else wide(g[0])
        dh = state(g[1], wide(h0))
        size = h0.shape[1]
        full = wide(weight)
        r, z, new = (acts[:, at * size : (at + 1) * size] for at in range(3))
        # By gate, what the gradient of the state is multiplied by; of the input's part, then of the state's.
        dx = xp.empty(acts.shape, acts.dtype)
        xp.multiply(1 - z, 1 - new * new, out=dx[:, 2 * size :])
        xp.multiply((prev - new) * z, 1 - z, out=dx[:, size : 2 * size])
        xp.multiply(dx[:, 2 * size :] * inner, r * (1 - r), out=dx[:, :size])
        dw = dx.copy()
        dw[:, 2 * size :] *= r
        for start, n in _steps(sizes, not reverse):
            end = start + n
            out = dh[:n]
            if grads is not None:
                out += grads[start:end]
            for one in (dx, dw):
                mine = one[start:end].reshape(n, 3, size)
                mine *= out[:, None]
            out *= z[start:end]
            out += dw[start:end].dot(full)
        db = dw.sum(0) if needs[2] else None
        return narrow(gates, dx, products(dw, prev) if needs[1] else None, db, dh if needs[3] else None)

    # Elman's network

    def rnn_steps(gates: Native, weight: Native, h0: Native, *, sizes: Sizes, reverse: bool, nonlinearity: str) -> Any:
        """All steps of a plain recurrent net over a packed batch; ``gates`` are the products with the input."""
        full, turned = wide(gates), wide(weight).T
        made, prev = xp.empty(full.shape, full.dtype), xp.empty(full.shape, full.dtype)
        h = wide(h0).copy()
        for start, n in _steps(sizes, reverse):
            out, entered = made[start : start + n], prev[start : start + n]
            entered[...] = h[:n]
            xp.matmul(entered, turned, out=out)
            out += full[start : start + n]
            if nonlinearity == "tanh":
                xp.tanh(out, out=out)
            else:
                xp.maximum(out, 0, out=out)
            h[:n] = out
        # The result is the caller's to write to.
        return (*narrow(gates, made.copy(), h), made, prev)

    def rnn_steps_backward(
        g: list[Any], gates: Native, weight: Native, h0: Native, made: Native, prev: Native, *, sizes: Sizes,
        reverse: bool, nonlinearity: str, needs: Any,
    ) -> Any:  # fmt: skip
        grads = None if g[0] is None else wide(g[0])
        dh = state(g[1], wide(h0))
        full = wide(weight)
        dz = 1 - made * made if nonlinearity == "tanh" else (made > 0).astype(made.dtype)
        for start, n in _steps(sizes, not reverse):
            out, mine = dh[:n], dz[start : start + n]
            if grads is not None:
                out += grads[start : start + n]
            mine *= out
            xp.matmul(mine, full, out=out)
        return narrow(gates, dz, products(dz, prev) if needs[1] else None, dh if needs[2] else None)

    return {
        one.__name__: one
        for one in (lstm_steps, lstm_steps_backward, gru_steps, gru_steps_backward, rnn_steps, rnn_steps_backward)
    }


def _steps(sizes: Sizes, reverse: bool) -> list[tuple[int, int]]:
    """The first row and the number of rows of each step, from the last one where ``reverse``."""
    found, start = [], 0
    for n in sizes:
        found.append((start, n))
        start += n
    return found[::-1] if reverse else found
