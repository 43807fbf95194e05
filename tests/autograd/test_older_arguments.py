"""Arguments of grad and backward that older programs pass, and dicts of inputs."""

from __future__ import annotations

import pytest

import tensorcore as tc


def test_only_inputs_has_its_place():
    """grad takes only_inputs, by keyword and as the sixth argument; False warns and changes nothing."""
    x = tc.tensor(3.0, requires_grad=True)
    assert tc.autograd.grad(x * x, x, None, False, False, True, True)[0].item() == 6.0
    with pytest.warns(FutureWarning, match="only_inputs"):
        assert tc.autograd.grad(outputs=x * x, inputs=x, only_inputs=False)[0].item() == 6.0


def test_a_dict_of_inputs_gives_a_dict():
    """The gradients have the inputs' keys."""
    x, y = tc.tensor(3.0, requires_grad=True), tc.tensor(2.0, requires_grad=True)
    found = tc.autograd.grad(x * y, {"x": x, "y": y})
    assert {name: one.item() for name, one in found.items()} == {"x": 2.0, "y": 3.0}
    tc.autograd.backward(x * y, inputs={"x": x})
    assert x.grad.item() == 2.0
    assert y.grad is None


def test_grad_variables_is_the_old_name():
    """backward takes grad_variables with a warning, and not beside grad_tensors."""
    x = tc.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="grad_variables"):
        tc.autograd.backward(x * 2, grad_variables=tc.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both"):
        tc.autograd.backward(x * 2, tc.ones(2), grad_variables=tc.ones(2))
