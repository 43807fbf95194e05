"""Softmax of half types in C: the floats' results, rounded once."""

import ml_dtypes
import numpy as np
import pytest

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

HALVES = [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)]


def assert_rounded(name, args, dim):
    """The kernel gives of halves what it gives of floats, rounded: the same bits."""
    run = kernel(name)[0]
    found = run(*args, dim=dim)
    expected = run(*[one.astype(np.float32) for one in args], dim=dim).astype(args[0].dtype)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("shape", "dim"), [
    ((300, 5), 1), ((3, 550), 1), ((2, 9001), 1), ((40, 3, 7), 1), ((7, 300), 0), ((17,), 0), ((4, 1), 1), ((90, 100), 1),
])  # fmt: skip
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_either_way_gives_the_floats_results(name, shape, dim, dtype):
    """Rows that go together or one by one, and columns, forward and backward, with a gradient that is one number and in any layout."""
    random = np.random.default_rng(8)
    x = random.standard_normal(shape).astype(dtype)
    made = kernel(name)[0](x, dim=dim)
    assert_rounded(name, [x], dim)
    assert_rounded(name, [np.asfortranarray(x)], dim)
    assert_rounded(name, [np.repeat(x, 2, axis=0)[::-2]], dim)
    gradient = random.standard_normal(shape).astype(dtype)
    assert_rounded(f"{name}_backward", [gradient, made], dim)
    assert_rounded(f"{name}_backward", [np.broadcast_to(dtype.type(0.5), shape), made], dim)
    assert_rounded(f"{name}_backward", [np.broadcast_to(gradient[:1], shape), made], dim)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_what_is_not_finite(name, dtype):
    """Infinities, NaN and numbers far apart give what they give of floats."""
    values = awkward(dtype, 134).reshape(2, 67)
    for x in (values, np.sort(values, axis=1), np.where(np.isfinite(values.astype(np.float32)), values, dtype.type(0))):
        assert_rounded(name, [x.astype(dtype)], 1)
