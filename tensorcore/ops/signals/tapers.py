"""Windows for signals: those of the ``torch`` namespace and those of ``torch.signal.windows``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, UsageError, not_bool
from tensorcore.formats import only_strided
from tensorcore.ops.creation.create import arange, empty, ones
from tensorcore.ops.creation.grids import linspace
from tensorcore.ops.special.bessel import i0
from tensorcore.tensor import Tensor

__all__ = [
    "bartlett", "bartlett_window", "blackman", "blackman_window", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hamming_window", "hann", "hann_window", "kaiser", "kaiser_window", "nuttall",
]  # fmt: skip


# Of the namespace ``torch``: periodic ones are symmetric ones of one more element, without the last


def _made(
    op: str, length: int, periodic: bool, formula: Callable[[Any, float], Any], options: dict[str, Any]
) -> Tensor:
    """``formula(n, last)`` of the numbers from 0 to ``last``, in the wanted dtype."""
    dtype = options.get("dtype")
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, op)
    if dtype.kind not in ("floating", "complex") or dtype.is_complex:
        raise DtypeError(f"{op}: {op} expects floating point dtypes, got: {dtype}; pass torch.float32")
    if length < 0:
        raise UsageError(f"{op}: {op} requires non-negative window_length, got window_length={length}; pass 0 or more")
    if periodic is not True and periodic is not False:
        raise not_bool(op, "periodic", periodic)
    place = {"dtype": dtype, "device": options.get("device")}
    if not length:
        found = empty(0, **place)
    elif length == 1:
        found = ones(1, **place)
    else:
        last = length if periodic else length - 1
        found = formula(arange(length, **place), float(last))
    return found.requires_grad_(options["requires_grad"]) if options.get("requires_grad") else found


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                    pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A triangle from 0 up to 1 and down again."""
    if layout is not None:
        only_strided("bartlett_window", layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _made("bartlett_window", window_length, periodic, lambda n, last: 1 - (n * (2 / last) - 1).abs(), options)


def _cosines(op: str, length: int, periodic: bool, factors: tuple[float, ...], options: dict[str, Any]) -> Tensor:
    def formula(n: Any, last: float) -> Any:
        turn = n * (2 * math.pi / last)
        made = factors[0] - factors[1] * turn.cos()
        return made + factors[2] * (turn * 2).cos() if len(factors) > 2 else made

    return _made(op, length, periodic, formula, options)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                    pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """0.42 - 0.5 cos(t) + 0.08 cos(2 t) over one turn."""
    if layout is not None:
        only_strided("blackman_window", layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _cosines("blackman_window", window_length, periodic, (0.42, 0.5, 0.08), options)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
                   layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``alpha - beta * cos(t)`` over one turn."""
    if layout is not None:
        only_strided("hamming_window", layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _cosines("hamming_window", window_length, periodic, (alpha, beta), options)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """0.5 - 0.5 cos(t) over one turn."""
    if layout is not None:
        only_strided("hann_window", layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _cosines("hann_window", window_length, periodic, (0.5, 0.5), options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None,
                  device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The modified Bessel function i0 over half a circle of radius ``beta``, 1 in the middle."""
    if layout is not None:
        only_strided("kaiser_window", layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}

    def formula(n: Any, last: float) -> Any:
        inside = (1 - (n * (2 / last) - 1).square()).clamp_min(0)
        return i0(inside.sqrt() * beta) / i0(n.new_full((), beta))

    return _made("kaiser_window", window_length, periodic, formula, options)


# Of ``torch.signal.windows``: symmetric unless told otherwise


def _checked(op: str, M: int, dtype: Any) -> dtypes.dtype:
    found = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, op)
    if M < 0:
        raise ArgumentError(f"{op}: {op} requires non-negative window length, got M={M}; pass 0 or more")
    if found not in (dtypes.float32, dtypes.float64):
        raise ArgumentError(f"{op}: {op} expects float32 or float64 dtypes, got: {found}; pass torch.float32")
    return found


def _spread(op: str, M: int, dtype: Any, device: Any, requires_grad: bool, start: Callable[[], tuple[float, float]],
            formula: Callable[[Any], Any], alone: bool = False) -> Tensor:  # fmt: skip
    """``formula`` of M numbers between the two of ``start()``; with ``alone`` a single element is 1."""
    found = _checked(op, M, dtype)
    if not M:
        made: Any = empty(0, dtype=found, device=device)
    elif M == 1 and alone:
        made = ones(1, dtype=found, device=device)
    else:
        low, high = start()
        made = formula(linspace(low, high, M, dtype=found, device=device))
    return made.requires_grad_(requires_grad) if requires_grad else made  # type: ignore[no-any-return]


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None,
                device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``exp(-|n - center| / tau)``."""
    if layout is not None:
        only_strided("exponential", layout)
    if tau <= 0:
        raise ArgumentError(f"exponential: Tau must be positive, got: {tau} instead; pass one over 0")
    if sym and center is not None:
        raise ArgumentError(f"exponential: Center must be None for symmetric windows, got {center}; leave it out")
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    return _spread("exponential", M, dtype, device, requires_grad, lambda: (-middle / tau, (-middle + (M - 1)) / tau),
                   lambda k: (-k.abs()).exp())  # fmt: skip


def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Half a turn of a sine, at the middles of its M parts."""
    if layout is not None:
        only_strided("cosine", layout)
    step = math.pi / (M + 1 if not sym and M > 1 else max(M, 1))
    return _spread("cosine", M, dtype, device, requires_grad, lambda: (0.5 * step, (0.5 + (M - 1)) * step),
                   lambda k: k.sin())  # fmt: skip


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``exp(-(n / std)**2 / 2)`` around the middle."""
    if layout is not None:
        only_strided("gaussian", layout)
    if std <= 0:
        raise ArgumentError(f"gaussian: Standard deviation must be positive, got: {std} instead; pass one over 0")
    low, scale = -(M if not sym and M > 1 else M - 1) / 2.0, 1 / (std * math.sqrt(2.0))
    return _spread("gaussian", M, dtype, device, requires_grad, lambda: (low * scale, (low + (M - 1)) * scale),
                   lambda k: (-k.square()).exp())  # fmt: skip


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The modified Bessel function i0 over half a circle of radius ``beta``, 1 in the middle."""
    if layout is not None:
        only_strided("kaiser", layout)
    if beta < 0:
        raise ArgumentError(f"kaiser: beta must be non-negative, got: {beta} instead; pass 0 or more")

    def ends() -> tuple[float, float]:
        return -beta, min(beta, -beta + (M - 1) * 2.0 * beta / (M - 1 if sym else M))

    def formula(k: Any) -> Any:
        return i0((beta * beta - k.square()).clamp_min(0).sqrt()) / i0(k.new_full((), beta))

    return _spread("kaiser", M, dtype, device, requires_grad, ends, formula, alone=True)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``a[0] - a[1] cos(t) + a[2] cos(2 t) - ...`` over one turn."""
    if layout is not None:
        only_strided("general_cosine", layout)
    if not isinstance(a, Iterable):
        raise ArgumentTypeError(f"general_cosine: Coefficients must be a list/tuple, got {a!r}; pass numbers")
    factors = list(a)
    if not factors:
        raise ArgumentError("general_cosine: Coefficients cannot be empty, got none; pass at least one number")

    def formula(k: Any) -> Any:
        made = k * 0 + factors[0]
        for i, one in enumerate(factors[1:], 1):
            made = made + (-1) ** i * one * (k * i).cos()
        return made

    return _spread("general_cosine", M, dtype, device, requires_grad,
                   lambda: (0.0, (M - 1) * 2 * math.pi / (M - 1 if sym else M)), formula, alone=True)  # fmt: skip


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``alpha - (1 - alpha) cos(t)`` over one turn."""
    if layout is not None:
        only_strided("general_hamming", layout)
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """0.54 - 0.46 cos(t) over one turn."""
    if layout is not None:
        only_strided("hamming", layout)
    return general_hamming(M, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """0.5 - 0.5 cos(t) over one turn."""
    if layout is not None:
        only_strided("hann", layout)
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """0.42 - 0.5 cos(t) + 0.08 cos(2 t) over one turn."""
    if layout is not None:
        only_strided("blackman", layout)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A sum of four cosines with low side lobes (A. H. Nuttall, "Some windows with very good sidelobe behavior", 1981)."""
    if layout is not None:
        only_strided("nuttall", layout)
    factors = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=factors, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A triangle from 0 up to 1 and down again."""
    if layout is not None:
        only_strided("bartlett", layout)
    return _spread("bartlett", M, dtype, device, requires_grad, lambda: (-1.0, -1.0 + (M - 1) * 2.0 / (M - 1 if sym else M)),
                   lambda k: 1 - k.abs(), alone=True)  # fmt: skip
