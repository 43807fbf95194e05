"""Elementwise ops: what they promise, with small literal values."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorcore as torch
from tensorcore.ops.define import OPS
from tensorcore.ops.kinds import composite

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def leaf(*numbers):
    """A leaf in double precision."""
    return torch.tensor(list(numbers), dtype=torch.float64).requires_grad_()


def test_int_number_beside_floats():
    """An int beside a floating tensor takes the tensor's dtype."""
    made = torch.tensor([1.5, 2.0]) * 2
    assert made.dtype is torch.float32
    assert made.tolist() == [3.0, 4.0]


def test_float_number_beside_ints():
    """A float beside integers makes the default floating dtype, on either side."""
    made = 0.5 + torch.tensor([1, 2])
    assert made.dtype is torch.float32
    assert made.tolist() == [1.5, 2.5]


def test_large_int_wraps():
    """A number beyond the dtype wraps around as PyTorch's does."""
    assert (torch.tensor([1, 250], dtype=torch.uint8) + 300).tolist() == [45, 38]


def test_reflected_operators():
    """Numbers may stand on the left of every operator."""
    x = torch.tensor([2.0, 4.0])
    assert (1 - x).tolist() == [-1.0, -3.0]
    assert (8 / x).tolist() == [4.0, 2.0]
    assert (9 // x).tolist() == [4.0, 2.0]
    assert (9 % x).tolist() == [1.0, 1.0]
    assert (2**x).tolist() == [4.0, 16.0]


def test_foreign_operands_get_their_turn():
    """An operand of an unknown class may answer the operator itself."""

    class Other:
        def __radd__(self, left):
            return "answered"

    assert torch.tensor([1.0]) + Other() == "answered"
    assert (torch.tensor([1.0]) == "a") is False
    with pytest.raises(TypeError, match="unsupported operand"):
        torch.tensor([1.0]) + None


def test_foreign_operands_of_a_product_get_their_turn():
    """A linear operator's own ``__rmatmul__`` is asked, and a class that listens to functions hears of ``@`` and ``+``."""

    class Operator:
        def __rmatmul__(self, other):
            return "mine"

    class Listener:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__

        def __radd__(self, other):
            raise AssertionError

    x = torch.ones(2)
    assert x @ Operator() == "mine"
    assert (x @ Listener(), x + Listener()) == ("matmul", "add")
    with pytest.raises(TypeError, match="unsupported operand"):
        x @ "text"
    with pytest.raises(TypeError, match="expected two Tensors, got int"):
        x @ 3


def test_nothing_is_divided_by_zero_where_there_is_nothing():
    """Without elements a 0 to divide by is no error, of a number or a tensor; with some it is."""
    empty = torch.zeros(0, dtype=torch.int32)
    for zero in (0, torch.tensor([0], dtype=torch.int32)):
        for quotient in (
            empty // zero,
            empty % zero,
            torch.fmod(empty, zero),
            torch.div(empty, zero, rounding_mode="trunc"),
        ):
            assert (quotient.shape, quotient.dtype) == ((0,), torch.int32)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            torch.ones(1, dtype=torch.int32) // zero


def test_a_complex_weight_between_real_tensors_is_refused():
    """``lerp`` of real tensors has a real result."""
    with pytest.raises(RuntimeError, match="cannot be converted"):
        torch.lerp(torch.ones(2), torch.zeros(2), 1 + 2j)
    assert torch.lerp(torch.ones(2), torch.zeros(2), 0.25).tolist() == [0.75, 0.75]


def test_alpha():
    """``add`` and ``sub`` scale their second operand by alpha, in place too."""
    x = torch.tensor([1.0, 2.0])
    assert torch.add(x, x, alpha=2).tolist() == [3.0, 6.0]
    assert x.sub(1, alpha=3).tolist() == [-2.0, -1.0]
    assert x.add_(x, alpha=0.5).tolist() == [1.5, 3.0]
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        torch.add(torch.tensor([1]), 1, alpha=2.5)


def test_division_of_integers():
    """Division of integers is true unless it is rounded, and rounded it refuses a zero."""
    x = torch.tensor([7, -7])
    assert (x / 2).tolist() == [3.5, -3.5]
    assert torch.div(x, 2, rounding_mode="trunc").tolist() == [3, -3]
    assert (x // 2).tolist() == [3, -4]
    for function in (torch.floor_divide, torch.remainder, torch.fmod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            function(x, torch.tensor([1, 0]))


def test_bools_refuse_minus():
    """Bools have neither difference nor negative; the error says what to use."""
    mask = torch.tensor([True, False])
    for call in (lambda: mask - mask, lambda: 1 - mask, lambda: -mask):
        with pytest.raises(RuntimeError, match="~"):
            call()
    assert (~mask).tolist() == [False, True]


def test_negative_power_of_integers():
    """Integers refuse a negative number as exponent, and cut the result off for a tensor of them."""
    with pytest.raises(RuntimeError, match="negative integer powers"):
        torch.tensor([1, 2]) ** -1
    assert (torch.tensor([1, 2, -1]) ** torch.tensor([-1, -1, -3])).tolist() == [1, 0, -1]


def test_failed_write_changes_nothing():
    """An in-place call that raises leaves its tensor as it was."""
    x = torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.mul_(2.5)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x //= 0
    assert x.tolist() == [1, 2]


def test_out():
    """``out=`` is written and returned, and takes the result's shape where it was empty."""
    out = torch.empty(0)
    assert torch.exp(torch.tensor([0.0]), out=out) is out
    assert out.tolist() == [1.0]


def test_where_hides_the_other_branch():
    """NaN in the branch that was not taken reaches neither value nor gradient."""
    x = leaf(1.0, -1.0)
    made = torch.where(x > 0, x.log(), torch.zeros_like(x))
    made.sum().backward()
    assert made.tolist() == [0.0, 0.0]
    assert x.grad.tolist() == [1.0, 0.0]
    y = leaf(2.0, 3.0)
    torch.where(torch.tensor([True, False]), y, math.nan).sum().backward()
    assert y.grad.tolist() == [1.0, 0.0]


def test_where_of_numbers():
    """Two numbers to choose from give the default dtype of their kind."""
    mask = torch.tensor([True, False])
    assert torch.where(mask, 1, 2).dtype is torch.int64
    assert torch.where(mask, 1.0, 2).tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="boolean tensor"):
        torch.where(torch.tensor([1]), 1, 2)


def test_maximum_shares_the_gradient_of_a_tie():
    """Equal operands get half of the gradient each."""
    a, b = leaf(1.0, 5.0), leaf(1.0, 2.0)
    torch.maximum(a, b).sum().backward()
    assert a.grad.tolist() == [0.5, 1.0]
    assert b.grad.tolist() == [0.5, 0.0]


def test_clamp_keeps_the_gradient_at_its_bounds():
    """An element on a bound still gets the gradient, one beyond does not."""
    x = leaf(-1.0, 0.0, 1.0, 2.0)
    x.clamp(0, 1).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]
    with pytest.raises(RuntimeError, match="At least one"):
        x.clamp()


def test_abs_at_zero():
    """The gradient of abs at 0 is 0."""
    x = leaf(0.0, -2.0)
    abs(x).sum().backward()
    assert x.grad.tolist() == [0.0, -1.0]


def test_inplace_write_is_recorded():
    """An in-place op on a result is part of the history."""
    x = leaf(1.0, 2.0)
    y = x * 1
    y *= 3
    y.exp_()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.exp([3.0, 6.0]))


def test_inplace_activation():
    """``inplace=True`` writes over the input and returns it."""
    x = torch.tensor([-1.0, 2.0])
    assert torch.nn.functional.leaky_relu(x, 0.5, inplace=True) is x
    assert x.tolist() == [-0.5, 2.0]


def test_round_to_the_even_neighbour():
    """Halves go to the even digit, at any decimal place."""
    assert torch.round(torch.tensor([0.5, 1.5, 2.5])).tolist() == [0.0, 2.0, 2.0]
    assert torch.round(torch.tensor([123.0]), decimals=-1).tolist() == [120.0]


def test_real_and_imag_share_memory():
    """The parts of a complex tensor are views of it."""
    z = torch.tensor([1 + 2j, 3j])
    z.imag.zero_()
    assert z.tolist() == [1 + 0j, 0j]
    assert torch.view_as_real(z).tolist() == [[1.0, 0.0], [0.0, 0.0]]
    z.real = torch.tensor([5.0, 6.0])
    assert z.tolist() == [5 + 0j, 6 + 0j]


def test_view_as_complex_shows_the_same_memory():
    """Pairs seen as complex numbers keep their memory, at an offset too."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    z = torch.view_as_complex(x.narrow(0, 1, 2))
    assert z.tolist() == [3 + 4j, 5 + 6j]
    z.mul_(2)
    assert x.tolist() == [[1.0, 2.0], [6.0, 8.0], [10.0, 12.0]]
    with pytest.raises(RuntimeError, match="size 2"):
        torch.view_as_complex(torch.tensor([1.0]))


def test_write_through_a_part_is_recorded():
    """A write to the imaginary part of a result goes into the gradient of the whole."""
    z = torch.tensor([1 + 2j]).requires_grad_()
    w = z * 1
    w.imag.mul_(3)
    (w.real + w.imag).sum().backward()
    assert z.grad.tolist() == [1 + 3j]


def test_isclose():
    """Closeness is relative to the second operand; NaN is close only if asked for."""
    a, b = torch.tensor([1.0, math.nan, math.inf]), torch.tensor([1.000001, math.nan, math.inf])
    assert torch.isclose(a, b).tolist() == [True, False, True]
    assert torch.allclose(a, b, equal_nan=True)
    assert not torch.equal(a, b)


def test_erf_is_accurate():
    """The error functions keep all digits, those of erfc in its tail too."""
    x = torch.tensor([0.1, 1.0, 2.0, 3.0, 5.0] * 20, dtype=torch.float64)
    np.testing.assert_allclose(x.erf().numpy(), [math.erf(one) for one in x.tolist()], rtol=4e-16)
    np.testing.assert_allclose(x.erfc().numpy(), [math.erfc(one) for one in x.tolist()], rtol=1e-15)
    np.testing.assert_allclose(x.lgamma().numpy(), [math.lgamma(one) for one in x.tolist()], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(torch.erfinv(x.erf() * 0.9).erf().numpy(), (x.erf() * 0.9).numpy(), rtol=1e-15)


def test_composite_is_one_node():
    """A composite with a formula leaves one node, named after it."""
    x = leaf(1.0, 2.0)
    made = torch.nn.functional.gelu(x)
    assert made.grad_fn.name() == "GeluBackward0"
    assert made.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"


def _triple(**kind):
    @composite(inputs="input", method=False, name="_triple_for_a_test", **kind)
    def triple(input, factor=3.0):
        """``factor`` times the input."""
        return input * factor

    del OPS["_triple_for_a_test"]  # the suites over all ops run in the same process
    return triple


def test_composite_runs_the_kernel_of_the_backend():
    """A backend's kernel of the composite's name is run in place of the function, with the options by name."""
    triple = _triple(grads=dict(input=lambda g, factor: g * factor))
    x = leaf(1.0)
    assert triple(x).tolist() == [3.0]
    kernels = x.device.kernels
    kernels["_triple_for_a_test"] = lambda native, *, factor: native * 0 + factor
    try:
        made = triple(x, factor=5.0)
    finally:
        del kernels["_triple_for_a_test"]
    made.backward(torch.tensor([1.0], dtype=torch.float64))
    assert made.tolist() == [5.0]
    assert x.grad.tolist() == [5.0]


def test_composite_without_formula_is_recorded_op_by_op():
    """An input that has no formula gets its gradient through the function's own ops."""
    x = leaf(2.0)
    made = _triple()(x)
    assert made.grad_fn.name() == "MulBackward0"
    made.backward(torch.tensor([1.0], dtype=torch.float64))
    assert x.grad.tolist() == [3.0]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradients_of_gated_halves(dim):
    """One node, whose first and second gradients are those of the halves' product; infinite gates shut or open both."""
    x = torch.arange(48, dtype=torch.float64).sin().reshape(4, 6, 2).requires_grad_()
    made = torch.nn.functional.glu(x, dim)
    assert made.grad_fn.name() == "GluBackward0"
    first, second = x.chunk(2, dim)
    torch.testing.assert_close(made, first * second.sigmoid())
    assert torch.autograd.gradcheck(lambda one: torch.nn.functional.glu(one, dim), x)
    assert torch.autograd.gradgradcheck(lambda one: torch.nn.functional.glu(one, dim), x)
    gates = leaf(3.0, 3.0, math.inf, -math.inf)
    torch.nn.functional.glu(gates).sum().backward()
    assert gates.grad.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_the_gradient_of_an_open_gate_keeps_its_digits():
    """The gate's gradient is what one less its share leaves, exactly, and infinite where what arrives is."""
    gates = torch.tensor([[1.0, 8.0], [1.0, 14.0], [3.0, 0.5]], requires_grad=True)
    torch.nn.functional.glu(gates, 1).backward(torch.tensor([[1.0], [1.0], [math.inf]]))
    assert gates.grad[:, 1].tolist() == pytest.approx(
        [0.00033522327430546284, 8.344643447344424e-07, math.inf], rel=1e-6
    )
