"""Attention in C against NumPy's, forward and backward: masks, layouts, groups, sizes that leave rests."""

import numpy as np
import pytest

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

# The error of one rounding, many times over: weights are ratios of sums of exponentials.
TOLERANCE = {"float32": 2e-5, "float64": 1e-13}


def drawn(*shape, dtype="float32", seed=8):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def assert_close(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        if other is None:
            assert one is None
            continue
        assert type(one) is np.ndarray
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[str(other.dtype)] * scale)


def both_ways(query, key, value, mask=None, *, causal=False, scale=0.3, needs=(True, True, True, False), sent=None):
    """Runs both kernels in C and in NumPy and compares everything; answers what attention made."""
    forward, forward_numpy = kernel("attention")
    backward, backward_numpy = kernel("attention_backward")
    given, options = (query, key, value, mask), {"causal": causal, "scale": scale}
    made, expected = forward(*given, **options), forward_numpy(*given, **options)
    assert_close(made, expected)
    sent = drawn(*made[0].shape, dtype=query.dtype, seed=9) if sent is None else sent
    got = backward(sent, *given, *made[1:], needs=needs, **options)
    assert_close(got, backward_numpy(sent, *given, *expected[1:], needs=needs, **options))
    return made[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("rows", "columns", "features", "width"), [
    (1, 1, 1, 1), (5, 7, 3, 2), (48, 16, 32, 32), (49, 100, 17, 33), (100, 49, 8, 64), (130, 600, 20, 12), (300, 300, 16, 16),
])  # fmt: skip
def test_sizes(rows, columns, features, width, causal, dtype):
    """Results and gradients are NumPy's but for rounding, with blocks that are full and with rests."""
    query, key = drawn(2, 3, rows, features, dtype=dtype), drawn(2, 3, columns, features, dtype=dtype)
    both_ways(query, key, drawn(2, 3, columns, width, dtype=dtype), causal=causal)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "columns"), [(15, 15), (17, 64), (25, 24), (64, 64), (97, 96), (97, 97)])
def test_causal_sizes_around_blocks(rows, columns, dtype):
    """Where rows end in the middle of vectors and of blocks, what they do not meet has no part, whatever it is."""
    query, key, value = [
        drawn(2, some, 3, 5, dtype=dtype, seed=seed).swapaxes(1, 2)  # heads side by side
        for some, seed in ((rows, 1), (columns, 2), (columns, 3))
    ]
    made = both_ways(query, key, value, causal=True)
    np.testing.assert_allclose(made[:, :, 0], value[:, :, 0], rtol=1e-6)
    assert np.isfinite(made).all()


@pytest.mark.parametrize("causal", [False, True])
def test_scores_that_are_no_numbers(causal):
    """A row of the query with a NaN makes a NaN of its own result and of no other."""
    query = drawn(1, 2, 40, 8)
    query[0, 1, 21, 3] = np.nan
    forward, _ = kernel("attention")
    made = forward(query, drawn(1, 2, 40, 8), drawn(1, 2, 40, 6), None, causal=causal, scale=0.3)[0]
    wrong = np.zeros(made.shape, bool)
    wrong[0, 1, 21] = True
    np.testing.assert_array_equal(np.isnan(made), wrong)


def test_many_columns():
    """So many columns that few rows at a time fit the backward kernel's room."""
    both_ways(drawn(1, 1, 30, 4), drawn(1, 1, 12000, 4), drawn(1, 1, 12000, 4))


@pytest.mark.parametrize("shape", [(2, 4, 60, 70), (1, 1, 60, 70), (2, 1, 1, 70), (1, 4, 60, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("kind", ["truth", "numbers"])
def test_masks(kind, shape):
    """A mask of bools or of numbers, broadcast along any dim, takes part as in NumPy's kernel."""
    mask = drawn(*shape) if kind == "numbers" else drawn(*shape) > 0
    both_ways(drawn(2, 4, 60, 8), drawn(2, 4, 70, 8), drawn(2, 4, 70, 5), mask)


def test_mask_in_another_layout():
    """A mask whose rows do not lie side by side is read where it is."""
    query, key, value = drawn(2, 4, 60, 8), drawn(2, 4, 70, 8), drawn(2, 4, 70, 5)
    for mask in (drawn(2, 4, 70, 60), drawn(2, 4, 70, 60) > 0):
        both_ways(query, key, value, mask.swapaxes(-1, -2))


def test_rows_that_meet_nothing():
    """A row where everything is masked gives zeros, and no gradient comes out of it."""
    mask = np.ones((1, 1, 60, 300), bool)
    mask[..., 7, :] = False
    mask[..., 50:, :280] = False
    made = both_ways(drawn(1, 2, 60, 8), drawn(1, 2, 300, 8), drawn(1, 2, 300, 5), mask)
    np.testing.assert_array_equal(made[:, :, 7], np.zeros((1, 2, 5), np.float32))


def test_mask_that_needs_a_gradient():
    """The gradient of a mask of numbers is made as well."""
    needs = (True, True, True, True)
    both_ways(drawn(1, 2, 9, 8), drawn(1, 2, 11, 8), drawn(1, 2, 11, 5), drawn(1, 1, 9, 11), needs=needs)


@pytest.mark.parametrize("groups", [1, 2])
def test_groups(groups):
    """Several heads of the query may share keys and values, whose gradients are then sums."""
    both_ways(drawn(2, 4, 60, 8), drawn(2, groups, 50, 8), drawn(2, groups, 50, 5), causal=True)


@pytest.mark.parametrize(
    "needs", [(True, False, False, False), (False, True, False, False), (False, False, True, False)]
)
def test_what_is_not_needed(needs):
    """Gradients that nobody wants are not made."""
    both_ways(drawn(1, 2, 9, 8), drawn(1, 2, 11, 8), drawn(1, 2, 11, 5), needs=needs)


def test_layouts():
    """Heads between rows and features, and a gradient that is one number throughout, are read where they are."""
    query, key, value = (drawn(2, size, 4, 12).transpose(0, 2, 1, 3) for size in (60, 70, 70))
    sent = np.broadcast_to(np.float32(0.5), (2, 4, 60, 12))
    both_ways(query, key, value, causal=True, sent=sent)
    both_ways(query[..., ::-1], key[:, :, ::-1], value[..., ::2])


def test_large_scores():
    """Scores far apart give weights of 0 and 1, not NaN."""
    made = both_ways(drawn(1, 1, 20, 8) * 1e4, drawn(1, 1, 300, 8), drawn(1, 1, 300, 5), scale=-1.0)
    assert np.isfinite(made).all()


def test_nan_stays_in_its_row():
    """NaN in a query reaches its own row alone."""
    query = drawn(1, 1, 60, 8)
    query[0, 0, 3, 2] = np.nan
    made = kernel("attention")[0](query, drawn(1, 1, 70, 8), drawn(1, 1, 70, 5), None, causal=False, scale=1.0)[0]
    assert np.isnan(made[0, 0, 3]).all()
    assert not np.isnan(np.delete(made, 3, 2)).any()


def test_half_types_and_wide_features():
    """What the C kernel does not take gives what NumPy's gives."""
    half = [drawn(1, 1, size, 8).astype(np.float16) for size in (5, 6, 6)]
    assert kernel("attention")[0](*half, None, causal=False, scale=1.0)[0].dtype == np.float16
    both_ways(drawn(1, 1, 5, 300), drawn(1, 1, 6, 300), drawn(1, 1, 6, 300), scale=0.05)


def test_inputs_stay():
    """No kernel writes to what it was given."""
    given = drawn(1, 2, 60, 8), drawn(1, 2, 70, 8), drawn(1, 2, 70, 5), drawn(1, 1, 60, 70)
    before = [one.copy() for one in given]
    both_ways(*given)
    for one, other in zip(given, before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_do_not_change_the_result():
    """Attention gives the same to the last bit on one thread and on several."""
    import tensorcore

    given = drawn(1, 2, 500, 16), drawn(1, 2, 500, 16), drawn(1, 2, 500, 16)
    before, made = tensorcore.get_num_threads(), []
    try:
        for count in (1, 3):
            tensorcore.set_num_threads(count)
            one = kernel("attention")[0](*given, None, causal=True, scale=0.25)
            options = {"needs": (True, True, True, False), "causal": True, "scale": 0.25}
            made.append((*one, *kernel("attention_backward")[0](one[0], *given, None, one[1], **options)[:3]))
    finally:
        tensorcore.set_num_threads(before)
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)
