"""What vmap shows of its examples, what it asks of random numbers, of writes, and of custom Functions."""

from __future__ import annotations

from typing import Any

import pytest

import tensorcore as tc
from tensorcore.func import grad, vmap


def test_examples_have_no_batch_dim() -> None:
    """Inside, shape, strides, dims and element counts are those of one example."""
    seen = []
    vmap(lambda x: seen.append((tuple(x.shape), x.stride(), x.ndim, x.numel(), x.is_contiguous())) or x, in_dims=1)(
        tc.ones(2, 3, 4)
    )
    assert seen == [((2, 4), (12, 1), 2, 8, False)]


def test_device_is_that_of_the_input() -> None:
    """Programs that compare or pass on the device go on as outside."""
    x = tc.ones(3, 2)
    devices = []
    made = vmap(lambda one: devices.append(one.device) or one + tc.ones(2, device=one.device))(x)
    assert devices == [x.device]
    assert x.device == devices[0]
    assert str(devices[0]) == str(x.device)
    assert made.device is x.device


def test_moving_to_the_own_device_changes_nothing() -> None:
    """``to`` of the device that everything is on anyway keeps the examples apart."""
    x = tc.arange(3.0)
    assert vmap(lambda one: one.to(x.device) * 2)(x).tolist() == [0.0, 2.0, 4.0]


def test_result_that_does_not_depend_on_the_examples_is_repeated() -> None:
    """It stands in each example's place; with ``out_dims=None`` it stays single."""
    x = tc.ones(3, 2)
    assert tuple(vmap(lambda _: tc.zeros(4))(x).shape) == (3, 4)
    assert tuple(vmap(lambda _: tc.zeros(4), out_dims=None)(x).shape) == (4,)


def test_value_that_all_examples_share_can_be_read() -> None:
    """``item()`` of a tensor that is not mapped over works inside."""
    assert vmap(lambda x: x * tc.tensor(2.0).item())(tc.ones(2)).tolist() == [2.0, 2.0]


def test_write_through_a_view_reaches_the_outer_tensor() -> None:
    """An input that is written in place inside is written outside, in the memory that they share."""
    x = tc.zeros(2, 3)
    vmap(lambda one: one[1:].add_(1))(x)
    assert x.tolist() == [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]


def test_new_tensor_of_an_example_can_be_written() -> None:
    """``new_zeros`` and ``zeros_like`` of an example have room for every example."""

    def program(x: tc.Tensor) -> tc.Tensor:
        made = x.new_zeros(2)
        made[0] = x[1]
        return made + tc.zeros_like(x)[:2].copy_(x[:2])

    assert vmap(program)(tc.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[3.0, 2.0], [7.0, 4.0]]


def test_same_randomness_draws_once() -> None:
    """With ``same`` every example sees the numbers that one draw gives outside."""
    x = tc.zeros(3, 2)
    tc.manual_seed(0)
    expected = tc.rand(2).tolist()
    tc.manual_seed(0)
    assert vmap(lambda x: x + tc.rand(2), randomness="same")(x).tolist() == [expected] * 3


def test_different_randomness_draws_for_each() -> None:
    """With ``different`` the numbers are those of one draw of all examples."""
    x = tc.zeros(3, 2)
    tc.manual_seed(0)
    expected = tc.rand(3, 2).tolist()
    tc.manual_seed(0)
    assert vmap(lambda x: tc.rand_like(x), randomness="different")(x).tolist() == expected


@pytest.mark.parametrize("draw", [
    lambda x: tc.randn(2), lambda x: tc.randperm(2), lambda x: tc.bernoulli(x), lambda x: tc.multinomial(x, 1),
    lambda x: x.clone().normal_(), lambda x: tc.nn.functional.dropout(x), lambda x: tc.randn_like(x),
])  # fmt: skip
def test_random_numbers_are_refused_unless_asked_for(draw: Any) -> None:
    """Every random op raises with the default randomness and names the choices."""
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(draw)(tc.ones(3, 2))


def test_function_with_a_vmap_of_its_own_is_asked() -> None:
    """A custom Function's ``vmap`` gets the batch size, the dims of its arguments and the whole tensors."""
    seen: list[Any] = []

    class Double(tc.autograd.Function):
        @staticmethod
        def forward(x: tc.Tensor, factor: float) -> tc.Tensor:
            raise AssertionError("the forward is for one example")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: tc.Tensor, factor: float) -> Any:
            seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
            return x * factor, 0

    assert vmap(lambda x: Double.apply(x, 2.0), in_dims=1)(tc.ones(2, 3)).tolist() == [[2.0, 2.0]] * 3
    assert seen == [(3, "error", (0, None), (3, 2))]


def test_function_without_one_runs_on_all_examples() -> None:
    """Without a ``vmap`` of its own its forward and backward run on the examples as they are."""

    class Scale(tc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tc.Tensor, w: tc.Tensor) -> tc.Tensor:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, g: tc.Tensor) -> Any:
            x, w = ctx.saved_tensors
            return g * w, g * x

    w = tc.tensor([1.0, 2.0])
    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert grad(lambda w: vmap(lambda x: Scale.apply(x, w).sum())(x).sum())(w).tolist() == [4.0, 6.0]
    assert vmap(grad(lambda w, x: Scale.apply(x, w).sum()), (None, 0))(w, x).tolist() == x.tolist()


def test_op_without_a_rule_runs_one_by_one_and_says_so() -> None:
    """The warning names the kernel; the results are those of the loop."""
    index, source = tc.tensor([[0, 1], [2, 0]]), tc.ones(2)
    with pytest.warns(UserWarning, match="batching rule for put"):
        made = vmap(lambda at: tc.zeros(3).put(at, source))(index)
    assert made.tolist() == [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]


def test_example_prints_as_all_of_them() -> None:
    """A look at an example shows the whole batch, and says that it is one."""
    seen = []
    vmap(lambda x: seen.append(f"{x!r} {x.sum()}") or x)(tc.ones(2, 2))
    assert seen[0].startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1., 1.],")


def test_map_over_nothing_gives_nothing() -> None:
    """No examples give results without examples, of the shapes that they would have had."""
    x = tc.ones(0, 3, 2)
    found = vmap(lambda x: (x.sum(0), x @ tc.ones(2, 4), x.softmax(0), tc.cat([x, x]), x.sort()[1]))(x)
    assert [tuple(one.shape) for one in found] == [(0, 2), (0, 3, 4), (0, 3, 2), (0, 6, 2), (0, 3, 2)]
    images = vmap(tc.nn.Sequential(tc.nn.Conv2d(1, 2, 3), tc.nn.MaxPool2d(2)))(tc.ones(0, 5, 1, 6, 6))
    assert tuple(images.shape) == (0, 5, 2, 2, 2)


def test_level_ends_when_the_function_raises() -> None:
    """After an error inside, random ops outside work as before."""
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: x / (1 // 0))(tc.ones(2))
    assert tuple(tc.rand(2).shape) == (2,)


def test_name_is_on_the_facade() -> None:
    """``torch.vmap`` and ``torch.func.vmap`` are one function."""
    assert tc.vmap is tc.func.vmap
