"""The registry's sampled calls with tensors in place of their arrays, for the suites that run over every op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore.ops.define import OPS
from tensorcore.testing.calls import RANDOM, UNDEFINED, Call, calls_of, mapped, tensors_of

__all__ = ["SAMPLED", "Call", "calls_of", "counterpart", "tensors_of", "with_leaves", "with_tensors"]

SAMPLED = sorted(
    name
    for name, op in OPS.items()
    if op.samples is not None and op.function is not None and name not in RANDOM | UNDEFINED
)


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


def counterpart(torch: Any, name: str) -> Callable[..., Any] | None:
    """PyTorch's function of the same name, wherever it keeps it."""
    if name.startswith("linalg_"):
        return getattr(torch.linalg, name.removeprefix("linalg_"))  # type: ignore[no-any-return]
    for place in (torch.nn.functional, torch, torch.linalg, torch.special, torch.Tensor):
        found = getattr(place, name, None)
        if callable(found):
            return found
    return None
