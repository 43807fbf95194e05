"""Half types in kernels of single precision: operands are converted, results rounded once, as NumPy's kernels have it."""

import ml_dtypes
import numpy as np
import pytest

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
LOSS = {"reduction": "mean"}


def half(dtype, *shape, seed=8):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


def results(made):
    return made if isinstance(made, tuple) else (made,)


def assert_rounded(got, expected, slack=0.0):
    """Of one dtype, and at most one unit of a half type apart: sums of floats in another order may round to either side."""
    for one, other in zip(results(got), results(expected), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            digits = 2.0**-7 if one.dtype == ml_dtypes.bfloat16 else 2.0**-10
            wide, exact = np.asarray(one, np.float64), np.asarray(other, np.float64)
            np.testing.assert_allclose(
                wide, exact, rtol=digits if one.dtype.itemsize == 2 else 2e-5, atol=digits * 1e-2 + slack
            )


CALLS = {
    "softmax": lambda d: ((half(d, 7, 33),), {"dim": 1}),
    "log_softmax": lambda d: ((half(d, 7, 33),), {"dim": 0}),
    "softmax_backward": lambda d: ((half(d, 7, 33), np.abs(half(d, 7, 33, seed=9)) / 33), {"dim": 1}),
    "sum": lambda d: ((half(d, 7, 33),), {"dim": (1,), "keepdim": True}),
    "mean": lambda d: ((half(d, 7, 33),), {"dim": (0,), "keepdim": False}),
    "amax": lambda d: ((half(d, 7, 33),), {"dim": (1,), "keepdim": False}),
    "argmin": lambda d: ((half(d, 7, 33),), {"dim": 1, "keepdim": False}),
    "max_dim": lambda d: ((half(d, 7, 33),), {"dim": 1, "keepdim": False}),
    "var": lambda d: ((half(d, 7, 33),), {"dim": (1,), "keepdim": False, "correction": 1.0, "root": False}),
    "var_mean": lambda d: ((half(d, 7, 5, 9),), {"dim": (0, 2), "keepdim": True, "correction": 1.0, "root": True}),
    "cumsum": lambda d: ((half(d, 7, 33),), {"dim": 1}),
    "mse_loss": lambda d: ((half(d, 7, 33), half(d, 7, 33, seed=9)), LOSS),
    "elu": lambda d: ((half(d, 7, 33),), {"alpha": 1.0, "scale": 1.0, "input_scale": 1.0}),
    "gelu_backward": lambda d: ((half(d, 7, 33), half(d, 7, 33, seed=9)), {"approximate": "none"}),
    "matmul": lambda d: ((half(d, 7, 33), half(d, 33, 5)), {}),
    "linear": lambda d: ((half(d, 7, 33), half(d, 5, 33), half(d, 5)), {}),
    "standardize": lambda d: (
        (half(d, 7, 33), half(d, 33), None),
        {"view": (7, 33), "dims": (1,), "affine": (33,), "eps": 1e-5, "centre": True},
    ),
    "standardize_by": lambda d: (
        (half(d, 7, 3, 5), half(np.float32, 3), np.abs(half(np.float32, 3)), half(d, 3), half(d, 3)), {"eps": 1e-5},
    ),
    "mode_dim": lambda d: ((np.round(half(d, 7, 33)),), {"dim": 1, "keepdim": False}),
    "isin": lambda d: ((np.round(half(d, 7, 33)), np.round(half(d, 2, seed=9))), {}),
    "searchsorted": lambda d: ((np.sort(half(d, 33).astype(np.float32)).astype(d), half(d, 7, 5, seed=9)), {"right": True}),
    "logcumsumexp": lambda d: ((half(d, 7, 33),), {"dim": 1}),
    "adaptive_max": lambda d: ((half(d, 2, 3, 9, 11),), {"counts": (4, 3)}),
    "topk": lambda d: ((half(d, 7, 133),), {"k": 5, "dim": 1}),
    "soft_margin_loss": lambda d: ((half(d, 7, 33), np.sign(half(d, 7, 33, seed=9))), LOSS),
    "frexp": lambda d: ((half(d, 7, 33),), {}),
    "attention": lambda d: (
        (half(d, 2, 3, 5, 8), half(d, 2, 3, 6, 8), half(d, 2, 3, 6, 8), None), {"causal": False, "scale": 0.3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_numpy(name, dtype):
    """Results have the half type, what is kept for the way back single precision; transposed and reversed operands are the same."""
    native, fallback = kernel(name)
    args, options = CALLS[name](dtype)
    expected = fallback(*args, **options)
    got = native(*args, **options)
    # Where tiles make it, weights, whose sum is one, are rounded before they meet values of up to 2.
    slack = 2.0**-9 * 2 if name == "attention" and dtype == ml_dtypes.bfloat16 else 0.0
    assert_rounded(got, expected, slack)
    turned = [np.asfortranarray(one) if isinstance(one, np.ndarray) else one for one in args]
    again = [np.ascontiguousarray(one[::-1])[::-1] if isinstance(one, np.ndarray) and one.ndim else one for one in args]
    for given in (turned, again):
        assert_rounded(native(*given, **options), expected, slack)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_are_rounded_as_their_operands_are(dtype):
    """Weights in single precision beside an input of a half type have gradients in single precision, and the other way round."""
    native, fallback = kernel("standardize_backward")
    forward = {"view": (7, 33), "dims": (1,), "affine": (33,), "eps": 1e-5, "centre": True}
    x, g = half(dtype, 7, 33), half(dtype, 7, 33, seed=9)
    for weight, bias in (
        (half(dtype, 33), half(dtype, 33)),
        (half(np.float32, 33), half(np.float32, 33)),
        (None, None),
    ):
        _, mean, var = kernel("standardize")[1](x, weight, bias, **forward)
        needs = (True, weight is not None, bias is not None)
        assert_rounded(
            native(g, x, weight, bias, mean, var, needs=needs, **forward),
            fallback(g, x, weight, bias, mean, var, needs=needs, **forward),
        )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("weighted", [None, np.float32, "half"])
def test_losses_of_classes_keep_what_their_own_gradient_reads(dtype, weighted):
    """Forward and backward of one kernel, beside both of NumPy's; class weights of either precision."""
    forward, numpy_forward = kernel("cross_entropy")
    backward, numpy_backward = kernel("cross_entropy_backward")
    x, target = half(dtype, 7, 33), np.arange(7) % 5
    weight = None if weighted is None else np.abs(half(dtype if weighted == "half" else weighted, 33))
    options = LOSS | {"ignore_index": 3}
    made, *kept = forward(x, target, weight, **options)
    expected, *reference = numpy_forward(x, target, weight, **options)
    assert_rounded(made, expected)
    g, needs = np.array(1.5, dtype), (True, False, False)
    got = backward(g, x, target, weight, *kept, needs=needs, **options)
    assert_rounded(got, numpy_backward(g, x, target, weight, *reference, needs=needs, **options))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["lstm_steps", "gru_steps", "rnn_steps"])
def test_recurrent_steps_keep_floats(name, dtype):
    """Outputs and states are rounded, what the way back reads is not; NumPy's kernel goes back from what either left."""
    forward, numpy_forward = kernel(name)
    backward, numpy_backward = kernel(f"{name}_backward")
    gates = {"lstm_steps": 4, "gru_steps": 3, "rnn_steps": 1}[name]
    states = [half(dtype, 3, 6, seed=10 + k) for k in range(2 if name == "lstm_steps" else 1)]
    given = [half(dtype, 8, gates * 6), half(dtype, gates * 6, 6, seed=9)]
    given += [half(dtype, gates * 6, seed=12)] if name == "gru_steps" else []
    options = {"sizes": (3, 3, 2), "reverse": False} | ({"nonlinearity": "tanh"} if gates == 1 else {})
    got, expected = (one(*given, *states, **options) for one in (forward, numpy_forward))
    assert_rounded(got, expected)
    count = 1 + len(states)
    g = [half(dtype, *one.shape, seed=20) for one in expected[:count]]
    needs = (True,) * (len(given) + len(states))
    assert_rounded(
        backward(list(g), *given, *states, *got[count:], needs=needs, **options),
        numpy_backward(list(g), *given, *states, *expected[count:], needs=needs, **options),
    )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_what_is_asked_otherwise_goes_to_numpy(dtype):
    """Another dtype for the result, doubles beside halves, two half types, and no elements."""
    add, reference = kernel("sum")
    x = half(dtype, 7, 33)
    wanted = type("Wanted", (), {"numpy": np.dtype(np.float32), "itemsize": 4})
    assert add(x, dim=(1,), dtype=wanted).dtype == np.float32
    np.testing.assert_array_equal(add(x[:0], dim=(0,)), reference(x[:0], dim=(0,)))
    loss, numpys = kernel("mse_loss")
    for kind in (np.float64, HALVES[0] if dtype == HALVES[1] else HALVES[1]):
        target = half(kind, 7, 33, seed=9)
        assert_rounded(loss(x, target, **LOSS), numpys(x, target, **LOSS))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_signs_are_bits(dtype):
    """The other sign, and none, of every number there is: of zeros, infinities and NaN too; in place and in steps."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    for name, bits in (("neg", x.view(np.uint16) ^ 0x8000), ("abs", x.view(np.uint16) & 0x7FFF)):
        native = kernel(name)[0]
        np.testing.assert_array_equal(native(x).view(np.uint16), bits)
        np.testing.assert_array_equal(np.ascontiguousarray(native(x[::3])).view(np.uint16), bits[::3])
        np.testing.assert_array_equal(
            np.ascontiguousarray(native(x.reshape(256, 256).T)).view(np.uint16), bits.reshape(256, 256).T
        )
        place = x.copy()
        assert native(place, out=place) is place
        np.testing.assert_array_equal(place.view(np.uint16), bits)


def test_float16_converts_as_numpy_does():
    """Every float16 to float, and floats back: ties, denormals and what is too large included; whatever the length."""
    import tensorcore as tc  # the dtypes that a cast names

    cast = kernel("cast")[0]
    with np.errstate(all="ignore"):
        every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        wide = cast(every, dtype=tc.float32)
        np.testing.assert_array_equal(wide, every.astype(np.float32))
        middle = (wide[:-1] + wide[1:]) / 2  # halfway between neighbours
        for x in (wide, middle, np.nextafter(middle, np.float32(0)), awkward("float32", 1009)):
            for count in (len(x), 7, 17, 41):
                np.testing.assert_array_equal(cast(x[:count], dtype=tc.float16), x[:count].astype(np.float16))


SIZES = [(8, 17, 33), (13, 64, 64), (100, 321, 70), (64, 640, 32), (25, 3000, 7), (3, 200, 200), (130, 130, 130)]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_are_sums_of_floats_rounded_once(size, dtype):
    """Either side turned, every second row, batches, and with a bias: half a unit of the exact sum, and what floats lose on the way."""
    rows, inner, columns = size
    x, y, bias = half(dtype, rows, inner), half(dtype, inner, columns, seed=9), half(dtype, columns)
    exact = x.astype(np.float64) @ y.astype(np.float64)

    def check(got, wanted):
        assert got.dtype == dtype
        unit = 2.0**-8 if dtype == ml_dtypes.bfloat16 else 2.0**-11
        apart = np.abs(got.astype(np.float64) - wanted)
        assert (apart <= 1.01 * unit * np.abs(wanted) + 4 * inner**0.5 * 1e-6).all()

    matmul, turned, left_turned = kernel("matmul")[0], kernel("matmul_nt")[0], kernel("matmul_tn")[0]
    check(matmul(x, y), exact)
    check(matmul(np.asfortranarray(x), np.asfortranarray(y)), exact)
    check(turned(x, np.ascontiguousarray(y.T)), exact)
    check(left_turned(np.ascontiguousarray(x.T), y), exact)
    check(matmul(x[::2], y[:, ::-1]), exact[::2, ::-1])
    check(matmul(x, np.stack([y, -y])), np.stack([exact, -exact]))
    check(kernel("linear")[0](x, np.ascontiguousarray(y.T), bias), exact + bias.astype(np.float64))
    added = half(dtype, rows, columns, seed=7)
    check(kernel("addmm")[0](added, x, y, beta=1, alpha=1), exact + added.astype(np.float64))
    check(kernel("addmm")[0](added, x, y, beta=0.5, alpha=2), 2 * exact + 0.5 * added.astype(np.float64))


def test_products_keep_what_is_not_finite():
    """An infinity in a row reaches that row alone, and beside a zero it is NaN; a sum that no half type holds is infinite."""
    matmul = kernel("matmul")[0]
    x, y = np.ones((40, 40), HALVES[1]), np.ones((40, 40), HALVES[1])
    x[3, 5], y[7, 2] = np.inf, np.nan
    y[5, 9] = 0
    got = matmul(x, y).astype(np.float32)
    assert np.isnan(got[:, 2]).all()
    assert np.isnan(got[3, 9])
    assert np.isinf(got[3, 10])
    assert (np.delete(np.delete(got, 3, 0), [2, 9], 1) == 40).all()
    huge = np.full((40, 40), 3e38, HALVES[1])
    assert np.isinf(matmul(huge, y[:, 10:]).astype(np.float32)).all()
