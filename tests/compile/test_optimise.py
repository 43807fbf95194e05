"""The passes over programs: fewer steps, the same bits, and nothing that leaves the program shared or lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.dtypes import float32, float64
from tensorcore.lazy.optimise import fold, keep, merge, optimise, prune, simplify
from tensorcore.lazy.views import broadcast, flatten, hoist, join

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


def test_a_view_of_a_view_is_taken_of_the_first() -> None:
    """Shapes in between are not made."""
    one = program(("exp", (V(0),)), ("view", (V(2),), {"shape": (6,)}, Spec((6,), float32)),
                  ("view", (V(3),), {"shape": (3, 2)}, Spec((3, 2), float32)), outputs=(4,))  # fmt: skip
    found = prune(flatten(one))
    assert [(step.kernel, step.operands) for step in found.steps] == [("exp", (V(0),)), ("view", (V(2),))]
    agree(one, found)


def test_dims_that_a_view_drops_are_not_kept() -> None:
    """A sum that keeps its dim, read by the view that drops it alone, is one that does not; kept dims of others stay."""
    row = Spec((2,), float32)
    for shape, spec, kept in (((2,), row, False), ((1, 2), Spec((1, 2), float32), True)):
        one = program(("sum", (V(0),), {"dim": (1,), "keepdim": True}, ROW), ("view", (V(2),), {"shape": shape}, spec),
                      outputs=(3,))  # fmt: skip
        found = prune(flatten(one))
        assert found.steps[0].options["keepdim"] is kept
        agree(one, found)
    both = one._replace(outputs=(V(2), V(3)))
    assert flatten(both) == both


def test_parts_are_joined_as_they_lie() -> None:
    """Copies that only a cat reads are left out where it can join the arrays themselves along their own dim."""
    turned, flat, whole = Spec((3, 1, 2), float32), Spec((3, 2), float32), Spec((3, 4), float32)
    steps = []
    for i, at in ((0, 2), (1, 6)):
        steps += [("view", (V(i),), {"shape": (1, 2, 3)}, Spec((1, 2, 3), float32)),
                  ("permute", (V(at),), {"dims": (2, 0, 1)}, turned), ("contiguous", (V(at + 1),), turned),
                  ("view", (V(at + 2),), {"shape": (3, 2)}, flat)]  # fmt: skip
    one = program(
        *steps, ("cat", ((V(5), V(9)),), {"dim": 1, "shape": (3, 4)}, whole), ("exp", (V(10),), whole), outputs=(11,)
    )
    found = prune(join(one))
    assert kernels(found) == ["view", "permute", "view", "permute", "cat", "view", "exp"]
    assert found.steps[4].makes == (Spec((3, 2, 2), float32),)
    agree(one, found)
    leaving = one._replace(outputs=(V(10), V(11)))
    assert join(leaving) == leaving


def test_what_broadcasts_is_not_expanded_before() -> None:
    """An elementwise step takes a row for what it was expanded from, unless its shape comes from that alone."""
    one = program(("sum", (V(0),), {"dim": (1,), "keepdim": True}, ROW), ("expand", (V(2),), {"shape": (2, 3)}),
                  ("mul", (V(3), V(1))), ("exp", (V(3),)), ("add", (V(4), V(5))), outputs=(6,))  # fmt: skip
    found = broadcast(one)
    assert found.steps[2].operands == (V(2), V(1))
    assert found.steps[3].operands == (V(3),)
    agree(one, found)


def test_views_go_before_what_is_computed_element_by_element() -> None:
    """A view between two elementwise steps is taken of the arrays that the first one reads; not where it is read twice, where a
    shape is broadcast, or where a view would be a copy."""
    turned = Spec((3, 2), float32)
    one = program(("add", (V(0), V(1))), ("mul", (V(2), 2.0)), ("view", (V(3),), {"shape": (3, 2)}, turned),
                  ("exp", (V(4),), turned), outputs=(5,))  # fmt: skip
    found = prune(hoist(one, [True] * 6))
    assert kernels(found) == ["view", "view", "add", "mul", "exp"]
    agree(one, found)
    assert hoist(one, [True, False, True, True, True, True]) == one
    twice = one._replace(outputs=(V(5), V(3)))
    assert hoist(twice, [True] * 6) == twice
    spread = program(("sum", (V(0),), {"dim": (1,), "keepdim": True}, ROW), ("add", (V(2), V(1))),
                     ("view", (V(3),), {"shape": (3, 2)}, turned), ("exp", (V(4),), turned), outputs=(5,))  # fmt: skip
    assert hoist(spread, [True] * 6) == spread
