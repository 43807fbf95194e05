"""What sparse tensors of all layouts share: indices and values as dense tensors, and their operators and text."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

from tensorcore import dtypes, printing
from tensorcore.errors import ArgumentTypeError, KernelMissing, ShapeError, UsageError
from tensorcore.formats import Size, sparse_bsc, sparse_bsr, sparse_coo, strided
from tensorcore.ops.creation.create import zeros
from tensorcore.ops.indexing.index import index_put, nothing
from tensorcore.tape.mode import mode as grad_mode
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["ZERO_AT_ZERO", "Sparse", "count_of", "linear"]


_run: Any = None  # of ``arithmetic``, which is made of these classes, once it was asked for


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

    In the COO layout the last dims may be dense: then each index has a block of values. In the compressed layouts it is a
    matrix of which the places of the rows (or columns) in the list of the others are stored. Gradients flow through the
    values: they are sparse, in the places that are stored, also those of ``mm`` and ``sum``, for which PyTorch fills a dense
    tensor.

    Attributes:
        parts: (indices, values), of shapes (sparse_dim, nnz) and (nnz, ...), or those of a compressed matrix.
        names: what they are called.
    """

    is_sparse = is_sparse_csr = False
    native: Any
    parts: tuple[Tensor, ...]
    names: tuple[str, ...]

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentTypeError(
            "sparse: expected sparse_coo_tensor(...) or sparse_csr_tensor(...), got a constructor call"
        )

    @classmethod
    def of(cls, parts: tuple[Any, ...], shape: Any, coalesced: bool = False) -> Self:
        """Around dense tensors that fit."""
        made = object.__new__(cls)
        values = parts[-1]
        made.native = _NoArray(shape if type(shape) is Size else Size(shape))
        made.dtype, made.device = values.dtype, values.device
        made.version = made.trail = None
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

    def values(self) -> Any:
        """The elements that are stored."""
        if self.is_sparse and not self.coalesced:
            raise UsageError(
                "values: Cannot get values on an uncoalesced tensor, please call .coalesce() first: got one"
            )
        return self.parts[-1]

    def _nnz(self) -> int:
        return self.parts[-1].native.shape[0]

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

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, **_: Any) -> Any:
        """As a COO tensor, or in another layout."""
        if layout is None or layout is sparse_coo:
            return self.to_sparse_coo()
        if layout is strided:
            return self.to_dense()
        made = getattr(self, f"to_{layout.name}")
        return made(blocksize) if layout in (sparse_bsr, sparse_bsc) else made()

    def to_dense(self, dtype: Any = None, *, masked_grad: bool = True) -> Any:
        """With all its elements; of equal indices the values add up."""
        coo = self.to_sparse_coo()
        indices, values = coo.parts
        at, device = indices.native, self.device
        dims = at.shape[0]
        if not dims:
            made = values.sum(0)
        elif values.node is None:
            kernels, places = device.kernels, ()
            index = kernels["index"]
            for dim in range(dims):
                places += (index(at, key=(dim,)),)
            native = kernels["full"](coo.native.shape, 0, dtype=values.dtype)
            native = kernels["index_put"](native, values.native, indices=places, accumulate=True, out=native)
            made = new_tensor(native, values.dtype, device)
        else:
            made = index_put(nothing(values, coo.native.shape), indices.unbind(0), values, True)
        return made if dtype is None else made.to(dtype)

    def t(self) -> Any:
        """The matrix with its dims swapped."""
        return self.transpose(0, 1) if self.dim() == 2 else self

    T = property(t)

    def emptied(self, dtype: Any, device: Any, requires_grad: bool = False) -> Any:
        """A tensor of the same size and layout without elements."""
        values = zeros(0, *self.parts[-1].shape[1:], dtype=dtype, device=device, requires_grad=requires_grad)
        kept = self.parts[0].new_zeros((self.parts[0].shape[0], 0), device=device)
        return type(self).of((kept, values), self.native.shape, True)

    def copy_(self, source: Any, non_blocking: bool = False) -> Self:
        """Take over the elements of another sparse tensor of the same size, in place."""
        if not isinstance(source, Sparse) or tuple(source.native.shape) != tuple(self.native.shape):
            raise ShapeError(f"copy_: expected a sparse tensor of size {tuple(self.shape)}, got {tuple(source.shape)}")
        made = self.arranged(source.to_sparse_coo())  # type: ignore[attr-defined]
        return self._become(made.to(self.device, self.dtype).clone())

    def _become(self, made: Any) -> Self:
        if self.node is not None and grad_mode.enabled and self.parts[-1].is_leaf:
            raise UsageError("a leaf Variable that requires grad is being used in an in-place operation.")
        if not isinstance(made, Sparse) or made.dtype is not self.dtype:
            raise UsageError(
                f"expected a result that can stand in a sparse tensor of {self.dtype}, got a "
                f"{'dense tensor' if not isinstance(made, Sparse) else made.dtype}; use the form without _"
            )
        self.parts, self.coalesced = made.parts, made.coalesced
        return self

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
        global _run
        if _run is None:
            _run = import_module("tensorcore.ops.sparse.arithmetic").run
        return _run(op, inputs, options or {})


def linear(indices: Any, shape: Any) -> Any:
    """Each column of ``indices``, a matrix or a sequence of its rows, as the place of that element in row-major order."""
    rows = indices.unbind(0) if isinstance(indices, Tensor) else indices
    if not rows:
        return indices.new_zeros(indices.shape[1])
    place = rows[0]
    for size, one in zip(shape[1:], rows[1:], strict=True):
        place = place * size + one
    return place


def count_of(shape: Any) -> int:
    return Size(shape).numel()


# Operators and methods

# Ops of one tensor that leave zeros zeros.
ZERO_AT_ZERO = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "isinf", "isnan",
    "isneginf", "isposinf", "log1p", "nan_to_num", "neg",
    "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip


def _operator(name: str, op: str, flipped: bool = False) -> None:
    def call(self: Sparse, *inputs: Any, **options: Any) -> Any:
        return self.instead(op, (*inputs, self) if flipped else (self, *inputs), options)

    call.__name__ = call.__qualname__ = name
    setattr(Sparse, name, call)


for _name in (
    *ZERO_AT_ZERO,
    "add",
    "sub",
    "mul",
    "div",
    "floor_divide",
    "pow",
    "matmul",
    "sum",
    "softmax",
    "log_softmax",
):
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


def _in_place(name: str, op: str) -> None:
    def call(self: Sparse, *inputs: Any, **options: Any) -> Sparse:
        return self._become(self.instead(op, (self, *inputs), options))

    call.__name__ = call.__qualname__ = name
    setattr(Sparse, name, call)


for _name in (*ZERO_AT_ZERO, "add", "sub", "mul", "div", "pow"):
    if not _name.startswith("is"):
        _in_place(f"{_name}_", _name)
for _name, _op in {"__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div"}.items():
    _in_place(_name, _op)


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
    parts = []
    for name, part in zip(one.names, one.parts, strict=True):
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
