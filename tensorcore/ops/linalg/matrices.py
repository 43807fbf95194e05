"""What the ops on matrices share: checks of shapes and dtypes, LAPACK's answers as errors, unit matrices, broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, LinAlgError, ShapeError, UnsupportedDtype
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.operands import check_tensors, common_device
from tensorcore.ops.output import store
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import along_way
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "LAPACKS",
    "batch_of",
    "check_matrix",
    "check_same",
    "check_sides",
    "check_square",
    "failure",
    "identity",
    "is_recorded",
    "not_converged",
    "optional",
    "stretched",
    "twin",
    "way_of_matrices",
]  # fmt: skip

LAPACKS = frozenset([dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128])


def way_of_matrices(
    op: Op,
    accepts: frozenset[dtypes.dtype],
    words: dict[str, Any],
    *,
    told: dict[str, Any] | None = None,
    untold: tuple[str, ...] = (),
    positions: int = 0,
    square: bool = False,
    result: Any = None,
    answer: Any = None,
) -> Callable[..., Any]:
    """The short way of what works on matrices by one kernel, see ``along_way``; ``answer`` is the class of several results."""
    return along_way(op, accepts, words, record, store, again, result, answer, (told or {}, untold, positions, square))


def check_matrix(op: str, A: Any, name: str = "A", narrow: bool = False) -> tuple[int, ...]:
    """The shape of a matrix or a batch of them, of a floating or complex dtype; ``narrow`` lets 16 bits in."""
    if type(A) is Tensor and A.dtype in LAPACKS and len(A.native.shape) > 1:
        return A.native.shape  # type: ignore[no-any-return]
    if not isinstance(A, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument '{name}' to be a Tensor, got {type(A).__name__}; wrap it in torch.tensor(...)"
        )
    shape = tuple(A.native.shape)
    if len(shape) < 2:
        raise ShapeError(
            f"{op}: The input tensor {name} must have at least 2 dimensions, got {list(shape)}; use unsqueeze"
        )
    if A.dtype.kind not in ("floating", "complex"):
        raise UnsupportedDtype(
            f"{op}: Expected a floating point or complex tensor as input, got {A.dtype}; convert it with .double()"
        )
    if A.dtype.itemsize < 4 and not narrow:
        raise UnsupportedDtype(
            f"{op}: Low precision dtypes not supported, got {A.dtype} (no LAPACK routine is implemented for it); "
            "convert it with .float()"
        )
    return shape


def check_square(op: str, A: Any, name: str = "A", narrow: bool = False) -> tuple[int, ...]:
    """The shape of a square matrix or a batch of them, checked as ``check_matrix`` does."""
    if type(A) is Tensor and A.dtype in LAPACKS:
        shape = A.native.shape
        if len(shape) > 1 and shape[-1] == shape[-2]:
            return shape  # type: ignore[no-any-return]
    shape = check_matrix(op, A, name, narrow)
    if shape[-1] != shape[-2]:
        raise ShapeError(
            f"{op}: {name} must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices, got "
            f"{list(shape)}; use lstsq, pinv or qr for others"
        )
    return shape


def check_same(op: str, A: Tensor, B: Tensor, names: tuple[str, str] = ("A", "B")) -> None:
    """Raise for two tensors of different dtypes or devices."""
    if type(A) is Tensor is type(B) and A.dtype is B.dtype and A.device is B.device:
        return
    check_tensors(op, **dict(zip(names, (A, B), strict=True)))
    if A.dtype is not B.dtype:
        raise UnsupportedDtype(
            f"{op}: Expected {names[0]} and {names[1]} to have the same dtype, got {names[0]} of type {A.dtype} and "
            f"{names[1]} of type {B.dtype}; convert one with .to(...)"
        )
    common_device(op, (A, B))


def check_sides(op: str, A: tuple[int, ...], B: tuple[int, ...], left: bool = True) -> tuple[int, ...]:
    """The common batch of A and B, whose sizes must fit the equation A X = B, or X A = B."""
    if A[-2] != B[-2 if left else -1]:
        raise ShapeError(
            f"{op}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'}, got "
            f"{A[-2]}x{A[-1]} and {B[-2]}x{B[-1]}; give B as many {'rows' if left else 'columns'} as A has"
        )
    return A[:-2] if A[:-2] == B[:-2] else rules.broadcast(op, A[:-2], B[:-2])


def failure(info: Tensor) -> tuple[str, int] | None:
    """Which matrix of a batch failed first, in words, and LAPACK's answer for it; None where none did."""
    device = info.device
    if not device.capabilities.values:
        return None
    answers = device.all_values(info.native)
    if not (answers.any() if answers.ndim else int(answers)):
        return None
    answers = answers.reshape(-1)
    first = int((answers != 0).argmax())
    return (f"(Batch element {first}): " if len(answers) > 1 or info.native.shape else ""), int(answers[first])


def not_converged(op: str, info: Tensor) -> None:
    """Raise for values or vectors that LAPACK did not find."""
    failed = failure(info)
    if failed is not None:
        raise LinAlgError(
            f"{op}: {failed[0]}expected finite numbers, got a matrix for which the algorithm failed to converge because the "
            "input matrix contained non-finite values, is ill-conditioned or has too many repeated values; look for NaN"
        )


def identity(like: Tensor, rows: int, columns: int | None = None) -> Tensor:
    """A unit matrix of the dtype and on the device of ``like``."""
    native = like.device.kernels["eye"](rows, rows if columns is None else columns, dtype=like.dtype)
    return new_tensor(native, like.dtype, like.device)


def nothing(like: Tensor, dtype: Any) -> Tensor:
    """A tensor without elements, on the device of ``like``: what stands for a result that nobody asked for."""
    return new_tensor(like.device.kernels["full"]((0,), 0, dtype=dtype), dtype, like.device)


def twin(x: Tensor) -> Tensor:
    """The tensor off the tape."""
    return new_tensor(x.native, x.dtype, x.device)


def is_recorded(*tensors: Tensor) -> bool:
    """Whether a call with these tensors goes on the tape."""
    return mode.enabled and any([one.node is not None for one in tensors])


def batch_of(x: Tensor) -> tuple[int, ...]:
    """The sizes in front of the matrices."""
    return tuple(x.native.shape[:-2])


def stretched(x: Tensor, batch: tuple[int, ...], inner: int = 2) -> Tensor:
    """The matrices (vectors with ``inner`` 1) expanded to a batch."""
    shape = tuple(x.native.shape)
    wanted = batch + shape[len(shape) - inner :]
    return x if shape == wanted else x.expand(wanted)


def optional(
    op: Op, decomposition: Callable[..., Any], inputs: Sequence[Tensor], options: dict[str, Any], dtype: Any = None
) -> Any:
    """Run the kernel of ``op``, or where the backend has none the function of the same arguments, as one node."""
    first = inputs[0]
    device = first.device if type(first) is Tensor else common_device(op.name, inputs)
    if device.kernels[op.kernel]:  # of several devices `apply` finds the one
        return apply(op, inputs, options, dtype=dtype)
    made = decomposition(*map(twin, inputs), **options)
    made = list(made) if isinstance(made, tuple) else made
    if op.grads and is_recorded(*inputs):
        record(op, inputs, options, made)
    return tuple(made) if isinstance(made, list) else made
