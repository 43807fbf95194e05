"""Bytes that are seen as bools, of which all but 0 are true: what kernels make of them is what they make of 0 and 1."""

import numpy as np
import pytest

import tensorcore as tc

from .native import isa, needs_native  # noqa: F401

pytestmark = needs_native

BYTES = np.random.default_rng(8).choice([0, 0, 1, 2, 128, 255], 3 * 1027).astype(np.uint8)
DTYPES = ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
PAIRS = ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "eq", "ne", "add", "mul",
         "maximum", "minimum"]  # fmt: skip
FOLDS = {
    "sum": lambda x, dim: x.sum(dim), "largest": lambda x, dim: x.amax(dim), "smallest": lambda x, dim: x.amin(dim),
    "first true": lambda x, dim: x.max(dim).indices, "first false": lambda x, dim: x.min(dim).indices,
    "any": lambda x, dim: x.any(dim), "all": lambda x, dim: x.all(dim), "count": lambda x, dim: x.count_nonzero(dim),
    "running largest": lambda x, dim: x.cummax(dim).indices, "running smallest": lambda x, dim: x.cummin(dim).indices,
    "most frequent": lambda x, dim: x.mode(dim).values, "order": lambda x, dim: x.sort(dim, stable=True).indices,
    "order downwards": lambda x, dim: x.sort(dim, True, stable=True).indices,
}  # fmt: skip


def seen(shape=(3, 1027)):
    """The bytes as bools, and the bools that they are."""
    return tc.from_numpy(BYTES.reshape(shape).copy()).view(tc.bool), tc.from_numpy(BYTES.reshape(shape) != 0)


def same(made, expected):
    """Bools are bytes of 0 and 1 then, unless they were passed on."""
    assert made.dtype is expected.dtype
    np.testing.assert_array_equal(made.numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_they_are_0_and_1_in_other_dtypes(isa, dtype):  # noqa: F811
    """Conversions give 1 for each true byte, in rows, columns and short pieces."""
    x, y = seen()
    for key in (np.s_[:], np.s_[:, ::3], np.s_[:, 1:6], np.s_[2:3, -1:]):
        same(x[key].to(getattr(tc, dtype)), y[key].to(getattr(tc, dtype)))
    same(x.T.to(getattr(tc, dtype)), y.T.to(getattr(tc, dtype)))


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_them(isa, name):  # noqa: F811
    """Two true bytes are alike, whichever they are."""
    x, y = seen()
    for key in (np.s_[:], np.s_[:, ::3], np.s_[:, :5]):
        made = getattr(tc, name)(x[key], x.flip(1)[key])
        same(made.view(tc.uint8), getattr(tc, name)(y[key], y.flip(1)[key]).view(tc.uint8))


@pytest.mark.parametrize("name", ["bitwise_not", "logical_not"])
def test_none_of_them_is_both_true_and_not(isa, name):  # noqa: F811
    """What is not 0 becomes 0."""
    x, y = seen()
    same(getattr(tc, name)(x).view(tc.uint8), getattr(tc, name)(y).view(tc.uint8))


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize(
    "shape, dim", [((3, 1027), 1), ((3, 1027), 0), ((1027, 3), 1), ((1027, 3), 0), ((13, 79, 3), 1)]
)
def test_reductions_of_them(isa, name, shape, dim):  # noqa: F811
    """Sums count what is true, and the place of the largest is that of the first true one."""
    x, y = seen(shape)
    same(FOLDS[name](x, dim), FOLDS[name](y, dim))


WINDOWS = {"kernel_size": 2, "stride": 3}
PLACED = {
    "scatter_add": lambda x, y, at: x.scatter_add(1, at, y), "scatter_add along 0": lambda x, y, at: x.scatter_add(0, at % 3, y),
    **{f"scatter {how}": lambda x, y, at, how=how: x.scatter_reduce(1, at, y, how, include_self=how != "amin")
       for how in ("sum", "prod", "amax", "amin")},
    "index_add": lambda x, y, at: x.index_add(1, at[0], y), "put": lambda x, y, at: x.put(at, y, accumulate=True),
    "index_put": lambda x, y, at: x.index_put((at[0] % 3,), y[:1].expand(at.shape[1], -1), accumulate=True),
    "heaviside": lambda x, y, at: tc.heaviside(x, y), "fmax": lambda x, y, at: tc.fmax(x, y), "fmin": lambda x, y, at: tc.fmin(x, y),
    "unfold": lambda x, y, at: tc.nn.functional.unfold(x[None, None], **WINDOWS),
    "fold": lambda x, y, at: tc.nn.functional.fold(x[:, :1024].reshape(1, 4, -1)[..., :256], (17, 17), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
def test_what_is_made_of_them_at_places(isa, name):  # noqa: F811
    """Sums say whether any is true and products whether all are, whichever bytes say so."""
    x, y = seen()
    at = tc.from_numpy(np.random.default_rng(9).integers(0, 1027, (3, 1027)))
    made, expected = PLACED[name](x, x.flip(1), at), PLACED[name](y, y.flip(1), at)
    same(made.int(), expected.int())
    with tc.no_grad():
        assert tc.equal(expected, expected.int() != 0)


@pytest.mark.parametrize("bytes_of", [[2, 0, 1], [2, 255], [255], [0, 7], [1, 2, 0, 2, 0]])
def test_distinct_ones_are_two_at_most(bytes_of):
    """Places and counts are those of true and false, and so are runs of equal ones."""
    x = tc.tensor(bytes_of, dtype=tc.uint8).view(tc.bool)
    y = tc.tensor([one != 0 for one in bytes_of])
    for made, expected in zip(
        x.unique(return_inverse=True, return_counts=True),
        y.unique(return_inverse=True, return_counts=True),
        strict=True,
    ):
        same(made, expected)
    for made, expected in zip(
        tc.unique_consecutive(x, return_inverse=True, return_counts=True),
        tc.unique_consecutive(y, return_inverse=True, return_counts=True),
        strict=True,
    ):
        same(made, expected)


def test_equal_ones_may_be_of_other_bytes():
    """Arrays that are true in the same places are equal, and others are not."""
    x, y = seen()
    assert tc.equal(x, y)
    y[2, -1] = ~y[2, -1]
    assert not tc.equal(x, y)
