"""Losses by margins in C beside NumPy's: both ways, weights, repeated labels, NaN, layouts, each instruction set."""

import itertools

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.ops.layers.margin import _between, _hinges

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
SIZES = [(4, 5), (1, 1), (30, 200), (2, 1100)]  # tails of 64, and marks that need memory


def scores(rows, classes, dtype):
    random = np.random.default_rng(8)
    x = random.standard_normal((rows, classes)).astype(dtype)
    labels = random.integers(0, classes, (rows, classes))
    labels[:, max(classes // 3, 1) :] = -1
    return x, random.integers(0, classes, rows), labels, random.random(classes).astype(dtype)


def calls(rows, classes, dtype):
    """Names, operands and options of both losses."""
    x, target, labels, weight = scores(rows, classes, dtype)
    for reduction in ("none", "mean", "sum"):
        for p, by in itertools.product((1, 2), (None, weight)):
            yield "multi_margin_loss", (x, target, by), dict(p=p, margin=0.7, reduction=reduction)
        yield "multilabel_margin_loss", (x, labels), dict(reduction=reduction)


def both_ways(name, operands, options):
    """Values and gradients by C, then by NumPy."""
    made = []
    for i in range(2):
        loss = kernel(name)[i](*operands, **options)
        needs = (True, *[False] * (len(operands) - 1))
        g = np.random.default_rng(9).standard_normal(loss.shape).astype(loss.dtype)
        made.append((loss, *kernel(f"{name}_backward")[i](np.asarray(g), *operands, needs=needs, **options)))
    return made


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows, classes", SIZES)
def test_losses_and_gradients(rows, classes, dtype):
    """Losses and gradients are NumPy's to 200 roundings of the largest (a label's gradient is a sum over all classes)."""
    eps = np.finfo(dtype).eps
    for name, operands, options in calls(rows, classes, dtype):
        for mine, its in zip(*both_ways(name, operands, options), strict=True):
            if its is None:
                assert mine is None
                continue
            assert (mine.dtype, mine.shape) == (its.dtype, its.shape)
            np.testing.assert_allclose(mine, its, 200 * eps, 200 * eps * max(np.abs(its).max(), 1))


def test_the_kernels_are_the_ops_in_other_ops():
    """Losses and gradients are those of the decompositions, to 1e-12."""
    whole = {"multi_margin_loss": _hinges, "multilabel_margin_loss": _between}
    for name, operands, options in calls(4, 5, "float64"):
        loss, gradient, *_ = both_ways(name, operands, options)[0]
        x = tc.tensor(operands[0], requires_grad=True)
        expected = whole[name](x, *[None if one is None else tc.tensor(one) for one in operands[1:]], **options)
        np.testing.assert_allclose(loss, expected.numpy(force=True), 1e-12)
        g = np.random.default_rng(9).standard_normal(loss.shape)
        expected.backward(tc.tensor(g))
        np.testing.assert_allclose(gradient, x.grad.numpy(), 1e-11, 1e-12)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite(dtype):
    """A margin that is NaN counts for nothing, an infinite one for all: as NumPy's kernel has it."""
    x, target, labels, _ = scores(6, 7, dtype)
    x[0, 1], x[1, 2], x[2, 3], x[3, target[3]], x[4, labels[4, 0]] = np.nan, np.inf, -np.inf, np.nan, np.inf
    for name, operands in (("multi_margin_loss", (x, target, None)), ("multilabel_margin_loss", (x, labels))):
        options = dict(reduction="none", **({"p": 1, "margin": 1.0} if len(operands) == 3 else {}))
        mine, its = both_ways(name, operands, options)
        np.testing.assert_allclose(mine[0], its[0], 1e-5)
        np.testing.assert_allclose(mine[1], its[1], 1e-5, 1e-6)


def test_layouts_and_labels_that_are_none():
    """Views are read as their copies; classes that are not there are an error of NumPy's kernel; no rows go to it too."""
    x, target, labels, _ = scores(6, 7, "float32")
    options = dict(p=2, margin=1.0, reduction="mean")
    native, _ = kernel("multi_margin_loss")
    np.testing.assert_array_equal(
        native(np.asfortranarray(x), np.repeat(target, 2)[::2], None, **options), native(x, target, None, **options)
    )
    for wrong in (7, 70):
        with pytest.raises(IndexError):
            native(x, np.full(6, wrong), None, **options)
        with pytest.raises(IndexError):
            kernel("multilabel_margin_loss")[0](x, np.full((6, 7), wrong), reduction="sum")
    assert native(x[:0], target[:0], None, p=1, margin=1.0, reduction="none").shape == (0,)
    assert kernel("multilabel_margin_loss")[0](x[::-1], labels[::-1], reduction="none").shape == (6,)


def test_threads_change_no_bit():
    """Over many rows one thread and three make the same losses and gradients."""
    for name, operands, options in calls(700, 90, "float32"):
        made = []
        for count in (1, 3):
            tc.set_num_threads(count)
            made.append(both_ways(name, operands, options)[0])
        for one, other in zip(*made, strict=True):
            np.testing.assert_array_equal(one, other)
