"""A stand-in for CuPy without a GPU: strict about what real CuPy refuses, and about the order of work.

What it proves is that the code runs, calls CuPy as CuPy is, and waits where it must. It proves nothing about numbers that a
GPU computes, nor about speed.
"""

from __future__ import annotations

from typing import Any

import numpy

from . import _array, _functions, _kernels

__version__ = "14.2.0+standin"
globals().update(_functions.table("cupy", numpy))
globals().update(_functions.OWN)
ndarray, ufunc = _array.ndarray, _functions.ufunc
RawModule, RawKernel, ElementwiseKernel = _kernels.RawModule, _kernels.RawKernel, _kernels.ElementwiseKernel
ReductionKernel = _kernels.ReductionKernel
newaxis, pi, inf, nan, e = None, numpy.pi, numpy.inf, numpy.nan, numpy.e

from . import cuda, fft, linalg

_functions.operators()


def get_default_memory_pool() -> Any:
    """The pool that arrays come from unless another allocator is set."""
    return cuda._default_pool


def get_array_module(*args: Any) -> Any:
    """This module where an argument is a device array, else NumPy."""
    import cupy

    return cupy if any([isinstance(one, ndarray) for one in args]) else numpy


def show_config() -> None:
    """Print what it is."""
    print(f"CuPy {__version__}, over NumPy {numpy.__version__}")


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'cupy' (stand-in) has no attribute {name!r}: real CuPy has none, or it is not stood in for"
    )
