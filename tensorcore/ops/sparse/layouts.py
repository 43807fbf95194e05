"""The classes of sparse tensors: indices and values as dense tensors, from which every op is made of the dense ones."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

from tensorcore import dtypes, printing
from tensorcore.errors import ArgumentTypeError, DimensionError, KernelMissing, ShapeError, UsageError
from tensorcore.formats import layout as Layout
from tensorcore.formats import sparse_coo, sparse_csr
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange, tensor, zeros
from tensorcore.ops.indexing.masked import bincount
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.sort import searchsorted, unique
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Size, Tensor

__all__ = ["ZERO_AT_ZERO", "Coo", "Csr", "Sparse", "count_of", "linear", "unraveled"]


class _Absent(KernelMissing, AttributeError):
    """What a dense op meets that asks a sparse tensor for its array."""


class _NoArray:
    """Stands where a dense tensor has its native array: it has a shape, and no elements."""

    __slots__ = ("shape",)
    __array_ufunc__ = None

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def __getattr__(self, name: str) -> Any:
        raise _Absent(f"sparse: expected a dense tensor, got a sparse one of size {self.shape}; use to_dense()")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise _Absent(f"sparse: expected a dense tensor, got a sparse one of size {self.shape}; use to_dense()")


class Sparse(Tensor):
    """A tensor of which only some elements are stored, the others being zero.

    In the COO layout the last dims may be dense: then each index has a block of values. In the CSR layout it is a
    matrix whose rows' places in the list of columns are stored. Gradients flow through the values.

    Attributes:
        parts: (indices, values), of shapes (sparse_dim, nnz) and (nnz, ...), or (crow_indices, col_indices, values).
    """

    is_sparse = is_sparse_csr = False
    native: Any
    parts: tuple[Tensor, ...]

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentTypeError(
            "sparse: expected sparse_coo_tensor(...) or sparse_csr_tensor(...), got a constructor call"
        )

    @classmethod
    def of(cls, parts: tuple[Any, ...], shape: Any, coalesced: bool = False) -> Self:
        """Around dense tensors that fit."""
        made = object.__new__(cls)
        values = parts[-1]
        made.native = _NoArray(Size(shape))
        made.dtype, made.device = values.dtype, values.device
        made.version = made.origin = None
        made.parts = parts
        made.coalesced = coalesced
        return made

    def like(self, values: Any) -> Self:
        """Other values in the same places."""
        return type(self).of((*self.parts[:-1], values), self.native.shape, self.coalesced)

    # The tape knows the values.

    @property
    def node(self) -> Any:  # type: ignore[override]
        """Where the values came from."""
        return self.parts[-1].node

    @property
    def grad(self) -> Any:
        """The gradient of the values, in the same places."""
        found = self.parts[-1].grad
        return None if found is None else self.like(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self.parts[-1].grad = None if value is None else value.parts[-1]

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Ask for gradients of the values, or no longer, in place."""
        self.parts[-1].requires_grad_(requires_grad)
        return self

    def detach(self) -> Self:
        """The same values off the tape."""
        return self.like(self.parts[-1].detach())

    # What it is

    @property
    def layout(self) -> Layout:
        """How the elements are stored."""
        return sparse_coo if self.is_sparse else sparse_csr

    def values(self) -> Any:
        """The elements that are stored."""
        if self.is_sparse and not self.coalesced:
            raise UsageError(
                "values: Cannot get values on an uncoalesced tensor, please call .coalesce() first: got one"
            )
        return self.parts[-1]

    def _nnz(self) -> int:
        return self.parts[-1].shape[0]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: there is no memory of all elements."""
        return False

    def stride(self, dim: int | None = None) -> Any:
        raise UsageError("stride: Sparse tensors do not have strides, got one; use to_dense()")

    def numpy(self, *, force: bool = False) -> Any:
        raise ArgumentTypeError(f"numpy: can't convert {self.layout} layout tensor to numpy, got one; use to_dense()")

    # Copies

    def clone(self, *, memory_format: Any = None) -> Self:
        """A copy of indices and values."""
        return type(self).of(tuple([one.clone() for one in self.parts]), self.native.shape, self.coalesced)

    def to(self, *args: Any, **options: Any) -> Any:
        """On another device, or in another dtype."""
        values = self.parts[-1].to(*args, **options)
        return type(self).of(
            (*[one.to(values.device) for one in self.parts[:-1]], values), self.native.shape, self.coalesced
        )

    def cpu(self, device: Any = "cpu") -> Any:
        """In host memory."""
        return self.to(device)

    def cuda(self, device: Any = "cuda") -> Any:
        """On an accelerator."""
        return self.to(device)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = self.detach().clone()
        return made.requires_grad_() if self.requires_grad else made

    def __reduce_ex__(self, protocol: Any) -> Any:
        held = tuple([one.detach() for one in self.parts])
        return type(self).of, (held, tuple(self.native.shape), self.coalesced)

    # Of both layouts

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None, **_: Any) -> Any:
        """As a COO tensor, or in another layout."""
        if layout is sparse_csr:
            return self.to_sparse_csr()
        return self.to_sparse_coo()

    def to_dense(self, dtype: Any = None, *, masked_grad: bool = True) -> Any:
        """With all its elements; of equal indices the values add up."""
        coo = self.to_sparse_coo()
        indices, values = coo.parts
        shape, split = coo.native.shape, indices.shape[0]
        flat = zeros(count_of(shape[:split]), *values.shape[1:], dtype=values.dtype, device=values.device)
        made = flat.index_add(0, linear(indices, shape[:split]), values).reshape(shape)
        return made if dtype is None else made.to(dtype)

    def t(self) -> Any:
        """The matrix with its dims swapped."""
        return self.transpose(0, 1) if self.dim() == 2 else self

    T = property(t)

    def zero_(self) -> Self:
        """Forget all elements, in place."""
        with no_grad():
            self.parts[-1].zero_()
        return self

    def __repr__(self, default_device: str = "cpu") -> str:
        return _text(self, default_device)

    @staticmethod
    def instead(op: str, inputs: Any, options: Any = None) -> Any:
        """What an op of the dense tensors does where one of its inputs is sparse."""
        return import_module("tensorcore.ops.sparse.arithmetic").run(op, inputs, options or {})


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
        """One slice along the first dim: sparse, or the value of a vector."""
        if not isinstance(index, int):
            raise KernelMissing(
                f"index: expected a number for a sparse tensor, got {index!r}; use index_select or to_dense()"
            )
        made = self.index_select(0, tensor([index], device=self.device))
        indices, values = made.parts
        return values.sum(0) if indices.shape[0] == 1 else Coo.of((indices[1:], values), made.native.shape[1:])

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


def linear(indices: Any, shape: Any) -> Any:
    """Each column of ``indices`` as the place of that element in row-major order."""
    place = indices.new_zeros(indices.shape[1])
    for size, one in zip(shape, indices.unbind(0), strict=True):
        place = place * size + one
    return place


def unraveled(places: Any, shape: Any) -> Any:
    """The turn round of ``linear``."""
    rows = []
    for size in reversed(shape):
        rows.append(places % max(size, 1))
        places = places // max(size, 1)
    return stack(rows[::-1]) if rows else places.new_zeros((0, *places.shape))


def count_of(shape: Any) -> int:
    return Size(shape).numel()


# Operators and methods

# Ops of one tensor that leave zeros zeros.
ZERO_AT_ZERO = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "log1p", "neg",
    "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip


def _operator(name: str, op: str, flipped: bool = False) -> None:
    def call(self: Sparse, *inputs: Any, **options: Any) -> Any:
        return self.instead(op, (*inputs, self) if flipped else (self, *inputs), options)

    call.__name__ = call.__qualname__ = name
    setattr(Sparse, name, call)


for _name in (*ZERO_AT_ZERO, "add", "sub", "mul", "div", "pow", "matmul", "sum", "softmax", "log_softmax"):
    _operator(_name, _name)
for _name in ("add", "sub", "mul", "matmul"):
    _operator(f"__{_name}__", _name)
    _operator(f"__r{_name}__", _name, True)
for _name, _op in {
    "__truediv__": "div",
    "__pow__": "pow",
    "__neg__": "neg",
    "__abs__": "abs",
    "mm": "matmul",
    "mv": "matmul",
}.items():
    _operator(_name, _op)


def _converting(name: str, dtype: dtypes.dtype) -> None:
    def convert(self: Sparse) -> Any:
        return self.to(dtype)

    convert.__name__ = convert.__qualname__ = name
    setattr(Sparse, name, convert)


for _name, _dtype in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "int": dtypes.int32, "long": dtypes.int64, "bool": dtypes.bool_,
}.items():  # fmt: skip
    _converting(_name, _dtype)


# Printing


def _text(one: Any, default_device: str) -> str:
    """A sparse tensor as PyTorch prints it."""
    names = ("indices", "values") if one.is_sparse else ("crow_indices", "col_indices", "values")
    parts = []
    for name, part in zip(names, one.parts, strict=True):
        prefix = f"{name}=tensor("
        made = part.device.is_made(part.native)  # whoever prints it makes nothing
        shown = f"{prefix}..., size={tuple(part.shape)})" if not made else printing.format_tensor(
            part.device.to_host(part.native), dtype=part.dtype, shape=tuple(part.shape), device=None, grad_fn=None,
            requires_grad=False, default_dtype=part.dtype, prefix=" " * 7 + prefix,
        ).strip()  # fmt: skip
        if not part.numel():  # says its size here, and no dtype
            shown = f"{prefix}[], size={tuple(part.shape)})"
        parts.append(shown)
    found = [f"size={tuple(one.shape)}", f"nnz={one._nnz()}"]
    if str(one.device) != default_device:
        found.insert(0, f"device='{one.device}'")
    if one.dtype not in (
        dtypes.get_default_dtype(),
        dtypes.get_default_dtype().to_complex(),
        dtypes.int64,
        dtypes.bool_,
    ):
        found.append(f"dtype={one.dtype}")
    found.append(f"layout={one.layout}")
    fn = one.grad_fn
    if fn is not None:
        found.append(f"grad_fn=<{fn.name().rpartition(':')[2]}>")
    elif one.requires_grad:
        found.append("requires_grad=True")
    head = "tensor(" + (",\n" + " " * 7).join(parts)
    if one.is_sparse:
        head += ",\n" + " " * 7 + found.pop(0)
    return printing.append_suffixes(head, found, 7)
