"""The passes over programs: fewer steps, the same bits, and nothing that leaves the program shared or lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.dtypes import float32, float64
from tensorcore.lazy.optimise import fold, keep, merge, optimise, prune, simplify

S = Spec((2, 3), float32)
ROW = Spec((2, 1), float32)
V = Value


def program(*steps: Any, outputs: tuple[int, ...], inputs: tuple[Spec, ...] = (S, S)) -> Program:
    """Steps as ``(kernel, operands, options, spec)``; the last two may be left out."""
    made = []
    for name, operands, *rest in steps:
        options = next((one for one in rest if isinstance(one, dict)), {})
        spec = next((one for one in rest if isinstance(one, Spec)), S)
        made.append(Step(name, operands, options, (spec,)))
    return Program(inputs, tuple(made), tuple(map(Value, outputs)))


def kernels(one: Program) -> list[str]:
    return [step.kernel for step in one.steps]


def agree(one: Program, other: Program) -> None:
    """Both give the same bits."""
    table = tc.device("cpu").kernels
    values = [np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), np.full((2, 3), -0.0, np.float32)]
    for a, b in zip(one.run(table, values), other.run(table, values), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_what_nobody_needs_is_dropped() -> None:
    """Steps whose results are not read are left out, with those that only they needed; draws stay."""
    draw = ("random", (), {"kind": "uniform"})
    one = program(("exp", (V(0),)), ("neg", (V(2),)), draw, ("add", (V(0), V(1))), outputs=(5,))
    assert kernels(prune(one)) == ["random", "add"]
    assert prune(one).outputs == (V(3),)


def test_equal_steps_are_merged() -> None:
    """The same kernel of the same operands runs once; another option or another number is another step."""
    one = program(
        ("mul", (V(0), 2.0)), ("mul", (V(0), 2.0)), ("mul", (V(0), 2)), ("add", (V(2), V(3))), ("add", (V(5), V(4))),
        outputs=(6,),
    )  # fmt: skip
    assert kernels(prune(merge(one))) == ["mul", "mul", "add", "add"]
    agree(one, prune(merge(one)))


def test_draws_are_never_merged() -> None:
    """Two draws are two draws."""
    draw = ("random", (), {"kind": "uniform"})
    assert len(merge(program(draw, draw, ("add", (V(2), V(3))), outputs=(4,))).steps) == 3


def test_results_are_never_merged() -> None:
    """Two equal results leave in two memories, also through views."""
    one = program(
        ("exp", (V(0),)),
        ("exp", (V(0),)),
        ("permute", (V(3),), {"dims": (1, 0)}, Spec((3, 2), float32)),
        outputs=(2, 4),
    )
    assert kernels(optimise(one)) == ["exp", "exp", "permute"]


@pytest.mark.parametrize(
    "step, left",
    [
        (("mul", (V(2), 1.0)), 0),
        (("mul", (1, V(2))), 0),
        (("div", (V(2), 1.0)), 0),
        (("sub", (V(2), 0.0)), 0),
        (("sub", (V(2), -0.0)), 1),
        (("add", (V(2), 0.0)), 1),
        (("mul", (V(2), 2.0)), 1),
        (("pow", (V(2), 1)), 0),
        (("cast", (V(2),), {"dtype": float32}), 0),
        (("cast", (V(2),), {"dtype": float64}, Spec((2, 3), float64)), 1),
        (("view", (V(2),), {"shape": (2, 3)}), 0),
        (("view", (V(2),), {"shape": (3, 2)}, Spec((3, 2), float32)), 1),
        (("permute", (V(2),), {"dims": (0, 1)}), 0),
        (("expand", (V(2),), {"shape": (2, 3)}), 0),
    ],
)
def test_steps_that_change_no_bit_are_left_out(step, left) -> None:
    """``x * 1`` goes; ``x + 0`` stays, as it makes zeros of negative zeros."""
    last = step[3] if len(step) > 3 else S
    one = program(("exp", (V(0),)), step, ("neg", (V(3),), last), outputs=(4,))
    assert len(prune(simplify(one)).steps) == 2 + left


def test_two_negations_are_none() -> None:
    """``-(-x)`` is ``x``."""
    one = program(("exp", (V(0),)), ("neg", (V(2),)), ("neg", (V(3),)), ("sqrt", (V(4),)), outputs=(5,))
    assert kernels(optimise(one)) == ["exp", "sqrt"]
    agree(one, optimise(one))


def test_an_input_does_not_leave_as_a_result() -> None:
    """``x * 1`` of an input is a new array still."""
    assert kernels(optimise(program(("mul", (V(0), 1.0)), outputs=(2,)))) == ["mul"]


def test_constants_are_computed() -> None:
    """Arrays of one number become the number, where it is exact and another operand has the shape."""
    full = ("full", ((2, 3), 3.0), {"dtype": float32})
    one = program(full, ("mul", (V(2), 2.0)), ("add", (V(3), V(0))), outputs=(4,))
    assert kernels(optimise(one)) == ["add"]
    assert optimise(one).steps[0].operands == (6.0, V(0))
    agree(one, optimise(one))
    small = program(("full", ((2, 3), 0.1), {"dtype": float32}), ("add", (V(2), V(0))), outputs=(3,))
    assert kernels(fold(small)) == ["full", "add"]
    wide = program(("full", ((2, 3), 3.0), {"dtype": float32}), ("add", (V(2), V(0))), outputs=(3,), inputs=(ROW,))
    assert kernels(fold(wide)) == ["full", "add"]


def test_a_copy_of_what_nobody_holds_is_no_copy() -> None:
    """What a step made leaves as it is; an input and what leaves already are copied."""
    assert kernels(keep(program(("exp", (V(0),)), ("clone", (V(2),)), outputs=(3,)))) == ["exp"]
    assert kernels(keep(program(("clone", (V(0),)), outputs=(2,)))) == ["clone"]
    assert kernels(keep(program(("exp", (V(0),)), ("clone", (V(2),)), outputs=(2, 3)))) == ["exp", "clone"]
    both = program(("exp", (V(0),)), ("clone", (V(2),)), ("clone", (V(2),)), outputs=(3, 4))
    assert kernels(keep(both)) == ["exp", "clone"]
