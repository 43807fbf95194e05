"""Products of vectors and matrices."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc
from tests.ops.oracle_nn import compare

NAMES = (
    "matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "outer", "ger", "addmm", "addmv", "baddbmm", "addbmm", "addr",
    "linear", "bilinear", "kron", "matrix_power", "trace", "cross", "einsum", "tensordot",
)  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_products_are_pytorchs(torch, name):
    """Values, gradients and second gradients of every sample are PyTorch's."""
    compare(torch, name)


def test_matmul_operator():
    """``@`` multiplies matrices."""
    assert (tc.tensor([[1.0, 2.0], [3.0, 4.0]]) @ tc.tensor([[0.0, 1.0], [1.0, 0.0]])).tolist() == [
        [2.0, 1.0],
        [4.0, 3.0],
    ]


def test_matmul_of_vectors_is_0d():
    """The product of two vectors has no dims."""
    assert tc.matmul(tc.tensor([1.0, 2.0]), tc.tensor([3.0, 4.0])).shape == ()


def test_integer_matmul():
    """Integers multiply in their own dtype."""
    made = tc.tensor([[1, 2]]) @ tc.tensor([[3], [4]])
    assert made.tolist() == [[11]]
    assert made.dtype is tc.int64


@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16])
def test_half_matmul_adds_up_in_float32(dtype):
    """4096 ones add up to 4096, which no sum in 16 bits reaches from ones."""
    made = tc.ones(1, 4096, dtype=dtype) @ tc.ones(4096, 1, dtype=dtype)
    assert made.tolist() == [[4096.0]]
    assert made.dtype is dtype


@pytest.mark.parametrize("other", [2, 2.0, "x"])
def test_matmul_takes_tensors_only(other):
    """A number is a TypeError."""
    with pytest.raises(TypeError, match="Tensor"):
        tc.ones(2, 2) @ other


def test_matmul_of_two_dtypes():
    """Two dtypes are not promoted."""
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype"):
        tc.ones(2, 2) @ tc.ones(2, 2, dtype=tc.float64)


def test_matmul_of_shapes_that_do_not_fit():
    """The message names both shapes."""
    with pytest.raises(RuntimeError, match=r"2x3 and 2x3"):
        tc.ones(2, 3) @ tc.ones(2, 3)


def test_matmul_of_0d():
    """A 0-d tensor is no matrix."""
    with pytest.raises(RuntimeError, match="at least 1D"):
        tc.ones(2, 2) @ tc.tensor(1.0)


def test_matmul_of_bools():
    """Bools have no product."""
    with pytest.raises(RuntimeError, match="not implemented for bool"):
        tc.ones(2, 2, dtype=tc.bool) @ tc.ones(2, 2, dtype=tc.bool)


def test_addmm_with_beta_0_does_not_read_the_input():
    """NaN in an input that is scaled by 0 is not spread."""
    assert tc.addmm(tc.full((1, 1), float("nan")), tc.ones(1, 2), tc.ones(2, 1), beta=0).tolist() == [[2.0]]


def test_matmul_of_transposed_and_strided_batches():
    """Operands of any strides multiply as their copies do."""
    x = tc.arange(24.0).reshape(2, 3, 4)
    y = tc.arange(48.0).reshape(2, 4, 6)
    part = tc.narrow(y.permute(2, 0, 1), 0, 0, 5).permute(1, 2, 0)
    assert (x @ part).tolist() == (x @ part.contiguous()).tolist()


def test_einsum_names_a_wrong_letter():
    """A result's letter that no operand has is an error."""
    with pytest.raises(RuntimeError, match="output subscript k"):
        tc.einsum("ij->ik", tc.ones(2, 2))


def test_einsum_of_three_operands():
    """More than two operands are contracted in pairs."""
    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert tc.einsum("ij,jk,kl->il", x, x, x).tolist() == (x @ x @ x).tolist()


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 4, 3, 5), (2, 0, 5)])
@pytest.mark.parametrize("turned", ["neither", "input", "result"])
@pytest.mark.parametrize("frozen", ["nothing", "input", "weight", "bias"])
def test_linear_gradients_of_several_dims_in_front(shape, turned, frozen):
    """They are those of the rows in one dim, also where a layout does not allow to see them as such."""
    drawn = [np.random.default_rng(n).standard_normal(s) for n, s in enumerate((shape, (7, 5), (7,), (*shape[:-1], 7)))]
    names = ("input", "weight", "bias")
    leaves = [tc.tensor(one, requires_grad=name != frozen) for name, one in zip(names, drawn[:3], strict=True)]
    x, by = leaves[0], tc.tensor(drawn[3])
    if turned == "input":
        x = x.transpose(0, 1)
    made = tc.nn.functional.linear(x, *leaves[1:])
    if turned != "neither":
        by = by.transpose(0, 1)
    (made if turned == "input" else made.transpose(0, 1) if turned == "result" else made).backward(by)
    rows, sent = drawn[0].reshape(-1, 5), drawn[3].reshape(-1, 7)
    wanted = (drawn[3] @ drawn[1], sent.T @ rows, sent.sum(0))
    for name, leaf, value in zip(names, leaves, wanted, strict=True):
        if name == frozen:
            assert leaf.grad is None
        else:
            np.testing.assert_allclose(leaf.grad.numpy(), value, rtol=0, atol=1e-12)


def test_linear_gradient_of_a_frozen_weight():
    """Only who requires a gradient gets one."""
    x, w = tc.ones(1, 2, requires_grad=True), tc.tensor([[1.0, 2.0]])
    tc.nn.functional.linear(x, w, tc.zeros(1)).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0]]
    assert w.grad is None


def test_chain_matmul():
    """Several matrices multiply in any order to the same."""
    a, b, c = tc.ones(2, 3), tc.ones(3, 4), tc.ones(4, 1)
    assert tc.chain_matmul(a, b, c).tolist() == [[12.0], [12.0]]


def test_products_without_the_transposed_kernels():
    """A backend with ``matmul`` alone has all gradients."""
    x, y = tc.tensor([[1.0, 2.0]], requires_grad=True), tc.tensor([[3.0], [4.0]], requires_grad=True)
    table = x.device.kernels
    kept = {name: table[name] for name in ("matmul_nt", "matmul_tn")}
    try:
        table.update(dict.fromkeys(kept))
        (x @ y).sum().backward()
    finally:
        table.update(kept)
    assert x.grad.tolist() == [[3.0, 4.0]]
    assert y.grad.tolist() == [[1.0], [2.0]]


def test_a_cross_product_takes_no_bools() -> None:
    """It is refused as PyTorch refuses it, before a kernel is asked."""
    vectors = tc.ones(2, 3, dtype=tc.bool)
    with pytest.raises(NotImplementedError, match="\"cross\" not implemented for 'Bool'"):
        tc.cross(vectors, vectors, dim=1)


def test_tensordot_counts_dims_by_a_tensor_of_one() -> None:
    """A tensor of one number, also of one dim, says how many dims meet, as in PyTorch; a list of one is refused."""
    a, b = tc.ones(2, 3), tc.ones(3, 2)
    for dims in (tc.tensor(1), tc.tensor([1]), tc.tensor([[1], [0]])):
        assert tc.tensordot(a, b, dims=dims).tolist() == [[3.0, 3.0]] * 2
    with pytest.raises(RuntimeError):
        tc.tensordot(a, b, dims=[1])


def test_tensordot_over_a_stretched_dim_keeps_the_dtype() -> None:
    """Integers that meet a size of 1 stay of their dtype, as in PyTorch."""
    made = tc.tensordot(tc.ones(5, 2, dtype=tc.int8), tc.ones(1, 2, dtype=tc.int8), dims=([0, 1], [0, 1]))
    assert (made.dtype, made.item()) == (tc.int8, 10)


@pytest.mark.parametrize("recorded", [False, True])
def test_distances_that_count_differences_keep_nan(recorded):
    """Of p = 0 what is not 0 counts as one, and a difference that is no number leaves none."""
    x = tc.tensor([[0.0, 0.5, 0.0], [0.0, 3.0, -1.0], [float("nan"), 0.0, 0.0]], requires_grad=recorded)
    flat = tc.nn.functional.pdist(x, 0.0)
    assert str(flat.tolist()) == "[2.0, nan, nan]"
    assert str(tc.cdist(x, x[:2], p=0.0).tolist()) == "[[0.0, 2.0], [2.0, 0.0], [nan, nan]]"
    if recorded:
        flat[0].backward()
        assert x.grad[:2].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
