"""How sparse tensors are made: from indices and values, and from dense tensors."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, KernelMissing, ShapeError, UsageError
from tensorcore.formats import sparse_coo, sparse_csr, strided
from tensorcore.ops.creation.create import as_tensor, tensor, zeros
from tensorcore.ops.kinds import method
from tensorcore.ops.linalg.products import mm
from tensorcore.ops.placement import as_device
from tensorcore.ops.sparse.base import Sparse, count_of
from tensorcore.ops.sparse.layouts import Coo, Csr, unraveled
from tensorcore.tensor import Size, Tensor

__all__ = ["sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csr_tensor", "spmm"]


def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, *sizes: int, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: Any = None, is_coalesced: bool | None = None, layout: Any = None) -> Any:  # fmt: skip
    """A tensor of ``values`` (nnz, ...) at ``indices`` (sparse_dim, nnz), all other elements zero.

    ``sparse_coo_tensor(size)`` has no elements that are not zero.

    Args:
        size: as small as the indices allow, unless given.
        is_coalesced: whether the indices are in order, each once.
    """
    op = "sparse_coo_tensor"
    if values is None or isinstance(indices, int):
        given = indices if size is None and not isinstance(indices, int) else (indices, values, size, *sizes)
        shape = tuple([one for one in (size if given is None else given) if one is not None])
        nothing = zeros(0, dtype=dtype, device=device, requires_grad=requires_grad)
        return Coo.of((zeros(len(shape), 0, dtype=dtypes.int64, device=device), nothing), shape, True)
    indices, held = _indices(op, indices, device), _values(values, dtype, device, requires_grad)
    if indices.dim() != 2:
        raise ShapeError(f"{op}: indices must be sparse_dim x nnz, got shape {list(indices.shape)}; reshape them")
    if not held.dim():
        held = held.expand(indices.shape[1])
    if indices.shape[1] != held.shape[0]:
        raise ShapeError(
            f"{op}: number of dimensions must be sparse_dim + dense_dim, and values have one row for each index, got "
            f"{indices.shape[1]} indices and {held.shape[0]} values"
        )
    split = indices.shape[0]
    most = [int(one) for one in indices.amax(1).tolist()] if indices.shape[1] else [-1] * split
    if size is None:
        size = (*[one + 1 for one in most], *held.shape[1:])
    shape = Size(size)
    if len(shape) != split + held.dim() - 1 or shape[split:] != held.shape[1:]:
        raise ShapeError(
            f"{op}: number of dimensions must be sparse_dim ({split}) + dense_dim ({held.dim() - 1}), but got "
            f"{len(shape)}: size {list(shape)}, values {list(held.shape)}"
        )
    for dim, (found, bound) in enumerate(zip(most, shape, strict=False)):
        if found >= bound:
            raise UsageError(
                f"{op}: size is inconsistent with indices: for dim {dim}, size is {bound} but found index {found}"
            )
    if indices.shape[1] and int(indices.amin()) < 0:
        raise UsageError(f"{op}: found negative index {int(indices.amin())}, got it; count from the front")
    return Coo.of((indices, held), shape, bool(is_coalesced))


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: Any = None, layout: Any = None) -> Any:  # fmt: skip
    """A matrix of ``values`` (nnz) at the columns ``col_indices`` (nnz), of which row i has those from ``crow_indices[i]``
    up to ``crow_indices[i + 1]``."""  # fmt: skip
    op = "sparse_csr_tensor"
    crow, columns = as_tensor(crow_indices, device=device), as_tensor(col_indices, device=device)
    held = _values(values, dtype, device, requires_grad)
    if crow.dim() != 1 or columns.shape != held.shape or columns.dim() != 1:
        raise ShapeError(
            f"{op}: expected vectors of as many columns as values, got shapes {list(crow.shape)}, {list(columns.shape)} and "
            f"{list(held.shape)}; use sparse_coo_tensor for more dims"
        )
    if size is None:
        size = crow.shape[0] - 1, int(columns.max()) + 1 if columns.numel() else 0
    rows, width = size
    starts = crow.tolist()
    if len(starts) != rows + 1 or starts[0] != 0 or starts[-1] != held.shape[0] or bool((crow.diff() < 0).any()):
        raise UsageError(
            f"{op}: crow_indices must rise from 0 to {held.shape[0]} in {rows + 1} steps, got {starts[:8]}; see the size"
        )
    if columns.numel() and not 0 <= int(columns.min()) <= int(columns.max()) < width:
        raise UsageError(f"{op}: col_indices must be from 0 to {width - 1}, got {int(columns.max())}; see the size")
    return Csr.of((crow, columns, held), size, True)


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
                             layout: Any = None, **options: Any) -> Any:  # fmt: skip
    """As ``sparse_csr_tensor``, which is the only ``layout`` of this kind."""
    if layout is not sparse_csr:
        raise KernelMissing(f"sparse_compressed_tensor: expected layout=torch.sparse_csr, got {layout!r}")
    return sparse_csr_tensor(compressed_indices, plain_indices, values, size, **options)


def without_elements(
    op: str, shape: tuple[int, ...], layout: Any, dtype: Any, device: Any, requires_grad: bool, out: Any
) -> Any:
    """A tensor that is zero everywhere, in a sparse ``layout``."""
    if out is not None:
        raise ShapeError(f"{op}: layout {layout!r} does not match layout of out parameter, got both; leave one out")
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if layout is sparse_coo:
        return sparse_coo_tensor(shape, **options)
    if len(shape) != 2:
        raise ShapeError(
            f"{op}: Only matrices are supported in {layout!r}, got size {list(shape)}; use torch.sparse_coo"
        )
    starts = zeros(shape[0] + 1, dtype=dtypes.int64, device=device)
    return Csr.of((starts, zeros(0, dtype=dtypes.int64, device=device), zeros(0, **options)), shape, True)


def _indices(op: str, indices: Any, device: Any) -> Any:
    made = as_tensor(indices, device=device)
    if made.dtype.kind != "integer" and made.numel():
        raise DtypeError(f"{op}: expected indices to be integers, got {made.dtype}; use .long()")
    return made.long()


def _values(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    if isinstance(values, Tensor):
        made = values.detach().clone() if requires_grad else values
        made = (
            made
            if dtype is None and device is None
            else made.to(as_device(device) if device else made.device, dtype or made.dtype)
        )
        return made.requires_grad_(requires_grad) if requires_grad else made
    return tensor(values, dtype=dtype, device=device, requires_grad=requires_grad)


def spmm(input: Any, mat2: Any) -> Any:
    """The product of a sparse matrix with another: an older name of ``mm``."""
    return mm(input, mat2)


# Methods of dense tensors


@method
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Any:  # fmt: skip
    """The elements that are not zero, as a COO tensor of which the first ``sparse_dim`` dims have indices."""
    if layout is strided:
        return self
    if layout is sparse_csr:
        return to_sparse_csr(self)
    here: Any = self
    split = here.dim() if sparse_dim is None else sparse_dim
    rows = here.reshape((count_of(here.shape[:split]), *here.shape[split:]))
    kept = (rows != 0).reshape((rows.shape[0], count_of(here.shape[split:]))).any(-1)
    places = kept.nonzero().reshape(-1)
    return Coo.of((unraveled(places, here.shape[:split]), rows.index_select(0, places)), here.shape, True)


@method
def to_sparse_coo(self: Tensor) -> Any:
    """``to_sparse()``."""
    return to_sparse(self)


@method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """The elements of a matrix that are not zero, row by row."""
    if len(self.native.shape) != 2:
        raise ShapeError(f"to_sparse_csr: expected a matrix, got {len(self.native.shape)} dims; reshape it")
    return to_sparse(self).to_sparse_csr()


@method
def sparse_mask(self: Tensor, mask: Any) -> Any:
    """The elements in the places that a sparse ``mask`` of the same size has."""
    if tuple(self.native.shape) != tuple(mask.native.shape):
        raise ShapeError(f"sparse_mask: operands have incompatible sizes, got {self.shape} and {mask.shape}")
    coo = mask.to_sparse_coo()
    wide: Any = self.to_dense() if isinstance(self, Sparse) else self
    picked = wide[tuple(coo.parts[0].unbind(0))] if isinstance(mask, Sparse) else None
    return mask.like(picked)
