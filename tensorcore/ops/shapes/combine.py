"""Tensors put together from others' elements or counts: blocks, combinations, powers, memberships, coordinates."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from math import comb, prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.formats import Size, only_strided
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.creation.create import arange, from_numpy, like
from tensorcore.ops.creation.literal import filled_as
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.buckets import searchsorted
from tensorcore.ops.kinds import BOOL, REAL, operation
from tensorcore.ops.operands import check_tensors, result_type
from tensorcore.ops.output import store
from tensorcore.ops.reductions.scan import plain_powers
from tensorcore.ops.samples import numeric as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "block_diag", "broadcast_shapes", "combinations", "constant_pad_nd", "fill", "is_neg", "is_nonzero",
    "is_same_size", "isin", "range", "unravel_index", "vander",
]  # fmt: skip


@operation(samples=samples.block_diag, method=False)
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the tensors, of at most two dims, as blocks along its diagonal, and zeros elsewhere."""
    blocks: list[Any] = []
    for i, one in enumerate(tensors):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"block_diag: expected tensors, got {one!r}; wrap it in torch.tensor(...)")
        if one.ndim > 2:
            raise ShapeError(
                f"block_diag: torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {one.ndim}, got it"
            )
        blocks.append(one if one.ndim == 2 else one.reshape(1, -1))  # type: ignore[attr-defined]
    if not blocks:
        raise ShapeError("block_diag: torch.block_diag: expected at least one tensor, got none; pass one")
    if any([one.dtype is not tensors[0].dtype for one in tensors]):
        kind = result_type(*tensors)
        blocks = [one.to(kind) for one in blocks]
    dtype, device, natives, height, width, taped = blocks[0].dtype, blocks[0].device, [], 0, 0, False
    for one in blocks:
        if type(one) is not Tensor or one.dtype is not dtype or one.device is not device:
            break
        rows, columns = one.native.shape
        height, width, taped = height + rows, width + columns, taped or one.node is not None
        natives.append(one.native)
    else:
        kernel = device.kernels["block_diag"]
        if kernel and not taped:
            return new_tensor(kernel(natives, shape=(height, width)), dtype, device)
        if kernel:
            return apply(_block_diag, blocks, {"shape": (height, width)})  # type: ignore[no-any-return]
    width, before, parts = sum([one.native.shape[1] for one in blocks]), 0, []
    for one in blocks:
        height, own = one.native.shape
        sides = (one.new_zeros(height, before), one.new_zeros(height, width - before - own))
        parts.append(cat([sides[0], one, sides[1]], 1))
        before += own
    return cat(parts, 0)


def _blocks(g: Any, shapes: Any) -> list[Any]:
    """The blocks along the diagonal."""
    made, row, column = [], 0, 0
    for rows, columns in shapes:
        made.append(g[row : row + rows, column : column + columns])
        row, column = row + rows, column + columns
    return made


_block_diag = Op("block_diag", "tensors", "Matrices along a diagonal.", variadic=True, register=False,
                 grads=dict(tensors=lambda g, tensors_shape: _blocks(g, tensors_shape)))  # fmt: skip


def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape that tensors of these shapes broadcast to."""
    given = [(one,) if isinstance(one, int) else tuple(one) for one in shapes]
    if any([size < 0 for one in given for size in one]):
        raise ShapeError(f"broadcast_shapes: Trying to create tensor with negative dimension, got {shapes}")
    return Size(rules.broadcast("broadcast_shapes", *given))


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """As ``nn.functional.pad`` with one value: how many elements before and after the last dim, the one before it, ..."""
    from tensorcore.ops.shapes.pad import pad as padded

    return padded(input, pad, "constant", value)


@operation(samples=samples.combinations, method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a vector, a row each, in order; with ``with_replacement`` the same one may recur."""
    if type(input) is not Tensor:
        check_tensors("combinations", input=input)
    if len(input.native.shape) != 1:
        raise ShapeError(f"combinations: Expect a 1D vector, but got shape {list(input.shape)}; flatten it")
    r = rules.whole("combinations", "r", r)
    if r < 0:
        raise UsageError(f"combinations: Expect a non-negative number, but got {r}; pass 0 or more")
    if not r:
        return new_tensor(input.device.allocate((0,), input.dtype), input.dtype, input.device)
    n = input.native.shape[0]
    choose: Any = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    count = comb(n + r - 1, r) if with_replacement and n else comb(n, r)
    rows = itertools.chain.from_iterable(choose(range_(n), r))
    places = from_numpy(np.fromiter(rows, np.int64, count * r)).to(input.device)  # type: ignore[attr-defined]
    return input.index_select(0, places).reshape(count, r)  # type: ignore[attr-defined, no-any-return]


range_ = range


@operation(samples=samples.vander, method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element of a vector, a row each: ``N`` of them (as many as elements), the highest first."""
    if type(x) is not Tensor:
        check_tensors("vander", x=x)
    if x.ndim != 1:
        raise ShapeError(f"vander: x must be a one-dimensional tensor, got {x.ndim}-D; flatten it")
    n = x.native.shape[0] if N is None else rules.whole("vander", "N", N)
    if n < 0:
        raise UsageError(f"vander: N must be non-negative, got {N}; pass 0 or more")
    if x.dtype.kind in ("bool", "integer"):
        x = x.long()  # type: ignore[attr-defined]
    if (powers := plain_powers(x, n)) is not None:
        return powers if increasing else powers.flip(-1)  # type: ignore[attr-defined, no-any-return]
    ones = x.new_ones((*x.shape, 1))  # type: ignore[attr-defined]
    if not n:
        return x.new_empty((*x.shape, 0))  # type: ignore[attr-defined, no-any-return]
    made: Any = cat([ones, x.unsqueeze(-1).expand(-1, n - 1).cumprod(-1)], -1)  # type: ignore[attr-defined]
    return made if increasing else made.flip(-1)  # type: ignore[no-any-return]


# Up to this many comparisons are made one by one; more go through a sorted search.
_FEW = 1 << 16
_ORDERED = REAL - BOOL


@operation(samples=samples.isin, method=False)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False,
         out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Whether each of ``elements`` is among ``test_elements`` (with ``invert``, is not); one of them may be a number."""
    if (
        type(elements) is Tensor is type(test_elements)
        and elements.dtype is test_elements.dtype
        and elements.device is test_elements.device
        and elements.dtype in _ORDERED
        and out is None
        and elements.numel() * test_elements.numel() <= _FEW
        and (kernel := elements.device.kernels["isin"])
    ):
        native = kernel(elements.native, test_elements.native)
        native = elements.device.kernels["logical_not"](native) if invert else native
        return new_tensor(native, dtypes.bool_, elements.device)
    tensors = [one for one in (elements, test_elements) if isinstance(one, Tensor)]
    if not tensors:
        raise ArgumentTypeError(f"isin: expected a Tensor, got {elements!r} and {test_elements!r}; wrap one of them")
    compute = result_type(elements, test_elements)
    if compute.is_complex or compute is dtypes.bool_:
        raise DtypeError(f"isin: not implemented for {compute.name}, got one; convert it to numbers with an order")
    like: Any = tensors[0]
    x, among = (
        (one if one.dtype is compute and one.node is None else one.detach().to(compute))  # type: ignore[attr-defined]
        if isinstance(one, Tensor)
        else new_tensor(like.device.kernels["full"]((), one, dtype=compute), compute, like.device)
        if dtypes.kind_of(one) is not None
        else like.new_full((), one, dtype=compute)  # says what is wrong
        for one in (elements, test_elements)
    )
    together = x.device is among.device and x.numel() * among.numel() <= _FEW
    kernel = x.device.kernels["isin"] if together else None
    if kernel and out is None:
        native = kernel(x.native, among.native)
        return new_tensor(x.device.kernels["logical_not"](native) if invert else native, dtypes.bool_, x.device)
    among = among.reshape(-1)
    if x.numel() * among.numel() <= _FEW or not among.numel():
        made = (x.unsqueeze(-1) == among).any(-1)
    else:
        # Of an unsorted list of m elements, log(m) comparisons each instead of m.
        ordered = among.sort().values
        at = searchsorted(ordered, x.reshape(-1))
        made = (ordered.index_select(0, at.clamp_max(among.numel() - 1)) == x.reshape(-1)).reshape(x.shape)
    made = ~made if invert else made
    return made if out is None else store("isin", made, out)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, a tensor for each dim of ``shape``, of indices into the flattened tensor."""
    if not isinstance(indices, Tensor) or indices.dtype.kind != "integer":
        found = indices.dtype if isinstance(indices, Tensor) else type(indices).__name__
        raise ArgumentTypeError(f"unravel_index: expected 'indices' to be integer dtype, but got {found}; use .long()")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all([hasattr(one, "__index__") for one in sizes]):
        raise ArgumentTypeError(f"unravel_index: expected shape as ints, got {shape!r}; pass ints or one tuple of ints")
    if any([one < 0 for one in sizes]):
        raise ArgumentError(f"unravel_index: 'shape' cannot have negative values, but got {sizes}; pass sizes >= 0")
    found, indices = [], indices.long()  # type: ignore[attr-defined]
    for i, size in enumerate(sizes):
        step = prod(sizes[i + 1 :])
        found.append(indices.div(step, rounding_mode="floor") % size)  # type: ignore[attr-defined]
    return tuple(found)


@operation(samples=samples.fill, method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """One value (a number or a 0-d tensor) in the shape and dtype of ``input``."""
    if type(input) is not Tensor:
        check_tensors("fill", input=input)
    if input.node is None:
        if type(value) is Tensor and value.node is None and not value.native.shape and value.device.capabilities.host:
            value = value.item()
        if (made := filled_as(input, value)) is not None:
            return made
        if dtypes.kind_of(value) is not None:
            return like("fill", input, value, None, None, False)
    return input.clone().fill_(value)  # type: ignore[attr-defined, no-any-return]


@operation(samples=samples.unary)
def is_neg(input: Tensor) -> bool:
    """Always False: negatives are computed at once here."""
    if type(input) is not Tensor:
        check_tensors("is_neg", input=input)
    return False


@operation(samples=samples.same_size)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape."""
    if type(input) is not Tensor or type(other) is not Tensor:
        check_tensors("is_same_size", input=input, other=other)
    return tuple(input.native.shape) == tuple(other.native.shape)


@operation(samples=samples.one_element)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of a tensor is not 0. Raises for any other number of elements."""
    if type(input) is not Tensor:
        check_tensors("is_nonzero", input=input)
    return bool(input)


def range(start: float = 0, end: float | None = None, step: float = 1, *, out: Tensor | None = None, dtype: Any = None,
          layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The numbers from ``start`` to ``end``, which is included, ``step`` apart; ``arange`` leaves the end out."""
    if layout is not None:
        only_strided("range", layout)
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    if not step or (end - start) / step < 0:
        raise UsageError(f"range: upper bound and lower bound inconsistent with step sign, got {start}, {end}, {step}")
    found = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, "range")
    made = arange(int((end - start) / step) + 1, dtype=found, device=device) * step + start
    made = made.requires_grad_(requires_grad) if requires_grad else made
    return made if out is None else store("range", made, out)
