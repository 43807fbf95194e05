"""Attention of half types in C, which some processors make without single precision, against double precision."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

BF16 = np.dtype(ml_dtypes.bfloat16)
HALVES = [BF16, np.dtype(np.float16)]


def drawn(dtype, *shape, seed=8):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def assert_as_in_doubles(query, key, value, mask=None, *, causal=False, scale=0.3):
    """Weights and results are rounded to the half type; sums are floats. Answers what attention made."""
    forward, by_numpy = kernel("attention")
    made, sums = forward(query, key, value, mask, causal=causal, scale=scale)
    wide = [one.astype(np.float64) for one in (query, key, value)]
    other = mask if mask is None or mask.dtype == bool else mask.astype(np.float64)
    expected, wanted = by_numpy(*wide, other, causal=causal, scale=scale)
    assert (made.dtype, made.shape) == (query.dtype, expected.shape)
    assert (sums.dtype, sums.shape) == (np.float32, wanted.shape)
    unit = 2.0**-8 if query.dtype == BF16 else 2.0**-11
    heads = key.shape[1]
    meets = np.isfinite(wanted)[..., None] * np.abs(wide[2]).max(-2, keepdims=True).repeat(query.shape[1] // heads, 1)
    assert (np.abs(made.astype(np.float64) - expected) <= unit * np.abs(expected) + unit * meets).all()
    np.testing.assert_allclose(
        sums, wanted, rtol=0, atol=1e-4 * max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    )
    return made


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("rows", "columns", "features", "width"), [
    (1, 1, 1, 1), (5, 7, 3, 2), (32, 256, 32, 32), (49, 100, 17, 33), (100, 49, 8, 64), (70, 600, 20, 12), (300, 300, 64, 65),
])  # fmt: skip
def test_sizes(dtype, rows, columns, features, width, causal):
    """Results are as far off as rounding weights and results leaves them, with blocks that are full and with rests."""
    query, key = drawn(dtype, 2, 2, rows, features), drawn(dtype, 2, 2, columns, features)
    assert_as_in_doubles(query, key, drawn(dtype, 2, 2, columns, width), causal=causal)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("kind", ["truth", "numbers"])
def test_masks(dtype, kind):
    """Masks of bools and of the half type take part, broadcast or not; a row that meets nothing is zeros."""
    query, key, value = drawn(dtype, 2, 4, 60, 8), drawn(dtype, 2, 2, 70, 8), drawn(dtype, 2, 2, 70, 5)
    for shape in ((2, 4, 60, 70), (1, 4, 60, 1), (2, 1, 1, 70)):
        mask = drawn(np.float32, *shape)
        assert_as_in_doubles(query, key, value, mask > 0 if kind == "truth" else mask.astype(dtype))
    if kind == "truth":
        mask = np.ones((1, 1, 60, 70), bool)
        mask[..., 7, :] = False
        made = assert_as_in_doubles(query, key, value, mask)
        assert not made[:, :, 7].astype(np.float32).any()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_layouts(dtype):
    """Heads between rows and features, and operands that run backwards or are a part of others, are read where they are."""
    query, key, value = (drawn(dtype, 2, size, 4, 12).transpose(0, 2, 1, 3) for size in (60, 70, 70))
    assert_as_in_doubles(query, key, value, causal=True)
    assert_as_in_doubles(query[..., ::-1], key[:, :, ::-1], value[..., ::2])
    assert_as_in_doubles(*(np.asfortranarray(one) for one in (query, key, value)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_nan_stays_in_its_row(dtype):
    """NaN in a query reaches its own row alone, and one in a value its own column."""
    query, key, value = drawn(dtype, 1, 1, 60, 8), drawn(dtype, 1, 1, 70, 8), drawn(dtype, 1, 1, 70, 5)
    query[0, 0, 3, 2] = value[0, 0, 69, 4] = np.nan
    made = kernel("attention")[0](query, key, value, None, causal=False, scale=1.0)[0].astype(np.float32)
    wrong = np.zeros(made.shape, bool)
    wrong[0, 0, 3] = wrong[..., 4] = True
    np.testing.assert_array_equal(np.isnan(made), wrong)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_threads_do_not_change_the_result(dtype):
    """Attention gives the same to the last bit on one thread and on several."""
    given = drawn(dtype, 1, 2, 500, 16), drawn(dtype, 1, 2, 500, 16), drawn(dtype, 1, 2, 500, 16)
    made = []
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        made.append(kernel("attention")[0](*given, None, causal=True, scale=0.25))
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
