"""Pools in C beside NumPy's: windows of one to three dims, padding, gaps, ties, NaN, each instruction set."""

import itertools
from functools import partial

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.nn.functional as F

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
# Sizes of the planes, then kernel, stride, padding, dilation.
WINDOWS = [
    ((9,), (3,), (2,), (1,), (1,)),
    ((40,), (2,), (2,), (0,), (1,)),
    ((8, 8), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((7, 67), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((6, 35), (3, 2), (1, 1), (1, 1), (1, 1)),
    ((9, 10), (2, 3), (3, 3), (0, 1), (2, 2)),
    ((5, 40), (5, 40), (5, 40), (0, 0), (1, 1)),
    ((12, 12), (9, 8), (1, 3), (4, 0), (1, 1)),
    ((4, 5, 6), (2, 2, 2), (2, 1, 2), (1, 0, 1), (1, 2, 1)),
    ((93,), (2,), (2,), (0,), (1,)),
    ((3, 35), (1, 2), (2, 2), (0, 0), (1, 1)),
    ((5, 9), (2, 3), (2, 2), (1, 1), (1, 1)),
]


def windows(case, ceil=False):
    sizes, size, stride, padding, dilation = case
    counts = tuple(
        (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil else 0)) // s + 1
        for n, k, s, p, d in zip(sizes, size, stride, padding, dilation, strict=True)
    )
    if ceil:
        counts = tuple(c - ((c - 1) * s >= n + p) for c, s, n, p in zip(counts, stride, sizes, padding, strict=True))
    return dict(counts=counts, kernel=size, stride=stride, padding=padding, dilation=dilation)


def planes(sizes, dtype, ties):
    """Ordinary numbers, or a few whole ones that are met often."""
    random = np.random.default_rng(8)
    values = random.standard_normal((2, 3, *sizes))
    return (values.round() if ties else values).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("case", WINDOWS)
def test_maxima(case, ties, dtype):
    """The values, where they are, and the gradient are NumPy's bit for bit; of equal ones the first."""
    x, options = planes(case[0], dtype, ties), windows(case)
    made = kernel("max_pool")[0](x, **options)
    np.testing.assert_array_equal(made, kernel("max_pool")[1](x, **options))
    native, fallback = kernel("max_pool_indices")
    found = native(x, made, **options)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, fallback(x, made, **options))
    g = np.random.default_rng(9).standard_normal(made.shape).astype(dtype)
    native, fallback = kernel("max_pool_gradient")
    tolerance = 4 * np.finfo(dtype).eps  # where windows overlap, their sums are rounded in another order
    np.testing.assert_allclose(native(g, x, made, **options), fallback(g, x, made, **options), tolerance, tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
def test_maxima_of_awkward_values(dtype):
    """NaN is the largest, the last of them the one that gets the gradient; minus infinity can be a maximum."""
    for case in (WINDOWS[0], WINDOWS[3], WINDOWS[6], WINDOWS[9]):
        sizes, options = case[0], windows(case)
        count = int(np.prod(sizes))
        x = np.stack([
            awkward(dtype, count + 12)[:count].reshape(sizes), np.full(sizes, np.nan, dtype), np.full(sizes, -np.inf, dtype),
            awkward(dtype, count + 12)[:count][::-1].reshape(sizes),
        ])[None]  # fmt: skip
        made = kernel("max_pool")[0](x, **options)
        np.testing.assert_array_equal(made, kernel("max_pool")[1](x, **options))
        native, fallback = kernel("max_pool_indices")
        found, expected = native(x, made, **options), fallback(x, made, **options)
        np.testing.assert_array_equal(found[:, [0, 1, 3]], expected[:, [0, 1, 3]])
        g = np.ones_like(made)
        native, fallback = kernel("max_pool_gradient")
        inside = native(g, x, made, **options)[:, [0, 1, 3]]
        np.testing.assert_array_equal(inside, fallback(g, x, made, **options)[:, [0, 1, 3]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count_padding, divisor", [(True, None), (False, None), (True, 5)])
@pytest.mark.parametrize("case", [case for case in WINDOWS if set(case[-1]) == {1}])
def test_means(case, count_padding, divisor, dtype):
    """Means and their gradients are NumPy's to 8 roundings, also where the last window reaches over the end."""
    for ceil in (False, True):
        x, options = planes(case[0], dtype, False), windows(case, ceil)
        del options["dilation"]
        options |= {"count_padding": count_padding, "divisor": divisor}
        tolerance = 8 * np.finfo(dtype).eps
        native, fallback = kernel("avg_pool")
        made = native(x, **options)
        np.testing.assert_allclose(made, fallback(x, **options), tolerance, tolerance)
        native, fallback = kernel("avg_pool_gradient")
        g = np.random.default_rng(9).standard_normal(made.shape).astype(dtype)
        back = native(g, shape=x.shape, **options)
        np.testing.assert_allclose(back, fallback(g, shape=x.shape, **options), tolerance, tolerance)


EVEN = [((9,), (4,)), ((5,), (9,)), ((7, 8), (3, 5)), ((8, 67), (4, 30)), ((4, 5, 6), (3, 5, 1)), ((1, 3), (1, 1))]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("case", WINDOWS)
def test_pools_of_integers(case, dtype):
    """Maxima down to the least of the type and the first place of each; means are cut off at the point, with every divisor."""
    x = np.resize(awkward(dtype, 67), (2, 3, *case[0]))
    x[:, :, :3] = np.iinfo(dtype).min
    for ceil in (False, True):
        options = windows(case, ceil)
        for one in (x, np.asfortranarray(x), x[..., ::-1]):
            made = kernel("max_pool")[0](one, **options)
            np.testing.assert_array_equal(made, kernel("max_pool")[1](one, **options))
            native, fallback = kernel("max_pool_indices")
            np.testing.assert_array_equal(native(one, made, **options), fallback(one, made, **options))
        if set(options.pop("dilation")) == {1}:
            native, fallback = kernel("avg_pool")
            few = (x % 7).astype(dtype) if dtype == "uint8" else (x % 7 - 3).astype(dtype)
            if few.dtype.itemsize == 1:
                few //= 3  # whose sums fit
            for count_padding, divisor in ((True, None), (False, None), (True, 5), (True, -3)):
                options |= {"count_padding": count_padding, "divisor": divisor}
                if divisor != -3 or dtype != "uint8":
                    np.testing.assert_array_equal(native(few, **options), fallback(few, **options))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes, counts", EVEN)
def test_means_of_windows_that_cover_evenly(sizes, counts, dtype):
    """Means and their gradients are NumPy's to 8 roundings, of planes in any layout."""
    x = planes(sizes, dtype, False)
    tolerance = 8 * np.finfo(dtype).eps
    native, fallback = kernel("adaptive_avg_pool")
    for view in (x, np.ascontiguousarray(x.T).T, x[:, ::-1], x[:0]):
        made = native(view, counts=counts)
        assert made.dtype == dtype
        np.testing.assert_allclose(made, fallback(view, counts=counts), tolerance, tolerance)
    native, fallback = kernel("adaptive_avg_pool_gradient")
    g = np.random.default_rng(9).standard_normal((*x.shape[:2], *counts)).astype(dtype)
    np.testing.assert_allclose(native(g, shape=x.shape), fallback(g, shape=x.shape), tolerance, tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_stays_in_its_windows(dtype):
    """An infinity or NaN reaches the means of the windows that hold it, and no other."""
    x = np.ones((1, 2, 7, 40), dtype)
    x[0, 0, 3, 20], x[0, 1, 0, 39] = np.inf, np.nan
    found = kernel("adaptive_avg_pool")[0](x, counts=(3, 7))
    np.testing.assert_array_equal(found, kernel("adaptive_avg_pool")[1](x, counts=(3, 7)))
    assert (~np.isfinite(found)).sum() == 2


def test_layouts_of_pools():
    """Planes that do not lie in a row are copied first; integers and empty batches go to NumPy."""
    options = windows(WINDOWS[2])
    native, fallback = kernel("max_pool")
    x = np.random.default_rng(8).standard_normal((8, 8, 3, 2)).astype(np.float32)
    for view in (x.transpose(3, 2, 0, 1), x.transpose(3, 2, 1, 0)[..., ::-1]):
        np.testing.assert_array_equal(native(view, **options), fallback(view, **options))
    integers = (x * 10).astype(np.int32).transpose(3, 2, 0, 1)
    np.testing.assert_array_equal(native(integers, **options), fallback(integers, **options))
    assert native(np.ones((0, 3, 8, 8), np.float32), **options).shape == (0, 3, 4, 4)


def test_maxima_that_are_none_do_no_harm():
    """The gradient for results of something else stays inside the planes."""
    options = windows(WINDOWS[3])
    x = np.zeros((1, 1, 7, 67), np.float32)
    made = np.ones((1, 1, *options["counts"]), np.float32)
    assert kernel("max_pool_gradient")[0](made, x, made, **options).shape == x.shape


@pytest.mark.parametrize("stride", [9, 10**9, 2**31 - 1, 2**62])
def test_steps_that_lead_out_of_the_input(stride):
    """One window is the same whatever the step to a next one would be, and asks for no more memory."""
    x = torch.tensor([[[[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]]], requires_grad=True)
    assert F.max_pool2d(x, 2, stride=stride).tolist() == [[[[5]]]]
    assert F.max_pool2d(x, 2, stride=stride, return_indices=True)[1].tolist() == [[[[4]]]]
    assert F.avg_pool2d(x, 2, stride=stride).tolist() == [[[[3]]]]
    (F.max_pool2d(x, 2, stride=stride) + F.avg_pool2d(x, 2, stride=stride)).sum().backward()
    assert x.grad.tolist() == [[[[0.25, 0.25, 0], [0.25, 1.25, 0], [0, 0, 0]]]]


def test_every_plane_is_pooled_with_threads():
    """Over many planes the pieces come together to the same result as one by one."""
    native, _ = kernel("max_pool")
    options = windows(WINDOWS[3])
    x = np.random.default_rng(8).standard_normal((30, 40, 7, 67)).astype(np.float32)
    made = native(x, **options)
    for i, j in itertools.product(range(0, 30, 7), range(0, 40, 9)):
        np.testing.assert_array_equal(made[i, j], native(x[i : i + 1, j : j + 1], **options)[0, 0])


SMALL = [
    ((7,), (2,), (2,), (0,), (1,)),
    ((3,), (3,), (1,), (1,), (1,)),
    ((2, 2), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((4, 4), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((3, 3), (3, 3), (3, 3), (0, 0), (1, 1)),
    ((7, 8), (3, 3), (2, 1), (1, 1), (1, 1)),
    ((5, 9), (2, 3), (2, 2), (1, 1), (2, 2)),
    ((3, 4, 5), (2, 2, 2), (1, 2, 2), (1, 0, 1), (1, 1, 1)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", SMALL)
def test_small_planes_are_pooled_side_by_side(case, dtype):
    """Many small planes, whole vectors of them and some more, have the bits of each alone, awkward values and gradients included."""
    odd = awkward(dtype, 60)
    x = np.random.default_rng(3).choice(odd, (5, 15, *case[0]))
    x[:2] = np.random.default_rng(4).integers(-2, 3, x[:2].shape)
    finite = np.where(np.isnan(x), 7, x).astype(dtype)
    maxima, means = windows(case), windows(case)
    calls = [("max_pool", maxima), ("adaptive_avg_pool", {"counts": tuple(-(-n // 2) for n in case[0])})]
    if set(means.pop("dilation")) == {1}:
        calls += [
            ("avg_pool", means | {"count_padding": one, "divisor": by})
            for one, by in ((True, None), (False, None), (True, 3))
        ]

    def alone(function, *arrays):
        """Of three planes at a time, which are too few to be turned over."""
        parts = [function(*(a[i : i + 1, j : j + 3] for a in arrays)) for i in range(5) for j in range(0, 15, 3)]
        return np.concatenate(parts, 1).reshape(5, 15, *parts[0].shape[2:])

    for name, options in calls:
        forward, back = partial(kernel(name)[0], **options), kernel(f"{name}_gradient")[0]
        back = back if name == "adaptive_avg_pool" else partial(back, **options)
        for values in (x, finite):
            made = forward(values)
            np.testing.assert_array_equal(made, alone(forward, values))
            np.testing.assert_array_equal(np.signbit(made), np.signbit(alone(forward, values)))
            g = np.random.default_rng(9).standard_normal(made.shape).astype(dtype)
            if name == "max_pool":
                np.testing.assert_array_equal(back(g, values, made), alone(back, g, values, made))
            else:
                whole = back(g, shape=(*g.shape[:2], *case[0]))
                np.testing.assert_array_equal(whole, alone(partial(back, shape=(1, 3, *case[0])), g))
