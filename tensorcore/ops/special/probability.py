"""The normal distribution's functions, the scaled error function, and entropy's."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.ops.samples import special as samples
from tensorcore.ops.special import tables as table
from tensorcore.ops.special.kind import of_one, ratio, where

__all__ = ["entr", "erfcx", "log_ndtr", "ndtr", "ndtri"]

entr = of_one("entr", "``-x log(x)``: 0 at 0, minus infinity below.",
              lambda x: where(x > 0, -x * x.log(), where(x == 0, 0.0, where(x < 0, -math.inf, math.nan))),
              grad=lambda g, input: g * -(1 + input.log()), samples=samples.over_zero,
              backward_name="SpecialEntrBackward0")  # fmt: skip


def _erfcx(x: Any) -> Any:
    large = x.clamp_min(1)
    high = ratio(1 / large.square(), table.ERFCX) / (large * math.sqrt(math.pi))
    low = x.clamp_max(1)
    return where(x >= 1, high, low.square().exp() * low.erfc())


erfcx = of_one("erfcx", "``exp(x**2) * erfc(x)``, with all digits where erfc vanishes.", _erfcx,
               grad=lambda g, input, out: g * (2 * input * out - 2 / math.sqrt(math.pi)), samples=samples.around,
               backward_name="SpecialErfcxBackward0")  # fmt: skip

_ROOT = math.sqrt(0.5)


def _log_ndtr(x: Any) -> Any:
    low = (erfcx(x.clamp_max(-1) * -_ROOT) * 0.5).log() - x.square() * 0.5
    return where(x < -1, low, ((x.clamp_min(-1) * _ROOT).erfc() * -0.5).log1p())


ndtr = of_one("ndtr", "The area under the normal density up to x.", lambda x: (x * -_ROOT).erfc() * 0.5,
              grad=lambda g, input: g * ((input.square() * -0.5).exp() * (1 / math.sqrt(2 * math.pi))),
              samples=samples.around, backward_name="MulBackward0")  # fmt: skip
log_ndtr = of_one("log_ndtr", "The logarithm of ``ndtr``, with all digits where that vanishes.", _log_ndtr,
                  grad=lambda g, input: g / erfcx(input * -_ROOT) * math.sqrt(2 / math.pi), samples=samples.around,
                  backward_name="SpecialLogNdtrBackward0")  # fmt: skip


def _ndtri(p: Any) -> Any:
    away = p - 0.5
    middle = ratio(away.square().clamp_max(0.1335), table.NDTRI_MIDDLE) * away
    # exp(-2) is where the three ranges meet: z = sqrt(-2 log p) is 2 there.
    q = where(away < 0, p, 1 - p)
    z = (q.log() * -2).sqrt().clamp_min(2)
    inverse = 1 / z
    tail = where(
        z < 8, ratio(inverse.clamp_min(0.125), table.NDTRI_TAIL), ratio(inverse.clamp_max(0.125), table.NDTRI_FAR)
    )
    size = z - z.log() * inverse - tail * inverse
    made = where(q > math.exp(-2), middle, where(away < 0, -size, size))
    made = where((p > 0) & (p < 1), made, math.nan)
    return where(p == 0, -math.inf, where(p == 1, math.inf, made))


ndtri = of_one("ndtri", "The inverse of ``ndtr``.", _ndtri,
               grad=lambda g, out: g * ((out.square() * 0.5).exp() * math.sqrt(2 * math.pi)), samples=samples.probability,
               backward_name="SpecialNdtriBackward0")  # fmt: skip
