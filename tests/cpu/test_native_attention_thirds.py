"""Attention of floats by the unit for tiles of bfloat16, against NumPy's kernel and double precision."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore
from tensorcore_cpu import native

from .native import kernel, needs_tiles, running
from .test_native_attention import both_ways, drawn

pytestmark = needs_tiles


@pytest.fixture(autouse=True)
def tiles():
    """Each test multiplies by tiles."""
    with running(None, "tiles"):
        yield


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("rows", "columns", "features", "width"), [
    (32, 64, 32, 32), (33, 65, 40, 33), (70, 200, 48, 40), (128, 128, 64, 64), (97, 129, 33, 64), (64, 300, 100, 47), (300, 97, 32, 80),
    (260, 270, 40, 48),
])  # fmt: skip
def test_sizes(rows, columns, features, width, causal):
    """Results and gradients are NumPy's but for rounding, with blocks that are full and with rests."""
    query, key, value = drawn(2, 3, rows, features), drawn(2, 3, columns, features), drawn(2, 3, columns, width)
    both_ways(query, key, value, causal=causal, scale=0.1)


@pytest.mark.parametrize("shape", [(2, 4, 60, 150), (1, 1, 60, 150), (2, 1, 1, 150), (1, 4, 60, 1)])
@pytest.mark.parametrize("kind", ["truth", "numbers"])
def test_masks(kind, shape):
    """A mask of bools or of numbers, broadcast along any dim, takes part as in NumPy's kernel; a row may meet nothing."""
    mask = drawn(*shape) if kind == "numbers" else drawn(*shape) > 0
    if kind == "truth":
        mask[:, :, -1:] = False
    made = both_ways(drawn(2, 4, 60, 32), drawn(2, 4, 150, 32), drawn(2, 4, 150, 32), mask)
    assert kind == "numbers" or not made[0, 0, -1].any()


def test_layouts_and_groups():
    """Heads between rows and features, steps of any sign, and heads that share keys are read where they are."""
    query, key, value = (drawn(2, size, 4, 72).transpose(0, 2, 1, 3) for size in (70, 90, 90))
    both_ways(query, key, value, causal=True)
    both_ways(query[..., ::2], key[..., ::-2], value[:, :, ::-1, ::2])
    both_ways(query, key[:, ::2], value[:, 1::2])


def test_errors_are_those_of_single_precision():
    """Beside double precision results and gradients are no further off than those of the loops in single precision."""
    given, sent = [drawn(1, 4, 200, 64, seed=seed) for seed in range(3)], drawn(1, 4, 200, 64, seed=9)
    wide = [one.astype(np.float64) for one in given]
    options, needs = {"causal": False, "scale": 0.3}, (True, True, True, False)
    (forward, by_numpy), (backward, back_by_numpy) = kernel("attention"), kernel("attention_backward")
    exact = by_numpy(*wide, None, **options)
    exact = [exact[0], *back_by_numpy(sent.astype(np.float64), *wide, None, exact[1], needs=needs, **options)[:3]]
    errors = {}
    for way in ("tiles", "own"):
        native.products(way)
        made = forward(*given, None, **options)
        made = [made[0], *backward(sent, *given, None, made[1], needs=needs, **options)[:3]]
        errors[way] = [np.abs(one - other) for one, other in zip(made, exact, strict=True)]
    for one, other in zip(errors["tiles"], errors["own"], strict=True):
        assert (one != other).any()
        assert one.mean() < 1.1 * other.mean()
        assert one.max() < 1.5 * other.max()


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e-30, 1e30])
def test_numbers_that_are_not_fit(which, value):
    """What thirds do not take is made in single precision as a whole: the same bits, whichever side and head it is in."""
    given = [drawn(2, 3, size, 40, seed=seed) for seed, size in enumerate((70, 90, 90))]
    given[which][1, 1, 40, 7] = value
    got = kernel("attention")[0](*given, None, causal=False, scale=0.3)
    native.products("own")
    others = kernel("attention")[0](*given, None, causal=False, scale=0.3)
    if np.isfinite(value):
        finite = np.isfinite(others[0])
        np.testing.assert_allclose(got[0][finite], others[0][finite], rtol=2e-5, atol=2e-5 * max(1.0, value))
        np.testing.assert_array_equal(np.isfinite(got[0]), finite)
    else:
        np.testing.assert_array_equal(got[0], others[0])
        np.testing.assert_array_equal(got[1], others[1])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_are_rounded_once(dtype):
    """Half types are converted a head at a time, both ways, with their mask: results are those of floats, rounded."""
    given = [drawn(2, 4, size, 48, seed=seed).astype(dtype) for seed, size in enumerate((70, 90, 90))]
    mask, sent = drawn(70, 90).astype(dtype)[None, None], drawn(2, 4, 70, 48, seed=5).astype(dtype)
    wide = [one.astype(np.float32) for one in given]
    options = {"causal": False, "scale": 0.2}
    forward, backward = kernel("attention")[0], kernel("attention_backward")[0]
    expected = forward(*wide, mask.astype(np.float32), **options)
    for query in (given[0], given[0].swapaxes(1, 2).copy().swapaxes(1, 2)):
        made = forward(query, *given[1:], mask, **options)
        assert (made[0].dtype, made[1].dtype) == (dtype, np.float32)
        unit = 2.0**-8 if dtype is ml_dtypes.bfloat16 else 2.0**-11
        np.testing.assert_allclose(made[0].astype(np.float32), expected[0], rtol=unit, atol=2 * unit)
        needs = (True, True, True, False)
        got = backward(sent, query, *given[1:], mask, *expected[1:], needs=needs, **options)
        wanted = backward(
            sent.astype(np.float32), *wide, mask.astype(np.float32), *expected[1:], needs=needs, **options
        )
        for one, other in zip(got[:3], wanted[:3], strict=True):
            assert one.dtype == dtype
            np.testing.assert_array_equal(one, other.astype(dtype))


def test_threads_do_not_change_the_result():
    """Attention gives the same to the last bit on one thread and on several."""
    given = [drawn(1, 2, 500, 32, seed=seed) for seed in range(3)]
    made = []
    for count in (1, 2, 5):
        tensorcore.set_num_threads(count)
        made.append(kernel("attention")[0](*given, None, causal=True, scale=0.25))
    for other in made[1:]:
        np.testing.assert_array_equal(made[0][0], other[0])
        np.testing.assert_array_equal(made[0][1], other[1])
