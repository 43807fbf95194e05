"""The rows of the lazy benchmarks measure what they say: each is replayed, and computes what eager computes."""

from __future__ import annotations

import pytest

import tensorcore as tc
from asv_benchmarks.benchmarks import lazy

ROWS = [row for row in lazy.ROWS if not row.name.endswith("1e7")]


@pytest.fixture(autouse=True)
def no_more_generated_c():
    """A row that turns codegen on does so for itself: left on, each program of hundreds of later tests started a compiler."""
    before = tc.backends.cpu.codegen
    yield
    tc.backends.cpu.codegen = before


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_replayed(row) -> None:
    """Both of our sides run, and the compiled one traces once."""
    compiled, plain = lazy.side(row, "tensorcore.compile"), lazy.side(row, "tensorcore")
    for side in (compiled, plain):
        tc.manual_seed(0)
        side.loop(range(3))
    found = compiled.names[row.compiled].explain()
    assert (found.traces, found.replays, found.eager) == (1, 2, 0)


def test_sides_that_are_not_there_are_left_out(monkeypatch) -> None:
    """A library that is not installed has no side, and says so."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotImplementedError, match="jax is not installed"):
        lazy.side(lazy.ROWS[0], "jax.jit")


def test_steps_are_promised_beside_both_compilers() -> None:
    """Each training step has rows for its replays, its first call and its memory, on one and on two threads."""
    found = {(name, count): target for name, count, target, _ in lazy.comparisons("GPT step", 1, 0.0)}
    for count in (1, 2):
        assert found["lazy GPT step, beside torch.compile", count] == 0.8
        assert found["lazy GPT step, beside jax.jit", count] == 0.8
        assert found["lazy GPT step, first call, beside torch.compile", count] == 0.1
    assert found["peak memory of lazy GPT step, beside torch.compile", 1] == 1.0


def test_chains_are_held_against_a_pass_through_memory() -> None:
    """Both long chains stand beside one add of their arrays, the cheap one with a promise; the other rows have no such side."""
    found = {(name, target) for name, _, target, _ in lazy.comparisons("1e7, beside one add", 1, 0.0)}
    assert found == {
        (f"lazy ten cheap ops, 1e7, beside {lazy.PASS}", 1.5),
        (f"lazy chain of ten, 1e7, beside {lazy.PASS}", None),
    }
    with pytest.raises(NotImplementedError, match="not compared"):
        lazy.side(lazy.STEPS[0], lazy.PASS)
    short = lazy.side(lazy.ROWS[0]._replace(setup=lazy.CHAIN.format(count=100)), lazy.PASS)
    short.loop(range(1))
    assert (short.names["z"] == short.names["x"] + short.names["y"]).all()


def test_sides_take_turns(monkeypatch) -> None:
    """A measurement has the first call and every round of each side that is there."""
    monkeypatch.setattr("os.sched_setaffinity", lambda *given: None, raising=False)
    monkeypatch.setattr(lazy, "OTHERS", ("tensorcore",))
    found = lazy.measure("lazy hundred tiny ops", 1, 3, 1e-4)
    assert set(found.first) == set(found.rounds) == {"tensorcore.compile", "tensorcore"}
    assert [len(taken) for taken in found.rounds.values()] == [3, 3]
    assert found.beside("tensorcore").ours > 0
    with pytest.raises(NotImplementedError, match="jit is not installed"):
        found.first_beside("jax.jit")


@pytest.mark.parametrize("row", lazy.STEPS, ids=lambda row: row.name)
def test_the_step_in_jax_keeps_what_it_trains(row) -> None:
    """The twin of a training step answers with new parameters and state of the shapes that it was given."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    names: dict = {}
    exec(row.jax, names)
    state = names["params"], *((names["moments"], names["count"]) if "moments" in names else (names["moved"],))
    data = (names["tokens"], names["following"]) if "moments" in names else (names["images"], names["labels"])
    answered = jax.eval_shape(names["work"], *state, *data)
    shapes = [[(one.shape, one.dtype) for one in jax.tree.leaves(tree)] for tree in (state, answered)]
    assert shapes[0] == shapes[1]
