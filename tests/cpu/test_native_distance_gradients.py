"""Gradients of the distances of rows in C against their twin in NumPy."""

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = needs_native

_POWERS = [1.0, 2.0, float("inf")]


def _rows(dtype, *shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _distances(x, y, p):
    return np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, axis=-1).astype(x.dtype)


def _assert_near(got, expected):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(
        got, expected, rtol=1e-4 if got.itemsize == 4 else 1e-11, atol=1e-5 if got.itemsize == 4 else 1e-12
    )


@pytest.mark.parametrize(
    "shapes", [((1, 1), (1, 1)), ((7, 5), (9, 5)), ((2, 3, 7, 37), (2, 3, 4, 37)), ((300, 67), (130, 67))], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", _POWERS)
def test_gradients_of_two_matrices(isa, p, dtype, shapes):
    """Each row is drawn to all rows of the other matrix, of each of a batch too, on one thread and on more."""
    native, numpy = kernel("distances_gradient")
    x, y = _rows(dtype, *shapes[0]), _rows(dtype, *shapes[1], seed=1)
    g, out = _rows(dtype, *shapes[0][:-1], shapes[1][-2], seed=2), _distances(x, y, p)
    before = tensorcore.get_num_threads()
    try:
        for threads in (1, 2):
            tensorcore.set_num_threads(threads)
            _assert_near(native(g, x, y, out, p=p), numpy(g, x, y, out, p=p))
    finally:
        tensorcore.set_num_threads(before)
    turned = np.asfortranarray(g)
    _assert_near(native(turned, x, np.asfortranarray(y), out, p=p), numpy(g, x, y, out, p=p))


@pytest.mark.parametrize("n", [2, 3, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", _POWERS)
def test_gradients_of_all_pairs_of_rows(isa, p, dtype, n):
    """Without a second matrix the distances are those of ``pdist``, and each row is drawn to every other one."""
    native, numpy = kernel("distances_gradient")
    x = _rows(dtype, n, 19)
    out = _distances(x, x, p)[np.triu_indices(n, 1)]
    g = _rows(dtype, len(out), seed=2)
    _assert_near(native(g, x, None, out, p=p), numpy(g, x, None, out, p=p))


@pytest.mark.parametrize("p", _POWERS)
def test_equal_rows_pull_nowhere(isa, p):
    """Rows at no distance have no gradient, and none of them is a NaN; what is sent back as zero neither."""
    x = np.ones((3, 4), np.float32)
    g, out = np.ones((3, 3), np.float32), np.zeros((3, 3), np.float32)
    for one in kernel("distances_gradient"):
        np.testing.assert_array_equal(one(g, x, x, out, p=p), np.zeros_like(x))


def test_of_equal_largest_sizes_each_has_the_whole_gradient(isa):
    """Where several elements are the largest difference, each of them gets the gradient, with its own sign."""
    x, y = np.array([[3.0, -3.0, 1.0]]), np.zeros((1, 3))
    for one in kernel("distances_gradient"):
        np.testing.assert_array_equal(
            one(np.array([[2.0]]), x, y, np.array([[3.0]]), p=float("inf")), [[2.0, -2.0, 0.0]]
        )
