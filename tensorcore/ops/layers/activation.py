"""Activation functions, with the signatures that PyTorch gives them in ``nn.functional``."""

from __future__ import annotations

import math
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, UnsupportedDtype
from tensorcore.ops import rules
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.ops.define import OPS, Op, by_slope
from tensorcore.ops.kinds import COMPLEX, FLOATING, INTEGER, REAL, composite, elementwise
from tensorcore.ops.operands import NARROW, check_tensors, once_rounded
from tensorcore.ops.pointwise.choice import clamp, where
from tensorcore.ops.pointwise.complex import conjugate
from tensorcore.ops.pointwise.explog import exp, log1p, sigmoid
from tensorcore.ops.pointwise.trigonometry import tanh
from tensorcore.ops.record import record
from tensorcore.ops.samples import elementwise as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "leaky_relu",
    "leaky_relu_", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "selu", "selu_", "silu", "softplus", "softshrink",
    "softsign", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip


def _floating(op: str, *, also: frozenset[dtypes.dtype] = frozenset()) -> Any:
    """A check that lets floating dtypes pass."""

    def check(input: Tensor, *others: Any) -> tuple[Any, ...]:
        if input.dtype not in FLOATING and input.dtype not in also:
            raise UnsupportedDtype(
                f'{op}: "{op}" not implemented for {input.dtype.name}, got a tensor of it; use .float()'
            )
        return (input, *others)

    return check


def _relu_result(input: Tensor) -> dtypes.dtype:
    if input.dtype is dtypes.bool_:
        raise DtypeError("relu: Boolean inputs not supported for relu, got a bool tensor; use .float()")
    return input.dtype


_relu = elementwise("relu", "input", "The larger of 0 and each element.", takes=REAL - frozenset([dtypes.bool_]),
                    rule=_relu_result, grads=dict(input=lambda g, out: where(out <= 0, 0.0, g)),
                    samples=samples.activation)  # fmt: skip


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The larger of 0 and each element."""
    return Tensor.relu_(input) if inplace else _relu(input)  # type: ignore[attr-defined]


OPS["relu"].function = relu


@composite(inputs="input", check=_floating("leaky_relu"), quick=FLOATING, usual="type(negative_slope) is float",
           method=False, samples=samples.activation,
           grads=dict(input=lambda g, input, negative_slope: where(input > 0, g, g * negative_slope)))  # fmt: skip
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Each element, those below 0 times ``negative_slope``."""
    return where(input > 0, input, input * negative_slope)


def _check_prelu(input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    rules.broadcast("mul", tuple(input.native.shape), tuple(weight.native.shape))
    return _floating("prelu")(input, weight)  # type: ignore[no-any-return]


@composite(inputs="input weight", check=_check_prelu, quick=FLOATING, samples=samples.pair_of_tensors,
           grads=dict(input=lambda g, input, weight: where(input > 0, g, g * weight),
                      weight=lambda g, input: where(input > 0, 0.0, g * input)),
           method=False, name="_prelu_kernel", kernel="prelu", backward_name="PreluKernelBackward0")  # fmt: skip
def _prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Each element, those below 0 times a weight that broadcasts."""
    return where(input > 0, input, input * weight)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Each element, those below 0 times ``weight``, which holds one number or one for each channel (dim 1)."""
    if not type(input) is type(weight) is Tensor:
        check_tensors("prelu", input=input, weight=weight)
    shape = input.native.shape
    given = weight.native.shape
    if len(given) == 1 and ((given[0] == 1 and shape) or (len(shape) == 2 and given[0] == shape[1])):
        return _prelu(input, weight)
    count = weight.numel()
    if weight.native.shape and len(weight.native.shape) > 1:
        raise DtypeError(
            f"prelu: expected weight to be a scalar or 1D tensor, but got: ndim = {len(weight.native.shape)}; reshape(-1) it"
        )
    if count != 1:
        channels = shape[1] if len(shape) > 1 else 1
        if not shape:
            raise DtypeError("prelu: Not allow zero-dim input tensor with several weights, got one; pass one weight")
        if count != channels:
            raise DtypeError(
                f"prelu: Mismatch of parameter numbers and input channel size, got {count} parameters and {channels} channels; "
                f"pass one for each channel"
            )
        if len(shape) > 2:
            weight = weight.reshape(count, *[1] * (len(shape) - 2))  # type: ignore[attr-defined]
    elif weight.native.shape and not shape:
        weight = weight.reshape(())  # type: ignore[attr-defined]
    return _prelu(input, weight)


Tensor.prelu = prelu  # type: ignore[attr-defined]

# The exponential family: linear above 0, an exponential below


def _elu_grad(g: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    # exp of the positive ones would overflow, and inf * 0 be NaN. By relu, not clamp: the next derivative at 0 is PyTorch's 0.
    low = exp((-input).relu() * -input_scale) * (alpha * scale * input_scale)  # type: ignore[attr-defined]
    return where(input <= 0, g * low, g * scale)


def _elu_value(input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    low = (clamp(input, max=0.0) * input_scale).expm1() * (alpha * scale)  # type: ignore[attr-defined]
    return where(input > 0, input if scale == 1 else input * scale, low)


@composite(inputs="input", check=_floating("elu"), quick=FLOATING, usual="type(alpha) is float",
           method=False, samples=samples.activation,
           grads=dict(input=lambda g, input, alpha: _elu_grad(g, input, alpha, 1.0, 1.0)))  # fmt: skip
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, those below 0 as ``alpha * (exp(x) - 1)``."""
    return _elu_value(input, alpha, 1.0, 1.0)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@composite(inputs="input", check=_floating("selu"), quick=FLOATING, method=False, samples=samples.activation,
           backward_name="EluBackward0",
           grads=dict(input=lambda g, input: _elu_grad(g, input, _SELU_ALPHA, _SELU_SCALE, 1.0)))  # fmt: skip
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``elu`` with the factors that keep mean and variance through a network (Klambauer et al. 2017)."""
    return _elu_value(input, _SELU_ALPHA, _SELU_SCALE, 1.0)


def _check_celu(input: Tensor, alpha: float) -> tuple[Tensor, float]:
    _floating("celu")(input)
    if alpha == 0:
        raise DtypeError("celu: ZeroDivisionError: alpha cannot be 0 for CELU, got 0; pass another number")
    return input, alpha


@composite(inputs="input", check=_check_celu, quick=FLOATING, usual="type(alpha) is float and alpha",
           method=False, samples=samples.activation,
           grads=dict(input=lambda g, input, alpha: _elu_grad(g, input, alpha, 1.0, 1.0 / alpha)))  # fmt: skip
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, those below 0 as ``alpha * (exp(x / alpha) - 1)``."""
    return _elu_value(input, alpha, 1.0, 1.0 / alpha)


# The smooth family


_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def _check_gelu(input: Tensor, approximate: str) -> tuple[Tensor, str]:
    _floating("gelu")(input)
    if not isinstance(approximate, str):
        raise ArgumentTypeError(
            f"gelu: argument 'approximate' must be str, not {type(approximate).__name__}, got {approximate!r}; pass 'tanh'"
        )
    if approximate not in ("none", "tanh"):
        raise DtypeError(
            f"gelu: approximate argument must be either none or tanh, got {approximate!r}; pass one of these"
        )
    return input, approximate


def _gelu_grad(g: Tensor, input: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        square = input * input
        bent = tanh(input * (square * (_SQRT_2_OVER_PI * 0.044715) + _SQRT_2_OVER_PI))
        slope = (1 - bent * bent) * (square * (_SQRT_2_OVER_PI * 3 * 0.044715) + _SQRT_2_OVER_PI) * input
        return g * ((bent + 1 + slope) * 0.5)
    share = ((input * math.sqrt(0.5)).erf() + 1) * 0.5
    return g * (share + input * (exp(input * input * -0.5) * (_SQRT_2_OVER_PI * 0.5)))


@composite(inputs="input", check=_check_gelu, quick=FLOATING,
           usual="type(approximate) is str and approximate in ('none', 'tanh')",
           method=False, samples=samples.activation, grads=dict(input=_gelu_grad))  # fmt: skip
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """Each element times the normal distribution's share below it; ``approximate="tanh"`` by a formula with tanh."""
    if approximate == "tanh":
        return input * 0.5 * (tanh((input + input * input * input * 0.044715) * _SQRT_2_OVER_PI) + 1)
    return input * 0.5 * ((input * math.sqrt(0.5)).erf() + 1)


def _silu_grad(g: Tensor, input: Tensor) -> Tensor:
    s = sigmoid(input)
    return g * conjugate(s * (input * (1 - s) + 1))


@composite(inputs="input", check=_floating("silu", also=COMPLEX), quick=FLOATING, method=False, samples=samples.activation,
           grads=dict(input=_silu_grad))  # fmt: skip
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)`` of each element."""
    return input * sigmoid(input)


def _mish_grad(g: Tensor, input: Tensor) -> Tensor:
    s, t = sigmoid(input), tanh(_softplus_value(input, 1.0, 20.0))
    return g * (t + input * s * (1 - t * t))


@composite(inputs="input", check=_floating("mish"), quick=FLOATING, method=False, samples=samples.activation,
           grads=dict(input=_mish_grad))  # fmt: skip
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))`` of each element."""
    return input * tanh(_softplus_value(input, 1.0, 20.0))


def _softplus_grad(g: Tensor, input: Tensor, beta: float, threshold: float) -> Tensor:
    return where(input * beta > threshold, g, g * sigmoid(input * beta))


def _softplus_value(input: Tensor, beta: float, threshold: float) -> Tensor:
    scaled = input * beta
    return where(scaled > threshold, input, log1p(exp(clamp(scaled, max=threshold))) / beta)


@composite(
    inputs="input", check=_floating("softplus"), quick=FLOATING,
    usual="type(beta) is float and type(threshold) is float", method=False, samples=samples.activation,
    grads=dict(input=_softplus_grad),
)  # fmt: skip
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + exp(beta * x)) / beta`` of each element; the element itself where ``beta * x`` is over ``threshold``."""
    return _softplus_value(input, beta, threshold)


@composite(inputs="input", check=_floating("logsigmoid"), quick=FLOATING, method=False, samples=samples.activation,
           name="log_sigmoid", backward_name="LogSigmoidBackward0", grads=dict(input=lambda g, input: g * sigmoid(-input)))  # fmt: skip
def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))`` of each element, without a loss of digits."""
    # min(x, 0) - log(1 + exp(-|x|)) never takes exp of anything over 0.
    return clamp(input, max=0.0) - log1p(exp(-input.abs()))  # type: ignore[attr-defined]


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)`` of each element."""
    return input / (input.abs() + 1)  # type: ignore[attr-defined]


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)`` of each element."""
    return input - tanh(input)  # type: ignore[operator]


for _name in ("relu", "leaky_relu", "gelu", "silu", "mish", "softplus", "log_sigmoid"):
    by_slope(OPS[_name])
_UNIT = "exponential_unit_backward"
by_slope(OPS["elu"], _UNIT)
by_slope(OPS["selu"], _UNIT, lambda options: {"alpha": _SELU_ALPHA, "scale": _SELU_SCALE})
by_slope(OPS["celu"], _UNIT, lambda options: {"alpha": options["alpha"], "input_scale": 1.0 / options["alpha"]})


# The piecewise linear family


def _check_hardtanh(input: Tensor, min_val: float, max_val: float) -> tuple[Any, ...]:
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val cannot be greater than max_val, got {min_val} and {max_val}; swap them")
    if input.dtype is dtypes.bool_:
        raise UnsupportedDtype("hardtanh: Bool inputs not supported for hardtanh, got a bool tensor; use .float()")
    if input.dtype.kind == "integer":
        if input.dtype is dtypes.uint8 and (min_val < 0 or max_val < 0):
            raise DtypeError(
                f"hardtanh: cannot do hardtanh on an unsigned type with negative limits, got {min_val} and {max_val}; use .float()"
            )
        return input, int(min_val), int(max_val)
    return input, min_val, max_val


def _within(g: Tensor, input: Tensor, min_val: float, max_val: float) -> Tensor:
    return where((input > min_val) & (input < max_val), g, 0.0)


@composite(inputs="input", check=_check_hardtanh, method=False, samples=samples.activation, grads=dict(input=_within))
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, kept within ``min_val`` and ``max_val``."""
    return clamp(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element, kept within 0 and 6."""
    if not inplace and type(input) is Tensor and input.node is None and input.dtype in FLOATING:
        return clamp(input, 0.0, 6.0)  # which that is, past what it checks: 0.7 us less
    return hardtanh(input, 0.0, 6.0, inplace)


@composite(inputs="input", check=_floating("hardsigmoid"), quick=FLOATING, takes=FLOATING,
           method=False, samples=samples.activation,
           grads=dict(input=lambda g, input: where((input > -3.0) & (input < 3.0), g * (1 / 6), 0.0)))  # fmt: skip
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """A line from 0 at -3 to 1 at 3."""
    if input.dtype in NARROW:
        return once_rounded(hardsigmoid, input.dtype, input)
    return clamp(input + 3, 0.0, 6.0) / 6


def _hardswish_grad(g: Tensor, input: Tensor) -> Tensor:
    return where(input <= -3.0, 0.0, where(input < 3.0, g * (input / 3 + 0.5), g))


@composite(inputs="input", check=_floating("hardswish"), quick=FLOATING, takes=FLOATING,
           method=False, samples=samples.activation,
           grads=dict(input=_hardswish_grad))  # fmt: skip
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its ``hardsigmoid``."""
    if input.dtype in NARROW:
        return once_rounded(hardswish, input.dtype, input)
    return input * clamp(input + 3, 0.0, 6.0) / 6


for _name in ("hardsigmoid", "hardswish"):
    by_slope(OPS[_name])


def _check_threshold(input: Tensor, threshold: float, value: float) -> tuple[Any, ...]:
    if input.dtype.kind == "bool" or input.dtype.is_complex:
        raise UnsupportedDtype(f'threshold: "threshold" not implemented for {input.dtype.name}, got one; use .float()')
    if input.dtype.kind != "integer":
        return input, threshold, value
    for one in (threshold, value):
        if isinstance(one, complex):
            raise DtypeError(
                f"threshold: value cannot be converted to type {input.dtype.name}, got {one}; pass a real number"
            )
        # As a C cast from the number's own type: a negative float has no place among unsigned integers.
        limits = dtypes.iinfo(input.dtype)
        low = limits.min if isinstance(one, float) or limits.min else -limits.max
        if not low <= one <= limits.max:
            raise DtypeError(
                f"threshold: value cannot be converted to type {input.dtype.name} without overflow, got {one}; pass one in its range"
            )
    return input, int(threshold), int(value)


@composite(inputs="input", check=_check_threshold, takes=FLOATING | INTEGER, method=False, samples=samples.threshold,
           grads=dict(input=lambda g, input, threshold: where(input <= threshold, 0.0, g)))  # fmt: skip
def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Each element, those up to ``threshold`` replaced by ``value``."""
    return where(input <= threshold, value, input)


@composite(inputs="input", check=_floating("hardshrink"), quick=FLOATING, takes=FLOATING,
           samples=samples.activation,
           grads=dict(input=lambda g, input, lambd: where((input >= -lambd) & (input <= lambd), 0.0, g)))  # fmt: skip
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Each element, those within ``lambd`` of 0 replaced by 0."""
    return where(input.abs() <= lambd, 0.0, input)  # type: ignore[attr-defined, no-any-return]


def _check_softshrink(input: Tensor, lambd: float) -> tuple[Tensor, float]:
    _floating("softshrink")(input)
    if lambd < 0:
        raise DtypeError(
            f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}; got a negative one"
        )
    return input, lambd


@composite(inputs="input", check=_check_softshrink, quick=FLOATING, takes=FLOATING,
           method=False, samples=samples.activation,
           grads=dict(input=lambda g, input, lambd: where((input >= -lambd) & (input <= lambd), 0.0, g)))  # fmt: skip
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Each element, moved towards 0 by ``lambd``, at most to 0."""
    return input - clamp(input, -lambd, lambd)


def _glu_value(input: Tensor, at: int, half: int) -> Tensor:
    return input.narrow(at, 0, half) * sigmoid(input.narrow(at, half, half))  # type: ignore[attr-defined, no-any-return]


def _glu_grad(g: Tensor, input: Tensor, dim: int) -> Tensor:
    half = input.native.shape[dim] // 2
    share = sigmoid(input.narrow(dim, half, half))  # type: ignore[attr-defined]
    first = g * share
    # 1 - share is exact: first - first * share would leave few digits where the gate is open.
    return cat([first, first * (1 - share) * input.narrow(dim, 0, half)], dim)  # type: ignore[attr-defined]


_glu = Op("glu", "input", "The first half times the sigmoid of the second.", register=False, backward_name="GluBackward0",
          grads=dict(input=_glu_grad))  # fmt: skip


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of ``input`` along ``dim`` times the sigmoid of the second half."""
    shape = input.native.shape
    if not shape:
        raise DtypeError("glu: glu does not support 0-dimensional tensors, got one; use unsqueeze")
    at = rules.wrap_dim("glu", dim, len(shape))
    if shape[at] % 2:
        raise DtypeError(f"glu: Halving dimension must be even, but dimension {at} is size {shape[at]}; got an odd one")
    half = shape[at] // 2
    if type(input) is not Tensor or input.node is None or not mode.enabled or input.dtype not in PLAIN_FLOATS:
        return _glu_value(input, at, half)
    # One node: those of both halves would each make zeros of the whole, which are added up.
    made = _glu_value(input.detach(), at, half)
    record(_glu, (input,), {"dim": at}, made)
    return made


def relu_(input: Tensor) -> Tensor:
    """In-place form of :func:`relu`."""
    return relu(input, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place form of :func:`leaky_relu`."""
    return leaky_relu(input, negative_slope, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`elu`."""
    return elu(input, alpha, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`celu`."""
    return celu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """In-place form of :func:`selu`."""
    return selu(input, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place form of :func:`hardtanh`."""
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input: Tensor, threshold_: float, value: float) -> Tensor:
    """In-place form of :func:`threshold`."""
    return threshold(input, threshold_, value, inplace=True)
