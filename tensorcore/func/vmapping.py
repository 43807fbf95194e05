"""``vmap``: a function of one example, run on many at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorcore.errors import ArgumentError, GradientError
from tensorcore.func.arrays import BatchedArray
from tensorcore.func.levels import Level, enter, leave
from tensorcore.func.trees import Spec, broadcast_prefix, tree_flatten, tree_unflatten
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor

__all__ = ["VmapInfo", "call_mapped", "vmap", "vmapped"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that maps ``func`` over a dim of its inputs; inside, tensors have the shape of one example.

    Args:
        func: takes and returns tensors, or trees of them.
        in_dims: the dim to map over for each positional input, in the structure of these; None for an input that all
            examples share. Keyword inputs are shared.
        out_dims: where the examples stand in each result, in the structure of these.
        randomness: what random ops do: raise (``error``), or draw the ``same`` or ``different`` numbers for the examples.
        chunk_size: how many examples are run at once, all where None.

    Raises:
        ValueError: for inputs that do not fit ``in_dims`` or each other.
    """
    if randomness not in ("error", "different", "same"):
        raise GradientError(
            f"vmap: Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ArgumentError(f"vmap: vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    title = f"vmap({getattr(func, '__name__', type(func).__name__)}, in_dims={in_dims}, ...)"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        flat, spec = tree_flatten(args)
        dims = _in_dims(title, in_dims, flat, args, spec)
        size = _size(title, flat, dims)

        def run(values: list[Any], count: int) -> tuple[list[Any], Spec]:
            return vmapped(title, lambda inner: func(*tree_unflatten(inner, spec), **kwargs), values, dims, count,
                           randomness, out_dims)  # fmt: skip

        if chunk_size is None or chunk_size >= size:
            return tree_unflatten(*run(flat, size))
        return _chunked(title, run, flat, dims, size, chunk_size, out_dims)

    return wrapper


def vmapped(
    title: str,
    func: Callable[[list[Any]], Any],
    flat: list[Any],
    dims: list[int | None],
    size: int,
    randomness: str,
    out_dims: Any,
) -> tuple[list[Any], Spec]:
    """The leaves of what ``func`` makes of the examples, and their structure."""
    level = Level(size, randomness)
    inner = []
    for one, dim in zip(flat, dims, strict=True):
        if dim is not None:
            for outer in mode.levels:
                one = outer.over(one.device).lift(one)
            one = enter(one, level, dim)
        inner.append(one)
    mode.enter_level(level)
    try:
        made = func(inner)
    finally:
        mode.leave_level()
    outputs, spec = tree_flatten(made)
    places = broadcast_prefix(out_dims, spec)
    if places is None:
        raise ArgumentError(
            f"{title}: out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}; give one for each output, or one int"
        )
    return [_left(title, one, level, place) for one, place in zip(outputs, places, strict=True)], spec


def _left(title: str, one: Any, level: Level, place: Any) -> Any:
    """One result with the examples where its out_dim says."""
    if place is not None and (isinstance(place, bool) or not isinstance(place, int)):
        raise ArgumentError(f"{title}: out_dims must be an int, None or a python collection of ints, got {place!r}")
    if not isinstance(one, Tensor):
        if place is None:
            return one
        raise ArgumentError(
            f"{title}: `f` must only return Tensors, got type {type(one)}. Did you mean to set out_dims= to None for output?"
        )
    if place is None:
        if one.device is level.over(one.device) and _batched(one, level):
            raise ArgumentError(
                f"{title}: `f` can not return a BatchedTensor when out_dim is None, got one; name the dim for the examples"
            )
        return leave(one, level, 0)[0] if level.over(one.device) is one.device else one
    span = one.ndim + 1
    if not -span <= place < span:
        raise IndexError(
            f"{title}: Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {place})"
        )
    return leave(one, level, place % span)


def _batched(one: Tensor, level: Level) -> bool:
    """Whether the examples differ in this tensor."""
    native = one.native
    while type(native) is BatchedArray:
        if native.level is level:
            return native.batched
        native = native.inner
    return False


class VmapInfo(NamedTuple):
    """What the ``vmap`` of a custom Function is told of the map it is called in."""

    batch_size: int
    randomness: str


def call_mapped(cls: Any, args: tuple[Any, ...]) -> Any:
    """A custom Function that has a ``vmap`` of its own, on examples of the innermost map under way."""
    level = mode.levels[-1]
    dims = tuple([0 if isinstance(one, Tensor) and _batched(one, level) else None for one in args])
    outer = [
        leave(one, level, 0) if dim is not None else leave(one, level, 0)[0] if isinstance(one, Tensor) else one
        for one, dim in zip(args, dims, strict=True)
    ]
    before = mode.levels
    mode.levels = before[:-1]
    try:
        outputs, places = cls.vmap(VmapInfo(level.size, level.randomness), dims, *outer)
    finally:
        mode.levels = before
    flat, spec = tree_flatten(outputs)
    found = broadcast_prefix(places, spec)
    if found is None:
        raise GradientError(
            f"{cls.__name__}: expected vmap to return the outputs and out_dims of their structure, got {places}; return "
            f"(outputs, out_dims)"
        )
    made = [one if dim is None else enter(one, level, dim) for one, dim in zip(flat, found, strict=True)]
    return tree_unflatten(made, spec)


def _in_dims(title: str, in_dims: Any, flat: list[Any], args: Any, spec: Spec) -> list[int | None]:
    if isinstance(in_dims, bool) or not isinstance(in_dims, (int, tuple)):
        raise ArgumentError(
            f"{title}(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ArgumentError(
            f"{title}(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function "
            f"with no inputs. The latter is unsupported."
        )
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise ArgumentError(
            f"{title}(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    found: list[int | None] = []
    for one, dim in zip(flat, dims, strict=True):
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise ArgumentError(
                f"{title}(<inputs>): Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if dim is not None and not isinstance(one, Tensor):
            raise ArgumentError(
                f"{title}(<inputs>): Got in_dim={dim} for an input but the input is of type {type(one)}. We cannot vmap "
                f"over non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is not None and not -one.ndim <= dim < one.ndim:
            raise ArgumentError(
                f"{title}(<inputs>): Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{one.ndim} so expected in_dim to satisfy -{one.ndim} <= in_dim < {one.ndim}."
            )
        found.append(None if dim is None else dim % one.ndim)
    return found


def _size(title: str, flat: list[Any], dims: list[int | None]) -> int:
    sizes = [one.native.shape[dim] for one, dim in zip(flat, dims, strict=True) if dim is not None]
    if not sizes:
        raise ArgumentError(
            f"{title}(<inputs>): at least one in_dim must not be None, got None for all; there is nothing to map over"
        )
    if any(size != sizes[0] for size in sizes):
        raise ArgumentError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            f"dimension"
        )
    return int(sizes[0])


def _chunked(
    title: str, run: Any, flat: list[Any], dims: list[int | None], size: int, chunk: int, out_dims: Any
) -> Any:
    """The results of some examples after the others, put together along their out_dims."""
    columns: list[list[Any]] = []
    spec = None
    for start in range(0, size, chunk):
        count = min(chunk, size - start)
        part = [
            one if dim is None else one.narrow(dim, start, count) for one, dim in zip(flat, dims, strict=True)
        ]  # fmt: skip
        made, spec = run(part, count)
        columns.append(made)
    places = broadcast_prefix(out_dims, spec) or []  # type: ignore[arg-type]
    joined = [
        each[0] if place is None else cat(list(each), place)
        for each, place in zip(zip(*columns, strict=True), places, strict=True)
    ]
    return tree_unflatten(joined, spec)  # type: ignore[arg-type]
