"""Every op of the registry and every form that writes: the first sample as it is, and in three ways a hundred thousand elements."""

from __future__ import annotations

import functools
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
SIZES = ("small", "large", "thin", "long")
MANY = 10_000_000  # more elements than that in a result say how fast memory is written, and can be more than there is

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
    args, kwargs = sampled(name)
    if size != "small":
        grown = _grown([one.shape for one in _arrays((*args, *kwargs.values())) if one.size > 1], size, name)
        try:
            args, kwargs = sampled(name, grown)
        except ValueError as error:  # the sample adds an array of one size to one that grew
            raise NotImplementedError(f"{name}: its sample has one size only: {error}") from None
        _look_at_results(name, args, kwargs)
    args = [_tensors(module, device, one) for one in args]
    kwargs = {key: _tensors(module, device, one) for key, one in kwargs.items()}
    if size != "small":
        try:
            function(*args, **kwargs)
        except Exception as error:
            raise NotImplementedError(f"{name}: its sample has one size only: {error}") from None
    return lambda: function(*args, **kwargs)


def sampled(name: str, grown: Callable[[int], int] = int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The first sampled call that takes a tensor with elements, each size of its arrays as ``grown`` says."""
    rng = np.random.default_rng(7)

    def array(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return rng.uniform(low, high, [grown(size) for size in shape])

    calls = OPS[name].samples
    if calls is None:
        raise LookupError(f"{name}: expected an op with samples, got one without; give its definition samples=")
    return next(iter(calls(array)))


def _grown(shapes: list[tuple[int, ...]], size: str, name: str) -> Callable[[int], int]:
    """What each size of a sample with arrays of these shapes becomes, so that the largest of them has LARGE elements.

    All sizes of ``large`` ones grow alike; of ``thin`` ones the first of the largest array's, so that short rows are many, and
    of ``long`` ones the last. Equal sizes stay equal, and those of 1 stay 1: whatever fitted or broadcast still does.
    """
    if not shapes:
        raise NotImplementedError(f"{name}: takes no tensor that could be larger")
    if size == "large":
        factor = max(1.0, min((LARGE / np.prod(shape)) ** (1 / sum(d > 1 for d in shape)) for shape in shapes))
        return lambda one: one if one <= 1 else round(one * factor)
    shape = max(shapes, key=np.prod)
    chosen = shape[0 if size == "thin" else -1]
    if chosen == 1 or all(one in (1, chosen) for one in shape):
        raise NotImplementedError(f"{name}: its sample of shape {shape} has no size that could grow beside others")
    larger = round(chosen * max(1.0, LARGE / np.prod(shape)) ** (1 / shape.count(chosen)))
    return lambda one: larger if one == chosen else one


def _look_at_results(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """NotImplementedError where a result is too large to be made, as all pairs of many rows are."""
    meta = functools.partial(_tensors, tensorcore, "meta")
    try:
        found = find_function(tensorcore, name)(*map(meta, args), **{key: meta(one) for key, one in kwargs.items()})
    except Exception:  # its shape is in the values, or it says below that the sizes do not fit
        return
    size = max(
        (one.numel() for one in (found if isinstance(found, tuple) else (found,)) if hasattr(one, "numel")), default=0
    )
    if size > MANY:
        raise NotImplementedError(f"{name}: its result would have {size:,} elements")


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
