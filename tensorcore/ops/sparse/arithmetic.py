"""Arithmetic, products, sums and softmax of sparse tensors, in ops of their values."""

from __future__ import annotations

import math
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, KernelMissing, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange, full, zeros
from tensorcore.ops.fused import Fused
from tensorcore.ops.indexing.buckets import searchsorted
from tensorcore.ops.reductions.sort import unique
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.ops.sparse.base import ZERO_AT_ZERO, Sparse, linear
from tensorcore.ops.sparse.compressed import Csr
from tensorcore.ops.sparse.layouts import Coo
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["log_softmax", "matmul", "product_in_rows", "rows_of_product", "run", "softmax", "total"]

# Of these the values of equal indices need not be added up first.
_LINEAR = frozenset(["neg"])


def run(op: str, inputs: Any, options: dict[str, Any]) -> Any:
    """An op of the dense tensors with sparse inputs. Raises KernelMissing where there is none."""
    if op in ZERO_AT_ZERO:
        one = inputs[0]
        held = one if op in _LINEAR or not one.is_sparse else one.coalesce()
        return held.like(getattr(held.parts[-1], op)())
    function = _TABLE.get(op)
    if function is None:
        raise KernelMissing(
            f"{op}: expected dense tensors, got a sparse one; there is no such op of it, use to_dense()"
        )
    return function(*inputs, **options)


# Arithmetic


def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """``a + alpha * b``: sparse of two sparse tensors, else dense."""
    if not (isinstance(a, Sparse) and isinstance(b, Sparse)):
        for one, other in ((a, b), (b, a)):
            if not isinstance(other, Tensor):
                raise KernelMissing(
                    f"add: expected a tensor beside a sparse {tuple(one.shape)}, got {other!r}; use to_dense()"
                )
        a, b = _dense(a), _dense(b)
        return a + (b if alpha == 1 else b * alpha)
    _same_size("add", a, b)
    x, y = a.to_sparse_coo(), b.to_sparse_coo()
    if x.sparse_dim() != y.sparse_dim():
        raise ShapeError(f"add: expected as many dims with indices, got {x.sparse_dim()} and {y.sparse_dim()}")
    values = y.parts[1] if alpha == 1 else y.parts[1] * alpha
    if a.parts[0] is b.parts[0] and a.is_sparse:  # the very same places
        return a.like(x.parts[1] + values)
    made = Coo.of((cat([x.parts[0], y.parts[0]], 1), cat([x.parts[1], values])), x.native.shape)
    if x.coalesced and y.coalesced:
        made = made.coalesce()
    return a.arranged(made)


def sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    """``a - alpha * b``."""
    return add(a, b, -alpha)


def mul(a: Any, b: Any) -> Any:
    """The product element by element, sparse: where one is sparse only its elements count."""
    if not isinstance(a, Sparse):
        return mul(b, a)
    if not isinstance(b, Tensor) or not (b.native.shape or isinstance(b, Sparse)):
        return a.like(a.parts[-1] * b)
    if not isinstance(b, Sparse):
        coo = a.to_sparse_coo()
        if rules.broadcast("mul", tuple(a.native.shape), tuple(b.native.shape)) != tuple(a.native.shape):
            raise ShapeError(f"mul: expected a dense tensor that broadcasts to {tuple(a.shape)}, got {tuple(b.shape)}")
        wide: Any = b
        picked = wide.expand(a.native.shape)[tuple(coo.parts[0].unbind(0))] if coo.sparse_dim() else wide
        return a.like(a.parts[-1] * picked.reshape(a.parts[-1].shape))
    _same_size("mul", a, b)
    if a.parts[0] is b.parts[0] and a.is_sparse and a.coalesced:  # the very same places
        return a.like(a.parts[1] * b.parts[1])
    x, y = a.to_sparse_coo().coalesce(), b.to_sparse_coo().coalesce()
    shape = x.native.shape[: x.sparse_dim()]
    mine, other = linear(x.parts[0], shape), linear(y.parts[0], shape)
    if not other.numel() or not mine.numel():
        found = mine.new_zeros(mine.shape).bool()
        places = mine.new_zeros(mine.shape)
    else:
        places = searchsorted(other, mine).clamp(max=other.shape[0] - 1)
        found = other[places] == mine
    values = x.parts[1][found] * y.parts[1][places[found]]
    return a.arranged(Coo.of((x.parts[0][:, found], values), x.native.shape, True))


def div(a: Any, b: Any, rounding_mode: Any = None) -> Any:
    """A sparse tensor over a number, or a dense tensor of one element."""
    if isinstance(b, Sparse) or not isinstance(a, Sparse) or (isinstance(b, Tensor) and b.native.shape):
        raise KernelMissing("div: Sparse division requires a number as divisor, got a tensor; use to_dense()")
    held = a.coalesce() if a.is_sparse and rounding_mode else a
    return (
        a.like(a.parts[-1] / b)
        if rounding_mode is None
        else held.like(held.parts[-1].div(b, rounding_mode=rounding_mode))
    )


def power(a: Any, exponent: Any) -> Any:
    """A sparse tensor to the power of a number above 0."""
    if isinstance(exponent, Tensor) or not isinstance(a, Sparse) or not exponent > 0:
        raise KernelMissing(f"pow: expected an exponent above 0 of a sparse tensor, got {exponent!r}; use to_dense()")
    held = a.coalesce() if a.is_sparse else a
    return held.like(held.parts[-1] ** exponent)


def _dense(one: Any) -> Any:
    return one.to_dense() if isinstance(one, Sparse) else one


def _long(index: Any) -> Any:
    return index if index.dtype is dtypes.int64 else index.long()


def _same_size(op: str, a: Any, b: Any) -> None:
    if tuple(a.native.shape) != tuple(b.native.shape):
        raise ShapeError(f"{op}: The sizes of two sparse tensors must match, got {tuple(a.shape)} and {tuple(b.shape)}")


# Products


def _scattered(rows: Any, columns: Any, values: Any, dense: Any, *, count: int, compressed: bool) -> Any:
    if compressed:
        rows = arange(count, device=dense.device).repeat_interleave(rows.diff())
    made = zeros(count, dense.shape[1], dtype=dense.dtype, device=dense.device)
    return made.index_add(0, rows, values.unsqueeze(1) * dense.index_select(0, columns))


_product = Fused(
    "sparse_matmul", "rows columns values dense", "A sparse matrix of ``count`` rows times a dense one.", _scattered
)


def matmul(a: Any, b: Any) -> Any:
    """The matrix product: sparse of two sparse matrices, else dense. A vector is a matrix of one column or row."""
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        return _both(a, b)
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        raise KernelMissing("matmul: expected two tensors, got a number; use *")
    if not isinstance(a, Sparse):
        if a.dim() == 1:
            return matmul(b.t(), a)
        return matmul(b.t(), a.t()).t()  # type: ignore[attr-defined]
    shape, other = tuple(a.native.shape), tuple(b.native.shape)
    rules.matmul_shape("matmul", shape, other)
    dims, ndim = len(shape), len(other)
    if dims == ndim == 3:
        return _batched(a, b)
    if dims != 2 or a.sparse_dim() != 2 or ndim > 2:
        raise ShapeError(
            f"matmul: expected a sparse matrix and a dense one, got {dims}-D and {ndim}-D; use bmm of dense"
        )
    if a.dtype is not b.dtype:
        raise DtypeError(f"matmul: expected both of one dtype, got {a.dtype} and {b.dtype}; convert one with .to(...)")
    # Row by row where it is stored so: then nothing has to be sorted.
    held = a if a.is_sparse_csr else a.to_sparse_coo()
    rows, columns = map(_long, held.parts[:2]) if a.is_sparse_csr else held.parts[0].unbind(0)
    wide: Any = b if ndim == 2 else b.unsqueeze(1)
    options = {"count": shape[0], "compressed": a.is_sparse_csr}
    made = _product((rows, columns, held.parts[-1], wide), options, b.dtype)
    return made if ndim == 2 else made.squeeze(1)


def _batched(a: Any, b: Any) -> Any:
    """The products of sparse matrices (batch, rows, inner) and dense ones: of one matrix with the batch along its diagonal."""
    if not isinstance(a, Coo) or isinstance(b, Sparse) or a.sparse_dim() != 3:
        raise KernelMissing(
            "bmm: expected a sparse COO tensor with indices for 3 dims and a dense one, got others; use to_dense()"
        )
    count, rows, inner = a.native.shape
    batch, row, column = a.parts[0].unbind(0)
    wide = Coo.of((stack([batch * rows + row, batch * inner + column]), a.parts[1]), (count * rows, count * inner))
    return matmul(wide, b.reshape(count * inner, b.shape[2])).reshape(count, rows, b.shape[2])


def _both(a: Any, b: Any) -> Any:
    """Each element of a with each of b in the row that its column names."""
    rules.matmul_shape("matmul", tuple(a.native.shape), tuple(b.native.shape))
    if a.node is None and b.node is None and (made := _by_kernel(a, b)) is not None:
        return made
    x, y = a.to_sparse_coo().coalesce(), b.to_sparse_csr()
    crow, columns, values = y.parts
    rows, inner = x.parts[0].unbind(0)
    counts = (crow[1:] - crow[:-1])[inner]
    mine = arange(rows.shape[0], device=rows.device).repeat_interleave(counts)
    before = (counts.cumsum(0) - counts)[mine]
    other = crow[inner][mine] + arange(mine.shape[0], device=rows.device) - before
    made = Coo.of(
        (stack([rows[mine], columns[other].long()]), x.parts[1][mine] * values[other]),
        (a.native.shape[0], b.native.shape[1]),
    )
    made = made.coalesce()
    return made if a.is_sparse else made.to_sparse_csr()


def _by_kernel(a: Any, b: Any) -> Any:
    """The product of two matrices off the tape by the device's kernel; None where there is none, or they are not of one dtype."""
    kernel = a.device.kernels["sparse_product"]
    if not kernel or a.dtype is not b.dtype or b.device is not a.device:
        return None
    parts, compressed = [], []
    for one in (a, b):
        compressed.append(one.is_sparse_csr)
        held = one if one.is_sparse_csr else one.to_sparse_coo()
        rows, columns = map(_long, held.parts[:2]) if one.is_sparse_csr else held.parts[0].unbind(0)
        parts += [rows.native, columns.native, held.parts[-1].native]
    shape = (a.native.shape[0], b.native.shape[1])
    natives = kernel(*parts, shape=(*a.native.shape, shape[1]), compressed=tuple(compressed))
    rows, columns = [new_tensor(one, dtypes.int64, a.device) for one in natives[:2]]
    values = new_tensor(natives[2], a.dtype, a.device)
    if a.is_sparse_csr:
        return Csr.of((rows, columns, values), shape, True)
    made = Coo.of((stack([rows, columns]), values), shape, True)
    return made if a.is_sparse else made.to_sparse_csr()


# Sums and softmax


def total(input: Any, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:
    """The sum of all elements, or of those along dims: dense where no dim with indices is left, else sparse."""
    coo = input.to_sparse_coo()
    indices, values = coo.parts
    if dtype is not None:
        values = values.to(dtype)
    if dim is None:
        return values.sum()
    ndim, split = coo.dim(), indices.shape[0]
    dims = rules.wrap_dims("sum", dim, ndim)
    rest = tuple([one - split + 1 for one in dims if one >= split])
    if rest:
        values = values.sum(rest, keepdim)
    kept = [i for i in range(split) if i not in dims]
    shape = [1 if i in dims else size for i, size in enumerate(coo.native.shape) if keepdim or i not in dims]
    if not kept:
        made = values.sum(0)
        return made.reshape(shape) if keepdim else made
    picked = (
        stack([one * 0 if i in dims else one for i, one in enumerate(indices.unbind(0))]) if keepdim else indices[kept]
    )
    made = Coo.of((picked, values), shape, coo.coalesced and len(kept) == split)
    return made if len(kept) == split else made.coalesce()


def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Exponentials of the stored elements along ``dim``, scaled to sum to one; the others count as minus infinity."""
    return _softmax(input, dim, dtype, False)


def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """The logarithm of ``softmax``."""
    return _softmax(input, dim, dtype, True)


def _by_lines(values: Any, line: Any, *, count: int, log: bool) -> Any:
    shape = (count, *values.shape[1:])
    most = full(shape, -math.inf, dtype=values.dtype, device=values.device).index_reduce(
        0, line, values.detach(), "amax"
    )
    away = values - most[line]
    sums = zeros(shape, dtype=values.dtype, device=values.device).index_add(0, line, away.exp())
    return away - sums.log()[line] if log else away.exp() / sums[line]


_by_line = Fused(
    "sparse_softmax", "values line", "The softmax of those values that have one of ``count`` numbers.", _by_lines
)


def _softmax(input: Any, dim: int, dtype: Any, log: bool) -> Any:
    coo = input.to_sparse_coo().coalesce()
    indices, values = coo.parts
    values = values if dtype is None else values.to(dtype)
    at = rules.wrap_dim("softmax", dim, coo.dim())
    split = indices.shape[0]
    if at >= split:
        inner = at - split + 1
        return coo.like(values.log_softmax(inner) if log else values.softmax(inner))
    rows = indices.unbind(0)
    kept = [i for i in range(split) if i != at]
    sizes = [coo.native.shape[i] for i in kept]
    line, count = linear([rows[i] for i in kept], sizes) if kept else rows[0] * 0, math.prod(sizes)
    if count > 4 * line.shape[0]:
        lines, line = unique(line, return_inverse=True)
        count = lines.shape[0]
    made = _by_line((values, line), {"count": count, "log": log})
    return input.arranged(coo.like(made))


# Shapes, and what is asked of all elements


def joined(*tensors: Any, dim: int, shape: Any) -> Any:
    """Sparse tensors one after the other along ``dim``."""
    if not all([isinstance(one, Sparse) for one in tensors]):
        raise ShapeError("cat: expected sparse tensors all, got dense ones among them; use to_sparse() or to_dense()")
    held = [one.to_sparse_coo() for one in tensors]
    split = held[0].sparse_dim()
    if any([one.sparse_dim() != split for one in held]):
        raise ShapeError(f"cat: expected as many dims with indices, got {[one.sparse_dim() for one in held]}")
    starts, total_size, rows = [], 0, []
    for one in held:
        starts.append(total_size)
        total_size += one.native.shape[dim]
    for one, start in zip(held, starts, strict=True):
        rows.append(one.parts[0] + _step(one.parts[0], dim, start) if dim < split else one.parts[0])
    values = [one.parts[1] for one in held]
    if dim >= split:
        values = [_padded(one, dim - split + 1, start, total_size) for one, start in zip(values, starts, strict=True)]
    made = Coo.of((cat(rows, 1), cat(values)), shape)
    return tensors[0].arranged(made)


def _step(indices: Any, dim: int, start: int) -> Any:
    made = indices.new_zeros((indices.shape[0], 1))
    made[dim] = start
    return made


def _padded(values: Any, dim: int, start: int, size: int) -> Any:
    """The values with zeros around them along a dense dim."""
    before = [*values.shape[:dim], start, *values.shape[dim + 1 :]]
    after = [*before[:dim], size - start - values.shape[dim], *before[dim + 1 :]]
    return cat([values.new_zeros(before), values, values.new_zeros(after)], dim)


def stacked(*tensors: Any, dim: int) -> Any:
    """Sparse tensors of one shape along a new dim."""
    held = [one.to_sparse_coo().unsqueeze(dim) for one in tensors]
    shape = list(held[0].native.shape)
    shape[dim] = len(held)
    return joined(*held, dim=dim, shape=shape)


def permuted(input: Any, dims: Any) -> Any:
    """The dims in another order."""
    if not input.is_sparse:
        return input if dims[0] % 2 == 0 else input.transpose(0, 1)
    return input.to_sparse_coo().permute(dims)


def norm(input: Any, p: Any = 2.0, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm of all elements."""
    if dim is not None or not p > 0:
        raise KernelMissing(
            f"norm: expected all dims of a sparse tensor and p above 0, got {dim} and {p}; use to_dense()"
        )
    return input.to_sparse_coo().coalesce().parts[1].norm(p)


def true_anywhere(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any element is not zero."""
    if dim is not None:
        raise KernelMissing(f"any: expected all dims of a sparse tensor, got {dim}; use to_dense()")
    return input.to_sparse_coo().coalesce().parts[1].any()


def floor_divide(a: Any, b: Any) -> Any:
    """A sparse tensor over a number, rounded down."""
    return div(a, b, "floor")


def product_in_rows(input: Any, mat1: Any, mat2: Any, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """``beta * input + alpha * (mat1 @ mat2)`` of COO matrices ``input`` and ``mat1`` and a dense one, as a COO matrix."""
    rows = rows_of_product(mat1, mat2)
    lines, values = rows.parts
    width = mat2.shape[1]
    places = stack([lines[0].repeat_interleave(width), arange(width, device=lines.device).repeat(lines.shape[1])])
    made = Coo.of((places, values.reshape(-1) * alpha), rows.native.shape)
    return made if input is None else add(input * beta, made)


def rows_of_product(mat1: Any, mat2: Any) -> Any:
    """The product of a COO matrix and a dense one, of whose rows those are stored that have elements in ``mat1``."""
    for one, sparse in ((mat1, True), (mat2, False)):
        if isinstance(one, Sparse) is not sparse:
            raise UsageError(f"sspaddmm: expected a COO matrix and a dense one, got {mat1.layout} and {mat2.layout}")
    rules.matmul_shape("sspaddmm", tuple(mat1.shape), tuple(mat2.shape))
    row, column = mat1.to_sparse_coo().coalesce().parts[0].unbind(0)
    lines, place = unique(row, return_inverse=True)
    values = mat1.to_sparse_coo().coalesce().parts[1]
    packed = Coo.of((stack([place, column]), values), (lines.shape[0], mat1.shape[1]))
    return Coo.of((lines.unsqueeze(0), matmul(packed, mat2)), (mat1.shape[0], mat2.shape[1]))


def affine(input: Any, weight: Any, bias: Any = None) -> Any:
    """``input @ weight.T + bias``."""
    made = matmul(input, weight.t())
    return made if bias is None else made + bias


_TABLE = {
    "add": add, "any": true_anywhere, "cat": joined, "clone": lambda one: one.clone(), "div": div,
    "floor_divide": floor_divide, "index_select": lambda one, index, dim: one.index_select(dim, index), "linalg_vector_norm": norm,
    "linear": affine, "log_softmax": log_softmax, "matmul": matmul, "mul": mul, "permute": permuted, "pow": power,
    "select": lambda one, key: one[key], "softmax": softmax, "stack": stacked, "sub": sub, "sum": total, "t": permuted,
    "to": lambda one, dtype: one.to(dtype), "transpose": permuted, "unsqueeze": lambda one, dim: one.unsqueeze(dim),
}  # fmt: skip
