"""Where values belong in what is sorted."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError
from tensorcore.ops import samples
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.scatter import gather
from tensorcore.ops.kinds import BOOL, FLOATING, REAL, not_taken, operation
from tensorcore.ops.operands import check_tensors, result_type
from tensorcore.ops.output import store
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import stored
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import pair_way
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["bucketize", "searchsorted"]

_ORDERED = REAL - BOOL
_searchsorted = Op("searchsorted", "sorted_sequence input", "Where values would be put.", register=False)


@operation(
    samples=samples.sorted_rows, method=False,
    way=pair_way(_searchsorted, _ORDERED, "right", False, 2, record, store, again, dtypes.int64),
)  # fmt: skip
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, out: Tensor | None = None, sorter: Tensor | None = None) -> Tensor:  # fmt: skip
    """Where each value of ``input`` would be put in a sorted sequence so that it stays sorted.

    Args:
        sorted_sequence: sorted along its last dim; of one dim, or with the leading dims of ``input``.
        right: after equal elements instead of before them; ``side="right"`` says the same.
        sorter: indices along the last dim that put the sequence in order, for one that is not.
    """
    if type(sorted_sequence) is not Tensor:
        check_tensors("searchsorted", sorted_sequence=sorted_sequence)
    if side not in (None, "left", "right"):
        raise ShapeError(f"searchsorted: side can only be 'left' or 'right' but got {side!r}; pass one of them")
    if not isinstance(input, Tensor) and dtypes.kind_of(input) is None:
        raise ArgumentTypeError(
            f"searchsorted: expected input to be a Tensor or a number, got {input!r}; wrap it in torch.tensor(...)"
        )
    compute = result_type(sorted_sequence, input)
    if compute not in _ORDERED:
        raise not_taken("searchsorted", compute)
    if not isinstance(input, Tensor):
        input = sorted_sequence.new_full((), input, dtype=compute if compute in FLOATING else dtypes.int64)
    shape, wanted = sorted_sequence.native.shape, input.native.shape
    if not shape:
        raise ShapeError(
            "searchsorted: boundaries tensor should have positive dimension, got a 0-d sequence; unsqueeze it first"
        )
    if sorter is not None:
        sorted_sequence = _in_order(sorted_sequence, sorter)
    if len(shape) != 1 and shape[:-1] != wanted[:-1]:
        raise ShapeError(
            f"searchsorted: expected a sequence of one dim or the leading dims of input, got {list(shape)} and "
            f"{list(wanted)}; expand one of them"
        )
    given, options = (sorted_sequence, input), {"right": right or side == "right"}
    if (
        out is not None
        and not out_int32
        and (done := apply_into(_searchsorted, given, options, dtypes.int64, out)) is not None
    ):
        return done
    made = apply(_searchsorted, given, options, dtype=dtypes.int64)
    if out_int32:
        native = made.device.kernels["cast"](made.native, dtype=dtypes.int32)
        made = new_tensor(native, dtypes.int32, made.device)
    return made if out is None else stored("searchsorted", made, out)  # type: ignore[no-any-return]


def _in_order(sequence: Tensor, sorter: Tensor) -> Tensor:
    if not isinstance(sorter, Tensor) or sorter.dtype is not dtypes.int64:
        raise DtypeError(
            f"searchsorted: sorter must be a tensor of long dtype, got {sorter!r}; pass what argsort gives"
        )
    if tuple(sorter.native.shape) != tuple(sequence.native.shape):
        raise ShapeError(
            f"searchsorted: boundary and sorter must have the same size, got {list(sequence.shape)} and "
            f"{list(sorter.shape)}; pass what argsort gives"
        )
    return gather(sequence.detach(), -1, sorter)


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False,
              out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The number of the bucket, between two of the ``boundaries``, that each value falls into."""
    check_tensors("bucketize", boundaries=boundaries)
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries tensor must be 1 dimension, got {boundaries.ndim}; flatten it")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
