"""The C convolutions and products of bfloat16, which some processors make without single precision, against NumPy's in double precision."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore

from .native import isa, kernel, needs_native  # noqa: F401
from .test_native_conv import CALLS, KERNELS, arguments

pytestmark = needs_native

HALF = np.dtype(ml_dtypes.bfloat16)


def halves(name, call):
    """The call with operands of bfloat16, and what it gives in double precision."""
    args, options = arguments(name, call, np.float32)
    args = [one.astype(HALF) for one in args]
    return args, options, kernel(name)[1](*[one.astype(np.float64) for one in args], **options)


def assert_rounded(found, expected, slack=4e-6):
    """As far off as rounding once leaves it, and by as much more as sums in float are."""
    assert (found.dtype, found.shape) == (HALF, expected.shape)
    error = np.abs(found.astype(np.float64) - expected)
    assert (error <= 2.0**-8 * np.abs(expected) + slack * np.abs(expected).max()).all()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", KERNELS)
def test_sums_are_rounded_once(isa, name, call):  # noqa: F811
    """Each kernel gives the sums of double precision, rounded once, on each instruction set."""
    args, options, expected = halves(name, call)
    assert_rounded(kernel(name)[0](*args, **options), expected)


@pytest.mark.parametrize("call", [
    (2, 1, 9, 16, (12, 135), (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 2, 16, 8, (9, 30), (3, 4), (3, 2), (0, 2), (1, 1)),
    (1, 1, 33, 40, (8, 70), (2, 3), (1, 3), (2, 0), (1, 2)),
    (3, 1, 12, 10, (10, 64), (1, 1), (2, 2), (0, 0), (1, 1)),
    (1, 1, 20, 9, (11, 67), (2, 2), (4, 5), (1, 3), (1, 1)),
    (1, 1, 12, 12, (4, 6, 65), (2, 3, 3), (2, 1, 2), (1, 1, 0), (1, 1, 1)),
    (2, 1, 10, 12, (200,), (5,), (2,), (6,), (1,)),
    (1, 1, 24, 9, (3, 40), (3, 3), (1, 2**61), (0, 0), (1, 1)),
])  # fmt: skip
@pytest.mark.parametrize("name", KERNELS)
def test_larger_steps(isa, name, call):  # noqa: F811
    """Steps over one, over the window and out of the picture, with taps that some positions meet and others do not."""
    args, options, expected = halves(name, call)
    assert_rounded(kernel(name)[0](*args, **options), expected)


@pytest.mark.parametrize("call", ["picture", "one by one", "steps", "groups", "volume"])
@pytest.mark.parametrize("name", KERNELS)
def test_layouts_are_read_where_they_lie(isa, name, call):  # noqa: F811
    """Operands whose channels lie side by side, that run backwards or that are a part of others give what their copies give."""
    args, options, expected = halves(name, call)
    run = kernel(name)[0]
    side_by_side = [np.ascontiguousarray(np.moveaxis(one, 1, -1)) for one in args[:2]]
    assert_rounded(run(*[np.moveaxis(one, -1, 1) for one in side_by_side], *args[2:], **options), expected)
    backwards = [one[..., ::-1].copy()[..., ::-1] for one in args[:2]]
    assert_rounded(run(*backwards, *args[2:], **options), expected)
    parts = [np.repeat(one, 2, axis=-1)[..., ::2] for one in args[:2]]
    assert_rounded(run(*parts, *args[2:], **options), expected)


@pytest.mark.parametrize("call", ["one by one", "picture", "steps", "short rows", "one pixel out"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_not_finite_stays_in_its_sums(isa, name, call, value):  # noqa: F811
    """An infinity or a NaN in the first operand reaches the results that it is a part of, and no others."""
    args, options, _ = halves(name, call)
    args[0][0, 0, ..., 0 if name == "conv_input_gradient" or args[0].shape[-1] == 1 else -2] = value
    expected = kernel(name)[1](*[one.astype(np.float64) for one in args], **options)
    found = kernel(name)[0](*args, **options).astype(np.float64)
    assert not np.isfinite(expected).all()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(expected))


@pytest.mark.parametrize("call", ["picture", "dilated", "one by one"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_follows_a_window_is_in_no_gradient(isa, call, value):  # noqa: F811
    """A last column of pictures that is not finite makes the gradients of those taps so that meet it, and of no others."""
    args, options, _ = halves("conv_weight_gradient", call)
    args[1][..., -1] = value
    expected = kernel("conv_weight_gradient")[1](*[one.astype(np.float64) for one in args], **options)
    found = kernel("conv_weight_gradient")[0](*args, **options).astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


@pytest.mark.parametrize("name", KERNELS)
def test_sums_do_not_depend_on_the_threads(isa, name):  # noqa: F811
    """One thread and two give the same bits."""
    args, options, _ = halves(name, "large pictures")
    found = []
    for threads in (1, 2):
        tensorcore.set_num_threads(threads)
        found.append(kernel(name)[0](*args, **options).view(np.uint16))
    np.testing.assert_array_equal(*found)


def test_denormals_are_zeros_or_what_they_are(isa):  # noqa: F811
    """Pictures of denormals, which some processors take for zeros, and a bias beside them that counts."""
    x = np.full((1, 2, 5, 40), 1e-39, np.float32).astype(HALF)
    weight, bias = np.ones((9, 2, 3, 3), HALF), np.arange(9).astype(HALF)
    options = {"counts": (5, 40), "stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    found = kernel("conv")[0](x, weight, bias, **options).astype(np.float64)
    np.testing.assert_allclose(found, np.broadcast_to(np.arange(9.0)[:, None, None], found.shape), rtol=0, atol=1e-37)


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [
        *[(64, 33, 128), (77, 800, 130), (131, 400, 160), (9, 1001, 200), (25, 64, 31)],
        *[(1, 1024, 65), (2, 300, 100), (3, 31, 600), (5, 520, 150), (33, 256, 40), (160, 257, 550)],
    ],
)
def test_products_of_any_height_are_rounded_once(isa, rows, inner, columns):  # noqa: F811
    """Products of one row or many, in parts of the inner dim and of the columns, with strips or without, in each layout."""
    random = np.random.default_rng(8)
    x = random.standard_normal((rows, inner)).astype(HALF)
    y = random.standard_normal((inner, columns)).astype(HALF)
    bias = random.standard_normal(columns).astype(HALF)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    matmul = kernel("matmul")[0]
    assert_rounded(matmul(x, y), exact)
    assert_rounded(matmul(np.asfortranarray(x), np.asfortranarray(y)), exact)
    assert_rounded(matmul(x[::-1], y), exact[::-1])
    assert_rounded(kernel("linear")[0](x, np.ascontiguousarray(y.T), bias), exact + bias.astype(np.float64))
