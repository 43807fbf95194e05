"""Reductions, scans and sorting: literal results, and what PyTorch answers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

ARRAYS = {
    "contiguous": np.linspace(-2, 2, 24).reshape(2, 3, 4),
    "transposed": np.linspace(-2, 2, 24).reshape(4, 3, 2).T,
    "expanded": np.broadcast_to(np.array([[1.5], [-0.5]]), (2, 3)),
    "0-d": np.array(1.25),
    "nan and inf": np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, 0.0]]),
    "ties": np.array([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]]),
    "zeros": np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]]),
}
OVER_ONE = ["sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "all", "any", "nansum", "nanmean", "var", "std",
            "logsumexp", "count_nonzero", "max", "min", "median", "nanmedian", "cumsum", "cumprod", "cummax", "cummin",
            "logcumsumexp", "sort", "norm"]  # fmt: skip


def both(torch: Any, array: np.ndarray, **options: Any) -> tuple[Any, Any]:
    """The array as a tensor of PyTorch and as one of ours."""
    copied = np.array(array)
    return torch.tensor(copied, **options), tc.tensor(copied, **options)


def numbers(tensor: Any) -> np.ndarray:
    """Values that NumPy can compare."""
    return np.array(tensor.detach().tolist(), dtype=float)


def assert_same(ours: Any, theirs: Any) -> None:
    """Fail unless two results have the same structure, dtypes, shapes and values."""
    ours, theirs = (one if isinstance(one, tuple) else (one,) for one in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype) == str(b.dtype)
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-12, atol=1e-12)


def test_sum_of_integers_is_int64() -> None:
    """Small integers are summed without overflow."""
    made = tc.tensor([100, 100, 100], dtype=tc.int8).sum()
    assert (made.item(), made.dtype) == (300, tc.int64)


def test_sum_over_no_elements_is_zero_and_the_product_one() -> None:
    """Empty sums and products have their neutral elements, empty means none."""
    empty = tc.zeros(0)
    assert (empty.sum().item(), empty.prod().item()) == (0.0, 1.0)
    assert np.isnan(empty.mean().item())


def test_the_mean_of_no_complex_numbers_is_nan_in_both_parts() -> None:
    """Nothing divided by nothing is no number, in the real part and the imaginary one."""
    for made in (tc.zeros(0, dtype=tc.complex64).mean(), *tc.zeros((0, 3), dtype=tc.complex128).mean(0)):
        assert (math.isnan(made.real), math.isnan(made.imag)) == (True, True)


def test_empty_dims_mean_all() -> None:
    """``dim=[]`` reduces everything."""
    assert tc.tensor([[1.0, 2.0]]).sum([]).item() == 3.0


def test_numpy_names_work() -> None:
    """``axis`` and ``keepdims`` stand for ``dim`` and ``keepdim``."""
    assert tc.tensor([[1.0, 2.0]]).sum(axis=1, keepdims=True).tolist() == [[3.0]]
    assert tc.tensor([[1.0, 2.0]]).argmax(axis=1).tolist() == [1]


ALONG = {
    "squeeze": lambda t, x: x.squeeze(axis=0),
    "squeeze_": lambda t, x: x.clone().squeeze_(axis=(0, 1)),
    "unsqueeze": lambda t, x: t.unsqueeze(x, axis=-1),
    "unsqueeze_": lambda t, x: x.clone().unsqueeze_(axis=1),
    "no dim at all": lambda t, x: x.unsqueeze(),
    "stack": lambda t, x: t.stack([x, x], axis=1),
    "a dim that is not there": lambda t, x: t.stack([x, x], axis=7),
    "cat": lambda t, x: t.cat([x, x], axis=1),
    "concat": lambda t, x: t.concat([x, x], axis=1),
    "chunk": lambda t, x: x.chunk(2, axis=1)[1],
    "unbind": lambda t, x: x.unbind(axis=1)[2],
    "linalg.norm": lambda t, x: t.linalg.norm(x, axis=1, keepdims=True),
    "vector_norm": lambda t, x: t.linalg.vector_norm(x, axis=(0, 1)),
    "matrix_norm": lambda t, x: t.linalg.matrix_norm(x, axis=(1, 0)),
}


@pytest.mark.parametrize("what", ALONG)
def test_numpys_name_of_a_dim(what: str, torch: Any) -> None:
    """Where programs name a dim, ``axis`` names it too, as in PyTorch."""
    made = []
    for t in (tc, torch):
        try:
            made.append(numbers(ALONG[what](t, t.tensor([[1.0, 2.0, 3.0]]))).tolist())
        except (IndexError, TypeError) as error:
            made.append(next(one for one in (IndexError, TypeError) if isinstance(error, one)))
    assert made[0] == made[1]


def test_half_sums_are_accumulated_in_float32() -> None:
    """4096 ones sum to 4096 in float16, where adding one by one would stop at 2048."""
    assert tc.ones(4096, dtype=tc.float16).sum().item() == 4096.0
    assert tc.ones(4096, dtype=tc.bfloat16).sum().item() == 4096.0


def test_logsumexp_of_complex_numbers_keeps_the_angle_within_a_turn() -> None:
    """The imaginary part is that of a logarithm, from -pi to pi, whatever the angles of what is added."""
    made = tc.logsumexp(tc.tensor([100 + 20j, 100 + 20j], dtype=tc.complex128), 0).item()
    assert made == pytest.approx(100 + math.log(2) + (20 - 6 * math.pi) * 1j, rel=1e-12)


def test_long_sums_over_the_outer_dim_stay_exact() -> None:
    """The error of a float32 sum down a column is that of a pairwise sum, not of adding row by row."""
    values = np.full((1 << 18, 4), 0.1, np.float32)
    made = tc.tensor(values).sum(0).numpy()
    np.testing.assert_allclose(made, values.astype(np.float64).sum(0), rtol=1e-6)


def test_max_along_a_dim_is_a_named_tuple() -> None:
    """Values and indices by name and by position."""
    made = tc.tensor([[1.0, 3.0], [4.0, 2.0]]).max(1)
    assert (made.values.tolist(), made.indices.tolist()) == ([3.0, 4.0], [1, 0])
    assert made[0] is made.values


def test_max_of_two_tensors_is_their_maximum() -> None:
    """The form with another tensor compares pairs."""
    assert tc.max(tc.tensor([1.0, 4.0]), tc.tensor([3.0, 2.0])).tolist() == [3.0, 4.0]


def test_gradient_of_max_is_shared_among_ties() -> None:
    """Equal largest elements get equal parts of the gradient."""
    x = tc.tensor([2.0, 1.0, 2.0], requires_grad=True)
    x.max().backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def test_gradient_of_prod_where_elements_are_zero() -> None:
    """One zero leaves a gradient in its place, and there alone."""
    x = tc.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [0.0, 6.0, 0.0]


def test_gradient_of_sum_is_memory_of_its_own() -> None:
    """Two leaves that got the gradient of one sum do not share it."""
    x = tc.ones(1, requires_grad=True)
    g = tc.tensor(1.0)
    x.sum().backward(g)
    with tc.no_grad():
        x.grad.add_(1.0)
    assert g.item() == 1.0


def test_out_takes_the_result() -> None:
    """``out=`` is filled and returned."""
    out = tc.zeros(2)
    assert tc.sum(tc.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, out=out) is out
    assert out.tolist() == [3.0, 7.0]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tc.arange(3).mean(), RuntimeError),
        (lambda: tc.zeros(0).max(), RuntimeError),
        (lambda: tc.zeros(0).max(0), IndexError),
        (lambda: tc.zeros(0).amax(), RuntimeError),
        (lambda: tc.zeros(0).argmax(), IndexError),
        (lambda: tc.zeros(2).sum(1), IndexError),
        (lambda: tc.zeros(2, 2).sum((0, 0)), RuntimeError),
        (lambda: tc.zeros(3).topk(4), RuntimeError),
        (lambda: tc.zeros(3).kthvalue(0), RuntimeError),
        (lambda: tc.arange(3).var(), RuntimeError),
        (lambda: tc.arange(3).norm(), RuntimeError),
        (lambda: tc.zeros(2, 2).prod((0, 1)), TypeError),
        (lambda: tc.zeros(2, dtype=tc.complex64).max(), NotImplementedError),
    ],
)
def test_errors_are_those_of_pytorch(call: Any, error: type[Exception]) -> None:
    """The exception that PyTorch raises in that place."""
    with pytest.raises(error):
        call()


def test_sort_puts_nan_last_and_keeps_the_order_of_ties() -> None:
    """NaN counts as the largest number, also in descending order."""
    x = tc.tensor([2.0, float("nan"), 1.0, 2.0])
    assert x.sort().indices.tolist() == [2, 0, 3, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 0, 3, 2]


def test_topk_of_many_is_sorted() -> None:
    """The largest come first, the smallest do with ``largest=False``."""
    x = tc.arange(1000.0)
    assert x.topk(3).values.tolist() == [999.0, 998.0, 997.0]
    assert x.topk(2, largest=False).indices.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(30, 2), (9, 3, 2), (1, 4), (40, 40)])
def test_unique_rows_are_in_the_order_of_their_elements(shape, dtype) -> None:
    """Along any dim the slices come in order, the first element counting most: negative ones first, zeros of both signs as one."""
    values = (np.random.default_rng(8).standard_normal(shape) * 2).round()
    values = (np.abs(values) if dtype in ("uint8", "bool") else values).astype(dtype)
    if dtype.startswith("float"):
        values.reshape(-1)[::7] = -np.inf
    elif dtype != "bool":
        values.reshape(-1)[::7], values.reshape(-1)[3::7] = np.iinfo(dtype).min, np.iinfo(dtype).max
    for dim in range(len(shape)):
        found, inverse, counts = tc.tensor(values).unique(return_inverse=True, return_counts=True, dim=dim)
        rows = [tuple(row.ravel().tolist()) for row in np.moveaxis(values, dim, 0)]
        distinct = sorted(set(rows))
        assert [tuple(row.ravel().tolist()) for row in np.moveaxis(found.numpy(), dim, 0)] == distinct
        assert inverse.tolist() == [distinct.index(row) for row in rows]
        assert counts.tolist() == [rows.count(row) for row in distinct]


def test_unique_gives_inverse_and_counts() -> None:
    """Distinct values in order, the place of each element among them, and how often each occurs."""
    values, inverse, counts = tc.tensor([3, 1, 3]).unique(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0, 1], [1, 2])


def test_median_is_the_lower_middle_element() -> None:
    """Of an even number of elements the smaller of the two in the middle."""
    assert tc.tensor([4.0, 1.0, 3.0, 2.0]).median().item() == 2.0


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "float32"])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_median_of_nothing(torch: Any, name: str, dtype: str) -> None:
    """NaN, and of integers what their cast makes of it, as in PyTorch."""
    expected, found = (getattr(of, name)(of.empty(0, dtype=getattr(of, dtype))) for of in (torch, tc))
    assert str(found.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(found.item(), expected.item())


@pytest.mark.oracle
@pytest.mark.parametrize("name", OVER_ONE)
@pytest.mark.parametrize("layout", ARRAYS)
def test_values_and_gradients_are_pytorchs(name: str, layout: str, torch: Any) -> None:
    """Results, indices, first and second gradients along each dim, and over all where the op can."""
    theirs, ours = both(torch, ARRAYS[layout], requires_grad=True)
    dims = [*range(-theirs.ndim, theirs.ndim)] or [0, -1]
    needs_dim = name.startswith(("cum", "logcum", "logsum", "sort"))
    for args in [*([] if needs_dim else [()]), *[(dim,) for dim in dims]]:
        args = ("fro", *args) if name == "norm" and args else args
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, got = getattr(theirs, name)(*args), getattr(ours, name)(*args)
        assert_same(got, expected)
        first, mine = (one[0] if isinstance(one, tuple) else one for one in (expected, got))
        assert mine.requires_grad == first.requires_grad
        if not first.requires_grad or layout == "nan and inf":
            continue
        (g,) = torch.autograd.grad((first * first).sum(), theirs, create_graph=True)
        (h,) = tc.autograd.grad((mine * mine).sum(), ours, create_graph=True)
        np.testing.assert_allclose(numbers(h), numbers(g), rtol=1e-9, atol=1e-10, err_msg=f"{name}{args}")
        if name in ("norm", "logcumsumexp") and layout in ("ties", "zeros"):
            continue  # PyTorch's second derivatives there are NaN, or those of a masked logarithm
        (g2,) = torch.autograd.grad((g * g).sum(), theirs, allow_unused=True)
        (h2,) = tc.autograd.grad((h * h).sum(), ours, allow_unused=True)
        np.testing.assert_allclose(numbers(h2), numbers(g2), rtol=1e-8, atol=1e-9, err_msg=f"second {name}{args}")


@pytest.mark.oracle
@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, float("inf"), -float("inf"), "fro"])
def test_norms_are_pytorchs(p: Any, torch: Any) -> None:
    """Every order of norm and its gradient, also where a row is zero."""
    theirs, ours = both(torch, np.array([[1.0, -2.0, 3.0], [0.0, 0.0, 0.0]]), requires_grad=True)
    if p == -float("inf"):
        theirs, ours = both(torch, np.array([[1.0, -2.0, 3.0]]), requires_grad=True)
    expected, got = theirs.norm(p, 1), ours.norm(p, 1)
    assert_same(got, expected)
    (g,), (h,) = torch.autograd.grad(expected.sum(), theirs), tc.autograd.grad(got.sum(), ours)
    np.testing.assert_allclose(numbers(h), numbers(g), rtol=1e-9, atol=1e-10)


@pytest.mark.oracle
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_variances_are_pytorchs(correction: int, torch: Any) -> None:
    """Variance and mean with every correction, several dims, and dims that stay."""
    theirs, ours = both(torch, ARRAYS["contiguous"])
    for dim in (None, 0, (0, 2), (-1, 1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = torch.var_mean(theirs, dim=dim, correction=correction, keepdim=True)
            assert_same(tc.var_mean(ours, dim=dim, correction=correction, keepdim=True), expected)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32"])
def test_dtypes_of_results_are_pytorchs(dtype: str, torch: Any) -> None:
    """Every dtype gives the dtype and the value that PyTorch gives."""
    theirs = torch.tensor([[1, 0, 2], [3, 1, 1]], dtype=getattr(torch, dtype))
    ours = tc.tensor([[1, 0, 2], [3, 1, 1]], dtype=getattr(tc, dtype))
    for name in ("sum", "prod", "amax", "amin", "all", "any", "nansum", "count_nonzero", "max", "min"):
        assert_same(getattr(ours, name)(), getattr(theirs, name)())
    for name in ("cumsum", "cumprod", "cummax"):
        assert_same(getattr(ours, name)(1), getattr(theirs, name)(1))


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_spread_and_mean_are_a_plain_pair(name: str) -> None:
    """A tuple without names, as PyTorch's."""
    assert type(getattr(tc, name)(tc.ones(3))) is tuple


def test_running_sums_of_exponentials_of_complex_rows() -> None:
    """A row of complex numbers is summed as the lines of a matrix are."""
    row = tc.tensor([0.5 + 1.0j, -1.0 + 0.25j, 2.0 - 0.5j])
    expected = np.log(np.cumsum(np.exp(row.numpy())))
    np.testing.assert_allclose(tc.logcumsumexp(row, 0).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(tc.logcumsumexp(row[None], 1).numpy(), expected[None], rtol=1e-6)
