"""Little programs about checkpoints; PyTorch must answer the same."""

from __future__ import annotations

import importlib
from typing import Any

from tests.autograd.programs import leaf, program, seen


def checkpointed(t: Any, function: Any, *args: Any, **options: Any) -> Any:
    """PyTorch's submodule or ours."""
    return importlib.import_module(f"{t.__name__}.utils.checkpoint").checkpoint(function, *args, **options)


def body(runs: list[str]) -> Any:
    def run(x, w, *, scale=1.0):
        runs.append("run")
        return (x * w).exp() * scale

    return run


@program
def checkpoint_recomputes(t):
    x, w, runs = leaf(t, 3), leaf(t, 3), []
    y = checkpointed(t, body(runs), x * 0.5, w, use_reentrant=False)
    y.sum().backward()
    return [runs, x.grad, w.grad]


@program
def checkpoint_reentrant(t):
    x, w, runs = leaf(t, 3), leaf(t, 3), []
    y = checkpointed(t, body(runs), x * 0.5, w, use_reentrant=True)
    y.sum().backward()
    return [runs, x.grad, w.grad, y.grad_fn.name()]


@program
def checkpoint_reentrant_with_grad(t):
    x = leaf(t, 3)
    y = checkpointed(t, body([]), x, x, use_reentrant=True)
    t.autograd.grad(y.sum(), x)


@program
def checkpoint_with_keywords(t):
    x = leaf(t, 3)
    y = checkpointed(t, body([]), x, x, use_reentrant=False, scale=3.0)
    return t.autograd.grad(y.sum(), x)


@program
def checkpoint_with_keywords_reentrant(t):
    x = leaf(t, 3)
    checkpointed(t, body([]), x, x, use_reentrant=True, scale=3.0)


@program
def checkpoint_nested(t):
    x, runs = leaf(t, 3), []

    def outer(x):
        runs.append("outer")
        return checkpointed(t, body(runs), x.exp(), x, use_reentrant=False) * x

    checkpointed(t, outer, x * 0.1, use_reentrant=False).sum().backward()
    return [x.grad]


@program
def checkpoint_second_derivative(t):
    x = leaf(t, 3)
    y = checkpointed(t, body([]), x, x * 0.1, use_reentrant=False)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return [g.detach(), t.autograd.grad(g.sum(), x)]


@program
def checkpoint_of_changing_function(t):
    x, calls = leaf(t, 3), []

    def changing(x):
        calls.append(1)
        return x * x if len(calls) > 1 else (x * x).exp().exp()

    checkpointed(t, changing, x, use_reentrant=False).sum().backward()


@program
def checkpoint_of_changing_shape(t):
    x, calls = leaf(t, 3), []

    def changing(x):
        calls.append(1)
        return x.exp().sum() if len(calls) == 1 else x.narrow(0, 0, 2).exp().sum()

    checkpointed(t, changing, x, use_reentrant=False).backward()


@program
def checkpoint_without_recording(t):
    runs = []
    with t.no_grad():
        y = checkpointed(t, body(runs), leaf(t, 3), leaf(t, 3), use_reentrant=False)
    return [seen(y), runs]


@program
def checkpoint_retained(t):
    x, runs = leaf(t, 3), []
    y = checkpointed(t, body(runs), x, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [x.grad, runs]


@program
def checkpoint_sequential(t):
    x = leaf(t, 3)
    parts = [lambda v: v * 0.5, lambda v: v.exp(), lambda v: v * v, lambda v: v + 1.0, lambda v: v.exp()]
    module = importlib.import_module(f"{t.__name__}.utils.checkpoint")
    module.checkpoint_sequential(parts, 2, x, use_reentrant=False).sum().backward()
    return x.grad
