"""Random programs of what compiled functions read and write, with random changes between their calls: eager's results and state."""

from __future__ import annotations

import collections
import random
import types
from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc
from tests.compile import elsewhere

CALLS = 6
Step = Callable[[Any, Any], Any]


class Net(tc.nn.Module):
    """Reads attributes of all kinds."""

    rate = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.weight = tc.nn.Parameter(tc.ones(2))
        self.register_buffer("bias", tc.ones(2))
        self.flag, self.terms, self.table = False, [0.5], {"a": 1.0}

    def forward(self, x: Any) -> Any:
        y = x * self.weight * self.rate * self.table["a"] + self.bias
        y = y * 2 if self.flag else y
        return (y + 1 if self.training else y) + sum(self.terms)


def world() -> Any:
    """What programs read and change."""
    net = Net()
    Net.rate, elsewhere.SCALE, elsewhere.Settings.by = 1.0, 1.0, 1.0
    return types.SimpleNamespace(
        net=net, numbers=[1.0, tc.ones(2)], table={"a": 1.0, "t": tc.ones(2)}, queue=collections.deque([1.0], 3),
        leaf=tc.ones(2, requires_grad=True), members={1}, count=0, held=elsewhere.Settings(),
        optimizer=tc.optim.SGD(net.parameters(), lr=0.1),
    )  # fmt: skip


READS: list[Step] = [
    lambda w, x: x * w.held.by, lambda w, x: x * w.numbers[0] + w.numbers[-1], lambda w, x: x + sum(w.table.values()),
    lambda w, x: x * w.queue[-1], lambda w, x: x * w.leaf, lambda w, x: x * len(w.members), lambda w, x: w.net(x),
    lambda w, x: elsewhere.scaled(x), lambda w, x: x * (2 if w.leaf.grad is None else 3),
    lambda w, x: x * (2 if w.leaf.requires_grad else 3), lambda w, x: x * w.optimizer.param_groups[0]["lr"],
    lambda w, x: x + sum(p.sum() for p in w.net.parameters()), lambda w, x: x.clone().mul_(2).add_(w.count),
]  # fmt: skip
WRITES: list[Step] = [
    lambda w, x: w.table.update(t=x.detach() * 2), lambda w, x: w.net.bias.add_(1), lambda w, x: w.numbers[1].mul_(0.5),
    lambda w, x: setattr(w, "count", w.count + 1), lambda w, x: w.numbers.__setitem__(0, 2.0), lambda w, x: w.queue.append(2.0),
    lambda w, x: setattr(w.net, "bias", w.net.bias * 0.5), lambda w, x: setattr(w.held, "by", 3.0),
    lambda w, x: (w.optimizer.zero_grad(), w.net(x).sum().backward(), w.optimizer.step()),
    lambda w, x: w.members.add(7), lambda w, x: setattr(w.leaf, "grad", None),
]  # fmt: skip
CHANGES: list[Callable[[Any, int], Any]] = [
    lambda w, i: setattr(w.held, "by", float(i % 2)), lambda w, i: setattr(elsewhere.Settings, "by", 5.0),
    lambda w, i: w.numbers.append(tc.full((2,), 2.0)), lambda w, i: w.numbers.__setitem__(0, float(i % 2)),
    lambda w, i: w.table.update(a=float(i % 2)), lambda w, i: w.table.update(z=1.0), lambda w, i: w.queue.append(float(i % 2)),
    lambda w, i: setattr(w.leaf, "grad", tc.ones(2) if i % 2 else None), lambda w, i: w.leaf.requires_grad_(bool(i % 2)),
    lambda w, i: setattr(w.leaf, "data", tc.full((2,), float(i))), lambda w, i: w.members.add(i),
    lambda w, i: w.net.train(bool(i % 2)), lambda w, i: setattr(w.net, "flag", bool(i % 2)),
    lambda w, i: setattr(Net, "rate", float(1 + i % 2)), lambda w, i: w.net.table.update(a=float(i % 2)),
    lambda w, i: w.net.terms.append(1.0), lambda w, i: setattr(w.net, "weight", tc.nn.Parameter(tc.full((2,), float(i)))),
    lambda w, i: w.net.bias.fill_(i), lambda w, i: setattr(w.net, "bias", tc.full((2,), float(i))),
    lambda w, i: w.net.register_forward_hook(lambda module, args, out: out * 1.5) if i == 3 else None,
    lambda w, i: w.optimizer.param_groups[0].update(lr=0.1 * (1 + i % 2)),
    lambda w, i: setattr(elsewhere, "SCALE", float(i % 2)), lambda w, i: None, lambda w, i: None, lambda w, i: None,
    lambda w, i: setattr(w.net, "forward", lambda x: x * 7) if i == 4 else None,
    lambda w, i: w.leaf.register_hook(lambda g: g * 2) if i == 3 and w.leaf.requires_grad else None,
]  # fmt: skip
ARGUMENTS: list[Callable[[int], Any]] = [
    lambda i: tc.full((2,), float(i)), lambda i: tc.arange(4.0)[1:3] + i, lambda i: tc.arange(8.0)[::2][:2],
    lambda i: tc.full((2,), float(i), requires_grad=True), lambda i: tc.ones(3, 2) if i % 2 else tc.ones(2),
]  # fmt: skip


def told(value: Any) -> Any:
    """Something that holds tensors, as something to compare."""
    if isinstance(value, tc.Tensor):
        grad = None if not value.is_leaf or value.grad is None else value.grad.tolist()
        return value.detach().tolist(), value.requires_grad, grad
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items()}
    return [told(one) for one in value] if isinstance(value, list | tuple | collections.deque) else value


def ran(seed: int, compiled: bool) -> tuple[list[str], int]:
    """What the program of a seed answered with and left behind, call by call; and how many calls were replays."""
    choose = random.Random(seed)
    steps = [(True, choose.choice(READS)) for _ in range(choose.randint(1, 3))]
    steps += [(False, choose.choice(WRITES)) for _ in range(choose.choice([0, 0, 1, 1, 2]))]
    choose.shuffle(steps)
    changes = [[choose.choice(CHANGES) for _ in range(choose.choice([0, 1, 1, 2]))] for _ in range(CALLS)]
    argument, backward, recorded = choose.choice(ARGUMENTS), choose.random() < 0.4, choose.random() < 0.8
    w = world()

    def program(x: Any) -> Any:
        for reads, step in steps:
            found = step(w, x)
            x = found if reads else x
        return x

    call = tc.compile(program) if compiled else program
    found: list[str] = []
    for i in range(CALLS):
        for change in changes[i]:
            change(w, i)
        x = argument(i)
        try:
            with tc.set_grad_enabled(recorded):
                y = call(x)
            if backward and y.requires_grad:
                y.sum().backward()
            found.append(repr((told(y.detach()), y.requires_grad, told(x) if x.is_leaf else None)))
        except RuntimeError as error:
            found.append(type(error).__name__)
        held = [w.numbers, w.table, w.queue, w.leaf, sorted(w.members), w.count, w.held.__dict__]
        found.append(repr(told([*held, [*w.net.parameters()], [*w.net.buffers()]])))
    return found, call.explain().replays if compiled else 0


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_a_random_program_with_random_changes_is_eagers(first, monkeypatch) -> None:
    """Results, gradients and all that the program can reach are the same after each call; and some calls are replays."""
    for holder, name in ((elsewhere, "SCALE"), (elsewhere.Settings, "by")):
        monkeypatch.setattr(holder, name, getattr(holder, name))
    replays = 0
    for seed in range(first, first + 10):
        expected, _ = ran(seed, False)
        found, some = ran(seed, True)
        assert found == expected, seed
        replays += some
    assert replays > 0
