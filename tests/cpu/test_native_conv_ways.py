"""The ways to make a convolution: each gives NumPy's values, and `backends.cpu.benchmark` measures them once for each size."""

import threading

import numpy as np
import pytest

import tensorcore as tc
from tensorcore_cpu import native

from .native import isa, kernel, needs_native  # noqa: F401
from .test_native_conv import KERNELS, arguments, assert_close, numpys_values

pytestmark = needs_native

WAYS = native.conv_way(None) if native.available() else ()
# Sizes for which the ways differ in what is cut off, and in what is left over.
SOME = (
    "line", "picture", "steps", "dilated", "one by one", "few out", "groups", "each channel its own, steps",
    "each channel its own", "each channel its own, short rows", "each channel its own, small planes",
    "each channel its own, small volumes", "each channel its own, small lines",
    "many weights, steps", "one by one, steps", "one by one, steps in groups", "one by one, steps in a volume", "volume",
    "windows as large as images", "windows as large as images, steps", "windows as large as volumes", "images of one window",
    "steps of two, many taps", "three by three, odd sizes", "three by three in groups",
    "three by three, steps of two, odd sizes", "three by three, steps of two in groups", "three by three, steps of two, paddings",
    "long steps", "long steps, paddings", "long steps on a long line", "steps of two on a long line", "long rows of a picture",
)  # fmt: skip


@pytest.fixture
def measuring():
    """The switch is on, and off again after the test; what was measured before is forgotten."""
    native.isa(native.isa())
    with tc.backends.cpu.flags(benchmark=True):
        yield


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("way", WAYS)
def test_each_way_gives_numpys_values(isa, way, name):  # noqa: F811
    """Every way that can be chosen is right where it fits, whatever the rules would have taken, in both dtypes."""
    compiled, _ = kernel(name)
    native.conv_way(way)
    try:
        for call in SOME:
            for dtype in (np.float32, np.float64):
                args, options = arguments(name, call, dtype)
                assert_close(compiled(*args, **options), numpys_values(name, call, dtype), dtype)
    finally:
        native.conv_way(None)


@pytest.mark.parametrize("way", WAYS)
def test_threads_that_pack_weights_keep_to_their_own(isa, way):  # noqa: F811
    """Weights enough for several threads to pack: each of forty calls on three threads has the bits of one thread."""
    compiled, _ = kernel("conv")
    args, options = arguments("conv", "many weights, steps", np.float32)
    before = native.threads()
    native.conv_way(way)
    try:
        native.threads(1)
        expected = compiled(*args, **options)
        native.threads(3)
        for _ in range(40):
            np.testing.assert_array_equal(compiled(*args, **options), expected)
    finally:
        native.threads(before)
        native.conv_way(None)


def test_an_unread_edge_beside_windows_of_one_element():
    """A transposed convolution whose output padding adds an edge that no window reaches has zeros there."""
    x = np.random.default_rng(8).standard_normal((2, 3, 8, 9)).astype(np.float32)
    weight = np.random.default_rng(9).standard_normal((3, 4, 1, 1)).astype(np.float32)
    options = {"shape": (2, 4, 9, 10), "stride": (1, 1), "padding": (0, 0), "dilation": (2, 2), "groups": 1}
    compiled, _ = kernel("conv_input_gradient")
    found = compiled(x, weight, **options)
    expected = np.zeros((2, 4, 9, 10), np.float32)
    expected[:, :, :8, :9] = np.einsum("nihw,io->nohw", x, weight[:, :, 0, 0])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_a_choice_is_made_once_for_each_size(measuring, name):
    """The first call measures and later ones of these sizes do not; both give the values of the way that was chosen."""
    compiled, _ = kernel(name)
    before = native.conv_choices()[0]
    for call in ("picture", "three by three", "picture", "one by one, steps"):
        args, options = arguments(name, call, np.float32)
        first = compiled(*args, **options)
        np.testing.assert_array_equal(compiled(*args, **options), first)
    measured, chosen = native.conv_choices()
    assert measured - before == 3
    assert len(chosen) == 3
    assert all(one == name and way in WAYS for one, way in chosen)


def test_without_the_switch_the_rules_hold(measuring):
    """What was measured changes no bit of a call with the switch off, and is there when it is on again."""
    compiled, _ = kernel("conv")
    args, options = arguments("conv", "three by three", np.float32)
    with tc.backends.cpu.flags(benchmark=False):
        expected = compiled(*args, **options)
    compiled(*args, **options)
    before = native.conv_choices()
    with tc.backends.cpu.flags(benchmark=False):
        np.testing.assert_array_equal(compiled(*args, **options), expected)
    compiled(*args, **options)
    assert native.conv_choices() == before
    assert len(before[1]) == 1


def test_deterministic_algorithms_measure_nothing(measuring):
    """Programs that ask for the same bits each time get the rules' way, forward and backward, with the switch on too."""
    x, weight = tc.randn(2, 24, 9, 8, requires_grad=True), tc.randn(25, 24, 3, 3, requires_grad=True)
    before = native.conv_choices()[0]
    tc.use_deterministic_algorithms(True)
    try:
        tc.nn.functional.conv2d(x, weight).sum().backward()
        assert native.conv_choices()[0] == before
    finally:
        tc.use_deterministic_algorithms(False)
    tc.nn.functional.conv2d(x, weight).sum().backward()
    assert native.conv_choices()[0] == before + 3


def test_more_sizes_than_are_kept(measuring):
    """The choices are bounded: after many sizes the oldest have gone, and calls of any size are right."""
    compiled, _ = kernel("conv")
    before = native.conv_choices()[0]
    options = {"stride": (1,), "padding": (0,), "dilation": (1,), "groups": 1}
    for size in range(2, 702):
        x = np.ones((1, 1, size), np.float32)
        assert (compiled(x, np.ones((1, 1, 2), np.float32), None, counts=(size - 1,), **options) == 2).all()
    measured, chosen = native.conv_choices()
    assert measured - before == 700
    assert 300 < len(chosen) <= 512


def test_threads_share_what_was_measured(measuring):
    """Threads that meet the same new sizes at once measure them once, and each gets the right values."""
    compiled, numpys = kernel("conv")
    args, options = arguments("conv", "large pictures", np.float32)
    expected = numpys(*[one.astype(np.float64) for one in args], **options)
    before, threads, failed = native.conv_choices()[0], tc.get_num_threads(), []
    tc.set_num_threads(2)  # work that is shared lets go of the GIL

    def call():
        try:
            for _ in range(3):
                assert_close(compiled(*args, **options), expected, np.float32)
        except AssertionError as error:
            failed.append(error)

    try:
        workers = [threading.Thread(target=call) for _ in range(4)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
    finally:
        tc.set_num_threads(threads)
    assert not failed
    assert native.conv_choices()[0] - before == 1


def test_what_is_not_finite_is_measured_too(measuring):
    """A NaN at the first call reaches its own windows alone, at that call and at later ones."""
    compiled, numpys = kernel("conv")
    (x, weight, bias), options = arguments("conv", "three by three", np.float32)
    x[1, 2, 3, 4] = np.nan
    for _ in range(2):
        np.testing.assert_array_equal(
            np.isnan(compiled(x, weight, bias, **options)), np.isnan(numpys(x, weight, bias, **options))
        )


def test_the_switch_is_off_at_the_start():
    """`backends.cpu.benchmark` is False until a program sets it, and says what was set."""
    assert tc.backends.cpu.benchmark is False
    with tc.backends.cpu.flags(benchmark=True):
        assert tc.backends.cpu.benchmark is True
    assert tc.backends.cpu.benchmark is False


def test_the_instruction_set_in_pytorchs_words(isa):  # noqa: F811
    """`get_cpu_capability` names what the kernels run with."""
    assert tc.backends.cpu.get_cpu_capability() == {"avx512": "AVX512", "avx2": "AVX2", "plain": "DEFAULT"}[isa]
