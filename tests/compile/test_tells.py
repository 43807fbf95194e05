"""What tensors, optimizers and arguments tell a compiled function of themselves is that of the call."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc
from tensorcore.tape.mode import unusual
from tests.compile import elsewhere
from tests.compile.changing import by, same_in_eager_and_compiled


def tell(function: Callable[[Any], Any], make: Callable[[int], Any]) -> None:
    """A function of a tensor, and others of the same kind to call it with: both sides answer alike."""
    compiled = tc.compile(function)
    for i in range(4):
        assert tc.equal(compiled(make(i)).detach(), function(make(i)).detach()), i


def named(i: int) -> Any:
    made = tc.ones(2)
    if i % 2:
        made.tag, made.scale = float(i), tc.full((2,), i)  # type: ignore[attr-defined]
    return made


def with_gradient(i: int) -> Any:
    made = tc.ones(2, requires_grad=True)
    made.grad = tc.ones(2) if i % 2 else None
    return made


def written(i: int) -> Any:
    made = tc.ones(2)
    for _ in range(i):
        made.add_(0)
    return made


def inferred(i: int) -> Any:
    with tc.inference_mode(bool(i % 2)):
        return tc.ones(2)


def retained(i: int) -> Any:
    made = tc.ones(2, requires_grad=True) * 1
    if i % 2:
        made.retain_grad()
    return made


@pytest.mark.parametrize(
    "function, make",
    [
        (lambda x: x * getattr(x, "tag", 5.0), named),
        (lambda x: x * x.scale if hasattr(x, "scale") else x + 1, named),
        (lambda x: x * isinstance(x, tc.nn.Parameter), lambda i: tc.nn.Parameter(tc.ones(2)) if i % 2 else with_gradient(0)),
        (lambda x: x * 2 if x.grad is None else x * 3, with_gradient),
        (lambda x: x * x._version, written),
        (lambda x: x * x.storage_offset(), lambda i: tc.arange(8.0)[i : i + 2]),
        (lambda x: x.as_strided((2,), (1,), 1) * 2, lambda i: tc.arange(8.0)[i : i + 2]),
        (lambda x: x * x.untyped_storage().nbytes(), lambda i: tc.ones(2 + i)[:2]),
        (lambda x: x * 2 if x._base is None else x * 3, lambda i: tc.ones(2) if i % 2 else tc.ones(3)[:2]),
        (lambda x: x * 2 if x.is_inference() else x * 3, inferred),
        (lambda x: x * 2 if x.retains_grad else x * 3, retained),
        (lambda x: x.resize_(3) * 0, lambda i: tc.ones(4).resize_(2)),
    ],
)  # fmt: skip
def test_what_a_tensor_tells_of_itself_is_that_of_the_call(function, make, monkeypatch) -> None:
    """Attributes that a program gives it, whether it has a gradient, where it lies, how it was made and written to."""
    monkeypatch.setattr(unusual, "inferred", unusual.inferred)  # from the first inference mode on, writes ask for more
    tell(function, make)


def test_hooks_that_come_later_run() -> None:
    """A hook of a leaf whose gradient the compiled call itself computes."""
    leaf = tc.ones(2, requires_grad=True)

    @tc.compile
    def step(x: Any) -> Any:
        leaf.grad = None
        (leaf * x).sum().backward()
        return leaf.grad * 1

    for _ in range(3):
        assert step(tc.ones(2)).tolist() == [1, 1]
    leaf.register_hook(lambda g: g * 3)
    assert step(tc.ones(2)).tolist() == [3, 3]


def test_a_gradient_that_a_call_forgets_is_forgotten() -> None:
    """Also where there was none when the call was traced."""
    leaf = tc.ones(2, requires_grad=True)

    @tc.compile
    def step(x: Any) -> Any:
        leaf.grad = None
        return x * leaf.detach()

    for grad in (None, None, tc.ones(2), tc.ones(2), None):
        leaf.grad = grad
        step(tc.ones(2))
        assert leaf.grad is None
    assert step.explain().replays == 3


def test_what_a_tensor_is_given_in_each_call() -> None:
    """An attribute that the call puts at a captured tensor is there after each call."""
    captured = tc.ones(2)
    captured.calls = 0  # type: ignore[attr-defined]

    @tc.compile
    def f(x: Any) -> Any:
        captured.calls = 5  # type: ignore[attr-defined]
        return x * captured

    for _ in range(5):
        captured.calls = 0  # type: ignore[attr-defined]
        f(tc.ones(2))
        assert captured.calls == 5  # type: ignore[attr-defined]


def test_numbers_of_an_optimizer_that_the_program_reads() -> None:
    """The rate of a group, what a scheduler says of it, and whether there is state are read in each call."""

    def make(read: Callable[[Any, Any], Any]) -> Any:
        optimizer = tc.optim.SGD([tc.ones(2, requires_grad=True)], lr=1.0, momentum=0.9)
        schedule = tc.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

        def put(i: float) -> None:
            optimizer.param_groups[0]["params"][0].sum().backward()
            optimizer.step()
            schedule.step()

        return by(lambda: read(optimizer, schedule), put)

    for read in (
        lambda o, s: o.param_groups[0]["lr"], lambda o, s: s.get_last_lr()[0], lambda o, s: 1 + len(o.state),
    ):  # fmt: skip
        same_in_eager_and_compiled(lambda read=read: make(read))


def test_the_order_of_arguments_by_name() -> None:
    """A function that takes any sees it; one that names them all is traced once for all orders."""
    one = tc.compile(lambda x, **given: sum(x * (i + 1) * v for i, v in enumerate(given.values())))
    x = tc.ones(1)
    assert [one(x, a=1.0, b=2.0).item(), one(x, b=2.0, a=1.0).item()] == [5.0, 4.0]
    two = tc.compile(lambda x, a, b: x * a + b)
    assert [two(x, a=1.0, b=2.0).item(), two(x, b=2.0, a=1.0).item(), two.explain().traces] == [3.0, 3.0, 1]


def test_what_the_backward_of_a_function_reads() -> None:
    """A number that only ``Function.backward`` reads is guarded with the rest."""
    number = [1.0]

    class Scaled(tc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * number[0]

    call = tc.compile(lambda x: Scaled.apply(x))
    for i in range(4):
        number[0] = float(i // 2)
        x = tc.ones(2, requires_grad=True)
        call(x).sum().backward()
        assert x.grad.tolist() == [i // 2] * 2
    assert call.explain().replays == 2


def test_a_module_that_has_no_shapes_yet() -> None:
    """A lazy layer learns them in the first call, and is replayed later."""
    call = tc.compile(tc.nn.LazyLinear(3))
    assert [tuple(call(tc.ones(2, 4)).shape) for _ in range(4)] == [(2, 3)] * 4
    assert call.explain().replays >= 1


def test_an_object_that_only_a_weak_reference_knows_may_go() -> None:
    """Guards do not keep what the program does not keep."""
    held = elsewhere.Settings()
    reference = weakref.ref(held)
    call = tc.compile(lambda x: x * (1.0 if reference() is None else 2.0))
    assert call(tc.ones(1)).item() == 2.0
    del held
    assert reference() is None
    assert call(tc.ones(1)).item() == 1.0
