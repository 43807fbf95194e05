"""Every op of the registry and every form that writes: the first sample as it is, and in three ways a hundred thousand elements;
of the ops that programs call also every other sample, and the first one in other dtypes and with ``out=``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorcore
from tensorcore.ops import late
from tensorcore.ops.define import OPS
from tensorcore.ops.samples import find_function

from ..harness import Row, Suite

__all__ = ["FORMS", "LARGE", "PUBLIC", "ROWS", "SIZES", "Ops", "ready", "sampled"]

LARGE = 100_000  # elements of the largest argument, about
SIZES = ("small", "large", "thin", "long")
DTYPES = ("float64", "bfloat16", "int64", "bool", "complex64")
FORMS = ("others", "out", *DTYPES)  # small ones
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


def ready(module: Any, device: str, name: str, size: str, sample: int = 0) -> Callable[[], Any]:
    """The op's first sample on a library, or another, in a size or a form, as a call without arguments.

    NotImplementedError where the library has no such function or does not take that form, or where a sample says by
    numbers how large its arguments are and thus cannot be had in another size.
    """
    if size in FORMS:
        return _formed(module, device, name, size, sample)
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


def _formed(module: Any, device: str, name: str, form: str, sample: int) -> Callable[[], Any]:
    """A small call in one of the ``FORMS``, where the library takes it."""
    function = find_function(module, name)
    if function is None:
        raise NotImplementedError(f"{name}: {module.__name__} has no function of that name")
    dtype = getattr(module, form) if form in DTYPES else None
    args, kwargs = sampled(name, sample=sample)
    if dtype and not any(one.dtype == np.float64 for one in _arrays((*args, *kwargs.values()))):
        raise NotImplementedError(f"{name}: its sample has no floats that could be of another dtype")
    args = [_tensors(module, device, one, dtype) for one in args]
    kwargs = {key: _tensors(module, device, one, dtype) for key, one in kwargs.items()}
    try:
        made = function(*args, **kwargs)
        if form == "out":
            kwargs["out"] = made.clone() if isinstance(made, module.Tensor) else tuple(one.clone() for one in made)
            function(*args, **kwargs)
    except Exception as error:
        raise NotImplementedError(f"{name}: {module.__name__} does not take it: {error}") from None
    return lambda: function(*args, **kwargs)


def sampled(name: str, grown: Callable[[int], int] = int, sample: int = 0) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The first sampled call that takes a tensor with elements, or a later one, each size of its arrays as ``grown`` says."""
    rng = np.random.default_rng(7)

    def array(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return rng.uniform(low, high, [grown(size) for size in shape])

    calls = OPS[name].samples
    if calls is None:
        raise LookupError(f"{name}: expected an op with samples, got one without; give its definition samples=")
    return next(itertools.islice(calls(array), sample, None))


def _others(name: str) -> list[int]:
    """Which samples are not the first one, and have no array without elements."""
    rng = np.random.default_rng(7)
    calls = OPS[name].samples
    found = list(calls(lambda *shape, low=-2.0, high=2.0: rng.uniform(low, high, shape))) if calls else []
    return [
        i for i, (args, kwargs) in enumerate(found) if i and all(one.size for one in _arrays((*args, *kwargs.values())))
    ]


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


def _tensors(module: Any, device: str, value: Any, dtype: Any = None) -> Any:
    """Arrays as tensors, those of doubles in ``dtype``, or in single precision."""
    if isinstance(value, np.ndarray):
        if value.dtype != np.float64:
            return module.tensor(value, device=device)
        single = module.tensor(value.astype(np.float32), device=device)
        return single if dtype is None else single.to(dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(one, np.ndarray) for one in value):
        return type(value)(_tensors(module, device, one, dtype) for one in value)
    return value


def _row(name: str, size: str, sample: int = 0) -> Row:
    setup = (
        f"from asv_benchmarks.benchmarks.ops import ready\ncall = ready(torch, device, {name!r}, {size!r}, {sample})"
    )
    return Row(f"op {name}{f' {sample}' if sample else ''} {size}", setup, "call()")


ROWS = [_row(name, size) for name in sorted([*PUBLIC, *WRITING]) for size in SIZES]
ROWS += [_row(name, "others", sample) for name in PUBLIC for sample in _others(name)]
ROWS += [_row(name, form) for name in PUBLIC for form in FORMS if form != "others"]


class Ops(Suite):
    """Seconds of ten runs of each row."""

    rows = ROWS
    count = 10
