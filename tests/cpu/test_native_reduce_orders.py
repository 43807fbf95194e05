"""Reductions of arrays that are dense in another order of their dims, and of slices: results lie in row-major order."""

import numpy as np
import pytest

import tensorcore as tc

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

# Shape and the order in which its dims lie in memory.
ORDERS = [((300, 2), (1, 0)), ((2, 300), (1, 0)), ((5, 7, 90), (0, 2, 1)), ((5, 70, 3), (2, 0, 1)), ((4, 3, 9, 8), (0, 2, 3, 1)),
          ((4, 1, 9, 8), (3, 1, 0, 2))]  # fmt: skip
DTYPES = ["float32", "float64", "int64", "bool"]


def lying(dtype, shape, order):
    """Values of that shape whose dims lie in that order; no NaN, so that sums can be compared."""
    values = np.nan_to_num(np.resize(awkward(dtype, 97), shape), posinf=5, neginf=-5).clip(-3, 3).astype(dtype)
    inside = np.ascontiguousarray(values.transpose(order))
    return inside.transpose(np.argsort(order))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, order", ORDERS)
def test_reductions_of_dims_in_any_order(shape, order, dtype):
    """Along each dim and pair of dims, kept or not, what NumPy makes of the same values in row-major order; not for bools: extremes."""
    lies, plain = lying(dtype, shape, order), np.ascontiguousarray(lying(dtype, shape, order))
    names = (
        ["sum", "any", "all", "count_nonzero"]
        if dtype == "bool"
        else ["sum", "amax", "amin", "argmax", "argmin", "any", "prod"]
    )
    dims = [*[(i,) for i in range(len(shape))], *[(i, j) for i in range(len(shape)) for j in range(i)]]
    for name in names:
        native, twin = kernel(name)
        for dim in dims:
            if name.startswith("arg") and len(dim) > 1:
                continue
            dim = dim[0] if name.startswith("arg") else dim
            options = {} if name == "count_nonzero" else {"keepdim": len(shape) % 2 == 0}
            got, expected = native(lies, dim=dim, **options), np.asarray(twin(plain, dim=dim, **options))
            assert got.dtype == expected.dtype
            assert got.shape == expected.shape
            assert got.flags.c_contiguous
            np.testing.assert_allclose(got.astype("float64"), expected.astype("float64"), rtol=1e-5, atol=1e-4)


def test_the_place_among_all_is_that_in_row_major_order():
    """argmax of all elements of a transpose counts them row by row, wherever they lie."""
    values = tc.arange(600.0).reshape(300, 2).t()
    assert values.argmax().item() == 599
    assert (-values).argmax().item() == 0
    assert values[:, :7].argmax().item() == 13


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("width", [2, 3, 7, 33])
def test_the_first_of_equal_elements_is_the_place(width, dtype):
    """Of equal extremes in short rows and in a few long columns the first one's place is given, of NaN the first NaN's."""
    values = np.resize(np.array([1, 5, 2, 5, 0], dtype), (3000, width))
    native, _twin = kernel("argmax")
    for dim in (0, 1):
        np.testing.assert_array_equal(native(values, dim=dim), values.argmax(dim))
        if dtype == "float32":
            holes = np.where(np.resize(np.arange(11) % 11 == 7, values.shape), np.float32("nan"), values)
            np.testing.assert_array_equal(native(holes, dim=dim), holes.argmax(dim))
