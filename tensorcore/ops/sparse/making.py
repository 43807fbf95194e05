"""How sparse tensors are made: from indices and values, and from dense tensors."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, ShapeError, UsageError
from tensorcore.formats import Size, sparse_coo, strided
from tensorcore.ops.creation.create import as_tensor, tensor, zeros
from tensorcore.ops.kinds import method
from tensorcore.ops.linalg.products import mm
from tensorcore.ops.placement import as_device
from tensorcore.ops.sparse.arithmetic import product_in_rows, rows_of_product
from tensorcore.ops.sparse.base import Sparse, count_of
from tensorcore.ops.sparse.compressed import (
    KINDS,
    Bsc,
    Bsr,
    Compressed,
    Csc,
    Csr,
    block_size,
    compress,
    compress_blocks,
)
from tensorcore.ops.sparse.layouts import Coo, unraveled
from tensorcore.tensor import Tensor

__all__ = [
    "ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "dsmm", "hsmm", "hspmm", "indices_copy", "resize_as_sparse_",
    "row_indices_copy", "saddmm", "smm", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
    "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "spmm", "sspaddmm", "values_copy",
]  # fmt: skip


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
    places = indices.native.shape
    if len(places) != 2:
        raise ShapeError(f"{op}: indices must be sparse_dim x nnz, got shape {list(places)}; reshape them")
    split, count = places
    have = held.native.shape
    if not have:
        held = held.expand(count)
        have = (count,)
    if count != have[0]:
        raise ShapeError(
            f"{op}: number of dimensions must be sparse_dim + dense_dim, and values have one row for each index, got "
            f"{count} indices and {have[0]} values"
        )
    lowest, highest = indices.device.kernels["index_bounds"](indices.native)
    shape = None if size is None else tuple(size)
    if shape is not None and len(shape) >= split and split and highest < min(shape[:split]):
        most = shape[:split]  # all of them are inside
    else:
        most = tuple([int(one) + 1 for one in indices.amax(1).tolist()]) if count else (0,) * split
    if shape is None:
        shape = (*most, *have[1:])
    if len(shape) != split + len(have) - 1 or shape[split:] != tuple(have[1:]):
        raise ShapeError(
            f"{op}: number of dimensions must be sparse_dim ({split}) + dense_dim ({len(have) - 1}), but got "
            f"{len(shape)}: size {list(shape)}, values {list(have)}"
        )
    for dim, (found, bound) in enumerate(zip(most, shape, strict=False)):
        if found > bound:
            raise UsageError(
                f"{op}: size is inconsistent with indices: for dim {dim}, size is {bound} but found index {found - 1}"
            )
    if lowest < 0:
        raise UsageError(f"{op}: found negative index {lowest}, got it; count from the front")
    return Coo.of((indices, held), shape, bool(is_coalesced))


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: Any = None, layout: Any = None) -> Any:  # fmt: skip
    """A matrix of ``values`` (nnz) at the columns ``col_indices`` (nnz): row i has those from ``crow_indices[i]`` up to the next."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed("sparse_csr_tensor", Csr, crow_indices, col_indices, values, size, options)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: Any = None, layout: Any = None) -> Any:  # fmt: skip
    """A matrix of ``values`` (nnz) at the rows ``row_indices`` (nnz): column i has those from ``ccol_indices[i]`` up to the next."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed("sparse_csc_tensor", Csc, ccol_indices, row_indices, values, size, options)


def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: Any = None, layout: Any = None) -> Any:  # fmt: skip
    """As ``sparse_csr_tensor``, of blocks: ``values`` (nnz, rows, columns), and indices of rows and columns of blocks."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed("sparse_bsr_tensor", Bsr, crow_indices, col_indices, values, size, options)


def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: Any = None, layout: Any = None) -> Any:  # fmt: skip
    """As ``sparse_csc_tensor``, of blocks: ``values`` (nnz, rows, columns), and indices of columns and rows of blocks."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed("sparse_bsc_tensor", Bsc, ccol_indices, row_indices, values, size, options)


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                             layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                             check_invariants: Any = None) -> Any:  # fmt: skip
    """As the function of the ``layout``: ``sparse_csr_tensor``, ``sparse_csc_tensor``, and those of blocks."""
    if layout not in KINDS:
        raise UsageError(
            f"sparse_compressed_tensor: expected sparse compressed tensor layout, got {layout!r}; pass torch.sparse_csr"
        )
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed(
        "sparse_compressed_tensor", KINDS[layout], compressed_indices, plain_indices, values, size, options
    )


def _compressed(
    op: str, kind: type[Compressed], starts: Any, minor: Any, values: Any, size: Any, options: dict[str, Any]
) -> Any:
    device = options["device"]
    starts, minor, held = as_tensor(starts, device=device), as_tensor(minor, device=device), _values(values, **options)
    if held.dim() != (3 if kind.blocks else 1):
        raise ShapeError(
            f"{op}: values must have dimensionality {3 if kind.blocks else 1}, (nnz, rows, columns) of blocks and (nnz) of "
            f"elements, but got {held.dim()}; use sparse_coo_tensor for more dims"
        )
    if starts.dim() != 1 or minor.dim() != 1 or minor.shape[0] != held.shape[0]:
        raise ShapeError(
            f"{op}: expected vectors of indices, as many {kind.names[1]} as values, got shapes {list(starts.shape)}, "
            f"{list(minor.shape)} and {list(held.shape)}"
        )
    block = tuple(held.shape[1:]) if kind.blocks else (1, 1)
    high, wide = reversed(block) if kind.columns else block
    if size is None:
        size = ((starts.shape[0] - 1) * high, (int(minor.max()) + 1 if minor.numel() else 0) * wide)
        size = size[::-1] if kind.columns else size
    size = Size(size)
    if kind.blocks:
        block_size(op, size, block)
    length, across = (size[1] // high, size[0] // wide) if kind.columns else (size[0] // high, size[1] // wide)
    begin = starts.tolist()
    if len(begin) != length + 1 or begin[0] != 0 or begin[-1] != held.shape[0] or bool((starts.diff() < 0).any()):
        raise UsageError(
            f"{op}: {kind.names[0]} must rise from 0 to {held.shape[0]} in {length + 1} steps, got {begin[:8]}; see the size"
        )
    if minor.numel() and not 0 <= int(minor.min()) <= int(minor.max()) < across:
        raise UsageError(f"{op}: {kind.names[1]} must be from 0 to {across - 1}, got {int(minor.max())}; see the size")
    return kind.of((starts, minor, held), size, True)


def without_elements(
    op: str, shape: tuple[int, ...], layout: Any, dtype: Any, device: Any, requires_grad: bool, out: Any
) -> Any:
    """A tensor that is zero everywhere, in a sparse ``layout``."""
    if out is not None:
        raise ShapeError(f"{op}: layout {layout!r} does not match layout of out parameter, got both; leave one out")
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if layout is sparse_coo:
        return sparse_coo_tensor(shape, **options)
    kind = KINDS[layout]
    if len(shape) != 2 or kind.blocks:
        raise ShapeError(
            f"{op}: Only matrices of elements are made empty in {layout!r}, got size {list(shape)}; use torch.sparse_coo"
        )
    starts = zeros(shape[1 if kind.columns else 0] + 1, dtype=dtypes.int64, device=device)
    return kind.of((starts, zeros(0, dtype=dtypes.int64, device=device), zeros(0, **options)), shape, True)


def _indices(op: str, indices: Any, device: Any) -> Any:
    if type(indices) is Tensor and indices.dtype is dtypes.int64 and device is None:
        return indices
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


dsmm = spmm


def hspmm(mat1: Any, mat2: Any) -> Any:
    """The product of a COO matrix and a dense one, as a COO matrix of whole rows."""
    return rows_of_product(mat1, mat2)


hsmm = hspmm


@method
def smm(input: Any, mat: Any) -> Any:
    """The product of a COO matrix and a dense one, as a COO matrix."""
    return product_in_rows(None, input, mat)


@method
def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * (mat1 @ mat2)`` of two COO matrices and a dense one, as a COO matrix."""
    return product_in_rows(input, mat1, mat2, beta, alpha)


saddmm = sspaddmm


# What older programs ask of any tensor: parts of a sparse one


def resize_as_sparse_(input: Any, the_template: Any) -> Any:
    """The size of another COO tensor, in place."""
    return input.resize_as_sparse_(the_template)


def _copy_of(name: str) -> Any:
    def copied(input: Any) -> Any:
        return getattr(input, name)().clone()

    copied.__name__ = copied.__qualname__ = f"{name}_copy"
    copied.__doc__ = f"A copy of what the method ``{name}`` of a sparse tensor gives."
    return copied


indices_copy, values_copy = _copy_of("indices"), _copy_of("values")
crow_indices_copy, col_indices_copy = _copy_of("crow_indices"), _copy_of("col_indices")
ccol_indices_copy, row_indices_copy = _copy_of("ccol_indices"), _copy_of("row_indices")
_WANTED = {
    "values": "sparse tensor", "indices": "sparse coordinate tensor", "coalesce": "sparse coordinate tensor",
    "is_coalesced": "sparse coordinate tensor", "sparse_resize_": "sparse coordinate tensor",
    "sparse_resize_and_clear_": "sparse coordinate tensor", "resize_as_sparse_": "sparse coordinate tensor",
    "crow_indices": "sparse row compressed tensor", "col_indices": "sparse row compressed tensor",
    "ccol_indices": "sparse column compressed tensor", "row_indices": "sparse column compressed tensor",
}  # fmt: skip


def _absent(name: str, wanted: str) -> None:
    def call(self: Any, *args: Any) -> Any:
        kind = "".join([word.capitalize() for word in self.layout.name.removesuffix("_coo").split("_")])
        raise UsageError(f"{name} expected {wanted} layout but got {kind}: a tensor of size {tuple(self.shape)}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"For a {wanted}; of others it raises."
    method(call)


for _name, _wanted in _WANTED.items():
    _absent(_name, _wanted)


@method
def sparse_dim(self: Tensor) -> int:
    """How many dims have indices: none of a dense tensor."""
    return 0


@method
def dense_dim(self: Tensor) -> int:
    """How many dims have no indices: all of a dense tensor."""
    return len(self.native.shape)


# Methods of dense tensors


@method
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Any:  # fmt: skip
    """The elements that are not zero, as a COO tensor of which the first ``sparse_dim`` dims have indices."""
    if blocksize is not None and (layout not in KINDS or not KINDS[layout].blocks):
        raise UsageError(
            f"to_sparse: conversion from torch.strided to {layout or sparse_coo} with blocksize argument given is not supported, "
            f"got {blocksize}; leave it out"
        )
    if layout is strided:
        return self
    if layout is not None and layout is not sparse_coo:
        made = getattr(self, f"to_{layout.name}")
        return made(blocksize) if KINDS[layout].blocks else made()
    here: Any = self
    split = here.dim() if sparse_dim is None else sparse_dim
    rows = here.reshape((count_of(here.shape[:split]), *here.shape[split:]))
    kept = rows != 0
    if split < here.dim():
        kept = kept.reshape((rows.shape[0], count_of(here.shape[split:]))).any(-1)
    places = kept.nonzero().reshape(-1)
    return Coo.of((unraveled(places, here.shape[:split]), rows.index_select(0, places)), here.shape, True)


@method
def to_sparse_coo(self: Tensor) -> Any:
    """``to_sparse()``."""
    return to_sparse(self)


@method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """The elements of a matrix that are not zero, row by row."""
    return compress(to_sparse(_matrix("to_sparse_csr", self)), Csr)


@method
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Any:
    """The elements of a matrix that are not zero, column by column."""
    return compress(to_sparse(_matrix("to_sparse_csc", self)), Csc)


@method
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The blocks of this size of a matrix that are not all zero, row by row."""
    return compress_blocks(_matrix("to_sparse_bsr", self), Bsr, blocksize)


@method
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The blocks of this size of a matrix that are not all zero, column by column."""
    return compress_blocks(_matrix("to_sparse_bsc", self), Bsc, blocksize)


def _matrix(op: str, dense: Tensor) -> Tensor:
    if len(dense.native.shape) != 2:
        raise ShapeError(f"{op}: expected a matrix, got {len(dense.native.shape)} dims; reshape it")
    return dense


@method
def sparse_mask(self: Tensor, mask: Any) -> Any:
    """The elements in the places that a sparse ``mask`` of the same size has."""
    if tuple(self.native.shape) != tuple(mask.native.shape):
        raise ShapeError(f"sparse_mask: operands have incompatible sizes, got {self.shape} and {mask.shape}")
    coo = mask.to_sparse_coo()
    wide: Any = self.to_dense() if isinstance(self, Sparse) else self
    picked = wide[tuple(coo.parts[0].unbind(0))]
    return mask.like(
        picked.reshape((*mask.parts[-1].shape[:1], *picked.shape[1:]) if mask.is_sparse else mask.parts[-1].shape)
    )
