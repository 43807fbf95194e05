"""Products of vectors and matrices. ``einsum`` and ``tensordot`` are in ``contract.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from tensorcore import dtypes
from tensorcore.backend.base import Native
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, ShapeError, UnsupportedDtype, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply, binary, naming
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import BOOL, COMPLEX, FLOATING, INTEGER, NUMBERS, operation
from tensorcore.ops.mixed import foreign
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.pointwise.arithmetic import mul
from tensorcore.ops.pointwise.complex import _conj
from tensorcore.ops.record import record
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.shape import in_shape
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import in_python, pair_way, product_place_way, product_way
from tensorcore.tape.mode import makers, mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "bmm", "chain_matmul", "cross", "dot", "ger", "inner", "kron", "matmul", "mm", "mv", "outer", "trace", "vdot",
]  # fmt: skip

Ints = tuple[int, ...]

new = object.__new__
makers.append(globals())
_FIELDS = FLOATING | COMPLEX

# The gradients of a product. ``_matmul_nt`` and ``_matmul_tn`` read one operand transposed, so a walk
# makes no views; the three products are each other's derivatives.


def left_gradient(g: Tensor, right: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of the left operand of a product, which has that shape."""
    right_dims = len(right.native.shape)
    if right_dims == 1:
        return g.unsqueeze(-1) * conjugate(right)
    if len(shape) == 1 and right_dims == 2:
        return matmul(conjugate(right), g)
    if len(shape) == 1:
        return _times_adjoint(g.unsqueeze(-2), right).squeeze(-2)
    return _times_adjoint(g, right)


def right_gradient(g: Tensor, left: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of the right operand of a product, which has that shape."""
    left_dims = len(left.native.shape)
    if left_dims == 1:
        return g * conjugate(left) if len(shape) == 1 else conjugate(left).unsqueeze(-1) * g.unsqueeze(-2)
    if left_dims == 2 and len(shape) == 2:
        return adjoint_times(left, g)
    if len(shape) > 2:
        return adjoint_times(left, g)
    # One matrix for the whole batch: the batch becomes rows, and the sum over it a part of the product.
    folded = left.reshape(rows_of(left.native.shape), left.native.shape[-1])
    if len(shape) == 1:
        return matmul(g.reshape(-1), conjugate(folded))
    return adjoint_times(folded, g.reshape(rows_of(g.native.shape), g.native.shape[-1]))


def _times_adjoint(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_complex or not x.device.kernels["matmul_nt"]:
        return matmul(x, conjugate(y).transpose(-1, -2))
    return _matmul_nt(x, y)


def adjoint_times(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_complex or not x.device.kernels["matmul_tn"]:
        return matmul(conjugate(x).transpose(-1, -2), y)
    return _matmul_tn(x, y)


def conjugate(x: Tensor) -> Tensor:
    return x.conj() if x.dtype.is_complex else x  # type: ignore[attr-defined]


def _plain_pair(x: Tensor, y: Tensor) -> bool:
    """Whether kernels may be asked for a product without another look: nothing to record, to promote or to wrap."""
    return (
        type(x) is Tensor is type(y)
        and x.node is None is y.node
        and x.dtype is y.dtype
        and (x.dtype in _FIELDS or x.dtype.kind == "integer")
        and x.device is y.device
    )


def _reshaped(kernel: str, x: Tensor, a: Ints, y: Tensor, b: Ints, shape: Ints) -> Tensor:
    """What the kernel makes of a plain pair seen in the shapes ``a`` and ``b``, in another shape."""
    device = x.device

    def run(left: Native, right: Native) -> Native:
        return in_shape(device, device.kernels[kernel](in_shape(device, left, a), in_shape(device, right, b)), shape)

    try:
        native = run(x.native, y.native)
    except MemoryError as error:
        native = again(device, kernel, (x.native, y.native), {}, error, run)
    return new_tensor(native, x.dtype, device)


def rows_of(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape[:-1]:
        count *= size
    return count


def _product(name: str, doc: str, backward_name: str, grads: dict[str, Any], register: bool = False) -> Op:
    op = Op(
        name, "input other", doc, grads=grads, backward_name=backward_name, register=register, samples=samples.matmul
    )
    op.dtypes = _product_dtypes  # type: ignore[attr-defined]
    op.explain = _explain  # type: ignore[attr-defined]
    return op


def _product_dtypes(op: Op, values: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
    for name, one in zip(op.inputs, values, strict=True):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op.name}: expected argument '{name}' to be a Tensor, got {type(one).__name__}; use * for a number"
            )
    one_dtype(op.name, *values)
    return values[0].dtype, values[0].dtype


def _explain(inputs: Sequence[Any], error: Exception) -> Exception:
    if not all(isinstance(one, Tensor) for one in inputs):
        found = next(type(one).__name__ for one in inputs if not isinstance(one, Tensor))
        return ArgumentTypeError(f"matmul: expected two Tensors, got {found}; use * for a number")
    try:
        rules.matmul_shape("matmul", *[tuple(one.native.shape) for one in inputs])
    except ShapeError as clearer:
        return clearer
    return error


def one_dtype(op: str, *tensors: Any) -> None:
    first = tensors[0].dtype
    for one in tensors[1:]:
        if one is not None and one.dtype is not first:
            raise DtypeError(
                f"{op}: expected m1 and m2 to have the same dtype, but got: {first.name} != {one.dtype.name}; "
                f"convert one with .to(...)"
            )
    if first.kind == "bool":
        raise DtypeError(
            f'{op}: "addmm_impl_cpu_" not implemented for bool, got a tensor of it; convert it with .to(...)'
        )


_GRADS = dict(
    input=lambda g, other, input_shape: left_gradient(g, other, input_shape),
    other=lambda g, input, other_shape: right_gradient(g, input, other_shape),
)
_NOT_BOOL = frozenset(one for one in dtypes.ALL if one.kind != "bool")

_op = _product("matmul", "Product of two tensors as matrices.", "MmBackward0", _GRADS, register=True)
matmul = binary(_op, _NOT_BOOL, None)
_python = in_python(matmul)
_python.__module__, _python.__name__, _python.__qualname__ = "tensorcore", "matmul", "matmul"  # where pickles find it
_python.__doc__ = """Product of vectors, matrices, or batches of matrices.

    Shapes: (k) (k) -> (); (m, k) (k, n) -> (m, n); (k) (..., k, n) -> (..., n); (..., m, k) (k) -> (..., m);
    (..., m, k) (..., k, n) -> (..., m, n) with the dims in front broadcast. Both of one dtype.
    """
_op.function = matmul
Tensor.matmul = matmul  # type: ignore[attr-defined]
Tensor.__matmul__ = binary(_op, _NOT_BOOL, None, leave=foreign)  # type: ignore[attr-defined]
Tensor.__rmatmul__ = lambda self, other: matmul(other, self)  # type: ignore[attr-defined]

_matmul_nt = binary(
    _product("matmul_nt", "A product with the right operand transposed.", "MmBackward0", dict(
        input=lambda g, other: matmul(g, other), other=lambda g, input: adjoint_times(g, input),
    )), None, None)  # fmt: skip
_matmul_tn = binary(
    _product("matmul_tn", "A product with the left operand transposed.", "MmBackward0", dict(
        input=lambda g, other: _times_adjoint(other, g), other=lambda g, input: matmul(input, g),
    )), None, None)  # fmt: skip


def _named(name: str, backward_name: str) -> Op:
    return Op(
        name, "input other", "A product.", grads=_GRADS, kernel="matmul", backward_name=backward_name, register=False
    )


_mm, _bmm, _mv, _dot = (_named(name, f"{name.capitalize()}Backward0") for name in ("mm", "bmm", "mv", "dot"))


def _checked(op: Op, x: Tensor, y: Tensor, dims: tuple[int, int], text: str, out: Tensor | None) -> Tensor:
    """A product of two tensors of exactly these numbers of dims, whose inner sizes must agree."""
    check_tensors(op.name, input=x, other=y)
    a, b = tuple(x.native.shape), tuple(y.native.shape)
    if (len(a), len(b)) != dims:
        raise ShapeError(f"{op.name}: {text}, got {len(a)}D and {len(b)}D; matmul takes other numbers of dims")
    if len(a) == 3 and a[0] != b[0]:
        raise ShapeError(
            f"{op.name}: expected as many matrices in both batches, got {list(a)} and {list(b)}; use matmul"
        )
    rules.matmul_shape(op.name, a, b)
    one_dtype(op.name, x, y)
    made = apply(op, (x, y)) if type(x) is Tensor is type(y) else matmul(x, y)
    return made if out is None else store(op.name, made, out)


def _of_dims(op: Op, second: str, dims: tuple[int, int], text: str, doc: str, calls: Any) -> Callable[..., Tensor]:
    """The call of a product of two tensors of exactly these numbers of dims; the usual one is one frame."""
    first_dims, other_dims = dims
    inner, batched = -2 if other_dims > 1 else -1, first_dims == 3
    usual = product_way(op, "matmul", again, _FIELDS | INTEGER, dims)
    into = product_place_way(op, "matmul", _FIELDS | INTEGER, dims, store)

    @naming(second)
    def call(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        if (done := usual(input, other) if out is None else into(out, input, other)) is not None:
            return done  # type: ignore[no-any-return]
        if (
            type(input) is Tensor
            and type(other) is Tensor
            and input.dtype is other.dtype
            and input.dtype in _FIELDS
            and input.device is other.device
            and out is None
        ):
            x, y = input.native, other.native
            a, b = x.shape, y.shape
            if len(a) == first_dims and len(b) == other_dims and a[-1] == b[inner] and not (batched and a[0] != b[0]):
                device = input.device
                try:
                    native = device.kernels["matmul"](x, y)
                except MemoryError as error:
                    native = again(device, "matmul", (x, y), {}, error)
                made = new(Tensor)
                made.native = native if type(native) is device.array else device.as_native(native)
                made.dtype = input.dtype
                made.device = device
                made.node = made.version = made.trail = None
                if (input.node is not None or other.node is not None) and mode.enabled:
                    record(op, (input, other), None, made)
                return made
        return _checked(op, input, other, dims, text, out)

    call.__annotations__ = {second if one == "other" else one: text for one, text in call.__annotations__.items()}
    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = doc
    return operation(samples=calls, name=op.name)(call)


mm = _of_dims(
    _mm, "mat2", (2, 2), "self and mat2 must be a matrix", "Product of the matrices (m, k) and (k, n).", samples.mm
)
bmm = _of_dims(_bmm, "mat2", (3, 3), "batch1 and batch2 must be a 3D tensor",
               "Products of the matrices of two batches, (b, m, k) and (b, k, n).", samples.bmm)  # fmt: skip
mv = _of_dims(_mv, "vec", (2, 1), "vector + matrix @ vector expected a matrix and a vector",
              "Product of the matrix (m, k) and the vector (k).", samples.mv)  # fmt: skip
dot = _of_dims(_dot, "tensor", (1, 1), "1D tensors expected", "Sum of the products of two vectors' elements.",
               samples.dot)  # fmt: skip


@operation(samples=samples.dot)
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As ``dot``, with the first vector conjugated."""
    if type(input) is not Tensor:
        check_tensors("vdot", input=input, other=other)
    return dot(_conj(input) if input.dtype.is_complex else input, other, out=out)


@operation(samples=samples.inner)
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products summed over the last dim of both; a 0-d tensor multiplies."""
    check_tensors("inner", input=input, other=other)
    a, b = input.native.shape, other.native.shape
    if not a or not b:
        return mul(input, other, out=out)
    if a[-1] != b[-1]:
        raise ShapeError(
            f"inner: inner() the last dimension must match on both input tensors, got {list(a)} and {list(b)}; transpose one"
        )
    shape, device = (*a[:-1], *b[:-1]), input.device
    if _plain_pair(input, other) and device.kernels["matmul_nt"]:
        made = _reshaped("matmul_nt", input, (rows_of(a), a[-1]), other, (rows_of(b), b[-1]), shape)
    else:
        made = matmul(input.reshape(rows_of(a), a[-1]), other.reshape(rows_of(b), b[-1]).t()).reshape(shape)
    return made if out is None else store("inner", made, out)


@operation(samples=samples.outer)
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of each element of a vector (m) with each of another (n), as (m, n)."""
    check_tensors("outer", input=input, vec2=vec2)
    if len(input.native.shape) != 1 or len(vec2.native.shape) != 1:
        raise ShapeError(
            f"outer: outer: Expected 1-D arguments, got {len(input.native.shape)}-D and {len(vec2.native.shape)}-D; use flatten()"
        )
    made = input.unsqueeze(1) * vec2
    return made if out is None else store("outer", made, out)


@operation(samples=samples.outer)
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Another name of ``outer``."""
    return outer(input, vec2, out=out)


# Products of more than two, and of one with itself


@lru_cache(1024)
def _spread_sizes(a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """The shapes in which each element of one tensor meets the whole of another, and that of the result."""
    left, right = [size for x in a for size in (x, 1)], [size for y in b for size in (1, y)]
    return tuple(left), tuple(right), tuple([x * y for x, y in zip(a, b, strict=True)])


@operation(samples=samples.kron)
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: each element of ``input`` times the whole of ``other``, dim by dim."""
    if type(input) is not Tensor or type(other) is not Tensor:
        check_tensors("kron", input=input, other=other)
    a, b = tuple(input.native.shape), tuple(other.native.shape)
    if len(a) != len(b):
        ndim = max(len(a), len(b))
        a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    left, right, shape = _spread_sizes(a, b)
    bools = type(input) is type(other) is Tensor and input.dtype is other.dtype is dtypes.bool_
    if _plain_pair(input, other) or (bools and input.device is other.device):
        made = _reshaped("mul", input, left, other, right, shape)
    else:
        made = (input.reshape(left) * other.reshape(right)).reshape(shape)
    return made if out is None else store("kron", made, out)


@operation(samples=samples.chain, method=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of several matrices in the order of fewest multiplications (the classic dynamic program)."""
    check_tensors("chain_matmul", **{f"matrices[{i}]": one for i, one in enumerate(matrices)})
    if not matrices:
        raise UsageError("chain_matmul: Expecting at least 1 matrix, got none; pass matrices")
    for one in matrices:
        if len(one.native.shape) != 2:
            raise ShapeError(
                f"chain_matmul: Tensor dimension is {len(one.native.shape)}, expected 2 instead; use matmul"
            )
    for x, y in pairwise(matrices):
        rules.matmul_shape("chain_matmul", tuple(x.native.shape), tuple(y.native.shape))
    made = chained(matrices)
    return made if out is None else store("chain_matmul", made, out)


def chained(matrices: Sequence[Tensor]) -> Tensor:
    """As ``chain_matmul``, of matrices that fit."""
    count = len(matrices)
    if count == 3:
        x, y, z = matrices
        (a, b), (c, d) = x.native.shape, z.native.shape
        return mm(x, mm(y, z)) if b * d * (a + c) <= a * c * (b + d) else mm(mm(x, y), z)
    split = rules.chain_splits((*[one.native.shape[0] for one in matrices], matrices[-1].native.shape[1]))

    def multiply(i: int, j: int) -> Tensor:
        return matrices[i] if i == j else mm(multiply(i, split[i][j]), multiply(split[i][j] + 1, j))

    return multiply(0, count - 1)


take_diagonal = Op("take_diagonal", "input", "Elements of equal index along two dims.", register=False, backward_name="DiagonalBackward0",
    grads=dict(input=lambda g, input_shape, dim1, dim2: apply(put_diagonal, (g,), {
        "shape": tuple(input_shape), "dim1": dim1, "dim2": dim2})))  # fmt: skip
put_diagonal = Op("put_diagonal", "input", "Zeros with the input where two dims have equal index.", register=False,
    grads=dict(input=lambda g, dim1, dim2: apply(take_diagonal, (g,), {"dim1": dim1, "dim2": dim2})))  # fmt: skip


@operation(samples=samples.matrix)
def trace(input: Tensor) -> Tensor:
    """Sum of a matrix's diagonal."""
    if type(input) is not Tensor:
        check_tensors("trace", input=input)
    if len(input.native.shape) != 2:
        raise ShapeError(f"trace: trace: expected a matrix, but got tensor with dim {len(input.native.shape)}")
    if input.node is None and (input.dtype in _FIELDS or input.dtype is dtypes.int64):
        kernels = input.device.kernels
        native = kernels["sum"](kernels["take_diagonal"](input.native, dim1=0, dim2=1))
        return new_tensor(native, input.dtype, input.device)
    return apply(take_diagonal, (input,), {"dim1": 0, "dim2": 1}).sum()  # type: ignore[no-any-return]


_cross = Op("cross", "input other", "The vectors at right angles to both.", backward_name="LinalgCrossBackward0", register=False,
    grads=dict(input=lambda g, other, dim: apply(_cross, (conjugate(other), g), {"dim": dim}),
               other=lambda g, input, dim: apply(_cross, (g, conjugate(input)), {"dim": dim})))  # fmt: skip


def cross_way(default: int | None, positions: int) -> Any:
    """The short way of cross products along a dim."""
    return pair_way(_cross, NUMBERS - BOOL, "dim", default, positions, record, store, again)


@operation(samples=samples.cross, way=cross_way(None, 3))
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product of the vectors along ``dim``, which has size 3; without it the first dim of that size."""
    if type(input) is Tensor is type(other) and input.dtype is other.dtype is not dtypes.bool_ and out is None:
        sizes, others = input.native.shape, other.native.shape
        if (
            type(dim) is int
            and -len(sizes) <= dim < len(sizes)
            and sizes[dim] == 3
            and (
                sizes == others
                or (  # the kernel broadcasts, the formulas of its gradient do not
                    input.node is other.node is None
                    and len(sizes) == len(others)
                    and others[dim] == 3
                    and rules.broadcast("cross", sizes, others)
                )
            )
        ):
            return apply(_cross, (input, other), {"dim": dim % len(sizes)})  # type: ignore[no-any-return]
    check_tensors("cross", input=input, other=other)
    if len(input.native.shape) != len(other.native.shape):
        raise ShapeError(
            f"cross: inputs must have the same number of dimensions, got {len(input.native.shape)} and {len(other.native.shape)}"
        )
    shape = rules.broadcast("cross", tuple(input.native.shape), tuple(other.native.shape))
    if dim is None:
        if 3 not in shape:
            raise ShapeError(f"cross: no dimension of size 3 in input, got {list(shape)}; give dim")
        dim = shape.index(3)
    if not shape:
        raise DimensionError(
            f"cross: Dimension specified as {dim} but tensor has no dimensions, got 0-d tensors; give vectors"
        )
    at = rules.wrap_dim("cross", dim, len(shape))
    if input.native.shape[at] != 3 or other.native.shape[at] != 3:
        raise ShapeError(
            f"cross: inputs dimension {dim} must have length 3, got {list(input.shape)} and {list(other.shape)}"
        )
    if input.dtype is not other.dtype:
        raise DtypeError(
            f"cross: expected one scalar type, got {input.dtype} and {other.dtype}; convert one with .to(...)"
        )
    if input.dtype is dtypes.bool_:
        raise UnsupportedDtype(
            "cross: \"cross\" not implemented for 'Bool', got tensors of it; convert them with .to(...)"
        )
    pair = [one if tuple(one.native.shape) == shape else one.expand(shape) for one in (input, other)]
    made = apply(_cross, pair, {"dim": at})
    return made if out is None else store("cross", made, out, input, other, all_of_it=True)
