"""Tensors within tuples, lists, dicts and dataclasses: what modules are given, and what they return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tensorcore.tensor import Tensor

__all__ = ["cast", "tensors"]


def cast(given: Any, dtype: Any) -> Any:
    """The same with its floating tensors in another dtype, recorded."""
    if isinstance(given, Tensor):
        return given.to(dtype) if given.is_floating_point() else given  # type: ignore[attr-defined]
    if isinstance(given, dict):
        return type(given)((key, cast(one, dtype)) for key, one in given.items())
    if isinstance(given, list | tuple):
        items = (cast(one, dtype) for one in given)
        return type(given)(*items) if hasattr(given, "_fields") else type(given)(items)
    if is_dataclass(given) and not isinstance(given, type):
        return replace(given, **{one.name: cast(getattr(given, one.name), dtype) for one in fields(given) if one.init})
    return given


def tensors(made: Any) -> Iterator[Any]:
    """All tensors in it."""
    if isinstance(made, Tensor):
        yield made
    elif isinstance(made, dict):
        for one in made.values():
            yield from tensors(one)
    elif isinstance(made, list | tuple | set):
        for one in made:
            yield from tensors(one)
    elif is_dataclass(made) and not isinstance(made, type):
        for one in fields(made):
            yield from tensors(getattr(made, one.name))
