"""The account of every time that values were made: causes and lines, forbidding, budgets, and what makes nothing."""

from __future__ import annotations

import gc
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.lazy.drafts import pending_of


def pending(*shape: int) -> tc.Tensor:
    """A lazy tensor that waits for two calls."""
    return tc.arange(1.0, 7.0, device="lazy").view(shape or (2, 3)) * 2 + 1


def causes() -> list[str]:
    return [one.cause for one in tc.lazy.realisations()]


LOOKS: dict[str, Callable[[tc.Tensor], Any]] = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "bool": lambda x: bool(x.sum() > 0),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "format": lambda x: f"{x.sum():.2f}",
    "evaluate": lambda x: tc.evaluate(x),
    "cpu": lambda x: x.cpu(),
    "in": lambda x: 3.0 in x,
    "pickle": lambda x: pickle.dumps(x),
    "nonzero": lambda x: tc.nonzero(x),
    "masked_select": lambda x: x.masked_select(x > 3),
    "unique": lambda x: tc.unique(x),
    "Embedding": lambda x: tc.nn.Embedding(20, 2, device="lazy")(x.long()),
    "Categorical": lambda x: tc.distributions.Categorical(x),
}


@pytest.mark.parametrize("cause", LOOKS)
def test_a_look_is_entered_with_its_cause_and_line(cause: str) -> None:
    """Whatever needs a value makes it once, under its own name and with the line of the program that called it."""
    x = pending()
    look = LOOKS[cause]
    look(x)
    (entry,) = tc.lazy.realisations()
    assert entry.cause == cause
    assert entry.line == f"{__file__}:{inspect.getsourcelines(look)[1]}"
    assert entry.steps >= 2
    assert entry.bytes >= 48
    assert entry.seconds > 0


@pytest.mark.parametrize(
    "look",
    [repr, str, lambda x: repr(x.untyped_storage()), lambda x: repr(x.storage()),
     lambda x: x.shape, len, lambda x: x.stride(), lambda x: x.data_ptr(), lambda x: x.untyped_storage().nbytes(),
     lambda x: x.is_contiguous(), lambda x: x.detach().t()[0].add_(1), lambda x: x.clone().requires_grad_().sum().backward(),
     lambda x: tc.lazy.draw(x).text(), lambda x: x.is_initialized(), lambda x: x == x, lambda x: vars(x), dir],
)  # fmt: skip
def test_what_needs_no_value_makes_none(look: Callable[[tc.Tensor], Any]) -> None:
    """Printing, asking for shapes, writing in place, a backward pass: all of it is written down at most."""
    look(pending())
    assert causes() == []


def test_a_lazy_tensor_prints_what_is_known() -> None:
    """Dots in the place of the values, then the device, the size, and any dtype that is not the default one."""
    assert repr(pending()) == "tensor(..., device='lazy', size=(2, 3))"
    x = pending().to(tc.float64).requires_grad_()
    assert (
        repr(x[0] * 2) == "tensor(..., device='lazy', size=(3,), dtype=torch.float64,\n       grad_fn=<MulBackward0>)"
    )
    assert repr(tc.nn.Parameter(pending())).startswith("Parameter containing:\ntensor(..., device='lazy'")


def test_a_sparse_tensor_prints_what_is_known() -> None:
    """Values that wait are dots and a size."""
    x = tc.eye(2, device="lazy").to_sparse() * 2
    tc.lazy.clear()
    assert "values=tensor(..., size=(2,))" in repr(x)
    assert causes() == []


def test_what_is_made_is_not_made_again() -> None:
    """A second look at a value, or one at what was made along with it, finds it there."""
    x = pending()
    y = x * 3
    x.tolist()
    y.tolist()
    x.tolist()
    assert causes() == ["tolist"]


def test_what_was_not_asked_for_is_left_alone() -> None:
    """Values that have nothing to do with the one that is needed stay written down."""
    x, y = pending(), pending()
    x.tolist()
    assert (x.is_initialized(), y.is_initialized()) == (True, False)


def test_dead_values_are_never_made() -> None:
    """What nobody has any more takes no part in a program."""
    x = pending()
    for _ in range(50):
        x * 5
    x.tolist()
    assert tc.lazy.realisations()[0].steps <= 4


def test_the_report_has_a_row_for_each_cause_and_line() -> None:
    """Times, cause, line, calls, bytes, milliseconds and replays in columns."""
    for _ in range(3):
        pending().tolist()
    head, row = tc.lazy.report().splitlines()
    assert head.split() == ["times", "cause", "line", "calls", "bytes", "ms", "replays"]
    cells = row.split()
    line = inspect.currentframe().f_lineno - 4  # type: ignore[union-attr]
    assert cells[:3] == ["3", "tolist", f"{__file__}:{line}"]
    assert int(cells[3]) == sum(one.steps for one in tc.lazy.realisations())
    assert cells[-1] == str(sum(one.replayed for one in tc.lazy.realisations()))


def test_forbid_raises_where_a_value_is_needed_and_leaves_it_pending() -> None:
    """The error names the cause and the line; outside of the block the value can be had."""
    y = pending().sum()
    with tc.lazy.forbid(), pytest.raises(tc.lazy.Forbidden, match=rf"forbid\(\), got 'item' at .*{__file__}:\d+"):
        y.item()
    assert causes() == []
    assert y.item() == 48.0


def test_forbid_lets_through_what_is_there() -> None:
    """A value that was made before may be read."""
    x = pending()
    tc.evaluate(x)
    with tc.lazy.forbid():
        assert x.tolist() == [[3.0, 5.0, 7.0], [9.0, 11.0, 13.0]]


def test_a_budget_of_bytes_makes_what_is_pending() -> None:
    """A long graph is cut where it would hold more than that, and the account says so."""
    tc.lazy.budget(4000)
    x = tc.zeros(100, device="lazy")
    for _ in range(40):
        x = x + 1
    assert set(causes()) == {"budget"}
    assert 2 <= len(causes()) <= 10
    assert x.tolist() == [40.0] * 100


def test_no_more_bytes_are_pending_than_the_budget() -> None:
    """Call by call, in a loop that reads nothing: what waits is never more than the budget and the last call."""
    tc.lazy.budget(4000)
    x, kept, device = tc.zeros(100, device="lazy"), [], tc.device("lazy")
    for i in range(60):
        x = x + i
        kept.append(x)
        assert sum(one.call.nbytes for one in pending_of(device)) <= 4400
    assert len(causes()) >= 5
    assert kept[-1].tolist() == [sum(range(60))] * 100


def test_a_budget_of_steps_makes_what_is_pending() -> None:
    """A graph of many small values is cut too."""
    tc.lazy.budget(steps=10)
    x = tc.zeros((), device="lazy")
    for _ in range(40):
        x = x + 1
    assert "budget" in causes()
    assert x.item() == 40.0


def test_the_dead_do_not_count_for_the_budget() -> None:
    """A loop that drops what it computes never fills it."""
    tc.lazy.budget(4000)
    x = tc.zeros(100, device="lazy")
    for _ in range(100):
        x + 1
    assert causes() == []


@pytest.mark.parametrize("value", [0, -1, 1.5, "a"])
def test_a_budget_is_a_positive_int(value: Any) -> None:
    """Anything else is refused, and the budget stays."""
    before = tc.lazy.budget()
    with pytest.raises(ArgumentError, match="budget: expected"):
        tc.lazy.budget(value)
    with pytest.raises(ArgumentError, match="budget: expected"):
        tc.lazy.budget(steps=value)
    assert tc.lazy.budget() == before


def test_evaluate_takes_tensors_of_any_device() -> None:
    """Lazy ones of one device are made in one program; others have their values; what is no tensor is refused."""
    x, y = pending(), pending()
    tc.evaluate(x, tc.ones(2), y)
    assert causes() == ["evaluate"]
    assert x.is_initialized()
    assert y.is_initialized()
    with pytest.raises(ArgumentTypeError, match="evaluate: expected tensors, got int"):
        tc.evaluate(3)


def test_what_cannot_be_made_stops_no_other_line() -> None:
    """A budget that is spent makes the rest; the index that is out of range is an error where its value is read."""
    places = tc.tensor([0, 9]).to("lazy") + 0
    broken = tc.ones(3, device="lazy").index_select(0, places) * 2
    before = tc.lazy.budget()
    tc.lazy.budget(steps=20)
    try:
        x = tc.ones(3, device="lazy")
        for _ in range(100):
            x = x + 1
    finally:
        tc.lazy.budget(before[0], steps=before[1])
    assert x.tolist() == [101.0] * 3
    with pytest.raises(IndexError, match=r"written down as 'index_select' at .*test_account\.py"):
        broken.tolist()


def test_the_budget_does_not_count_what_only_garbage_holds() -> None:
    """What was written down in objects that hold one another, and that nobody else has any more, is never made."""

    class Held:
        def __init__(self) -> None:
            self.itself = self
            self.values = tc.zeros(1 << 25, device="lazy") + 1

    tc.lazy.budget(1 << 28)
    gc.disable()
    try:
        Held()
        for i in range(3):
            (tc.zeros(2, device="lazy") + i).tolist()
            Held()
    finally:
        gc.enable()
    assert [one.cause for one in tc.lazy.realisations()] == ["tolist"] * 3
