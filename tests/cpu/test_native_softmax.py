"""softmax and the losses in C beside exact sums: rows, columns, tails, awkward values, each instruction set."""

import numpy as np
import pytest

import tensorcore

from .native import assert_same, assert_within, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
# Rows that end in tails of every length, rows of more than one block, columns side by side and single ones, many narrow and
# short rows, many rows of a few columns, and a few long columns.
SHAPES = [((5, n), 1) for n in (1, 2, 7, 16, 31, 67, 130)] + [
    ((2, 5003), 1), ((4, 1), 0), ((7, 3), 0), ((3, 6, 5), 1), ((2, 9, 131), 1), ((6, 300), 0), ((2, 3, 4, 5), 3), ((11,), 0),
    ((300, 10), 1), ((129, 3), 1), ((128, 16), 1),
    ((37, 17), 1), ((37, 33), 1), ((20, 130), 1), ((19, 200), 1),
    ((300, 3, 2), 1), ((100, 8, 8), 1), ((70, 4, 31), 1), ((70, 4, 33), 1), ((30, 5, 4, 3), 1),
    ((300, 3), 0), ((129, 16), 0), ((2, 200, 5), 1),
]  # fmt: skip


def exact(x, dim):
    """The distances from the largest, which are rounded once, and the sums of their powers in the widest type."""
    away = (x - x.max(dim, keepdims=True)).astype(np.longdouble)
    return away, np.exp(away).sum(dim, keepdims=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_softmax_is_exact_to_a_few_units(shape, dim, dtype):
    """At most 5 units in the last place from the exact quotient, given the distances from the row's largest; dense."""
    native, _ = kernel("softmax")
    x = (np.random.default_rng(8).standard_normal(shape) * 5).astype(dtype)
    away, total = exact(x, dim)
    made = native(x, dim=dim)
    assert made.flags.c_contiguous
    assert_within(made, (np.exp(away) / total).astype(dtype), 5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_log_softmax_is_exact_to_a_rounding_of_the_largest(shape, dim, dtype):
    """The error is at most that of three roundings of the row's largest magnitude."""
    native, _ = kernel("log_softmax")
    x = (np.random.default_rng(8).standard_normal(shape) * 5).astype(dtype)
    away, total = exact(x, dim)
    expected = away - np.log(total)
    limit = 3 * np.finfo(dtype).eps * np.abs(expected).max(initial=1.0)
    assert np.abs(native(x, dim=dim) - expected).max() <= limit


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax_backward", "log_softmax_backward"])
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_gradients_of_softmax(shape, dim, name, dtype):
    """Within eight roundings of the largest magnitude in the row."""
    native, fallback = kernel(name)
    random = np.random.default_rng(8)
    g = random.standard_normal(shape).astype(dtype)
    out = kernel(name.removesuffix("_backward"))[1](random.standard_normal(shape).astype(dtype), dim=dim)
    expected = fallback(g.astype(np.longdouble), out.astype(np.longdouble), dim=dim)
    made = native(g, out, dim=dim)
    assert np.abs(made - expected).max() <= 8 * np.finfo(dtype).eps * max(1, np.abs(expected).max())


@pytest.mark.parametrize("name", ["softmax_backward", "log_softmax_backward"])
def test_gradients_that_are_one_number(name):
    """A gradient that is one number throughout, or the same in each row, gives what its copy gives."""
    native = kernel(name)[0]
    for shape in ((40, 3, 2), (40, 3, 40), (50, 7), (5, 33)):
        out = np.random.default_rng(8).random(shape).astype(np.float32)
        for g in (np.broadcast_to(np.float32(0.7), shape), np.broadcast_to(out[:1], shape)):
            np.testing.assert_array_equal(native(g, out, dim=1), native(g.copy(), out, dim=1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_awkward_rows_are_numpys(name, dim, dtype):
    """NaN and plus infinity make their row NaN, minus infinity counts for nothing, huge numbers do not overflow."""
    native, fallback = kernel(name)
    rows = np.array([
        [1, np.nan, 2, 0], [np.inf, 1, 2, 0], [-np.inf, 1, 2, 0], [-np.inf] * 4, [1e38, 1e38, -1e38, 0], [np.inf, -np.inf, 0, 1],
        [1e-45, -1e-45, 0, 1e-40], [-200, 0, 100, -300],
    ]).astype(dtype)  # fmt: skip
    for x in (rows, np.repeat(rows, 9, axis=1), np.repeat(rows, 60, axis=1), awkward(dtype, 100).reshape(10, 10)):
        x = x.T.copy() if dim == 0 else x
        np.testing.assert_allclose(native(x, dim=dim), fallback(x, dim=dim), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_layouts_of_softmax(name):
    """Transposes, slices and reversed rows give the values of their copies; empty and 0-d ones go to NumPy."""
    native, fallback = kernel(name)
    x = np.random.default_rng(8).standard_normal((6, 8, 4)).astype(np.float32)
    for view in (x.transpose(2, 0, 1), x[::2], x[:, ::-1], x[:, 2:7, 1:3], np.broadcast_to(x[0], (3, 8, 4))):
        for dim in range(3):
            np.testing.assert_array_equal(native(view, dim=dim), native(view.copy(), dim=dim))
    assert native(x[:0], dim=1).shape == (0, 8, 4)
    assert native(x[0, 0, 0:1].reshape(()), dim=0) == fallback(x[0, 0, 0:1].reshape(()), dim=0)
    assert native(np.ones((2, 2), np.float16), dim=1).tolist() == fallback(np.ones((2, 2), np.float16), dim=1).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "shape", [(6, 5), (300, 10), (3, 200), (70, 33), (2, 150, 3), (90, 3, 2), (2, 4, 7), (2, 5, 13, 11), (1, 1)]
)
@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_losses_of_classes(name, shape, weighted, reduction, dtype):
    """Loss and gradient are NumPy's to 20 roundings; what is ignored has neither."""
    native, fallback = kernel(name)
    back, fallback_back = kernel(f"{name}_backward")
    random = np.random.default_rng(8)
    x = random.standard_normal(shape).astype(dtype) * 3
    target = random.integers(0, shape[1], (shape[0], *shape[2:]))
    target.flat[1::4] = -100
    weight = random.random(shape[1]).astype(dtype) if weighted else None
    options = {"reduction": reduction, "ignore_index": -100}
    made, *rest = native(x, target, weight, **options)
    expected, *expected_rest = fallback(x, target, weight, **options)
    assert (made.dtype, made.shape) == (x.dtype, np.shape(expected))
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(made, expected, rtol=tolerance, atol=tolerance)
    g = np.asarray(random.standard_normal(np.shape(expected)), dtype)
    needs = (True, False, False)
    grad, none, also_none = back(g, x, target, weight, *rest, needs=needs, **options)
    wanted = fallback_back(g, x, target, weight, *expected_rest, needs=needs, **options)[0]
    assert (none, also_none) == (None, None)
    np.testing.assert_allclose(grad, wanted, rtol=tolerance * 4, atol=tolerance)


def test_losses_of_classes_take_any_layout():
    """Transposed scores, broadcast gradients and strided targets are read as they are."""
    native, _ = kernel("cross_entropy")
    back, _ = kernel("cross_entropy_backward")
    x = np.random.default_rng(8).standard_normal((7, 6)).astype(np.float32)
    target = np.repeat(np.arange(6), 2)[::2]
    options = {"reduction": "none", "ignore_index": -100}
    made, *rest = native(x.T, target, None, **options)
    other, *other_rest = native(x.T.copy(), target.copy(), None, **options)
    assert made.tolist() == other.tolist()
    g = np.broadcast_to(np.float32(0.5), (6,))
    grads = [
        back(g, a, target, None, *b, needs=(True, False, False), **options)[0]
        for a, b in ((x.T, rest), (x.T.copy(), other_rest))
    ]
    assert grads[0].tolist() == grads[1].tolist()


def test_a_class_out_of_range_is_numpys_error():
    """Nothing is read beyond the row."""
    native, _ = kernel("cross_entropy")
    with pytest.raises(IndexError):
        native(np.ones((2, 3), np.float32), np.array([0, 3]), None, reduction="mean", ignore_index=-100)


def test_the_mean_over_nothing_is_nan():
    """Where everything is ignored."""
    native, _ = kernel("cross_entropy")
    made = native(np.ones((2, 3), np.float32), np.array([-1, -1]), None, reduction="mean", ignore_index=-1)[0]
    assert (np.isnan(made), made.shape) == (True, ())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name, options", [
    ("mse_loss", {}), ("soft_margin_loss", {}), ("binary_cross_entropy", {}),
    ("binary_cross_entropy_with_logits", {}), ("smooth_l1_loss", {"limit": 1.5, "scale": 2.0}),
    ("smooth_l1_loss", {"limit": 0.0, "scale": 1.0}),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(1,), (67,), (3, 50, 700), ()])
def test_losses_of_pairs(shape, name, options, reduction, dtype):
    """Loss and gradient are the exact ones to 10 roundings; NaN stays, huge scores do not overflow."""
    native, fallback = kernel(name)
    back, fallback_back = kernel(f"{name}_backward")
    random = np.random.default_rng(8)
    x, target = (np.asarray(random.standard_normal(shape) * 4, dtype) for _ in range(2))
    rest = (None, None) if name.endswith("logits") else (None,) if name.startswith("binary") else ()
    if name == "binary_cross_entropy":  # of chances, some of which are certain
        x, target = (np.asarray(np.clip(0.5 + one / 8, 0, 1), dtype) for one in (x, target))
    wide = [x.astype(np.longdouble), target.astype(np.longdouble)]
    tolerance = 10 * np.finfo(dtype).eps
    expected = np.asarray(fallback(*wide, *rest, reduction=reduction, **options))
    made = native(x, target, *rest, reduction=reduction, **options)
    assert (made.dtype, made.shape) == (x.dtype, expected.shape)
    np.testing.assert_allclose(made, expected.astype(dtype), rtol=tolerance, atol=tolerance)
    g = np.asarray(random.standard_normal(expected.shape), dtype)
    needs = (True, *[False] * (1 + len(rest)))
    grad = back(g, x, target, *rest, reduction=reduction, **options, needs=needs)[0]
    wanted = fallback_back(g.astype(np.longdouble), *wide, *rest, reduction=reduction, **options, needs=needs)[0]
    np.testing.assert_allclose(grad, wanted.astype(dtype), rtol=tolerance, atol=tolerance)
    both = back(g, x, target, *rest, reduction=reduction, **options, needs=(True, True, *[False] * len(rest)))
    if name in ("mse_loss", "smooth_l1_loss"):
        assert_same(both[0], grad)
        assert_same(both[1], -grad)
    corners = np.array([np.nan, 1e4, -1e4, 0, np.inf, -np.inf] * 4, dtype)
    if name == "binary_cross_entropy":
        corners = np.array([np.nan, 0, 1, 1e-40, 1 - 1e-7, 1e-300] * 4, dtype)
    zeros = np.full_like(corners, 0.5)
    np.testing.assert_allclose(
        native(corners, zeros, *rest, reduction="none", **options),
        fallback(corners, zeros, *rest, reduction="none", **options),
        rtol=tolerance,
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name, weighs", [
    ("binary_cross_entropy", (True,)), ("binary_cross_entropy_with_logits", (True, False)),
    ("binary_cross_entropy_with_logits", (False, True)), ("binary_cross_entropy_with_logits", (True, True)),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(5,), (3, 700), (40, 3, 700)])
def test_losses_with_weights(shape, name, weighs, reduction, dtype):
    """The exact losses to 10 roundings, of weights in any shape and layout that broadcasts; NaN stays, huge scores do not overflow."""
    native, fallback = kernel(name)
    random = np.random.default_rng(8)
    x, target = (np.asarray(random.standard_normal(shape) * 4, dtype) for _ in range(2))
    if name == "binary_cross_entropy":
        x, target = (np.asarray(np.clip(0.5 + one / 8, 0, 1), dtype) for one in (x, target))
    else:
        target = np.asarray(np.clip(0.5 + target / 8, 0, 1), dtype)  # of others the terms may cancel
        x.reshape(-1)[:4] = [1e4, -1e4, np.inf, -np.inf]
        target.reshape(-1)[:4] = 0.5
    tolerance = 10 * np.finfo(dtype).eps
    whole = random.uniform(0.5, 3, shape).astype(dtype)
    for weight in (whole, whole[..., :1], whole[(0,) * (len(shape) - 1)], whole[..., ::-1], np.array(2, dtype)):
        rest = [weight if used else None for used in weighs]
        wide = [None if one is None else one.astype(np.longdouble) for one in (x, target, *rest)]
        made, expected = native(x, target, *rest, reduction=reduction), np.asarray(fallback(*wide, reduction=reduction))
        assert (made.dtype, made.shape) == (x.dtype, expected.shape)
        np.testing.assert_allclose(made, expected.astype(dtype), rtol=tolerance, atol=tolerance)
    with pytest.raises(ValueError):
        native(x, target, *[np.ones(shape[-1] + 1, dtype) if used else None for used in weighs], reduction=reduction)


def test_sums_do_not_depend_on_the_number_of_threads():
    """The parts of a sum are the same ones, in the same order."""
    native, _ = kernel("mse_loss")
    x = np.random.default_rng(8).standard_normal(300_000).astype(np.float32)
    before = tensorcore.get_num_threads()
    try:
        made = []
        for count in (1, 2, 3):
            tensorcore.set_num_threads(count)
            made.append(float(native(x, x[::-1].copy(), reduction="sum")))
    finally:
        tensorcore.set_num_threads(before)
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmax_backward", "log_softmax_backward"])
def test_every_layout_gives_the_same_bits(name, dtype):
    """Strided, flipped, transposed and expanded operands give bit by bit what dense ones give, along rows and columns."""
    native, _ = kernel(name)
    random = np.random.default_rng(8)
    places = {
        "rows apart": lambda one: np.concatenate([one, one], axis=-1)[..., : one.shape[-1]],
        "every second row": lambda one: np.repeat(one, 2, axis=0)[::2],
        "rows backwards": lambda one: one[::-1].copy()[::-1],
        "backwards": lambda one: one[..., ::-1].copy()[..., ::-1],
        "turned": lambda one: np.ascontiguousarray(one.T).T,
        "first dims turned": lambda one: np.ascontiguousarray(one.swapaxes(0, 1)).swapaxes(0, 1),
    }
    for shape in ((5, 67), (6, 130), (2, 3, 19), (4, 1)):
        x, y = random.standard_normal(shape).astype(dtype), -np.abs(random.standard_normal(shape)).astype(dtype)
        args = (x, y) if name.endswith("backward") else (x,)
        for dim in range(len(shape)):
            expected = native(*args, dim=dim)
            for place, change in places.items():
                made = native(*map(change, args), dim=dim)
                np.testing.assert_array_equal(made, expected, place)
            for part in (x[(0,) * x.ndim], x[..., :1], x[:1]):
                one = np.broadcast_to(part, shape)
                made = native(one, *args[1:], dim=dim)
                np.testing.assert_array_equal(made, native(one.copy(), *args[1:], dim=dim))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_logarithms_of_sums(shape, dim, dtype):
    """To 4 units of the larger of the largest element and the rest, and of 1: along a dim, with those beside it, and along all."""
    native, _ = kernel("logsumexp")
    x = (np.random.default_rng(8).standard_normal(shape) * 3).astype(dtype)
    for dims in ((dim,), tuple(range(dim + 1)), None):
        over = tuple(range(x.ndim)) if dims is None else dims
        for values in (x, np.asfortranarray(x)):
            got = native(values, dim=dims, keepdim=True)
            total = exact(x, over)[1]
            expected = x.max(over, keepdims=True) + np.log(total)
            most = np.maximum(np.abs(x.max(over, keepdims=True)), np.log(total)).astype(dtype)
            assert (got.shape, got.dtype) == (expected.shape, x.dtype)
            assert (np.abs(got - expected) / np.spacing(np.maximum(most, 1))).max() < 4
            np.testing.assert_array_equal(native(values, dim=dims), got.reshape(native(values, dim=dims).shape))


@pytest.mark.parametrize("dtype", FLOATS)
def test_logarithms_of_sums_of_infinities(dtype):
    """An infinity or a NaN decides its own line alone, also along dims that are apart; empty arrays are NumPy's."""
    native, fallback = kernel("logsumexp")
    x = np.random.default_rng(8).standard_normal((12, 20)).astype(dtype)
    x[0, 3], x[1], x[2, ::2], x[3, 4], x[4, 5:7], x[5], x[6, :2] = (
        np.inf, -np.inf, -np.inf, np.nan, (np.inf, np.nan), np.nan, (np.inf, -np.inf))  # fmt: skip
    x[7] = (-np.inf,) * 19 + (np.nan,)
    with np.errstate(all="ignore"):
        for values in (x, x.T, np.repeat(x.T, 9, axis=0)):
            for dim in (0, 1):
                got, expected = native(values, dim=(dim,)), fallback(values, dim=(dim,))
                np.testing.assert_allclose(got, expected, rtol=8 * np.finfo(dtype).eps)
        block = x.reshape(3, 4, 20)
        for one in (block, block.transpose(2, 0, 1), block[:, ::-1]):
            for dim in ((0, 2), (2, 0)):
                got, expected = native(one, dim=dim, keepdim=True), fallback(one, dim=dim, keepdim=True)
                np.testing.assert_allclose(got, expected, rtol=8 * np.finfo(dtype).eps)
                np.testing.assert_array_equal(native(one, dim=dim), got.reshape(-1))
        np.testing.assert_array_equal(native(x[:0], dim=(0,)), fallback(x[:0], dim=(0,)))
