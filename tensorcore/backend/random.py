"""The host's random generator: PyTorch's CPU generator, number for number and state for state."""

from __future__ import annotations

import functools
import math
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorcore.backend import distributions as dist
from tensorcore.backend.twister import DEFAULT_SEED, RandomError, Twister
from tensorcore.dtypes import (
    bfloat16,
    bool_,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    from_numpy_dtype,
    int64,
)
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError

__all__ = ["DEFAULT_SEED", "Generator", "RandomError"]

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

# PyTorch draws 64 bits instead of 32 where the range is at least this, to keep the modulo even.
_WIDE_RANGE = 1 << 28
# From here on PyTorch shuffles with 64-bit draws: 2**32 / 20.
_LARGE_SHUFFLE = ((1 << 32) - 1) // 20
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


class _Later:
    """A draw that few programs use: a function of another file, which is imported on first use.

    Each has one of these, since a class with ``__getattr__`` looks up every name in Python's slow way.
    """

    def __init__(self, file: str) -> None:
        self._file = file

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, generator: Any, owner: type | None = None) -> Any:
        if generator is None:
            return self
        return functools.partial(getattr(import_module(f"tensorcore.backend.{self._file}"), self._name), generator)


class Generator(Twister):
    """A Mersenne Twister that draws what PyTorch 2.13's CPU generator draws, bit for bit.

    Every draw returns a new C-ordered NumPy array of ``shape`` with the element type of ``dtype``
    (one of ``tensorcore.dtypes``) and moves the state as far as PyTorch's own call does, so the two
    can take turns on one state. Parameters are checked before anything is drawn. ``DtypeError``
    means that PyTorch has no such draw of that dtype, ``RandomError`` a parameter out of range,
    ``ShapeError`` a negative size.

    Equal bits are those of PyTorch's x86-64 builds on a processor with AVX2 or AVX-512. Where
    PyTorch runs without vector instructions (``ATEN_CPU_CAPABILITY=default``), normals of 16
    numbers or more in less than float64 differ (38 % of a million float32 ones, by 2.3e-6 at most),
    and the last place of some numbers that are both scaled and shifted.

    The methods may be called from several threads; each call is atomic.
    """

    __slots__ = ()

    def uniform(self, shape: Shape, dtype: dtype = float32, low: float = 0.0, high: float = 1.0) -> Array:
        """Uniform in [low, high) (``torch.rand``, ``uniform_``); floating dtypes, complex ones part by part."""
        size, real = _size("uniform", shape), _real("uniform", dtype)
        limit = finfo(real).max
        if not (-limit <= low <= high <= limit and high - low <= limit):
            raise RandomError(
                f"uniform: expected low <= high, both and their distance within {real}, got low={low}, high={high}; "
                f"swap or narrow them"
            )
        size *= 1 + dtype.is_complex
        if real is float64:
            values = dist.uniform_float64(self.draw64(size))
            if (low, high) != (0.0, 1.0):
                values = dist.fma_float64(values, high - low, low)
        else:
            values = dist.uniform_float32(self.draw32(size))
            if (low, high) != (0.0, 1.0):
                start = np.float32(low)
                values = dist.fma_float32(values, np.float32(high) - start, start)
            values = values.astype(real.numpy, copy=False)
        if real.itemsize < 4 or (low, high) != (0.0, 1.0):
            # Rounding may reach the upper bound, which is not in the range.
            values[values == real.numpy.type(high)] = real.numpy.type(low)
        return _shaped(values.view(dtype.numpy), shape)

    def normal(self, shape: Shape, dtype: dtype = float32, mean: float = 0.0, std: float = 1.0) -> Array:
        """Normal (``torch.randn``, ``normal_``); floating dtypes, complex ones with half the variance in each part.

        From 16 numbers on it transforms uniforms of the dtype in blocks of 16, and draws the last
        16 anew where the size is no multiple of 16. Below, it makes float64 normals one by one and
        keeps the second of a pair for the next such call.
        """
        size, real, std = _normals(shape, dtype, std)
        if size < 16:
            values = _narrowed(self.serial_normals(size, mean, std), real)
        elif real is float64:
            values = _with_tail(dist.uniform_float64(self.draw64(_padded(size))), size, dist.box_muller_float64)
            values = dist.fma_float64(values, std, mean)
        elif real is float32:
            values = _with_tail(dist.uniform_float32(self.draw32(_padded(size))), size, dist.box_muller_float32)
            values = dist.fma_float32(values, np.float32(std), np.float32(mean))
        else:
            # The 16-bit dtypes draw whole blocks only, where the wider ones draw every element first.
            uniforms = dist.uniform_float32(self.draw32(-(-size // 16) * 16))
            dist.box_muller_float32(uniforms)
            drawn = dist.fma_float32(uniforms, np.float32(std), np.float32(mean)).astype(real.numpy)
            values = np.concatenate((drawn[: size - size % 16], drawn[-16:]))[:size] if size % 16 else drawn
            values[-16:] = drawn[-16:]
        return _shaped(values.view(dtype.numpy), shape)

    def serial_normal(self, shape: Shape, dtype: dtype = float32, mean: float = 0.0, std: float = 1.0) -> Array:
        """What ``normal_`` draws into a tensor that is not contiguous: float64 normals one by one, whatever the size."""
        size, real, std = _normals(shape, dtype, std)
        return _shaped(_narrowed(self.serial_normals(size, mean, std), real).view(dtype.numpy), shape)

    def integers(self, shape: Shape, dtype: dtype, low: int, high: int | None) -> Array:
        """Whole numbers in [low, high) (``torch.randint``, ``random_(low, high)``); every dtype but complex.

        ``high=None`` means up to the largest value of an integer dtype, the last of the consecutive
        whole numbers of a floating one.
        """
        size = _size("integers", shape)
        if dtype.is_complex:
            raise DtypeError(f"integers: expected a real dtype, got {dtype}; draw the two parts")
        low, high = _range(low, high, dtype)
        span = high - low
        if span == 1 << 64:
            return _from_int64(self.draw64(size).view(np.int64), dtype).reshape(shape)
        if span >= _WIDE_RANGE:
            values = self.draw64(size) % np.uint64(span)
        else:
            draws = self.draw32(size)
            # Dividing by a number is vectorised in NumPy, the remainder is not: 0.3 ms against 1.5 at 10**6.
            draws -= draws // np.uint32(span) * np.uint32(span)
            values = draws.astype(np.uint64)
        values += np.uint64(low % (1 << 64))
        return _from_int64(values.view(np.int64), dtype).reshape(shape)

    def random(self, shape: Shape, dtype: dtype) -> Array:
        """Whole numbers from 0 to the dtype's largest, for a floating dtype to 2**digits (``tensor.random_()``)."""
        size = _size("random", shape)
        if dtype.is_complex:
            raise DtypeError(f"random: expected a real dtype, got {dtype}; draw the two parts")
        span = np.uint64(_largest(dtype) + 1)
        wide = dtype in (float64, int64)
        values = (self.draw64(size) if wide else self.draw32(size).astype(np.uint64)) % span
        return _from_int64(values.view(np.int64), dtype).reshape(shape)

    def permutation(self, n: int = 0, dtype: dtype = int64, *, shape: Shape | None = None) -> Array:
        """The numbers 0 to n - 1 in random order (``torch.randperm``); every real dtype but bool that holds ``n``.

        Beside a ``shape``, that is (n,), ``n`` is left out.
        """
        n = n if shape is None else shape[0]
        if dtype is bool_ or dtype.is_complex:
            raise DtypeError(f"permutation: expected an integer or floating dtype, got {dtype}; pass torch.int64")
        if n < 0:
            raise ShapeError(f"permutation: expected n >= 0, got {n}; pass how many numbers to shuffle")
        if n > _largest_shuffled(dtype):
            raise RandomError(f"permutation: expected n that {dtype} holds, got {n}; pass a wider dtype")
        if n >= _LARGE_SHUFFLE:
            with self._lock:
                return _from_int64(dist.inside_out_shuffle(n, self.draw64), dtype)
        if n < 2:
            return np.zeros(n, dtype.numpy)
        return _from_int64(dist.shuffle(self.draw32(n - 1)), dtype)

    def bernoulli(
        self, probability: float | Array, shape: Shape | None = None, dtype: dtype | None = None, one: float = 1.0
    ) -> Array:
        """Ones with that probability, else zeros; every real dtype.

        A number draws as ``tensor.bernoulli_(p)`` and dropout do: from float64 uniforms on any
        processor (PyTorch 2.13's builds hold no other generator). An array, broadcast to ``shape``,
        draws as ``torch.bernoulli(p)`` does: from uniforms of float64 if that is its dtype, else of
        float32. ``shape`` and ``dtype`` default to the array's, or to () and float32. Beside a number ``one``
        stands in the place of the ones.
        """
        if isinstance(probability, np.ndarray):
            shape = probability.shape if shape is None else shape
            given = from_numpy_dtype(probability.dtype)
            if not given.is_floating_point:
                raise DtypeError(f"bernoulli: expected floating probabilities, got {given}; convert them first")
            dtype = given if dtype is None else dtype
        shape, dtype = () if shape is None else shape, float32 if dtype is None else dtype
        size = _size("bernoulli", shape)
        if dtype.is_complex:
            raise DtypeError(f"bernoulli: expected a real dtype, got {dtype}; draw real ones and convert them")
        if not isinstance(probability, np.ndarray):
            if not 0.0 <= probability <= 1.0:
                raise RandomError(f"bernoulli: expected a probability from 0 to 1, got {probability}; clamp it")
            made = (dist.uniform_float64(self.draw64(size)) < float(probability)).astype(dtype.numpy).reshape(shape)
            return made if one == 1.0 else made * dtype.numpy.type(one)
        if not np.all((probability >= 0) & (probability <= 1)):
            raise RandomError("bernoulli: expected probabilities from 0 to 1, got some outside; clamp them")
        try:
            wanted = np.broadcast_to(probability, shape)
        except ValueError:
            raise ShapeError(
                f"bernoulli: expected probabilities that broadcast to {shape}, got {probability.shape}; reshape them"
            ) from None
        if probability.dtype == np.float64:
            uniforms = dist.uniform_float64(self.draw64(size))
        else:
            uniforms = dist.uniform_float32(self.draw32(size))
        return (uniforms.reshape(shape) < wanted.astype(uniforms.dtype)).astype(dtype.numpy)

    def slopes(self, shape: Shape, dtype: dtype, input: Array, low: float, high: float) -> Array:
        """Ones, and where ``input``, of that shape, is at most 0 float64 uniforms in [low, high) (``rrelu``); floating dtypes."""
        below = input <= 0
        made = np.ones(shape, dtype.numpy)
        made[below] = _narrowed(self.uniform((int(below.sum()),), float64, low, high), dtype)
        return made

    def exponential(self, shape: Shape, dtype: dtype = float32, rate: float = 1.0) -> Array:
        """Exponential with ``rate`` (PyTorch's ``lambd``) above 0; floating dtypes."""
        size = _size("exponential", shape)
        _floating("exponential", dtype)
        if not rate > 0.0:
            raise RandomError(f"exponential: expected rate > 0, got {rate}; pass one over the mean")
        values = dist.libm("log1p")(-dist.uniform_float64(self.draw64(size)))
        values *= -1.0 / rate
        return _narrowed(values, dtype).reshape(shape)

    def geometric(self, shape: Shape, dtype: dtype, probability: float) -> Array:
        """Trials up to the first success of that probability, in (0, 1); integer and floating dtypes."""
        size = _size("geometric", shape)
        if dtype is bool_ or dtype.is_complex:
            raise DtypeError(f"geometric: expected an integer or floating dtype, got {dtype}; pass torch.int64")
        if not 0.0 < probability < 1.0:
            raise RandomError(f"geometric: expected a probability between 0 and 1, got {probability}; clamp it")
        values = np.ceil(dist.libm("log")(dist.uniform_float64(self.draw64(size))) / math.log1p(-probability))
        if dtype.is_floating_point:
            return _narrowed(values, dtype).reshape(shape)
        with np.errstate(invalid="ignore"):  # what does not fit becomes what the processor's conversion gives
            return values.astype(np.int64 if dtype is int64 else np.int32).astype(dtype.numpy).reshape(shape)

    def log_normal(self, shape: Shape, dtype: dtype = float32, mean: float = 1.0, std: float = 2.0) -> Array:
        """The exponential of a normal with ``mean`` and ``std`` above 0; floating dtypes. Shares the kept normal."""
        size = _size("log_normal", shape)
        _floating("log_normal", dtype)
        if not std > 0.0:
            raise RandomError(f"log_normal: expected std > 0, got {std}; pass its absolute value")
        return _narrowed(dist.libm("exp")(self.serial_normals(size, mean, std)), dtype).reshape(shape)

    def cauchy(self, shape: Shape, dtype: dtype = float32, median: float = 0.0, sigma: float = 1.0) -> Array:
        """Cauchy with ``median`` and half width ``sigma`` above 0; floating dtypes."""
        size = _size("cauchy", shape)
        _floating("cauchy", dtype)
        if not sigma > 0.0:
            raise RandomError(f"cauchy: expected sigma > 0, got {sigma}; pass its absolute value")
        values = dist.uniform_float64(self.draw64(size))
        values -= 0.5
        values *= math.pi
        return _narrowed(dist.fma_float64(dist.libm("tan")(values), sigma, median), dtype).reshape(shape)

    multinomial = _Later("weighted")
    binomial = _Later("rejection")
    dirichlet = _Later("rejection")
    gamma = _Later("rejection")
    poisson = _Later("rejection")


# Arguments


def _size(op: str, shape: Shape) -> int:
    if any(length < 0 for length in shape):
        raise ShapeError(f"{op}: expected sizes >= 0, got {tuple(shape)}; pass how many numbers to draw")
    return math.prod(shape)


def _floating(op: str, dtype: dtype) -> None:
    if not dtype.is_floating_point:
        raise DtypeError(f"{op}: expected a floating dtype, got {dtype}; pass e.g. torch.float32")


def _real(op: str, dtype: dtype) -> dtype:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise DtypeError(f"{op}: expected a floating or complex dtype, got {dtype}; pass e.g. torch.float32")
    return dtype.to_real()


def _int64(op: str, name: str, value: int) -> int:
    if not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{op}: expected {name} to be an int, got {type(value).__name__}; pass int({name})")
    value = value.__index__()
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise RandomError(f"{op}: expected {name} to fit in 64 bits, got {value}; narrow the range")
    return value


def _digits(dtype: dtype) -> int:
    return {float16: 11, bfloat16: 8, float32: 24}.get(dtype, 53)


def _largest(dtype: dtype) -> int:
    """The largest whole number that ``random`` draws."""
    if dtype.is_floating_point:
        return 1 << _digits(dtype)
    return 1 if dtype is bool_ else int(np.iinfo(dtype.numpy).max)


def _largest_shuffled(dtype: dtype) -> int:
    if dtype is bfloat16:
        return _INT64_MAX
    return _largest(dtype) + dtype.is_floating_point


def _stored(value: int, dtype: dtype) -> int:
    """``value`` to a floating dtype and back, as the processor converts: out of range is the lowest int64."""
    back = float(_from_int64(np.array([value], np.int64), dtype)[0])
    return int(back) if -(2.0**63) <= back < 2.0**63 else _INT64_MIN


def _first_above(low: int, dtype: dtype) -> int:
    """``low``, or where rounding would fall below it the next number that the dtype has."""
    stored = _stored(low + 1, dtype) if low < _INT64_MAX else low
    return low if stored >= low else stored + (1 << (abs(low + 1).bit_length() - _digits(dtype)))


def _first_below(high: int, dtype: dtype) -> int:
    """``high``, or where rounding would reach it the number before it that the dtype has."""
    stored = _stored(high - 1, dtype)
    return high if stored < high else stored - (1 << (abs(high - 1).bit_length() - _digits(dtype)))


def _range(low: int, high: int | None, dtype: dtype) -> tuple[int, int]:
    """The bounds that ``integers`` draws between, once PyTorch has moved them to values that the dtype has."""
    low = _int64("integers", "low", low)
    if high is None and low == _INT64_MIN:
        if dtype not in (int64, float64, float32, bfloat16):
            raise DtypeError(
                f"integers: expected int64, float64, float32 or bfloat16 for 64 bits, got {dtype}; give high"
            )
        return low, 1 << 63
    high = _largest(dtype) + 1 if high is None else _int64("integers", "high", high)
    if low >= high:
        raise RandomError(f"integers: expected low < high, got low={low}, high={high}; swap them")
    if dtype.is_floating_point:
        smallest, largest = finfo(dtype).min, finfo(dtype).max
        low, high = _first_above(low, dtype), _first_below(high, dtype)
        if low >= high:
            raise RandomError(f"integers: expected low < high as {dtype}, got low={low}, high={high}; widen the range")
    else:
        smallest, largest = (0, 1) if dtype is bool_ else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    for name, value in (("low", low), ("high - 1", high - 1)):
        if not smallest <= value <= largest:
            raise RandomError(f"integers: expected {name} within {dtype}, got {value}; pass a wider dtype")
        if dtype.is_floating_point and abs(value) > 1 << _digits(dtype):
            warnings.warn(
                f"integers: {name}={value} is beyond 2**{_digits(dtype)}, so {dtype} skips whole numbers in the range",
                UserWarning,
                stacklevel=3,
            )
    return low, high


# Values


def _padded(size: int) -> int:
    """How many uniforms ``size`` normals of 32 or 64 bits take: all, and 16 more for an uneven tail."""
    return size + 16 if size % 16 else size


def _with_tail(uniforms: Array, size: int, transform: Any) -> Array:
    """Normals of whole blocks, the last 16 of an uneven size from the 16 uniforms that follow."""
    if size % 16 == 0:
        transform(uniforms)
        return uniforms
    values, tail = uniforms[:size], uniforms[size:]
    transform(values[: size - size % 16])
    transform(tail)
    values[-16:] = tail
    return values


def _narrowed(values: Array, dtype: dtype) -> Array:
    """float64 values in a floating dtype, the 16-bit ones by way of float32."""
    with np.errstate(over="ignore"):
        if dtype.itemsize < 4:
            values = values.astype(np.float32)
        return values.astype(dtype.numpy, copy=False)


def _shaped(values: Array, shape: Shape) -> Array:
    return values.reshape(shape)


def _normals(shape: Shape, dtype: dtype, std: float) -> tuple[int, dtype, float]:
    """How many real normals a draw takes, of which dtype and deviation: two for a complex one, each of half the variance."""
    size, real = _size("normal", shape), _real("normal", dtype)
    if not std >= 0.0:
        raise RandomError(f"normal: expected std >= 0, got {std}; pass its absolute value")
    return (2 * size, real, std / math.sqrt(2.0)) if dtype.is_complex else (size, real, std)


def _from_int64(values: Array, dtype: dtype) -> Array:
    with np.errstate(over="ignore"):
        if dtype.is_floating_point and dtype.itemsize < 4:
            values = values.astype(np.float32)
        return values.astype(dtype.numpy, copy=False)
