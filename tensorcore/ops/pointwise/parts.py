"""Numbers taken apart: common divisors of integers, mantissas and exponents of floats."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, UnsupportedDtype
from tensorcore.ops import rules
from tensorcore.ops.calls import PLAIN_FLOATS, apply_into
from tensorcore.ops.define import OPS
from tensorcore.ops.inplace import is_free
from tensorcore.ops.kinds import BOOL, FLOATING, INTEGER, composite, operation
from tensorcore.ops.operands import NARROW, check_tensors, result_type
from tensorcore.ops.output import store, written
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import check_floating, return_type, stored
from tensorcore.ops.samples import numeric as samples
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import along_way
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["frexp", "gcd", "lcm", "ldexp"]


def _integers(op: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    if not isinstance(other, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'other' to be a Tensor, got {other!r}; wrap it in torch.tensor(...)"
        )
    compute = result_type(input, other)
    if compute.kind != "integer":
        raise UnsupportedDtype(f"{op}: not implemented for {compute.name}, got one; convert it with .long()")
    rules.broadcast(op, tuple(input.native.shape), tuple(other.native.shape))
    return input.to(compute), other.to(compute)  # type: ignore[attr-defined]


@composite(
    inputs="input other",
    check=lambda *both: _integers("gcd", *both),
    quick=INTEGER,
    writes=True,
    samples=samples.whole_pair,
)
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of each two integers, at least 0; of two zeros 0. By Euclid."""
    a, b = input.abs() + other * 0, other.abs() + input * 0  # type: ignore[attr-defined]
    while input.device.capabilities.values and bool((b != 0).any()):  # type: ignore[attr-defined]
        done = b == 0
        a, b = where(done, a, b), where(done, 0, a % where(done, 1, b))
    return a


@composite(
    inputs="input other",
    check=lambda *both: _integers("lcm", *both),
    quick=INTEGER,
    writes=True,
    samples=samples.whole_pair,
)
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of each two integers, at least 0."""
    divisor = gcd(input, other)
    return (input // where(divisor == 0, 1, divisor) * other).abs()  # type: ignore[attr-defined, no-any-return]


# Of each floating dtype the integers of its size, the bits behind the exponent, the exponent's, and its bias.
_LAYOUT = {dtypes.float32: (dtypes.int32, 23, 0xFF, 126), dtypes.float64: (dtypes.int64, 52, 0x7FF, 1022)}
# The exponents of normal numbers.
_NORMAL = {
    dtypes.float16: (-14, 15), dtypes.bfloat16: (-126, 127), dtypes.float32: (-126, 127), dtypes.float64: (-1022, 1023),
}  # fmt: skip
_Frexp = return_type("frexp", "mantissa exponent")


def _split_way(call: Any) -> Any:
    words: dict[str, Any] = {}
    return along_way(
        OPS["frexp"], FLOATING, words, record, store, again, (None, dtypes.int32), _Frexp, (words, (), 0, None)
    )(call)


@operation(samples=samples.exponents, way=_split_way)
def frexp(input: Tensor, *, out: Any = None) -> Any:
    """Mantissas in (0.5, 1) with the input's sign, and int32 exponents: ``input = mantissa * 2**exponent``."""
    if type(input) is not Tensor:
        check_tensors("frexp", input=input)
    check_floating("frexp", input)
    if input.dtype in FLOATING and (input.node is None or not mode.enabled):
        kernel, kinds = input.device.kernels["frexp"], (input.dtype, dtypes.int32)
        if kernel and out is not None and (done := apply_into(OPS["frexp"], (input,), {}, kinds, out)) is not None:
            return _Frexp(*done)
        if kernel:
            parts = zip(kernel(input.native), kinds, strict=True)
            return stored("frexp", _Frexp(*[new_tensor(native, kind, input.device) for native, kind in parts]), out)
    wide = input.float() if input.dtype in NARROW else input  # type: ignore[attr-defined]
    whole, digits, mask, bias = _LAYOUT[wide.dtype]

    def exponent_of(x: Tensor) -> Tensor:
        return (x.contiguous().view(whole) >> digits) & mask  # type: ignore[attr-defined, no-any-return]

    plain = wide.detach()
    found = exponent_of(plain)
    # A denormal has the exponent's bits at 0; raised by 2**54 it is a normal number.
    found = where(found == 0, exponent_of(plain * 2.0**54) - 54, found) - bias
    found = where((plain == 0) | ~plain.isfinite(), 0, found)  # type: ignore[attr-defined]
    # In two steps, each a power of two that the dtype has.
    half = found.div(2, rounding_mode="floor")  # type: ignore[attr-defined]
    mantissa = wide * _power(-half, wide) * _power(half - found, wide)
    made = _Frexp(mantissa.to(input.dtype), found.to(dtypes.int32))
    return stored("frexp", made, out)


def _power(exponent: Tensor, like: Tensor) -> Tensor:
    return exponent.to(like.dtype).exp2()  # type: ignore[attr-defined, no-any-return]


def _times_whole_powers(input: Tensor, exponent: Tensor) -> Tensor:
    """``input * 2**exponent``, rounded once, whatever the power itself would be: three normal numbers make it.

    What is beyond the first range comes first: a product that leaves the range of normal numbers then is one whose end is 0 or
    an infinity.
    """
    rest, made = exponent.to(dtypes.int64), input
    parts = []
    for _ in range(3):
        part = rest.clamp(*_NORMAL[input.dtype])  # type: ignore[attr-defined]
        parts.append(part)
        rest = rest - part
    for part in reversed(parts):
        made = made * _power(part, input)
    return made


def _shifted(input: Any, other: Any, **place: Any) -> Any:
    """``input * 2**other`` off the tape as a native array of the dtype of ``input``; None for other calls."""
    if not (
        type(input) is type(other) is Tensor
        and input.dtype in FLOATING
        and other.device is input.device
        and ((input.node is None and other.node is None) or not mode.enabled)
    ):
        return None
    kernels = input.device.kernels
    try:
        if other.dtype.kind == "integer":
            kernel = kernels["ldexp"]
            return kernel(input.native, other.native, **place) if kernel else None
        if other.dtype is input.dtype and input.dtype in PLAIN_FLOATS:
            return kernels["mul"](input.native, kernels["exp2"](other.native), **place)
    except (MemoryError, ValueError):  # the complete call makes room, or says what does not fit
        pass
    return None


def _times_powers(input: Tensor, others: tuple[Any, ...], **options: Any) -> bool:
    """``ldexp`` in place, of a tensor that is free of others; whether it did."""
    if len(others) != 1 or options or not is_free(input) or not isinstance(others[0], Tensor):
        return False
    shape, native = input.native.shape, input.native
    if others[0].native.shape != shape and rules.broadcast("ldexp", shape, others[0].native.shape) != shape:
        return False
    if _shifted(input, others[0], out=native) is None:
        return False
    written(input)
    return True


_WHOLE = BOOL | INTEGER


@operation(samples=samples.ldexp, writes=True, overwritten=_times_powers)
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * 2**other``."""
    if type(input) is type(other) is Tensor and input.dtype in _WHOLE and other.dtype in _WHOLE:
        input = input.to(dtypes.get_default_dtype())  # type: ignore[attr-defined]
        if other.dtype is dtypes.bool_:
            other = other.to(input.dtype)  # type: ignore[attr-defined]
    if (native := _shifted(input, other)) is not None:
        made = new_tensor(native, input.dtype, input.device)
        return made if out is None else store("ldexp", made, out)
    check_tensors("ldexp", input=input, other=other)
    compute = result_type(input, other)
    if other.dtype.kind == "integer" and compute.kind != "complex":
        kind = compute if compute.kind == "floating" else dtypes.get_default_dtype()
        made = _times_whole_powers(input.to(kind), other)  # type: ignore[attr-defined]
        return made if out is None else store("ldexp", made, out)
    power = other.to(compute if compute.kind in ("floating", "complex") else dtypes.get_default_dtype())  # type: ignore[attr-defined]
    made = input * (2.0**power if power.dtype.is_complex else power.exp2())
    return made if out is None else store("ldexp", made, out)
