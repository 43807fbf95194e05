"""Graph breaks on request: Python runs as ever, and what lies between two reads runs as one program."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import tensorcore as tc
from tensorcore import nn
from tests.compile.stepwise import stepwise
from tests.compile.test_programs import MOVES, PLANS, function, outcome
from tests.lazy.test_programs import numbered

BREAKS = {"breaks": True}


def trained(compiled: bool, step_of: Any, calls: int = 6) -> tuple[list[float], list[list[float]], Any]:
    """The losses of a small model, its parameters, and the compiled step."""
    tc.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = tc.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    step = step_of(model, optimizer)
    if compiled:
        step = tc.compile(step, backend=stepwise, options=BREAKS)
    losses = [float(step(tc.randn(5, 6), tc.tensor([0, 1, 2, 0, 1]))) for _ in range(calls)]
    return losses, [one.detach().flatten().tolist() for one in model.parameters()], step


def reads_before_the_step(model: Any, optimizer: Any) -> Any:
    """It steps only where the loss is small enough, and answers with a number."""

    def step(x: tc.Tensor, y: tc.Tensor) -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if loss.item() < 1.2:
            optimizer.step()
        return float(loss)

    return step


def clips_by_a_read(model: Any, optimizer: Any) -> Any:
    """It looks at the norm of the gradients."""

    def step(x: tc.Tensor, y: tc.Tensor) -> tc.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        if norm.isfinite() and float(norm) > 0.2:
            optimizer.step()
        return loss.detach()

    return step


def scales(model: Any, optimizer: Any) -> Any:
    """It leaves out steps whose gradients are not finite, and looks at the factor."""
    scaler = tc.amp.GradScaler("cpu", init_scale=1024.0)

    def step(x: tc.Tensor, y: tc.Tensor) -> tc.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() >= 1
        return loss.detach()

    return step


@pytest.mark.parametrize("step_of", [reads_before_the_step, clips_by_a_read, scales])
def test_a_step_that_reads_trains_like_eager(step_of) -> None:
    """Losses and parameters are those of eager bit for bit, no call runs as it is, and programs come back planned."""
    losses, parameters, _ = trained(False, step_of)
    made = trained(True, step_of)
    assert made[:2] == (losses, parameters)
    account = made[2].explain()
    assert account.eager == 0
    assert account.traces + account.broken == 6
    assert account.broken >= 4
    assert account.planned >= 3, account


def test_what_python_does_happens_in_every_call(capsys) -> None:
    """A line that prints and a list that grows see every call and its numbers, each branch its own values."""
    seen: list[float] = []

    def run(x: tc.Tensor) -> tc.Tensor:
        total = (x * 2 + 1).sum()
        print(f"{total.item():.1f}")
        seen.append(total.item())
        return total.exp() if total > 0 else total.neg()

    compiled = tc.compile(run, options=BREAKS)
    made = [compiled(tc.full((3,), one)).item() for one in (0.0, -1.0, 0.5, -2.0, 0.0, -1.0)]
    assert seen == [3.0, -3.0, 6.0, -9.0, 3.0, -3.0]
    assert capsys.readouterr().out.split() == ["3.0", "-3.0", "6.0", "-9.0", "3.0", "-3.0"]
    assert made[1::2] == [3.0, 9.0, 3.0]
    assert made[0] == made[4]


def test_the_account_names_the_lines_that_need_values() -> None:
    """``explain`` says that a function runs in pieces, at which line each of them ends, and how often."""

    def run(x: tc.Tensor) -> tc.Tensor:
        y = x.sin() * 2
        if y.sum() > 0:  # here
            return y + 1
        return y - 1

    compiled = tc.compile(run, options=BREAKS)
    for _ in range(5):
        compiled(tc.ones(3))
    line = run.__code__.co_firstlineno + 2
    (found,) = {one for one in compiled.explain().breaks if one.endswith(f":{line}")}
    assert compiled.explain().breaks[found] >= 3
    assert f"a value is needed at {found}" in str(compiled.explain())
    assert "runs in pieces: reads a value" in str(compiled.explain())


def test_without_breaks_such_a_call_runs_as_it_is() -> None:
    """Nothing is put off where nobody asked for it, and ``fullgraph`` raises at the line all the same."""

    def run(x: tc.Tensor) -> tc.Tensor:
        return x * 2 if x.sum().item() > 0 else x

    compiled = tc.compile(run)
    compiled(tc.ones(3)), compiled(tc.ones(3))
    assert compiled.explain().eager == 1
    assert compiled.explain().broken == 0
    with pytest.raises(RuntimeError, match="one that reads a value"):
        tc.compile(run, fullgraph=True, options=BREAKS)(tc.ones(3))


def test_an_error_is_that_of_eager_at_its_line() -> None:
    """A shape that does not fit raises where it is written, what was computed before is there, and the next call works."""
    kept: list[tc.Tensor] = []

    def run(x: tc.Tensor, fits: bool) -> tc.Tensor:
        y = x * 3
        kept.append(y)
        if y.sum().item() > 0:
            z = y + 1
            kept.append(z)
        return z + (tc.ones(3) if fits else tc.ones(7))

    compiled = tc.compile(run, options=BREAKS)
    for _ in range(4):
        compiled(tc.ones(3), True)
    with pytest.raises(RuntimeError, match="7"):
        compiled(tc.ones(3), False)
    assert kept[-1].tolist() == [4.0] * 3
    assert kept[-2].tolist() == [3.0] * 3
    assert compiled(tc.ones(3), True).tolist() == [5.0] * 3


def test_values_that_could_not_be_computed_are_no_numbers() -> None:
    """Where a program fails, its error comes at the read, and who kept an array of it finds NaN there."""
    kept: list[tc.Tensor] = []

    def failing(group: Any) -> Any:
        def run(*natives: Any, out: Any = None) -> Any:
            raise MemoryError("no room")

        return run

    def function(x: tc.Tensor) -> float:
        y = x * 3 + 1
        kept.append(y)
        return y.sum().item()

    compiled = tc.compile(function, backend=failing, options=BREAKS)
    for _ in range(5):  # as it is, until it is clear that its list grows; then to see layouts, and kernel by kernel
        compiled(tc.ones(3))
    with pytest.raises(MemoryError, match="no room"):
        compiled(tc.ones(3))
    assert [one.isnan().all().item() for one in kept] == [False] * (len(kept) - 1) + [True]


def test_writes_to_what_others_hold_are_seen() -> None:
    """A buffer that is written through a view, between reads, is seen by its holder at the read and after the call."""
    table = tc.zeros(2, 3)

    def run(x: tc.Tensor) -> float:
        row = table[1]
        row += x
        before = table.sum().item()
        table.mul_(0.5)
        return before

    compiled = tc.compile(run, options=BREAKS)
    found = [compiled(tc.ones(3)) for _ in range(5)]
    assert found == [3.0, 4.5, 5.25, 5.625, 5.8125]
    assert table.tolist() == [[0.0] * 3, [5.8125 / 6] * 3]


def test_a_compiled_function_inside_is_part_of_the_pieces() -> None:
    """What it computes of arrays without values yet is put off as well."""
    inner = tc.compile(lambda x: x * x + 1)
    inner(tc.ones(3)), inner(tc.ones(3))

    def run(x: tc.Tensor) -> float:
        return inner(x + 1).sum().item() + inner(x - 1).sum().item()

    compiled = tc.compile(run, options=BREAKS)
    assert [compiled(tc.full((3,), float(i))) for i in range(5)] == [12.0, 18.0, 36.0, 66.0, 108.0]


@hypothesis.settings(max_examples=40)
@hypothesis.given(PLANS, st.booleans())
@hypothesis.example([(0, 0, 0, 0), (MOVES.index(numbered), 0, 1, 0)], False)  # nothing is added where the rows lie
def test_a_random_program_with_reads_is_the_same_in_pieces(plan, backward) -> None:
    """Results, gradients, writes, aliasing and draws are those of eager, whichever branches the values take."""
    moves = function(plan)

    def run(x: tc.Tensor, y: tc.Tensor, w: tc.Tensor) -> list[tc.Tensor]:
        made = moves(x, y, w)
        made.append(made[-1] * 2 if made[0].sum().item() > 0 else (made[-1] - 1).abs())
        if made[-1].double().sum() > 1:
            made[-1] = made[-1] * 3
        return made

    compiled = tc.compile(run, backend=stepwise, options=BREAKS)
    for seed in (1, 2, 1, 2, 1):
        assert repr(outcome(compiled, seed, backward)) == repr(outcome(run, seed, backward)), compiled.explain()
