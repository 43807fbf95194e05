"""The host's random generator: PyTorch's CPU generator, number for number and state for state."""

from __future__ import annotations

import math
import secrets
import threading
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from tensorcore.backend import distributions as dist
from tensorcore.dtypes import bfloat16, bool_, dtype, float16, float32, float64, from_numpy_dtype, int64
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError

__all__ = ["DEFAULT_SEED", "Generator", "RandomError", "default_generator"]

Array = np.ndarray
Shape = tuple[int, ...]

DEFAULT_SEED = 67280421310721

# PyTorch draws 64 bits instead of 32 where the range is at least this, to keep the modulo even.
_WIDE_RANGE = 1 << 28
# From here on PyTorch shuffles with 64-bit draws: 2**32 / 20.
_LARGE_SHUFFLE = ((1 << 32) - 1) // 20
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1

# The bytes of torch.get_rng_state().
_STATE = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "key", "normal", "has_normal", "single", "has_single"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", 624), "<f8", "<i4", "<f4", "?"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)


class RandomError(ArgumentError, RuntimeError):
    """A parameter or a state that a draw does not take; PyTorch raises RuntimeError for these."""


class Generator:
    """A Mersenne Twister that draws what PyTorch 2.13's CPU generator draws, bit for bit.

    Every draw returns a new C-ordered NumPy array of ``shape`` with the element type of ``dtype``
    (one of ``tensorcore.dtypes``) and moves the state as far as PyTorch's own call does, so the two
    can take turns on one state. Parameters are checked before anything is drawn. ``DtypeError``
    means that PyTorch has no such draw of that dtype, ``RandomError`` a parameter out of range,
    ``ShapeError`` a negative size.

    Equal bits are those of PyTorch's x86-64 builds on a processor with AVX2 or AVX-512. Where
    PyTorch runs without vector instructions (``ATEN_CPU_CAPABILITY=default``), float32, float16
    and bfloat16 normals of 16 elements or more differ in the last place of some elements.

    The methods may be called from several threads; each call is atomic.
    """

    __slots__ = ("_bits", "_lock", "_normal", "_seed", "_single", "_uint32", "_unused")

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._lock = threading.RLock()
        self._bits = np.random.MT19937()
        self._uint32 = np.random.Generator(self._bits).integers
        self.manual_seed(seed)

    # State

    def manual_seed(self, seed: int) -> Generator:
        """Start over from ``seed``, from -2**63 to 2**64 - 1 (a negative one counts from 2**64 down); returns self."""
        if isinstance(seed, (bool, np.bool_)) or not hasattr(seed, "__index__"):
            raise RandomError(f"manual_seed: expected an int, got {type(seed).__name__}; pass int(seed)")
        seed = seed.__index__()
        if not _INT64_MIN <= seed < 1 << 64:
            raise RandomError(f"manual_seed: expected a seed from -2**63 to 2**64 - 1, got {seed}; take it modulo 2**64")
        with self._lock:
            self._seed = seed % (1 << 64)
            # RandomState seeds with init_genrand, which MT19937's own constructor does not offer.
            self._bits.state = np.random.RandomState(self._seed & 0xFFFFFFFF).get_state(legacy=False)
            self._normal: float | None = None
            self._single: float | None = None
            self._unused = True
        return self

    def initial_seed(self) -> int:
        """The seed it last started from, in [0, 2**64)."""
        return self._seed

    def seed(self) -> int:
        """Start over from a seed of 53 bits that the operating system gives, and return it."""
        seed = secrets.randbits(53)
        self.manual_seed(seed)
        return seed

    def get_state(self) -> Array:
        """The state as uint8 of shape (5056,): the bytes that ``torch.get_rng_state()`` gives."""
        with self._lock:
            twister = self._bits.state["state"]
            state = np.zeros((), _STATE)
            state["seed"], state["seeded"], state["key"] = self._seed, 1, twister["key"]
            # PyTorch counts down what is left; a seeded twister that was never read points at 0, not past the end.
            state["next"], state["left"] = (0, 1) if self._unused else (twister["pos"], 625 - twister["pos"])
            if self._normal is not None:
                state["normal"], state["has_normal"] = self._normal, 1
            if self._single is not None:
                state["single"], state["has_single"] = self._single, True
        return np.frombuffer(state.tobytes(), np.uint8).copy()

    def set_state(self, state: Array) -> Generator:
        """Continue from ``state``, uint8 of shape (5056,) from here or from ``torch.get_rng_state()``; returns self."""
        if not isinstance(state, np.ndarray) or state.dtype != np.uint8:
            found = f"an array of {state.dtype}" if isinstance(state, np.ndarray) else type(state).__name__
            raise ArgumentTypeError(f"set_state: expected a uint8 array, got {found}; pass what get_state() returned")
        if state.size != _STATE.itemsize:
            raise RandomError(
                f"set_state: expected {_STATE.itemsize} bytes, got {state.size}; pass what get_state() of a CPU "
                f"generator returned"
            )
        fields = np.frombuffer(state.tobytes(), _STATE)[0]
        left, position = int(fields["left"]), int(fields["next"])
        unused = (left, position) == (1, 0)
        if not fields["seeded"] or not (unused or (1 <= left <= 624 and position == 625 - left)):
            raise RandomError(
                f"set_state: expected the state of a Mersenne Twister, got left={left}, next={position}, "
                f"seeded={int(fields['seeded'])}; pass what get_state() returned"
            )
        twister = {"key": fields["key"].astype(np.uint32), "pos": 625 - left}
        with self._lock:
            self._bits.state = {"bit_generator": "MT19937", "state": twister}
            self._seed, self._unused = int(fields["seed"]), unused
            self._normal = float(fields["normal"]) if fields["has_normal"] else None
            self._single = float(fields["single"]) if fields["has_single"] else None
        return self

    def clone(self) -> Generator:
        """A second generator that goes on from the same state, by itself."""
        return Generator().set_state(self.get_state())

    def __reduce__(self) -> Any:
        return _restored, (self.get_state(),)

    # Draws

    def uniform(self, shape: Shape, dtype: dtype = float32, low: float = 0.0, high: float = 1.0) -> Array:
        """Uniform in [low, high) (``torch.rand``, ``uniform_``); floating dtypes, complex ones part by part."""
        size, real = _size("uniform", shape), _real("uniform", dtype)
        limit = float(ml_dtypes.finfo(real.numpy).max)
        if not (-limit <= low <= limit and -limit <= high <= limit):
            raise RandomError(f"uniform: expected bounds within {real}, got low={low}, high={high}; narrow them")
        if not (low <= high and high - low <= limit):
            raise RandomError(
                f"uniform: expected low <= high, no further apart than {limit:g}, got low={low}, high={high}; "
                f"swap or narrow them"
            )
        size *= 1 + dtype.is_complex
        if real is float64:
            values = dist.uniform_float64(self._draw64(size))
            if (low, high) != (0.0, 1.0):
                values = dist.fma_float64(values, high - low, low)
        else:
            values = dist.uniform_float32(self._draw32(size))
            if (low, high) != (0.0, 1.0):
                start = np.float32(low)
                values = dist.fma_float32(values, np.float32(high) - start, start)
            values = values.astype(real.numpy, copy=False)
        if real.itemsize < 4 or (low, high) != (0.0, 1.0):
            # Rounding may reach the upper bound, which is not in the range.
            values[values == real.numpy.type(high)] = real.numpy.type(low)
        return values.view(dtype.numpy).reshape(shape)

    def normal(self, shape: Shape, dtype: dtype = float32, mean: float = 0.0, std: float = 1.0) -> Array:
        """Normal (``torch.randn``, ``normal_``); floating dtypes, complex ones with half the variance in each part.

        From 16 numbers on it transforms uniforms of the dtype in blocks of 16, and draws the last
        16 anew where the size is no multiple of 16. Below, it makes float64 normals one by one and
        keeps the second of a pair for the next such call.
        """
        size, real = _size("normal", shape), _real("normal", dtype)
        if not std >= 0.0:
            raise RandomError(f"normal: expected std >= 0, got {std}; pass its absolute value")
        if dtype.is_complex:
            size, std = 2 * size, std / math.sqrt(2.0)
        if size < 16:
            values = _narrowed(self._serial_normals(size, mean, std), real)
        elif real is float64:
            values = _with_tail(dist.uniform_float64(self._draw64(_padded(size))), size, dist.box_muller_float64)
            values = dist.fma_float64(values, std, mean)
        elif real is float32:
            values = _with_tail(dist.uniform_float32(self._draw32(_padded(size))), size, dist.box_muller_float32)
            values = dist.fma_float32(values, np.float32(std), np.float32(mean))
        else:
            # The 16-bit dtypes draw whole blocks only, where the wider ones draw every element first.
            uniforms = dist.uniform_float32(self._draw32(-(-size // 16) * 16))
            dist.box_muller_float32(uniforms)
            drawn = dist.fma_float32(uniforms, np.float32(std), np.float32(mean)).astype(real.numpy)
            values = np.concatenate((drawn[: size - size % 16], drawn[-16:]))[:size] if size % 16 else drawn
            values[-16:] = drawn[-16:]
        return values.view(dtype.numpy).reshape(shape)

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
            return _from_int64(self._draw64(size).view(np.int64), dtype).reshape(shape)
        if span >= _WIDE_RANGE:
            values = self._draw64(size) % np.uint64(span)
        else:
            draws = self._draw32(size)
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
        values = (self._draw64(size) if wide else self._draw32(size).astype(np.uint64)) % span
        return _from_int64(values.view(np.int64), dtype).reshape(shape)

    def permutation(self, n: int, dtype: dtype = int64) -> Array:
        """The numbers 0 to n - 1 in random order (``torch.randperm``); every real dtype but bool that holds ``n``."""
        if dtype is bool_ or dtype.is_complex:
            raise DtypeError(f"permutation: expected an integer or floating dtype, got {dtype}; pass torch.int64")
        if n < 0:
            raise ShapeError(f"permutation: expected n >= 0, got {n}; pass how many numbers to shuffle")
        if n > _largest_shuffled(dtype):
            raise RandomError(f"permutation: expected n up to {_largest_shuffled(dtype)} for {dtype}, got {n}; widen it")
        if n >= _LARGE_SHUFFLE:
            with self._lock:
                return _from_int64(dist.inside_out_shuffle(n, self._draw64), dtype)
        if n < 2:
            return np.zeros(n, dtype.numpy)
        return _from_int64(dist.shuffle(self._draw32(n - 1)), dtype)

    def bernoulli(self, probability: float | Array, shape: Shape | None = None, dtype: dtype | None = None) -> Array:
        """Ones with that probability, else zeros; every real dtype.

        A number draws as ``tensor.bernoulli_(p)`` and dropout do: from float64 uniforms on any
        processor (PyTorch 2.13's builds hold no other generator). An array, broadcast to ``shape``,
        draws as ``torch.bernoulli(p)`` does: from uniforms of float64 if that is its dtype, else of
        float32. ``shape`` and ``dtype`` default to the array's, or to () and float32.
        """
        if isinstance(probability, np.ndarray):
            shape = probability.shape if shape is None else shape
            given = from_numpy_dtype(probability.dtype)
            if not given.is_floating_point:
                raise DtypeError(f"bernoulli: expected floating probabilities, got {given}; convert them first")
        shape, dtype = () if shape is None else shape, dtype or (given if isinstance(probability, np.ndarray) else float32)
        size = _size("bernoulli", shape)
        if dtype.is_complex:
            raise DtypeError(f"bernoulli: expected a real dtype, got {dtype}; draw real ones and convert them")
        if not isinstance(probability, np.ndarray):
            if not 0.0 <= probability <= 1.0:
                raise RandomError(f"bernoulli: expected a probability from 0 to 1, got {probability}; clamp it")
            return (dist.uniform_float64(self._draw64(size)) < float(probability)).astype(dtype.numpy).reshape(shape)
        if not np.all((probability >= 0) & (probability <= 1)):
            raise RandomError("bernoulli: expected probabilities from 0 to 1, got some outside; clamp them")
        try:
            wanted = np.broadcast_to(probability, shape)
        except ValueError:
            raise ShapeError(
                f"bernoulli: expected probabilities that broadcast to {shape}, got shape {probability.shape}; reshape them"
            ) from None
        if probability.dtype == np.float64:
            uniforms = dist.uniform_float64(self._draw64(size))
        else:
            uniforms = dist.uniform_float32(self._draw32(size))
        return (uniforms.reshape(shape) < wanted.astype(uniforms.dtype)).astype(dtype.numpy)

    def exponential(self, shape: Shape, dtype: dtype = float32, rate: float = 1.0) -> Array:
        """Exponential with ``rate`` (PyTorch's ``lambd``) above 0; floating dtypes."""
        size = _size("exponential", shape)
        _floating("exponential", dtype)
        if not rate > 0.0:
            raise RandomError(f"exponential: expected rate > 0, got {rate}; pass one over the mean")
        values = dist.libm("log1p")(-dist.uniform_float64(self._draw64(size)))
        values *= -1.0 / rate
        return _narrowed(values, dtype).reshape(shape)

    def geometric(self, shape: Shape, dtype: dtype, probability: float) -> Array:
        """Trials up to the first success of that probability, in (0, 1); integer and floating dtypes."""
        size = _size("geometric", shape)
        if dtype is bool_ or dtype.is_complex:
            raise DtypeError(f"geometric: expected an integer or floating dtype, got {dtype}; pass torch.int64")
        if not 0.0 < probability < 1.0:
            raise RandomError(f"geometric: expected a probability between 0 and 1, got {probability}; clamp it")
        values = np.ceil(dist.libm("log")(dist.uniform_float64(self._draw64(size))) / math.log1p(-probability))
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
        return _narrowed(dist.libm("exp")(self._serial_normals(size, mean, std)), dtype).reshape(shape)

    def cauchy(self, shape: Shape, dtype: dtype = float32, median: float = 0.0, sigma: float = 1.0) -> Array:
        """Cauchy with ``median`` and half width ``sigma`` above 0; floating dtypes."""
        size = _size("cauchy", shape)
        _floating("cauchy", dtype)
        if not sigma > 0.0:
            raise RandomError(f"cauchy: expected sigma > 0, got {sigma}; pass its absolute value")
        values = dist.uniform_float64(self._draw64(size))
        values -= 0.5
        values *= math.pi
        return _narrowed(dist.fma_float64(dist.libm("tan")(values), sigma, median), dtype).reshape(shape)

    def multinomial(self, weights: Array, num_samples: int, replacement: bool = False) -> Array:
        """int64 indices drawn by weight: (num_samples,) for weights (categories,), a row each for (rows, categories).

        Weights are floating, at least 0 and finite, not all 0 in a row, and need not sum to 1.
        Without replacement, the order among categories of equal weight-to-draw ratio (those of
        weight 0, once the others are used up; chance ties of 16-bit weights) is by index here and
        unspecified in PyTorch.
        """
        if weights.ndim not in (1, 2):
            raise RandomError(f"multinomial: expected weights of 1 or 2 dims, got {weights.ndim}; reshape them")
        given, categories = from_numpy_dtype(weights.dtype), weights.shape[-1]
        _floating("multinomial", given)
        if num_samples <= 0:
            raise RandomError(f"multinomial: expected num_samples > 0, got {num_samples}; draw at least one")
        if not replacement and num_samples > categories:
            raise RandomError(
                f"multinomial: expected num_samples up to the {categories} categories, got {num_samples}; "
                f"draw with replacement=True"
            )
        if categories > 1 << 24:
            raise RandomError(f"multinomial: expected at most 2**24 categories, got {categories}; draw in two steps")
        rows = weights.reshape(-1, categories) if categories else np.zeros((weights.size or 1, 0))
        if not np.all((rows >= 0) & np.isfinite(rows)):
            raise RandomError("multinomial: expected weights >= 0 and finite, got others; clamp them")
        if not np.all(rows.sum(axis=1, dtype=np.float64) > 0):
            raise RandomError("multinomial: expected a sum of weights > 0, got 0; give some category a weight")
        if replacement and num_samples > 1:
            result = self._with_replacement(rows, num_samples)
        else:
            with np.errstate(divide="ignore", over="ignore"):
                ratio = rows / self.exponential(rows.shape, given)
            result = _largest_first(ratio, num_samples)
        return result.reshape(*weights.shape[:-1], num_samples)

    # Raw draws

    def _draw32(self, n: int) -> Array:
        with self._lock:
            self._unused = self._unused and n == 0
            # Both give the twister's words in order; the first takes 0.7 us for a few, the second half the memory.
            return self._bits.random_raw(n).astype(np.uint32) if n < 256 else self._uint32(0, 1 << 32, n, np.uint32)

    def _draw64(self, n: int) -> Array:
        words = self._draw32(2 * n).view(np.uint64)  # PyTorch's upper half comes first, so the halves change places
        swapped = words >> np.uint64(32)
        words <<= np.uint64(32)
        words |= swapped
        return words

    def _serial_normals(self, n: int, mean: float, std: float) -> Array:
        """``n`` float64 normals, made one by one: the kept second of a pair first, an odd last one kept."""
        with self._lock:
            kept = [] if self._normal is None or n == 0 else [self._normal]
            missing = n - len(kept)
            pairs = dist.polar_pairs(dist.uniform_float64(self._draw64(missing + missing % 2)))
            if n:
                self._normal = float(pairs[-1]) if missing % 2 else None
        return dist.fma_float64(np.concatenate((kept, pairs))[:n], std, mean)

    def _with_replacement(self, rows: Array, num_samples: int) -> Array:
        rows = rows if rows.dtype.itemsize >= 4 else rows.astype(np.float32)
        result = np.empty((len(rows), num_samples), np.int64)
        uniforms = dist.uniform_float64(self._draw64(result.size)).reshape(result.shape)
        for found, row, uniform in zip(result, rows, uniforms, strict=True):
            cumulative = np.cumsum(row, dtype=row.dtype)
            cumulative /= cumulative[-1]
            cumulative[-1] = 1.0
            found[...] = np.searchsorted(cumulative.astype(np.float64), uniform, side="left")
        return result


_default: Generator | None = None
_default_lock = threading.Lock()


def default_generator() -> Generator:
    """The generator of this process, which ``torch.manual_seed`` seeds; it starts from ``DEFAULT_SEED``."""
    global _default
    if _default is None:
        with _default_lock:  # made on first use: importing numpy.random takes longer than the rest of this file
            _default = _default or Generator()
    return _default


def _restored(state: Array) -> Generator:
    return Generator().set_state(state)


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
            raise DtypeError(f"integers: expected int64, float64, float32 or bfloat16 for 64 bits, got {dtype}; pass high")
        return low, 1 << 63
    high = _largest(dtype) + 1 if high is None else _int64("integers", "high", high)
    if low >= high:
        raise RandomError(f"integers: expected low < high, got low={low}, high={high}; swap them")
    if dtype.is_floating_point:
        smallest, largest = float(ml_dtypes.finfo(dtype.numpy).min), float(ml_dtypes.finfo(dtype.numpy).max)
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
                stacklevel=4,
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


def _from_int64(values: Array, dtype: dtype) -> Array:
    with np.errstate(over="ignore"):
        if dtype.is_floating_point and dtype.itemsize < 4:
            values = values.astype(np.float32)
        return values.astype(dtype.numpy, copy=False)


def _largest_first(ratio: Array, count: int) -> Array:
    """The column indices of each row's ``count`` largest values, largest first, the lower index of equals."""
    if count == 1:
        return np.argmax(ratio, axis=1)[:, None]
    return np.argsort(-ratio, axis=1, kind="stable")[:, :count]
