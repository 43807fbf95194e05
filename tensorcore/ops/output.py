"""Where results go: into ``out=``, and the note that memory was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import dtype
from tensorcore.errors import ArgumentTypeError, DeviceError, DtypeError, GradientError, ShapeError, UsageError
from tensorcore.ops.define import Op
from tensorcore.shortcuts import before
from tensorcore.tape.memory import Version, next_order
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor

__all__ = ["check_apart", "check_once", "check_out", "check_place", "free_place", "store", "written", "written_into"]


def check_once(op: str, tensor: Tensor) -> None:
    """Raise where two elements of a tensor that is written lie in one place, as after ``expand``."""
    strides, shape = tensor.device.strides(tensor.native), tensor.native.shape
    # Without elements there is nothing to write twice, whatever the strides.
    if (
        0 in strides
        and 0 not in shape
        and any(step == 0 and size > 1 for step, size in zip(strides, shape, strict=True))
    ):
        raise UsageError(
            f"{op}: unsupported operation: more than one element of the written-to tensor refers to a single memory "
            f"location, got strides {strides}; Please clone() the tensor before performing the operation"
        )


@before("check_apart")
def check_apart(op: str, target: Tensor, inputs: Sequence[Any], *, all_of_it: bool = False) -> None:
    """Raise where a tensor that is written shows a part of the memory of an input, and not all of it in the same order.

    With ``all_of_it`` the same memory is refused too: elements are then read after others were written. As in PyTorch only
    tensors whose elements fill their memory are compared; where one has gaps, as ``x[::2]`` has, the result is as if the
    input had been copied before.
    """
    version = target.version
    for one in inputs:
        if one is target:
            shared = all_of_it and target.numel() > 0
        else:
            # What shows one memory counts its writes together.
            shared = (
                version is not None
                and isinstance(one, Tensor)
                and one.version is version
                and one.device is target.device
                and _shared(target, one, all_of_it)
            )
        if shared:
            raise UsageError(
                f"{op}: unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                f"single memory location, got views of one tensor that overlap; Please clone() the tensor before "
                f"performing the operation"
            )


def _shared(one: Tensor, other: Tensor, all_of_it: bool) -> bool:
    if one.native is other.native and not all_of_it:
        return False
    count, more = one.numel(), other.numel()
    if not count or not more:
        return False
    strides, first = one.device.layout(one.native)
    steps, start = other.device.layout(other.native)
    size, width = one.dtype.itemsize, other.dtype.itemsize
    begin, at = first * size, start * width
    if begin >= at + more * width or at >= begin + count * size:
        return False
    shape, sizes = tuple(one.native.shape), tuple(other.native.shape)
    if not (_fills(shape, strides) and _fills(sizes, steps)):
        return False
    return all_of_it or begin != at or count * size != more * width or tuple(strides) != tuple(steps)


def _fills(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie in one piece of memory, in any order of the dims."""
    expected = 1
    for step, size in sorted((step, size) for step, size in zip(strides, shape, strict=True) if size != 1):
        if step != expected:
            return False
        expected *= size
    return True


def check_out(op: Op, inputs: Sequence[Any], out: Any, final: dtype) -> None:
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{op.name}: expected out to be a Tensor, got {out!r}; pass torch.empty(...)")
    # Where there is nothing to differentiate, as of comparisons, nothing is lost.
    if (
        op.grads
        and mode.enabled
        and (out.node is not None or any(isinstance(one, Tensor) and one.node is not None for one in inputs))
    ):
        raise GradientError(
            f"{op.name}: functions with out=... arguments don't support automatic differentiation, got one of the "
            f"arguments that requires grad; call it without out=, or inside torch.no_grad()"
        )
    if not dtypes.can_cast(final, out.dtype):
        raise DtypeError(
            f"{op.name}: result type {final.name} can't be cast to the desired output type, got out of dtype "
            f"{out.dtype.name}; pass an out of a wider dtype"
        )
    check_apart(op.name, out, inputs)
    _check_exact(op.name, final, out)


def written_into(op: Op, inputs: Sequence[Any], out: Tensor, options: dict[str, Any] | None) -> bool:
    """Write the result into ``out`` where tensors off the tape have its dtype, device and shape, and numbers are plain."""
    same, device, shape = out.dtype, out.device, out.native.shape
    if op.kind != "elementwise" or op.result is not None or out.node is not None or out.origin is not None:
        return False
    natives = []
    for one in inputs:
        kind = type(one)
        if kind is Tensor:
            if one.dtype is not same or one.device is not device or one.node is not None or one.native.shape != shape:
                return False
            natives.append(one.native)
        elif kind is float or kind is int:
            natives.append(one)
        else:
            return False
    check_apart(op.name, out, inputs)
    try:
        device.kernels[op.kernel](*natives, out=out.native, **(options or {}))
    except Exception:
        return False  # the complete call says in words what is wrong
    written(out)
    return True


# Those whose ``out`` has the result's dtype and no other, as PyTorch's.
EXACT = frozenset([
    "abs", "addbmm", "addmm", "addmv", "alias_copy", "all", "amax", "amin", "aminmax", "any", "arange", "argmax",
    "argmin", "as_strided_copy", "avg_pool2d", "avg_pool3d", "baddbmm", "bitwise_not", "bmm", "bucketize", "ceil",
    "chain_matmul", "complex", "conj_physical", "cross", "cummax", "cummin", "cumprod", "cumsum", "diag",
    "diagonal_copy", "dot", "expand_copy", "eye", "fftfreq", "float_power", "floor", "frac", "frexp", "gather", "gelu",
    "hardshrink", "hash_tensor", "heaviside", "histc", "histogram", "index_add", "index_copy", "index_select", "inner",
    "inverse", "isin", "isneginf", "isposinf", "kthvalue", "linalg.cholesky", "linalg.cross", "linalg.det",
    "linalg.eigh", "linalg.eigvalsh", "linalg.inv", "linalg.inv_ex", "linalg.ldl_factor", "linalg.ldl_factor_ex",
    "linalg.ldl_solve", "linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex", "linalg.lu_solve", "linalg.matrix_norm",
    "linalg.matrix_power", "linalg.multi_dot", "linalg.norm", "linalg.qr", "linalg.slogdet", "linalg.solve",
    "linalg.solve_ex", "linalg.solve_triangular", "linalg.svd", "linalg.svdvals", "linalg.vecdot", "linalg.vector_norm",
    "linear", "linspace", "log_softmax", "logcumsumexp", "logspace", "lu_solve", "lu_unpack", "masked_select", "matmul",
    "matrix_power", "max", "median", "min", "mm", "mode", "msort", "multinomial", "mv", "nan_to_num", "nanmedian",
    "nanquantile", "narrow_copy", "neg", "nonzero", "norm", "ormqr", "permute_copy", "polar", "qr", "quantile", "rand",
    "randint", "randn", "randperm", "range", "renorm", "rfftfreq", "round", "scatter", "scatter_add", "scatter_reduce",
    "searchsorted", "select_copy", "sgn", "sign", "signbit", "slice_copy", "slice_scatter", "slogdet", "softmax",
    "softplus", "softshrink", "sort", "split_with_sizes_copy", "squeeze_copy", "sum", "svd", "t_copy", "take",
    "take_along_dim", "tensordot", "topk", "transpose_copy", "triangular_solve", "tril", "triu", "trunc", "unbind_copy",
    "unfold_copy", "unsqueeze_copy", "vdot", "view_as_complex_copy", "view_as_real_copy", "view_copy", "where",
])  # fmt: skip


# Those that PyTorch writes in other ops and a recorded copy: gradients go through their ``out``.
RECORDED = frozenset([
    "inner", "linalg.cond", "linalg.matrix_norm", "linalg.norm", "linalg.tensorinv", "linalg.tensorsolve", "lu", "nanquantile",
    "ndtr", "nuclear_norm", "quantile", "tensordot",
])  # fmt: skip


def _check_exact(op: str, made: dtype, out: Tensor) -> None:
    if op in EXACT and out.dtype is not made and not (op in ("all", "any") and out.dtype is dtypes.uint8):
        raise DtypeError(
            f"{op}: expected out to have dtype {made.name}, got {out.dtype.name}; pass an out of that dtype"
        )


@before("store")
def store(op: str, made: Tensor, out: Tensor, *inputs: Any, all_of_it: bool = False) -> Tensor:
    """Write a result into ``out``, which takes the result's shape where it has another, and return ``out``.

    Args:
        inputs: whose memory ``out`` may not show, with ``all_of_it`` as in :func:`check_apart`.
    """
    recorded = check_place(op, made, out, *inputs, all_of_it=all_of_it)
    device = out.device
    shape = tuple(made.native.shape)
    if tuple(out.native.shape) != shape:
        out.native = device.allocate(shape, out.dtype)
    if recorded:
        return out.copy_(made)  # type: ignore[attr-defined, no-any-return]
    device.kernels["copy"](out.native, made.native)
    written(out)
    return out


def check_place(op: str, made: Tensor, out: Any, *inputs: Any, all_of_it: bool = False) -> bool:
    """Raise where a result cannot go into ``out``; whether the copy is to be recorded. The arguments are those of :func:`store`."""
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{op}: expected out to be a Tensor, got {out!r}; pass torch.empty(...)")
    recorded = made.node is not None and op in RECORDED and out.device is made.device
    if not recorded and (made.node is not None or (out.node is not None and mode.enabled)):
        raise GradientError(
            f"{op}: functions with out=... arguments don't support automatic differentiation, got one of the "
            f"arguments that requires grad; call it without out=, or inside torch.no_grad()"
        )
    if out.device is not made.device:
        raise DeviceError(f"{op}: expected out on device {made.device}, got {out.device}; make it on that device")
    if not dtypes.can_cast(made.dtype, out.dtype):
        raise DtypeError(
            f"{op}: result type {made.dtype.name} can't be cast to the desired output type, got out of dtype "
            f"{out.dtype.name}; pass an out of a wider dtype"
        )
    _check_exact(op, made.dtype, out)
    if inputs:
        check_apart(op, out, inputs, all_of_it=all_of_it)
    if out.origin is not None:
        if tuple(out.native.shape) == tuple(made.native.shape):
            check_once(op, out)
        elif out.numel():
            raise ShapeError(
                f"{op}: expected out of shape {list(made.native.shape)}, got a view of shape {list(out.native.shape)}; "
                f"pass an out of that shape"
            )
    return recorded


@before("free_place")
def free_place(out: Any, inputs: Sequence[Any]) -> bool:
    """Whether a kernel may write to ``out``, whose memory no input shows and no gradient asks for; there is only the short way."""
    return False


@before("written")
def written(*tensors: Tensor) -> None:
    """Note a write to the memory of each tensor: they are one write, which has one place in time."""
    stamp = next_order()
    for tensor in tensors:
        version = tensor.version
        if version is None:
            version = tensor.version = Version()
        version.count += 1  # version.bump() without its frame, for every write asks for it
        version.stamp = stamp
