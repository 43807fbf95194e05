"""Operators of a program's own, through ``torch.library``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.library import (
    CustomOpDef,
    custom_op,
    infer_schema,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)


@pytest.fixture
def sine() -> Iterator[CustomOpDef]:
    """A sine that NumPy computes, which no tape sees into."""

    def scaled_sin(x: tc.Tensor, factor: float = 2.0) -> tc.Tensor:
        return tc.from_numpy(np.sin(x.numpy()) * np.float32(factor))

    yield custom_op("tests::scaled_sin", scaled_sin, mutates_args=())
    del tc.ops.tests


def test_it_is_called_by_itself_and_by_its_name(sine: CustomOpDef) -> None:
    """The operator, and what stands for it in ``torch.ops``, run the function with its defaults."""
    x = tc.tensor([0.0, 0.5])
    assert sine(x).tolist() == tc.ops.tests.scaled_sin(x, 2.0).tolist() == tc.ops.tests.scaled_sin.default(x).tolist()
    assert sine(x, factor=0.0).tolist() == [0.0, 0.0]


def test_without_a_formula_the_walk_says_so(sine: CustomOpDef) -> None:
    """The result of tensors that require grad requires it too, and its gradient is asked for in vain."""
    made = sine(tc.ones(2, requires_grad=True))
    assert made.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        made.sum().backward()


def test_gradients_are_those_registered(sine: CustomOpDef) -> None:
    """The backward gets what the setup kept, which arguments ask for a gradient, and can be walked through again."""
    asked = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.factor = inputs
        ctx.save_for_backward(x)

    def backward(ctx: Any, g: tc.Tensor) -> Any:
        asked.append(ctx.needs_input_grad[:2])
        return g * ctx.saved_tensors[0].cos() * ctx.factor, None

    register_autograd("tests::scaled_sin", backward, setup_context=setup)
    x = tc.tensor([0.5], requires_grad=True)
    (first,) = tc.autograd.grad(sine(x, 3.0), x, create_graph=True)
    (second,) = tc.autograd.grad(first, x)
    assert first.item() == pytest.approx(3 * np.cos(0.5))
    assert second.item() == pytest.approx(-3 * np.sin(0.5))
    assert asked == [(True, False)]


def test_tensors_without_values_take_the_rule_of_shapes(sine: CustomOpDef) -> None:
    """On ``meta`` the fake stands for the function."""
    register_fake(sine)(lambda x, factor=2.0: tc.empty_like(x))
    made = sine(tc.empty(2, 3, device="meta"))
    assert made.shape == (2, 3)
    assert made.device.type == "meta"


def test_kernels_are_chosen_by_the_kind_of_device() -> None:
    """A device of another kind than those with a kernel is refused."""

    def double(x: tc.Tensor) -> tc.Tensor:
        return x + x

    op = custom_op("tests::double", double, mutates_args=(), device_types="faraway")
    with pytest.raises(NotImplementedError, match="Could not run"):
        op(tc.ones(2))
    register_kernel(op, "cpu")(lambda x: x * 2)
    assert op(tc.ones(2)).tolist() == [2.0, 2.0]
    del tc.ops.tests


def test_arguments_that_are_written_to() -> None:
    """What is named in ``mutates_args`` may change; then there is no gradient to register."""

    def bump(x: tc.Tensor, *, by: int = 1) -> None:
        x.add_(by)

    op = custom_op("tests::bump", bump, mutates_args={"x"})
    x = tc.zeros(2)
    op(x, by=3)
    assert x.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="non-functional"):
        op.register_autograd(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="requires grad"):
        op(tc.zeros(2, requires_grad=True))
    del tc.ops.tests


def test_results_are_no_inputs() -> None:
    """A result that shows the memory of an input is refused."""

    def part(x: tc.Tensor) -> tc.Tensor:
        return x[:1]

    op = custom_op("tests::part", part, mutates_args=())
    with pytest.raises(RuntimeError, match="must not be an input"):
        op(tc.ones(2))
    del tc.ops.tests


def test_keywords_come_apart() -> None:
    """What may come by keyword alone reaches the setup as ``keyword_only_inputs``."""

    def times(a: tc.Tensor, *, k: float) -> tc.Tensor:
        return a * k

    op = custom_op("tests::times", times, mutates_args=())
    op.register_autograd(
        lambda ctx, g: g * ctx.k,
        setup_context=lambda ctx, inputs, keyword_only_inputs, output: vars(ctx).update(keyword_only_inputs),
    )
    a = tc.ones(2, requires_grad=True)
    op(a, k=4.0).sum().backward()
    assert a.grad.tolist() == [4.0, 4.0]
    del tc.ops.tests


@pytest.fixture
def joined() -> Iterator[CustomOpDef]:
    """A number times the sum of a list times each of the list, as a list."""

    def scaled(x: tc.Tensor, several: list[tc.Tensor], n: int) -> list[tc.Tensor]:
        return [x * one * n for one in several]

    yield custom_op("tests::scaled", scaled, mutates_args=())
    del tc.ops.tests


def test_gradients_of_lists_are_lists(joined: CustomOpDef) -> None:
    """Tensors in a list require grad as others; backward gets a list for a list and answers one, needs_input_grad too."""
    seen = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        x, several, ctx.n = inputs
        ctx.save_for_backward(x, *several)

    def backward(ctx: Any, grads: list[Any]) -> Any:
        seen.append(ctx.needs_input_grad)
        x, *several = ctx.saved_tensors
        return sum(g * one * ctx.n for g, one in zip(grads, several, strict=True)), [g * x * ctx.n for g in grads], None

    joined.register_autograd(backward, setup_context=setup)
    x, a, b = tc.tensor(3.0), tc.tensor(2.0, requires_grad=True), tc.tensor(5.0)
    made = joined(x, [a, b], 2)
    assert isinstance(made, list)
    (made[0] + 10 * made[1]).backward()
    assert (a.grad.item(), b.grad, seen) == (6.0, None, [(False, [True, False], False)])
    x.requires_grad_()
    first, second = tc.autograd.grad(joined(x, [a, b], 2), (x, a))
    assert (first.item(), second.item()) == (14.0, 6.0)
    assert [one.item() for one in joined(x.detach(), [b], 1)] == [15.0]
    for wrong in (lambda ctx, g: (g[0], g[0], None), lambda ctx, g: (g[0], [g[0]], None)):
        joined.register_autograd(wrong)
        with pytest.raises(RuntimeError, match="same structure as the inputs"):
            joined(x, [a, b], 2)[0].backward()


def test_vmap_runs_the_registered_function(joined: CustomOpDef) -> None:
    """It gets the dims of the examples in the structure of the arguments, recorded or not; out_dims place those of its result."""
    seen = []

    @register_vmap("tests::scaled")
    def mapped(info: Any, in_dims: Any, x: Any, several: Any, n: int) -> Any:
        seen.append((info.batch_size, in_dims))
        return [x * one * n for one in several], [0] * len(several)

    a = tc.tensor(2.0, requires_grad=True)
    for one in (a, a.detach()):
        made = tc.vmap(lambda x: joined(x, [one, x], 3))(tc.arange(3.0))  # noqa: B023
        assert [part.tolist() for part in made] == [[0.0, 6.0, 12.0], [0.0, 3.0, 12.0]]
    assert seen == [(3, (0, [None, 0], None))] * 2


def typed(
    x: Any, w: Any, sizes: Sequence[int], text: str = "a", *, flag: bool = False, d: float | None = None
) -> tuple[Any, Any]:
    """A function whose annotations ``annotated`` fills in."""
    raise NotImplementedError


def annotated(library: Any) -> Any:
    """``typed`` for one library's tensors."""
    tensor = library.Tensor
    typed.__annotations__.update(x=tensor, w=tensor | None, **{"return": tuple[tensor, tensor]})
    return typed


EXPECTED = (
    '(Tensor(a0!) x, Tensor? w, SymInt[] sizes, str text="a", *, bool flag=False, float? d=None) -> (Tensor, Tensor)'
)


def test_schemas_are_found_from_annotations() -> None:
    """Types, defaults and writes are told in PyTorch's notation; a parameter without a type is refused."""
    assert infer_schema(annotated(tc), mutates_args={"x"}) == EXPECTED
    with pytest.raises(ValueError, match="type annotation"):
        infer_schema(lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="namespace::name"):
        custom_op("alone", annotated(tc), mutates_args=())


def test_schemas_as_in_pytorch(torch: Any) -> None:
    """PyTorch finds the same text."""
    found = torch.library.infer_schema(annotated(SimpleNamespace(Tensor=torch.Tensor)), mutates_args={"x"})
    assert found == EXPECTED
