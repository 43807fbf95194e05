"""Labels of classes: whether a call with them is the usual one, and whether all of them are classes."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.backend.base import Backend, Native
from tensorcore.errors import DimensionError
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor

__all__ = ["check_labels", "is_plain", "look", "weighs"]


@before("plain_classes", PLAIN_FLOATS, dtypes.int64, ("mean", "sum", "none"))
def is_plain(
    input: Any, target: Any, weight: Any, size_average: Any, ignore_index: Any, reduce: Any, reduction: Any
) -> bool:
    """Whether a call is the usual one, of scores (samples, classes) and a class for each: only the labels are to be looked at."""
    return (
        type(input) is type(target) is Tensor
        and input.dtype in PLAIN_FLOATS
        and target.dtype is dtypes.int64
        and weight is size_average is reduce is None
        and type(ignore_index) is int
        and type(reduction) is str
        and reduction in ("mean", "sum", "none")
        and len(shape := input.native.shape) == 2
        and tuple(target.native.shape) == tuple(shape[:1])
    )


def weighs(weight: Any, input: Tensor) -> bool:
    """Whether there are no weights, or plain ones, off the tape, for the classes of scores (samples, classes) of their dtype."""
    return weight is None or (
        type(weight) is Tensor
        and weight.node is None
        and weight.dtype is input.dtype
        and tuple(weight.native.shape) == tuple(input.native.shape[1:])
    )


def look(op: str, target: Tensor, classes: int, ignore_index: int) -> None:
    """Check the labels, where a look is cheap, as on the host; a device that wraps another one looks when it runs the kernel."""
    device = target.device
    can = device.capabilities
    if (
        can.host or (can.values and not device.checks_indices and device.wraps is None)
    ) and 0 not in target.native.shape:
        check_labels(op, device, target.native, classes, ignore_index)


def check_labels(op: str, device: Backend, target: Native, classes: int, ignore_index: int) -> None:
    """Raise DimensionError where a label of a native array is neither a class nor ``ignore_index``."""
    kernels = device.kernels
    low, high = kernels["index_bounds"](target)
    if low >= 0 and high < classes:
        return
    # Once more without those that are ignored, in kernels: a compiled function can look again, but not read.
    low, high = kernels["index_bounds"](kernels["where"](kernels["eq"](target, ignore_index), 0, target))
    if low >= 0 and high < classes:
        return
    values = device.to_host(target)
    wrong = (values < 0) | (values >= classes)
    wrong &= values != ignore_index
    if wrong.any():
        raise DimensionError(
            f"{op}: Target {values[wrong].flat[0]} is out of bounds, expected classes in [0, {classes - 1}], "
            "got it; or pass it as ignore_index"
        )
