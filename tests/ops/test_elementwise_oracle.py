"""Elementwise ops against PyTorch: values, dtypes, errors and gradients over dtypes, numbers and layouts."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tensorcore
from tensorcore.ops.define import OPS
from tensorcore.ops.layers.activation import __all__ as ACTIVATIONS

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")]

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "complex64": 5e-6}
UNARY = (
    "neg", "abs", "sign", "sgn", "positive", "square", "sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "sigmoid", "erf", "erfc", "erfinv", "lgamma", "digamma", "floor", "ceil", "trunc", "round", "frac",
    "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isreal", "angle", "real", "imag", "conj",
    "nan_to_num", "logical_not", "bitwise_not", "relu", "deg2rad", "rad2deg", "sinc", "logit", "selu", "celu",
    "view_as_real", "hardshrink",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "float_power", "atan2", "hypot",
    "copysign", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
    "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "xlogy",
    "heaviside", "isclose", "allclose", "equal", "rsub", "nextafter", "clamp_min", "clamp_max", "logaddexp",
)  # fmt: skip
OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "eq", "ne",
    "lt", "le", "gt", "ge",
)  # fmt: skip
ONE_TENSOR = [
    name for name in ACTIVATIONS if name not in ("prelu", "threshold", "threshold_", "glu", "rrelu") and name[-1] != "_"
]


def values(dtype):
    """Corners of a dtype."""
    if dtype == "bool":
        return [True, False, True, False]
    if dtype == "uint8":
        return [0, 1, 7, 250]
    if dtype.startswith("int"):
        return [0, 1, -7, 100]
    if dtype.startswith("complex"):
        return [1 + 2j, -0.5j, 0.25 - 1j, 0.5 + 0j]
    return [0.0, -0.0, 0.3, -1.5, 2.5, 30.0, float("-inf"), float("nan"), 1.0, -1.0]


def others(dtype):
    """Second operands to go with them."""
    if dtype == "bool":
        return [True, True, False, False]
    if dtype == "uint8":
        return [3, 1, 2, 9]
    if dtype.startswith("int"):
        return [3, -2, 2, 100]
    if dtype.startswith("complex"):
        return [2 + 1j, 1.5, -0.25 - 1j, 1j]
    return [1.0, -0.0, 2.3, 0.7, -2.5, 3.0, 2.0, 1.0, float("nan"), 0.5]


def both(torch, data, dtype):
    """The same tensor in both libraries."""
    return torch.tensor(data, dtype=getattr(torch, dtype)), tensorcore.tensor(data, dtype=getattr(tensorcore, dtype))


def attempt(function, *args, **kwargs):
    """The result, or the exception."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def as_numpy(one):
    """The values, in a dtype that NumPy's comparison knows."""
    one = one.detach()
    if "bfloat16" in str(one.dtype):
        one = one.float()
    return one.resolve_conj().numpy(force=True)


def agree(expected, found, tolerance=None):
    """Same error type, or same dtype, shape and values."""
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), f"expected {expected!r}, got {found!r}"
        return
    assert not isinstance(found, Exception), f"expected {expected}, got {found!r}"
    if isinstance(expected, bool):
        assert found is expected
        return
    assert repr(found.dtype) == str(expected.dtype)
    assert tuple(found.shape) == tuple(expected.shape)
    tolerance = tolerance or TOLERANCE.get(found.dtype.name, 1e-12)
    wide = np.complex128 if expected.is_complex() else np.float64
    np.testing.assert_allclose(
        as_numpy(found).astype(wide), as_numpy(expected).astype(wide), rtol=tolerance, atol=tolerance / 2
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(torch, name, dtype):
    """An op of one tensor agrees in value, dtype and error, and so does its in-place form."""
    theirs, ours = both(torch, values(dtype), dtype)
    agree(attempt(getattr(torch, name), theirs), attempt(getattr(tensorcore, name), ours))
    if hasattr(torch.Tensor, f"{name}_"):
        agree(attempt(getattr(theirs, f"{name}_")), attempt(getattr(ours, f"{name}_")))
        agree(theirs, ours)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE_TENSOR)
def test_activation(torch, name, dtype):
    """An activation agrees in value, dtype and error, and so does ``inplace=True``."""
    data = [0, 1, 3, 5] if dtype == "uint8" else values(dtype)
    theirs, ours = both(torch, data, dtype)
    reference, function = getattr(torch.nn.functional, name), getattr(tensorcore.ops.layers.activation, name)
    agree(attempt(reference, theirs), attempt(function, ours))
    expected = attempt(reference, theirs, inplace=True)
    if not isinstance(expected, TypeError):
        agree(expected, attempt(function, ours, inplace=True))
        agree(theirs, ours)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(torch, name, dtype):
    """An op of two tensors agrees for every second dtype, out of place and in place."""
    for second in DTYPES:
        if name in ("logaddexp", "pow", "float_power") and ("complex" in second or "complex" in dtype):
            continue  # logaddexp is real here; powers of complex zero and infinity have no agreed value
        data = list(zip(values(dtype), others(second), strict=False))
        theirs, ours = both(torch, [a for a, _ in data], dtype)
        their_other, our_other = both(torch, [b for _, b in data], second)
        agree(attempt(getattr(torch, name), theirs, their_other), attempt(getattr(tensorcore, name), ours, our_other))
        if hasattr(torch.Tensor, f"{name}_"):
            agree(
                attempt(getattr(theirs, f"{name}_"), their_other),
                attempt(getattr(ours, f"{name}_"), our_other),
            )


@pytest.mark.parametrize("dtype", [one for one in DTYPES if one not in ("bfloat16", "float16")])
@pytest.mark.parametrize("name", OPERATORS)
def test_numbers(torch, name, dtype):
    """A Python number on either side, or written in place, gives PyTorch's value, dtype or error."""
    function = getattr(operator, name)
    written = getattr(operator, f"i{name.rstrip('_')}", None)
    for number in (2, -3, 0, 2.5, -0.5, 0.1, 300, 2**40):
        if dtype.startswith("complex") and number == 0 and name in ("pow", "truediv"):
            continue
        theirs, ours = both(torch, values(dtype), dtype)
        agree(attempt(function, theirs, number), attempt(function, ours, number))
        agree(attempt(function, number, theirs), attempt(function, number, ours))
        if written is not None:
            agree(attempt(written, theirs, number), attempt(written, ours, number))


@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_modes(torch, dtype, mode):
    """Rounded quotients agree, the error for a mode or dtype that is not taken included."""
    theirs, ours = both(torch, values(dtype), dtype)
    for divisor in (3, -2.5):
        agree(
            attempt(torch.div, theirs, divisor, rounding_mode=mode),
            attempt(tensorcore.div, ours, divisor, rounding_mode=mode),
        )


@pytest.mark.parametrize("layout", ["transposed", "expanded", "zero-dim", "empty", "strided"])
@pytest.mark.parametrize(
    "name", ["add", "mul", "exp", "sigmoid", "erf", "relu", "gelu", "maximum", "clamp", "where", "lgamma"]
)
def test_layouts(torch, name, layout):
    """Memory of any layout gives the values of contiguous memory."""
    made = []
    for library in (torch, tensorcore):
        x = library.arange(12, dtype=library.float64).reshape(3, 4) / 6 - 1
        x = {
            "transposed": lambda x: x.t(),
            "expanded": lambda x: x.narrow(0, 1, 1).expand(5, 4),
            "zero-dim": lambda x: x.select(0, 1).select(0, 2),
            "empty": lambda x: x.narrow(0, 0, 0),
            "strided": lambda x: x.select(1, 2),
        }[layout](x)
        if name == "gelu":
            made.append(library.nn.functional.gelu(x))
        elif name == "where":
            made.append(library.where(x > 0, x, -1.0))
        elif name == "clamp":
            made.append(library.clamp(x, -0.5, 0.4))
        elif name in ("add", "mul", "maximum"):
            made.append(getattr(library, name)(x, x))
        else:
            made.append(getattr(library, name)(x))
    agree(*made)


def _gradients(library, function, arrays, kwargs):
    leaves, args = [], []
    for one in arrays:
        if isinstance(one, np.ndarray):
            one = library.tensor(one)
            if one.dtype in (library.float64, library.complex128):
                leaves.append(one.requires_grad_())
        args.append(one)
    result = function(*args, **kwargs)
    if not isinstance(result, library.Tensor) or result.grad_fn is None:
        return result, []
    return result, library.autograd.grad(result, leaves, library.ones_like(result), allow_unused=True)


def _same_gradients(torch, reference, function, args, kwargs):
    expected, their_grads = _gradients(torch, reference, args, kwargs)
    found, our_grads = _gradients(tensorcore, function, args, kwargs)
    agree(expected, found, 1e-8)  # PyTorch's own trigamma is good to 5e-10
    for theirs, ours in zip(their_grads, our_grads, strict=True):
        assert (theirs is None) == (ours is None)
        if theirs is not None:
            np.testing.assert_allclose(as_numpy(ours), as_numpy(theirs), rtol=1e-6, atol=1e-7)


NO_DERIVATIVE_THERE = {"floor_divide", "heaviside", "nextafter", "trunc_divide"}
SAMPLED = sorted(
    name for name, op in OPS.items()
    if op.samples is not None and op.function is not None and op.function.__module__.rsplit(".", 1)[-1] in (
        "activation", "arithmetic", "calls", "choice", "compare", "complex", "explog", "kinds", "rounding",
        "trigonometry",
    ) and name not in NO_DERIVATIVE_THERE
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLED)
def test_gradients_of_samples(torch, name):
    """Gradients at ordinary points agree."""
    random = np.random.default_rng(3)
    public = {"log_sigmoid": "logsigmoid"}.get(name, name)
    homes = (torch, torch.nn.functional, torch.special)
    reference = next(getattr(home, public) for home in homes if hasattr(home, public))
    checked = 0
    for args, kwargs in OPS[name].samples(
        lambda *shape, low=-2.0, high=2.0: np.asarray(random.uniform(low, high, shape))
    ):
        try:
            reference(*[torch.tensor(one) if isinstance(one, np.ndarray) else one for one in args], **kwargs)
        except TypeError:
            continue  # a number where PyTorch wants a tensor
        _same_gradients(torch, reference, OPS[name].function, args, kwargs)
        checked += 1
    assert checked


NAN, INF = float("nan"), float("inf")
AWKWARD = [
    ("abs", [0.0, -0.0, 1.0]), ("sqrt", [0.0, 1.0]), ("sign", [0.0, 1.0]), ("relu", [0.0, 1.0, -1.0, NAN]),
    ("sigmoid", [100.0, -800.0]), ("tanh", [50.0, -50.0]), ("log", [0.0, 1.0]), ("rsqrt", [0.0]), ("reciprocal", [0.0]),
    ("asin", [1.0, -1.0]), ("acos", [1.0, -1.0]), ("nan_to_num", [NAN, INF, 1.0]),
    ("hardshrink", [0.5, -0.5, 0.0, 1.0]),
    ("logit", [0.0, 1.0, 0.5, 2.0]), ("atanh", [1.0, 0.5]), ("acosh", [1.0, 2.0]), ("sinc", [0.0, 1.0, 0.5]),
    ("elu", [0.0, -1.0, 1.0, -900.0, 900.0]), ("leaky_relu", [0.0, -1.0, 1.0]), ("selu", [0.0, -900.0, 900.0]),
    ("softplus", [20.0, 21.0, -900.0, 0.0, 900.0]), ("gelu", [0.0, 10.0, -10.0, -40.0, 40.0]),
    ("silu", [0.0, -900.0, 900.0]),
    ("mish", [0.0, -900.0, 900.0, 20.0, 21.0]), ("hardtanh", [-1.0, 1.0, 0.0]), ("relu6", [0.0, 6.0, 3.0]),
    ("hardswish", [-3.0, 3.0, 0.0]), ("logsigmoid", [0.0, 900.0, -900.0]), ("softshrink", [0.5, -0.5, 1.0, 0.0]),
]  # fmt: skip


def _function(library, name):
    return getattr(library, name, None) or getattr(library.nn.functional, name)


@pytest.mark.parametrize(("name", "data"), AWKWARD)
def test_gradients_at_awkward_points(torch, name, data):
    """Gradients at kinks, poles and where intermediate values overflow are PyTorch's."""
    _same_gradients(torch, _function(torch, name), _function(tensorcore, name), (np.array(data),), {})


AWKWARD_PAIRS = [
    ("maximum", [0.0, 1.0, NAN, 2.0, INF], [0.0, 2.0, 1.0, NAN, INF]),
    ("minimum", [0.0, 1.0, NAN, 2.0], [0.0, 2.0, 1.0, NAN]),
    ("fmax", [0.0, 1.0, NAN, 2.0], [0.0, 2.0, 1.0, NAN]), ("fmin", [0.0, 1.0, NAN, 2.0], [0.0, 2.0, 1.0, NAN]),
    ("pow", [0.0, 0.0, 0.0, 2.0, -1.0, 1.0], [0.0, 1.0, 2.0, 0.0, 2.0, NAN]), ("pow", [0.0, 0.0], [-1.0, 0.5]),
    ("atan2", [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]), ("div", [0.0, 1.0], [0.0, 0.0]),
    ("xlogy", [0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 0.0, NAN]), ("copysign", [0.0, 1.0, -1.0], [-0.0, -1.0, 2.0]),
    ("hypot", [0.0, 1.0], [0.0, 0.0]), ("clamp_min", [1.0, 2.0, NAN], [1.0, 3.0, 0.0]),
    ("clamp_max", [1.0, 2.0, NAN], [1.0, 3.0, 0.0]), ("remainder", [4.0, -4.0], [2.0, 3.0]),
    ("fmod", [4.0, -4.0], [2.0, 3.0]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "left", "right"), AWKWARD_PAIRS)
def test_gradients_of_pairs_at_awkward_points(torch, name, left, right):
    """Ties, zeros and NaN in two operands get PyTorch's gradients."""
    _same_gradients(torch, getattr(torch, name), _function(tensorcore, name), (np.array(left), np.array(right)), {})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("right", [[2.0, -2.0, 2.0, -2.0, 2.0, -2.0, INF, -INF], 2.0, -2.0])
def test_a_remainder_of_zero_has_the_sign_of_what_was_divided(torch, dtype, right):
    """Zeros keep PyTorch's signs: of numbers, of tensors, of the operator and of a compiled program."""
    left = [-2.0, 2.0, -0.0, 0.0, 4.0, -4.0, -0.0, 0.0]

    def of(module):
        dtype_of = getattr(module, dtype)
        x = module.tensor(left, dtype=dtype_of)
        y = module.tensor(right, dtype=dtype_of) if type(right) is list else right
        calls = [module.remainder, lambda x, y: x % y]
        calls += [] if module is torch else [module.compile(lambda x, y: module.remainder(x * 1, y) * 1)]
        return [call(x, y).double().numpy() for call in calls]

    expected, found = of(torch), of(tensorcore)
    for one in found:
        np.testing.assert_array_equal(one, expected[0])
        np.testing.assert_array_equal(np.signbit(one), np.signbit(expected[0]))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, 0.0, 2.5])
def test_gradient_of_powers_at_zero(torch, exponent):
    """x**0 has gradient 0 everywhere, and the other powers PyTorch's at 0 and below."""
    _same_gradients(torch, torch.pow, tensorcore.pow, (np.array([0.0, 1.0, 2.0, -1.0]), exponent), {})


@pytest.mark.parametrize("base", [0, 1, 2, -2.0, 0.5])
def test_gradient_of_exponents(torch, base):
    """A number to the power of a tensor, the number 0 included."""
    _same_gradients(torch, torch.pow, tensorcore.pow, (base, np.array([0.0, 1.0, 2.0, -1.0])), {})


@pytest.mark.parametrize("name", [
    "neg", "abs", "sgn", "square", "sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10",
    "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "sigmoid", "angle", "real", "imag", "view_as_real",
])  # fmt: skip
def test_complex_gradients(torch, name):
    """Gradients of complex inputs follow PyTorch's convention."""
    random = np.random.default_rng(5)
    data = random.uniform(-1, 1, 5) + 1j * random.uniform(-1, 1, 5)
    _same_gradients(torch, getattr(torch, name), getattr(tensorcore, name), (data,), {})


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_mixed_complex_gradients(torch, name):
    """A real operand beside a complex one gets the real part of its gradient."""
    random = np.random.default_rng(5)
    real, other = random.uniform(0.2, 1, 5), random.uniform(-1, 1, (3, 5)) + 1j * random.uniform(-1, 1, (3, 5))
    for args in ((real, other), (other, real), (real, 2j), (other, 2)):
        _same_gradients(torch, getattr(torch, name), getattr(tensorcore, name), args, {})
