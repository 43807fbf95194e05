"""State that calls put other tensors in the place of: guarded as arguments are, and put in place by each replay."""

from __future__ import annotations

import copy
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import tensorcore as tc
from tensorcore import nn
from tests.compile.stepwise import stepwise
from tests.compile.test_programs import PLANS, function, outcome
from tests.lazy.test_programs import SHAPE

HIDDEN = tc.zeros(2, 4)


class Recurrent(nn.Module):
    """A hidden state that begins as None, and a buffer that each call replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.on = nn.Linear(3, 4), nn.Linear(4, 4)
        self.h: tc.Tensor | None = None
        self.register_buffer("mean", tc.zeros(2, 4))

    def forward(self, x: tc.Tensor) -> tc.Tensor:
        h = tc.zeros(x.shape[0], 4) if self.h is None else self.h.detach()
        self.h = (self.into(x) + self.on(h)).tanh()
        self.mean = self.mean * 0.9 + self.h.detach() * 0.1
        return self.h.sum(-1)


def test_a_variable_of_the_function_around_is_state() -> None:
    """It begins as None, is replaced by each call, and is what the function around sees."""

    def program(compiled: bool) -> tuple[list[Any], Any]:
        h = None
        found: list[Any] = []

        def step(x: tc.Tensor) -> tc.Tensor:
            nonlocal h
            h = x * 2 if h is None else h * 0.5 + x
            return h.exp()

        run = tc.compile(step, backend=stepwise) if compiled else step
        for i in range(9):
            if i == 5:
                h = None
            found += [run(tc.full((2,), float(i))).tolist(), h.tolist()]
        return found, run

    found, compiled = program(True)
    assert found == program(False)[0]
    assert (compiled.explain().traces, compiled.explain().replays) == (3, 6), compiled.explain()


def test_a_variable_that_a_call_deletes_is_none_of_a_replay() -> None:
    """Such a call runs as it is, and the error of the next one is Python's."""
    h = tc.ones(2)

    @tc.compile
    def step(x: tc.Tensor, last: bool) -> tc.Tensor:
        nonlocal h
        h = h + x
        made = h * 2
        if last:
            del h
        return made

    for _ in range(2):
        assert [step(tc.ones(2), False).tolist()[0] for _ in range(4)] == [4.0, 6.0, 8.0, 10.0]
        assert step(tc.ones(2), True).tolist() == [12.0, 12.0]
        with pytest.raises(NameError, match="h"):
            step(tc.ones(2), False)
        h = tc.ones(2)


def made(whole: bool, compiled: bool) -> tuple[list[Any], Any]:
    """What a training run leaves that forgets its state in the middle, and what was compiled."""
    tc.manual_seed(0)
    model = Recurrent()
    optimizer = tc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    forward = tc.compile(model, backend=stepwise) if compiled and not whole else model

    def step(x: tc.Tensor) -> tc.Tensor:
        optimizer.zero_grad()
        loss = forward(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = tc.compile(step, backend=stepwise) if compiled and whole else step
    left: list[Any] = []
    for i in range(12):
        if i in (5, 9):
            model.h = None
        left += [run(tc.randn(2, 3)).item(), model.h.tolist(), model.h.requires_grad, model.mean.tolist()]
    return [*left, [one.tolist() for one in model.parameters()]], run if whole else forward


@pytest.mark.parametrize("whole", [True, False], ids=["step", "module"])
def test_a_recurrent_model_trains_like_eager(whole) -> None:
    """Its hidden state begins anew where the program says so; a trace for None, one for a tensor, and replays."""
    expected, _ = made(whole, False)
    found, compiled = made(whole, True)
    assert found == expected
    account = compiled.explain()
    assert (account.traces, account.replays, account.eager) == (3, 9, 0), account


def test_another_shape_of_the_state_is_traced() -> None:
    """A state that the program replaced itself is taken as it is: by its shape, and by its values without a trace."""
    model = Recurrent()
    compiled = tc.compile(model, backend=stepwise)
    twin = copy.deepcopy(model)
    for x in (tc.randn(2, 3), tc.randn(2, 3), tc.randn(2, 3)):
        compiled(x), twin(x)
    traces = compiled.explain().traces
    x = tc.randn(2, 3)
    model.h, twin.h = tc.ones(2, 4, requires_grad=True) * 2, tc.full((2, 4), 2.0)
    assert compiled(x).tolist() == twin(x).tolist()
    assert compiled.explain().traces == traces
    model.h = twin.h = tc.ones(1, 4)
    assert compiled(x).tolist() == twin(x).tolist()
    assert "the shape of Recurrent.h is [1, 4] now" in str(compiled.explain())


class Box:
    """An object of the program's own."""

    def __init__(self) -> None:
        self.a, self.b = tc.ones(3), tc.arange(3.0)
        self.pair: Any = None
        self.items = {"x": tc.zeros(3), "rest": [tc.ones(3), tc.zeros(2)]}


def swaps(box: Box, x: tc.Tensor) -> tc.Tensor:
    """Two that change places."""
    box.a, box.b = box.b + x, box.a
    return box.a * 2


def keeps_what_it_was_given(box: Box, x: tc.Tensor) -> tc.Tensor:
    """The argument of the call before."""
    made = box.a + x
    box.a = x
    return made


def keeps_a_view(box: Box, x: tc.Tensor) -> tc.Tensor:
    """A view of the result, in which the state shows what is written to that."""
    made = box.a + x
    box.a = made.view(3, 1)[:, 0]
    return made


def nests(box: Box, x: tc.Tensor) -> tc.Tensor:
    """A dict and a list in it."""
    box.items["x"] = box.items["x"] * 0.5 + x
    box.items["rest"][0] = box.items["x"].exp()
    return box.items["rest"][0] + box.items["rest"][1].sum()


def keeps_a_pair(box: Box, x: tc.Tensor) -> tc.Tensor:
    """Two in a tuple, as a recurrent layer's hidden states."""
    h, c = box.pair or (tc.zeros(3), tc.zeros(3))
    box.pair = (h * 0.5 + x, c + h)
    return box.pair[0] * c


def writes(box: Box, x: tc.Tensor) -> tc.Tensor:
    """What is written to before another tensor takes its place."""
    held = box.a
    held += x
    box.a = held * 2
    return held.clone()


def remembers_a_leaf(box: Box, x: tc.Tensor) -> tc.Tensor:
    """A state that requires grad and is a leaf."""
    made = (box.a * x).sum()
    box.a = (box.a.detach() + 1).requires_grad_()
    return made


def answers_with_a_leaf(box: Box, x: tc.Tensor) -> tc.Tensor:
    """A result that is one."""
    return (box.a * x).detach().requires_grad_()


def grows(box: Box, x: tc.Tensor) -> tc.Tensor:
    """A state of another shape in each call."""
    box.a = tc.cat([box.a, x])
    return box.a.sum()


def global_state(box: Box, x: tc.Tensor) -> tc.Tensor:
    """State of a module of Python's."""
    global HIDDEN
    HIDDEN = HIDDEN * 0.5 + x.sum()
    return HIDDEN.sum()


PROGRAMS = [
    swaps,
    keeps_what_it_was_given,
    keeps_a_view,
    nests,
    keeps_a_pair,
    writes,
    remembers_a_leaf,
    answers_with_a_leaf,
    grows,
    global_state,
]


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("same", [False, True], ids=["others", "one argument"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_state_is_what_eager_leaves(program, same) -> None:
    """Values, sharing of memory with results and arguments, and what requires grad, in each of ten calls."""

    def outcome(compiled: bool) -> tuple[list[Any], Any]:
        global HIDDEN
        HIDDEN = tc.zeros(2, 4)
        tc.manual_seed(0)
        box, found = Box(), []

        def run(x: tc.Tensor) -> tc.Tensor:
            return program(box, x)

        step = tc.compile(run, backend=stepwise) if compiled else run
        x = tc.randn(3)
        for _ in range(10):
            x = x if same else tc.randn(3)
            y = step(x)
            if y.requires_grad:
                y.sum().backward()
            with tc.no_grad():
                y.add_(1)
                x.mul_(0.75)
            found.append(y.grad.tolist() if y.is_leaf and y.grad is not None else None)
            state = [box.a, box.b, box.items["x"], *box.items["rest"], *(box.pair or ()), HIDDEN, y, x]
            found.append([(one.tolist(), one.requires_grad, one.is_leaf) for one in state])
        return found, step

    expected, _ = outcome(False)
    found, compiled = outcome(True)
    assert found == expected, compiled.explain()
    if program not in (grows, remembers_a_leaf, answers_with_a_leaf):
        assert compiled.explain().replays >= 6, compiled.explain()


@hypothesis.settings(max_examples=40)
@hypothesis.given(PLANS, st.booleans())
def test_a_random_program_with_state_is_the_same(plan, backward) -> None:
    """What it makes of its own last result, and whose memory that is, in each of five calls."""
    moves = function(plan)

    def calls(compiled: bool) -> list[Any]:
        tc.manual_seed(5)
        held = {"state": tc.randn(SHAPE), "last": tc.zeros(2)}

        def run(x: tc.Tensor, y: tc.Tensor, w: tc.Tensor) -> list[tc.Tensor]:
            made = moves(held["state"], y, w + x)
            fitting = [one for one in made if one.shape == SHAPE and one.dtype is tc.float32]
            held["state"] = fitting[-1].detach().clamp(-9, 9) if len(made) % 2 else fitting[-1].detach()
            held["last"] = made[-1]
            return made

        step = tc.compile(run, backend=stepwise) if compiled else run
        found = []
        for seed in range(5):
            found += [outcome(step, seed, backward), held["state"].tolist(), held["last"].tolist()]
            found.append(held["last"].requires_grad)
        return found

    assert repr(calls(True)) == repr(calls(False))


READS = {
    "never": (lambda model, y: y, 1),
    "by its name": (lambda model, y: y - model.mean_so_far, 5),
    "with all others": (lambda model, y: y - sum(model.buffers()), 5),
}


@pytest.mark.parametrize("reads", READS)
def test_a_buffer_that_no_call_reads_may_be_another_one(reads) -> None:
    """A buffer that a program replaces between calls costs no trace, unless the call reads it, by its name or with all others."""
    read, traces = READS[reads]

    class Averaged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into = nn.Linear(3, 2)
            self.register_buffer("mean_so_far", tc.zeros(2))

        def forward(self, x: tc.Tensor) -> tc.Tensor:
            return read(self, self.into(x))

    def program(compiled: bool) -> tuple[list[Any], Any]:
        tc.manual_seed(0)
        model = Averaged()
        run, found = tc.compile(model, backend=stepwise) if compiled else model, []
        for i in range(5):
            y = run(tc.full((4, 3), float(i)))
            model.mean_so_far = y.detach().mean(0)
            found.append(y.tolist())
        return found, run

    found, compiled = program(True)
    assert found == program(False)[0]
    assert compiled.explain().traces == traces, compiled.explain()
