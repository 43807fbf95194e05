"""Fourier transforms, each in one pass over the dims and with one factor: SciPy's beside NumPy, else the namespace's own.

SciPy's transform several rows at once and take a third of the time of NumPy's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend; ``dims`` are counted from the front, ``scale`` multiplies the plain sums."""
    xp = backend.xp
    fft = import_module("scipy.fft") if xp is np else xp.fft

    def scaled(result: Native, single: bool, scale: float, real: bool = False) -> Native:
        kind = (np.float32 if real else np.complex64) if single else (np.float64 if real else np.complex128)
        result = xp.ascontiguousarray(result, dtype=kind)
        if scale != 1.0:
            result *= result.dtype.type(scale)
        return result

    def fft_c2c(x: Native, *, dims: tuple[int, ...], forward: bool, scale: float) -> Native:
        """Each of the dims transformed; a real array's values count as complex ones."""
        single = x.dtype in (np.float32, np.complex64)
        if not x.size:
            return xp.zeros(x.shape, np.complex64 if single else np.complex128)
        # SciPy would mirror a real signal's half, and the sum of all of it would get the imaginary part -0.
        x = x.astype(np.complex64 if single else np.complex128, copy=False)
        if len(dims) == 1:  # half the checks
            made = fft.fft(x, axis=dims[0]) if forward else fft.ifft(x, axis=dims[0], norm="forward")
            return scaled(made, single, scale)
        transform, norm = (fft.fftn, "backward") if forward else (fft.ifftn, "forward")
        return scaled(transform(x, axes=dims, norm=norm), single, scale)

    def fft_r2c(x: Native, *, dims: tuple[int, ...], forward: bool, scale: float) -> Native:
        """The same of a real array, without the half of the last of the dims that follows by symmetry."""
        single = x.dtype == np.float32
        shape = list(x.shape)
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
        if not x.size:
            return xp.zeros(tuple(shape), np.complex64 if single else np.complex128)
        made = fft.rfft(x, axis=dims[-1])
        # The inverse of a real signal is the conjugate of the forward one along the last dim.
        made = made if forward else xp.conjugate(made)
        for dim in dims[:-1]:
            made = fft.fft(made, axis=dim) if forward else fft.ifft(made, axis=dim, norm="forward")
        return scaled(made, single, scale)

    def fft_c2r(x: Native, *, dims: tuple[int, ...], size: int, forward: bool, scale: float) -> Native:
        """Back from that half to the real array, whose last of the dims has ``size`` elements."""
        single = x.dtype == np.complex64
        shape = tuple([size if i == dims[-1] else n for i, n in enumerate(x.shape)])
        if not x.size:
            return xp.zeros(shape, np.float32 if single else np.float64)
        for dim in dims[:-1]:
            x = fft.fft(x, axis=dim) if forward else fft.ifft(x, axis=dim, norm="forward")
        x = xp.conjugate(x) if forward else x
        return scaled(fft.irfft(x, size, axis=dims[-1], norm="forward"), single, scale, real=True)

    return {function.__name__: function for function in (fft_c2c, fft_r2c, fft_c2r)}
