"""What a custom Function reads in its backward pass, behind a compiled function: changes before the call, and after it."""

from __future__ import annotations

from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.errors import UsageError
from tests.compile import elsewhere
from tests.compile.stepwise import stepwise


class Settings:
    """An object of the program's own."""

    by = 2.0


class FromElsewhere(tc.autograd.Function):
    """Multiplies the gradient by a number of another module's."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * elsewhere.SCALE


class FromContext(tc.autograd.Function):
    """Multiplies the gradient by an attribute of an object that it was handed."""

    @staticmethod
    def forward(ctx: Any, x: Any, held: Any) -> Any:
        ctx.held, ctx.seen = held, (x * 0).sum()
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.held.by + ctx.seen, None


class Scaled(nn.Module):
    """Hands itself to the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.by, self.epoch = 2.0, 0

    def forward(self, x: Any) -> Any:
        return FromContext.apply(x, self) + 1


def of_a_global() -> Any:
    return lambda x: FromElsewhere.apply(x) + 1, lambda by: setattr(elsewhere, "SCALE", by)


def of_a_closure() -> Any:
    by = 2.0

    class Closed(tc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * by

    def put(number: float) -> None:
        nonlocal by
        by = number

    return lambda x: Closed.apply(x) + 1, put


def of_an_object() -> Any:
    held = Settings()
    return lambda x: FromContext.apply(x, held) + 1, lambda by: setattr(held, "by", by)


def of_a_module() -> Any:
    model = Scaled()
    return model, lambda by: setattr(model, "by", by)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "SCALE", 1.0)


MAKERS = [of_a_global, of_a_closure, of_an_object, of_a_module]


@pytest.mark.parametrize("make", MAKERS)
def test_a_change_before_the_call_is_seen(make: Any) -> None:
    """The gradient is that of what the backward pass reads now, and the same again costs no trace."""
    function, put = make()
    compiled = tc.compile(function)
    for by in (2.0, 2.0, 5.0, 5.0):
        put(by)
        x = tc.ones(3, requires_grad=True)
        compiled(x).sum().backward()
        assert x.grad.tolist() == [by] * 3
    assert (compiled.explain().traces, compiled.explain().replays) == (2, 2)


@pytest.mark.parametrize("make", MAKERS)
def test_a_change_after_the_call_is_refused(make: Any) -> None:
    """A replay has the gradient of what was read in the trace, and says so where a program changed that since its forward pass."""
    function, put = make()
    compiled = tc.compile(function)
    put(2.0)
    for _ in range(2):
        x = tc.ones(3, requires_grad=True)
        y = compiled(x).sum()
    put(5.0)
    with pytest.raises(UsageError, match=r"reads behind a compiled function.* is 5.0 now; change it before"):
        y.backward()
    put(2.0)
    y.backward()
    assert x.grad.tolist() == [2.0] * 3


def test_what_the_backward_pass_does_not_read_may_change() -> None:
    """An attribute beside the one that it reads, and a switch of the module's."""
    model = Scaled()
    compiled = tc.compile(model)
    for _ in range(3):
        x = tc.ones(3, requires_grad=True)
        y = compiled(x).sum()
        model.epoch += 1
        y.backward()
        assert x.grad.tolist() == [2.0] * 3
    assert compiled.explain().traces == 1
    y = compiled(x.detach().requires_grad_()).sum()
    model.eval()
    y.backward()


class Counting(Scaled):
    """Puts another tensor in the place of its state in each call, and reads it there."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(3, 3)
        self.h: Any = None
        self.register_buffer("mean", tc.zeros(3))

    def forward(self, x: Any) -> Any:
        y = FromContext.apply(self.into(x), self)
        self.mean = self.mean * 0.9 + y.detach().mean(0) * 0.1
        self.h = y.detach() if self.h is None else self.h * 0.5 + y.detach()
        return y + self.h


def test_state_that_the_call_puts_in_place_is_no_change() -> None:
    """Of a module that the backward pass is handed: training in replays is that of eager."""

    def train(compiled: bool) -> tuple[list[Any], Any]:
        tc.manual_seed(0)
        model = Counting()
        run = tc.compile(model, backend=stepwise) if compiled else model
        optimizer = tc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(6):
            optimizer.zero_grad()
            run(tc.rand(2, 3)).sum().backward()
            optimizer.step()
        return [one.tolist() for one in (*model.parameters(), model.mean, model.h)], run

    found, compiled = train(True)
    assert found == train(False)[0]
    assert compiled.explain().replays == 4, compiled.explain()
