"""Calls as PyTorch's first versions had them, and the names of parameters that ordinary programs use."""

from __future__ import annotations

import warnings

import pytest

import tensorcore as tc
from tensorcore.ops import older

A, B, C = [2.0, 3.0], [5.0, 7.0], [0.5, 4.0]
M = [[1.0, 2.0], [3.0, 4.0]]


@pytest.fixture(autouse=True)
def first_time():
    """Each warns at the first call of its name."""
    older._warned.clear()


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda a, b, c: a.add_(-0.5, b), [-0.5, -0.5]),
        (lambda a, b, c: a.add(2, b), [12.0, 17.0]),
        (lambda a, b, c: tc.add(a, 2, b), [12.0, 17.0]),
        (lambda a, b, c: a.sub_(2, b), [-8.0, -11.0]),
        (lambda a, b, c: tc.sub(a, 2, b), [-8.0, -11.0]),
        (lambda a, b, c: a.addcmul_(2, b, c), [7.0, 59.0]),
        (lambda a, b, c: tc.addcmul(a, 2, b, c), [7.0, 59.0]),
        (lambda a, b, c: a.addcdiv_(-2, b, c), [-18.0, -0.5]),
        (lambda a, b, c: a.addcdiv(-2, b, c), [-18.0, -0.5]),
        (lambda a, b, c: tc.addmv(0.5, a, 2, tc.tensor(M), b), [39.0, 87.5]),
        (lambda a, b, c: a.addmv_(0.5, tc.tensor(M), b), [20.0, 44.5]),
        (lambda a, b, c: tc.addr(0, tc.tensor(M), 2, a, b).tolist()[0], [20.0, 28.0]),
        (lambda a, b, c: tc.addmm(1, tc.tensor(M), 2, tc.tensor(M), tc.eye(2)).tolist()[1], [9.0, 12.0]),
        (lambda a, b, c: tc.tensor(M).addmm_(0, 2, tc.tensor(M), tc.eye(2)).tolist()[1], [6.0, 8.0]),
        (lambda a, b, c: tc.baddbmm(1, tc.tensor([M]), 2, tc.tensor([M]), tc.eye(2)[None]).tolist()[0][1], [9.0, 12.0]),
        (lambda a, b, c: tc.addbmm(1, tc.tensor(M), 2, tc.tensor([M]), tc.eye(2)[None]).tolist()[1], [9.0, 12.0]),
    ],
)
def test_numbers_by_position_among_the_tensors(call, expected):
    """Old programs pass alpha, beta and value by position; the result is that of the keyword, with a warning."""
    with pytest.warns(UserWarning, match="is deprecated: pass (alpha|value|beta and alpha) by keyword"):
        found = call(*map(tc.tensor, (A, B, C)))
    assert (found if isinstance(found, list) else found.tolist()) == expected


def test_such_a_call_warns_once():
    """An optimizer that steps a thousand times says it once, as PyTorch does."""
    x = tc.ones(2)
    with pytest.warns(UserWarning, match="add_"):
        x.add_(1, tc.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.add_(1, tc.ones(2))
    assert x.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.add(1, 2),
        lambda x: x.add_(x, 2),
        lambda x: tc.sub(x, 1, 2, x),
        lambda x: x.addcmul(1, 2, x, x),
        lambda x: tc.addcdiv(x, x, x, 2),
    ],
)
def test_other_positions_are_refused(call):
    """Numbers after the tensors, or too many of them, are a TypeError."""
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        call(tc.ones(2))


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x.pow(exponent=2), [4.0, 9.0]),
        (lambda x: tc.pow(x, exponent=x), [4.0, 27.0]),
        (lambda x: x.pow_(exponent=2), [4.0, 9.0]),
        (lambda x: x.mul_(other=2), [4.0, 6.0]),
        (lambda x: x.clamp_min(min=2.5), [2.5, 3.0]),
        (lambda x: x.clamp_max_(max=2.5), [2.0, 2.5]),
        (lambda x: x.view(size=(2, 1)).squeeze_(dim=1), [2.0, 3.0]),
        (lambda x: x.view(dtype=tc.int32).view(tc.float32), [2.0, 3.0]),
        (lambda x: x.expand(size=(1, 2))[0], [2.0, 3.0]),
        (lambda x: x.repeat(repeats=(2,)), [2.0, 3.0, 2.0, 3.0]),
        (lambda x: x.split(split_size=1)[1], [3.0]),
        (lambda x: tc.split(x, split_size_or_sections=[1, 1])[0], [2.0]),
        (lambda x: tc.cat([x, x], axis=0), [2.0, 3.0, 2.0, 3.0]),
        (lambda x: x.new_zeros(size=(2,)), [0.0, 0.0]),
        (lambda x: tc.rand(size=(0,)), []),
        (lambda x: tc.randn(size=[2, 0]), [[], []]),
        (lambda x: x.tile(dims=(2,)), [2.0, 3.0, 2.0, 3.0]),
        (lambda x: x.resize_(size=(1,)), [2.0]),
        (lambda x: x.new_full((1,), 4, pin_memory=True), [4.0]),
        (lambda x: tc.ones(2, pin_memory=True), [1.0, 1.0]),
        (lambda x: x.clone().unsqueeze_(dim=0).transpose_(dim0=0, dim1=1)[0], [2.0]),
    ],
)
def test_parameters_have_pytorchs_names(call, expected):
    """Keywords that programs write out are those of PyTorch's signatures."""
    assert call(tc.tensor([2.0, 3.0])).tolist() == expected


@pytest.mark.parametrize("function", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (1, 2, 3, 4)])
@pytest.mark.oracle
def test_the_dim_of_an_old_softmax(function, shape, torch):
    """Without ``dim`` nn.functional chooses PyTorch's, with PyTorch's warning."""
    values = torch.rand(shape)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        expected = getattr(torch.nn.functional, function)(values)
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {function}"):
        found = getattr(tc.nn.functional, function)(tc.tensor(values.numpy()))
    assert abs(found.numpy() - expected.numpy()).max() < 1e-6
