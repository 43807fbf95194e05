"""The Mersenne Twister under the host's random generator: seeds, states in PyTorch's bytes, raw draws."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tensorcore.backend import distributions as dist
from tensorcore.backend.turns import in_child
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.shortcuts import before

__all__ = ["DEFAULT_SEED", "RandomError", "Twister"]

Array = npt.NDArray[Any]

_LOW_53, _STEP = (1 << 53) - 1, 2.0**-53

DEFAULT_SEED = 67280421310721

# The bytes of torch.get_rng_state().
_STATE = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "key", "normal", "has_normal", "single", "has_single"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", 624), "<f8", "<i4", "<f4", "?"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)


_WORDS = 2500  # bytes of NumPy's struct of the twister: 624 words and a position


class RandomError(ArgumentError, RuntimeError):
    """A parameter or a state that a draw does not take; PyTorch raises RuntimeError for these."""


class _NoSeed(np.random.bit_generator.ISeedSequence):
    """In the place of entropy of the system's, which takes longer than all else: the seed comes after."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Array:
        return np.zeros(n_words, dtype)


class Twister:
    """The state of PyTorch's CPU generator, and the 32- and 64-bit words and single normals it gives.

    Each method may be called from several threads and is atomic.
    """

    __slots__ = (
        "__weakref__",
        "_begin",
        "_bits",
        "_capsule",
        "_lock",
        "_normal",
        "_seed",
        "_single",
        "_uint32",
        "_unused",
    )

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._lock = threading.RLock()
        self._bits = np.random.MT19937(_NoSeed())  # type: ignore[arg-type]  # takes any ISeedSequence
        self._capsule = self._bits.capsule
        # RandomState seeds with init_genrand, which MT19937's own constructor does not offer.
        self._begin = np.random.RandomState(self._bits).seed
        self._uint32 = np.random.Generator(self._bits).integers
        _twisters.add(self)
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Self:
        """Start over from ``seed``, from -2**63 to 2**64 - 1 (a negative one counts from 2**64 down); returns self."""
        if isinstance(seed, (bool, np.bool_)) or not hasattr(seed, "__index__"):
            raise RandomError(f"manual_seed: expected an int, got {type(seed).__name__}; pass int(seed)")
        seed = seed.__index__()
        if not -(1 << 63) <= seed < 1 << 64:
            raise RandomError(f"manual_seed: expected -2**63 to 2**64 - 1, got {seed}; take it modulo 2**64")
        with self._lock:
            self._seed = seed % (1 << 64)
            self._begin(self._seed & 0xFFFFFFFF)
            self._normal: float | None = None
            self._single: float | None = None
            self._unused = True
        return self

    def initial_seed(self) -> int:
        """The seed it last started from, in [0, 2**64)."""
        return self._seed

    def seed(self) -> int:
        """Start over from a seed of 53 bits that the operating system gives, and return it."""
        seed = int.from_bytes(os.urandom(8)) >> 11
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

    def set_state(self, state: Array) -> Self:
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
        twister: Any = {"key": fields["key"].astype(np.uint32), "pos": 625 - left}
        with self._lock:
            self._bits.state = {"bit_generator": "MT19937", "state": twister}
            self._seed, self._unused = int(fields["seed"]), unused
            self._normal = float(fields["normal"]) if fields["has_normal"] else None
            self._single = float(fields["single"]) if fields["has_single"] else None
        return self

    def mark(self) -> Any:
        """Where it is, for ``go_back``; in a hundredth of the time of a state in PyTorch's bytes."""
        with self._lock:
            return self._words().raw, self._seed, self._normal, self._single, self._unused

    def go_back(self, mark: Any) -> None:
        """Go on from where it was at a mark."""
        with self._lock:
            self._words().raw, self._seed, self._normal, self._single, self._unused = mark

    def _words(self) -> Any:
        return (ctypes.c_char * _WORDS).from_address(self._bits.ctypes.state_address)

    def clone(self) -> Self:
        """A second generator that goes on from the same state, by itself."""
        return type(self)().set_state(self.get_state())

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.get_state())

    # Draws

    @before("lend")
    def lend(self, draw: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``draw(capsule, *arguments)`` with NumPy's capsule of the state, which nobody else reads meanwhile.

        For code that draws the words itself: those of ``draw32``, in order. A result of None means that it drew nothing.
        """
        with self._lock:
            made = draw(self._capsule, *arguments)
            self._unused = self._unused and made is None
        return made

    @before("lend", "a normal too")
    def lend_normal(self, draw: Callable[..., Any], *arguments: Any) -> Any:
        """As ``lend``, to code that makes normals one by one: it is given the kept one too, and gives an array and what to keep."""
        with self._lock:
            kept = self._normal
            made = draw(self._capsule, kept, *arguments)
            if made is None:
                return None
            values, self._normal = made
            self._unused = self._unused and kept is not None and values.size == 1
        return values

    def draw32(self, n: int) -> Array:
        """The next ``n`` words of 32 bits, as uint32."""
        with self._lock:
            self._unused = self._unused and n == 0
            # Both give the twister's words in order; the first takes 0.7 us for a few, the second half the memory.
            return self._bits.random_raw(n).astype(np.uint32) if n < 256 else self._uint32(0, 1 << 32, n, np.uint32)

    def draw64(self, n: int) -> Array:
        """The next ``n`` pairs of words, the first of each the upper half, as uint64."""
        words = self.draw32(2 * n).view(np.uint64)  # little endian: the halves change places
        swapped = words >> np.uint64(32)
        words <<= np.uint64(32)
        words |= swapped
        return words

    def serial_normals(self, n: int, mean: float, std: float) -> Array:
        """``n`` float64 normals, made one by one: the kept second of a pair first, an odd last one kept."""
        with self._lock:
            made = [] if self._normal is None or n == 0 else [self._normal]
            missing = n - len(made)
            words = self.draw32(2 * (missing + missing % 2)).tolist()
            for i in range(0, len(words), 4):
                # One by one: as arrays, a few of them take four times as long.
                turn, size = ((words[i + k] << 32 | words[i + k + 1]) & _LOW_53 for k in (0, 2))
                radius, angle = math.sqrt(-2.0 * math.log1p(-(size * _STEP))), dist.TWO_PI * (turn * _STEP)
                made += [radius * math.cos(angle), radius * math.sin(angle)]
            if n:
                self._normal = made[-1] if missing % 2 else None
        return dist.fma_float64(np.array(made[:n], np.float64), std, mean)


_twisters: weakref.WeakSet[Twister] = weakref.WeakSet()


def _freed() -> None:
    """In a child of a fork: the locks of generators that another thread was drawing from, NumPy's included."""
    for each in list(_twisters):
        each._lock._at_fork_reinit()  # type: ignore[attr-defined]
        each._bits.lock._at_fork_reinit()  # type: ignore[attr-defined]


in_child(_freed)


def _restored(kind: type[Twister], state: Array) -> Twister:
    return kind().set_state(state)
