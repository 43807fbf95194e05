"""Pools, embeddings, paddings and resizing."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc
from tests.ops.oracle_nn import compare

POOLS = [
    f"{name}{ndim}d"
    for name in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")
    for ndim in (1, 2, 3)
]


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*POOLS, "embedding", "pad", "interpolate", "pixel_shuffle", "pixel_unshuffle"])
def test_ops_are_pytorchs(torch, name):
    """Values, gradients and second gradients of every sample are PyTorch's."""
    compare(torch, name)


@pytest.mark.oracle
@pytest.mark.parametrize("options", [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "dilation": 2, "stride": 1},
    {"kernel_size": (2, 3), "ceil_mode": True}, {"kernel_size": 3, "stride": 5, "ceil_mode": True, "padding": 1},
])  # fmt: skip
def test_max_pool_of_ties_and_nan(torch, options):
    """The first of equal values and NaN are found as PyTorch finds them: values, indices, gradients."""
    values = np.random.default_rng(8).integers(0, 3, (2, 3, 7, 8)).astype(np.float64)
    values[0, 1, 2, 3] = values[1, 2, 4, 4] = values[1, 2, 4, 5] = np.nan
    x, y = tc.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    a, i = tc.max_pool2d(x, **options, return_indices=True)
    b, j = torch.nn.functional.max_pool2d(y, **options, return_indices=True)
    assert np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True)
    assert np.array_equal(i.numpy(), j.numpy())
    a.backward(tc.ones(*a.shape, dtype=tc.float64))
    b.backward(torch.ones_like(b))
    assert np.array_equal(x.grad.numpy(), y.grad.numpy())


@pytest.mark.oracle
@pytest.mark.parametrize("options", [
    {"padding": 1, "count_include_pad": False}, {"padding": 1, "ceil_mode": True, "stride": 2}, {"divisor_override": 7},
    {"padding": 1, "ceil_mode": True, "stride": 2, "count_include_pad": False},
])  # fmt: skip
def test_avg_pool_divisors(torch, options):
    """Each window is divided by what PyTorch divides it by."""
    values = np.random.default_rng(8).standard_normal((2, 3, 6, 7))
    ours = tc.nn.functional.avg_pool2d(tc.tensor(values), 3, **options)
    theirs = torch.nn.functional.avg_pool2d(torch.tensor(values), 3, **options)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


@pytest.mark.oracle
def test_adaptive_max_pool_indices(torch):
    """Indices count within the input's channel."""
    values = np.random.default_rng(8).standard_normal((2, 3, 7, 5))
    _, ours = tc.nn.functional.adaptive_max_pool2d(tc.tensor(values), (3, 2), return_indices=True)
    _, theirs = torch.nn.functional.adaptive_max_pool2d(torch.tensor(values), (3, 2), return_indices=True)
    assert ours.tolist() == theirs.tolist()


def test_max_pool():
    """The largest of each window."""
    assert tc.max_pool1d(tc.tensor([[1.0, 3.0, 2.0, 5.0]]), 2).tolist() == [[3.0, 5.0]]


def test_max_unpool_puts_maxima_back():
    """What ``max_pool`` took goes back to where it was, zeros elsewhere."""
    made, at = tc.max_pool1d(tc.tensor([[1.0, 3.0, 2.0, 5.0]]), 2, return_indices=True)
    assert tc.nn.functional.max_unpool1d(made, at, 2).tolist() == [[0.0, 3.0, 0.0, 5.0]]


@pytest.mark.parametrize("size, options, text", [
    (4, {}, "too small"), (2, {"padding": 2}, "pad should be at most half"), (2, {"stride": 0}, "greater than zero"),
])  # fmt: skip
def test_pool_errors(size, options, text):
    """Windows that do not fit are RuntimeErrors."""
    with pytest.raises(RuntimeError, match=text):
        tc.max_pool2d(tc.ones(1, 1, 3, 3), size, **options)


def test_embedding_out_of_range():
    """A row that there is not is an IndexError."""
    with pytest.raises(IndexError, match="out of range"):
        tc.nn.functional.embedding(tc.tensor([5]), tc.ones(2, 2))


def test_embedding_of_floats():
    """Indices are integers."""
    with pytest.raises(RuntimeError, match="Long, Int"):
        tc.nn.functional.embedding(tc.tensor([0.5]), tc.ones(2, 2))


@pytest.mark.oracle
def test_embedding_max_norm(torch):
    """Rows that are asked for are scaled down in place, the others are left."""
    values = np.random.default_rng(8).standard_normal((5, 3)) * 3
    ours, theirs = tc.tensor(values), torch.tensor(values)
    x = tc.nn.functional.embedding(tc.tensor([1, 3]), ours, max_norm=1.0)
    y = torch.nn.functional.embedding(torch.tensor([1, 3]), theirs, max_norm=1.0)
    np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-9)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9)


def test_pad_order():
    """The first pair is the last dim's."""
    assert tc.nn.functional.pad(tc.tensor([[1.0]]), (1, 0, 0, 1)).tolist() == [[0.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("amounts, mode, error", [
    ((1, 1, 1), "constant", RuntimeError), ((-3, 0), "constant", RuntimeError), ((2, 2), "reflect", RuntimeError),
    ((3, 3), "circular", RuntimeError), ((1, 1), "wrong", NotImplementedError),
])  # fmt: skip
def test_pad_errors(amounts, mode, error):
    """Paddings that cannot be are errors of PyTorch's types."""
    with pytest.raises(error):
        tc.nn.functional.pad(tc.ones(1, 2, 2), amounts, mode)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_pad_that_leaves_nothing_of_a_dim(mode):
    """One dim may lose all of its elements while another one has some, as in PyTorch; the gradient is zeros."""
    x = tc.ones(1, 2, 3, 4, requires_grad=True)
    made = tc.nn.functional.pad(x, (1, 1, -2, -1), mode)
    made.sum().backward()
    assert (made.shape, x.grad.tolist()) == ((1, 2, 0, 6), tc.zeros(1, 2, 3, 4).tolist())
    with pytest.raises(RuntimeError, match="too small"):
        tc.nn.functional.pad(x, (-2, -2, -2, -1), mode)


@pytest.mark.parametrize("amounts", [(-1, 1), (1, -1), (-2, 1)])
def test_pad_around_nothing(amounts):
    """What is taken away cannot go around, and nothing else is left here."""
    with pytest.raises(RuntimeError, match="too small for circular"):
        tc.nn.functional.pad(tc.ones(1, 2, 1), amounts, "circular")


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_names_of_what_padding_records(torch, mode, dims):
    """A printed ``grad_fn`` says which padding it was."""
    ours, theirs = (
        one.nn.functional.pad(one.ones((1, 1) + (4,) * dims, requires_grad=True), (1, 1) * dims, mode).grad_fn.name()
        for one in (tc, torch)
    )
    assert ours == theirs.rpartition("::")[2]


def test_the_gradient_of_rows_without_features():
    """A table of no columns has a gradient of its shape."""
    for mode in ("sum", "mean", "max"):
        table = tc.ones(3, 0, requires_grad=True)
        tc.nn.functional.embedding_bag(tc.tensor([0, 1]), table, tc.tensor([0, 1]), mode=mode).sum().backward()
        assert table.grad.shape == (3, 0)
    table = tc.ones(3, 0, requires_grad=True)
    tc.nn.functional.embedding(tc.tensor([0, 1]), table).sum().backward()
    assert table.grad.shape == (3, 0)


@pytest.mark.oracle
@pytest.mark.parametrize("sizes, counts", [((9,), (4,)), ((5, 8), (7, 3)), ((4, 5, 6), (3, 5, 4))])
def test_uneven_adaptive_averages(torch, sizes, counts):
    """Windows of several lengths: values, gradients and second gradients are PyTorch's, and an infinity stays in its windows."""
    random = np.random.default_rng(8)
    values, sent = random.standard_normal((2, 3, *sizes)), random.standard_normal((2, 3, *counts))
    found = []
    for library in (tc, torch):
        x, g = library.tensor(values, requires_grad=True), library.tensor(sent, requires_grad=True)
        made = getattr(library.nn.functional, f"adaptive_avg_pool{len(sizes)}d")(x, counts)
        (back,) = library.autograd.grad(made, x, g, create_graph=True)
        (second,) = library.autograd.grad(back, g, x.detach())
        found.append([one.detach().numpy() for one in (made, back, second)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
    values[0, 0].flat[0] = np.inf
    pool = f"adaptive_avg_pool{len(sizes)}d"
    ours, theirs = (getattr(one.nn.functional, pool)(one.tensor(values), counts).numpy() for one in (tc, torch))
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(theirs))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["max_pool1d", "max_pool2d", "adaptive_max_pool2d", "max_pool3d"])
def test_a_pooled_value_may_be_written_over(torch, name):
    """A ReLU in place right after a max pool leaves the gradient what PyTorch makes it, in both orders of walking."""
    ndim = int(name[-2])
    values = np.random.default_rng(4).standard_normal((2, 3, *[6] * ndim))
    found = []
    for lib in (tc, torch):
        x = lib.tensor(values, requires_grad=True)
        pooled = getattr(lib.nn.functional, name)(x, 2)
        ((pooled.relu_() * 3) ** 2).sum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_array_equal(*found)
    with tc.autograd.forward_ad.dual_level():
        x = tc.autograd.forward_ad.make_dual(tc.tensor(values), tc.ones(*values.shape, dtype=tc.float64))
        assert tc.autograd.forward_ad.unpack_dual(getattr(tc.nn.functional, name)(x, 2).relu_()).tangent.max() == 1


def test_avg_pool3d_wants_a_window_that_fits_without_its_padding():
    """Unlike in one and two dims, the kernel may not be larger than the input, padded or not; as in PyTorch."""
    with pytest.raises(RuntimeError, match="smaller than kernel size"):
        tc.nn.functional.avg_pool3d(tc.ones(1, 1, 2, 2, 2), 3, padding=1)
    assert tc.nn.functional.avg_pool2d(tc.ones(1, 1, 2, 2), 3, padding=1).shape == (1, 1, 1, 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("indices", [False, True])
@pytest.mark.parametrize(
    ("name", "shape"), [("max_pool1d", (1, 2, 4)), ("max_pool2d", (1, 2, 4, 4)), ("max_pool3d", (1, 2, 2, 2, 2))]
)
def test_pools_of_the_largest_take_pytorchs_dtypes(name, shape, indices, dtype, torch):
    """No bools, and no integers along one dim unless their places are wanted too."""
    outcomes = []
    for library in (tc, torch):
        try:
            made = getattr(library.nn.functional, name)(
                library.ones(shape, dtype=getattr(library, dtype)), 2, return_indices=indices
            )
            outcomes.append(str(made[0].dtype if indices else made.dtype))
        except NotImplementedError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]
