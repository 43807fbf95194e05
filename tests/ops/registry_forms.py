"""The registry's sampled calls with tensors in place of their arrays, for the suites that run over every op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tensorcore.ops.define import OPS

__all__ = ["SAMPLED", "Call", "calls_of", "counterpart", "tensors_of", "with_leaves", "with_tensors"]

SAMPLED = sorted(name for name, op in OPS.items() if op.samples is not None and op.function is not None)


class Call(NamedTuple):
    """One sampled call: arrays stand where tensors belong."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def calls_of(name: str, seed: int = 7) -> Iterator[Call]:
    """The sampled calls of an op, with the same numbers at every request."""
    rng = np.random.default_rng(seed)

    def array(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return rng.uniform(low, high, shape)

    for args, kwargs in OPS[name].samples(array):
        yield Call(args, kwargs)


def mapped(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The value with every array in it, however deep, replaced by what ``change`` makes of it."""
    if isinstance(value, np.ndarray):
        return change(np.asarray(value))
    if isinstance(value, Call):
        return Call(mapped(value.args, change), mapped(value.kwargs, change))
    if isinstance(value, dict):
        return {key: mapped(one, change) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(one, change) for one in value])
    return value


def with_tensors(module: Any, call: Call, dtype: str = "float64", grad: bool = False) -> Call:
    """The call in a library: floating arrays become tensors of the dtype, that require grad if told so."""

    def tensor(array: np.ndarray) -> Any:
        floating = array.dtype.kind in "fc"
        kind = getattr(module, dtype if array.dtype == np.float64 else str(array.dtype))
        made = module.from_numpy(np.array(array)).to(kind)
        return made.requires_grad_() if grad and floating and (kind.is_floating_point or kind.is_complex) else made

    return mapped(call, tensor)


def with_leaves(call: Call) -> tuple[list[np.ndarray], Callable[[list[Any]], Call]]:
    """The floating arrays of a call, and a function that puts other things in their places."""
    arrays: list[np.ndarray] = []

    def keep(array: np.ndarray) -> Any:
        if array.dtype.kind in "fc":
            arrays.append(array)
            return array
        return array

    mapped(call, keep)

    def rebuilt(values: list[Any]) -> Call:
        left = iter(values)
        return mapped(call, lambda array: next(left) if array.dtype.kind in "fc" else array)

    return arrays, rebuilt


def tensors_of(result: Any) -> list[Any]:
    """The tensors of a result, one or several, however they are nested."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [tensor for one in result for tensor in tensors_of(one)]
    return [result] if hasattr(result, "dtype") else []


def counterpart(torch: Any, name: str) -> Callable[..., Any] | None:
    """PyTorch's function of the same name, wherever it keeps it."""
    for place in (torch.nn.functional, torch, torch.linalg, torch.special, torch.Tensor):
        found = getattr(place, name, None)
        if callable(found):
            return found
    return None
