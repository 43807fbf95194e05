"""Rounding: floor, ceil, trunc, round and the fraction. Their gradient is zero everywhere, but for ``frac``."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import UnsupportedDtype
from tensorcore.ops import rules
from tensorcore.ops.define import OPS, same
from tensorcore.ops.kinds import (
    BOOL,
    FLOATING,
    INTEGER,
    REAL,
    alias,
    composite,
    elementwise,
    method,
)
from tensorcore.ops.operands import PLAIN_FLOATS, check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.samples import elementwise as samples
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["ceil", "fix", "floor", "frac", "round", "trunc"]


def _flat(g: Tensor) -> Tensor:
    return g.new_zeros(g.shape)  # type: ignore[attr-defined]


def _rounding(name: str, doc: str) -> Any:
    return elementwise(
        name, "input", doc, takes=REAL - BOOL, unchanged=INTEGER, grads=dict(input=_flat), samples=samples.off_integers
    )


floor = _rounding("floor", "The largest integer not above each element, in the same dtype.")
ceil = _rounding("ceil", "The smallest integer not below each element, in the same dtype.")
trunc = _rounding("trunc", "Each element cut off at the point, in the same dtype.")
_round = _rounding("round", "The integer nearest to each element, the even one of two.")
fix = alias("fix", trunc)


def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Each element rounded to ``decimals`` places (negative: to tens, hundreds, ...), halves to the even digit."""
    if type(input) is not Tensor:
        check_tensors("round", input=input)
    if type(decimals) is not int:
        decimals = rules.whole("round", "decimals", decimals)
    if not decimals:
        return _round(input) if out is None else _round(input, out=out)
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(
            f'round: "round" with decimals not implemented for {input.dtype.name}, got one; use .float()'
        )
    scale = 10.0 ** abs(decimals)
    if out is None and input.dtype in PLAIN_FLOATS and input.node is None and type(input) is Tensor:
        kernels, (first, last) = input.device.kernels, ("mul", "div") if decimals > 0 else ("div", "mul")
        try:
            native = kernels[last](kernels["round"](kernels[first](input.native, scale)), scale)
        except MemoryError:  # tried once more below, with the caches freed
            native = None
        if type(native) is input.device.array:
            return new_tensor(native, input.dtype, input.device)
    made = _round(input * scale) / scale if decimals > 0 else _round(input / scale) * scale
    return made if out is None else store("round", made, out, input)


OPS["round"].function, OPS["round"].samples = round, samples.round
method(round, writes=True, overwritten=_round.op.overwritten)


def _check_frac(input: Tensor) -> tuple[Tensor]:
    if input.dtype not in FLOATING:
        raise UnsupportedDtype(f'frac: "frac" not implemented for {input.dtype.name}, got a tensor of it; use .float()')
    return (input,)


@composite(inputs="input", check=_check_frac, grads=dict(input=same), quick=FLOATING, takes=FLOATING, writes=True,
           samples=samples.off_integers)  # fmt: skip
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What is behind the point of each element, with its sign."""
    return input - trunc(input)
