"""What holds for every op in the registry when it is compiled: the bits, the gradients and the errors of eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.ops.define import OPS
from tensorcore.testing.calls import RANDOM
from tensorcore.testing.invariants import defined
from tests.compile.stepwise import stepwise
from tests.ops.registry_forms import SAMPLED, calls_of, mapped, tensors_of, with_leaves

NAMES = [*SAMPLED, *sorted(RANDOM)]


def program(name: str, call: Any) -> tuple[Any, list[np.ndarray]]:
    """The op as a function of its floating tensors, and their values."""
    arrays, rebuilt = with_leaves(call)
    function = defined(name, OPS[name].function)

    def run(*leaves: tc.Tensor) -> tuple[tc.Tensor, ...]:
        args, kwargs = mapped(rebuilt(list(leaves)), tc.from_numpy)
        return tuple(tensors_of(function(*args, **kwargs)))

    return run, arrays


def outcome(function: Any, leaves: list[tc.Tensor], differentiate: bool) -> list[Any]:
    """The results as bytes, strides and flags, and the gradients; or the error."""
    for one in leaves:
        one.requires_grad_(differentiate)
        one.grad = None
    tc.manual_seed(3)
    try:
        made = function(*leaves)
    except Exception as error:
        return [type(error), str(error)]
    found: list[Any] = [
        (
            one.dtype,
            tuple(one.shape),
            one.stride(),
            one.requires_grad,
            one.detach().clone().contiguous().numpy().tobytes(),
        )
        for one in made
    ]
    if differentiate:
        try:
            sum(
                [(one * one.detach()).sum() for one in made if one.requires_grad and one.dtype.is_floating_point]
            ).backward()
        except Exception as error:
            return [*found, type(error), str(error)]
        found += [None if one.grad is None else one.grad.numpy().tobytes() for one in leaves]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_op_is_the_same_compiled(name: str) -> None:
    """Traced, and replayed, an op answers with the bits, strides and gradients that it has without compiling."""
    for call in calls_of(name):
        run, arrays = program(name, call)
        for differentiate in (False, True):
            compiled = tc.compile(run, backend=stepwise)
            expected = outcome(run, [tc.from_numpy(np.array(one)) for one in arrays], differentiate)
            for _ in range(3):
                assert outcome(compiled, [tc.from_numpy(np.array(one)) for one in arrays], differentiate) == expected


@pytest.mark.parametrize("name", NAMES)
def test_an_op_between_reads_is_the_same_in_pieces(name: str) -> None:
    """Of operands whose values are put off, in a call that reads its results, an op gives bits and gradients of eager."""
    run, arrays = program(name, next(iter(calls_of(name))))

    def floating(given: tuple[tc.Tensor, ...], change: Any) -> tuple[tc.Tensor, ...]:
        return tuple([change(one) if one.dtype.is_floating_point else one for one in given])

    def reading(*leaves: tc.Tensor) -> tuple[tc.Tensor, ...]:
        made = floating(run(*floating(leaves, lambda one: one * 1.5)), lambda one: one * 2)
        if sum([one.detach().sum().item() for one in made if one.dtype.is_floating_point and one.numel()], 0.0) > 1e9:
            return made
        return floating(made, lambda one: one.neg())

    compiled = tc.compile(reading, backend=stepwise, options={"breaks": True})
    expected = outcome(reading, [tc.from_numpy(np.array(one)) for one in arrays], True)
    for _ in range(4):
        assert outcome(compiled, [tc.from_numpy(np.array(one)) for one in arrays], True) == expected
