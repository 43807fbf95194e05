"""Training on the lazy device: losses and parameters of eager, and one program for each step."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.lazy import making

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "nesterov": True}, "Adam": {}, "AdamW": {"amsgrad": True}, "RMSprop": {"momentum": 0.5},
    "Adagrad": {}, "NAdam": {}, "Rprop": {},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_takes_the_same_steps(name: str) -> None:
    """Parameters, buffers of batch norm and the state of the generator after ten steps with dropout."""
    ends = []
    for device in ("cpu", "lazy"):
        tc.manual_seed(2)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)).to(
            device
        )
        optimizer = getattr(tc.optim, name)(model.parameters(), lr=0.05, **OPTIMIZERS[name])
        x, y = tc.randn(16, 6, device=device), tc.randint(0, 3, (16,), device=device)
        for _ in range(10):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        ends.append(({key: one.tolist() for key, one in model.state_dict().items()}, tc.get_rng_state().tolist()))
    assert ends[0] == ends[1]


def test_a_step_that_nobody_looks_at_makes_nothing() -> None:
    """Ten steps are one program, made when the last loss is read."""
    model = nn.Linear(4, 1).to("lazy")
    optimizer = tc.optim.SGD(model.parameters(), lr=0.1)
    x = tc.randn(8, 4, device="lazy")
    with tc.lazy.forbid():
        for _ in range(10):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    loss.item()
    (entry,) = tc.lazy.realisations()
    assert entry.steps > 60
    assert model.weight.is_initialized()


def _tied(kind: str, device: str, apart: bool) -> list[Any]:
    """A few steps on parameters that are parts of one memory, which lie apart there or share elements."""
    flat = tc.arange(6.0, device=device)
    parts = [flat[:3], flat[3:]] if apart else [flat[:4], flat[2:], flat.view(2, 3), flat]
    leaves = [nn.Parameter(one) for one in [*parts, tc.ones(2, device=device)]]
    optimizer = getattr(tc.optim, kind)(leaves, lr=0.1, **OPTIMIZERS[kind])
    for k in range(3):
        optimizer.zero_grad()
        sum([(one.sin() * (i + k)).sum() for i, one in enumerate(leaves)], tc.zeros((), device=device)).backward()
        optimizer.step()
    return [one.tolist() for one in [flat, *leaves]]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("apart", [True, False])
def test_parameters_that_share_memory_take_the_same_steps(kind: str, apart: bool) -> None:
    """Each parameter's update sees those before it in the same memory, as it does eagerly; all wait where none overlap."""
    assert _tied(kind, "lazy", apart) == _tied(kind, "cpu", apart)
    found = [one.cause for one in tc.lazy.realisations()]
    assert (found == ["tolist"] * len(found)) is (apart or kind not in ("SGD", "Adam", "AdamW"))


def test_statistics_in_one_memory_are_those_of_eager() -> None:
    """The mean and the variance that batch norm keeps may be one tensor, or overlapping parts of one."""
    seen = []
    for device in ("cpu", "lazy"):
        one, other = tc.ones(3, device=device), tc.ones(4, device=device)
        for _ in range(2):
            nn.functional.batch_norm(tc.full((2, 3), 5.0, device=device), one, one, training=True)
            nn.functional.batch_norm(tc.full((2, 3), 5.0, device=device), other[:3], other[1:], training=True)
        seen.append([one.tolist(), other.tolist()])
    assert seen[0] == seen[1]


def test_a_context_makes_a_whole_program_lazy() -> None:
    """A model, its data and its training inside ``with tc.lazy():`` name no device."""
    with tc.lazy():
        model = nn.Linear(2, 1)
        x = tc.ones(3, 2)
        with tc.lazy.forbid():
            model(x).sum().backward()
    assert model.weight.grad.tolist() == [[3.0, 3.0]]
    assert [one.cause for one in tc.lazy.realisations()] == ["tolist"]


MODELS: dict[str, Any] = {
    "lstm": lambda: nn.LSTM(4, 3), "gru": lambda: nn.GRU(4, 3), "rnn": lambda: nn.RNN(4, 3),
    "transformer": lambda: nn.TransformerEncoderLayer(4, 2, 8), "conv": lambda: nn.Conv1d(5, 5, 3, padding=1),
    "norms": lambda: nn.Sequential(nn.LayerNorm(4), nn.GroupNorm(1, 2), nn.InstanceNorm1d(2, affine=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_layers_train_with_the_same_bits(name: str) -> None:
    """Kernels that keep values for their gradients, or answer with gradients that nobody asked for, replayed too."""
    ends = []
    for device in ("cpu", "lazy"):
        tc.manual_seed(5)
        model = MODELS[name]().to(device)
        optimizer = tc.optim.SGD(model.parameters(), lr=0.1)
        x = tc.randn(2, 5, 4) if name == "conv" else tc.randn(5, 2, 4)
        x, losses = x.to(device), []
        for _ in range(4):
            made = model(x)
            loss = (made[0] if isinstance(made, tuple) else made).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        ends.append((losses, [one.tolist() for one in model.parameters()]))
    assert ends[0][1] == ends[1][1]
    # A fused sum may add in another order, and nothing is computed of a loss.
    assert ends[0][0] == pytest.approx(ends[1][0], rel=1e-6)
    assert [one.replayed for one in tc.lazy.realisations() if one.cause == "item"][-1]


def replays(step: Callable[[int], Any], times: int = 8) -> list[bool]:
    """Of steps that read a value each, whether they were replays."""
    tc.lazy.clear()
    for i in range(times):
        step(i)
    return [one.replayed for one in tc.lazy.realisations()]


def test_a_row_that_is_written_in_turn_is_one_program() -> None:
    """The place that ``x[i] = y`` writes to is an input, whatever leads there; 0 has a program of its own."""
    rows, expected = tc.zeros(8, 4, device="lazy"), tc.zeros(8, 4)

    def step(i: int) -> None:
        for one in (rows, expected):
            one[i] = float(i)
            one[i : i + 2].t()[1] = i * 2
        assert rows.tolist() == expected.tolist()

    assert replays(step, 7)[-3:] == [True] * 3


def test_a_number_of_a_row_that_is_counted_up_replays() -> None:
    """``x[i] += 1`` writes once, and not what it wrote to itself again."""
    counts = tc.zeros(9, device="lazy")

    def step(i: int) -> None:
        counts[i] += 1
        assert counts.sum().item() == i + 1

    assert replays(step, 7)[-3:] == [True] * 3


def test_a_long_program_is_planned_late() -> None:
    """Planning thousands of calls takes longer than running them a few times."""

    def step(i: int) -> None:
        x = tc.ones(2, device="lazy")
        for _ in range(1010):
            x = x * 1.5
        x.sum().item()

    assert replays(step, 3) == [False, False, True]


def test_following_a_log_finds_what_a_draft_would() -> None:
    """The same calls with another value held, another operand or another number are another program, with its own results."""
    x, y = tc.tensor([1.0, 2.0], device="lazy"), tc.tensor([3.0, 5.0], device="lazy")
    held: list[tc.Tensor] = []
    making._known.clear()

    def step(a: tc.Tensor, b: tc.Tensor, number: float, keep: bool) -> list[float]:
        parts = [a * number]
        held.extend(parts if keep else [])
        return (parts.pop() + b).tolist()

    for _ in range(4):
        assert step(x, y, 2.0, False) == [5.0, 9.0]
    before = sum(one.followed for one in making._known.values())
    assert before >= 2
    assert step(x, y, 2.0, True) == [5.0, 9.0]
    assert sum(one.followed for one in making._known.values()) == before
    assert held[0].is_initialized()
    assert held[0].tolist() == [2.0, 4.0]
    assert step(x, x, 2.0, False) == [3.0, 6.0]
    assert step(y, x, 2.0, False) == [7.0, 12.0]
    for number in (3.0, 0.0, -0.0, 2.0, 4.0):
        assert step(x, y, number, False) == [3 + number, 5 + 2 * number]


def test_a_line_is_the_line_of_this_time() -> None:
    """Two lines that write the same calls down in turn are each named by an error in one of theirs."""

    def one(places: tc.Tensor) -> tc.Tensor:
        return tc.arange(3.0, device="lazy").index_select(0, places)

    def other(places: tc.Tensor) -> tc.Tensor:
        return tc.arange(3.0, device="lazy").index_select(0, places)

    fine, broken = tc.tensor([0, 1]).to("lazy"), tc.tensor([0, 7]).to("lazy")
    for made in (one, other, one, one, other):
        made(fine).tolist()
        line = made.__code__.co_firstlineno + 1
        with pytest.raises(IndexError, match=rf"test_training\.py:{line}\)"):
            made(broken).tolist()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises, as in a program that was started by hand: what runs in the background inherits that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_a_program_that_writes_over_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C amid an optimizer's step is raised behind it: the parameters are those of one whole step more."""
    prepare = making.prepare
    calls: list[int] = []

    def interrupting(*given: Any, **options: Any) -> Any:
        plan = prepare(*given, **options)

        def run(*natives: Any) -> Any:
            made = plan(*natives)
            calls.append(len(options["into"]))
            if len(calls) == 3:
                signal.raise_signal(signal.SIGINT)
                assert len(made) > 0  # not interrupted here
            return made

        return run

    monkeypatch.setattr(making, "prepare", interrupting)
    ends = []
    for device in ("cpu", "lazy"):
        weight = tc.full((4, 4), 0.5, device=device, requires_grad=True)
        optimizer = tc.optim.SGD([weight], lr=0.1, momentum=0.9)
        interrupts = 0
        for _ in range(8):
            try:
                optimizer.zero_grad()
                (weight @ weight).tanh().sum().backward()
                optimizer.step()
                tc.lazy.evaluate(weight)
            except KeyboardInterrupt:
                interrupts += 1
        ends.append(weight.tolist())
    assert calls[2] > 0
    assert interrupts == 1
    assert ends[0] == ends[1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
