"""What goes along a dim in C beside NumPy's: NaN, ties, every dim, dtypes and layouts that are left to NumPy."""

import numpy as np
import pytest

from .native import assert_same, awkward, kernel, needs_native

pytestmark = needs_native

FLOATS = ["float32", "float64"]


def blocks(dtype):
    """Numbers with ties and NaN in three dims, as they lie and turned around."""
    values = np.concatenate([awkward(dtype), np.random.default_rng(8).integers(0, 4, 53).astype(dtype)])
    block = values.reshape(4, 6, 5)
    return block, block.transpose(2, 0, 1), block[:, ::2], block[:0], np.clip(block, -9, 9).astype(np.float16)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["cummax", "cummin", "mode_dim"])
def test_extremes_and_modes(name, dtype):
    """Values and places, the later one of two equal ones; NaN is larger and smaller than all, and equals itself."""
    native, fallback = kernel(name)
    for x in blocks(dtype):
        for dim in range(3):
            if not x.size and name == "mode_dim":
                continue
            for got, expected in zip(native(x, dim=dim), fallback(x, dim=dim), strict=True):
                np.testing.assert_array_equal(got, expected)
                assert (got.dtype, got.shape) == (expected.dtype, expected.shape)


@pytest.mark.parametrize("dtype", FLOATS)
def test_modes_keep_a_dim(dtype):
    """With ``keepdim`` the reduced dim stays at size 1."""
    native, fallback = kernel("mode_dim")
    for got, expected in zip(native(blocks(dtype)[0], dim=1, keepdim=True),
                             fallback(blocks(dtype)[0], dim=1, keepdim=True), strict=True):  # fmt: skip
        assert_same(got, expected, signs=False)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
def test_cross_products(dtype):
    """Of the vectors along the dim of size 3, whichever it is."""
    native, fallback = kernel("cross")
    x = np.random.default_rng(8).integers(-9, 9, (3, 4, 3)).astype(dtype)
    y = np.random.default_rng(9).integers(-9, 9, (3, 4, 3)).astype(dtype)
    for dim in (0, 2):
        np.testing.assert_array_equal(native(x, y, dim=dim), fallback(x, y, dim=dim))
    for one, other in ((x, y[:, :1]), (x[:1, ::-1], y), (x[:, :1], y[:1])):
        np.testing.assert_array_equal(native(one, other, dim=2), fallback(one, other, dim=2))
    with pytest.raises(ValueError, match="broadcast"):
        native(x, y[:, :2], dim=2)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "bool", "float16"])
def test_equality(dtype):
    """Of all elements, wherever they differ; zeros of either sign are equal, NaN is not."""
    native, fallback = kernel("equal")
    x = np.arange(3001).astype(dtype)
    assert native(x, x.copy()) is True is fallback(x, x.copy())
    for place in (0, 1023, 1024, 3000):
        other = x.copy()
        other[place] = not other[place] if dtype == "bool" else other[place] + np.array(64, dtype)
        assert native(x, other) is False is fallback(x, other)
    assert native(x[:0], x[:0]) is True
    if dtype in FLOATS:
        assert native(np.array([0.0], dtype), np.array([-0.0], dtype)) is True
        assert native(np.array([np.nan], dtype), np.array([np.nan], dtype)) is False


@pytest.mark.parametrize("dtype", FLOATS)
def test_distances_of_pairs(dtype):
    """In the order of the pairs, for widths with and without a tail; other norms are NumPy's."""
    native, fallback = kernel("pdist")
    for shape in ((2, 1), (5, 8), (7, 19)):
        x = np.random.default_rng(8).standard_normal(shape).astype(dtype)
        for p in (2.0, 1.0):
            np.testing.assert_allclose(native(x, p=p), fallback(x, p=p), rtol=1e-5)
