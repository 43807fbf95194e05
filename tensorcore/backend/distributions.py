"""Turns raw Mersenne Twister draws into uniforms, normals and shuffles, with PyTorch's CPU rounding, bit for bit.

The formulas are those of PyTorch 2.13's CPU kernels as its x86-64 builds run them on a processor
with AVX2 or AVX-512 (the two give the same bits), fused multiply-adds included. Where a float64
function comes from the C library there, it comes from the C library here, so the two agree on any
one machine; float32 results above 15 elements use arithmetic alone and agree on every machine.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "box_muller_float32", "box_muller_float64", "fma_float32", "fma_float64", "inside_out_shuffle", "libm",
    "polar_pairs", "shuffle", "uniform_float32", "uniform_float64",
]  # fmt: skip

Array = npt.NDArray[Any]

TWO_PI = 2.0 * math.pi


def uniform_float32(draws: Array) -> Array:
    """float32 in [0, 1) from the low 24 bits of each uint32 draw. Overwrites ``draws``."""
    np.bitwise_and(draws, 0xFFFFFF, out=draws)
    values = draws.view(np.int32).astype(np.float32)
    values *= np.float32(2.0**-24)
    return values


def uniform_float64(draws: Array) -> Array:
    """float64 in [0, 1) from the low 53 bits of each uint64 draw. Overwrites ``draws``."""
    np.bitwise_and(draws, (1 << 53) - 1, out=draws)
    values = draws.view(np.int64).astype(np.float64)
    values *= 2.0**-53
    return values


# Normals


def box_muller_float32(uniforms: Array) -> None:
    """Make standard normals, in place, of float32 uniforms in [0, 1); the size is a multiple of 16.

    Each block of 16 holds eight radii's uniforms, then eight angles'; it becomes eight cosine and
    eight sine normals. Logarithm, sine and cosine are the single precision ones of the Cephes
    library (S. L. Moshier, https://www.netlib.org/cephes), evaluated with fused multiply-adds in
    the order of the compiled PyTorch kernel. A fused step is one float64 multiply-add rounded to
    float32: all 2**24 inputs of both functions were compared, and none is rounded twice.
    """
    rows = uniforms.reshape(-1, 2, 8)
    # Chunks whose scratch arrays stay in the second-level cache: 10**6 elements take 7 ms this way, 40 ms at once.
    scratch = _Scratch(min(len(rows), 4096))
    for start in range(0, len(rows), 4096):
        block = rows[start : start + 4096]
        if len(block) < len(scratch.x):
            scratch = _Scratch(len(block))
        radius = _radius(block[:, 0], scratch)
        sine, cosine = _sine_cosine(block[:, 1], scratch)
        np.multiply(radius, cosine, out=block[:, 0])
        np.multiply(radius, sine, out=block[:, 1])


def box_muller_float64(uniforms: Array) -> None:
    """Make standard normals, in place, of float64 uniforms in [0, 1); the size is a multiple of 16.

    The blocks are those of ``box_muller_float32``; the functions are the C library's.
    """
    rows = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2.0 * libm("log")(1.0 - rows[:, 0]))
    angle = TWO_PI * rows[:, 1]
    np.multiply(radius, libm("cos")(angle), out=rows[:, 0])
    np.multiply(radius, libm("sin")(angle), out=rows[:, 1])


def polar_pairs(uniforms: Array) -> Array:
    """Standard normals, one by one: each two float64 uniforms give a cosine and then a sine normal."""
    pairs = uniforms.reshape(-1, 2)
    radius = np.sqrt(-2.0 * libm("log1p")(-pairs[:, 1]))
    angle = TWO_PI * pairs[:, 0]
    return np.stack((radius * libm("cos")(angle), radius * libm("sin")(angle)), axis=1).reshape(-1)


class _Scratch:
    """The arrays that one chunk of ``box_muller_float32`` works in."""

    __slots__ = ("acc", "angle", "e", "j", "k", "n", "radius", "x", "xd", "y", "z")

    def __init__(self, rows: int) -> None:
        self.x, self.y, self.z, self.e, self.radius, self.angle = np.empty((6, rows, 8), np.float32)
        self.acc, self.xd = np.empty((2, rows, 8), np.float64)
        self.j, self.k, self.n = np.empty((3, rows, 8), np.int32)


def _singles(*values: float) -> tuple[np.float64, ...]:
    return tuple(np.float64(np.float32(value)) for value in values)


# logf on [sqrt(1/2), sqrt(2)): x - x*x/2 + x**3 * P(x), and the two halves of ln 2.
_LOG = _singles(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_LN2_LOW, _LN2_HIGH = np.float32(-2.12194440e-4), np.float32(0.693359375)
_HALF_ROOT_BITS = np.float32(math.sqrt(0.5)).view(np.int32)

# sinf and cosf on [-pi/4, pi/4], and pi/4 in three parts.
_SIN = _singles(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _singles(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_QUARTER_PI_1, _QUARTER_PI_2 = np.float32(-0.78515625), np.float32(-2.4187564849853515625e-4)
(_QUARTER_PI_3,) = _singles(-3.77489497744594108e-8)
_FOUR_OVER_PI = np.float32(4.0 / math.pi)


def _rounded(acc: Array, single: Array) -> None:
    """Round float64 ``acc`` to float32 precision in place, and leave the float32 values in ``single``."""
    np.copyto(single, acc, casting="same_kind")
    np.copyto(acc, single)


def _radius(u: Array, s: _Scratch) -> Array:
    """sqrt(-2 log(1 - u)) in float32."""
    x, y, z, e, n, acc, xd = s.x, s.y, s.z, s.e, s.n, s.acc, s.xd
    np.subtract(np.float32(1.0), u, out=x)
    bits = x.view(np.int32)
    np.subtract(bits, _HALF_ROOT_BITS, out=n)
    np.right_shift(n, 23, out=n)
    np.copyto(e, n, casting="same_kind")
    np.left_shift(n, 23, out=n)
    np.subtract(bits, n, out=bits)
    np.subtract(x, np.float32(1.0), out=x)

    np.multiply(x, x, out=z)
    np.copyto(xd, x)
    np.multiply(xd, _LOG[0], out=acc)
    for coefficient in _LOG[1:]:
        np.add(acc, coefficient, out=acc)
        _rounded(acc, y)
        np.multiply(acc, xd, out=acc)
    _rounded(acc, y)
    # Of the two products in y*z + e*LN2_LOW, the compiler fuses the first.
    np.copyto(xd, z)
    np.multiply(acc, xd, out=acc)
    np.multiply(e, _LN2_LOW, out=y)
    np.add(acc, y, out=acc)
    np.copyto(y, acc, casting="same_kind")
    # z/2 and e*LN2_HIGH are exact, so these need no float64.
    np.multiply(z, np.float32(0.5), out=z)
    np.subtract(y, z, out=y)
    np.add(x, y, out=x)
    np.multiply(e, _LN2_HIGH, out=e)
    np.add(x, e, out=x)
    np.multiply(x, np.float32(-2.0), out=x)
    return np.sqrt(x, out=s.radius)


def _sine_cosine(u: Array, s: _Scratch) -> tuple[Array, Array]:
    """sin(2 pi u) and cos(2 pi u) in float32."""
    x, y, z, e, j, k, n, acc, xd = s.angle, s.x, s.z, s.e, s.j, s.k, s.n, s.acc, s.xd
    np.multiply(u, np.float32(TWO_PI), out=x)
    np.multiply(x, _FOUR_OVER_PI, out=y)
    np.copyto(j, y, casting="unsafe")
    np.add(j, 1, out=j)
    np.bitwise_and(j, ~1, out=j)
    # j * pi/4 is the multiple of pi/2 to take off; its first two parts times j are exact.
    np.copyto(e, j, casting="unsafe")
    np.add(x, np.multiply(e, _QUARTER_PI_1, out=y), out=x)
    np.add(x, np.multiply(e, _QUARTER_PI_2, out=y), out=x)
    np.copyto(acc, e)
    np.multiply(acc, _QUARTER_PI_3, out=acc)
    np.add(acc, x, out=acc)
    _rounded(acc, x)
    np.multiply(x, x, out=z)
    np.copyto(xd, z)

    sine, cosine = s.x, s.y
    np.multiply(xd, _COS[0], out=acc)
    for coefficient in _COS[1:]:
        np.add(acc, coefficient, out=acc)
        _rounded(acc, cosine)
        np.multiply(acc, xd, out=acc)
    _rounded(acc, cosine)
    np.multiply(acc, xd, out=acc)
    np.multiply(z, np.float32(0.5), out=z)
    np.subtract(acc, z, out=acc)
    np.copyto(cosine, acc, casting="same_kind")
    np.add(cosine, np.float32(1.0), out=cosine)

    np.multiply(xd, _SIN[0], out=acc)
    for coefficient in _SIN[1:]:
        np.add(acc, coefficient, out=acc)
        _rounded(acc, sine)
        np.multiply(acc, xd, out=acc)
    _rounded(acc, sine)
    np.copyto(xd, x)
    np.multiply(acc, xd, out=acc)
    np.add(acc, xd, out=acc)
    np.copyto(sine, acc, casting="same_kind")

    # Bit 1 of j swaps the two, bit 2 turns the sine's sign, and bit 2 of ~(j - 2) the cosine's.
    # Selecting by bits takes a third of the time of np.where.
    sine_bits, cosine_bits = sine.view(np.int32), cosine.view(np.int32)
    np.left_shift(j, 30, out=k)
    np.right_shift(k, 31, out=k)
    np.bitwise_xor(sine_bits, cosine_bits, out=n)
    np.bitwise_and(n, k, out=n)
    np.bitwise_xor(sine_bits, n, out=sine_bits)
    np.bitwise_xor(cosine_bits, n, out=cosine_bits)
    np.bitwise_and(j, 4, out=n)
    np.left_shift(n, 29, out=n)
    np.bitwise_xor(sine_bits, n, out=sine_bits)
    np.subtract(1, j, out=j)  # ~(j - 2)
    np.bitwise_and(j, 4, out=j)
    np.left_shift(j, 29, out=j)
    np.bitwise_xor(cosine_bits, j, out=cosine_bits)
    return sine, cosine


# Fused multiply-adds


def fma_float32(a: Array, b: np.float32, c: np.float32) -> Array:
    """``a * b + c`` rounded once, for a float32 array and two numbers. Overwrites ``a``."""
    if c == 0.0 or b == 1.0:  # one of the two steps is exact; adding 0.0 makes -0.0 positive, as the fused step does
        if b != 1.0:
            a *= b
        a += c
        return a
    flat = a.reshape(-1)
    for start in range(0, flat.size, 16384):  # in the cache: 2.5 ms against 5 at 10**6
        part = flat[start : start + 16384]
        product = part.astype(np.float64)
        product *= np.float64(b)
        total = product + np.float64(c)
        # Rounding to float64 first matters only where it lands half-way between two float32 values.
        doubtful = np.flatnonzero((total.view(np.int64) & 0x1FFFFFFF) == 0x10000000)
        if doubtful.size:
            # The sign of what the sum lost says to which side the exact value lies.
            near = total[doubtful]
            lost = _two_sum(product[doubtful], np.float64(c))[1]
            total[doubtful] = np.where(lost == 0.0, near, np.nextafter(near, np.copysign(np.inf, lost)))
        np.copyto(part, total, casting="same_kind")
    return a


def fma_float64(a: Array, b: float, c: float) -> Array:
    """``a * b + c`` rounded once, for a float64 array and two numbers. May overwrite ``a``.

    Source: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved
    algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
    """
    mantissa = math.frexp(b)[0]
    if c == 0.0 or mantissa in (0.5, -0.5):
        a *= b
        a += c
        return a
    for start in range(0, a.size, 8192):
        part = a[start : start + 8192]
        high, low = _two_product(part, np.float64(b))
        t_high, t_low = _two_sum(low, np.float64(c))
        v_high, v_low = _two_sum(high, t_high)
        part[...] = v_high + _sum_to_odd(t_low, v_low)
    return a


def _two_sum(a: Array, b: Array | np.float64) -> tuple[Array, Array]:
    """The rounded sum and the exact rest (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: np.float64) -> tuple[Array, Array]:
    """The rounded product and the exact rest (Dekker, with Veltkamp's splitting)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _split(a: Any) -> tuple[Any, Any]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _sum_to_odd(a: Array, b: Array) -> Array:
    """The sum, an inexact one rounded to the neighbour whose last bit is set."""
    total, lost = _two_sum(a, b)
    inexact_even = (lost != 0.0) & ((total.view(np.int64) & 1) == 0)
    return np.where(inexact_even, np.nextafter(total, np.copysign(np.inf, lost)), total)


# Functions of the C library


@functools.cache
def libm(name: str) -> Callable[[Array], Array]:
    """The C library's float64 function of that name, over arrays.

    NumPy's own is taken where it gives the same bits, tried on 8192 values. Its AVX-512 build does
    not: of a million arguments, ``log`` differs in 3 500, ``log1p`` in 74 000, ``exp`` in 47 000.
    There each element goes through ``math`` (50-110 ns an element against 2-10).
    """
    ufunc, function = getattr(np, name), getattr(math, name)
    unit = np.arange(1, 8193) * 0.6180339887498949 % 1.0
    sample = {"log": unit, "log1p": -unit, "exp": 8.0 * unit - 4.0, "tan": math.pi * (unit - 0.5)}.get(
        name, TWO_PI * unit
    )

    def elementwise(x: Array) -> Array:
        try:
            return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)
        except (ValueError, OverflowError):  # log(0) and exp(1000), which the C library answers with an infinity
            with np.errstate(all="ignore"):
                result = np.asarray(ufunc(x))
            finite = np.isfinite(result)
            result[finite] = np.fromiter(map(function, x[finite].tolist()), np.float64)
            return result

    def quiet(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(ufunc(x))

    return quiet if np.array_equal(ufunc(sample), elementwise(sample)) else elementwise


# Shuffles


def shuffle(draws: Array) -> Array:
    """The permutation (int64) of ``len(draws) + 1`` numbers: step ``i`` swaps ``i`` with ``i + draw % (n - i)``."""
    n = len(draws) + 1
    own = np.arange(n)
    target = own.copy()
    target[:-1] += draws % (n - own[:-1]).astype(np.uint32)
    if n < 512:
        return _swap_in_turn(target.tolist())

    # All swaps at once. The value that stands at i when its turn comes was brought there by the last
    # swap that aimed at i, which moved what stood at its own place: follow those to the start.
    start = own.copy()
    moved = np.flatnonzero(target != own)
    start[target[moved]] = moved  # of equal targets the last one stays
    while True:
        further = start[start]
        if np.array_equal(further, start):
            break
        start = further
    # Position i then takes what stands at its target: what the previous swap of that target left there.
    shift = (n - 1).bit_length()
    order = np.sort((target << shift) | own)
    turn = order & ((1 << shift) - 1)
    order >>= shift
    repeated = np.flatnonzero(order[1:] == order[:-1])
    target[turn[repeated + 1]] = start[turn[repeated]]
    return target


def _swap_in_turn(target: list[int]) -> Array:
    values = list(range(len(target)))
    for i, t in enumerate(target):
        values[i], values[t] = values[t], values[i]
    return np.array(values, np.int64)


def inside_out_shuffle(n: int, draw: Callable[[int], Array]) -> Array:
    """The permutation (int64) of ``n`` numbers, step ``i`` inserting at one uint64 draw modulo ``i + 1``.

    One step after the other in Python, some 0.1 us each: PyTorch takes this way from 214 748 364 on.
    """
    values = np.empty(n, np.int64)
    view = memoryview(values.data)
    for start in range(0, n, 1 << 16):
        steps = np.arange(start, min(start + (1 << 16), n))
        for i, z in zip(steps.tolist(), (draw(len(steps)) % (steps + 1).astype(np.uint64)).tolist(), strict=True):
            view[i] = view[z] if z < i else i
            view[z] = i
    return values
