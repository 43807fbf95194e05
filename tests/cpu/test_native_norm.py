"""Normalisations in C beside NumPy's in the widest type: every layer's view, weights or none, each instruction set."""

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]


def trailing(shape, count):
    dims = tuple(range(len(shape) - count, len(shape)))
    return dict(view=shape, dims=dims, affine=shape[len(shape) - count :])


def channels(shape):
    return dict(view=shape, dims=(0, *range(2, len(shape))), affine=(1, shape[1], *[1] * (len(shape) - 2)))


def groups(shape, count):
    view = (shape[0], count, shape[1] // count, *shape[2:])
    affine = (1, count, shape[1] // count, *[1] * (len(shape) - 2))
    return dict(view=view, dims=tuple(range(2, len(view))), affine=affine)


def instances(shape):
    return dict(view=shape, dims=tuple(range(2, len(shape))), affine=(1, shape[1], *[1] * (len(shape) - 2)))


# Rows of a few elements may lie so close together that the rounding of their mean shows: no layer has many rows of less than five.
LAYERS = {
    "layer": ((5, 67), trailing((5, 67), 1)),
    "layer of two dims": ((3, 4, 9), trailing((3, 4, 9), 2)),
    "layer of one": ((4, 1), trailing((4, 1), 1)),
    "many rows": ((700, 33), trailing((700, 33), 1)),
    "long rows": ((2, 5003), trailing((2, 5003), 1)),
    "long rows in strips": ((3, 33_001), trailing((3, 33_001), 1)),
    "batch": ((4, 3, 5, 7), channels((4, 3, 5, 7))),
    "batch of vectors": ((50, 70), channels((50, 70))),
    "batch of one channel": ((9, 1, 40), channels((9, 1, 40))),
    "group": ((2, 6, 5, 7), groups((2, 6, 5, 7), 3)),
    "group of one": ((2, 6, 35), groups((2, 6, 35), 6)),
    "one group": ((2, 6, 35), groups((2, 6, 35), 1)),
    "group of vectors": ((5, 6), groups((5, 6), 2)),
    "groups of a vector": ((3, 24, 4, 4), groups((3, 24, 4, 4), 3)),
    "groups of vectors and some": ((2, 40, 7, 7), groups((2, 40, 7, 7), 2)),
    "groups of eight vectors": ((2, 6, 128), groups((2, 6, 128), 2)),
    "groups of more than eight": ((2, 6, 129), groups((2, 6, 129), 2)),
    "instance": ((3, 4, 66), instances((3, 4, 66))),
    "many narrow rows": ((140, 5), trailing((140, 5), 1)),
    "many narrow rows of two dims": ((150, 2, 5), trailing((150, 2, 5), 2)),
    "many rows of a vector and one": ((37, 17), trailing((37, 17), 1)),
    "many rows of vectors": ((45, 100), trailing((45, 100), 1)),
    "narrow groups": ((150, 4, 3), groups((150, 4, 3), 2)),
    "narrow groups of one": ((40, 4, 7), groups((40, 4, 7), 4)),
    "one narrow group": ((150, 2, 3), groups((150, 2, 3), 1)),
    "narrow instances": ((100, 4, 16), instances((100, 4, 16))),
    "batch of short channels": ((70, 5, 3), channels((70, 5, 3))),
    "batch of many short channels": ((40, 70, 3), channels((40, 70, 3))),
    "batch of half rows": ((9, 3, 32), channels((9, 3, 32))),
}


def case(name, dtype, weight=True, bias=True):
    random = np.random.default_rng(8)
    shape, options = LAYERS[name]
    x = (random.standard_normal(shape) * 3 + 2).astype(dtype)
    count = int(np.prod(options["affine"]))
    own = options["affine"] if name.startswith(("layer", "many", "long")) else (count,)
    given = [random.standard_normal(own).astype(dtype) if asked else None for asked in (weight, bias)]
    return x, *given, random.standard_normal(shape).astype(dtype), dict(options, eps=1e-5)


def widened(arrays):
    return [None if one is None else one.astype(np.longdouble) for one in arrays]


def check(got, expected, roundings):
    """Within so many roundings of the largest magnitude."""
    limit = roundings * np.finfo(got.dtype).eps * max(1.0, float(np.abs(expected).max()))
    assert got.shape == expected.shape
    assert float(np.abs(got - expected).max()) <= limit


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weight, bias", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", LAYERS)
def test_forward_and_backward(name, weight, bias, centre, dtype):
    """Results, statistics and gradients lie within a few roundings of the exact ones' largest magnitude; where the variance is
    next to nothing, gradients are differences that are then scaled up."""
    x, w, b, g, options = case(name, dtype, weight, bias)
    options["centre"] = centre
    native, fallback = kernel("standardize")
    made, mean, var = native(x, w, b, **options)
    wide = widened([x, w, b])
    expected, exact_mean, exact_var = fallback(*wide, **options)
    assert made.dtype == x.dtype
    check(made, expected, 16)
    check(var, exact_var, 4)
    if centre:
        check(mean, exact_mean, 4)
    else:
        assert mean is None
    native, fallback = kernel("standardize_backward")
    needs = (True, weight, bias)
    found = native(g, x, w, b, mean, var, needs=needs, **options)
    exact = fallback(*widened([g]), *wide, exact_mean, exact_var, needs=needs, **options)
    for one, other in zip(found, exact, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            check(one, other, 64 * max(1.0, float((exact_var + 1e-5).min()) ** -0.5))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_added_to_what_is_there(name, bias, dtype):
    """Where ``into`` is given back it holds the sum, rounded as if the gradient had been an array of its own; else it is untouched.

    Rows that have all weights do so, in every number of them, but for what overlaps an operand.
    """
    x, w, b, g, options = case(name, dtype, True, bias)
    options["centre"] = True
    _, mean, var = kernel("standardize")[0](x, w, b, **options)
    native, fallback = kernel("standardize_backward")
    needs = (True, True, bias)
    made = native(g, x, w, b, mean, var, needs=needs, **options)
    held = np.random.default_rng(9).standard_normal(x.shape).astype(dtype)
    into = held.copy()
    found = native(g, x, w, b, mean, var, needs=needs, into=into, **options)
    if name.startswith(("layer", "many", "long")):
        assert found[0] is into
    np.testing.assert_array_equal(into, held + made[0] if found[0] is into else held)
    np.testing.assert_array_equal(found[0], into if found[0] is into else made[0])
    for one, other in zip(found[1:], made[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    for taken in (x, g, np.zeros(x.shape[::-1], dtype).T, np.zeros((1, *x.shape), dtype), np.zeros(x.shape, "int32")):
        before = taken.copy()
        found = native(g, x, w, b, mean, var, needs=needs, into=taken, **options)
        if found[0] is not taken:
            np.testing.assert_array_equal(found[0], made[0])
            np.testing.assert_array_equal(taken, before)
        else:
            assert taken is not x
            assert taken is not g
            assert taken.dtype == dtype
            assert taken.shape == x.shape
    assert fallback(g, x, w, b, mean, var, needs=needs, into=into, **options)[0] is not into


@pytest.mark.parametrize("name", ["layer", "batch", "batch of vectors", "group", "instance"])
@pytest.mark.parametrize(
    "needs", [(True, False, False), (False, True, False), (False, False, True), (False, True, True)]
)
def test_only_what_is_asked_for(name, needs):
    """Each gradient is the same alone as together with the others."""
    x, w, b, g, options = case(name, "float32")
    options["centre"] = True
    _, mean, var = kernel("standardize")[0](x, w, b, **options)
    native, _ = kernel("standardize_backward")
    whole = native(g, x, w, b, mean, var, needs=(True, True, True), **options)
    for asked, one, other in zip(needs, native(g, x, w, b, mean, var, needs=needs, **options), whole, strict=True):
        assert (one is not None) == asked
        if asked:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", LAYERS)
def test_awkward_values(name):
    """A NaN or an infinity makes what it is averaged with NaN, as from NumPy; huge and denormal ones come out likewise."""
    x, w, b, _, options = case(name, "float32")
    options["centre"] = True
    native, fallback = kernel("standardize")
    for value in (np.nan, np.inf, 1e30, 1e-42):
        x.flat[0] = value
        for got, expected in zip(native(x, w, b, **options), fallback(x, w, b, **options), strict=True):
            np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_a_constant_row_is_zero():
    """Its variance is nothing, and eps stands under the root."""
    native, _ = kernel("standardize")
    made, mean, var = native(
        np.full((2, 30), 7.0, np.float32), None, None, **trailing((2, 30), 1), eps=1e-5, centre=True
    )
    assert (made.any(), var.any(), mean.tolist()) == (False, False, [[7.0], [7.0]])


def test_layouts():
    """A transposed input gives the values of its copy."""
    native, fallback = kernel("standardize")
    x = np.random.default_rng(8).standard_normal((40, 6)).astype(np.float32).T
    options = dict(trailing((6, 40), 1), eps=1e-5, centre=True)
    np.testing.assert_array_equal(native(x, None, None, **options)[0], native(x.copy(), None, None, **options)[0])
    half = native(x.astype(np.float16), None, None, **options)
    assert [one.dtype for one in half] == [one.dtype for one in fallback(x.astype(np.float16), None, None, **options)]


@pytest.mark.parametrize("shape", [(3, 70, 5, 4), (2, 5, 3, 4, 2), (2, 1, 3, 3)])
@pytest.mark.parametrize("weighted", [True, False])
def test_channels_that_lie_innermost_are_read_there(shape, weighted):
    """A batch whose channels are innermost gives a result, and a gradient, that lie so, with the values of its row-major copy."""
    random, last = np.random.default_rng(8), (0, *range(2, len(shape)), 1)

    def inside(dense):
        return np.ascontiguousarray(dense.transpose(last)).transpose(np.argsort(last))

    x, g = random.standard_normal((2, *shape)).astype(np.float32)
    x = x * 3 + 5
    weight, bias = random.standard_normal((2, shape[1])).astype(np.float32) if weighted else (None, None)
    dims = (0, *range(2, len(shape)))
    options = {"view": shape, "dims": dims, "affine": (shape[1], *[1] * (len(shape) - 2)), "eps": 1e-5, "centre": True}
    (forward, numpys), (backward, _) = kernel("standardize"), kernel("standardize_backward")
    made, mean, var = forward(inside(x), weight, bias, **options)
    expected = numpys(
        x.astype(np.float64), *[one if one is None else one.astype(np.float64) for one in (weight, bias)], **options
    )
    for found, known in zip((made, mean, var), expected, strict=True):
        np.testing.assert_allclose(found, known, rtol=2e-5, atol=5e-6)
    by, _ = kernel("standardize_by")
    given = by(inside(x), mean, var, weight, bias, eps=1e-5)
    np.testing.assert_array_equal(given, made)
    wanted = (True, weighted, weighted)
    dense = backward(g, x, weight, bias, mean, var, needs=wanted, **options)
    for sent in (g, inside(g)):
        found = backward(sent, inside(x), weight, bias, mean, var, needs=wanted, **options)
        for one, known in zip(found, dense, strict=True):
            assert one is known is None or np.abs(one - known).max() <= 4e-6 * np.abs(known).max()
        assert found[0].transpose(last).flags.c_contiguous
    assert made.transpose(last).flags.c_contiguous
    assert given.transpose(last).flags.c_contiguous


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_every_layout_give_the_same_bits(name):
    """One number, a row or a column expanded, rows apart and turned dims give bit by bit what dense gradients give."""
    native, _ = kernel("standardize_backward")
    x, weight, bias, g, options = case(name, "float32")
    options["centre"] = True
    _, mean, var = kernel("standardize")[0](x, weight, bias, **options)
    places = [np.broadcast_to(part, g.shape) for part in (g[(0,) * g.ndim], g[..., :1], g[:1])]
    places += [
        np.concatenate([g, g], axis=-1)[..., : g.shape[-1]],
        np.repeat(g, 2, axis=0)[::2],
        np.ascontiguousarray(g.T).T,
    ]
    for one in places:
        for needs in ((True, True, True), (True, False, False)):
            made = native(one, x, weight, bias, mean, var, needs=needs, **options)
            expected = native(one.copy(), x, weight, bias, mean, var, needs=needs, **options)
            for got, wanted in zip(made, expected, strict=True):
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_long_rows_from_memory(dtype, weights, centre):
    """Rows of an array that no cache holds have the values that they have in a small one."""
    random = np.random.default_rng(8)
    shape = ((4 << 20) // (6 * 1051 * np.dtype(dtype).itemsize) + 1, 6, 1051)
    x, g = (random.standard_normal(shape).astype(dtype) for _ in range(2))
    w, b = (random.standard_normal(6).astype(dtype) if weights else None for _ in range(2))
    made = []
    for rows in (slice(None), slice(7, 9)):
        options = dict(groups(x[rows].shape, 1), eps=1e-5, centre=centre)
        result, mean, var = kernel("standardize")[0](x[rows], w, b, **options)
        gradient = kernel("standardize_backward")[0](
            g[rows], x[rows], w, b, mean, var, needs=(True, False, False), **options
        )[0]
        made.append((result, gradient, var))
    for whole, few in zip(*made, strict=True):
        np.testing.assert_array_equal(whole[7:9], few)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["ordinary", "far from zero", "samples unlike the rest", "one infinite", "all alike"])
def test_moments_of_long_rows(kind, dtype):
    """Mean and variance of rows over which there is one way lie within 8 roundings of the exact ones, wherever the mean is."""
    x = np.random.default_rng(8).standard_normal((3, 9001)).astype(dtype)
    if kind == "far from zero":
        x += 1000
    elif kind == "samples unlike the rest":
        for k in range(8):  # of which the way over the row begins with a mean that is none of the row's
            x[:, 1125 * k : 1125 * k + 16] = 1e4
    elif kind == "one infinite":
        x[1, 4000] = np.inf
    elif kind == "all alike":
        x[:] = 0.1
    native, fallback = kernel("standardize")
    made, mean, var = native(x, None, None, **trailing(x.shape, 1), eps=1e-5, centre=True)
    exact = fallback(x.astype(np.longdouble), None, None, **trailing(x.shape, 1), eps=1e-5, centre=True)
    roundings = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(mean, exact[1], rtol=roundings, atol=roundings)
    np.testing.assert_allclose(var, exact[2], rtol=roundings, atol=roundings**2)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(exact[0]))


@pytest.mark.parametrize("name", ["many rows", "long rows in strips", "batch", "group"])
def test_gradients_do_not_depend_on_the_number_of_threads(name):
    """The rows are added up block by block."""
    x, w, b, g, options = case(name, "float32")
    options["centre"] = True
    _, mean, var = kernel("standardize")[0](x, w, b, **options)
    before, made = tensorcore.get_num_threads(), []
    try:
        for count in (1, 3):
            tensorcore.set_num_threads(count)
            made.append(kernel("standardize_backward")[0](g, x, w, b, mean, var, needs=(True,) * 3, **options))
    finally:
        tensorcore.set_num_threads(before)
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(4, 3, 5, 7), (50, 70), (1, 5, 1), (9000, 4), (3000, 2, 3)])
@pytest.mark.parametrize("weight, bias", [(True, True), (False, False), (True, False), (False, True)])
def test_given_statistics(shape, weight, bias, dtype):
    """Each channel by its own mean and variance, to a few roundings."""
    random = np.random.default_rng(8)
    native, fallback = kernel("standardize_by")
    x = random.standard_normal(shape).astype(dtype)
    mean, w, b = (random.standard_normal(shape[1]).astype(dtype) for _ in range(3))
    var = random.random(shape[1]).astype(dtype)
    given = (x, mean, var, w if weight else None, b if bias else None)
    made = native(*given, eps=1e-3)
    assert made.dtype == x.dtype
    check(made, fallback(*widened(given), eps=1e-3), 8)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", [1, 5])
def test_running_statistics(rows, dtype):
    """They move in place by the share that momentum is; the variance is the unbiased one."""
    random = np.random.default_rng(8)
    native, fallback = kernel("track_statistics")
    state = [random.random(6).astype(dtype) for _ in range(2)]
    batch = [random.random((rows, 6, 1)).astype(dtype) for _ in range(2)]
    one, other = [each.copy() for each in state], [each.copy() for each in state]
    assert native(*one, *batch, momentum=0.3, count=7) is None
    fallback(*other, *batch, momentum=0.3, count=7)
    for got, expected in zip(one, other, strict=True):
        check(got, expected, 4)
    native(None, one[1], *batch, momentum=1.0, count=1)
    check(one[1], batch[1].mean(0).reshape(6), 4)
