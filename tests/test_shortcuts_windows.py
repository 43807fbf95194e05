"""The short ways through windows and shuffles in C answer as the functions in Python, errors included."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.nn.functional as F
from tensorcore.ops.layers import adaptive_pool, conv, pool
from tensorcore.ops.shapes import pad
from tensorcore.shortcuts import in_python

from .test_shortcuts import HUGE, Whole, outcome

pytestmark = pytest.mark.skipif(not hasattr(conv.spread, "__wrapped__"), reason="built without a compiler")

VALUES = (
    2,
    (2, 3),
    [2, 3],
    (2,),
    (1, 2, 3),
    (),
    True,
    (True, 2),
    2.0,
    (2.0, 1),
    Whole(3),
    np.int64(3),
    None,
    "ab",
    HUGE,
    (HUGE, 1),
    -1,
)


def two_ways(function, *args):
    """The outcomes of a call by the short way and by the function alone."""
    return outcome(function, *args), outcome(function.__wrapped__, *args)


def values(found):
    """What a call gave, in a form that `==` compares."""
    if isinstance(found, torch.Tensor):
        return found.tolist(), found.dtype, tuple(found.shape), found.stride(), found.requires_grad
    return found


@pytest.mark.parametrize("value", VALUES)
def test_sizes_of_windows_say_the_same_by_both_ways(value) -> None:
    """An int, one for each dim, and all that is neither: as a size, as a step that has a least value, as sizes wanted."""
    for function, args in (
        (conv.spread, ("op", "stride", value, 2)),
        (conv._positive, ("op", "stride", value)),
        (conv._positive, ("op", "padding", value, 0)),
        (adaptive_pool._wanted, ("op", (5, 6), value)),
    ):
        short, long = two_ways(function, *args)
        assert short == long
        assert type(short) is type(long)
        if isinstance(short, tuple):
            assert [type(one) for one in short] == [type(one) for one in long]


@pytest.mark.parametrize("sizes, kernel, stride, padding, dilation", [
    ((7,), (3,), (2,), (1,), (1,)), ((7, 9), (3, 2), (2, 1), (0, 1), (1, 3)), ((2,), (5,), (1,), (0,), (1,)),
    ((2,), (5,), (3,), (1,), (1,)), ((HUGE,), (2,), (1,), (0,), (1,)), ((4, 4), (2,), (1, 1), (0, 0), (1, 1)),
    ((0,), (1,), (1,), (0,), (1,)), ((3,), (1,), (0,), (0,), (1,)),
])  # fmt: skip
def test_windows_are_counted_by_both_ways(sizes, kernel, stride, padding, dilation) -> None:
    """How many fit, none or less than none where they do not; numbers of any length."""
    short, long = two_ways(conv.window_counts, sizes, kernel, stride, padding, dilation)
    assert short == long


@pytest.mark.parametrize("shape, weight, bias, groups", [
    ((2, 4, 5), (6, 4, 3), 6, 1), ((2, 4, 5), (6, 2, 3), 6, 2), ((4, 5), (6, 4, 3), None, 1), ((2, 4, 5), (6, 3, 3), None, 1),
    ((2, 4, 5), (6, 4, 0), None, 1), ((2, 4, 5), (6, 4, 3), 5, 1), ((2, 4, 5), (5, 2, 3), None, 2), ((2, 4, 5), (4, 4, 3), None, 1),
    ((2, 0, 5), (0, 4, 3), None, 1), ((2, 4, 5), (6, 4, 3), None, 0), ((2, 4, 5), (6, 4, 3), None, True), ((2, 4), (6, 4, 3), None, 1),
    ((2, 4, 5), (6, 4), None, 1), ((2, 4, 5), (6, 4, 3), None, HUGE),
])  # fmt: skip
@pytest.mark.parametrize("transposed", [False, True])
def test_a_convolution_is_looked_at_by_both_ways(shape, weight, bias, groups, transposed) -> None:
    """Dims, channels, groups, a bias, windows of nothing; and inputs of another dtype or kind."""
    x, w = torch.zeros(shape), torch.zeros(weight)
    b = None if bias is None else torch.zeros(bias)
    for args in ((x, w, b), (x.double(), w, b), (x.bool(), w.bool(), None), (x.numpy(), w, b), (x, None, b)):
        short, long = two_ways(conv._checked, "conv1d", 1, *args, transposed, groups)
        assert short == long


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0), (4,), (2, 3, 4, 5)])
def test_a_batch_dim_is_seen_by_both_ways(shape) -> None:
    """A tensor with a batch dim is passed on as it is; one without gets one; empty planes are errors."""
    x = torch.zeros(shape)
    short, long = two_ways(pool._batched, "pool", x, 1)
    if isinstance(long[0], torch.Tensor):
        assert (values(short[0]), short[1]) == (values(long[0]), long[1])
    else:
        assert short == long
    assert two_ways(pool._batched, "pool", [1.0], 1)[0] == two_ways(pool._batched, "pool", [1.0], 1)[1]


@pytest.mark.parametrize("args", [
    (2, None, 0, False, True), (2, 1, 1, True, False), (3, 2, 1, True, True, 5), ((2,), 2, 0, False, True), (9, None, 0, False, True),
    (2, 0, 0, False, True), (2, None, 2, False, True), (True, None, 0, False, True), (2, None, 0, 1, True), (2, 2, 0, False, True, 0),
])  # fmt: skip
def test_means_of_windows_by_both_ways(args) -> None:
    """Values, gradients and errors; of other dtypes and of views too."""
    y = torch.arange(14.0).view(1, 2, 7)
    for x in (y, y[0], y.reshape(1, 7, 2).mT, y.long(), y.double().requires_grad_(), y[:0]):
        short, long = two_ways(F.avg_pool1d, x, *args)
        assert values(short) == values(long)


@pytest.mark.parametrize("number", [1, 2, 3, 0, -1, True, 2.0, None, HUGE])
@pytest.mark.parametrize(
    "shape", [(8, 2, 4), (2, 9, 3, 6), (4, 6), (0, 4, 2, 2), (2, 1, 4, 2, 6), (1, 1, 1, 1, 4, 2, 2)]
)
def test_elements_are_dealt_by_both_ways(shape, number) -> None:
    """Values, shapes, strides and errors of shuffles, dense or not, recorded or not; what is made is new memory."""
    x = torch.arange(float(np.prod(shape))).view(shape)
    for one in (x, x.to(torch.int16), x.mT.contiguous().mT, x.clone().requires_grad_()):
        for function in (pad._pixel_shuffle, pad._pixel_unshuffle, pad._channel_shuffle):
            short, long = two_ways(function, one, number)
            assert values(short) == values(long)
            if isinstance(short, torch.Tensor) and not one.requires_grad and short.numel():
                assert short.data_ptr() != one.data_ptr()
                assert long.data_ptr() != one.data_ptr()


def test_a_shuffle_knows_inference_mode() -> None:
    """What is made there is marked."""
    with torch.inference_mode():
        assert F.pixel_shuffle(torch.zeros(1, 4, 2, 2), 2).is_inference()
    assert not F.pixel_shuffle(torch.zeros(1, 4, 2, 2), 2).is_inference()


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("value", [*VALUES, 0, (0, 1), 1, (4, 4), (9, 0)])
def test_the_options_of_an_adjoint_are_the_same_by_both_ways(at, value) -> None:
    """One of them of every kind, the others usual: tuples and sizes, or what is wrong with it."""
    for given in ([2, (1, 1), 1, 1], [(3, 1), 0, 0, (1, 2)], [1, 9, 0, 1]):
        options = [*given[:at], value, *given[at + 1 :]]
        for sizes, window in (((4, 5), (3, 2)), ((0, 1), (1, 1))):
            short, long = two_ways(conv._turned_windows, "op", sizes, window, *options)
            assert short == long
            if type(short[0]) is tuple:
                assert [[type(one) for one in part] for part in short] == [[type(one) for one in part] for part in long]


@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("window", [(2, None, 0), ((3, 2), 2, 1), ((2, 2), (1, 2), (0, 1)), (3, (), 0)])
def test_means_of_windows_are_those_of_the_function(window, dtype, out):
    """Windows in ints or tuples of them, of any real dtype, into a place too, are what the function in Python makes."""
    x = (torch.arange(180.0) % 23 - 9).reshape(2, 3, 6, 5).to(getattr(torch, dtype))
    call = F.avg_pool2d
    wanted = in_python(pool._avg_pool)("avg_pool2d", 2, x, *window, False, True)
    place = torch.empty_like(wanted) if out else None
    made = call(x, *window, out=place)
    assert made.tolist() == wanted.tolist()
    assert made is place or not out


POOLS = [
    ((1, 2, 6, 5), {}),
    ((2, 6, 5), {}),
    ((2, 6, 5), {"stride": 3, "ceil_mode": True}),
    ((2, 6, 5), {"padding": (1, 0), "stride": (2, 1)}),
    ((2, 6, 5), {"stride": [2, 2]}),
    ((2, 6, 5), {"padding": 2}),
    ((2, 6, 5), {"stride": 0}),
    ((2, 6, 5), {"stride": 1.0}),
    ((2, 1, 5), {}),
    ((6, 5), {}),
    ((0, 2, 6, 5), {}),
    ((0, 6, 5), {}),
    ((1, 1, 2, 6, 5), {}),
]


@pytest.mark.parametrize("name", ["avg_pool2d", "max_pool2d"])
@pytest.mark.parametrize("shape, given", POOLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64])
def test_pools_are_made_by_both_ways(name, shape, given, dtype) -> None:
    """With a batch dim and without, of floats and others, with a gradient and a place; windows that do not fit are an error."""
    way = getattr(F, name)
    x = (torch.arange(torch.zeros(shape).numel()) % 7).view(shape).to(dtype)
    values = [given.get(word, usual) for word, usual in (("stride", None), ("padding", 0))]

    def recorded(function):
        leaf = x.clone().requires_grad_()
        made = function(leaf, 2, **given)
        made.abs().sum().backward()
        return made, leaf.grad

    def placed(function):
        place = torch.zeros(3, dtype=dtype)
        return function(x, 2, *values, out=place, **given) is place, place

    for look in (
        lambda function: function(x, 2, **given),
        lambda function: function(x, 2, *values),
        lambda function: function(x, kernel_size=2, padding=values[1]),
        lambda function: function(x, 2, *values, **given),
        lambda function: function(x, 2, divisor_override=3),
        lambda function: function(x, 2, count_include_pad=False, padding=1),
        lambda function: function(x, 2, return_indices=True),
        lambda function: function(x, (2, 1), None, 0, 1, True),
        lambda function: function(x),
        recorded,
        placed,
    ):
        assert repr(outcome(look, way)) == repr(outcome(look, way.__wrapped__))
    for one in (F.avg_pool1d, F.max_pool1d, F.avg_pool3d, F.max_pool3d):
        for look in (lambda function: function(x, 2, **given), lambda function: function(x, 2, out=torch.zeros(3))):
            assert repr(outcome(look, one)) == repr(outcome(look, one.__wrapped__))
