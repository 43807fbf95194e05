"""What programs ask a tensor about is the same by the short way in C and by the function in Python."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import tensorcore as torch
from tensorcore.formats import Size
from tensorcore.ops.calls import apply
from tensorcore.ops.indexing.parse import new_dim
from tensorcore.tensor import Tensor

from .test_shortcuts import HUGE, Whole, outcome

native = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")


def _tensors():
    leaf = torch.rand(3, 4, requires_grad=True)
    leaf.grad = torch.ones(3, 4)
    made = leaf * 2
    return [torch.zeros(()), torch.zeros(0, 3), torch.arange(12).view(3, 4)[1:, ::2], torch.zeros(3).flip(0), leaf, leaf.detach(),
            made, *made.unbind(), made.max(0).values, torch.nn.Parameter(torch.rand(2)), torch.zeros(2, device="meta"),
            torch.zeros(3).to_sparse(), leaf[0]]  # fmt: skip


@native
@pytest.mark.parametrize("name", ["requires_grad", "is_leaf", "is_cuda", "is_cpu"])
def test_a_property_says_the_same_by_both_ways(name) -> None:
    """Of leaves, of results and of views, without elements, on other devices and of subclasses."""
    read = vars(Tensor)[name].fget
    for one in _tensors():
        assert read(one) is read.__wrapped__(one)
    assert outcome(read, 3)[0] is AttributeError


@native
@pytest.mark.parametrize("name", ["numel", "dim", "storage_offset", "data_ptr", "is_contiguous", "contiguous"])
def test_counts_and_places_are_the_same_by_both_ways(name) -> None:
    """Of whole memory and of parts of it, of no elements, of tensors without an array of NumPy's, and of what is none."""
    method = vars(Tensor)[name]
    shared = torch.from_numpy(np.arange(12, dtype=np.int16).reshape(3, 4)[1:, 2:])
    for one in [*_tensors(), shared, shared.t(), torch.ones(1, 4)[:, :1], torch.empty(0).t(), 3]:
        got, expected = outcome(method, one), outcome(method.__wrapped__, one)
        if isinstance(got, torch.Tensor) and got is not one:
            assert got.stride() == expected.stride()
            assert torch.equal(got, expected)
        else:
            assert got is expected or got == expected
    x = torch.zeros(2, 3, 4, 5)
    for given in ((), (torch.channels_last,), (torch.contiguous_format,), ("a",), (1, 2)):
        got, expected = outcome(method, x, *given), outcome(method.__wrapped__, x, *given)
        if got is not expected:
            assert got.stride() == expected.stride() if isinstance(got, torch.Tensor) else got == expected
    assert outcome(method, x, other=1) == outcome(method.__wrapped__, x, other=1)


@native
@pytest.mark.parametrize("key", [
    None, (None,), (slice(None), None), (None, slice(None)), (..., None), (None, ...), (slice(None), ..., None), (slice(None), None, ...),
    (..., None, slice(None)), (slice(None), None, slice(None), slice(None)), (slice(None), slice(None)), (None, None), (..., None, ...),
    (slice(1), None), (0, None), 3, "a", [None], (Whole(1), None), (np.ones(2), None),
])  # fmt: skip
def test_a_new_dim_is_found_by_both_ways(key) -> None:
    """Among whole slices and around an Ellipsis; the view is the one that the key's parts make one by one."""
    for ndim in range(4):
        if not isinstance(key, tuple) or not any(isinstance(one, np.ndarray) for one in key):
            assert new_dim(key, ndim) == new_dim.__wrapped__(key, ndim)
    x = torch.arange(6).view(2, 3).t()
    at = new_dim(key, 2)
    if at is not None:
        made = x[key]
        assert (made.shape, made.stride()) == (x.unsqueeze(at).shape, x.unsqueeze(at).stride())
        assert made._base is x._base
        made.fill_(7)
        assert (x == 7).all()
    leaf = torch.ones(2, 3, requires_grad=True)
    assert leaf[:, None].grad_fn.name() == "UnsqueezeBackward0"


@native
def test_truth_is_told_by_both_ways() -> None:
    """Of one element of any shape and dtype, of several and of none, and of tensors without values; a trace stops at it."""
    truth = vars(Tensor)["__bool__"]
    one = [torch.tensor([[value]]).to(dtype) for value in (0, 1, 2.5, float("nan")) for dtype in (
        torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.complex64)]  # fmt: skip
    for x in [*one, torch.tensor(-0.0), torch.ones(3, 4)[1:2, 2:3], *_tensors(), 3]:
        assert outcome(truth, x) == outcome(truth.__wrapped__, x)
    with pytest.raises(RuntimeError, match="fullgraph"):
        torch.compile(lambda x: x + 1 if x.sum() else x, fullgraph=True)(torch.ones(3))


def test_a_trace_hears_of_places_in_memory_that_a_program_asks_for() -> None:
    """Also where the question goes a short way: such a call is none to replay."""
    for ask in (Tensor.storage_offset, Tensor.data_ptr):
        compiled = torch.compile(lambda x, ask=ask: x * (1 + 0 * ask(x)), fullgraph=True)
        with pytest.raises(RuntimeError, match="asks where a tensor lies in memory"):
            compiled(torch.ones(3))


def test_the_address_is_that_of_the_first_element() -> None:
    """Views begin where NumPy says, also backwards, and the stride of elements leads to the next."""
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    for part in (array, array[1:, 2:], array[:0], array[2, 3]):
        made = torch.from_numpy(np.asarray(part))
        assert made.data_ptr() == made.numpy().__array_interface__["data"][0]
    whole = torch.from_numpy(array)
    assert whole[1, 2:].data_ptr() - whole.data_ptr() == 12


@pytest.mark.parametrize("key", [0, -1, True, Whole(1), np.int64(1), 3, -4, HUGE, None, "a", 1.0,
                                 slice(None), slice(1, None), slice(None, None, -1), slice(5, 9), slice(None, None, 0)])  # fmt: skip
def test_shapes_give_items_as_tuples_and_parts_as_shapes(key) -> None:
    """Items, errors and parts are a tuple's, and a part is a shape again; of a subclass of Size too."""

    class Named(Size):
        pass

    for kind in (Size, Named):
        found, expected = outcome(kind((2, 3, 5)).__getitem__, key), outcome((2, 3, 5).__getitem__, key)
        assert found == expected
        assert outcome(operator.getitem, kind((2, 3, 5)), key) == expected
        if isinstance(key, slice) and key.step != 0:
            assert type(found) is Size


def test_a_shape_is_made_of_whole_numbers() -> None:
    """What counts as an index becomes an int, a tensor of one integer included; anything else is a TypeError that says which."""
    made = Size([torch.tensor(3), True, np.int64(2), Whole(1)])
    assert made == (3, 1, 2, 1)
    assert all(type(one) is int for one in made)
    assert Size(torch.tensor([4, 5])) == (4, 5)
    assert (Size(), Size(iter((1, 2)))) == ((), (1, 2))
    for wrong in ([2, 2.0], ["a"], [torch.tensor(1.0)], 3):
        with pytest.raises(TypeError, match="item 1 is 'float'" if wrong == [2, 2.0] else None):
            Size(wrong)


def test_shapes_joined_are_shapes() -> None:
    """A tuple on either side of a shape, and a shape some times over, make a shape; no list is joined to one."""
    for left, right in ((Size([1]), (torch.tensor(2),)), ((1,), Size([2])), (Size([1]), Size([2]))):
        made = operator.add(left, right)
        assert (made, type(made), {*map(type, made)}) == ((1, 2), Size, {int})
    for made in (Size([3]) * 2, 2 * Size([3])):
        assert (made, type(made)) == ((3, 3), Size)
    for left, right in ((Size([1]), [2]), ([2], Size([1])), (Size([1]), (2.0,)), ((2.0,), Size([1]))):
        with pytest.raises(TypeError):
            operator.add(left, right)
    with pytest.raises(TypeError):
        Size([1]) * 2.0


def test_limits_are_found_once_and_cannot_be_written() -> None:
    """Limits of a dtype are one object, which is itself after a copy and a pickle; the default dtype is asked at each call."""
    for limits in (torch.finfo(torch.float16), torch.finfo(torch.bfloat16), torch.iinfo(torch.int8)):
        assert copy.deepcopy(limits) is limits
        assert pickle.loads(pickle.dumps(limits)) is limits
        with pytest.raises(AttributeError, match=r"'bits' of '.*' objects is not writable"):
            limits.bits = 3
    assert torch.finfo(torch.complex64) == torch.finfo()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.finfo().bits == 64
    finally:
        torch.set_default_dtype(torch.float32)
    for wrong in ((), (None,), (torch.float32,), ([],)):
        assert outcome(torch.iinfo, *wrong)[0].__name__ == "ArgumentTypeError"
