"""Calls as PyTorch's first versions had them: numbers by position among the tensors, as in ``p.add_(-lr, grad)``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.ops.define import OPS
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor

__all__ = ["older", "taking_older"]

_warned: set[str] = set()


def older(name: str, args: tuple[Any, ...], options: dict[str, Any], numbers: str, frames: int = 1) -> Any:
    """Call the method ``name`` with the numbers in ``args`` as the keywords ``numbers``; warns once for each name.

    Args:
        frames: how many of ours are between the program and this call.
    """
    tensors = [one for one in args if isinstance(one, Tensor)]
    found = [one for one in args if not isinstance(one, Tensor)]
    names = numbers.split()
    if not isinstance(args[-1], Tensor) or not 1 <= len(found) <= len(names):
        raise ArgumentTypeError(
            f"{name}: received an invalid combination of arguments, got {len(args)} by position; pass {' and '.join(names)} "
            "by keyword"
        )
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"This overload of {name} is deprecated: pass {' and '.join(names)} by keyword, after the tensors",
            stacklevel=2 + frames,
        )
    options.update(zip(names, found, strict=False))
    return getattr(Tensor, name)(*tensors, **{key: one for key, one in options.items() if one is not None})


def taking_older(numbers: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let an op of three tensors, its method and its in-place form take such calls too."""

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return older(name, args, options, numbers) if len(args) > 3 else function(*args, **options)

        return update_wrapper(call, function)

    def install(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        for place in (name, f"{name}_"):
            method = getattr(Tensor, place)
            setattr(Tensor, place, before("newer", method)(wrapped(place, method)))
        call = OPS[name].function = wrapped(name, function)
        return call

    return install
