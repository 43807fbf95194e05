"""Activations and slopes in C beside NumPy's in the widest type: ordinary numbers, corners, each instruction set."""

import numpy as np
import pytest

from .native import isa, kernel, laid_out, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
CALLS = [
    ("elu", {}), ("elu", {"alpha": 0.3}), ("selu", {}), ("celu", {"alpha": 1.7}), ("softplus", {}),
    ("softplus", {"beta": 2.0, "threshold": 5.0}), ("mish", {}), ("log_sigmoid", {}),
]  # fmt: skip
SLOPES = [
    ("exponential_unit_backward", {"alpha": 0.3, "scale": 1.5, "input_scale": 2.0}), ("softplus_backward", {}),
    ("softplus_backward", {"beta": 2.0, "threshold": 5.0}), ("mish_backward", {}), ("log_sigmoid_backward", {}),
    ("gelu_backward", {"approximate": "none"}), ("gelu_backward", {"approximate": "tanh"}), ("silu_backward", {}),
]  # fmt: skip


def numbers(dtype):
    """Small, ordinary and large ones, and a tail."""
    random = np.random.default_rng(8)
    return np.concatenate([random.standard_normal(1001) * scale for scale in (1e-3, 1, 8)] + [[0.0, -0.0]]).astype(
        dtype
    )


def check(got, expected, size):
    """Within 8 roundings of the result, and of ``size`` where terms of that size cancel."""
    assert got.dtype == size.dtype
    assert got.shape == expected.shape
    limit = 8 * np.finfo(got.dtype).eps * (np.abs(expected) + np.abs(size) * 0.25)
    wrong = np.abs(got - expected) > limit
    assert not wrong.any(), (got[wrong][:3], expected[wrong][:3], size[wrong][:3])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, options", CALLS)
def test_activations(name, options, dtype):
    """To a few roundings of the exact values; NaN and infinities as NumPy's."""
    native, fallback = kernel(name)
    x = numbers(dtype)
    check(native(x, **options), fallback(x.astype(np.longdouble), **options), np.maximum(np.abs(x), 1).astype(dtype))
    corners = np.array([np.nan, np.inf, -np.inf, 200, -200, 1e-40] * 3, dtype)
    np.testing.assert_allclose(native(corners, **options), fallback(corners, **options), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_rows_above_zero_are_as_those_among_others(name, dtype):
    """No element's bits depend on its neighbours, all of which may be above 0 or not; a NaN among them is one."""
    native = kernel(name)[0]
    x = np.abs(numbers(dtype)) + 1e-3
    x = x.astype(dtype)
    for at, value in ((0, -1), (300, np.nan), (1000, -np.inf), (700, 0)):
        other = x.copy()
        other[at] = value
        got, expected = native(other), native(x)
        np.testing.assert_array_equal(np.delete(got, at), np.delete(expected, at))
        np.testing.assert_array_equal(got[at : at + 1], native(np.array([value], dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, options", SLOPES)
def test_slopes(name, options, dtype):
    """To a few roundings of the gradient times the exact slope; NaN comes through, large numbers do not overflow."""
    native, fallback = kernel(name)
    x = numbers(dtype)
    g = np.random.default_rng(9).standard_normal(x.shape).astype(dtype)
    wide = x.astype(np.float64) if name == "gelu_backward" else x.astype(np.longdouble)
    check(native(g, x, **options), fallback(g.astype(wide.dtype), wide, **options), 2 * g * np.maximum(np.abs(x), 1))
    corners = np.array([np.nan, 200, -200, 1e-40] * 5, dtype)
    ones = np.ones_like(corners)
    np.testing.assert_allclose(
        native(ones, corners, **options), fallback(ones, corners, **options), rtol=1e-5, atol=1e-30
    )


@pytest.mark.parametrize("name, options", [CALLS[0], SLOPES[-1]])
def test_other_layouts_and_half_types_are_numpys(name, options):
    """A transposed matrix, float16, nothing."""
    native, fallback = kernel(name)
    x = np.random.default_rng(8).standard_normal((6, 5))
    for one in (x.T, x.astype(np.float16), x[:0].astype(np.float32), x[:, ::2]):
        arrays = (one,) if name == "elu" else (one, one)
        np.testing.assert_allclose(native(*arrays, **options), fallback(*arrays, **options), rtol=1e-12)


def shapes_of_memory(x):
    """The values of a matrix lying row by row, column by column, apart, backwards, and in a row of rows."""
    apart = np.zeros((x.shape[0], 3, x.shape[1]), x.dtype)
    apart[:, 1] = x
    return {
        "rows": x,
        "columns": np.asfortranarray(x),
        "apart": np.repeat(x, 2, axis=1)[:, ::2],
        "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
        "rows apart": apart[:, 1],
    }


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, options", [*CALLS, *SLOPES])
def test_every_layout_gives_the_same_bits(name, options, dtype):
    """Strided, transposed and expanded operands give bit by bit what dense ones give, tails and long rows included."""
    native, _ = kernel(name)
    for shape in ((7, 39), (3, 601)):
        x = np.random.default_rng(8).standard_normal(shape).astype(dtype)
        g = np.random.default_rng(9).standard_normal(shape).astype(dtype)
        if (name, options) in CALLS:
            for place, one in shapes_of_memory(x).items():
                np.testing.assert_array_equal(native(one, **options), native(x, **options), place)
            continue
        ways, grads = shapes_of_memory(x), shapes_of_memory(g)
        for place in ways:
            for other in ways:
                made = native(grads[other], ways[place], **options)
                np.testing.assert_array_equal(made, native(g, x, **options), f"{other}, {place}")
            for part in (g[:1, :1], g[:, :1], g[:1]):
                expanded = np.broadcast_to(part, shape)
                made = native(expanded, ways[place], **options)
                np.testing.assert_array_equal(made, native(expanded.copy(), x, **options), place)


def test_layouts_of_results():
    """A slope lies in the memory order of its operands; one number expanded decides nothing."""
    native, _ = kernel("silu_backward")
    x = np.random.default_rng(8).standard_normal((6, 5)).astype(np.float32)
    for one in (x, x.T, x[:, ::2]):
        expected = laid_out(np.empty(one.shape, np.float32), one)
        assert native(np.broadcast_to(np.float32(1), one.shape), one).strides == expected.strides


def corners_beside(dtype):
    """Gradients and results: ordinary numbers, and each pair of zeros, infinities, NaN, denormals and the largest."""
    random = np.random.default_rng(8)
    some = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, np.finfo(dtype).max], dtype)
    g, y = [one.ravel() for one in np.meshgrid(some, some)]
    return [np.concatenate([one, random.standard_normal(602).astype(dtype)]) for one in (g, y)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, options", [
    ("relu_backward", {}), ("leaky_relu_backward", {"negative_slope": 0.3}), ("tanh_backward", {}), ("sigmoid_backward", {}),
    ("hardsigmoid_backward", {}), ("hardswish_backward", {}),
])  # fmt: skip
def test_slopes_have_the_bits_of_their_steps(name, options, dtype):
    """Each product is rounded as NumPy rounds it step by step, in any layout, which is what fused programs compute too."""
    native, fallback = kernel(name)
    g, y = corners_beside(dtype)
    np.testing.assert_array_equal(native(g, y, **options), fallback(g, y, **options))
    grads, ways = shapes_of_memory(g[81:].reshape(-1, 7)[:70]), shapes_of_memory(y[81:].reshape(-1, 7)[:70])
    expected = fallback(grads["rows"], ways["rows"], **options)
    for place, one in ways.items():
        for other, mine in grads.items():
            np.testing.assert_array_equal(native(mine, one, **options), expected, f"{other}, {place}")
        expanded = np.broadcast_to(np.array(2.5, dtype), one.shape)
        made = native(expanded, one, **options)
        np.testing.assert_array_equal(made, fallback(expanded.copy(), one, **options), place)
        assert made.strides == laid_out(np.empty(one.shape, one.dtype), one).strides


@pytest.mark.parametrize("dtype", FLOATS)
def test_slopes_of_a_number_for_each_channel(isa, dtype):  # noqa: F811
    """Prelu has the bits of NumPy's steps where the slope is a number for each channel, for each column, or one."""
    native, fallback = kernel("prelu")
    x = np.resize(corners_beside(dtype)[0], (2, 5, 3, 23))
    slopes = np.array([0.25, -2, 0, np.inf, np.nan], dtype)
    for given, weight in (
        (x, slopes.reshape(5, 1, 1)),
        (x[:, :, 0, 0], slopes),
        (x, slopes[:1]),
        (x.transpose(3, 1, 2, 0), slopes[:, None, None]),
    ):
        np.testing.assert_array_equal(native(given, weight), fallback(given, weight))
        out = np.empty(given.shape, dtype)
        assert native(given, weight, out=out) is out
        np.testing.assert_array_equal(out, fallback(given, weight))
