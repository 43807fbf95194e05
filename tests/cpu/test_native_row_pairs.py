"""Cosines and distances of two rows each, in C and as NumPy makes them."""

import numpy as np
import pytest

import tensorcore

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

DTYPES = [np.float32, np.float64]
SHAPES = [(1, 1), (5,), (70, 2), (64, 3), (129, 4), (3, 50, 5), (7, 33), (2, 1, 255), (20_000, 3)]


def drawn(*shape, dtype):
    random = np.random.default_rng(8)
    return [random.standard_normal(shape).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_cosines(dtype, shape):
    """The products of rows, by their lengths, each of which is at least the smallest one allowed, on any number of threads."""
    native, fallback = kernel("cosine_similarity")
    x, y = drawn(*shape, dtype=dtype)
    x.reshape(-1, shape[-1])[0] *= dtype(1e-3)
    for eps in (1e-8, 0.5):
        got = native(x, y, eps=eps)
        expected = fallback(x.astype(np.longdouble), y.astype(np.longdouble), eps=eps)
        assert (got.dtype, got.shape) == (dtype, shape[:-1])
        np.testing.assert_allclose(got, expected.astype(dtype), rtol=0, atol=2 * float(np.finfo(dtype).eps))
        tensorcore.set_num_threads(1)
        np.testing.assert_array_equal(got, native(x, y, eps=eps))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_distances(dtype, shape, p):
    """Each element's difference with a little added; norms that are no loops of ours are NumPy's."""
    native, fallback = kernel("pairwise_distance")
    x, y = drawn(*shape, dtype=dtype)
    got = native(x, y, p=p, eps=1e-6)
    assert (got.dtype, got.shape) == (dtype, shape[:-1])
    np.testing.assert_allclose(got, fallback(x, y, p=p, eps=1e-6), rtol=1e-5 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_values_out_of_the_ordinary(dtype, width):
    """NaN and infinities come out as NumPy has them, and lengths that are squares too large for a dtype leave the angle as it is."""
    x = awkward(dtype)[: 67 // width * width].reshape(-1, width)
    y = np.ascontiguousarray(x[::-1])
    small = abs(np.nan_to_num(x, nan=0, posinf=0, neginf=0)).max(1) < 1e15
    with np.errstate(all="ignore"):
        for name, options in (("cosine_similarity", {"eps": 1e-8}), ("pairwise_distance", {"p": 2.0, "eps": 1e-6}),
                              ("pairwise_distance", {"p": 1.0, "eps": 1e-6})):  # fmt: skip
            got, expected = (run(x, y, **options) for run in kernel(name))
            usual = small & small[::-1]
            np.testing.assert_allclose(got[usual], expected[usual], rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    if dtype is np.float32:
        far = np.full((1, width), 1e30, dtype)
        np.testing.assert_allclose(kernel("cosine_similarity")[0](far, far, eps=1e-8), [1], rtol=1e-6)


def test_other_arrays():
    """Empty rows, other dtypes and layouts, and shapes that are not one, are NumPy's or copied first."""
    x, y = drawn(6, 8, dtype=np.float32)
    cosine, twin = kernel("cosine_similarity")
    for a, b in (
        (x[:, ::2], y[:, ::2]),
        (x.T, y.T),
        (x[::-1], y),
        (x[:0], y[:0]),
        (x.astype(np.float16), y.astype(np.float16)),
    ):
        got = cosine(a, b, eps=1e-8)
        assert (got.dtype, got.shape) == (a.dtype, a.shape[:-1])
        np.testing.assert_allclose(got, twin(np.array(a), np.array(b), eps=1e-8), rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_ops(dtype):
    """The ops are those kernels where nothing is recorded, and formulas, to rounding, where something is."""
    one, other = (tensorcore.tensor(each).to(getattr(tensorcore, dtype)) for each in drawn(9, 3, dtype=np.float32))
    tolerance = 1e-6 if dtype in ("float32", "float64") else 2e-2
    for op, options in (("cosine_similarity", {}), ("cosine_similarity", {"dim": -1, "eps": 0.5}), ("pairwise_distance", {}),
                        ("pairwise_distance", {"p": 1, "keepdim": True}), ("cosine_similarity", {"dim": 0})):  # fmt: skip
        function = getattr(tensorcore.nn.functional, op)
        got, recorded = function(one, other, **options), function(one.clone().requires_grad_(), other, **options)
        assert (got.shape, got.dtype) == (recorded.shape, one.dtype)
        np.testing.assert_allclose(got.double().numpy(), recorded.detach().double().numpy(), tolerance, tolerance)
