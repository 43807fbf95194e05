"""What ``autograd.functional`` refuses, and what it leaves on the tape."""

from __future__ import annotations

from typing import Any

import pytest

import tensorcore as tc
from tensorcore.autograd import functional, gradcheck, gradgradcheck

ONES = tc.ones(2)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: functional.jacobian(tc.sin, 3), TypeError, "either a Tensor or a tuple of Tensors"),
    (lambda: functional.jacobian(lambda x: 3, ONES), TypeError, "outputs of the user-provided function"),
    (lambda: functional.jacobian(tc.sin, ONES, strategy="sideways"), AssertionError, "Expected strategy"),
    (lambda: functional.jacobian(tc.sin, ONES, strategy="forward-mode"), NotImplementedError, "vectorize=True"),
    (lambda: functional.jacobian(tc.sin, ONES, strict=True, vectorize=True), RuntimeError, "not supported together"),
    (lambda: functional.jacobian(lambda x, y: x, (ONES, ONES), strict=True), RuntimeError, "independent of input 1"),
    (lambda: functional.jacobian(lambda x: ONES, ONES, strict=True), RuntimeError, "does not require gradients"),
    (lambda: functional.hessian(tc.sin, ONES), RuntimeError, "single element"),
    (lambda: functional.hessian(lambda x: x.sum(), ONES, strict=True), RuntimeError, "independent of the input"),
    (lambda: functional.vjp(tc.sin, ONES), RuntimeError, "v can only be None"),
    (lambda: functional.vjp(tc.sin, ONES, tc.ones(3)), RuntimeError, "invalid size"),
    (lambda: functional.jvp(tc.sin, ONES), RuntimeError, "v can only be None"),
    (lambda: functional.jvp(lambda x, y: x, (ONES, ONES), (ONES,)), RuntimeError, "invalid length"),
    (lambda: functional.vhp(tc.sin, ONES, ONES), RuntimeError, "single element"),
    (lambda: functional.hvp(lambda x: x.sum(), ONES, ONES, strict=True), RuntimeError, "independent of the input"),
])  # fmt: skip
def test_wrong_call_is_refused(call: Any, error: type[Exception], message: str) -> None:
    """The exceptions are PyTorch's, and say what was expected."""
    with pytest.raises(error, match=message):
        call()


def test_result_is_on_the_tape_only_when_asked() -> None:
    """With ``create_graph`` a Jacobian can be differentiated further, without it nothing is left."""
    x = tc.tensor([1.0, 2.0], requires_grad=True)
    assert not functional.jacobian(lambda x: x**2, x).requires_grad
    made = functional.jacobian(lambda x: x**2, x, create_graph=True)
    assert tc.autograd.grad(made.sum(), x)[0].tolist() == [2.0, 2.0]


def test_gradcheck_checks_forward_mode_and_vmap() -> None:
    """A function whose derivatives are right passes every check, of real and of complex numbers."""
    x = tc.tensor([0.3, -0.7], dtype=tc.float64, requires_grad=True)
    z = tc.tensor([0.3 + 1j, -0.7 + 2j], dtype=tc.complex128, requires_grad=True)
    every = dict(check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradcheck(lambda x, z: (x.sin() * z.abs(), z * z.conj() * x.sum()), (x, z), **every)
    assert gradgradcheck(lambda x: x.exp().prod(), (x,), check_fwd_over_rev=True, check_batched_grad=True)


def test_gradcheck_finds_a_wrong_jvp() -> None:
    """A Function whose backward is right and whose jvp is wrong fails the forward check alone."""

    class Wrong(tc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tc.Tensor) -> tc.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tc.Tensor) -> tc.Tensor:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: tc.Tensor) -> tc.Tensor:
            return t * 3

    x = tc.ones(2, dtype=tc.float64, requires_grad=True)
    assert gradcheck(Wrong.apply, (x,))
    with pytest.raises(RuntimeError, match="forward mode mismatch"):
        gradcheck(Wrong.apply, (x,), check_forward_ad=True)
    assert not gradcheck(Wrong.apply, (x,), check_forward_ad=True, raise_exception=False)


def test_batch_of_gradients_is_one_walk() -> None:
    """``is_grads_batched`` runs each formula once, for all gradients together."""
    calls = []

    class Counted(tc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tc.Tensor) -> tc.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tc.Tensor) -> tc.Tensor:
            calls.append(tuple(g.shape))
            return g * 2

    x = tc.ones(3, requires_grad=True)
    found = tc.autograd.grad(Counted.apply(x), x, tc.eye(3), is_grads_batched=True)
    assert found[0].tolist() == (tc.eye(3) * 2).tolist()
    assert calls == [(3,)]
