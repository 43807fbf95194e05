"""Products with something added to them: addmm and its family, linear and bilinear layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import promote_types
from tensorcore.errors import DtypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import HIGHEST, LOWEST, PLAIN_FLOATS, PLAIN_INTEGERS, apply, apply_into
from tensorcore.ops.define import Op, same
from tensorcore.ops.inplace import is_free
from tensorcore.ops.kinds import COMPLEX, FLOATING, INTEGER, operation
from tensorcore.ops.linalg.products import (
    adjoint_times,
    conjugate,
    left_gradient,
    matmul,
    one_dtype,
    outer,
    right_gradient,
    rows_of,
)
from tensorcore.ops.older import taking_older
from tensorcore.ops.operands import NARROW, check_optional, check_tensors, factor, lifted, once_rounded
from tensorcore.ops.output import store, written
from tensorcore.ops.pointwise.added import addcmul
from tensorcore.ops.record import record
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.shape import in_shape
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before
from tensorcore.tape.memory import next_order
from tensorcore.tape.mode import makers, mode, unusual
from tensorcore.tape.node import Node
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "linear"]

new = object.__new__
makers.append(globals())


# A product and a sum in one


def _adding(name: str) -> Op:
    def scaled(g: Tensor, by: Any) -> Tensor:
        return g if by == 1 else g * (by.conjugate() if type(by) is complex else by)

    return Op(
        name, "input mat1 mat2", "A scaled tensor plus a scaled product.", kernel="addmm", register=False,
        grads=dict(
            input=lambda g, beta: scaled(g, beta),
            mat1=lambda g, mat2, alpha, mat1_shape: left_gradient(scaled(g, alpha), mat2, mat1_shape),
            mat2=lambda g, mat1, alpha, mat2_shape: right_gradient(scaled(g, alpha), mat1, mat2_shape),
        ),
    )  # fmt: skip


_PLAIN, _INTEGERS = frozenset([int, float]), frozenset([int])
_FIELDS = FLOATING | COMPLEX
# The dtypes whose factors are plain numbers, and those of integers, between which they are.
_SPANS: dict[Any, Any] = dict.fromkeys(_FIELDS, _FIELDS) | {
    one: (dtypes.iinfo(one).min, dtypes.iinfo(one).max) for one in INTEGER
}
_addmm, _addmv, _baddbmm = _adding("addmm"), _adding("addmv"), _adding("baddbmm")


@before("add_product", record, _FIELDS, INTEGER, store)
def _add_product(
    op: Op, input: Tensor, x: Tensor, y: Tensor, dims: tuple[int, int], beta: Any, alpha: Any, out: Any
) -> Tensor:
    name = op.name
    if (
        type(x) is Tensor
        and type(y) is Tensor
        and type(input) is Tensor
        and x.dtype is y.dtype is input.dtype
        and x.device is y.device is input.device
        and (span := _SPANS.get(x.dtype))
        and (type(beta) is int or type(beta) is float)
        and (type(alpha) is int or type(alpha) is float)
        and (span is _FIELDS or (span[0] <= beta <= span[1] and span[0] <= alpha <= span[1]))
    ):
        if span is not _FIELDS:
            beta, alpha = int(beta), int(alpha)  # cut off
        a, b, c = x.native.shape, y.native.shape, input.native.shape
        if (len(a), len(b)) == dims and a[-1] == b[dims[1] - 2] and (len(a) < 3 or a[0] == b[0]):
            made = a[:-1] + b[-1:] if len(b) > 1 else a[:-1]
            shift = len(made) - len(c)
            if c == made or (shift >= 0 and all([n == 1 or n == made[i + shift] for i, n in enumerate(c)])):
                kernel = x.device.kernels["addmm"]
                given, options = (input, x, y), {"beta": beta, "alpha": alpha}
                if kernel and out is None:
                    return apply(op, given, options)  # type: ignore[no-any-return]
                if kernel and (done := apply_into(op, given, options, x.dtype, out)) is not None:
                    return done  # type: ignore[no-any-return]
    check_tensors(name, input=input, x=x, y=y)
    a, b, c = tuple(x.native.shape), tuple(y.native.shape), tuple(input.native.shape)
    if (len(a), len(b)) != dims:
        raise ShapeError(
            f"{name}: expected tensors of {dims[0]} and {dims[1]} dims, got {len(a)}D and {len(b)}D; use matmul"
        )
    shape = rules.matmul_shape(name, a, b)
    if len(a) == 3 and a[0] != b[0]:
        raise ShapeError(
            f"{name}: Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}], got: {list(b[:2])}; "
            "expand one of the batches"
        )
    if len(c) > len(shape) or rules.broadcast(name, c, shape) != shape:
        rules.cannot_expand(name, c, shape)
    one_dtype(name, x, y, input)
    if not x.device is y.device is input.device:
        input, x, y = lifted(name, input, x, y)
    if type(beta) not in _PLAIN or type(alpha) not in _PLAIN or x.dtype.kind == "integer":
        beta, alpha = factor(name, "beta", beta, x.dtype), factor(name, "alpha", alpha, x.dtype)
    if type(x) is Tensor is type(y) and x.device.kernels["addmm"]:
        made = apply(op, (input, x, y), {"beta": beta, "alpha": alpha})
    else:
        made = matmul(x, y) * alpha
        made = made + input * beta if beta else made
    return made if out is None else store(name, made, out, input, x, y)


def _added_over(dims: tuple[int, int]) -> Callable[..., bool]:
    """What adds a product in place where a short way was built, see ``run_added_over``; whether it did."""

    @before("added_over", dims, PLAIN_FLOATS)
    def added_over(input: Tensor, factors: tuple[Any, ...], **scales: Any) -> bool:
        return False

    return added_over


@taking_older("beta alpha")
@operation(samples=samples.addmm, writes=True, overwritten=_added_over((2, 2)))
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` of matrices; the input is broadcast, and not read where beta is 0."""
    return _add_product(_addmm, input, mat1, mat2, (2, 2), beta, alpha, out)


@taking_older("beta alpha")
@operation(samples=samples.addmv, writes=True, overwritten=_added_over((2, 1)))
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * (mat @ vec)`` of a matrix and a vector."""
    return _add_product(_addmv, input, mat, vec, (2, 1), beta, alpha, out)


@taking_older("beta alpha")
@operation(samples=samples.baddbmm, writes=True, overwritten=_added_over((3, 3)))
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` for each matrix of two batches."""
    return _add_product(_baddbmm, input, batch1, batch2, (3, 3), beta, alpha, out)


@taking_older("beta alpha")
@operation(samples=samples.addbmm, writes=True)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``: one product whose inner dim runs over the batch too."""
    if type(batch1) is not Tensor or type(batch2) is not Tensor:
        check_tensors("addbmm", input=input, batch1=batch1, batch2=batch2)
    a, b = batch1.native.shape, batch2.native.shape
    if len(a) != 3 or len(b) != 3 or a[0] != b[0]:
        raise ShapeError(
            f"addbmm: batch1 and batch2 must be a 3D tensor of as many matrices, got {list(a)} and {list(b)}"
        )
    if a[2] != b[1]:
        rules.matmul_shape("addbmm", tuple(a), tuple(b))
    left, right = (a[1], a[0] * a[2]), (b[0] * b[1], b[2])
    if (
        type(batch1) is type(batch2) is Tensor and batch1.node is batch2.node is None
    ):  # no views that anybody has to know of
        turned = batch1.device.kernels["permute"](batch1.native, dims=(1, 0, 2))
        batch1 = new_tensor(in_shape(batch1.device, turned, left), batch1.dtype, batch1.device)
        batch2 = new_tensor(in_shape(batch2.device, batch2.native, right), batch2.dtype, batch2.device)
    else:
        batch1, batch2 = batch1.transpose(0, 1).reshape(left), batch2.reshape(right)
    return _add_product(_addmm, input, batch1, batch2, (2, 2), beta, alpha, out)


def _plain_addr(input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any, **place: Any) -> Any:
    """``addr`` of numbers that are not recorded as a native array, which may have a ``place``; None for other calls."""
    if not (type(input) is type(vec1) is type(vec2) is Tensor and input.dtype is vec1.dtype is vec2.dtype):
        return None
    device, dtype, x = input.device, input.dtype, input.native
    first, second = vec1.native.shape, vec2.native.shape
    if (
        not (dtype in PLAIN_FLOATS or (dtype.is_complex and not place))
        or type(alpha) not in _PLAIN
        or type(beta) not in _PLAIN
        or not beta
        or len(first) != 1
        or len(second) != 1
        or not device is vec1.device is vec2.device
        or not input.node is vec1.node is vec2.node is None
        or x.shape != first + second
        or not device.is_contiguous(x)
    ):
        return None
    name, natives, options = "addr", (x, vec1.native, vec2.native), {"beta": beta, "alpha": alpha, **place}
    if dtype.is_complex:  # a column by a row
        name, natives = (
            "addmm",
            (x, in_shape(device, vec1.native, (*first, 1)), in_shape(device, vec2.native, (1, *second))),
        )
    kernel = device.kernels[name]
    try:
        return kernel(*natives, **options) if kernel else None
    except MemoryError as error:
        return again(device, name, natives, options, error)


def _stepwise_addr(input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """``addr`` of halves or integers that are not recorded, each step of which is rounded, as a native array; None for other calls."""
    if not (type(input) is type(vec1) is type(vec2) is Tensor and input.dtype is vec1.dtype is vec2.dtype):
        return None
    device, dtype = input.device, input.dtype
    halves = dtype in NARROW and "mul" in device.narrow_numbers
    first, second = vec1.native.shape, vec2.native.shape
    if (
        not (halves or dtype in PLAIN_INTEGERS)
        or not {type(alpha), type(beta)} <= (_PLAIN if halves else _INTEGERS)
        or not (LOWEST <= alpha <= HIGHEST and LOWEST <= beta <= HIGHEST)
        or (len(first), len(second)) != (1, 1)
        or not device is vec1.device is vec2.device
        or not input.node is vec1.node is vec2.node is None
        or input.native.shape != first + second
    ):
        return None
    kernels = device.kernels
    mul = kernels["mul"]
    try:
        made = mul(kernels["view"](vec1.native, shape=(*first, 1)), vec2.native)
        made = made if alpha == 1 else mul(made, alpha)
        return kernels["add"](made, input.native if beta == 1 else mul(input.native, beta)) if beta else made
    except MemoryError:
        return None  # the complete call makes room


def _addr_over(input: Tensor, vectors: tuple[Any, ...], beta: Any = 1, alpha: Any = 1, **others: Any) -> bool:
    """``addr`` in place of a tensor that is free of the vectors; whether it did."""
    if len(vectors) != 2 or others or not is_free(input):
        return False
    for one in vectors:
        if type(one) is Tensor and one.version is not None and one.version is input.version:
            return False
    if _plain_addr(input, *vectors, beta, alpha, out=input.native) is None:
        return False
    written(input)
    return True


@taking_older("beta alpha")
@operation(samples=samples.addr, writes=True, overwritten=_addr_over)
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; of integers, beta and alpha are integers too."""
    if out is None:
        native = _plain_addr(input, vec1, vec2, beta, alpha)
        native = _stepwise_addr(input, vec1, vec2, beta, alpha) if native is None else native
        if native is not None:
            return new_tensor(native, input.dtype, input.device)
    if type(input) is not Tensor or type(vec1) is not Tensor or type(vec2) is not Tensor:
        check_tensors("addr", input=input, vec1=vec1, vec2=vec2)
    dtype, wanted = input.dtype, (*vec1.native.shape, *vec2.native.shape)
    if (
        dtype is vec1.dtype is vec2.dtype
        and dtype in PLAIN_FLOATS
        and (type(alpha) is float or type(alpha) is int)
        and (type(beta) is float or type(beta) is int)
        and beta
        and out is None
        and len(vec1.native.shape) == 1 == len(vec2.native.shape)
        and (input.native.shape == wanted or rules.broadcast("addr", tuple(input.native.shape), wanted) == wanted)
    ):
        return addcmul(input if beta == 1 else input * beta, vec1.unsqueeze(1), vec2, value=alpha)
    compute = promote_types(promote_types(dtype, vec1.dtype), vec2.dtype)
    made = outer(vec1.to(compute), vec2.to(compute))  # type: ignore[attr-defined]
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
        made = made + (input if beta == 1 else input * beta).to(compute)  # type: ignore[attr-defined]
    return made if out is None else store("addr", made, out)


def _weight_gradient(g: Tensor, input: Tensor) -> Tensor:
    return adjoint_times(_matrix(conjugate(g)), _matrix(conjugate(input)))


def _matrix(x: Tensor) -> Tensor:
    shape = x.native.shape
    return x if len(shape) == 2 else x.reshape(rows_of(shape), shape[-1])


_linear = Op(
    "linear", "input weight bias", "input @ weight.T + bias.", backward_name="AddmmBackward0", register=False,
    grads=dict(
        input=lambda g, weight: matmul(g, weight.conj() if g.dtype.is_complex else weight),
        weight=_weight_gradient,
        bias=same,
    ),
)  # fmt: skip


def _linear_gradients(node: Node, g: Tensor, edges: Any = None) -> tuple[Any, ...]:
    """All gradients of an ordinary layer in one frame, which halves the time of one of a few features; else by formula."""
    saved, order = node.saved, node.order
    if type(saved) is tuple and type(g) is Tensor and g.dtype in PLAIN_FLOATS and (dims := len(g.native.shape)) > 1:
        input, weight, _ = saved
        edge, weight_edge, bias_edge = edges or node.edges
        native, dtype, device = g.native, g.dtype, g.device
        kernels = device.kernels
        lines, rows = native, None if weight_edge is None else input.native
        if dims > 2 and rows is not None:  # of all dims in front one
            count = rows_of(native.shape)
            lines = kernels["view"](native, shape=(count, native.shape[-1]))
            rows = kernels["view"](rows, shape=(count, rows.shape[-1]))
        if (
            (input is None or (input.device is device and (input.version is None or input.version.stamp >= order)))
            and (
                weight is None
                or (weight.device is device and (weight.version is None or weight.version.stamp >= order))
            )
            and (bias_edge is None or bias_edge.shape == native.shape[-1:])
            and (weight_edge is None or (lines is not None and rows is not None))
            and kernels["matmul_tn"]
            and not mode.enabled
        ):
            grads: Any = [
                None if edge is None else kernels["matmul"](native, weight.native),
                None if weight_edge is None else kernels["matmul_tn"](lines, rows),
                None if bias_edge is None else kernels["sum"](native, dim=tuple(range(dims - 1)), keepdim=False),
            ]
            for i, one in enumerate(grads):
                if one is not None:
                    made = grads[i] = new(Tensor)
                    made.native = one
                    made.dtype = dtype
                    made.device = device
                    made.node = made.version = made.trail = None
            return grads  # type: ignore[no-any-return]
    return _linear.formulas(node, g, edges)


_linear.backward = _linear_gradients


@operation(samples=samples.linear, method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: (..., in) with weight (out, in) or (in), bias (out), gives (..., out)."""
    if out is not None:
        return store("linear", linear(input, weight, bias), out)
    if (
        type(input) is Tensor
        and type(weight) is Tensor
        and input.dtype is weight.dtype
        and input.device is weight.device
        and (bias is None or (type(bias) is Tensor and bias.dtype is input.dtype and bias.device is input.device))
        and input.dtype is not dtypes.bool_
        and not unusual.threads
    ):
        # The usual layer in one frame: 2.3 us against 4.6 through ``apply`` (8 x 16 by 16 x 16, recorded).
        x, w = input.native.shape, weight.native.shape
        device = input.device
        kernel = device.kernels["linear"]
        if kernel and x and len(w) == 2 and x[-1] == w[1] and (bias is None or bias.native.shape == w[:1]):
            made = new(Tensor)
            made.native = native = kernel(input.native, weight.native, None if bias is None else bias.native)
            made.dtype = input.dtype
            made.device = device
            made.node = made.version = made.trail = None
            edge, weight_edge, bias_edge = input.node, weight.node, None if bias is None else bias.node
            if edge is not None or weight_edge is not None or bias_edge is not None:
                made.node = node = new(Node)
                node.op = _linear
                node.edges = (edge, weight_edge, bias_edge)
                node.saved = (input if weight_edge is not None else None, weight if edge is not None else None, None)
                node.extra = None
                node.shape = native.shape
                node.dtype = made.dtype
                node.order = next_order()
            return made
    check_tensors("linear", input=input, weight=weight)
    check_optional("linear", bias=bias)
    x, w = input.native.shape, weight.native.shape
    if len(w) == 1:
        made = matmul(input, weight)
        return made if bias is None else made + bias
    if len(w) != 2 or not x or x[-1] != w[1]:
        raise ShapeError(
            f"linear: expected input (..., in) and weight (out, in), got {list(x)} and {list(w)}; "
            f"mat1 and mat2 shapes cannot be multiplied ({rows_of(x)}x{x[-1] if x else 1} and {'x'.join(map(str, w[::-1]))})"
        )
    if (
        weight.dtype is not input.dtype
        or (bias is not None and bias.dtype is not input.dtype)
        or input.dtype.kind == "bool"
    ):
        one_dtype("linear", input, weight, bias)
    if bias is not None and tuple(bias.native.shape) not in ((w[0],), (1,), ()):
        made_shape = (*x[:-1], w[0])
        if rules.broadcast("linear", tuple(bias.native.shape), made_shape) != made_shape:
            rules.cannot_expand("linear", tuple(bias.native.shape), made_shape)
    if input.device is not weight.device:
        input, weight = lifted("linear", input, weight)
    if input.device.kernels["linear"]:
        return apply(_linear, (input, weight, bias))
    if bias is not None and input.dtype in NARROW:
        return once_rounded(linear, input.dtype, input, weight, bias)
    made = matmul(input, weight.t())
    return made if bias is None else made + bias


@operation(samples=samples.bilinear, method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum_ij input1[.., i] weight[o, i, j] input2[.., j] + bias[o]``."""
    check_tensors("bilinear", input1=input1, input2=input2, weight=weight)
    check_optional("bilinear", bias=bias)
    a, b, w = input1.native.shape, input2.native.shape, weight.native.shape
    if tuple(a[:-1]) != tuple(b[:-1]) or len(w) != 3 or a[-1] != w[1] or b[-1] != w[2]:
        raise ShapeError(
            f"bilinear: expected input1 (..., {tuple(w[1:2])}), input2 (..., {tuple(w[2:3])}) with equal sizes in front, got {list(a)}, "
            f"{list(b)} and weight {list(w)}"
        )
    count = rows_of(a)
    # (n, i) @ (i, o * j), then a product over j for each row.
    left = matmul(input1.reshape(count, a[-1]), weight.permute(1, 0, 2).reshape(w[1], w[0] * w[2])).reshape(
        count, w[0], w[2]
    )
    made = matmul(left, input2.reshape(count, b[-1], 1)).reshape(*a[:-1], w[0])
    return made if bias is None else made + bias
