"""Collating: a list of samples becomes a batch of the same structure."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError
from tensorcore.ops.creation.create import as_tensor, tensor
from tensorcore.tensor import Tensor

__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn", "collate_numpy_scalar_fn", "collate_str_fn",
    "collate_tensor_fn", "default_collate", "default_collate_fn_map", "default_convert",
]  # fmt: skip

np_str_obj_array_pattern = re.compile("[SaUO]")  # the names of NumPy's dtypes of text and objects
_EXPECTED = "expected tensors, numpy arrays, numbers, strings, dicts or lists"


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """One batch of a list of samples: leaves are joined by the function for their type, structures are kept.

    Args:
        collate_fn_map: a type, or a tuple of them, to ``function(batch, collate_fn_map=...)``.
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(first, known):
                return function(batch, collate_fn_map=collate_fn_map)

    def joined(parts: Any) -> Any:
        return collate(parts, collate_fn_map=collate_fn_map)

    # Most samples are tuples, which nobody has to ask the abstract classes about.
    if kind is not tuple and isinstance(first, Mapping):
        return _like_mapping(first, {key: joined([one[key] for one in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*[joined(parts) for parts in zip(*batch, strict=True)])
    if kind is tuple or isinstance(first, Sequence):
        sizes = {len(one) for one in batch}
        if len(sizes) > 1:
            raise RuntimeError(f"each element in list of batch should be of equal size, got {sorted(sizes)}; pad them")
        made = [joined(parts) for parts in zip(*batch, strict=True)]
        return made if isinstance(first, tuple) else _like_sequence(first, made)
    raise ArgumentTypeError(f"default_collate: {_EXPECTED}, got {kind}; batch must contain them, or pass a collate_fn")


def default_collate(batch: Any) -> Any:
    """A batch of samples: tensors and arrays are stacked along a new first dim, numbers become a tensor."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """One sample with its NumPy arrays as tensors and everything else as it was."""
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if _is_text(np.asarray(data)) else as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*[default_convert(one) for one in data])
    if isinstance(data, tuple):
        return [default_convert(one) for one in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(one) for one in data])
    return data


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked along a new first dim."""
    from tensorcore.ops.shapes.join import stack

    shapes = {one.shape for one in batch}
    if len(shapes) > 1:
        raise RuntimeError(
            "stack expects each tensor to be equal size, but got "
            f"{' and '.join(str(list(one)) for one in sorted(shapes))}; "
            f"pad them, or pass a collate_fn"
        )
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Arrays of one shape, as a tensor with a new first dim."""
    if _is_text(np.asarray(batch[0])):
        raise ArgumentTypeError(
            f"default_collate: {_EXPECTED}, got an array of {batch[0].dtype}; convert it to numbers"
        )
    return collate_tensor_fn([as_tensor(one) for one in batch])


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy's numbers, as a vector of their dtype."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Floats, as a vector of float64."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Ints or bools, as a vector."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Text or bytes, as they are."""
    return batch


# The order counts: bool is an int, and a NumPy float64 is a float.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _is_text(array: np.ndarray) -> bool:
    return np_str_obj_array_pattern.search(array.dtype.str) is not None


def _like_mapping(model: Any, values: dict[Any, Any]) -> Any:
    try:
        if isinstance(model, MutableMapping):
            made = copy.copy(model)
            made.update(values)
            return made
        return type(model)(values)
    except TypeError:
        return values  # a mapping that can be neither copied nor made from a dict


def _like_sequence(model: Any, values: list[Any]) -> Any:
    try:
        if isinstance(model, MutableSequence):
            made = copy.copy(model)
            for i, one in enumerate(values):
                made[i] = one
            return made
        return type(model)(values)
    except TypeError:
        return values  # a sequence such as range, which cannot be made from a list
