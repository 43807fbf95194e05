"""Discrete Fourier transforms of complex and real signals.

Three ops carry all of them: complex to complex, real to the half of the spectrum that is not implied by symmetry, and
back. Where a device has no transform of its own they are products with small matrices of roots of unity, put together
by the algorithm of J. W. Cooley and J. W. Tukey ("An algorithm for the machine calculation of complex Fourier series",
Mathematics of Computation 19, 1965).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import DtypeError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.creation.create import from_numpy
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.pointwise.complex import complex, conjugate
from tensorcore.ops.samples import fourier as samples
from tensorcore.ops.shapes.arrange import flip
from tensorcore.ops.shapes.join import cat
from tensorcore.ops.shapes.pad import pad
from tensorcore.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

Dims = tuple[int, ...]

# The three ops

_c2c = Op("fft_c2c", "input", "The Fourier transform of complex numbers.", register=False,
          grads=dict(input=lambda g, dims, forward, scale: _complex(g, dims, not forward, scale)))  # fmt: skip
_r2c = Op("fft_r2c", "input", "Half of the Fourier transform of real numbers.", register=False,
          grads=dict(input=lambda g, input_shape, dims, forward, scale: _unhalved(g, input_shape, dims, forward, scale)))  # fmt: skip
_c2r = Op("fft_c2r", "input", "Real numbers from half of their Fourier transform.", register=False,
          grads=dict(input=lambda g, input_shape, dims, forward, scale: _halved(g, input_shape, dims, forward, scale)))  # fmt: skip


def _complex(x: Any, dims: Dims, forward: bool, scale: float) -> Tensor:
    if not dims:
        return x if x.dtype.is_complex else complex(x, x.new_zeros(x.shape))
    if x.device.kernels["fft_c2c"]:
        options = {"dims": dims, "forward": forward, "scale": scale}
        return apply(_c2c, (x,), options, dtype=x.dtype.to_complex())  # type: ignore[no-any-return]
    made = x if x.dtype.is_complex else complex(x, x.new_zeros(x.shape))
    for dim in dims:
        made = _by_parts(made.movedim(dim, -1), forward).movedim(-1, dim)
    return (made if scale == 1.0 else made * scale).contiguous()  # type: ignore[no-any-return]


def _real_to_half(x: Any, dims: Dims, forward: bool, scale: float) -> Tensor:
    if x.device.kernels["fft_r2c"]:
        options = {"dims": dims, "forward": forward, "scale": scale}
        return apply(_r2c, (x,), options, dtype=x.dtype.to_complex())  # type: ignore[no-any-return]
    whole: Any = _complex(x, dims, forward, scale)
    return whole.narrow(dims[-1], 0, x.native.shape[dims[-1]] // 2 + 1).contiguous()  # type: ignore[no-any-return]


def _half_to_real(x: Any, dims: Dims, size: int, forward: bool, scale: float) -> Tensor:
    if x.device.kernels["fft_c2r"]:
        options = {"dims": dims, "size": size, "forward": forward, "scale": scale}
        return apply(_c2r, (x,), options, dtype=x.dtype.to_real())  # type: ignore[no-any-return]
    last = dims[-1]
    x = _complex(x, dims[:-1], forward, 1.0)
    # The other half is the conjugate of this one in reverse, and the first number (for even sizes the last) is real.
    start, middle = x.narrow(last, 0, 1), x.narrow(last, 1, (size - 1) // 2)
    parts = [complex(start.real, start.real * 0), middle]
    if size % 2 == 0:
        end = x.narrow(last, size // 2, 1)
        parts.append(complex(end.real, end.real * 0))
    parts.append(conjugate(flip(middle, last)))
    made: Any = _complex(cat(parts, last), (last,), forward, scale)
    return made.real.contiguous()  # type: ignore[no-any-return]


def _unhalved(g: Any, shape: Dims, dims: Dims, forward: bool, scale: float) -> Tensor:
    """The transpose of ``_real_to_half``: the missing half of the spectrum had no gradient."""
    whole = list(shape)
    missing = shape[dims[-1]] - g.native.shape[dims[-1]]
    whole[dims[-1]] = missing
    g = cat([g, g.new_zeros(whole)], dims[-1]) if missing else g
    made: Any = _complex(g, dims, not forward, scale)
    return made.real  # type: ignore[no-any-return]


def _halved(g: Any, shape: Dims, dims: Dims, forward: bool, scale: float) -> Tensor:
    """The transpose of ``_half_to_real``: what stands for two numbers gets twice the gradient."""
    last = dims[-1]
    size = g.native.shape[last]
    made: Any = _real_to_half(g, dims, not forward, scale)
    twice = (size - 1) // 2
    double = np.ones(shape[last])
    double[1 : 1 + twice] = 2.0
    factor = from_numpy(double).to(g.device, g.dtype).reshape([-1 if i == last else 1 for i in range(g.ndim)])  # type: ignore[attr-defined]
    return made * factor  # type: ignore[no-any-return]


# Without a kernel

_SMALL = 32


def _by_parts(x: Any, forward: bool) -> Any:
    """The transform along the last dim: short ones, and those of prime length, by one product with a matrix."""
    n = x.native.shape[-1]
    p = next((i for i in range(2, math.isqrt(n) + 1) if n % i == 0), n)
    if n <= _SMALL or p == n:
        return x @ _roots(n, n, n, forward, x)
    q = n // p
    # Element q*i + j of the signal goes to k + p*l of the spectrum: first along i, then, turned, along j.
    grid = x.reshape((*x.shape[:-1], p, q))
    grid = _roots(p, p, p, forward, x) @ grid * _roots(p, q, n, forward, x)
    return _by_parts(grid, forward).mT.reshape(x.shape)


def _roots(rows: int, columns: int, n: int, forward: bool, like: Any) -> Tensor:
    made: Any = from_numpy(_table(rows, columns, n, forward, like.dtype is dtypes.complex64))
    return made.to(like.device)  # type: ignore[no-any-return]


@functools.lru_cache(64)
def _table(rows: int, columns: int, n: int, forward: bool, single: bool) -> np.ndarray:
    turns = np.outer(np.arange(rows), np.arange(columns)) % n / n
    made = np.exp((-2j if forward else 2j) * np.pi * turns)
    return made.astype(np.complex64 if single else np.complex128)


# Arguments

_NORMS = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}


def _scale(op: str, norm: str | None, sizes: Sequence[int], forward: bool) -> float:
    """The factor of a transform of that many elements."""
    if norm not in _NORMS:
        raise UsageError(f"{op}: Invalid normalization mode: \"{norm}\", got it; pass 'forward', 'backward' or 'ortho'")
    power = _NORMS[norm] if forward else 1.0 - _NORMS[norm]
    return float(math.prod(sizes)) ** -power if power else 1.0


_PLAIN = frozenset([dtypes.float32, dtypes.float64])
_READY = _PLAIN | {dtypes.complex64, dtypes.complex128}


def _floating(op: str, input: Any, real: bool = False) -> Any:
    if input.dtype.kind in ("bool", "integer"):
        input = input.to(dtypes.get_default_dtype())
    if real and input.dtype.is_complex:
        raise DtypeError(f"{op}: {op} expects a real input tensor, but got {input.dtype.name}; take its real part")
    if input.dtype.itemsize == 2:
        raise DtypeError(f"{op}: Unsupported dtype {input.dtype.name}, got one; convert it with .float()")
    return input


def _as_complex(x: Any) -> Any:
    return x if x.dtype.is_complex else complex(x, x.new_zeros(x.shape))


def _resized(op: str, x: Any, dims: Dims, sizes: Sequence[int]) -> Any:
    """The input cut off, or continued by zeros, at the end of each dim."""
    shape, more = x.native.shape, None
    for dim, size in zip(dims, sizes, strict=True):
        if size < 1:
            raise ShapeError(f"{op}: Invalid number of data points ({size}) specified, got it; pass at least 1")
        if size < shape[dim]:
            x = x.narrow(dim, 0, size)
        elif size > shape[dim]:
            more = more or [0] * (2 * len(shape))
            more[-2 * dim - 1] = size - shape[dim]  # behind: what stands last is the first dim's
    return x if more is None else pad(x, tuple(more))


def _one(op: str, input: Any, n: int | None, dim: int) -> tuple[Dims, list[int]]:
    """The dim, and how many elements of it are meant."""
    if type(input) is not Tensor:
        check_tensors(op, input=input)
    shape = input.native.shape
    ndim = len(shape)
    if not ndim:
        raise rules.DimensionError(f"{op}: Dimension specified as {dim} but tensor has no dimensions, got a 0-d tensor")
    at = dim % ndim if type(dim) is int and -ndim <= dim < ndim else rules.wrap_dim(op, dim, ndim)
    return (at,), [shape[at] if n is None else n if type(n) is int else rules.whole(op, "n", n)]


def _several(op: str, input: Any, s: Any, dim: Any) -> tuple[Dims, list[int]]:
    """The dims and their sizes, as ``s`` and ``dim`` say: all dims, or the last ones that ``s`` has sizes for."""
    if type(input) is not Tensor:
        check_tensors(op, input=input)
    shape = input.native.shape
    ndim = len(shape)
    if s is None and dim is None:
        return tuple(range(ndim)), list(shape)
    if s is None and type(dim) is tuple and dim == (-2, -1) and ndim > 1:
        return (ndim - 2, ndim - 1), list(shape[-2:])
    sizes = None
    if s is not None:
        sizes = [one if type(one) is int else rules.whole(op, "s", one) for one in ([s] if isinstance(s, int) else s)]
    if dim is not None:
        dims = rules.wrap_dims(op, dim, ndim)
        if sizes is not None and len(sizes) != len(dims):
            raise ShapeError(
                f"{op}: When given, dim and shape arguments must have the same length, got {dims} and {sizes}"
            )
    else:
        if len(sizes) > ndim:  # type: ignore[arg-type]
            raise ShapeError(f"{op}: Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions")  # type: ignore[arg-type]
        dims = tuple(range(ndim - len(sizes), ndim))  # type: ignore[arg-type]
    return dims, [shape[at] if size == -1 else size for at, size in zip(dims, sizes or [-1] * len(dims), strict=True)]


def _complex_transform(op: str, input: Any, dims: Dims, sizes: list[int], norm: Any, forward: bool, out: Any) -> Tensor:
    x = input if input.dtype in _READY else _floating(op, input)
    shape = x.native.shape
    for at, size in zip(dims, sizes, strict=True):
        if size != shape[at] or size < 1:
            x = _resized(op, x, dims, sizes)
            break
    scale = 1.0 if norm is None and forward else _scale(op, norm, sizes, forward)
    if dims and x.device.kernels["fft_c2c"]:
        made = apply(_c2c, (x,), {"dims": dims, "forward": forward, "scale": scale}, dtype=x.dtype.to_complex())
    else:
        made = _complex(x, dims, forward, scale)
    return made if out is None else store(op, made, out)  # type: ignore[no-any-return]


def _real_transform(op: str, input: Any, dims: Dims, sizes: list[int], norm: Any, forward: bool, out: Any) -> Tensor:
    if not dims:
        raise ShapeError(f"{op}: {op} must transform at least one axis, got none; name a dim")
    x = _resized(op, input if input.dtype in _PLAIN else _floating(op, input, real=True), dims, sizes)
    scale = 1.0 if norm is None and forward else _scale(op, norm, sizes, forward)
    made = _real_to_half(x, dims, forward, scale)
    return made if out is None else store(op, made, out)  # type: ignore[no-any-return]


def _back_to_real(
    op: str, input: Any, dims: Dims, sizes: list[int], whole: bool, norm: Any, forward: bool, out: Any
) -> Tensor:
    """``whole``: the last of the sizes is that of the spectrum's half, and the result's follows from it."""
    if not dims:
        raise ShapeError(f"{op}: {op} must transform at least one axis, got none; name a dim")
    size = 2 * (sizes[-1] - 1) if whole else sizes[-1]
    if size < 1:
        raise ShapeError(f"{op}: Invalid number of data points ({size}) specified, got it; pass at least 1")
    x = input if input.dtype.is_complex else _as_complex(_floating(op, input))
    sizes[-1] = size // 2 + 1
    x = _resized(op, x, dims, sizes)
    sizes[-1] = size
    scale = _scale(op, norm, sizes, forward) if norm is not None else 1.0 if forward else 1.0 / math.prod(sizes)
    made = _half_to_real(x, dims, size, forward, scale)
    return made if out is None else store(op, made, out)  # type: ignore[no-any-return]


# The functions: along one dim


@operation(samples=samples.one_dim, method=False)
def fft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The discrete Fourier transform along ``dim``.

    Args:
        n: how many elements to transform; the input is cut off or continued by zeros.
        norm: ``backward`` (no factor; the default), ``ortho`` (1 / sqrt(n)) or ``forward`` (1 / n). Of inverse
            transforms, ``backward`` is 1 / n and ``forward`` no factor.
    """
    return _complex_transform("fft", input, *_one("fft", input, n, dim), norm, True, out)


@operation(samples=samples.one_dim, method=False)
def ifft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of :func:`fft`."""
    return _complex_transform("ifft", input, *_one("ifft", input, n, dim), norm, False, out)


@operation(samples=samples.one_dim_real, method=False)
def rfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The first n // 2 + 1 elements of the transform of a real signal; the others are conjugates of these."""
    return _real_transform("rfft", input, *_one("rfft", input, n, dim), norm, True, out)


@operation(samples=samples.half, method=False)
def irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of :func:`rfft`: ``n`` real elements (2 * (size - 1) unless told)."""
    return _back_to_real("irfft", input, *_one("irfft", input, n, dim), n is None, norm, False, out)


@operation(samples=samples.half, method=False)
def hfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The real transform of a signal of which half is given, the other half being its conjugate in reverse."""
    return _back_to_real("hfft", input, *_one("hfft", input, n, dim), n is None, norm, True, out)


@operation(samples=samples.one_dim_real, method=False)
def ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of :func:`hfft`."""
    return _real_transform("ihfft", input, *_one("ihfft", input, n, dim), norm, False, out)


# Along several dims


@operation(samples=samples.several, method=False)
def fftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The transform along several dims: all of them, those in ``dim``, or the last ones that ``s`` has sizes for."""
    return _complex_transform("fftn", input, *_several("fftn", input, s, dim), norm, True, out)


@operation(samples=samples.several, method=False)
def ifftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of :func:`fftn`."""
    return _complex_transform("ifftn", input, *_several("ifftn", input, s, dim), norm, False, out)


@operation(samples=samples.several_real, method=False)
def rfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The transform of a real signal along several dims, half of the last one."""
    return _real_transform("rfftn", input, *_several("rfftn", input, s, dim), norm, True, out)


@operation(samples=samples.several_half, method=False)
def irfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of :func:`rfftn`; ``s`` has the sizes of the real result."""
    return _back_to_real("irfftn", input, *_several("irfftn", input, s, dim), _implied(s), norm, False, out)


@operation(samples=samples.several_half, method=False)
def hfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The real transform along several dims of a signal of which half of the last one is given."""
    return _back_to_real("hfftn", input, *_several("hfftn", input, s, dim), _implied(s), norm, True, out)


@operation(samples=samples.several_real, method=False)
def ihfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of :func:`hfftn`."""
    return _real_transform("ihfftn", input, *_several("ihfftn", input, s, dim), norm, False, out)


def _implied(s: Any) -> bool:
    """Whether nobody says how long the last dim of a real result is."""
    return s is None or (s if isinstance(s, int) else s[-1]) == -1


def _plane(function: Any, calls: Any) -> Any:
    name = function.__name__[:-1] + "2"

    def call(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *,
             out: Tensor | None = None) -> Tensor:  # fmt: skip
        return function(input, s, (-2, -1) if dim is None else dim, norm, out=out)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f":func:`{function.__name__}` along two dims, the last ones unless told otherwise."
    return operation(samples=calls, method=False)(call)


fft2, ifft2 = _plane(fftn, samples.plane), _plane(ifftn, samples.plane)
rfft2, irfft2 = _plane(rfftn, samples.plane_real), _plane(irfftn, samples.plane_half)
hfft2, ihfft2 = _plane(hfftn, samples.plane_half), _plane(ihfftn, samples.plane_real)
