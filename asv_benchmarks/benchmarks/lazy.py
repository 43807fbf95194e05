"""Compiled functions beside what others make of the same text: PyTorch eager, torch.compile, jax.jit, and ours uncompiled.

A row is a function and its arguments. Each side runs it in turns in one process, as ``table`` does with its other rows.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..harness import Comparison, Timed, calibrate, open_peer
from .model import GPT, LENET, PERCEPTRON

__all__ = ["ROWS", "Latency", "LazyRow", "Replays", "comparisons"]

CHAIN = """
x, y = torch.rand({count}), torch.rand({count})

def step():
    return work(x, y)

def work(x, y):
    return ((((x * y + 1.0).exp() - y) * 0.5).tanh() + x).sigmoid() * y - x
"""
JAX_CHAIN = """
import jax, jax.numpy as jnp
x, y = jax.random.uniform(jax.random.key(0), ({count},)), jax.random.uniform(jax.random.key(1), ({count},))
work = jax.jit(lambda x, y: jax.nn.sigmoid(jnp.tanh((jnp.exp(x * y + 1.0) - y) * 0.5) + x) * y - x)

def step():
    return work(x, y).block_until_ready()
"""
TINY = """
x = torch.rand(8)

def step():
    return work(x)

def work(x):
    for _ in range(50):
        x = x * 1.01 + 0.5
    return x
"""
JAX_TINY = """
import jax
x = jax.random.uniform(jax.random.key(0), (8,))

def work(x):
    for _ in range(50):
        x = x * 1.01 + 0.5
    return x

work = jax.jit(work)

def step():
    return work(x).block_until_ready()
"""
JAX_PERCEPTRON = """
import jax, jax.numpy as jnp
keys = jax.random.split(jax.random.key(8), 5)
sizes = [(784, 256), (256, 128), (128, 10)]
params = [(jax.random.normal(k, s) * s[0] ** -0.5, jnp.zeros(s[1])) for k, s in zip(keys, sizes)]
moved = jax.tree.map(jnp.zeros_like, params)
images = jax.random.uniform(keys[3], (128, 784))
labels = jax.random.randint(keys[4], (128,), 0, 10)

def loss_of(params, x, y):
    for i, (w, b) in enumerate(params):
        x = x @ w + b
        x = jax.nn.relu(x) if i < 2 else x
    return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

def work(params, moved, x, y):
    g = jax.grad(loss_of)(params, x, y)
    moved = jax.tree.map(lambda m, g: 0.9 * m + g, moved, g)
    return jax.tree.map(lambda p, m: p - 0.01 * m, params, moved), moved

work = jax.jit(work, donate_argnums=(0, 1))

def step():
    global params, moved
    params, moved = work(params, moved, images, labels)
    jax.block_until_ready(params)
"""


class LazyRow(NamedTuple):
    """A function: ``setup`` defines ``step``, and ``work`` where that is the part to compile; ``jax`` is its twin there.

    ``targets`` are promised beside one other by its name.
    """

    name: str
    setup: str
    compiled: str
    targets: dict[str, float]
    jax: str | None = None


BEST = {"torch.compile": 0.8, "jax.jit": 0.8}
ROWS = [
    LazyRow("lazy chain of ten, 1e7", CHAIN.format(count=10**7), "work", {"torch": 0.03},
            JAX_CHAIN.format(count=10**7)),
    LazyRow("lazy chain of ten, 1e4", CHAIN.format(count=10**4), "work", {}, JAX_CHAIN.format(count=10**4)),
    LazyRow("lazy hundred tiny ops", TINY, "work", {"torch": 0.1}, JAX_TINY),
    LazyRow("lazy perceptron step", PERCEPTRON, "step", BEST, JAX_PERCEPTRON),
    LazyRow("lazy LeNet step", LENET, "step", BEST),
    LazyRow("lazy GPT step", GPT, "step", BEST),
]  # fmt: skip
OTHERS = ("tensorcore", "torch", "torch.compile", "jax.jit")


def side(row: LazyRow, name: str) -> Timed:
    """One side of a row, ready to run; NotImplementedError where it has none, or what it needs is not installed."""
    library = name.partition(".")[0]
    if library == "jax":
        if row.jax is None or importlib.util.find_spec("jax") is None:
            raise NotImplementedError(f"{row.name}: has no form in jax here")
        return Timed(row.jax, "step()", open_peer("tensorcore"))
    if importlib.util.find_spec(library) is None:
        raise NotImplementedError(f"{row.name}: {library} is not installed")
    setup = row.setup + (f"\n{row.compiled} = torch.compile({row.compiled})\n" if name.endswith(".compile") else "")
    return Timed(setup, "step()", open_peer(library))


def comparisons(only: str, rounds: int, seconds: float) -> Iterator[tuple[str, float | None, Callable[[], Comparison]]]:
    """The rows whose name contains ``only`` beside each other side: name, target, and what measures it."""
    for row in ROWS:
        for other in OTHERS:
            name = f"{row.name}, beside {other}"
            if only in name:
                yield name, row.targets.get(other), lambda row=row, other=other: in_turns(row, other, rounds, seconds)
    for row in ROWS[-3:]:
        name = f"{row.name}, first call, beside torch.compile"
        if only in name:
            yield name, 0.1, lambda row=row: first_calls(row)


def in_turns(row: LazyRow, other: str, rounds: int, seconds: float) -> Comparison:
    """Ours compiled and another side, turn by turn."""
    sides = [(timed := side(row, name), calibrate(timed, seconds)) for name in ("tensorcore.compile", other)]
    taken: list[list[float]] = [[], []]
    for _ in range(rounds):
        for (timed, loops), results in zip(sides, taken, strict=True):
            results.append(timed.seconds(loops) / loops)
    return Comparison.of(*taken)


def first_calls(row: LazyRow) -> Comparison:
    """What the first call of each takes, once: nothing is compiled before, and torch's cache on disk is not asked."""
    import torch._inductor.config as config

    config.force_disable_caches = True
    taken = []
    for name in ("tensorcore.compile", "torch.compile"):
        timed = side(row, name)
        timed.names["torch"].compiler.reset()
        start = time.perf_counter()
        timed.loop(range(1))
        taken.append([time.perf_counter() - start])
    return Comparison.of(*taken)


class Replays:
    """Seconds of one call that is replayed."""

    params = ([row.name for row in ROWS], ["tensorcore.compile", *OTHERS])
    param_names = ("row", "side")
    timed: Any

    def setup(self, row: str, name: str) -> None:
        self.timed = side(next(one for one in ROWS if one.name == row), name)
        self.timed.loop(range(2))

    def time_once(self, row: str, name: str) -> None:
        self.timed.loop(range(1))


class Latency:
    """Seconds of a first call, tracing included."""

    params = tuple(row.name for row in ROWS)
    param_names = ("row",)
    number, repeat = 1, 5
    timed: Any

    def setup(self, row: str) -> None:
        self.timed = side(next(one for one in ROWS if one.name == row), "tensorcore.compile")

    def time_first(self, row: str) -> None:
        self.timed.loop(range(1))
