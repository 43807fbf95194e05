"""NumPy's arrays as tensors on the host, of the same memory."""

from __future__ import annotations

import warnings

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.placement import Default, host_device
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["from_numpy"]


@before("from_numpy", Default, dtypes.BY_NUMPY, Backend)
def _usual(ndarray: np.ndarray) -> Tensor | None:
    """What ``from_numpy`` makes of an array of which there is nothing to say; None where it has to look."""


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the host that shares the memory of a NumPy array."""
    if (found := _usual(ndarray)) is not None:
        return found
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentTypeError(
            f"from_numpy: expected np.ndarray (got {type(ndarray).__name__}); use torch.tensor(...)"
        )
    if not ndarray.dtype.isnative:
        raise ArgumentError(
            f"from_numpy: given numpy array has byte order different from the native byte order, got {ndarray.dtype}; "
            f"convert it with array.astype(array.dtype.newbyteorder('='))"
        )
    dtype = dtypes.from_numpy_dtype(ndarray.dtype)
    size = dtype.itemsize
    for step in ndarray.strides:
        if step < 0:
            raise ArgumentError(
                f"from_numpy: At least one stride in the given numpy array is negative, got strides {ndarray.strides}, and "
                f"tensors with negative strides are not supported; use array.copy()"
            )
        if step % size:
            raise ArgumentError(
                f"from_numpy: given numpy array strides not a multiple of the element byte size, got {ndarray.strides}; "
                f"use array.copy()"
            )
    if not ndarray.flags.writeable:
        warnings.warn(
            "from_numpy: expected a writable array, got one that is not: writes to the tensor will fail; copy the "
            "array to "
            "protect its data or make it writable before",
            stacklevel=2,
        )
    device = host_device()
    return new_tensor(device.share_host(ndarray), dtype, device)
