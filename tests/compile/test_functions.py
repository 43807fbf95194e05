"""Compiled functions: they answer, write, draw, raise and share memory as the functions themselves do."""

from __future__ import annotations

import weakref
from collections import namedtuple
from typing import Any

import pytest

import tensorcore as tc

Pair = namedtuple("Pair", "first second")


def counted(function: Any, **options: Any) -> Any:
    """The function compiled, without fused kernels: the same bits as eager."""
    return tc.compile(function, backend=lambda program: None, **options)


def same(one: tc.Tensor, other: tc.Tensor) -> bool:
    return one.dtype is other.dtype and one.stride() == other.stride() and tc.equal(one, other)


# Results


def test_a_function_is_traced_once_and_replayed() -> None:
    """Calls of the same kind run the function once; the others replay, with the same bits."""

    @counted
    def f(x, y):
        return (x * y + 1).exp().sum(1) / 2

    for _ in range(4):
        x, y = tc.randn(3, 4), tc.randn(4)
        assert same(f(x, y), f.__wrapped__(x, y))
    found = f.explain()
    assert (found.traces, found.replays, found.eager, found.reasons) == (1, 3, 0, [])
    assert found.kernels == [5]


def test_results_keep_their_structure() -> None:
    """Tuples, lists, dicts, named tuples, numbers and arguments come back as they were."""

    @counted
    def f(x, n):
        y = x + n
        return {"a": [y, x], "b": Pair(y, n), "c": (None, "text", y.shape)}

    for _ in range(3):
        x = tc.ones(2)
        found = f(x, 3)
        assert found["a"][1] is x
        assert found["b"].first is found["a"][0]
        assert (found["b"].second, found["c"]) == (3, (None, "text", tc.Size([2])))
        assert found["a"][0].tolist() == [4, 4]
    assert f.explain().replays == 2


def test_a_result_is_new_with_each_call() -> None:
    """Results of two calls share no memory, not even those that do not depend on the arguments."""

    @counted
    def f(x):
        return x * 2, tc.zeros(2), tc.tensor([1.0, 2.0])

    f(tc.ones(2))
    first = f(tc.ones(2))
    for one in first:
        one += 5
    assert [one.tolist() for one in f(tc.ones(2))] == [[2, 2], [0, 0], [1, 2]]
    assert [one.tolist() for one in first] == [[7, 7], [5, 5], [6, 7]]


def test_two_equal_results_are_two_tensors() -> None:
    """What is computed twice is computed once, and still leaves in two memories."""

    @counted
    def f(x):
        return x * 2, x * 2, (x * 2).clone()

    f(tc.ones(2))
    a, b, c = f(tc.ones(2))
    a += 1
    assert (a.tolist(), b.tolist(), c.tolist()) == ([3, 3], [2, 2], [2, 2])


def test_views_share_memory_as_ever() -> None:
    """A view of an argument, and two views of one result, show the memory that they show without compiling."""

    @counted
    def f(x):
        y = x * 2
        return x[0], y, y.t()

    f(tc.ones(2, 3))
    x = tc.ones(2, 3)
    row, y, turned = f(x)
    row += 1
    y += 10
    assert x.tolist() == [[2, 2, 2], [1, 1, 1]]
    assert turned.tolist() == [[12, 12]] * 3
    assert f.explain().replays == 1


# Writes


def test_writes_to_arguments_are_seen() -> None:
    """In-place ops, whole and in part, change the tensors that were passed, and count as writes."""

    @counted
    def f(x, y):
        x.mul_(2)
        x[0] = y
        y += x.sum()
        return x + y

    def expected(x, y):
        return f.__wrapped__(x, y)

    for _ in range(3):
        x, y = tc.tensor([[1.0, 2.0], [3.0, 4.0]]), tc.tensor([5.0, 6.0])
        x2, y2 = x.clone(), y.clone()
        view, before = x[1], x._version
        assert same(f(x, y), expected(x2, y2))
        assert same(x, x2)
        assert same(y, y2)
        assert view.tolist() == x2[1].tolist()
        assert x._version > before
    assert f.explain().replays == 2


def test_a_swap_reads_before_it_writes() -> None:
    """Values that are written over one another are all read first."""

    @counted
    def f(x, y):
        kept = x.clone()
        x.copy_(y)
        y.copy_(kept)

    for _ in range(3):
        x, y = tc.tensor([1.0]), tc.tensor([2.0])
        f(x, y)
        assert (x.item(), y.item()) == (2, 1)
    assert f.explain().replays == 2


def test_a_copy_does_not_follow_its_source() -> None:
    """What was copied from an argument stays what it was when the argument is written later."""

    @counted
    def f(x):
        kept = tc.empty_like(x)
        kept.copy_(x)
        x += 1
        return kept

    for _ in range(3):
        x = tc.tensor([1.0])
        kept = f(x)
        assert (kept.item(), x.item()) == (1, 2)
        x += 5
        assert kept.item() == 1
    assert f.explain().replays == 2


def test_arguments_that_share_memory_are_told_apart() -> None:
    """A trace of two memories is not replayed on one, where that would give another result."""

    @counted
    def f(x, y):
        x += 1
        return x + y

    f(tc.ones(2), tc.ones(2))
    x = tc.ones(2)
    assert f(x, x).tolist() == [4, 4]
    x = tc.ones(2)
    assert f(x, x[:]).tolist() == [4, 4]
    assert f(tc.ones(2), tc.ones(2)).tolist() == [3, 3]


# Random numbers


def test_random_numbers_are_those_of_eager() -> None:
    """Draws come in the same order from the same generator, also those whose numbers nobody needs."""

    @counted
    def f(x):
        tc.rand(3)
        return x + tc.randn(3), tc.nn.functional.dropout(x, 0.5), tc.randint(0, 9, (4,)), tc.randperm(5)

    for function in (f, f.__wrapped__):
        tc.manual_seed(1)
        found = [[one.tolist() for one in function(tc.ones(3))] for _ in range(3)]
        if function is f:
            compiled = found
    assert found == compiled
    assert f.explain().replays == 2


def test_a_seed_inside_counts_in_each_call() -> None:
    """A function that seeds gives the same numbers each time."""

    @counted
    def f(x):
        tc.manual_seed(4)
        return x + tc.rand(2)

    assert len({tuple(f(tc.zeros(2)).tolist()) for _ in range(3)}) == 1
    assert f.explain().replays == 2


# What cannot be replayed


def test_a_branch_on_values_runs_eagerly() -> None:
    """Both ways are taken as the values say; the account names the line."""

    @counted
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    assert [f(tc.tensor([n])).item() for n in (1.0, -1.0, 2.0)] == [2, -2, 3]
    found = f.explain()
    assert (found.traces, found.replays, found.eager) == (1, 0, 2)
    assert "reads a value of a tensor" in found.reasons[0]
    assert f"test_functions.py:{f.__wrapped__.__code__.co_firstlineno + 2}" in found.reasons[0]


def test_fullgraph_refuses_a_branch_on_values() -> None:
    """With fullgraph=True it is an error that names the line and the way out."""

    @counted
    def f(x):
        return x + 1 if x.sum() > 0 else x

    with pytest.raises(RuntimeError, match=r"test_functions.py:\d+; compute it in tensors"):
        tc.compile(f.__wrapped__, fullgraph=True)(tc.ones(1))


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x[x > 0],
        lambda x: x.tolist(),
        lambda x: tc.from_numpy(x.numpy() + 1),
        lambda x: str(x),
        lambda x: tc.unique(x),
    ],
)
def test_values_that_leave_for_python_run_eagerly(body) -> None:
    """Shapes that depend on values, lists and texts are those of each call."""
    f = counted(body)
    for values in ([1.0, -2.0], [3.0, 4.0]):
        found, expected = f(tc.tensor(values)), body(tc.tensor(values))
        assert str(found) == str(expected)
    assert f.explain().replays == 0


def test_state_that_a_call_changes_is_not_frozen() -> None:
    """A function that counts in Python counts on: it is not replayed, and the account says why."""
    state = {"calls": 0}

    @counted
    def f(x):
        state["calls"] += 1
        return x * state["calls"]

    assert [f(tc.ones(1)).item() for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    found = f.explain()
    assert (found.traces, found.replays, found.eager) == (3, 0, 3)
    assert "changes what it depends on: 'state'['calls'] is 3 now" in found.reasons[-1]


def test_other_devices_run_eagerly() -> None:
    """Tensors of the lazy device, of meta, and results that were not computed here are left to eager."""

    @counted
    def f(x):
        return x * 2 + 1, tc.ones(2, device="meta")

    with_lazy = f(tc.ones(2, device="lazy"))[0]
    assert with_lazy.tolist() == [3, 3]
    assert f(tc.ones(2))[0].tolist() == [3, 3]
    assert f(tc.ones(2, device="meta"))[0].is_meta
    assert f(tc.ones(2))[1].is_meta
    assert f.explain().replays == 0


def test_vmap_inside_and_outside() -> None:
    """A vmap inside is part of the trace; inside a vmap a compiled function runs as it is."""

    @counted
    def f(x):
        return tc.vmap(lambda row: (row * row).sum())(x)

    x = tc.arange(6.0).view(3, 2)
    for _ in range(3):
        assert same(f(x), (x * x).sum(1))
    g = counted(lambda row: (row * row).sum())
    for _ in range(3):
        assert same(tc.vmap(g)(x), (x * x).sum(1))


def test_disable_ends_a_trace() -> None:
    """A function that is not to be compiled makes its callers run as they are."""

    @tc.compiler.disable
    def inner(x):
        return x * 2

    @counted
    def f(x):
        return inner(x) + 1

    assert [f(tc.ones(1)).item() for _ in range(3)] == [3, 3, 3]
    assert f.explain().replays == 0
    assert "inner" in f.explain().reasons[0]


def test_compiled_functions_nest() -> None:
    """A compiled function that another one calls is part of that one's trace."""

    @counted
    def inner(x):
        return x * 2

    @counted
    def f(x):
        return inner(x) + 1

    assert [f(tc.ones(1)).item() for _ in range(3)] == [3, 3, 3]
    assert (f.explain().replays, inner.explain().traces) == (2, 0)


# Errors


def test_errors_are_those_of_eager() -> None:
    """A shape that does not fit raises as ever, before and after a trace, and leaves no trace behind."""

    @counted
    def f(x, y):
        return x + y

    for _ in range(2):
        with pytest.raises(RuntimeError, match="size of tensor a"):
            f(tc.ones(2), tc.ones(3))
        assert f(tc.ones(2), tc.ones(2)).tolist() == [2, 2]
    with pytest.raises(TypeError):
        f(tc.ones(2))


def test_an_index_out_of_range_raises_in_a_replay() -> None:
    """Checks of values run in each replay; what fails them raises as eager does, and nothing was written."""
    table, count = tc.randn(5, 2), tc.zeros(())

    @counted
    def f(at):
        count.add_(1)
        return tc.nn.functional.embedding(at, table)

    f(tc.tensor([0, 1]))
    assert same(f(tc.tensor([4, 3])), table[tc.tensor([4, 3])])
    with pytest.raises(IndexError, match="out of range"):
        f(tc.tensor([0, 5]))
    assert f(tc.tensor([2, 2])).shape == (2, 2)
    assert f.explain().replays == 2


def test_a_wrong_use_of_explain_is_refused() -> None:
    """explain wants what compile gave."""
    with pytest.raises(TypeError, match="what compile"):
        tc.compile.explain(len)


def test_a_traced_call_keeps_no_array_alive() -> None:
    """What the function lets go is freed while it is traced, and another array may take its place in memory."""
    ended: list[bool] = []

    def run(x: tc.Tensor) -> tc.Tensor:
        for i in range(4):
            y = x * i
            held = weakref.ref(y.native)
            x = x + y[1:].sum()
            del y
            ended.append(held() is None)
        return x

    assert tc.compile(run)(tc.ones(300)).tolist() == run(tc.ones(300)).tolist()
    assert ended == [True] * 8


def test_a_tensor_of_python_numbers_that_is_written_to() -> None:
    """A tensor made of numbers in the call, and then changed in place, begins with these numbers in each call."""

    @counted
    def f(x):
        factors = tc.tensor([1.0, 2.0])
        factors.mul_(2)
        return factors + x

    assert [f(tc.zeros(2)).tolist() for _ in range(3)] == [[2, 4]] * 3
    assert f.explain().replays == 2


@pytest.mark.parametrize("options", [{}, {"breaks": True}], ids=["whole", "in pieces"])
def test_a_device_has_its_own_methods_back(options: dict[str, bool]) -> None:
    """Tracing puts methods in the place of a device's faster ones for a while, and leaves nothing behind."""
    device = tc.device("cpu")
    before = {**vars(device)}
    step = tc.compile(lambda x: x.exp() * (2.0 if x.sum().item() > 0 else 3.0), options=options)
    step(tc.ones(3))
    step(tc.ones(3))
    assert vars(device) == before


@pytest.mark.parametrize("dtype", [tc.bfloat16, tc.float16])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu"])
def test_gradients_of_narrow_floats_are_rounded_once(name, dtype) -> None:
    """As in eager: bit for bit, in the call that is traced and in replays."""
    tc.manual_seed(0)
    x, g = tc.randn(64, 8).to(dtype), tc.randn(64, 8).to(dtype)

    def gradient(x, g):
        x = x.detach().requires_grad_()
        return tc.autograd.grad(getattr(x, name)(), x, g)[0]

    expected = gradient(x, g).tolist()
    compiled = tc.compile(gradient)
    for _ in range(3):
        assert compiled(x, g).tolist() == expected
    with tc.lazy():
        assert gradient(*[tc.tensor(one.tolist(), dtype=dtype) for one in (x, g)]).tolist() == expected
