"""The classes of sparse tensors: COO, with an index for each element, and CSR, row by row."""

from __future__ import annotations

from typing import Any, Self

from tensorcore import dtypes
from tensorcore.errors import DimensionError, KernelMissing, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange, tensor, zeros
from tensorcore.ops.indexing.buckets import searchsorted
from tensorcore.ops.indexing.masked import bincount
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.sort import unique
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.ops.sparse.base import Sparse, linear

__all__ = ["Coo", "Csr", "unraveled"]


class Coo(Sparse):
    """A sparse tensor with an index for each stored element, or block of elements."""

    is_sparse = True

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
        return self.parts[0].shape[0]

    def dense_dim(self) -> int:
        """How many dims the values have beside."""
        return self.parts[1].dim() - 1

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
        shape = self.native.shape[: indices.shape[0]]
        keys, places = unique(linear(indices, shape), return_inverse=True)
        flat = zeros(keys.shape[0], *values.shape[1:], dtype=values.dtype, device=values.device)
        return Coo.of((unraveled(keys, shape), flat.index_add(0, places, values)), self.native.shape, True)

    def to_sparse_coo(self) -> Any:
        """The tensor itself."""
        return self

    def index_select(self, dim: int, index: Any) -> Any:
        """The slices at ``index``, a vector, along a dim that has indices, in the order of the vector."""
        one = self.coalesce()
        at = rules.wrap_dim("index_select", dim, one.dim())
        shape = (*self.native.shape[:at], index.shape[0], *self.native.shape[at + 1 :])
        if at >= one.sparse_dim():
            inside = one.parts[1].index_select(at - one.sparse_dim() + 1, index)
            return Coo.of((one.parts[0], inside), shape, True)
        size = self.native.shape[at]
        index = where(index < 0, index + size, index)
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < size:
            raise DimensionError(
                f"index_select: index out of range, got {index.tolist()[:8]} for dim {dim} of size {size}"
            )
        # Of each slice that is asked for the elements lie side by side once they are in the order of the dim.
        keys, order = one.parts[0][at].sort(stable=True)
        first, last = searchsorted(keys, index), searchsorted(keys, index, right=True)
        counts = last - first
        slot = arange(index.shape[0], device=self.device).repeat_interleave(counts)
        step = arange(slot.shape[0], device=self.device) - (counts.cumsum(0) - counts)[slot]
        picked = order[first[slot] + step]
        rows = list(one.parts[0][:, picked].unbind(0))
        rows[at] = slot
        return Coo.of((stack(rows), one.parts[1][picked]), shape)

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
                made = made.index_select(dim, tensor([one], device=self.device))
                indices, values = made.parts
                shape = (*made.native.shape[:dim], *made.native.shape[dim + 1 :])
                split = indices.shape[0]
                if dim >= split:
                    made = Coo.of((indices, values.select(dim - split + 1, 0)), shape, made.coalesced)
                elif split == 1:
                    made = values.sum(0)
                else:
                    made = Coo.of((cat([indices[:dim], indices[dim + 1 :]]), values), shape)
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

    def to_sparse_csr(self, dense_dim: Any = None) -> Any:
        """A matrix with the places of its rows in the list of columns."""
        one = self.coalesce()
        if one.dim() != 2 or one.sparse_dim() != 2:
            raise ShapeError(f"to_sparse_csr: expected a matrix, got {one.dim()} dims; sum or index the others")
        rows, columns = one.parts[0].unbind(0)
        starts = bincount(rows, minlength=self.native.shape[0]).cumsum(0)
        crow = cat([zeros(1, dtype=dtypes.int64, device=self.device), starts])
        return Csr.of((crow, columns, one.parts[1]), self.native.shape, True)

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


class Csr(Sparse):
    """A sparse matrix with the places of its rows in the list of columns."""

    is_sparse_csr = True

    def crow_indices(self) -> Any:
        """Where each row starts among the columns, and the end of the last."""
        return self.parts[0]

    def col_indices(self) -> Any:
        """The column of each value."""
        return self.parts[1]

    def __getitem__(self, index: Any) -> Any:
        """The part that numbers and slices name, as a COO tensor."""
        return self.to_sparse_coo()[index]

    def sparse_dim(self) -> int:
        """Two."""
        return 2

    def dense_dim(self) -> int:
        """None."""
        return 0

    def to_sparse_coo(self) -> Any:
        """The same with an index for each value."""
        crow, columns, values = self.parts
        rows = arange(self.native.shape[0], device=self.device).repeat_interleave(crow.diff())
        return Coo.of((stack([rows, columns.long()]), values), self.native.shape, self.coalesced)

    def to_sparse_csr(self, dense_dim: Any = None) -> Any:
        """The tensor itself."""
        return self

    def transpose(self, dim0: int, dim1: int) -> Any:
        """The matrix with its dims swapped, in rows again."""
        return self.to_sparse_coo().transpose(dim0, dim1).to_sparse_csr()


def unraveled(places: Any, shape: Any) -> Any:
    """The turn round of ``linear``."""
    rows = []
    for size in reversed(shape):
        rows.append(places % max(size, 1))
        places = places // max(size, 1)
    return stack(rows[::-1]) if rows else places.new_zeros((0, *places.shape))
