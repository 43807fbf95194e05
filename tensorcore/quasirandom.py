"""Sobol' sequences, points that fill a cube more evenly than random ones: ``torch.quasirandom``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import as_tensor, from_numpy
from tensorcore.ops.creation.random import Generator, randint
from tensorcore.ops.output import store
from tensorcore.tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol' sequence in [0, 1)^dimension, in order; PyTorch's numbers.

    The direction numbers are SciPy's, which are those of Joe and Kuo (SIAM J. Sci. Comput. 30, 2008, criterion D(6)).
    A scramble multiplies them by random lower triangular matrices over {0, 1} and shifts all points by random bits
    (Matousek, J. Complexity 14, 1998).

    Args:
        dimension: of the cube, from 1 to 21201.
        scramble: whether to scramble, with random numbers of ``seed`` or, without one, of the default generator.

    Attributes:
        sobolstate: the direction numbers, of shape (dimension, 30).
        shift: the first point, in steps of 2**-30.
        quasi: the point drawn last, likewise.
        num_generated: how many points were drawn.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentError(
                f"SobolEngine: Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        from scipy.stats import qmc  # takes a second to import

        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        directions = qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)._sv.astype(np.int64)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            generator = None if seed is None else Generator().manual_seed(seed)
            shift = _packed(_coins(dimension, self.MAXBIT, generator=generator)[:, ::-1])
            lower = np.tril(_coins(dimension, self.MAXBIT, self.MAXBIT, generator=generator), -1)
            lower += np.eye(self.MAXBIT, dtype=np.int64)
            bits = directions[:, :, None] >> np.arange(self.MAXBIT - 1, -1, -1) & 1
            directions = _packed(np.matmul(bits, lower.transpose(0, 2, 1)) & 1)
        self.sobolstate, self.shift = from_numpy(directions), from_numpy(shift)
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``n`` points, of shape (n, dimension), of the default dtype unless another is named."""
        points = self._next(n)
        wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, "draw")
        steps: Any = as_tensor(points).to(wanted)
        made = steps * 2.0**-self.MAXBIT
        return made if out is None else store("draw", made, out)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2**m`` points. Raises ValueError unless a power of two are drawn then, in which they are balanced."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ArgumentError(
                "draw_base2: The balance properties of Sobol' points require n to be a power of 2, got "
                f"{self.num_generated} points generated before and {2**m} asked for; use draw()"
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Start over; returns itself."""
        self.quasi, self.num_generated = self.shift.clone(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Go on by ``n`` points without giving them; returns itself."""
        self._next(n)
        return self

    def _next(self, n: int) -> np.ndarray:
        """The next points in steps of 2**-30: each is the one before, with one direction number's bits turned over."""
        if n < 1:
            raise ArgumentError(f"SobolEngine: expected a number of points of 1 or more, got {n}")
        first = int(self.num_generated == 0)
        before = self.num_generated - 1 + first + np.arange(n - first)
        # The direction's number is that of the lowest bit of 0 in the number of points before.
        low = np.bitwise_count((before ^ (before + 1)) >> 1)
        turned = self.sobolstate.numpy().T[low]
        points = np.bitwise_xor.accumulate(np.concatenate([self.quasi.numpy()[None], turned]))
        self.quasi = from_numpy(points[-1].copy())
        self.num_generated += n
        return points[1 - first :]

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(parts)})"


def _coins(*shape: int, generator: Generator | None) -> np.ndarray:
    """Zeros and ones."""
    return randint(2, shape, generator=generator).numpy()


def _packed(bits: np.ndarray) -> np.ndarray:
    """The numbers with these binary digits, the highest first along the last axis."""
    return bits @ (1 << np.arange(bits.shape[-1] - 1, -1, -1))
