"""Connectionist temporal classification in C beside NumPy's: both ways, samples of several lengths, losses without a path."""

import numpy as np
import pytest

import tensorcore as tc

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
# How many classes, and frames and labels of each sample.
CALLS = [
    (5, (7, 4, 7), (2, 0, 3)),
    (2, (1,), (1,)),
    (40, (60, 33), (20, 16)),
    (3, (2, 6, 0, 0), (2, 1, 0, 1)),
    (4, (5,), (0,)),
]


def operands(classes, frames, counts, dtype):
    """Log-probabilities, the states' classes with repeated labels among them, which may follow the one two before; lengths."""
    random = np.random.default_rng(8)
    x = random.standard_normal((max(frames), len(frames), classes))
    x = (x - np.log(np.exp(x).sum(2, keepdims=True))).astype(dtype)
    labels = np.zeros((len(frames), 2 * max(counts) + 1), np.int64)
    for row, count in zip(labels, counts, strict=True):
        row[1 : 2 * count : 2] = random.integers(1, min(classes, 4), count)
    skips = np.zeros(labels.shape, np.bool_)
    skips[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    return (x, labels, skips), dict(frames=frames, counts=counts)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("classes, frames, counts", CALLS)
def test_losses_and_gradients(classes, frames, counts, dtype):
    """Losses are NumPy's to 60 roundings, gradients to 2000 (exponentials of sums as long as the loss), infinite ones too."""
    given, options = operands(classes, frames, counts, dtype)
    eps = np.finfo(dtype).eps
    for infinite in (False, True):
        made = []
        for i in range(2):
            losses, alpha = kernel("ctc_loss")[i](*given, **options, infinite=infinite)
            g = np.random.default_rng(9).standard_normal(losses.shape).astype(dtype)
            backward = kernel("ctc_loss_backward")[i]
            found = backward(g, *given, alpha, needs=(True, False, False), **options, infinite=infinite)
            assert found[1:] == (None, None)
            made.append((losses, found[0]))
        for mine, its in zip(*made, strict=True):
            assert (mine.dtype, mine.shape) == (its.dtype, its.shape)
        np.testing.assert_allclose(made[0][0], made[1][0], 60 * eps, 60 * eps)
        np.testing.assert_allclose(made[0][1], made[1][1], 2000 * eps, 2000 * eps)


def test_layouts_threads_and_classes_that_are_none():
    """Views are read as their copies, each sample is as with one thread, and a class that is not there is an error of NumPy's."""
    given, options = operands(12, (30,) * 50, (9,) * 50, "float32")
    options["infinite"] = False
    native, _ = kernel("ctc_loss")
    tc.set_num_threads(1)
    losses, alpha = native(*given, **options)
    tc.set_num_threads(3)
    turned = [np.ascontiguousarray(one.T).T for one in given]
    for mine, its in zip(native(*turned, **options), (losses, alpha), strict=True):
        np.testing.assert_array_equal(mine, its)
    g = np.broadcast_to(np.float32(0.5), 50)
    backward, _ = kernel("ctc_loss_backward")
    found = backward(g, *turned, np.asfortranarray(alpha), needs=(True, False, False), **options)[0]
    tc.set_num_threads(1)
    np.testing.assert_array_equal(found, backward(g, *given, alpha, needs=(True, False, False), **options)[0])
    with pytest.raises(IndexError):
        native(given[0], given[1] + 100, given[2], **options)
