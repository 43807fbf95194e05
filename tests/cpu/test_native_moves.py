"""Kernels in C that only move elements, of complex numbers: as integers in single precision, else by NumPy."""

import numpy as np
import pytest

from .native import assert_same, awkward, kernel, layouts, needs_native

pytestmark = needs_native

_AT = np.array([4, 0, 2, 2])
_MASK = np.array([True, False, True, True, False, True, False])


def numbers(dtype, *shape):
    """Complex numbers with parts of every kind."""
    parts = np.resize(awkward(np.zeros((), dtype).real.dtype), 2 * int(np.prod(shape))).astype(
        np.zeros((), dtype).real.dtype
    )
    return parts.view(dtype).reshape(shape)


_OTHER = 1.5 - 2j
# A call by the kernel's name: arguments from ones of shape (5, 7), options.
_CALLS = {
    "cat": (lambda x: ([x, x[::-1]],), {"dim": 1, "shape": (5, 14)}),
    "stack": (lambda x: ([x, x[::-1]],), {"dim": 2}),
    "constant_pad": (lambda x: (x,), {"shape": (6, 9), "key": (slice(1, 6), slice(0, 7)), "value": _OTHER}),
    "edge_pad": (lambda x: (x,), {"mode": "reflect", "pads": (2, 1), "shape": (5, 10)}),
    "flip": (lambda x: (x,), {"dims": (0,)}),
    "roll": (lambda x: (x,), {"shifts": 3, "dims": 1}),
    "rot90": (lambda x: (x,), {"k": 1, "dims": (0, 1)}),
    "tri": (lambda x: (x,), {"diagonal": 1, "upper": False}),
    "take_diagonal": (lambda x: (x[:, :5],), {"dim1": 0, "dim2": 1}),
    "gather": (lambda x: (x, np.stack([_AT] * 7, 1)), {"dim": 0}),
    "scatter": (lambda x: (x, np.stack([_AT] * 7, 1), x[::-1][:4].copy()), {"dim": 0}),
    "index_select": (lambda x: (x, _AT), {"dim": 0}),
    "index_copy": (lambda x: (x, _AT, x[:4] * 2), {"dim": 0}),
    "index_fill": (lambda x: (x, _AT, np.array(_OTHER, x.dtype)), {"dim": 0}),
    "index_put": (lambda x: (x, x[:4] * 2), {"indices": (_AT, None)}),
    "index_tensors": (lambda x: (x,), {"indices": (_AT, None)}),
    "take": (lambda x: (x, _AT), {}),
    "put": (lambda x: (x, _AT, x[0, :4] * 2), {}),
    "masked_fill": (lambda x: (x, _MASK, np.array(_OTHER, x.dtype)), {}),
    "masked_select": (lambda x: (x, np.broadcast_to(_MASK, x.shape)), {}),
    "masked_scatter": (lambda x: (x, np.broadcast_to(_MASK, x.shape).copy(), x[::-1].copy()), {}),
    "embedding": (lambda x: (x, _AT), {"padding": None, "by_count": False}),
    "where": (lambda x: (np.broadcast_to(_MASK, x.shape), x, x[::-1]), {}),
}


@pytest.mark.parametrize("layout", ["rows", "columns", "every other"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", sorted(_CALLS))
def test_moved_numbers_are_those_of_the_numpy_kernel(isa, name, dtype, layout):
    """Every bit of both parts arrives where NumPy's kernel puts it, however the array lies."""
    x = numbers(dtype, 5, 7)
    x = {"rows": x, "columns": np.asfortranarray(x), "every other": np.repeat(x, 2, 1)[:, ::2]}[layout]
    native, numpy = kernel(name)
    make, options = _CALLS[name]
    got, expected = native(*make(x), **options), np.asarray(numpy(*make(x), **options))
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    bits = f"V{dtype(0).itemsize}"
    assert np.ascontiguousarray(got).view(bits).tobytes() == np.ascontiguousarray(expected).view(bits).tobytes()


def test_a_number_stands_beside_complex_ones(isa):
    """A Python number is one of both parts where elements are chosen, and one too large is left to NumPy."""
    native, numpy = kernel("where")
    x = numbers(np.complex64, 7)
    for number in (2, 0.5, _OTHER):
        assert_same(native(_MASK, x, number), numpy(_MASK, x, number))
    assert np.isinf(native(_MASK, x, 1e300)[1])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_what_is_written_over_is_the_array_itself(isa, dtype):
    """A kernel that writes into an array answers with that array, not with another view of its memory."""
    x = numbers(dtype, 5, 7)
    expected = np.tril(x)
    made = kernel("keep_triangle")[0](x, diagonal=0, upper=False)
    assert made is x
    assert_same(x, expected)
    out = np.empty((5, 7), dtype)
    assert kernel("masked_fill")[0](x, _MASK, np.array(_OTHER, dtype), out=out) is out


def test_integers_beside_complex_numbers_are_no_bits(isa):
    """Operands of two dtypes keep their values: the integers' bits are never taken for those of complex numbers."""
    native, numpy = kernel("where")
    x, y = numbers(np.complex64, 7), np.arange(7)
    assert_same(native(_MASK, x, y), numpy(_MASK, x, y))
    assert_same(native(_MASK, y, x), numpy(_MASK, y, x))


def test_sums_are_no_moves(isa):
    """Where elements that meet are added up, complex numbers are added as such."""
    native, numpy = kernel("index_put")
    x = np.ones((5,), np.complex64)
    options = {"indices": (np.array([1, 1]),), "accumulate": True}
    assert_same(native(x, x[:2] * 2j, **options), numpy(x, x[:2] * 2j, **options))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_sums_at_places(isa, dtype):
    """What lands in one place is added part by part, into a copy or into the array itself; with a factor as well."""
    x = numbers(dtype, 5, 7)
    x[~np.isfinite(x) | (abs(x) > 1e9)] = 1 - 2j
    for name, given, options in (
        ("index_add", (_AT, x[:4] * 2), {"dim": 0}),
        ("index_add", (_AT, x[:4] * 2), {"dim": 0, "alpha": 0.5}),
        ("index_put", (x[:4] * 2,), {"indices": (_AT, None), "accumulate": True}),
        ("put", (_AT - 3, x[0, :4] * 2), {"accumulate": True}),
        ("scatter_reduce", (np.stack([_AT] * 7, 1), x[:4] * 2), {"dim": 0, "reduce": "sum"}),
    ):
        native, numpy = kernel(name)
        expected, place = numpy(x, *given, **options), x.copy()
        np.testing.assert_allclose(native(x, *given, **options), expected, rtol=1e-6)
        assert native(place, *given, **options, out=place) is place
        np.testing.assert_allclose(place, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_both_parts_are_made_numbers(isa, dtype):
    """NaN and the infinities of either part give way, also in the place of the array."""
    x = numbers(dtype, 5, 7)
    for options in ({}, {"nan": 2.0, "posinf": 3.0, "neginf": -4.0}):
        native, numpy = kernel("nan_to_num")
        assert_same(native(x, **options), numpy(x, **options))
        place = x.copy()
        assert native(place, **options, out=place) is place
        assert_same(place, numpy(x, **options))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_windows_of_complex_numbers(isa, dtype):
    """They become columns bit by bit, and are added up where they lie."""
    x = numbers(dtype, 2, 3, 5, 7)
    x[~np.isfinite(x) | (abs(x) > 1e9)] = 1 - 2j
    options = {"counts": (2, 4), "kernel": (3, 2), "stride": (2, 2), "padding": (1, 1), "dilation": (1, 1)}
    native, numpy = kernel("unfold")
    columns = native(x, **options)
    assert_same(columns, numpy(x, **options))
    assert_same(native(x.swapaxes(0, 1), **options), numpy(x.swapaxes(0, 1), **options))
    native, numpy = kernel("fold")
    np.testing.assert_allclose(
        native(columns, shape=x.shape, **options), numpy(columns, shape=x.shape, **options), rtol=1e-6
    )


@pytest.mark.parametrize("name", sorted(layouts(np.zeros(9))))
def test_triangles_and_flips_of_any_layout(isa, name):
    """Empty and strided arrays, and those of no dims, are flipped as NumPy flips them."""
    x = layouts(numbers(np.complex64, 67))[name]
    native, numpy = kernel("flip")
    dims = tuple(range(x.ndim))
    assert_same(np.ascontiguousarray(native(x, dims=dims)), np.ascontiguousarray(numpy(x, dims=dims)))
