"""LBFGS: quasi-Newton steps from the last gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore.errors import ArgumentError, UsageError
from tensorcore.ops.pointwise.complex import view_as_real
from tensorcore.ops.shapes.join import cat
from tensorcore.optim.algorithm import check_lr, number
from tensorcore.optim.line_search import strong_wolfe
from tensorcore.optim.optimizer import Optimizer
from tensorcore.tape.mode import enable_grad, no_grad
from tensorcore.tensor import Tensor

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, 2nd edition, algorithm 7.4).

    One group only, all of its parameters on one device. It keeps ``2 * history_size`` copies of them.

    Args:
        params: what to optimize.
        lr: the step's length, or the first one that a line search tries.
        max_iter: quasi-Newton steps in one ``step``.
        max_eval: calls of the closure in one ``step``; ``max_iter * 5 // 4`` where None.
        tolerance_grad: stop where no element of the gradient is larger.
        tolerance_change: stop where parameters or loss change less.
        history_size: how many pairs of differences are kept.
        line_search_fn: ``strong_wolfe``, or None for steps of length ``lr``.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ArgumentError(
                f"LBFGS doesn't support per-parameter options (parameter groups), got {len(self.param_groups)} groups"
            )

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Take up to ``max_iter`` steps; ``closure`` computes loss and gradients anew. Returns the first loss."""
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        lr, most, evaluations = number(group["lr"]), group["max_iter"], group["max_eval"]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise UsageError(f"only 'strong_wolfe' is supported, got line_search_fn={group['line_search_fn']!r}")
        # One state for all, under the first parameter, whose dtype and device it takes when it is loaded.
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, g, calls = float(first), self._gradient(), 1
        state["func_evals"] += 1
        if _largest(g) <= group["tolerance_grad"]:
            return first
        d, t = state.get("d"), state.get("t")
        for n in range(1, most + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = -g
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
                t = min(1.0, 1.0 / g.abs().sum().item()) * lr
            else:
                _remember(state, g - state["prev_flat_grad"], d * t, group["history_size"])
                d = _direction(state, g)
                t = lr
            state["prev_flat_grad"], state["prev_loss"] = g.clone(), loss
            slope = g.dot(d).item()
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                loss, g, t, used = self._search(closure, t, d, loss, g, slope, evaluations - calls)
            self._advance(t, d)
            if group["line_search_fn"] is None and n != most:
                # The value after the last step is the next call's first.
                loss, g, used = float(closure()), self._gradient(), 1
            calls += used
            state["func_evals"] += used
            if (
                n == most
                or calls >= evaluations
                or _largest(g) <= group["tolerance_grad"]
                or _largest(d * t) <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break
        state["d"], state["t"] = d, t
        return first

    def _search(
        self, closure: Callable[[], Any], t: float, d: Any, loss: float, g: Any, slope: float, most: int
    ) -> tuple[float, Any, float, int]:
        start = [one.clone() for one in self.param_groups[0]["params"]]

        def evaluate(t: float) -> tuple[float, Any]:
            self._advance(t, d)
            value = float(closure())
            gradient = self._gradient()
            for one, before in zip(self.param_groups[0]["params"], start, strict=True):
                one.copy_(before)
            return value, gradient

        return strong_wolfe(
            evaluate, t, d, loss, g, slope, tolerance=self.param_groups[0]["tolerance_change"], most=most
        )

    def _gradient(self) -> Any:
        """All gradients in one vector; zeros where there is none."""
        parts = []
        for one in self.param_groups[0]["params"]:
            g = one.new_zeros(one.shape) if one.grad is None else one.grad
            parts.append((view_as_real(g) if g.dtype.is_complex else g).reshape(-1))
        return cat(parts)

    def _advance(self, t: float, d: Any) -> None:
        """Move all parameters by ``t`` along a vector."""
        start = 0
        for one in self.param_groups[0]["params"]:
            p = view_as_real(one) if one.dtype.is_complex else one
            p.add_(d[start : start + p.numel()].reshape(p.shape), alpha=t)
            start += p.numel()


def _remember(state: dict[str, Any], y: Any, s: Any, size: int) -> None:
    """Keep a change of the gradient beside the step that made it, where the curvature along it is positive."""
    ys = y.dot(s).item()
    if ys <= 1e-10:
        return
    if len(state["old_dirs"]) == size:
        for name in ("old_dirs", "old_stps", "ro"):
            state[name].pop(0)
    state["old_dirs"].append(y)
    state["old_stps"].append(s)
    state["ro"].append(1.0 / ys)
    state["H_diag"] = ys / y.dot(y).item()


def _direction(state: dict[str, Any], g: Any) -> Any:
    """Minus the approximate inverse Hessian times ``g``: the two-loop recursion."""
    ys, ss, ro = state["old_dirs"], state["old_stps"], state["ro"]
    alphas = []
    q = -g
    for y, s, r in zip(reversed(ys), reversed(ss), reversed(ro), strict=True):
        alphas.append(s.dot(q).item() * number(r))
        q.add_(y, alpha=-alphas[-1])
    q.mul_(number(state["H_diag"]))
    for y, s, r, alpha in zip(ys, ss, ro, reversed(alphas), strict=True):
        q.add_(s, alpha=alpha - y.dot(q).item() * number(r))
    return q


def _largest(x: Any) -> float:
    return x.abs().max().item()  # type: ignore[no-any-return]
