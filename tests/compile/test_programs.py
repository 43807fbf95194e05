"""Random programs: what is traced and replayed gives the bits of what runs as it is, and leaves the same memory behind."""

from __future__ import annotations

from typing import Any

import hypothesis
from hypothesis import strategies as st

import tensorcore as tc
from tests.compile.stepwise import stepwise
from tests.lazy.test_programs import CALM, SHAPE, steps_of, trained

# But for optimizers that a call makes itself, with which it runs as it is.
MOVES = [move for move in CALM if move is not trained]
PLANS = st.lists(
    st.tuples(st.integers(0, len(MOVES) - 1), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    min_size=2,
    max_size=14,
)


def function(plan: list[tuple[int, int, int, int]]) -> Any:
    """The moves as a function of a plain tensor, one that is written, and a leaf."""

    def run(x: tc.Tensor, y: tc.Tensor, w: tc.Tensor) -> list[tc.Tensor]:
        tensors = [x, y, w * 2]
        for move, a, b, c in plan:
            made = MOVES[move](tensors, a, b, c)
            if made is not None:
                tensors.append(made)
        return tensors[2:]

    return run


def outcome(run: Any, seed: int, backward: bool) -> list[Any]:
    """Everything that a call leaves behind, or its error."""
    tc.manual_seed(seed)
    x, y, w = tc.randn(SHAPE), tc.randn(4), tc.randn(SHAPE, requires_grad=backward)
    try:
        made = run(x, y, w)
        if backward:
            loss = sum([one.sum() for one in made if one.requires_grad], tc.zeros(()))
            if loss.requires_grad:
                loss.backward()
    except Exception as error:
        return [type(error), str(error)]
    found = [(one.detach().tolist(), steps_of(one), one.requires_grad) for one in made]
    found += [x.tolist(), y.tolist(), None if w.grad is None else w.grad.tolist(), tc.rand(1).item()]
    # Who shares memory with whom: a write to one result shows in the others as it does without compiling.
    if made:
        with tc.no_grad():
            last = made[-1].detach()
            if not any(step == 0 and size > 1 for step, size in zip(last.stride(), last.shape, strict=True)):
                last.fill_(7)
    return [*found, [one.detach().tolist() for one in made], x.tolist(), y.tolist()]


@hypothesis.settings(max_examples=100)
@hypothesis.given(PLANS, st.booleans())
def test_a_random_program_is_the_same_compiled(plan, backward) -> None:
    """Traced once and replayed on other values, results, gradients, writes, aliasing and draws are those of eager."""
    run = function(plan)
    compiled = tc.compile(run, backend=stepwise)
    for seed in (1, 2, 3):
        expected = outcome(run, seed, backward)
        assert repr(outcome(compiled, seed, backward)) == repr(expected), compiled.explain()
    # What runs as it is would be the same without any trace: only errors and values that autograd has lost may.
    assert all(["cannot be differentiated" in one for one in compiled.explain().reasons if "eagerly" in one])
