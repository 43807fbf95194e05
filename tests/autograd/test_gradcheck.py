"""gradcheck finds wrong backwards, and says where."""

from __future__ import annotations

import pytest

import tensorcore as t
from tensorcore.autograd import GradcheckError, gradcheck, gradgradcheck


class Wrong(t.autograd.Function):
    """x * k with a backward that forgets k."""

    @staticmethod
    def forward(ctx, x, k):
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g, None


def wrong(x):
    return x * 1.0, Wrong.apply(x, 3.0)


def double(*shape: int) -> t.Tensor:
    return (t.arange(6, dtype=t.float64) + 0.5).reshape(*shape).requires_grad_()


def test_the_error_names_output_input_and_both_matrices() -> None:
    """Output 1 is wrong: the numbers say 3, the backward says 1."""
    x = t.ones(1, dtype=t.float64, requires_grad=True)
    with pytest.raises(
        GradcheckError, match=r"(?s)output 1 of wrong with respect to input 0.*\[\[3.*analytical:\n\[\[1.*"
    ) as error:
        gradcheck(wrong, x)
    assert isinstance(error.value, RuntimeError)


def test_raise_exception_false_answers_false() -> None:
    """Then the answer is False."""
    assert gradcheck(wrong, double(6), raise_exception=False) is False


def test_every_input_and_output_is_checked() -> None:
    """Broadcast, several results, a number among the inputs."""
    assert gradcheck(
        lambda x, w, k: (x * w * k, (x / w).exp()), (double(2, 3), double(2, 3).detach().requires_grad_(), 0.5)
    )


def test_transposed_inputs_keep_their_strides() -> None:
    """The function sees strides as given."""
    seen = []
    x = t.ones(3, 2, dtype=t.float64).t().requires_grad_()
    assert gradcheck(lambda v: seen.append(v.stride()) or v * v, x)
    assert set(seen) == {(1, 2)}


def test_functions_that_write_to_copies_of_their_inputs() -> None:
    """In-place steps are checked like others, second derivatives too."""

    def function(x, w):
        y = x * 1.0
        y.narrow(0, 1, 1).mul_(w)
        y.select(0, 0).exp_()
        return y

    inputs = (double(2, 3), t.full((3,), 2.0, dtype=t.float64).requires_grad_())
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_complex_numbers_count_as_two() -> None:
    """The whole real Jacobian of a complex function is compared."""
    x = t.tensor([1 + 2j, 0.5 - 1j], dtype=t.complex128, requires_grad=True)
    w = t.tensor([2.0, 3.0], dtype=t.float64, requires_grad=True)
    assert gradcheck(lambda x, w: x * x * w, (x, w))
    assert gradgradcheck(lambda x, w: x * x * w, (x, w))


def test_a_wrong_second_derivative_is_found() -> None:
    """A backward that is right and cannot be differentiated rightly fails gradgradcheck alone."""

    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].detach() * 2.0

    x = double(6)
    assert gradcheck(Square.apply, x)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(Square.apply, x)


def test_a_backward_that_changes_is_found() -> None:
    """Two walks must give the same, up to ``nondet_tol``."""
    calls = []

    class Changing(t.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 1.0)

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * (1.0 + 1e-7 * len(calls))

    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Changing.apply, double(6))
    calls.clear()
    assert gradcheck(Changing.apply, double(6), nondet_tol=1e-3)


def test_single_precision_warns() -> None:
    """Differences of float32 numbers are mostly rounding."""
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2.0, t.ones(2, requires_grad=True), eps=1e-2, atol=1e-2)


def test_undefined_gradients_count_as_zeros() -> None:
    """A backward that needs the gradient of each result to be there is found."""

    class Strict(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1.0, x * 2.0

        @staticmethod
        def backward(ctx, g, h):
            return None if g is None else g if h is None else g + h * 2.0

    x = double(6)
    with pytest.raises(GradcheckError):
        gradcheck(Strict.apply, x)


def test_expanded_inputs_are_refused() -> None:
    """One memory cell under two elements has no derivative of its own."""
    x = t.ones(1, dtype=t.float64).expand(3).requires_grad_()
    with pytest.raises(GradcheckError, match="memory of their own"):
        gradcheck(lambda v: v * 2.0, x)


def test_empty_inputs_pass() -> None:
    """There is nothing to be wrong."""
    assert gradcheck(lambda x: x * 2.0, t.ones(2, 0, dtype=t.float64, requires_grad=True))
