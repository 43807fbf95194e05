"""Fourier transforms under the standard's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore import fft as _fft
from tensorcore.array_api.promotion import array
from tensorcore.tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq",
    "rfftn",
]  # fmt: skip


def _along(name: str) -> Callable[..., Tensor]:
    function = getattr(_fft, name)

    def call(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return function(array(name, x), n, axis, norm)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


def _over(name: str) -> Callable[..., Tensor]:
    function = getattr(_fft, name)

    def call(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return function(array(name, x), s, axes, norm)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


fft, hfft, ifft, ihfft, irfft, rfft = map(_along, ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft"))
fftn, ifftn, irfftn, rfftn = map(_over, ("fftn", "ifftn", "irfftn", "rfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of a transform of ``n`` samples at distances ``d``."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of a transform of ``n`` real samples at distances ``d``."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The zero frequency in the middle of each axis."""
    return _fft.fftshift(array("fftshift", x), axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The zero frequency in front again."""
    return _fft.ifftshift(array("ifftshift", x), axes)
