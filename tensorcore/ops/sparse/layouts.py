"""Sparse tensors in the COO layout: with an index for each element, or block of elements."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

from tensorcore.errors import ArgumentTypeError, DimensionError, KernelMissing, ShapeError, UsageError
from tensorcore.formats import Size, sparse_coo
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange, zeros
from tensorcore.ops.indexing.buckets import searchsorted
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.sort import unique
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.ops.sparse.base import Sparse, linear
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Coo", "unraveled"]

_FEW = 1 << 13  # comparisons that take less than to sort


def _picked_from(keys: Any, index: Any, in_order: bool) -> tuple[Any, Any]:
    """Of each slice that is asked for the elements: their slots in the result, and where they are."""
    # They lie side by side in the order of the dim, which is that of the first one.
    device = keys.device
    keys, order = (keys, None) if in_order else keys.sort(stable=True)
    first = searchsorted(keys, index)
    counts = searchsorted(keys, index, right=True) - first
    slot = arange(index.native.shape[0], device=device).repeat_interleave(counts)
    picked = arange(slot.shape[0], device=device) + (first - (counts.cumsum(0) - counts))[slot]
    return slot.native, (picked if order is None else order[picked]).native


class Coo(Sparse):
    """A sparse tensor with an index for each stored element, or block of elements."""

    is_sparse = True
    layout = sparse_coo  # type: ignore[assignment]
    names = ("indices", "values")

    def arranged(self, made: Any) -> Any:
        """A COO tensor in this one's layout."""
        return made

    def new(self, *args: Any, device: Any = None) -> Any:
        """A sparse tensor of the same dtype and device: of ``(indices, values)`` and a size, or of a size alone without elements."""
        make = import_module("tensorcore.ops.sparse.making").sparse_coo_tensor
        target = self.device if device is None else device
        if len(args) in (2, 3) and all(isinstance(one, Tensor) for one in args[:2]):
            return make(*args, device=target)
        size = args[0] if len(args) == 1 and isinstance(args[0], Size) else args
        if not all(isinstance(one, int) for one in size):
            raise ArgumentTypeError(
                f"new: expected indices and values as tensors, or sizes as ints, got {args}; take torch.sparse_coo_tensor, or "
                "to_sparse() of a dense tensor"
            )
        return make(size or (0,), dtype=self.dtype, device=target)

    def indices(self) -> Any:
        """The indices, one in each column, in order."""
        if not self.coalesced:
            raise UsageError(
                "indices: Cannot get indices on an uncoalesced tensor, please call .coalesce() first: got one"
            )
        return self.parts[0]

    def _indices(self) -> Any:
        return self.parts[0]

    def _values(self) -> Any:
        return self.parts[1]

    def sparse_dim(self) -> int:
        """How many dims have indices."""
        return self.parts[0].native.shape[0]

    def dense_dim(self) -> int:
        """How many dims the values have beside."""
        return len(self.parts[1].native.shape) - 1

    def is_coalesced(self) -> bool:
        """Whether the indices are known to be in order, each once."""
        return self.coalesced

    def _coalesced_(self, coalesced: bool) -> Self:
        self.coalesced = coalesced
        return self

    def coalesce(self) -> Any:
        """The same with indices in order, each once: the values of equal ones add up."""
        if self.coalesced:
            return self
        indices, values = self.parts
        split = indices.native.shape[0]
        shape = tuple(self.native.shape[:split])
        kernel = self.device.kernels["sparse_coalesce"]
        if kernel and values.node is None and split and values.native.shape[0]:
            kept, sums = kernel(indices.native, values.native, shape=shape)
            parts = new_tensor(kept, indices.dtype, self.device), new_tensor(sums, self.dtype, self.device)
            return Coo.of(parts, self.native.shape, True)
        keys, places = unique(linear(indices, shape), return_inverse=True)
        flat = zeros(keys.shape[0], *values.shape[1:], dtype=values.dtype, device=values.device)
        return Coo.of((unraveled(keys, shape), flat.index_add(0, places, values)), self.native.shape, True)

    def to_sparse_coo(self) -> Any:
        """The tensor itself."""
        return self

    def sparse_resize_(self, size: Any, sparse_dim: int, dense_dim: int) -> Self:
        """A larger size for the same elements, in place; any size where there are none."""
        before, shape = self.native.shape, tuple(size)
        if sparse_dim + dense_dim != len(shape):
            raise UsageError(
                f"sparse_resize_: number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got "
                f"{len(shape)}; pass a size for each"
            )
        if self._nnz():
            if (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()):
                raise UsageError(
                    "sparse_resize_: changing the number of sparse or dense dimensions on a non-empty sparse tensor is not "
                    f"supported, got {sparse_dim} and {dense_dim}; make a new tensor of the indices and values"
                )
            if any([new < old for new, old in zip(shape, before, strict=True)]):
                raise UsageError(
                    f"sparse_resize_: shrinking the size of dimensions (from {list(before)} to {list(shape)}) on a non-empty "
                    "sparse tensor is not supported; make a new tensor of the indices and values"
                )
            if shape[sparse_dim:] != tuple(before[sparse_dim:]):
                added: Any = self.parts[1].new_zeros((self._nnz(), *shape[sparse_dim:]))
                added[(slice(None), *[slice(n) for n in before[sparse_dim:]])] = self.parts[1]
                self.parts = (self.parts[0], added)
        else:
            held = self.parts[1].new_zeros((0, *shape[sparse_dim:]))
            self.parts = (self.parts[0].new_zeros((sparse_dim, 0)), held)
        self.native = type(self.native)(Size(shape))
        return self

    def sparse_resize_and_clear_(self, size: Any, sparse_dim: int, dense_dim: int) -> Self:
        """Another size and no elements, in place."""
        self.parts = (self.parts[0][:, :0], self.parts[1][:0])
        return self.sparse_resize_(size, sparse_dim, dense_dim)

    def resize_as_sparse_(self, template: Any) -> Self:
        """The size of another COO tensor, in place, as ``sparse_resize_`` does."""
        return self.sparse_resize_(template.shape, template.sparse_dim(), template.dense_dim())

    resize_as_ = resize_as_sparse_

    def index_select(self, dim: int, index: Any) -> Any:
        """The slices at ``index``, a vector, along a dim that has indices, in the order of the vector."""
        one = self.coalesce()
        have, count, split = tuple(one.native.shape), index.native.shape[0], one.sparse_dim()
        at = rules.wrap_dim("index_select", dim, len(have))
        shape = (*have[:at], count, *have[at + 1 :])
        if at >= split:
            return Coo.of((one.parts[0], one.parts[1].index_select(at - split + 1, index)), shape, True)
        size = have[at]
        lowest, highest = index.device.kernels["index_bounds"](index.native)
        if count and not -size <= lowest <= highest < size:
            raise DimensionError(
                f"index_select: index out of range, got {index.tolist()[:8]} for dim {dim} of size {size}"
            )
        if lowest < 0:
            index = where(index < 0, index + size, index)
        # Indices have no gradients: kernels by themselves take half the time of ops.
        device, indices = self.device, one.parts[0].native
        kernels = device.kernels
        view, take = kernels["index"], kernels["index_select"]
        keys = view(indices, key=(at,))
        if keys.shape[0] * count <= _FEW:
            column = kernels["unsqueeze"](index.native, dim=1)
            slot, picked = kernels["nonzero_by_dim"](kernels["eq"](column, keys))
        else:
            slot, picked = _picked_from(one.parts[0].select(0, at), index, not at)
        rows = []
        for i in range(split):
            rows.append(slot if i == at else take(view(indices, key=(i,)), picked, dim=0))
        places = new_tensor(kernels["stack"](rows, dim=0), one.parts[0].dtype, device)
        return Coo.of((places, one.parts[1].index_select(0, new_tensor(picked, one.parts[0].dtype, device))), shape)

    def __getitem__(self, index: Any) -> Any:
        """The part that numbers and slices name, dim by dim: sparse, or dense where no dim with indices is left."""
        key = list(index) if isinstance(index, tuple) else [index]
        if key.count(...) == 1:
            at = key.index(...)
            key[at : at + 1] = [slice(None)] * (self.dim() - len(key) + 1)
        if not all([isinstance(one, slice) or (isinstance(one, int) and not isinstance(one, bool)) for one in key]):
            raise KernelMissing(
                f"index: expected numbers and slices for a sparse tensor, got {index!r}; use index_select or to_dense()"
            )
        if len(key) > self.dim():
            raise DimensionError(f"too many indices for tensor of dimension {self.dim()}, got {index!r}")
        made: Any = self
        # From the back, so that the dims in front keep their numbers.
        for dim in reversed(range(len(key))):
            one, size = key[dim], self.native.shape[dim]
            if isinstance(one, int):
                made = _slice_of(made, dim, one)
            elif one != slice(None):
                made = made.index_select(dim, arange(*one.indices(size), device=self.device))
        return made

    def permute(self, *dims: Any) -> Any:
        """The dims in another order; those with indices stay in front of the dense ones."""
        given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        order, split = rules.wrap_dims("permute", given, self.dim()), self.sparse_dim()
        if len(order) != self.dim() or any([one >= split for one in order[:split]]):
            raise ShapeError(
                f"permute: expected an order of all dims, the {split} with indices in front, got {tuple(given)}; use to_dense()"
            )
        indices, values = self.parts
        inner = [0, *[one - split + 1 for one in order[split:]]]
        shape = [self.native.shape[one] for one in order]
        return Coo.of((stack([indices[one] for one in order[:split]]), values.permute(inner)), shape)

    def unsqueeze(self, dim: int) -> Any:
        """With a dim of size 1 at ``dim``."""
        at, split = rules.wrap_dim("unsqueeze", dim, self.dim() + 1), self.sparse_dim()
        indices, values = self.parts
        shape = (*self.native.shape[:at], 1, *self.native.shape[at:])
        if at > split:
            return Coo.of((indices, values.unsqueeze(at - split + 1)), shape, self.coalesced)
        rows = cat([indices[:at], indices.new_zeros((1, indices.shape[1])), indices[at:]])
        return Coo.of((rows, values), shape, self.coalesced)

    def transpose(self, dim0: int, dim1: int) -> Any:
        """Two of the dims that have indices swapped."""
        count, split = self.dim(), self.sparse_dim()
        a, b = rules.wrap_dim("transpose", dim0, count), rules.wrap_dim("transpose", dim1, count)
        if max(a, b) >= split:
            raise ShapeError(f"transpose: expected dims of indices, got {dim0} and {dim1} of {split}; use to_dense()")
        order = list(range(count))
        order[a], order[b] = b, a
        indices, values = self.parts
        shape = [self.native.shape[i] for i in order]
        return Coo.of((stack([indices[i] for i in order[:split]]), values), shape, self.coalesced and a == b)


def _slice_of(one: Any, dim: int, number: int) -> Any:
    """The slice of a COO tensor at ``number`` along a dim, in the order of its elements."""
    size = one.native.shape[dim]
    if not -size <= number < size:
        raise DimensionError(f"select: index {number} out of range for dim {dim} of size {size}, got it")
    indices, values = one.parts
    shape, split = (*one.native.shape[:dim], *one.native.shape[dim + 1 :]), indices.shape[0]
    if dim >= split:
        return Coo.of((indices, values.select(dim - split + 1, number)), shape, one.coalesced)
    places = (indices[dim] == number % size).nonzero().reshape(-1)
    held = values.index_select(0, places)
    if split == 1:
        return held.sum(0)
    kept = cat([indices[:dim], indices[dim + 1 :]]) if split > 2 else indices[1 - dim : 2 - dim]
    return Coo.of((kept.index_select(1, places), held), shape, one.coalesced)


def unraveled(places: Any, shape: Any) -> Any:
    """The turn round of ``linear``."""
    if not shape:
        return places.new_zeros((0, *places.shape))
    rows = []
    for size in reversed(shape[1:]):
        before = places // max(size, 1)
        rows.append(places - before * size)
        places = before
    return stack([places, *reversed(rows)])
