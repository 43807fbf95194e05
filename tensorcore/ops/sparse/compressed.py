"""The classes of compressed sparse matrices: by rows (CSR) or columns (CSC), of elements or of blocks of them (BSR, BSC)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tensorcore import dtypes, formats
from tensorcore.errors import ShapeError, UsageError
from tensorcore.ops.creation.create import arange, zeros
from tensorcore.ops.indexing.masked import bincount
from tensorcore.ops.reductions.sort import unique
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.ops.sparse.base import Sparse, linear
from tensorcore.ops.sparse.layouts import Coo
from tensorcore.tensor import new_tensor

__all__ = ["KINDS", "Bsc", "Bsr", "Compressed", "Csc", "Csr", "block_size", "compress", "compress_blocks"]


class Compressed(Sparse):
    """A matrix whose elements or blocks lie row by row, or column by column: the first part says where each one starts."""

    columns: ClassVar[bool] = False
    blocks: ClassVar[bool] = False
    turned: ClassVar[type[Compressed]]

    @property
    def block(self) -> tuple[int, int]:
        """The rows and columns of what one index stands for."""
        values = self.parts[-1]
        return (values.shape[1], values.shape[2]) if self.blocks else (1, 1)

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
        """The same with an index for each value, in the order of the values."""
        starts, minor, values = self.parts
        major = arange(starts.shape[0] - 1, device=self.device).repeat_interleave(starts.diff())
        rows, columns = (minor.long(), major) if self.columns else (major, minor.long())
        if self.blocks:
            height, width = self.block
            inner = arange(height, device=self.device).unsqueeze(1), arange(width, device=self.device)
            rows = (rows.reshape(-1, 1, 1) * height + inner[0]).expand(values.shape).reshape(-1)
            columns = (columns.reshape(-1, 1, 1) * width + inner[1]).expand(values.shape).reshape(-1)
        return Coo.of((stack([rows, columns]), values.reshape(-1)), self.native.shape, type(self) is Csr)

    def arranged(self, made: Any) -> Any:
        """A COO matrix in this one's layout."""
        return compress(made, type(self), self.block)

    def transpose(self, dim0: int, dim1: int) -> Any:
        """The matrix with its dims swapped: rows become columns where they lie."""
        if (dim0 - dim1) % 2 == 0:
            return self
        starts, minor, values = self.parts
        held = values.transpose(1, 2) if self.blocks else values
        return self.turned.of((starts, minor, held), self.native.shape[::-1], True)

    def emptied(self, dtype: Any, device: Any, requires_grad: bool = False) -> Any:
        """A matrix of the same size and layout without elements."""
        starts, minor, values = self.parts
        held = zeros(0, *values.shape[1:], dtype=dtype, device=device, requires_grad=requires_grad)
        begin = zeros(starts.shape[0], dtype=starts.dtype, device=device)
        return type(self).of((begin, minor.new_zeros(0, device=device), held), self.native.shape, True)


class Csr(Compressed):
    """A sparse matrix with the places of its rows in the list of columns."""

    is_sparse_csr = True
    layout = formats.sparse_csr  # type: ignore[assignment]
    names = ("crow_indices", "col_indices", "values")

    def crow_indices(self) -> Any:
        """Where each row starts among the columns, and the end of the last."""
        return self.parts[0]

    def col_indices(self) -> Any:
        """The column of each value, or block of values."""
        return self.parts[1]

    def to_sparse_csr(self, dense_dim: Any = None) -> Self:
        """The tensor itself."""
        return self


class Csc(Compressed):
    """A sparse matrix with the places of its columns in the list of rows."""

    columns = True
    layout = formats.sparse_csc  # type: ignore[assignment]
    names = ("ccol_indices", "row_indices", "values")

    def ccol_indices(self) -> Any:
        """Where each column starts among the rows, and the end of the last."""
        return self.parts[0]

    def row_indices(self) -> Any:
        """The row of each value, or block of values."""
        return self.parts[1]

    def to_sparse_csc(self, dense_dim: Any = None) -> Self:
        """The tensor itself."""
        return self


class Bsr(Compressed):
    """A sparse matrix of blocks, row by row."""

    blocks = True
    layout, names = formats.sparse_bsr, Csr.names  # type: ignore[assignment]
    crow_indices, col_indices = Csr.crow_indices, Csr.col_indices


class Bsc(Compressed):
    """A sparse matrix of blocks, column by column."""

    columns = blocks = True
    layout, names = formats.sparse_bsc, Csc.names  # type: ignore[assignment]
    ccol_indices, row_indices = Csc.ccol_indices, Csc.row_indices


Csr.turned, Csc.turned, Bsr.turned, Bsc.turned = Csc, Csr, Bsc, Bsr
KINDS: dict[Any, type[Compressed]] = {kind.layout: kind for kind in (Csr, Csc, Bsr, Bsc)}  # type: ignore[misc]


def compress(given: Any, kind: type[Compressed], block: tuple[int, int] = (1, 1)) -> Any:
    """A sparse matrix in another layout; of blocks each that has an element is stored."""
    if type(given) is kind and given.block == block:
        return given
    coo = given.to_sparse_coo()
    if coo.dim() != 2 or coo.sparse_dim() != 2:
        raise ShapeError(f"{_called(kind)}: expected a matrix, got {coo.dim()} dims; sum or index the others")
    one = (coo.transpose(0, 1) if kind.columns else coo).coalesce()
    (major, minor), values, (length, across) = one.parts[0].unbind(0), one.parts[1], one.native.shape
    if kind.blocks:
        block_size(_called(kind), coo.native.shape, block)
        high, wide = reversed(block) if kind.columns else block
        length, across = length // high, across // wide
        keys, place = unique(linear(stack([major // high, minor // wide]), (length, across)), return_inverse=True)
        empty = zeros(keys.shape[0], high, wide, dtype=values.dtype, device=values.device)
        values = empty.index_put((place, major % high, minor % wide), values)
        values = values.transpose(1, 2) if kind.columns else values
        major, minor = keys // max(across, 1), keys % max(across, 1)
    return kind.of((_starts(major, length), minor, values), given.native.shape, True)


def compress_blocks(dense: Any, kind: type[Compressed], block: tuple[int, int]) -> Any:
    """The blocks of a dense matrix that are not all zero."""
    high, wide = block_size(_called(kind), dense.native.shape, block)
    lines, across = dense.shape[0] // high, dense.shape[1] // wide
    grid = dense.reshape(lines, high, across, wide)
    grid = grid.permute(2, 0, 1, 3) if kind.columns else grid.permute(0, 2, 1, 3)
    grid, count = grid.reshape(-1, high, wide), lines if kind.columns else across
    places = (grid != 0).reshape(grid.shape[0], high * wide).any(1).nonzero().reshape(-1)
    begin = _starts(places // max(count, 1), across if kind.columns else lines)
    return kind.of((begin, places % max(count, 1), grid.index_select(0, places)), dense.native.shape, True)


def _called(kind: type[Compressed]) -> str:
    return f"to_{str(kind.layout).removeprefix('torch.')}"


def block_size(op: str, shape: Any, block: Any) -> tuple[int, int]:
    """The rows and columns of a block; they divide those of the matrix."""
    size = (block, block) if isinstance(block, int) else tuple(block if block is not None else ())
    if len(size) != 2:
        raise UsageError(f"{op}: blocksize needs to be a tuple of size 2, but got {len(size)}; pass (rows, columns)")
    if len(shape) != 2:
        raise ShapeError(f"{op}: expected a matrix, got {len(shape)} dims; reshape it")
    if min(size) < 1 or shape[0] % size[0] or shape[1] % size[1]:
        raise UsageError(
            f"{op}: tensor sparse size ({shape[0]},{shape[1]}) must be divisible by given blocksize ({size[0]},{size[1]})"
        )
    return size


def _starts(major: Any, length: int) -> Any:
    """Where each of ``length`` lines begins among the numbers of lines of all elements, in order, and the end of the last."""
    if kernel := major.device.kernels["line_starts"]:
        return new_tensor(kernel(major.native, count=length), major.dtype, major.device)
    counts = bincount(major, minlength=length).cumsum(0)
    return cat([zeros(1, dtype=dtypes.int64, device=major.device), counts])


# Between layouts


def _to_csr(self: Sparse, dense_dim: int | None = None) -> Any:
    """A matrix with the places of its rows in the list of columns."""
    return compress(self, Csr)


def _to_csc(self: Sparse, dense_dim: int | None = None) -> Any:
    """A matrix with the places of its columns in the list of rows."""
    return compress(self, Csc)


def _to_bsr(self: Sparse, blocksize: Any, dense_dim: int | None = None) -> Any:
    """A matrix of blocks of this size, row by row."""
    return compress(self, Bsr, block_size("to_sparse_bsr", self.native.shape, blocksize))


def _to_bsc(self: Sparse, blocksize: Any, dense_dim: int | None = None) -> Any:
    """A matrix of blocks of this size, column by column."""
    return compress(self, Bsc, block_size("to_sparse_bsc", self.native.shape, blocksize))


for _name, _function in {"csr": _to_csr, "csc": _to_csc, "bsr": _to_bsr, "bsc": _to_bsc}.items():
    setattr(Sparse, f"to_sparse_{_name}", _function)
