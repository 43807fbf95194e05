"""The C kernels that pad by what is within the edges, and their adjoint, against NumPy's: modes, dims, amounts, types, layouts."""

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.nn.functional as F

from .native import awkward, isa, kernel, needs_native  # noqa: F401

pytestmark = needs_native

MODES = ("reflect", "replicate", "circular")
# shape, and how many before and after the last dims, from the first of them on
CALLS = {
    "a line": ((2, 3, 7), (2, 3)),
    "a line of one": ((3, 1), (0, 0)),
    "pictures": ((2, 3, 5, 40), (1, 2, 3, 4)),
    "unbatched pictures": ((3, 6, 5), (4, 1, 0, 3)),
    "volumes": ((1, 2, 4, 3, 9), (1, 0, 2, 1, 3, 3)),
    "only rows": ((2, 2, 5, 8), (2, 2, 0, 0)),
    "taken away": ((2, 2, 6, 9), (-1, 2, 3, -2)),
    "taken away all but one": ((2, 5, 5), (-2, -2, -4, 0)),
    "many planes": ((70, 5, 9, 11), (1, 1, 1, 1)),
}
DTYPES = (np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.uint8, np.bool_, np.complex64)


def call(name, mode, back=False):
    shape, pads = CALLS[name]
    around = len(shape) - len(pads) // 2
    made = (*shape[:around], *[n + a + b for n, a, b in zip(shape[around:], pads[::2], pads[1::2], strict=True)])
    return (made if back else shape), {"mode": mode, "pads": pads, "shape": shape if back else made}


def values(shape, dtype):
    return np.resize(awkward(dtype) if dtype != np.complex64 else awkward(np.float32).astype(dtype), shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLS)
def test_padding_is_numpys(name, mode, dtype):
    """Each mode moves the elements that NumPy's kernel moves, of any type, wherever they lie."""
    native, numpys = kernel("edge_pad")
    shape, options = call(name, mode)
    x = values(shape, dtype)
    for one in (x, np.ascontiguousarray(x.T).T, np.repeat(x, 2, axis=-1)[..., ::2], x[..., ::-1]):
        np.testing.assert_array_equal(native(one, **options), numpys(one, **options))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_numpys(isa, name, mode, dtype):  # noqa: F811
    """The adjoint adds each padded element to the one that it was read from; whole numbers leave no order of sums to tell."""
    native, numpys = kernel("edge_pad_gradient")
    shape, options = call(name, mode, back=True)
    g = np.random.default_rng(8).integers(-9, 9, shape).astype(dtype)
    for one in (g, np.ascontiguousarray(g.T).T, g[..., ::-1]):
        found = native(one, **options)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, numpys(one, **options))


@pytest.mark.parametrize("name", ["pictures", "taken away"])
def test_gradients_of_halves_are_rounded_once(name):
    """As sums in single precision are, with the kernels in C and without."""
    native, numpys = kernel("edge_pad_gradient")
    shape, options = call(name, "replicate", back=True)
    g = np.random.default_rng(8).standard_normal(shape).astype(np.float16)
    expected = numpys(g.astype(np.float32), **options).astype(np.float16)
    np.testing.assert_array_equal(native(g, **options), expected)
    np.testing.assert_array_equal(numpys(g, **options), expected)


@pytest.mark.parametrize("mode", MODES)
def test_nan_and_infinities_reach_their_places_alone(mode):
    """In the adjoint an infinity shows where it was read from, and nowhere else."""
    native, numpys = kernel("edge_pad_gradient")
    shape, options = call("pictures", mode, back=True)
    for value in (np.nan, np.inf):
        for at in (0, 1234, -1):
            g = np.ones(shape, np.float32)
            g.reshape(-1)[at] = value
            np.testing.assert_array_equal(native(g, **options), numpys(g, **options))


@pytest.mark.parametrize("mode", MODES)
def test_threads_change_nothing(mode):
    """One thread and two give the same bits, forward and back."""
    from tensorcore_cpu import native as library

    before, found = library.threads(), []
    x = np.random.default_rng(8).standard_normal((70, 5, 90, 11)).astype(np.float32)
    try:
        for count in (1, 2):
            library.threads(count)
            made = kernel("edge_pad")[0](x, mode=mode, pads=(3, 1, 2, 2), shape=(70, 5, 94, 15))
            found.append((made, kernel("edge_pad_gradient")[0](made, mode=mode, pads=(3, 1, 2, 2), shape=x.shape)))
    finally:
        library.threads(before)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_options_that_do_not_fit_are_left_to_numpy():
    """More than there is to reflect, or another shape than the amounts make: nothing is read behind the end."""
    native, numpys = kernel("edge_pad")
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for options in (
        {"mode": "reflect", "pads": (4, 4), "shape": (2, 11)},
        {"mode": "replicate", "pads": (1, 1), "shape": (2, 3)},
    ):
        np.testing.assert_array_equal(native(x, **options), numpys(x, **options))


def test_channels_stay_innermost():
    """Pictures whose channels are innermost are padded into such, as PyTorch does."""
    x = torch.arange(96.0).reshape(2, 3, 4, 4).to(memory_format=torch.channels_last)
    made = F.pad(x, (1, 1, 1, 1), mode="reflect")
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert made.tolist() == F.pad(x.contiguous(), (1, 1, 1, 1), mode="reflect").tolist()


@pytest.mark.parametrize("mode", MODES)
def test_second_gradients(mode):
    """The gradient of a gradient goes through the padding again."""
    x = torch.arange(12.0, dtype=torch.float64).reshape(1, 1, 3, 4).requires_grad_()
    (first,) = torch.autograd.grad((F.pad(x, (1, 2, 1, 0), mode=mode) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    counts = torch.autograd.grad(F.pad(x, (1, 2, 1, 0), mode=mode).sum(), x)[0]
    assert second.tolist() == (6 * x.detach() * counts).tolist()
