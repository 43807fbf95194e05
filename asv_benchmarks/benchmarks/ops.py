"""Every op of the registry and every form that writes, at the size of the first sample and at about a hundred thousand elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorcore
from tensorcore.ops import late
from tensorcore.ops.define import OPS
from tensorcore.ops.samples import find_function

from ..harness import Row, Suite

__all__ = ["LARGE", "PUBLIC", "ROWS", "Ops", "ready", "sampled"]

LARGE = 100_000  # elements of the largest argument, about
SIZES = ("small", "large")

late.import_all()
# Some ops are steps of others, and no program calls them.
PUBLIC = sorted(name for name in OPS if find_function(tensorcore, name))
# Forms that write over their first argument, and draws that only write, by the op whose sample they run on. Without those whose
# first argument cannot hold the result, and one that adds a dim at each run.
WRITING = {f"{name}_": name for name in PUBLIC if hasattr(tensorcore.Tensor, f"{name}_")}
WRITING |= dict.fromkeys(("uniform_", "normal_", "exponential_", "log_normal_", "cauchy_", "random_", "zero_"), "relu")
for _name in ("baddbmm_", "float_power_", "igamma_", "igammac_", "polygamma_", "unsqueeze_"):
    del WRITING[_name]


def ready(module: Any, device: str, name: str, size: str) -> Callable[[], Any]:
    """The op's first sample on a library, as a call without arguments.

    NotImplementedError where the library has no such function, or where a sample says by numbers how large its
    arguments are and thus cannot be had in another size.
    """
    function = getattr(module.Tensor, name, None) if name in WRITING else find_function(module, name)
    if function is None:
        raise NotImplementedError(f"{name}: {module.__name__} has no function of that name")
    name = WRITING.get(name, name)
    args, kwargs = sampled(name, 1.0)
    if size == "large":
        shapes = [one.shape for one in _arrays((*args, *kwargs.values())) if one.size > 1]
        if not shapes:
            raise NotImplementedError(f"{name}: takes no tensor that could be larger")
        # Equal sizes stay equal, and those of 1 stay 1: whatever fitted or broadcast still does.
        factor = max(1.0, min((LARGE / np.prod(shape)) ** (1 / sum(d > 1 for d in shape)) for shape in shapes))
        try:
            args, kwargs = sampled(name, factor)
        except ValueError as error:  # the sample adds an array of one size to one that grew
            raise NotImplementedError(f"{name}: its sample has one size only: {error}") from None
    args = [_tensors(module, device, one) for one in args]
    kwargs = {key: _tensors(module, device, one) for key, one in kwargs.items()}
    if size == "large":
        try:
            function(*args, **kwargs)
        except Exception as error:
            raise NotImplementedError(f"{name}: its sample has one size only: {error}") from None
    return lambda: function(*args, **kwargs)


def sampled(name: str, factor: float) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The first sampled call that takes a tensor with elements, each size of its arrays times ``factor``."""
    rng = np.random.default_rng(7)

    def array(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        larger = [size if size <= 1 else round(size * factor) for size in shape]
        return rng.uniform(low, high, larger)

    calls = OPS[name].samples
    if calls is None:
        raise LookupError(f"{name}: expected an op with samples, got one without; give its definition samples=")
    return next(iter(calls(array)))


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays(one)


def _tensors(module: Any, device: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        single = value.astype(np.float32) if value.dtype == np.float64 else value
        return module.tensor(single, device=device)
    if isinstance(value, (list, tuple)) and any(isinstance(one, np.ndarray) for one in value):
        return type(value)(_tensors(module, device, one) for one in value)
    return value


ROWS = [
    Row(
        f"op {name} {size}",
        f"from asv_benchmarks.benchmarks.ops import ready\ncall = ready(torch, device, {name!r}, {size!r})",
        "call()",
    )
    for name in sorted([*PUBLIC, *WRITING])
    for size in SIZES
]


class Ops(Suite):
    """Seconds of ten runs of each row."""

    rows = ROWS
    count = 10
