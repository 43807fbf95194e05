"""Products of vectors and matrices. ``einsum`` and ``tensordot`` are in ``contract.py``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, GradientError, LinAlgError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops import samples_nn as samples
from tensorcore.ops.calls import apply, binary
from tensorcore.ops.define import Op, same
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import result_type
from tensorcore.ops.output import store
from tensorcore.tape.memory import next_order
from tensorcore.tape.mode import unusual
from tensorcore.tape.node import Node
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "chain_matmul", "cross", "dot", "ger", "inner", "kron",
    "linear", "matmul", "matrix_power", "mm", "mv", "outer", "trace", "vdot",
]  # fmt: skip


# The gradients of a product. ``_matmul_nt`` and ``_matmul_tn`` read one operand transposed, so a walk
# makes no views; the three products are each other's derivatives.


def _left(g: Tensor, right: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of the left operand of a product, which has that shape."""
    right_dims = len(right.native.shape)
    if right_dims == 1:
        return g.unsqueeze(-1) * _conj(right)
    if len(shape) == 1 and right_dims == 2:
        return matmul(_conj(right), g)
    if len(shape) == 1:
        return _times_adjoint(g.unsqueeze(-2), right).squeeze(-2)
    return _times_adjoint(g, right)


def _right(g: Tensor, left: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of the right operand of a product, which has that shape."""
    left_dims = len(left.native.shape)
    if left_dims == 1:
        return g * _conj(left) if len(shape) == 1 else _conj(left).unsqueeze(-1) * g.unsqueeze(-2)
    if left_dims == 2 and len(shape) == 2:
        return _adjoint_times(left, g)
    if len(shape) > 2:
        return _adjoint_times(left, g)
    # One matrix for the whole batch: the batch becomes rows, and the sum over it a part of the product.
    folded = left.reshape(_rows(left.native.shape), left.native.shape[-1])
    if len(shape) == 1:
        return matmul(g.reshape(-1), _conj(folded))
    return _adjoint_times(folded, g.reshape(_rows(g.native.shape), g.native.shape[-1]))


def _times_adjoint(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_complex or not x.device.kernels["matmul_nt"]:
        return matmul(x, _conj(y).transpose(-1, -2))
    return _matmul_nt(x, y)


def _adjoint_times(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_complex or not x.device.kernels["matmul_tn"]:
        return matmul(_conj(x).transpose(-1, -2), y)
    return _matmul_tn(x, y)


def _conj(x: Tensor) -> Tensor:
    return x.conj() if x.dtype.is_complex else x  # type: ignore[attr-defined]


def _rows(shape: tuple[int, ...]) -> int:
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
    _one_dtype(op.name, *values)
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


def _one_dtype(op: str, *tensors: Any) -> None:
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
    input=lambda g, other, input_shape: _left(g, other, input_shape),
    other=lambda g, input, other_shape: _right(g, input, other_shape),
)
_NOT_BOOL = frozenset(one for one in dtypes.ALL if one.kind != "bool")

_op = _product("matmul", "Product of two tensors as matrices.", "MmBackward0", _GRADS, register=True)
matmul = binary(_op, _NOT_BOOL, None)
matmul.__name__ = matmul.__qualname__ = "matmul"
matmul.__doc__ = """Product of vectors, matrices, or batches of matrices.

    Shapes: (k) (k) -> (); (m, k) (k, n) -> (m, n); (k) (..., k, n) -> (..., n); (..., m, k) (k) -> (..., m);
    (..., m, k) (..., k, n) -> (..., m, n) with the dims in front broadcast. Both of one dtype.
    """
_op.function = matmul
Tensor.matmul = Tensor.__matmul__ = matmul  # type: ignore[attr-defined]

_matmul_nt = binary(
    _product("matmul_nt", "A product with the right operand transposed.", "MmBackward0", dict(
        input=lambda g, other: matmul(g, other), other=lambda g, input: _adjoint_times(g, input),
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
    _tensors(op.name, x, y)
    a, b = tuple(x.native.shape), tuple(y.native.shape)
    if (len(a), len(b)) != dims:
        raise ShapeError(f"{op.name}: {text}, got {len(a)}D and {len(b)}D; matmul takes other numbers of dims")
    if len(a) == 3 and a[0] != b[0]:
        raise ShapeError(
            f"{op.name}: expected as many matrices in both batches, got {list(a)} and {list(b)}; use matmul"
        )
    rules.matmul_shape(op.name, a, b)
    _one_dtype(op.name, x, y)
    made = apply(op, (x, y))
    return made if out is None else store(op.name, made, out)


def _tensors(op: str, *values: Any) -> None:
    for one in values:
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"{op}: expected Tensors, got {type(one).__name__}; wrap it in torch.tensor(...)")


@operation(samples=samples.mm)
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of the matrices (m, k) and (k, n)."""
    return _checked(_mm, input, mat2, (2, 2), "self and mat2 must be a matrix", out)


@operation(samples=samples.bmm)
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of the matrices of two batches, (b, m, k) and (b, k, n)."""
    return _checked(_bmm, input, mat2, (3, 3), "batch1 and batch2 must be a 3D tensor", out)


@operation(samples=samples.mv)
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of the matrix (m, k) and the vector (k)."""
    return _checked(_mv, input, vec, (2, 1), "vector + matrix @ vector expected a matrix and a vector", out)


@operation(samples=samples.dot)
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of the products of two vectors' elements."""
    return _checked(_dot, input, tensor, (1, 1), "1D tensors expected", out)


@operation(samples=samples.dot)
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As ``dot``, with the first vector conjugated."""
    _tensors("vdot", input, other)
    return dot(_conj(input), other, out=out)


@operation(samples=samples.inner)
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products summed over the last dim of both; a 0-d tensor multiplies."""
    _tensors("inner", input, other)
    a, b = input.native.shape, other.native.shape
    if not a or not b:
        made = input * other
    elif a[-1] != b[-1]:
        raise ShapeError(
            f"inner: inner() the last dimension must match on both input tensors, got {list(a)} and {list(b)}; transpose one"
        )
    else:
        left = input.reshape(_rows(a), a[-1])
        made = matmul(left, other.reshape(_rows(b), b[-1]).t()).reshape(*a[:-1], *b[:-1])
    return made if out is None else store("inner", made, out)


@operation(samples=samples.outer)
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of each element of a vector (m) with each of another (n), as (m, n)."""
    _tensors("outer", input, vec2)
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


# A product and a sum in one


def _adding(name: str) -> Op:
    def scaled(g: Tensor, by: Any) -> Tensor:
        return g if by == 1 else g * by

    return Op(
        name, "input mat1 mat2", "A scaled tensor plus a scaled product.", kernel="addmm", register=False,
        grads=dict(
            input=lambda g, beta: scaled(g, beta),
            mat1=lambda g, mat2, alpha, mat1_shape: _left(scaled(g, alpha), mat2, mat1_shape),
            mat2=lambda g, mat1, alpha, mat2_shape: _right(scaled(g, alpha), mat1, mat2_shape),
        ),
    )  # fmt: skip


_addmm, _addmv, _baddbmm = _adding("addmm"), _adding("addmv"), _adding("baddbmm")


def _add_product(
    op: Op, input: Tensor, x: Tensor, y: Tensor, dims: tuple[int, int], beta: Any, alpha: Any, out: Any
) -> Tensor:
    name = op.name
    _tensors(name, input, x, y)
    a, b, c = tuple(x.native.shape), tuple(y.native.shape), tuple(input.native.shape)
    if (len(a), len(b)) != dims:
        raise ShapeError(
            f"{name}: expected tensors of {dims[0]} and {dims[1]} dims, got {len(a)}D and {len(b)}D; use matmul"
        )
    shape = rules.matmul_shape(name, a, b)
    if len(c) > len(shape) or rules.broadcast(name, c, shape) != shape:
        rules.cannot_expand(name, c, shape)
    _one_dtype(name, x, y, input)
    if x.dtype.kind == "integer":
        # PyTorch cuts them off here, and refuses them in addr.
        beta, alpha = int(beta), int(alpha)
    if x.device.kernels["addmm"]:
        made = apply(op, (input, x, y), {"beta": beta, "alpha": alpha})
    else:
        made = matmul(x, y) * alpha
        made = made + input * beta if beta else made
    return made if out is None else store(name, made, out)


@operation(samples=samples.addmm, writes=True)
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` of matrices; the input is broadcast, and not read where beta is 0."""
    return _add_product(_addmm, input, mat1, mat2, (2, 2), beta, alpha, out)


@operation(samples=samples.addmv, writes=True)
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * (mat @ vec)`` of a matrix and a vector."""
    return _add_product(_addmv, input, mat, vec, (2, 1), beta, alpha, out)


@operation(samples=samples.baddbmm, writes=True)
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` for each matrix of two batches."""
    return _add_product(_baddbmm, input, batch1, batch2, (3, 3), beta, alpha, out)


@operation(samples=samples.addbmm, writes=True)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``: one product whose inner dim runs over the batch too."""
    _tensors("addbmm", batch1, batch2)
    a, b = tuple(batch1.native.shape), tuple(batch2.native.shape)
    if len(a) != 3 or len(b) != 3 or a[0] != b[0]:
        raise ShapeError(
            f"addbmm: batch1 and batch2 must be a 3D tensor of as many matrices, got {list(a)} and {list(b)}"
        )
    rules.matmul_shape("addbmm", a, b)
    left = batch1.transpose(0, 1).reshape(a[1], a[0] * a[2])
    return addmm(input, left, batch2.reshape(b[0] * b[1], b[2]), beta=beta, alpha=alpha, out=out)


@operation(samples=samples.addr, writes=True)
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; of integers, beta and alpha are integers too."""
    made = outer(vec1, vec2)
    compute = result_type(input, made)
    for name, one in (("beta", beta), ("alpha", alpha)):
        if compute.kind in ("bool", "integer") and isinstance(one, float):
            raise DtypeError(
                f"addr: For integral input tensors, argument {name} must not be a floating point number, got {one}; pass an int"
            )
        if compute.kind != "bool" and isinstance(one, bool):
            raise DtypeError(
                f"addr: Boolean {name} only supported for Boolean results, got {one} for {compute.name}; pass an int"
            )
    made = made if alpha == 1 else made * alpha
    shape = tuple(made.native.shape)
    if rules.broadcast("addr", tuple(input.native.shape), shape) != shape:
        rules.cannot_expand("addr", tuple(input.native.shape), shape)
    if beta:
        made = made + (input if beta == 1 else input * beta)
    return made if out is None else store("addr", made, out)


_linear = Op(
    "linear", "input weight bias", "input @ weight.T + bias.", backward_name="AddmmBackward0", register=False,
    grads=dict(
        input=lambda g, weight: matmul(g, _conj(weight)),
        weight=lambda g, input: _adjoint_times(_matrix(_conj(g)), _matrix(_conj(input))),
        bias=same,
    ),
)  # fmt: skip


def _matrix(x: Tensor) -> Tensor:
    shape = x.native.shape
    return x if len(shape) == 2 else x.reshape(_rows(shape), shape[-1])


@operation(samples=samples.linear, method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: (..., in) with weight (out, in) or (in), bias (out), gives (..., out)."""
    if out is not None:
        return store("linear", linear(input, weight, bias), out)
    if (
        type(input) is Tensor
        and type(weight) is Tensor
        and type(bias) is Tensor
        and input.dtype is weight.dtype is bias.dtype
        and input.device is weight.device is bias.device
        and input.dtype is not dtypes.bool_
        and not unusual.threads
    ):
        # The usual layer in one frame: 2.3 us against 4.6 through ``apply`` (8 x 16 by 16 x 16, recorded).
        x, w = input.native.shape, weight.native.shape
        device = input.device
        kernel = device.kernels["linear"]
        if kernel and x and len(w) == 2 and x[-1] == w[1] and bias.native.shape == w[:1]:
            made = object.__new__(Tensor)
            made.native = native = kernel(input.native, weight.native, bias.native)
            made.dtype = input.dtype
            made.device = device
            made.node = made.version = made.origin = None
            edge, weight_edge, bias_edge = input.node, weight.node, bias.node
            if edge is not None or weight_edge is not None or bias_edge is not None:
                made.node = node = object.__new__(Node)
                node.op = _linear
                node.edges = (edge, weight_edge, bias_edge)
                node.saved = (input if weight_edge is not None else None, weight if edge is not None else None, None)
                node.extra = None
                node.shape = native.shape
                node.dtype = made.dtype
                node.order = next_order()
            return made
    _tensors("linear", input, weight)
    x, w = input.native.shape, weight.native.shape
    if len(w) == 1:
        made = matmul(input, weight)
        return made if bias is None else made + bias
    if len(w) != 2 or not x or x[-1] != w[1]:
        raise ShapeError(
            f"linear: expected input (..., in) and weight (out, in), got {list(x)} and {list(w)}; "
            f"mat1 and mat2 shapes cannot be multiplied ({_rows(x)}x{x[-1] if x else 1} and {'x'.join(map(str, w[::-1]))})"
        )
    if (
        weight.dtype is not input.dtype
        or (bias is not None and bias.dtype is not input.dtype)
        or input.dtype.kind == "bool"
    ):
        _one_dtype("linear", input, weight, bias)
    if bias is not None and tuple(bias.native.shape) not in ((w[0],), (1,), ()):
        made_shape = (*x[:-1], w[0])
        if rules.broadcast("linear", tuple(bias.native.shape), made_shape) != made_shape:
            rules.cannot_expand("linear", tuple(bias.native.shape), made_shape)
    if input.device.kernels["linear"]:
        return apply(_linear, (input, weight, bias))
    made = matmul(input, weight.t())
    return made if bias is None else made + bias


@operation(samples=samples.bilinear, method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum_ij input1[.., i] weight[o, i, j] input2[.., j] + bias[o]``."""
    _tensors("bilinear", input1, input2, weight)
    a, b, w = input1.native.shape, input2.native.shape, weight.native.shape
    if tuple(a[:-1]) != tuple(b[:-1]) or len(w) != 3 or a[-1] != w[1] or b[-1] != w[2]:
        raise ShapeError(
            f"bilinear: expected input1 (..., {w[1:2]}), input2 (..., {w[2:3]}) with equal sizes in front, got {list(a)}, "
            f"{list(b)} and weight {list(w)}"
        )
    count = _rows(a)
    # (n, i) @ (i, o * j), then a product over j for each row.
    left = matmul(input1.reshape(count, a[-1]), weight.permute(1, 0, 2).reshape(w[1], w[0] * w[2])).reshape(
        count, w[0], w[2]
    )
    made = matmul(left, input2.reshape(count, b[-1], 1)).reshape(*a[:-1], w[0])
    return made if bias is None else made + bias


# Products of more than two, and of one with itself


@operation(samples=samples.kron)
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: each element of ``input`` times the whole of ``other``, dim by dim."""
    _tensors("kron", input, other)
    a, b = tuple(input.native.shape), tuple(other.native.shape)
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    left = input.reshape([size for one in a for size in (one, 1)])
    right = other.reshape([size for one in b for size in (1, one)])
    made = (left * right).reshape([x * y for x, y in zip(a, b, strict=True)])
    return made if out is None else store("kron", made, out)


@operation(samples=samples.chain, method=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of several matrices in the order of fewest multiplications (the classic dynamic program)."""
    _tensors("chain_matmul", *matrices)
    if not matrices:
        raise GradientError("chain_matmul: Expecting at least 1 matrix, got none; pass matrices")
    for one in matrices:
        if len(one.native.shape) != 2:
            raise ShapeError(
                f"chain_matmul: Tensor dimension is {len(one.native.shape)}, expected 2 instead; use matmul"
            )
    for x, y in pairwise(matrices):
        rules.matmul_shape("chain_matmul", tuple(x.native.shape), tuple(y.native.shape))
    sizes = [one.native.shape[0] for one in matrices] + [matrices[-1].native.shape[1]]
    count = len(matrices)
    best = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            best[i][j], split[i][j] = min(
                (best[i][k] + best[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def multiply(i: int, j: int) -> Tensor:
        return matrices[i] if i == j else mm(multiply(i, split[i][j]), multiply(split[i][j] + 1, j))

    made = multiply(0, count - 1)
    return made if out is None else store("chain_matmul", made, out)


_inverse = Op("inverse", "input", "The inverse of each matrix.", register=False, grads=dict(
    input=lambda g, out: -_times_adjoint(_adjoint_times(out, g), out)))  # fmt: skip


def _inverted(input: Tensor) -> Tensor:
    try:
        return apply(_inverse, (input,))  # type: ignore[no-any-return]
    except np.linalg.LinAlgError as wrong:
        raise LinAlgError(
            "inverse: the inversion could not be completed because the input matrix is singular, got one without an inverse; "
            "use another matrix"
        ) from wrong


@operation(samples=samples.matrix_power)
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Each matrix multiplied with itself ``n`` times by squaring; its inverse for negative ``n``."""
    _tensors("matrix_power", input)
    shape = tuple(input.native.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"matrix_power: A must be batches of square matrices, got {list(shape)}")
    if n < 0 and input.dtype.kind in ("bool", "integer"):
        raise DtypeError(
            f"matrix_power: Expected a floating point or complex tensor to invert, got {input.dtype.name}; use .float()"
        )
    if n == 0:
        unit = input.device.from_host(np.eye(shape[-1]).astype(input.dtype.numpy))
        made = new_tensor(unit, input.dtype, input.device).expand(shape).clone()
    else:
        if n < 0 and input.dtype.itemsize <= 2:
            raise DtypeError(
                f"matrix_power: Low precision dtypes not supported to invert, got {input.dtype.name}; use .float()"
            )
        base = input if n > 0 else _inverted(input)
        made, left = None, abs(n)
        while left:
            if left & 1:
                made = base if made is None else matmul(made, base)
            left >>= 1
            base = matmul(base, base) if left else base
        made = made.clone() if made is input else made
    return made if out is None else store("matrix_power", made, out)


take_diagonal = Op("take_diagonal", "input", "Elements of equal index along two dims.", register=False, backward_name="DiagonalBackward0",
    grads=dict(input=lambda g, input_shape, dim1, dim2: apply(put_diagonal, (g,), {
        "shape": tuple(input_shape), "dim1": dim1, "dim2": dim2})))  # fmt: skip
put_diagonal = Op("put_diagonal", "input", "Zeros with the input where two dims have equal index.", register=False,
    grads=dict(input=lambda g, dim1, dim2: apply(take_diagonal, (g,), {"dim1": dim1, "dim2": dim2})))  # fmt: skip


@operation(samples=samples.matrix)
def trace(input: Tensor) -> Tensor:
    """Sum of a matrix's diagonal."""
    _tensors("trace", input)
    if len(input.native.shape) != 2:
        raise ShapeError(f"trace: trace: expected a matrix, but got tensor with dim {len(input.native.shape)}")
    return apply(take_diagonal, (input,), {"dim1": 0, "dim2": 1}).sum()  # type: ignore[no-any-return]


_cross = Op("cross", "input other", "The vectors at right angles to both.", backward_name="LinalgCrossBackward0", register=False,
    grads=dict(input=lambda g, other, dim: apply(_cross, (_conj(other), g), {"dim": dim}),
               other=lambda g, input, dim: apply(_cross, (g, _conj(input)), {"dim": dim})))  # fmt: skip


@operation(samples=samples.cross)
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product of the vectors along ``dim``, which has size 3; without it the first dim of that size."""
    _tensors("cross", input, other)
    if len(input.native.shape) != len(other.native.shape):
        raise ShapeError(
            f"cross: inputs must have the same number of dimensions, got {len(input.native.shape)} and {len(other.native.shape)}"
        )
    shape = rules.broadcast("cross", tuple(input.native.shape), tuple(other.native.shape))
    if dim is None:
        if 3 not in shape:
            raise GradientError(f"cross: no dimension of size 3 in input, got {list(shape)}; give dim")
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
    dtype = input.dtype if input.dtype is other.dtype else dtypes.promote_types(input.dtype, other.dtype)
    made = apply(_cross, (input.to(dtype).expand(shape), other.to(dtype).expand(shape)), {"dim": at})
    return made if out is None else store("cross", made, out)
