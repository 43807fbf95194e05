"""Views: what they show, their strides and offsets, and what in-place writes do to the history of everyone involved."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tensorcore as tc


def leaf(*shape: int) -> Any:
    """A leaf that counts up from 1."""
    return tc.arange(1.0, 1.0 + int(np.prod(shape)), dtype=tc.float64).reshape(shape).requires_grad_()


def counting(lib: Any, shape: Any) -> Any:
    """A tensor of one library that counts up from 0; not by way of NumPy, whose empty arrays have strides of 0."""
    return lib.arange(float(np.prod(shape)), dtype=lib.float64).reshape(shape).clone()


# A step is a name and a function of a tensor and three drawn numbers; what raises in one library must in the other.
STEPS: dict[str, Any] = {
    "transpose": lambda x, a, b, c: x.transpose(a % max(x.ndim, 1), b % max(x.ndim, 1)),
    "permute": lambda x, a, b, c: x.permute(tuple(np.roll(range(x.ndim), a))),
    "unsqueeze": lambda x, a, b, c: x.unsqueeze(a % (x.ndim + 1)),
    "squeeze": lambda x, a, b, c: x.squeeze(),
    "squeeze_dim": lambda x, a, b, c: x.squeeze(a % max(x.ndim, 1)),
    "select": lambda x, a, b, c: x.select(a % x.ndim, b),
    "slice": lambda x, a, b, c: x[a : a + b : c + 1],
    "slice_last": lambda x, a, b, c: x[..., a : a + b : c + 1],
    "index": lambda x, a, b, c: x[a],
    "none": lambda x, a, b, c: x[:, None, a:],
    "narrow": lambda x, a, b, c: x.narrow(0, a, b),
    "expand": lambda x, a, b, c: x.expand(a + 1, *x.shape),
    "expand_ones": lambda x, a, b, c: x.expand([a + 1 if n == 1 else n for n in x.shape]),
    "view": lambda x, a, b, c: x.view(-1),
    "view_rows": lambda x, a, b, c: x.view(x.shape[0], -1),
    "view_more": lambda x, a, b, c: x.view(*x.shape, 1),
    "flatten": lambda x, a, b, c: x.flatten(a % max(x.ndim, 1)),
    "unflatten": lambda x, a, b, c: x.unflatten(0, (a + 1, -1)),
    "diagonal": lambda x, a, b, c: x.diagonal(a - 1, b % x.ndim, c % x.ndim),
    "unfold": lambda x, a, b, c: x.unfold(a % max(x.ndim, 1), b, c + 1),
    "movedim": lambda x, a, b, c: x.movedim(a % x.ndim, b % x.ndim),
    "split": lambda x, a, b, c: x.split(b, a % x.ndim)[-1],
    "tensor_split": lambda x, a, b, c: x.tensor_split(b + 1, a % x.ndim)[c % (b + 1)],
    "unbind": lambda x, a, b, c: x.unbind(a % x.ndim)[b],
    "mT": lambda x, a, b, c: x.mT if x.ndim > 1 else x,
}
CHAIN = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), *[st.integers(0, 3)] * 3), max_size=6)
SHAPE = st.lists(st.integers(0, 4), max_size=4)


@pytest.mark.oracle
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shape=SHAPE, chain=CHAIN)
def test_strides_and_offset_of_any_chain_of_views_equal_pytorchs(
    torch: ModuleType, shape: list[int], chain: Any
) -> None:
    """Values, shape, strides, offset, contiguity and error types, also with sizes 0 and 1."""
    ours, theirs = counting(tc, shape), counting(torch, shape)
    for name, *numbers in chain:
        try:
            expected = STEPS[name](theirs, *numbers)
        except Exception as error:
            with pytest.raises(Exception) as found:
                STEPS[name](ours, *numbers)
            assert isinstance(found.value, type(error)), (name, numbers, error, found.value)
            break
        ours, theirs = STEPS[name](ours, *numbers), expected
        assert tuple(ours.shape) == tuple(theirs.shape), name
        # An empty array with strides of 0 looks to NumPy like a new one, which we show as contiguous.
        if theirs.numel() or any(theirs.stride()):
            assert tuple(ours.stride()) == theirs.stride(), name
        if theirs.numel():
            assert ours.storage_offset() == theirs.storage_offset(), name
        assert ours.is_contiguous() == theirs.is_contiguous(), name
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.oracle
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    chain=CHAIN,
    last=st.sampled_from(["mul", "number", "copy"]),
)
def test_writes_through_any_chain_of_views_reach_the_leaf_as_in_pytorch(
    torch: ModuleType, shape: list[int], chain: Any, last: str
) -> None:
    """An in-place write to a view of a view changes values and gradients of the base alike in both libraries."""
    # Of windows that overlap PyTorch writes an element several times; what is to come of it is said nowhere.
    assume(not any(name == "unfold" and size > step + 1 for name, _, size, step in chain))
    values = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)

    def run(lib: Any) -> Any:
        x = lib.tensor(values, requires_grad=True)
        w = lib.tensor(2.5, dtype=lib.float64, requires_grad=True)
        base = x * 1
        early = base[0]
        view = base
        for name, *numbers in chain:
            view = STEPS[name](view, *numbers)
        if last == "mul":
            view.mul_(w)
        elif last == "number":
            view.mul_(3.0)
        else:
            view.copy_(w * lib.ones(view.shape, dtype=lib.float64))
        total = (base * base).sum() + (early * 3).sum() + (view * view * view).sum()
        total.backward()
        return [one if one is None else one.numpy() for one in (x.grad, w.grad)] + [base.detach().numpy()]

    try:
        expected = run(torch)
    except Exception as error:
        with pytest.raises(Exception) as found:
            run(tc)
        assert isinstance(found.value, type(error)), (error, found.value)
        return
    for ours, theirs in zip(run(tc), expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_a_view_follows_a_later_write_to_its_base() -> None:
    """A view made before ``base.mul_(3)`` has the gradient of the multiplication."""
    x = leaf(3)
    base = x * 1
    view = base[:2]
    base.mul_(3)
    view.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 0.0]


def test_a_base_follows_a_write_to_its_view() -> None:
    """A write to a view changes the base's gradient in the view's place alone."""
    x = leaf(3)
    base = x * 1
    base[:2].mul_(5)
    base.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0, 1.0]
    assert base.grad_fn.name() == "torch::autograd::CopySlices"


def test_a_view_of_a_view_belongs_to_the_first_base() -> None:
    """``_base`` is never a view, and a write through two views reaches it."""
    x = leaf(2, 3)
    base = x * 1
    inner = base[1]
    innermost = inner[1:]
    assert innermost._base is base
    innermost.zero_()
    base.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]


def test_every_live_view_follows_a_write_to_one_of_them() -> None:
    """Three views of one base; a write to the second shows in the histories of the others."""
    x = leaf(2, 2)
    base = x * 1
    first, second, third = base[0], base.t(), base.view(-1)
    second.mul_(2)
    (first.sum() + third.sum()).backward()
    assert x.grad.tolist() == [[4.0, 4.0], [2.0, 2.0]]


def test_a_write_with_a_value_that_requires_grad_makes_base_and_views_require_it() -> None:
    """Plain tensors become part of the graph when a recorded value is written into their memory."""
    w = leaf(1)
    base = tc.zeros(3, dtype=tc.float64)
    view, other = base[1:], base[:2]
    view.mul_(2).add_(w)
    assert base.requires_grad
    assert other.requires_grad
    other.sum().backward()
    assert w.grad.tolist() == [1.0]


@pytest.mark.parametrize("split", [lambda x: x.split(1), lambda x: x.unbind(0), lambda x: x.chunk(2)])
def test_results_of_a_split_refuse_recorded_writes(split: Any) -> None:
    """One of several views cannot be written in place where that would be recorded."""
    part = split(leaf(2, 2) * 1)[0]
    with pytest.raises(RuntimeError, match="multiple views"):
        part.mul_(2)


def test_a_view_made_under_no_grad_refuses_recorded_writes() -> None:
    """Its history was never recorded, so a recorded write is refused."""
    base = leaf(2) * 1
    with tc.no_grad():
        view = base[:1]
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(2)


def test_detach_shares_the_version() -> None:
    """A write to the detached tensor is noticed by the graph that saved the original."""
    x = leaf(2)
    y = x * 1
    z = y * y
    y.detach().zero_()
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("of", [lambda x: x, lambda x: x[0], lambda x: x.t()[1:]])
def test_a_leaf_and_its_views_refuse_recorded_writes(of: Any) -> None:
    """A leaf that requires grad, and a view of one, can be written under ``no_grad`` only."""
    x = leaf(2, 2)
    with pytest.raises(RuntimeError, match="leaf"):
        of(x).zero_()
    with tc.no_grad():
        of(x).zero_()
    assert 0.0 in x.detach().numpy()


def test_a_saved_tensor_written_through_a_view_raises_at_backward_naming_the_op() -> None:
    """The error names the node and the argument."""
    x = leaf(2)
    y = x * 1
    z = y.exp() * y
    y[:1].zero_()
    with pytest.raises(RuntimeError, match=r"(Exp|Mul)Backward0"):
        z.sum().backward()


def test_backward_twice_through_a_view_and_a_write() -> None:
    """With ``retain_graph`` the second walk adds the same gradient again."""
    x = leaf(3)
    y = x * 1
    y[1:].mul_(4)
    total = y.sum()
    total.backward(retain_graph=True)
    total.backward()
    assert x.grad.tolist() == [2.0, 8.0, 8.0]


def test_retain_grad_follows_a_write() -> None:
    """The gradient kept is that of the tensor as it is after the write."""
    x = leaf(2)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    assert y.grad.tolist() == [6.0, 12.0]
    assert x.grad.tolist() == [18.0, 36.0]


def test_a_write_to_overlapping_memory_is_refused() -> None:
    """An expanded tensor shows one element in several places."""
    with pytest.raises(RuntimeError, match="single memory"):
        tc.zeros(1).expand(3).add_(1)
    with pytest.raises(RuntimeError, match="single memory"):
        tc.exp(tc.zeros(3), out=tc.zeros(1).expand(3))


@pytest.mark.parametrize(
    "write",
    [
        lambda one, other: one.add_(other),
        lambda one, other: one.copy_(other),
        lambda one, other: one.lerp_(other, 0.5),
        lambda one, other: tc.exp(other, out=one),
        lambda one, other: one.index_add_(0, tc.arange(7), other),
    ],
)
def test_a_write_over_a_part_of_its_input_is_refused(write) -> None:
    """Elements would be read after they were written; nothing is written, and parts that lie apart are free."""
    x = tc.arange(8.0)
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        write(x[1:], x[:-1])
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    x[:4].add_(x[4:])
    x[:4].mul_(x[:4])
    assert x.tolist() == [16.0, 36.0, 64.0, 100.0, 4.0, 5.0, 6.0, 7.0]


def test_a_matrix_is_not_written_from_its_transpose() -> None:
    """The same memory in another order is a part of it too, and a scatter from the tensor itself is refused."""
    x = tc.arange(4.0).view(2, 2)
    with pytest.raises(RuntimeError, match="single memory"):
        x.sub_(x.t())
    with pytest.raises(RuntimeError, match="single memory"):
        x.index_copy_(0, tc.tensor([1, 0]), x)


def test_as_strided_stays_inside_its_storage() -> None:
    """A view that would reach past the memory is refused, and so is a negative stride."""
    x = tc.arange(6.0)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.as_strided((2, 2), (3, 1), 3)
    with pytest.raises(RuntimeError, match="Negative strides"):
        x.as_strided((2,), (-1,), 3)
    assert x[3:].as_strided((2,), (1,), 0).tolist() == [0.0, 1.0]
    assert x[3:].as_strided((2,), (1,)).tolist() == [3.0, 4.0]


def test_as_strided_adds_up_the_gradients_of_what_overlaps() -> None:
    """An element that appears twice gets both gradients."""
    x = leaf(4)
    x.as_strided((3, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_as_strided_scatter_has_no_gradient_where_src_went() -> None:
    """PyTorch 2.13 gives the opposite here, which its own gradcheck refutes."""
    x = leaf(4)
    tc.as_strided_scatter(x * 1, tc.zeros(2, dtype=tc.float64), (2,), (1,), 1).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0, 1.0]


def test_view_as_a_dtype_reinterprets_the_bits() -> None:
    """The bits of 1.0 as an integer, two halves, and back."""
    x = tc.tensor([[1.0, -2.0]])
    assert x.view(tc.int32).tolist() == [[0x3F800000, -0x40000000]]
    assert tuple(x.view(tc.int16).shape) == (1, 4)
    assert tuple(x.view(tc.float64).shape) == (1, 1)
    assert x.view(tc.int32).view(tc.float32).tolist() == [[1.0, -2.0]]
    with pytest.raises(RuntimeError, match="divisible"):
        tc.zeros(3).view(tc.float64)


@pytest.mark.parametrize(
    ("change", "shape"),
    [
        (lambda x: x.squeeze_(), (2, 3)),
        (lambda x: x.unsqueeze_(0), (1, 2, 1, 3)),
        (lambda x: x.transpose_(0, 2), (3, 1, 2)),
        (lambda x: x.squeeze_(1).t_(), (3, 2)),
    ],
)
def test_in_place_forms_change_the_shape_of_the_tensor_itself(change: Any, shape: tuple[int, ...]) -> None:
    """They return the tensor, whose gradient still has the leaf's shape."""
    x = leaf(2, 1, 3)
    y = x * 2
    assert change(y) is y
    assert tuple(y.shape) == shape
    y.sum().backward()
    assert x.grad.tolist() == [[[2.0] * 3], [[2.0] * 3]]


def test_a_node_is_called_as_in_pytorch() -> None:
    """The printed names of views' nodes."""
    x = leaf(2, 3) * 1
    names = {
        "TBackward0": x.t(), "TransposeBackward0": x.transpose(0, 1), "PermuteBackward0": x.T, "SelectBackward0": x[0],
        "SliceBackward0": x[:1], "AliasBackward0": x[...], "UnsqueezeBackward0": x[None], "ViewBackward0": x.view(-1),
        "UnsafeViewBackward0": x.t().reshape(-1), "ExpandBackward0": x.expand(2, 2, 3), "SplitBackward0": x.split(1)[0],
        "DiagonalBackward0": x.diagonal(), "UnfoldBackward0": x.unfold(1, 2, 1), "SqueezeBackward1": x.squeeze(0),
        "AsStridedBackward0": x.as_strided((2,), (1,)), "IndexBackward0": x[[0]],
    }  # fmt: skip
    assert {name: one.grad_fn.name() for name, one in names.items()} == {name: name for name in names}


def test_a_view_of_a_base_that_is_gone_keeps_the_memory() -> None:
    """The base may be collected while a view lives."""
    view = (tc.arange(3.0) + 1)[1:]
    assert view.tolist() == [2.0, 3.0]


def test_dead_views_are_forgotten() -> None:
    """Taking many views of one tensor keeps none of them."""
    x = tc.zeros(4)
    for _ in range(1000):
        x[0]
    assert len(x.version.views) < 20


def test_a_clone_of_an_expanded_tensor_is_row_major_in_its_new_dim() -> None:
    """A dim of stride 0 comes to lie where a new dim would, not inside the others."""
    assert tc.ones(3, 4).expand(2, 3, 4).clone().stride() == (12, 4, 1)
    assert tc.ones(4, 3).t().expand(2, 3, 4).clone().stride() == (12, 1, 3)


def test_lasting_views_follow_their_base_while_others_come_and_go():
    """A recorded write to a base reaches every view that is alive, whatever views were taken and dropped in between."""
    base, kept = tc.zeros(8), []
    for i in range(8):
        kept.append(base[i : i + 1])
        for _ in range(i):
            base.view(2, 4)
    base.mul_(tc.ones(8, requires_grad=True))
    assert [one.grad_fn is not None and one._base is base for one in kept] == [True] * 8


@pytest.mark.parametrize("sizes", [(-1, 2), (4, -1), (-1,), (2, -1, 2), ((-1, 4),)])
def test_one_size_may_be_left_to_be_found(sizes):
    """-1 in ``view`` and ``reshape`` stands for what remains, and has its gradient."""
    x = tc.arange(8.0, requires_grad=True)
    for form in (x.view, x.reshape):
        made = form(*sizes)
        assert made.numel() == 8
        (grad,) = tc.autograd.grad(made.sum(), x)
        assert grad.tolist() == [1.0] * 8
    with pytest.raises(RuntimeError, match="one dimension can be inferred"):
        x.view(-1, -1)
    with pytest.raises(RuntimeError, match="invalid"):
        x.view(-1, 3)


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3), (2, 1, 3), (2, 3, 4, 5), (2, 1, 4, 5)])
@pytest.mark.parametrize("check", [False, True, ["contiguous_format", "channels_last"], ["channels_last"]], ids=str)
def test_the_order_of_dims_may_be_asked_to_be_clear(shape, check, torch) -> None:
    """``dim_order(ambiguity_check=)`` answers, or raises RuntimeError, as PyTorch's does."""
    found = []
    for T in (tc, torch):
        asked = [getattr(T, one) for one in check] if isinstance(check, list) else check
        try:
            found.append(T.empty(shape).dim_order(ambiguity_check=asked))
        except RuntimeError:
            found.append(RuntimeError)
    assert found[0] == found[1]


def test_one_element_in_another_shape_keeps_the_step_of_its_last_dim():
    """Of sizes (1, 1) and steps (2, 1), whose dims are neighbours, the step is 1; of (3, 1) each has its own."""
    x = tc.arange(6).reshape(3, 2)
    assert x[:1, :1].view(1).stride() == (1,)
    assert x[:1, :1].flatten().stride() == (1,)
    assert x[:, :1].view(3).stride() == (2,)
    assert x[:, :1].view(3, 1, 1).stride() == (2, 1, 1)
