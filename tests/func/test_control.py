"""Choices and loops as functions, numbers by PyTorch's symbolic names, and modules without running statistics."""

from __future__ import annotations

import pytest

import tensorcore as tc


def test_cond_runs_one_branch_and_records_it() -> None:
    """The gradient is that of the branch that the tensor chose."""
    x = tc.tensor([2.0, 3.0], requires_grad=True)
    for sign, slope in ((1.0, 2.0), (-1.0, 5.0)):
        made = tc.cond(tc.tensor(sign) > 0, lambda one: one * 2, lambda one: one * 5, (x,))
        assert tc.autograd.grad(made.sum(), x)[0].tolist() == [slope, slope]


def test_while_loop_carries_values() -> None:
    """The body answers the values of the next turn; of none the inputs come back."""
    count, x = tc.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (tc.tensor(0), tc.ones(2)))
    assert (count.item(), x.tolist()) == (3, [8.0, 8.0])
    assert tc.while_loop(lambda i: i < 0, lambda i: (i + 1,), (4,)) == (4,)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tc.cond(tc.tensor([True, False]), lambda: 1, lambda: 2),
        lambda: tc.cond("x", lambda: 1, lambda: 2),
        lambda: tc.cond(True, 1, 2),
        lambda: tc.while_loop(lambda i: i < 3, lambda i: (i + 1, i), (0,)),
    ],
)
def test_wrong_choices_and_loops_are_refused(call) -> None:
    """What is no bool, no function, or answers another number of values, raises RuntimeError."""
    with pytest.raises(RuntimeError):
        call()


def test_symbolic_functions_take_plain_numbers() -> None:
    """Without symbols they are Python's own, and a float among two numbers makes the extreme one."""
    found = [tc.sym_max(1, 2), tc.sym_min(1, 2.5), tc.sym_int(2.7), tc.sym_ite(False, 1, 2), tc.sym_sum([1, 2, 3])]
    assert found == [2, 1.0, 2, 2, 6]
    assert type(found[1]) is float
    assert (tc.sym_not(0), tc.sym_float(3), tc.sym_sqrt(9)) == (True, 3.0, 3.0)
    with pytest.raises(TypeError):
        tc.sym_max("a", 2)


def test_batch_norms_lose_their_running_statistics() -> None:
    """Every batch norm of the model takes its batch's statistics, in evaluation too; other norms stay."""
    model = tc.nn.Sequential(tc.nn.BatchNorm1d(2), tc.nn.InstanceNorm1d(2, track_running_stats=True))
    assert tc.func.replace_all_batch_norm_modules_(model) is model
    assert model[0].running_mean is None
    assert model[1].running_mean is not None
    made = model[0].eval()(tc.tensor([[1.0, 2.0], [3.0, 6.0]]))
    assert made.tolist() == [pytest.approx([-1.0, -1.0], abs=1e-4), pytest.approx([1.0, 1.0], abs=1e-4)]
