"""The C convolutions against NumPy's in double precision: one to three dims, strides, dilations, groups, cut-off paddings."""

import functools
import itertools

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.nn.functional as F

from .native import isa, kernel, needs_native  # noqa: F401

pytestmark = needs_native

# batch, groups, channels and outs of a group, sizes, kernel, stride, padding, dilation
CALLS = {
    "line": (3, 1, 4, 10, (37,), (3,), (1,), (1,), (1,)),
    "line with a step": (2, 2, 3, 5, (50,), (4,), (3,), (2,), (2,)),
    "picture": (2, 1, 5, 19, (9, 11), (3, 3), (1, 1), (1, 1), (1, 1)),
    "rows longer than a tile": (1, 1, 3, 9, (3, 131), (2, 5), (1, 1), (0, 2), (1, 1)),
    "one pixel out": (5, 1, 4, 8, (3, 3), (3, 3), (1, 1), (0, 0), (1, 1)),
    "steps": (2, 1, 6, 8, (12, 13), (3, 3), (2, 3), (1, 0), (1, 1)),
    "steps over the kernel": (2, 1, 3, 4, (11, 12), (2, 1), (3, 4), (0, 0), (1, 1)),
    "dilated": (1, 1, 4, 12, (14, 15), (3, 2), (1, 2), (2, 3), (2, 3)),
    "padding over the kernel": (2, 1, 2, 7, (5, 6), (2, 3), (1, 2), (4, 3), (1, 1)),
    "one by one": (2, 1, 16, 33, (7, 5), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one by one, many pixels": (3, 2, 9, 13, (9, 11), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one by one, many images": (37, 2, 9, 13, (9, 11), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one by one on a line": (2, 1, 5, 3, (67,), (1,), (1,), (0,), (1,)),
    "one by one, steps": (3, 1, 9, 13, (17, 16), (1, 1), (2, 2), (0, 0), (1, 1)),
    "one by one, steps in groups": (2, 3, 4, 5, (20, 31), (1, 1), (2, 3), (0, 0), (1, 1)),
    "one by one, steps in a volume": (2, 1, 5, 4, (5, 9, 13), (1, 1, 1), (2, 1, 3), (0, 0, 0), (1, 1, 1)),
    "few out": (2, 1, 9, 3, (6, 21), (3, 3), (1, 1), (1, 1), (1, 1)),
    "few in, many out": (1, 1, 2, 37, (7, 48), (5, 5), (1, 1), (2, 2), (1, 1)),
    "large pictures": (2, 1, 2, 70, (66, 67), (3, 3), (1, 1), (1, 1), (1, 1)),
    "each channel its own, many taps": (3, 5, 1, 1, (9, 20), (5, 5), (2, 2), (2, 2), (1, 1)),
    "each channel its own, small planes": (19, 37, 1, 1, (7, 6), (3, 3), (2, 1), (1, 1), (1, 1)),
    "each channel its own, small volumes": (3, 21, 1, 1, (3, 4, 5), (2, 3, 2), (1, 2, 1), (1, 0, 1), (2, 1, 2)),
    "each channel its own, small lines": (2, 16, 1, 1, (9,), (5,), (3,), (4,), (1,)),
    "groups": (2, 3, 2, 4, (8, 9), (3, 3), (1, 1), (1, 1), (1, 1)),
    "each channel its own": (2, 6, 1, 1, (10, 33), (3, 3), (1, 1), (1, 1), (1, 1)),
    "each channel its own, steps": (2, 4, 1, 2, (10, 35), (3, 3), (2, 2), (1, 1), (1, 1)),
    "each channel its own, five by five": (2, 3, 1, 2, (41, 19), (5, 5), (1, 1), (1, 3), (1, 1)),
    "each channel its own, seven by seven": (2, 3, 1, 1, (5, 3), (7, 7), (1, 1), (4, 3), (1, 1)),
    "each channel its own, padding over the kernel": (1, 2, 1, 1, (2, 1), (3, 3), (1, 1), (5, 9), (1, 1)),
    "each channel its own, short rows": (3, 7, 1, 1, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    "each channel its own, no padding": (2, 2, 1, 1, (70, 33), (3, 3), (1, 1), (0, 0), (1, 1)),
    "each channel its own, steps of two, strips": (2, 3, 1, 1, (75, 68), (3, 3), (2, 2), (1, 1), (1, 1)),
    "each channel its own, steps of two, no padding": (1, 2, 1, 1, (18, 101), (3, 3), (2, 2), (0, 0), (1, 1)),
    "each channel its own, steps of two, five by five": (2, 3, 1, 2, (41, 19), (5, 5), (2, 2), (1, 3), (1, 1)),
    "each channel its own, steps of two, seven by seven": (2, 3, 1, 1, (30, 9), (7, 7), (2, 2), (2, 3), (1, 1)),
    "each channel its own, steps of two, padding over the kernel": (1, 2, 1, 1, (2, 1), (3, 3), (2, 2), (5, 9), (1, 1)),
    "each channel its own, steps of two, volume": (2, 3, 1, 1, (3, 9, 38), (1, 3, 3), (1, 2, 2), (0, 1, 2), (1, 1, 1)),
    "each channel its own, volume": (2, 3, 1, 1, (3, 9, 18), (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1)),
    "many weights": (7, 1, 130, 70, (4, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    "many weights, steps": (3, 1, 97, 101, (9, 8), (3, 3), (2, 1), (1, 0), (1, 1)),
    "windows as large as images": (3, 1, 9, 13, (7, 19), (6, 15), (1, 1), (0, 0), (1, 1)),
    "windows as large as images, steps": (2, 2, 5, 10, (12, 31), (9, 10), (2, 3), (1, 2), (1, 1)),
    "windows as large as volumes": (1, 1, 3, 10, (6, 7, 9), (5, 4, 6), (2, 1, 2), (1, 0, 1), (1, 1, 1)),
    "images of one window": (70, 1, 6, 21, (4, 4), (4, 4), (1, 1), (0, 0), (1, 1)),
    "images of few windows, dilated": (9, 1, 4, 7, (9, 8), (4, 3), (1, 2), (0, 1), (2, 3)),
    "volume": (2, 1, 3, 6, (5, 6, 7), (2, 3, 2), (1, 2, 1), (1, 0, 1), (2, 1, 1)),
    "short rows": (2, 1, 6, 17, (10, 10), (5, 5), (1, 1), (0, 0), (1, 1)),
    "steps of two, many taps": (2, 1, 40, 37, (9, 27), (3, 3), (2, 2), (1, 1), (1, 1)),
    "line with steps of two": (3, 1, 150, 20, (29,), (3,), (2,), (1,), (1,)),
    "volume with steps of two": (2, 2, 5, 20, (5, 6, 12), (2, 3, 3), (2, 1, 2), (1, 1, 0), (1, 1, 1)),
    "three by three": (3, 1, 24, 37, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    "three by three, odd sizes": (4, 1, 33, 25, (9, 11), (3, 3), (1, 1), (0, 0), (1, 1)),
    "three by three in groups": (2, 2, 26, 24, (10, 9), (3, 3), (1, 1), (2, 2), (1, 1)),
    "three by three, long rows": (1, 1, 24, 24, (4, 140), (3, 3), (1, 1), (1, 1), (1, 1)),
    "three by three, many weights": (10, 1, 150, 140, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    "three by three, steps of two": (3, 1, 24, 37, (8, 8), (3, 3), (2, 2), (1, 1), (1, 1)),
    "three by three, steps of two, odd sizes": (4, 1, 33, 25, (19, 14), (3, 3), (2, 2), (0, 0), (1, 1)),
    "three by three, steps of two in groups": (2, 2, 26, 24, (12, 13), (3, 3), (2, 2), (2, 1), (1, 1)),
    "three by three, steps of two, paddings": (5, 1, 24, 24, (9, 8), (3, 3), (2, 2), (0, 2), (1, 1)),
    "three by three, steps of two, long rows": (1, 1, 24, 24, (5, 300), (3, 3), (2, 2), (1, 1), (1, 1)),
    "three by three, steps of two, many weights": (10, 1, 150, 140, (7, 7), (3, 3), (2, 2), (1, 1), (1, 1)),
    "few channels": (2, 1, 3, 32, (9, 31), (3, 3), (1, 1), (1, 1), (1, 1)),
    "few channels, wide windows with steps": (2, 1, 3, 48, (17, 40), (7, 7), (2, 2), (3, 3), (1, 1)),
    "few channels, short rows": (3, 1, 2, 16, (6, 5), (5, 3), (1, 2), (4, 2), (1, 1)),
    "few channels, no padding": (1, 1, 4, 64, (5, 29), (2, 4), (3, 1), (0, 0), (1, 1)),
    "few channels on a line": (2, 1, 3, 16, (61,), (5,), (2,), (7,), (1,)),
    "long steps": (3, 1, 4, 16, (41, 36), (8, 8), (4, 4), (0, 0), (1, 1)),
    "long steps, paddings": (2, 2, 3, 20, (23, 31), (5, 7), (3, 5), (2, 3), (1, 2)),
    "long steps on a long line": (2, 1, 3, 33, (1311,), (10,), (5,), (3,), (1,)),
    "steps of two on a long line": (3, 1, 6, 32, (617,), (3,), (2,), (1,), (1,)),
    "long rows of a picture": (2, 1, 8, 32, (3, 199), (1, 3), (1, 1), (0, 1), (1, 1)),
    "volume in groups": (1, 2, 2, 9, (4, 5, 20), (3, 1, 3), (2, 1, 2), (1, 1, 2), (1, 1, 2)),
}
KERNELS = ("conv", "conv_input_gradient", "conv_weight_gradient")
# Largest error over the largest value: sums of up to some hundred products, in another order than NumPy's.
TOLERANCE = {np.float32: 2e-6, np.float64: 4e-15}


def arguments(name, call, dtype):
    batch, groups, channels, outs, sizes, window, stride, padding, dilation = CALLS.get(call, call)
    counts = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes, window, stride, padding, dilation, strict=True)
    )
    random = np.random.default_rng(8)
    x = random.standard_normal((batch, groups * channels, *sizes)).astype(dtype)
    weight = random.standard_normal((groups * outs, channels, *window)).astype(dtype)
    bias = random.standard_normal(groups * outs).astype(dtype)
    sent = random.standard_normal((batch, groups * outs, *counts)).astype(dtype)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return {
        "conv": ((x, weight, bias), {"counts": counts, **options}),
        "conv_input_gradient": ((sent, weight), {"shape": x.shape, **options}),
        "conv_weight_gradient": ((sent, x), {"shape": weight.shape, **options}),
    }[name]


@functools.cache
def numpys_values(name, call, dtype):
    """What NumPy's kernel gives in double precision, once for all instruction sets and ways; not written to."""
    args, options = arguments(name, call, dtype)
    return kernel(name)[1](*[one.astype(np.float64) for one in args], **options)


def assert_close(found, expected, dtype):
    assert (found.dtype, found.shape) == (dtype, expected.shape)
    assert np.abs(found - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", KERNELS)
def test_convolution_is_numpys(isa, name, call, dtype):  # noqa: F811
    """Each kernel gives what NumPy's gives in double precision, on each instruction set."""
    args, options = arguments(name, call, dtype)
    assert_close(kernel(name)[0](*args, **options), numpys_values(name, call, dtype), dtype)


@pytest.mark.parametrize("call", ["steps", "three by three", "three by three, steps of two"])
@pytest.mark.parametrize("name", KERNELS)
def test_operands_may_lie_anyhow(name, call):
    """Transposed, flipped and strided operands give what their copies give, bit for bit."""
    native, _ = kernel(name)
    args, options = arguments(name, call, np.float32)
    expected = native(*args, **options)
    for change in (
        lambda one: np.ascontiguousarray(one.T).T,
        lambda one: np.repeat(one, 2, axis=-1)[..., ::2],
        lambda one: one[..., ::-1].copy()[..., ::-1],
    ):
        changed = [change(one) if one.ndim > 1 else one for one in args]
        np.testing.assert_array_equal(native(*changed, **options), expected)


def test_long_rows_of_few_channels_take_little_room():
    """With innermost channels a weight takes the room of its windows, however long the rows are in which they lie."""
    device, x = torch.device("cpu"), torch.ones(1, 2, 3, 40_000).to(memory_format=torch.channels_last)
    device.empty_cache()
    device.reset_peak_memory_stats()
    before = device.memory_stats()["allocated_bytes.current"]
    made = F.conv2d(x, torch.ones(16, 2, 3, 3))
    assert bool((made == 18).all())
    assert device.memory_stats()["allocated_bytes.peak"] - before < 2 * 4 * made.numel()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", KERNELS[:2])
def test_channels_may_be_innermost(isa, name, call, dtype):  # noqa: F811
    """Pictures whose channels are innermost give what NumPy's kernel gives in double precision, in that order from four dims on."""
    (first, *others), options = arguments(name, call, dtype)
    expected = numpys_values(name, call, dtype)
    found = kernel(name)[0](np.moveaxis(np.ascontiguousarray(np.moveaxis(first, 1, -1)), -1, 1), *others, **options)
    assert_close(found, expected, dtype)
    if first.ndim > 3 and first.shape[1] > 1 and first[0, 0].size > 1:
        assert np.moveaxis(found, 1, -1).flags.c_contiguous


@pytest.mark.parametrize("channels", [5, 16, 70])
def test_taps_beyond_the_picture_are_not_multiplied(isa, channels):  # noqa: F811
    """With innermost channels of windows of their own, an infinity in the weight is infinite where its tap lies within the picture."""
    x = torch.ones(1, channels, 4, 9).to(memory_format=torch.channels_last)
    weight = torch.ones(channels, 1, 3, 3)
    weight[:, :, 0, 0] = float("inf")
    made = F.conv2d(x, weight, padding=1, groups=channels)
    rows = [[4, *[6] * 7, 4]] + [[6, *[float("inf")] * 8]] * 2 + [[4, *[float("inf")] * 8]]
    assert made.tolist() == [[rows] * channels]


def test_no_bias_is_a_bias_of_zeros():
    """Without a bias nothing is added."""
    native, _ = kernel("conv")
    (x, weight, bias), options = arguments("conv", "picture", np.float32)
    np.testing.assert_array_equal(native(x, weight, None, **options), native(x, weight, bias * 0, **options))


@pytest.mark.parametrize("channels", [1, 24])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_reaches_its_windows_alone(value, channels):
    """A NaN or an infinity shows in the outputs whose windows hold it, and in no other."""
    native, _ = kernel("conv")
    x = np.zeros((1, channels, 5, 40), np.float32)
    x[0, 0, 2, 17] = value
    weight = np.ones((25, channels, 3, 3), np.float32)
    options = {"counts": (3, 38), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    found = native(x, weight, None, **options)
    expected = np.zeros_like(found)
    expected[:, :, :, 15:18] = value
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("call", ["three by three", "three by three, steps of two"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 2e38])
@pytest.mark.parametrize("name", KERNELS)
def test_few_multiplications_end_where_numbers_do(isa, name, value, call):  # noqa: F811
    """A NaN, an infinity or a number near the largest, in either operand, makes of 3x3 windows what it makes of sums over taps."""
    native, numpys = kernel(name)
    args, options = arguments(name, call, np.float32)
    args = [np.round(one) for one in args]  # sums of whole numbers are exact in any order
    for which in (0, 1):
        # The tap in the middle meets no padding; of numbers near the largest, those are added whose sum or difference overflows.
        pairs = ((1, 2), (0, 2)) if args[which].shape[2] == 3 else ((-1, -2), (-1, -3))
        for (row, beside), sign in itertools.product(pairs, (1, -1)) if value == 2e38 else [(pairs[0], 1)]:
            changed = [one.copy() for one in args]
            changed[which][1, 2, row, 1] = value
            if value == 2e38:
                changed[1 - which] = np.sign(args[1 - which]) * np.float32(2.0**-30)
                changed[which][1, 2, beside, 1] = sign * value
            found, expected = native(*changed, **options), numpys(*changed, **options)
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
            same = np.isfinite(expected)
            np.testing.assert_array_equal(found[~same], expected[~same])
            np.testing.assert_allclose(found[same], expected[same], rtol=1e-5, atol=1e-5 * np.abs(expected[same]).max())


@pytest.mark.parametrize(
    ("call", "most"), [("three by three, many weights", 6e-7), ("three by three, steps of two, many weights", 8e-7)]
)
@pytest.mark.parametrize("name", KERNELS)
def test_few_multiplications_are_as_close_as_sums_over_taps(isa, name, call, most):  # noqa: F811
    """The error of 3x3 windows of 150 channels is at most 6e-7 of the largest value, 8e-7 with steps of two: twice that of taps."""
    native, numpys = kernel(name)
    args, options = arguments(name, call, np.float32)
    expected = numpys(*[one.astype(np.float64) for one in args], **options)
    assert np.abs(native(*args, **options) - expected).max() <= most * np.abs(expected).max()


def test_weights_gradient_reads_no_further_than_its_rows(isa):  # noqa: F811
    """A NaN in the last column reaches the tap that meets it, and not the one whose rows end before it."""
    native, _ = kernel("conv_weight_gradient")
    x = np.ones((2, 3, 4, 5), np.float32)
    x[:, :, :, 4] = np.nan
    sent = np.ones((2, 3, 4, 4), np.float32)
    options = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 3}
    found = native(sent, x, shape=(3, 1, 1, 2), **options)
    np.testing.assert_array_equal(found, np.broadcast_to(np.float32([32, np.nan]), (3, 1, 1, 2)))


@pytest.mark.parametrize("stride", [9, 2**31, 2**61, 2**62])
@pytest.mark.parametrize("groups", [1, 2])
def test_steps_that_lead_out_of_the_input(groups, stride):
    """One window is the same whatever the step to a next one would be, and takes as long; so are its gradients."""
    x = torch.arange(18.0).reshape(1, 2, 3, 3).requires_grad_()
    weight = torch.ones(2, 2 // groups, 3, 3, requires_grad=True)
    made = F.conv2d(x, weight, stride=(1, stride), groups=groups)
    assert made.flatten().tolist() == [[153, 153], [36, 117]][groups - 1]
    F.conv2d(x[..., :2], weight[..., :2], stride=stride, groups=groups).sum().backward()
    assert x.grad[0].tolist() == [[[3 - groups, 3 - groups, 0]] * 3] * 2
    assert weight.grad[0, 0].tolist() == [[0, 1, 0], [3, 4, 0], [6, 7, 0]]


@pytest.mark.parametrize("padding", [2**40, 2**58, 2**61, 2**62 - 1])
def test_a_padding_beyond_all_memory(padding):
    """Three windows of which two see nothing but zeros: their input is not written down."""
    for channels in (1, 3):
        x, weight = torch.ones(1, channels, 2, 2).to(memory_format=torch.channels_last), torch.ones(channels, 1, 2, 2)
        made = F.conv2d(x, weight, padding=padding, stride=padding, groups=channels)
        assert made.tolist() == [[[[0, 0, 0], [0, 4, 0], [0, 0, 0]]] * channels]


@pytest.mark.parametrize("name", KERNELS)
def test_shapes_that_do_not_fit_are_left_to_numpy(name):
    """Fewer channels or images than the other operand or the shape says: NumPy raises, and nothing is read behind the end."""
    native, _ = kernel(name)
    (first, *others), options = arguments(name, "picture", np.float32)
    with pytest.raises(ValueError, match="cannot reshape"):
        native(first[:, :-1], *others, **options)
    if name == "conv_input_gradient":
        with pytest.raises(ValueError, match="cannot reshape"):
            native(first[:-1], *others, **options)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    "call",
    [
        "rows longer than a tile",
        "few in, many out",
        "each channel its own, no padding",
        "many weights",
        "one by one, many images",
        "each channel its own",
        "three by three, long rows",
        "three by three, many weights",
        "three by three, steps of two, long rows",
        "three by three, steps of two, many weights",
    ],
)
def test_threads_change_nothing(name, call):
    """One thread and two give the same bits."""
    from tensorcore_cpu import native as library

    native, _ = kernel(name)
    args, options = arguments(name, call, np.float32)
    args = [np.concatenate([one] * 40) if one.shape[0] == 1 else one for one in args]
    if name == "conv_input_gradient":
        options = {**options, "shape": (len(args[0]), *options["shape"][1:])}
    before = library.threads()
    try:
        found = []
        for count in (1, 2):
            library.threads(count)
            found.append(native(*args, **options))
    finally:
        library.threads(before)
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("dtype", [np.int64, np.complex64, np.float16])
def test_other_dtypes_are_numpys(dtype):
    """Whole numbers, complex and half ones go to the NumPy kernel."""
    native, numpys = kernel("conv")
    args, options = arguments("conv", "picture", np.float32)
    args = [one.astype(dtype) for one in args]
    np.testing.assert_array_equal(native(*args, **options), numpys(*args, **options))
