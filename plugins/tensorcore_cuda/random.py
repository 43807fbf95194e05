"""Random numbers made on the device: Philox4x32-10, whose n-th number depends on the seed, the call and n alone.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11). A block is four 32-bit words; a call
takes as many blocks as it needs, counted on from where the last call ended, and no launch shape enters into it.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import cupy
import numpy as np

from tensorcore.plugin import ArgumentError, dtypes

from .kernels.launch import C_TYPES, Driver, family

__all__ = ["DEFAULT_SEED", "Philox", "refuse_in_capture"]

Native = Any
DEFAULT_SEED = 67280421310721  # that of PyTorch's generators
_MASK = (1 << 64) - 1
_STATE = struct.Struct("<QQ")
_FORMATS = {np.float32: "f", np.float64: "d"}


class Philox:
    """One device's source of random numbers.

    Attributes:
        key: the seed as 64 bits.
        offset: how many blocks were taken since it was seeded.
    """

    def __init__(self, backend: Any, seed: int = DEFAULT_SEED) -> None:
        self.backend = backend
        self.offset = 0
        self._find: Any = None
        self._zero: Native = None
        # While a graph is captured, key and first block are on the device, where each replay sets them anew.
        self.base: Native = None
        self.taken = 0
        self._checked: set[Any] = set()
        self.manual_seed(seed)

    # The generator's protocol

    def manual_seed(self, seed: int) -> Philox:
        """Start over from a seed."""
        seed = int(seed)
        if not -(1 << 63) <= seed <= _MASK:
            raise ArgumentError(f"manual_seed: expected a seed of 64 bits, got {seed}; take a smaller one")
        self.key, self._seed, self.offset = seed & _MASK, seed, 0
        return self

    def seed(self) -> int:
        """Start over from a seed that nobody can foretell, and return it."""
        import secrets

        self.manual_seed(secrets.randbits(53))
        return self._seed

    def initial_seed(self) -> int:
        """The seed it last started from."""
        return self._seed

    def get_state(self) -> np.ndarray:
        """The seed and the offset: PyTorch's 16 bytes, whose offset counts single words."""
        return np.frombuffer(_STATE.pack(self.key, 4 * self.offset & _MASK), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> None:
        """Go on from a state."""
        data = np.ascontiguousarray(state, np.uint8).tobytes()
        if len(data) != _STATE.size:
            raise ArgumentError(
                f"set_state: expected RNG state of {_STATE.size} bytes, got {len(data)}; pass what get_state() gave"
            )
        self.key, words = _STATE.unpack(data)
        self._seed, self.offset = self.key, -(-words // 4)

    def mark(self) -> tuple[int, int, int]:
        """Where it is, for ``go_back``."""
        return self.key, self._seed, self.offset

    def go_back(self, mark: tuple[int, int, int]) -> None:
        """Go on from where it was at a mark."""
        self.key, self._seed, self.offset = mark

    def clone(self) -> Philox:
        """A second one that goes on from here by itself."""
        made = Philox(self.backend, self._seed)
        made.offset = self.offset
        return made

    # Words

    def words(self, count: int) -> Native:
        """A vector of 32-bit words."""
        with self.backend.place:
            made = cupy.ndarray((count,), np.uint32)
            self._launch("philox_words", made, 4, "")
            return made

    def _launch(self, name: str, made: Native, each: int, format: str, *rest: Any) -> None:
        """Fill an array with what a kernel makes of blocks, ``each`` numbers from one."""
        if made.size:
            if self._find is None:
                driver = self.backend.driver or Driver(cupy)
                self._blocks, self._find = driver.blocks, family(driver, "random.cu")
            blocks = -(-made.size // each)
            base, key, offset = self._take(blocks)
            grid = self._blocks(-(-blocks // 256)), 1, 1
            kernel = self._find(name, f"PQQPQ{format}")
            kernel(grid, (256, 1, 1), 0, made.data.ptr, made.size, key, base.data.ptr, offset, *rest)

    def _take(self, blocks: int) -> tuple[Native, int, int]:
        """Two numbers on the device and two of the host, whose sums are the key and the first block's counter."""
        if self.base is not None:
            at, self.taken = self.taken, self.taken + blocks
            return self.base, 0, at
        if self._zero is None:
            self._zero = cupy.zeros((2,), np.uint64)
            cupy.cuda.get_current_stream().synchronize()  # once: it is read on every stream
        at, self.offset = self.offset, self.offset + blocks
        return self._zero, self.key, at

    # Distributions: of the names and parameters that ``Backend.random`` is asked for

    def draw(self, kind: str, shape: tuple[int, ...], dtype: dtypes.dtype, **options: Any) -> Native:
        """A new array of numbers of a distribution."""
        self._check(kind, shape, dtype, options)
        method = getattr(self, f"_{kind}", None)
        count = math.prod(shape)
        with self.backend.place:
            if method is None:
                return self.backend.from_host(getattr(self.on_host(), kind)(shape=shape, dtype=dtype, **options))
            return method(count, dtype, **options).reshape(shape)

    def _check(self, kind: str, shape: tuple[int, ...], dtype: dtypes.dtype, options: dict[str, Any]) -> None:
        """Raise what a generator of the host raises: it is asked for no numbers, once for each choice of parameters."""
        # Of an array only the dtype is looked at: one of no elements stands for it.
        asked = {name: one.dtype if hasattr(one, "dtype") else one for name, one in options.items()}
        key = (kind, dtype, tuple(asked.items()))
        if key not in self._checked or (shape and min(shape) < 0):
            empty = {name: np.empty((0,), one) if isinstance(one, np.dtype) else one for name, one in asked.items()}
            getattr(self.backend.host_generator(), kind)(
                shape=shape if shape and min(shape) < 0 else (0,), dtype=dtype, **empty
            )
            self._checked.add(key)

    def on_host(self) -> Any:
        """A generator of the host that goes on from here, for what the device has no kernel for.

        Raises:
            RuntimeError: in a capture, whose replays would all have the same numbers.
        """
        if self.base is not None:
            refuse_in_capture("random")
        made = self.backend.host_generator()
        made.manual_seed((self.key ^ (self.offset * 0x9E3779B97F4A7C15)) & ((1 << 63) - 1))
        self.offset += 1
        return made

    def __getattr__(self, name: str) -> Any:
        # ``permutation``, ``multinomial`` and the rest, which frontends ask a generator of the host for.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.on_host(), name)

    def _open(self, count: int, wide: Any) -> Native:
        """Uniform in (0, 1]: for logarithms."""
        return 1.0 - self._unit(count, wide)

    def _unit(self, count: int, wide: Any) -> Native:
        """Uniform in [0, 1): 24 bits, or 53."""
        if wide == np.float64:
            pairs = self.words(2 * count).view(np.uint64)
            return (pairs >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (self.words(count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)

    def _drawn(self, kind: str, count: int, dtype: dtypes.dtype, first: float, second: float) -> Native:
        """Numbers of a distribution of two parameters that is a kernel of its own."""
        made, wide = cupy.ndarray((count,), dtype.numpy), _wide(dtype)
        each = 2 if wide is np.float64 else 4
        self._launch(f"draw<{C_TYPES[dtype.numpy]}, {kind}>", made, each, _FORMATS[wide] * 2, first, second)
        return made

    def _uniform(self, count: int, dtype: dtypes.dtype, low: float = 0.0, high: float = 1.0) -> Native:
        if dtype.is_complex:
            return self._uniform(2 * count, dtype.to_real(), low, high).view(dtype.numpy)
        return self._drawn("uniform", count, dtype, low, high)

    def _normal(self, count: int, dtype: dtypes.dtype, mean: float = 0.0, std: float = 1.0) -> Native:
        if dtype.is_complex:
            return self._normal(2 * count, dtype.to_real(), mean, std / math.sqrt(2.0)).view(dtype.numpy)
        return self._drawn("normal", count, dtype, mean, std)

    def _integers(self, count: int, dtype: dtypes.dtype, low: int, high: int | None) -> Native:
        top = _largest(dtype) if high is None else int(high) - 1
        low = int(low)
        span = top - low + 1
        if span <= 1 << 28:
            found = (self.words(count) % np.uint32(span)).astype(np.int64)
        else:
            found = self.words(2 * count).view(np.uint64)
            found = (found if span > _MASK else found % np.uint64(span)).view(np.int64)
        if dtype is dtypes.bool_:
            return (found + low) != 0
        return (found + np.int64(low)).astype(dtype.numpy) if low < 1 << 63 else found.astype(dtype.numpy)

    def _random(self, count: int, dtype: dtypes.dtype) -> Native:
        return self._integers(count, dtype, 0, None)

    def _exponential(self, count: int, dtype: dtypes.dtype, rate: float = 1.0) -> Native:
        wide = _wide(dtype)
        return (cupy.log(self._open(count, wide)) * wide(-1.0 / rate)).astype(dtype.numpy, copy=False)

    def _log_normal(self, count: int, dtype: dtypes.dtype, mean: float = 1.0, std: float = 2.0) -> Native:
        wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
        return cupy.exp(self._normal(count, wide, mean, std)).astype(dtype.numpy, copy=False)

    def _cauchy(self, count: int, dtype: dtypes.dtype, median: float = 0.0, sigma: float = 1.0) -> Native:
        wide = _wide(dtype)
        angle = (self._unit(count, wide) - wide(0.5)) * wide(math.pi)
        return (cupy.tan(angle) * wide(sigma) + wide(median)).astype(dtype.numpy, copy=False)

    def _bernoulli(self, count: int, dtype: dtypes.dtype, probability: Any = 0.5, one: float = 1.0) -> Native:
        """``probability`` is a number, or an array of ``count`` on either side."""
        chances = None
        if isinstance(probability, (cupy.ndarray, np.ndarray)):
            chances = cupy.ascontiguousarray(cupy.asarray(probability).reshape(-1).astype(np.float32, copy=False))
        if dtype.numpy not in C_TYPES:
            chance = np.float32(probability) if chances is None else chances
            return (self._unit(count, np.float32) < chance).astype(dtype.numpy) * dtype.numpy.type(one)
        made = cupy.ndarray((count,), dtype.numpy)
        pointer, chance = (0, probability) if chances is None else (chances.data.ptr, 0.0)
        letter, number = ("d" if dtype.itemsize == 8 else "f", one) if dtype.is_floating_point else ("", int(one))
        letter = (
            letter or {"bool": "?", "int8": "b", "uint8": "B", "int16": "h", "int32": "i", "int64": "q"}[dtype.name]
        )
        self._launch(f"bernoulli<{C_TYPES[dtype.numpy]}>", made, 4, f"Pf{letter}", pointer, chance, number)
        return made


def refuse_in_capture(op: str) -> None:
    """Raise for numbers that are drawn on the host, of which each replay would have the same."""
    raise RuntimeError(
        f"{op}: expected numbers that the device draws while a graph is captured, got some that the host draws; draw them "
        "before, into a tensor that the graph reads"
    )


def _wide(dtype: dtypes.dtype) -> Any:
    return np.float64 if dtype.itemsize == 8 else np.float32


def _largest(dtype: dtypes.dtype) -> int:
    if dtype is dtypes.bool_:
        return 1
    if dtype.is_floating_point:
        return 1 << {2: 11 if dtype is dtypes.float16 else 8, 4: 24, 8: 53}[dtype.itemsize]
    return int(np.iinfo(dtype.numpy).max)
