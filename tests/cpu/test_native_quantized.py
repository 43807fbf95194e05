"""Linear maps by int8 weights in C against sums of int64, and against the NumPy kernel."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore
from tensorcore import nn
from tensorcore.ao.quantization import quantize_dynamic
from tensorcore.ao.quantization.weights import rounded

from .native import assert_same, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

ROWS = [1, 2, 3, 4, 5, 7, 8, 13, 25]
INNER = [1, 2, 3, 15, 31, 32, 63, 64, 65, 130, 500]
COLUMNS = [1, 3, 4, 15, 16, 17, 31, 33, 70]


def weights(rng, columns, inner):
    made = rng.integers(-128, 128, (columns, inner), dtype=np.int8)
    made[rng.random(made.shape) < 0.2] = -128
    made[rng.random(made.shape) < 0.2] = 127
    return made


@pytest.mark.parametrize("inner", INNER)
def test_sums_are_those_of_whole_numbers(inner):
    """Inputs whose range is 127 are their own rounding, and the results are products of int64, scaled, for all tails of a shape."""
    rng = np.random.default_rng(inner)
    for rows in ROWS:
        for columns in COLUMNS:
            low = int(rng.integers(-127, 1))
            x = rng.integers(low, low + 128, (rows, inner))
            x.flat[0], x.flat[-1] = low, low + 127
            if x.size == 1:
                x[:] = 127
            w, scale = weights(rng, columns, inner), rng.random(columns, np.float32)
            got = kernel("linear_int8")[0](x.astype(np.float32), w, scale, None)
            assert_same(got, (x @ w.astype(np.int64).T).astype(np.float32) * scale)


@pytest.mark.parametrize(("x", "w"), [(127, -128), (127, 127), (-127, -128), (-127, 127)])
def test_extremes_do_not_overflow(x, w):
    """The largest sums of either sign, of one row and of many, also of more than 24 bits."""
    for rows in (1, 3, 9):
        for inner in (64, 70, 5001):
            got = kernel("linear_int8")[0](
                np.full((rows, inner), x, np.float32), np.full((19, inner), w, np.int8), np.array(1, np.float32), None
            )
            assert_same(got, np.full((rows, 19), x * w * inner, np.float32))


@pytest.mark.parametrize("shape", [(1, 300), (6, 70), (4, 3, 65), (300, 1000), (64, 2000), (70,), (2, 0, 70), (2, 0)])
@pytest.mark.parametrize("form", ["one scale", "scales", "no bias"])
def test_numbers_are_the_twin_s(shape, form):
    """To the bit, rounding of the input included: of both signs, of one, of a few numbers, of zeros; on several threads."""
    rng = np.random.default_rng(len(form))
    mine, twin = kernel("linear_int8")
    w = weights(rng, 45, shape[-1])
    scale = np.array(0.0123, np.float32) if form == "one scale" else rng.random(45, np.float32)
    bias = None if form == "no bias" else rng.standard_normal(45, np.float32)
    x = rng.standard_normal(shape, np.float32)
    for values in (x, abs(x), -abs(x), x.clip(-0.5, 0.5), x * 0, x * 1e30, (x * 8).round() / 2, x + 100):
        assert_same(mine(values, w, scale, bias), twin(values, w, scale, bias))


def test_others_are_left_to_numpy():
    """NaN, infinities, ranges whose steps are denormal; other layouts are copied."""
    rng = np.random.default_rng(3)
    mine, twin = kernel("linear_int8")
    w, scale, bias = weights(rng, 9, 40), np.array(0.5, np.float32), rng.standard_normal(9, np.float32)
    x = rng.standard_normal((5, 40), np.float32)
    for odd in (np.nan, np.inf, -np.inf, np.float32(3e38)):
        for place in (0, 3, 39):
            values = x.copy()
            values[2, place], values[3, 1] = odd, -odd
            assert_same(mine(values, w, scale, bias), twin(values, w, scale, bias))
    for values in (x * np.float32(1e-42), x * np.float32(1e-38), x[::2], x[::-1], np.asfortranarray(x)):
        assert_same(mine(values, w, scale, bias), twin(np.array(values), w, scale, bias))
    assert_same(mine(x, np.asfortranarray(w), scale, bias), twin(x, w, scale, bias))
    assert_same(mine(x, w[::-1], scale, bias[::-1]), twin(x, w[::-1], scale, bias[::-1]))


def test_the_kernel_gives_what_the_ops_give():
    """A layer's result is the same by the kernel and, as programs that are written down have it, by the ops it stands for."""
    layer = quantize_dynamic(nn.Sequential(nn.Linear(100, 30)))[0].packed
    for shape in ((7, 100), (2, 3, 100), (100,), (0, 100)):
        x = tensorcore.randn(shape)
        whole, step = rounded(x)
        wanted = (whole @ layer.data.float().t()) * (layer.scale * step) + layer.bias
        assert_same(layer.product(x, True).numpy(), wanted.numpy())
    taught = layer.product(tensorcore.randn(4, 100, requires_grad=True), True)
    assert not taught.requires_grad
