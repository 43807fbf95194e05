"""Plans: a program as one function, in groups that a backend may fuse, writing to arrays that are free."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.program import Program, Spec, Step
from tensorcore.dtypes import float32, int64
from tensorcore.lazy.groups import partition
from tensorcore.lazy.plan import Broken, prepare
from tests.compile.stepwise import Stepwise
from tests.compile.test_optimise import S, V, program

BIG = Spec((100, 100), float32)
CPU = tc.device("cpu")


def arrays(*specs: Spec) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random(one.shape).astype(one.dtype.numpy) for one in specs]


def chain(spec: Spec = BIG) -> Program:
    steps = [
        Step("mul", (V(0), V(1)), {}, (spec,)), Step("exp", (V(2),), {}, (spec,)), Step("add", (V(3), V(0)), {}, (spec,)),
        Step("tanh", (V(4),), {}, (spec,)), Step("sub", (V(5), V(1)), {}, (spec,)),
    ]  # fmt: skip
    return Program((spec, spec), tuple(steps), (V(6),))


@pytest.mark.parametrize("refuses", [False, True])
def test_a_plan_gives_the_bits_of_the_program(refuses) -> None:
    """Fused or not, the outputs are those of running it step by step."""
    one = chain()
    values = arrays(*one.inputs)
    plan = prepare(one, CPU, compile=Stepwise(refuses))
    assert plan(*values)[0].tobytes() == one.run(CPU.kernels, values)[0].tobytes()
    assert (plan.kernels, plan.fused) == ((5, 0) if refuses else (1, 1))


def test_memory_is_used_again() -> None:
    """A chain of five takes two arrays: what is written to and the result."""
    plan = prepare(chain(), CPU, compile=Stepwise(refuses=True))
    assert plan.peak <= 2 * 100 * 100 * 4
    first = plan(*arrays(BIG, BIG))[0]
    kept = first.copy()
    plan(*arrays(BIG, BIG)[::-1])
    assert first.tobytes() == kept.tobytes()


def test_small_constants_are_made_with_the_plan() -> None:
    """A small array of one number, or of a range, costs no call of a replay and is never written to; one that leaves is new."""
    count = Spec((3,), int64)
    steps = (
        Step("arange", (0, 1, 3), {"dtype": int64}, (count,)), Step("bounds", (V(1),), {"holds": lambda low, high: high < 5}, ()),
        Step("full", ((2, 3), 2.0), {"dtype": float32}, (S,)), Step("maximum", (V(2), V(0)), {}, (S,)),
        Step("index_select", (V(3), V(1)), {"dim": 1}, (S,)), Step("full", ((2, 3), 0.5), {"dtype": float32}, (S,)),
    )  # fmt: skip
    plan = prepare(Program((S,), steps, (V(4), V(5))), CPU)
    assert "arange" not in plan.source
    assert "index_bounds" not in plan.source
    assert plan.kernels == 3
    for value in (1, 3):
        made, left = plan(np.full((2, 3), value, np.float32))
        assert made.tolist() == [[max(value, 2)] * 3] * 2
        assert left.tolist() == [[0.5] * 3] * 2
        left += 1


def test_a_view_does_not_part_a_group() -> None:
    """Elementwise steps before and behind a view run as one kernel, over views of the inputs."""
    flat = Spec((10_000,), float32)
    steps = (
        Step("mul", (V(0), V(1)), {}, (BIG,)), Step("view", (V(2),), {"shape": (10_000,)}, (flat,)),
        Step("exp", (V(3),), {}, (flat,)),
    )  # fmt: skip
    one = Program((BIG, BIG), steps, (V(4),))
    values = arrays(BIG, BIG)
    plan = prepare(one, CPU, compile=Stepwise(False))
    assert plan.fused == 1
    assert plan(*values)[0].tobytes() == one.run(CPU.kernels, values)[0].tobytes()
    # The second: of two layouts the product has the first one's, which has to be row-major for the view.
    turned = prepare(one, CPU, strides=[None, (1, 100)], compile=Stepwise(False))
    values[1] = values[1].T
    assert turned.fused == 0
    assert turned(*values)[0].tobytes() == one.run(CPU.kernels, values)[0].tobytes()


def test_plans_of_equal_programs_are_one() -> None:
    """A structure is prepared once for each backend."""
    assert prepare(chain(), CPU) is prepare(chain(), CPU)
    assert prepare(chain(), CPU) is not prepare(chain(Spec((100, 101), float32)), CPU)


def test_outputs_go_over_inputs() -> None:
    """An output that belongs over an input is written there, straight where that is safe."""
    one = chain()
    values = arrays(BIG, BIG)
    expected = one.run(CPU.kernels, values)[0].tobytes()
    plan = prepare(one, CPU, into={0: 0}, compile=Stepwise(refuses=True))
    assert plan(*values)[0] is values[0]
    assert values[0].tobytes() == expected
    assert "k_copy" not in plan.source


def test_inputs_that_change_places_are_read_first() -> None:
    """Two inputs that are written over one another are both read before."""
    one = Program((S, S), (Step("neg", (V(0),), {}, (S,)),), (V(1), V(0), V(2)))
    a, b = arrays(S, S)
    a2, b2 = a.copy(), b.copy()
    made = prepare(one, CPU, into={0: 0, 1: 1})(a, b)[2]
    assert (a == b2).all()
    assert (b == a2).all()
    assert (made == -a2).all()


def test_a_check_comes_before_every_write() -> None:
    """A check that does not hold raises before an input is written."""
    index = Spec((3,), int64)
    steps = (
        Step("neg", (V(0),), {}, (S,)),
        Step("bounds", (V(1),), {"holds": lambda low, high: high < 2}, ()),
    )
    plan = prepare(Program((S, index), steps, (V(2),)), CPU, into={0: 0})
    a = arrays(S)[0]
    before = a.copy()
    with pytest.raises(Broken):
        plan(a, np.array([0, 1, 2]))
    assert (a == before).all()
    plan(a, np.array([0, 1, 1]))
    assert (a == -before).all()


def test_groups_are_maximal_and_convex() -> None:
    """Elementwise steps and trailing reductions are one group; a product between them parts it in two."""
    wide, row = Spec((4, 8), float32), Spec((4, 1), float32)
    square = Spec((4, 4), float32)
    steps = (
        Step("amax", (V(0),), {"dim": (1,), "keepdim": True}, (row,)),
        Step("sub", (V(0), V(1)), {}, (wide,)),
        Step("exp", (V(2),), {}, (wide,)),
        Step("sum", (V(3),), {"dim": (1,), "keepdim": True}, (row,)),
        Step("div", (V(3), V(4)), {}, (wide,)),
        Step("matmul_nt", (V(5), V(0)), {}, (square,)),
        Step("neg", (V(6),), {}, (square,)),
        Step("exp", (V(7),), {}, (square,)),
    )
    units = partition(Program((wide,), steps, (V(8),)))
    assert [one.steps for one in units] == [(0, 1, 2, 3, 4), (5,), (6, 7)]


def test_no_group_needs_itself() -> None:
    """A path that leaves a group does not come back to it."""
    one = program(
        ("exp", (V(0),), Spec((3, 3), float32)), ("matmul", (V(1), V(1)), Spec((3, 3), float32)),
        ("add", (V(1), V(2)), Spec((3, 3), float32)), ("mul", (V(1), V(3)), Spec((3, 3), float32)),
        outputs=(4,), inputs=(Spec((3, 3), float32),),
    )  # fmt: skip
    assert [unit.steps for unit in partition(one)] == [(0,), (1,), (2, 3)]
    recorder = Stepwise()
    a = arrays(*one.inputs)
    assert prepare(one, CPU, compile=recorder)(*a)[0].tobytes() == one.run(CPU.kernels, a)[0].tobytes()
    assert [len(group.steps) for group in recorder.groups][-1] == 2
