"""What ``gradcheck`` compares: the numbers of tensors as arrays on the host, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore.errors import TensorcoreError
from tensorcore.ops.creation.create import from_numpy
from tensorcore.tensor import Tensor

__all__ = ["GradcheckError"]


class GradcheckError(TensorcoreError, RuntimeError):
    """A derivative that the finite differences do not confirm."""


def outputs_of(func: Any, values: Any) -> list[Tensor]:
    """The floating results of a call."""
    found = func(*values)
    return [
        one
        for one in (found if isinstance(found, (tuple, list)) else (found,))
        if isinstance(one, Tensor) and one.dtype.kind in ("floating", "complex")
    ]


def host_of(tensor: Tensor) -> np.ndarray:
    return tensor.detach().device.to_host(tensor.native)


def reals(host: np.ndarray) -> np.ndarray:
    """The numbers one by one, a complex one as its two parts."""
    flat = np.ascontiguousarray(host).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def units_of(output: Tensor) -> list[Tensor]:
    """The gradients that pick one real number of the output each."""
    made = []
    shape = tuple(output.shape)
    for position in np.ndindex(shape):
        for part in (1.0, 1.0j) if output.dtype.is_complex else (1.0,):
            host = np.zeros(shape, output.dtype.numpy)
            host[position] = part
            made.append(from_numpy(host).to(output.device))
    return made


def name_of(func: Any) -> str:
    return getattr(func, "__name__", type(func).__name__)
