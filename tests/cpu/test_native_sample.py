"""Images read at places in C beside NumPy's: both ways, all modes and paddings, awkward places, each instruction set."""

import itertools

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.ops.layers.grid_sample import _sampled

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
WAYS = [
    dict(mode=mode, padding_mode=padding, align_corners=corners)
    for mode, padding, corners in itertools.product(
        ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
    )
]
# Sizes of the image, then of the grid: tails of blocks, several blocks, one element.
SIZES = [((5, 7), (9, 21)), ((1, 4), (3, 2)), ((1, 1), (1, 1)), ((4, 5, 3), (3, 7, 10)), ((2, 1, 6), (1, 1, 2))]


def operands(sizes, counts, dtype, batch=2, channels=3):
    random = np.random.default_rng(8)
    x = random.standard_normal((batch, channels, *sizes)).astype(dtype)
    grid = random.uniform(-1.7, 1.7, (batch, *counts, len(sizes))).astype(dtype)
    return x, grid, random.standard_normal((batch, channels, *counts)).astype(dtype)


def fits(way, sizes):
    return way["mode"] != "bicubic" or len(sizes) == 2


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes, counts", SIZES)
def test_values_and_gradients(sizes, counts, dtype):
    """Values are NumPy's to 40 roundings and gradients to 400 (they are sums over many places), of all modes and paddings."""
    x, grid, g = operands(sizes, counts, dtype)
    eps = np.finfo(dtype).eps
    for way in WAYS:
        if not fits(way, sizes):
            continue
        native, fallback = kernel("grid_sample")
        made = native(x, grid, **way)
        assert made.dtype == dtype
        np.testing.assert_allclose(made, fallback(x, grid, **way), 40 * eps, 40 * eps)
        native, fallback = kernel("grid_sample_backward")
        found, expected = native(g, x, grid, needs=(True, True), **way), fallback(g, x, grid, needs=(True, True), **way)
        for mine, its in zip(found, expected, strict=True):
            assert mine.dtype == dtype
            np.testing.assert_allclose(mine, its, 400 * eps, 400 * eps)


def test_the_kernels_are_the_op_in_other_ops():
    """Values and gradients of the kernels are those of the decomposition, to 1e-12."""
    for (sizes, counts), way in itertools.product((SIZES[0], SIZES[3]), WAYS):
        if not fits(way, sizes):
            continue
        x, grid, g = operands(sizes, counts, "float64")
        made = kernel("grid_sample")[0](x, grid, **way)
        inputs = tc.tensor(x, requires_grad=True), tc.tensor(grid, requires_grad=True)
        expected = _sampled(*inputs, **way)
        np.testing.assert_allclose(made, expected.numpy(force=True), 1e-12, 1e-12)
        expected.backward(tc.tensor(g))
        found = kernel("grid_sample_backward")[0](g, x, grid, needs=(True, True), **way)
        for mine, one in zip(found, inputs, strict=True):
            np.testing.assert_allclose(mine, one.grad.numpy(), 1e-11, 1e-11)


@pytest.mark.parametrize("dtype", FLOATS)
def test_awkward_places_and_images(dtype):
    """NaN, infinities and huge places are read as NumPy reads them, and elements that are not finite stay where they are."""
    corners = awkward(dtype, 24)
    x, _, _ = operands((5, 7), (1, 1), dtype, batch=1)
    grid = np.stack(np.meshgrid(corners, corners), -1)[None]
    for way in WAYS:
        native, fallback = kernel("grid_sample")
        made, expected = native(x, grid, **way), fallback(x, grid, **way)
        np.testing.assert_array_equal(np.isnan(made), np.isnan(expected))
        # Where a huge place is cut to the image, bicubic weights of its last digits are left.
        np.testing.assert_allclose(
            made, expected, 1e-3 if dtype == "float32" else 1e-9, 1e-3 if dtype == "float32" else 1e-9
        )
    x[0, 0, 0, 0], x[0, 1, 4, 6] = np.inf, np.nan
    inside = np.linspace(-0.5, 0.5, 10, dtype=dtype)
    grid = np.stack(np.meshgrid(inside, inside), -1)[None]
    way = dict(mode="bilinear", padding_mode="zeros", align_corners=True)
    assert np.isfinite(kernel("grid_sample")[0](x, grid, **way)).all()
    outside = np.full((1, 1, 1, 2), 5, dtype)
    np.testing.assert_array_equal(kernel("grid_sample")[0](x, outside, **way), np.zeros((1, 3, 1, 1), dtype))


def test_places_between_elements_are_rounded_as_numpy_rounds_them():
    """A place in the middle of two elements, or on one, is on the same side: products and sums are not fused."""
    x, _, _ = operands((64, 3), (1, 1), "float32", batch=1)
    line = ((np.arange(64, dtype=np.float32) * 2 + 1) / np.float32(64) - 1).astype(np.float32)
    grid = np.stack([np.zeros(64, np.float32), line], -1).reshape(1, 64, 1, 2)
    for mode, shift in itertools.product(("nearest", "bilinear"), (0, 1 / 64)):
        way = dict(mode=mode, padding_mode="zeros", align_corners=False)
        at = (grid + np.float32(shift)).astype(np.float32)
        native, fallback = kernel("grid_sample")
        np.testing.assert_allclose(
            native(x, at, **way), fallback(x, at, **way), *(1e-5, 1e-6) if mode == "bilinear" else (0, 0)
        )
        native, fallback = kernel("grid_sample_backward")
        g = np.ones((1, 3, 64, 1), np.float32)
        found, expected = [one(g, x, at, needs=(False, True), **way) for one in (native, fallback)]
        assert found[0] is None
        np.testing.assert_allclose(found[1], expected[1], 1e-5, 1e-5)


def test_layouts_and_what_is_empty():
    """Views are read as their copies are; no places, no channels and no images give what NumPy's kernel gives."""
    x, grid, g = operands((5, 7), (9, 21), "float32")
    way = WAYS[0]
    native, _ = kernel("grid_sample")
    backward, _ = kernel("grid_sample_backward")
    turned = np.ascontiguousarray(x.T).T, np.ascontiguousarray(grid[..., ::-1])[..., ::-1]
    np.testing.assert_array_equal(native(*turned, **way), native(x, grid, **way))
    for mine, its in zip(
        backward(np.broadcast_to(np.float32(2), g.shape), *turned, needs=(True, True), **way),
        backward(np.full(g.shape, 2, np.float32), x, grid, needs=(True, True), **way),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)
    for a, b in ((x[:0], grid[:0]), (x[:, :0], grid), (x, grid[:, :0])):
        made = native(a, b, **way)
        assert made.shape == (*a.shape[:2], *b.shape[1:3])
        for mine, one in zip(backward(made, a, b, needs=(True, True), **way), (a, b), strict=True):
            np.testing.assert_array_equal(mine, np.zeros_like(one))
    assert backward(g, x, grid, needs=(False, False), **way) == (None, None)


@pytest.mark.parametrize("dtype", FLOATS)
def test_threads_change_no_bit(dtype):
    """Over many places and planes one thread and three make the same values and gradients."""
    x, grid, g = operands((40, 50), (90, 70), dtype, batch=3, channels=8)
    for way in (WAYS[0], WAYS[-1]):
        made = []
        for count in (1, 3):
            tc.set_num_threads(count)
            backward = kernel("grid_sample_backward")[0]
            made.append([kernel("grid_sample")[0](x, grid, **way), *backward(g, x, grid, needs=(True, True), **way)])
        for one, other in zip(*made, strict=True):
            np.testing.assert_array_equal(one, other)
