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


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 9, 16, 31, 32, 33, 40, 63, 64, 65, 100, 127, 128, 260, 600])
def test_a_row_among_many_is_reduced_as_one_alone(width, dtype, isa):
    """Rows that are reduced several at once have the sums and extremes of each by itself, those with a NaN or an infinity too."""
    random = np.random.default_rng(8)
    for rows in (1, 7, 8, 9, 75):
        x = np.round(random.standard_normal((rows, width)) * 100).astype(dtype)  # whole, so that their sums are exact
        if x.dtype.kind == "f":
            x[rows // 2, width // 2] = np.nan
            x[rows // 3, width - 1] = np.inf
            x[rows - 1, 0] = -np.inf
        exact = x.astype("f8") if x.dtype.kind == "f" else x
        for name, numpy in (("sum", exact.sum), ("amax", exact.max), ("amin", exact.min)):
            run = kernel(name)[0]
            found = run(x, dim=1)
            np.testing.assert_array_equal(found, numpy(1))
            np.testing.assert_array_equal(found, [run(one, dim=0) for one in x])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("columns", [1, 2, 15, 16, 17, 33, 63, 64, 65])
def test_few_columns_have_the_first_of_equal_extremes(columns, dtype, isa):
    """Of few columns, several rows of which are reduced as one, the first extreme counts and the first NaN, wherever rows are cut."""
    random = np.random.default_rng(8)
    for rows in (63, 64, 65, 72, 200, 4000):
        x = random.integers(-2, 3, (rows, columns)).astype(dtype)
        if x.dtype.kind == "f":
            x[random.integers(rows, size=3), columns // 2] = np.nan
        for name in ("max_dim", "min_dim"):
            run, numpy = kernel(name)
            for found, expected in zip(run(x, dim=0), numpy(x, dim=0), strict=True):
                np.testing.assert_array_equal(found, expected)
        found = kernel("sum")[0](x, dim=0)
        np.testing.assert_array_equal(found, x.sum(0, dtype=found.dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_short_rows_that_lie_apart(dtype, threads):
    """Diagonals, slices, flips and what is broadcast: the bits and shapes of the same values in row-major order, NaN included."""
    values = np.resize(awkward(dtype, 97), (1100, 6, 9)).astype(dtype)
    views = [
        np.diagonal(values, axis1=1, axis2=2),
        values[:, 0, 2:5],
        values[::-2, 1, ::-3],
        values[:, ::2, 4],
        values[:, :3, 1:3].swapaxes(1, 2),
        np.broadcast_to(values[:1, 0, :6:2], (700, 3)),
        values[:70, :, :1],
        values[:50, 0, ::2],
        values.swapaxes(0, 1)[:, :, 7],
    ]
    tc.set_num_threads(threads)
    for x in views:
        assert not x.flags.c_contiguous
        for name in ("sum", "mean", "amax", "amin", "argmax", "argmin", "max_dim", "min_dim", "prod"):
            for dim in range(x.ndim):
                for keep in (False, True):
                    run = kernel(name)[0]
                    got, expected = (run(one, dim=dim, keepdim=keep) for one in (x, np.ascontiguousarray(x)))
                    for one, other in zip(
                        *[made if type(made) is tuple else (made,) for made in (got, expected)], strict=True
                    ):
                        assert (one.dtype, one.shape, one.flags.c_contiguous) == (other.dtype, other.shape, True)
                        np.testing.assert_array_equal(one, other, err_msg=f"{name} {x.shape} {dim}")


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "uint8"])
def test_long_rows_that_lie_apart(dtype):
    """Rows and columns of slices, each row, all of them, and those of several dims, have the values of a copy, with NaN and without."""
    values = np.resize(awkward("float32", 97), (6, 40, 300))
    values = (values if dtype == "float32" else np.nan_to_num(values).clip(0, 3)).astype(getattr(tc, dtype).numpy)
    slices = [
        values[0, ::2],
        values[0, :, 7:-5],
        values[0, ::-1],
        values[1:, ::2],
        values[::2, :, 100:],
        values[:, :1, 9:],
    ]
    for lies in slices:
        plain = lies.copy()
        for name in (
            ("any", "count_nonzero") if dtype == "bool" else ("sum", "amax", "amin", "argmax", "max_dim", "any", "prod")
        ):
            native = kernel(name)[0]
            for dim in (
                (-1 % lies.ndim,) if name in ("argmax", "max_dim") else (lies.ndim - 1, tuple(range(lies.ndim)), 0)
            ):
                got, expected = native(lies, dim=dim), native(plain, dim=dim)
                for one, wanted in zip(
                    *[made if isinstance(made, tuple) else (made,) for made in (got, expected)], strict=True
                ):
                    assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape)
                    rtol = 1e-2 if dtype == "bfloat16" else 1e-5
                    with np.errstate(over="ignore"):
                        np.testing.assert_allclose(one.astype("float64"), wanted.astype("float64"), rtol=rtol)
