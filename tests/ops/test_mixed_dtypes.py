"""Elementwise calls of dtypes that their op does not compute in: what was asked once for such dtypes holds for these alone."""

import pytest

import tensorcore as torch


def test_a_function_of_integers_gives_the_default_dtype_of_the_moment():
    """What ``exp`` of integers gives follows the default dtype, also after it was asked before."""
    x = torch.tensor([0, 1])
    assert x.exp().dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert x.exp().dtype is torch.float64
        assert (x / 2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (x / 2).dtype is torch.float32


def test_a_tensor_without_dims_is_outranked_by_one_with_dims_only():
    """Of two dtypes of one kind, the one with dims wins, whichever pair of shapes came before."""
    x, other = torch.ones(2), torch.ones(2, dtype=torch.float64)
    assert (x + other).dtype is torch.float64
    assert (x + other[0]).dtype is torch.float32
    assert (x[0] + other[0]).dtype is torch.float64


def test_numbers_that_an_op_refuses_are_refused_after_others_were_taken():
    """Integers take small powers, and raise for negative ones and for numbers beyond their range."""
    x = torch.tensor([1, 2, 3], dtype=torch.uint8)
    assert (x**2).tolist() == [1, 4, 9]
    with pytest.raises(RuntimeError, match="negative integer powers"):
        x**-1
    assert (x + 1).dtype is torch.uint8
    assert x.clamp(max=2).tolist() == [1, 2, 2]
    assert (x.to(torch.int8) + -1).tolist() == [0, 1, 2]
    assert (x + -1).tolist() == [0, 1, 2]
    assert x.to(torch.int8).clamp(-1, 1).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="overflow"):
        x.clamp(max=300)


def test_gradients_pass_through_an_op_of_two_dtypes():
    """The gradient of a floating operand beside integers has its own dtype, and the integers have none."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (torch.tensor([3, 4]) * x).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert x.grad.dtype is torch.float32
