"""Elements, parts and limits are the same by the short way in C and by the function in Python."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as torch
from tensorcore import dtypes
from tensorcore.ops.calls import apply
from tensorcore.ops.layers.ctc import _states
from tensorcore.tensor import Tensor

from .test_shortcuts import HUGE, Whole, outcome

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")
ALL = slice(None)
P, Q = torch.tensor([2, 0, -1]), torch.tensor([[1], [0]])


def _inputs():
    leaf = torch.rand(3, 3, 2, requires_grad=True)
    return [torch.arange(18).view(3, 3, 2), torch.rand(2, 3, 3).permute(2, 1, 0), torch.zeros(3), torch.zeros(()), torch.zeros(0, 3),
            torch.ones(1, 1).expand(3, 3), leaf, leaf * 2, leaf.detach(), leaf[1:], torch.zeros(3, 2).half(),
            torch.nn.Parameter(torch.rand(3, 3)), torch.zeros(3, 3, device="meta"), torch.eye(3).to_sparse()]  # fmt: skip


def _keys():
    return [
        0, -3, 3, HUGE, True, Whole(1), 1.5, "a", None, ..., ALL, slice(1, None), slice(None, None, 2), (), (ALL,), (0, 1),
        (ALL, 0), (..., -1), (None, 0), (ALL, None), (0, ALL, slice(1, 2)), (0, 0, 0, 0), (..., ...), [0, 2], [0, HUGE],
        [3], [], [[0, 1], [1, 0]], [0, True], [True, False, True], [0, None], (P,), P, (ALL, P), (ALL, P, ALL), (P, P),
        (P, ALL, P), (P, Q), (Q, Q), (P, 0), (..., P), (None, P), (P, None), P.int(), P.byte(), P[0], P + 9, P.float(),
        (ALL, [0, 1]), ([0, 1], [1, 0]), P.numpy(), (P, P.numpy()), P > 0, (P > 0, 0), (P > 0, P > 0), (ALL, P > 0),
        torch.ones(3, 3) > 0, torch.zeros(3, 3) > 0, torch.ones(2) > 0, (torch.ones(3, 3) > 0, ALL),
        (P > 0, torch.tensor([0, 1])), torch.tensor(True), torch.zeros(0, dtype=torch.int64),
        torch.zeros(3, device="meta", dtype=torch.int64),
    ]  # fmt: skip


def _facts(made, x=None):
    """What a call shows: where it lies, whose memory it is, and how it is recorded."""
    if not isinstance(made, torch.Tensor):
        return made
    values = None if made.device.type == "meta" else np.array(made.detach().tolist())
    base = made._base
    return (type(made), made.shape, made.stride(), made.dtype, str(made.device), None if values is None else values.tobytes(),
            made.storage_offset(), base is None, base is x, made.requires_grad, type(made.grad_fn).__name__)  # fmt: skip


@pytest.mark.parametrize("number", range(len(_inputs())))
def test_a_subscript_says_the_same_by_both_ways(number) -> None:
    """Of every kind of key and tensor: values, strides, views, history and errors."""
    x, read = _inputs()[number], Tensor.__getitem__
    if x.is_sparse:
        assert torch.equal(x[1].to_dense(), x.to_dense()[1])
        return
    for key in _keys():
        with torch.set_grad_enabled(True):
            short, long = outcome(read, x, key), outcome(read.__wrapped__, x, key)
            assert _facts(short, x) == _facts(long, x), key
        with torch.no_grad():
            assert _facts(outcome(read, x, key)) == _facts(outcome(read.__wrapped__, x, key)), key
        with torch.inference_mode():
            short, long = outcome(read, x, key), outcome(read.__wrapped__, x, key)
            assert _facts(short, x) == _facts(long, x), key
            assert not isinstance(short, torch.Tensor) or short.is_inference() == long.is_inference()


def test_elements_by_index_are_a_copy_and_parts_are_not() -> None:
    """A write to the first changes nothing, one to the second is counted and goes to the tensor."""
    x = torch.zeros(3, 3)
    for key in (P, [0, 1], x == 0, (ALL, P)):
        x[key].add_(1)
    assert x.eq(0).all()
    assert x._version == 0
    x[1:][0].add_(1)
    assert x.tolist() == [[0.0] * 3, [1.0] * 3, [0.0] * 3]
    assert x._version == 1


def test_a_part_of_a_recorded_tensor_has_its_gradient() -> None:
    """By slices, new dims and flattened dims alike."""
    x = torch.rand(2, 3, requires_grad=True)
    (x[1:].sum() + x[None, 0].sum() + 2 * x[:, 0].flatten().sum() + x.flatten().sum() + x.ravel().sum()).backward()
    assert x.grad.tolist() == [[5.0, 3.0, 3.0], [5.0, 3.0, 3.0]]


@pytest.mark.parametrize("name", ["flatten", "ravel"])
@pytest.mark.parametrize("number", range(len(_inputs()) - 1))
def test_dims_in_a_row_are_the_same_by_both_ways(name, number) -> None:
    """Of every pair of dims, of views and copies, and with arguments that are none."""
    x, method = _inputs()[number], vars(Tensor)[name]
    given = [(a, b) for a in range(-4, 4) for b in range(-4, 4)] + [
        (),
        (1,),
        (-1,),
        (0.5,),
        (True,),
        (HUGE,),
        (Whole(0), 1),
        (1, 2, 3),
    ]
    for args in given if name == "flatten" else [(), (0,)]:
        short, long = outcome(method, x, *args), outcome(method.__wrapped__, x, *args)
        assert _facts(short, x) == _facts(long, x), args
        assert (short is x) == (long is x), args
    assert _facts(outcome(method, x, start_dim=1)) == _facts(outcome(method.__wrapped__, x, start_dim=1))


def test_a_part_is_the_same_by_both_ways() -> None:
    """``narrow`` along each dim, from the front and the back, of nothing, and outside of the tensor."""
    method = vars(Tensor)["narrow"]
    for x in _inputs()[:-1]:
        given = [(d, a, n) for d in (-3, 0, 1, 5) for a in (-1, 0, 1, 3, 4) for n in (-1, 0, 2, 3)]
        given += [(0, True, 1), (0, HUGE, 1), (0, 1, HUGE), (True, 0, 1), (0, 0.0, 1), (0, torch.tensor(1), 1), (0, 0)]
        for args in given:
            assert _facts(outcome(method, x, *args), x) == _facts(outcome(method.__wrapped__, x, *args), x), args
        short, long = (outcome(one, x, 0, start=0, length=1) for one in (method, method.__wrapped__))
        assert _facts(short, x) == _facts(long, x)


def test_a_value_is_the_same_by_both_ways() -> None:
    """Of every dtype, of several elements, and where there are no values."""
    read = Tensor.item
    kinds = [one for one in dtypes.ALL if one.name in torch.zeros(1).device.capabilities.dtypes]
    for one in [torch.ones(1, 1, dtype=kind) for kind in kinds] + [torch.tensor(-0.0), torch.tensor(float("nan")), torch.zeros(2),
                torch.zeros(0), torch.zeros((), device="meta"), torch.tensor(2**63 - 1), torch.rand(3, requires_grad=True)[0]]:  # fmt: skip
        short, long = outcome(read, one), outcome(read.__wrapped__, one)
        assert type(short) is type(long)
        assert repr(short) == repr(long)


def test_a_tensor_on_the_host_is_there_already() -> None:
    """``cpu`` gives the tensor itself, of leaves and subclasses too, and a copy of one that is elsewhere."""
    for one in _inputs()[:10]:
        assert one.cpu() is one
        assert Tensor.cpu.__wrapped__(one) is one
    assert outcome(torch.zeros(2, device="meta").cpu) == outcome(Tensor.cpu.__wrapped__, torch.zeros(2, device="meta"))
    assert outcome(Tensor.cpu, 3)[0] is outcome(Tensor.cpu.__wrapped__, 3)[0]


@pytest.mark.parametrize("limits", [torch.finfo, torch.iinfo])
def test_limits_are_found_once_for_each_class_and_dtype(limits) -> None:
    """By a dtype, by keyword and by default; what is none has an error of its own."""

    class Own(limits):
        """A class that somebody derives."""

    find = limits.__new__
    for one in [*dtypes.ALL, None, 3, [], "float32"]:
        short = outcome(limits, one)
        assert short == outcome(find.__wrapped__, limits, one)
        if isinstance(short, limits):
            assert short is limits(one) is limits(type=one) is limits(one)
            assert type(Own(one)) is Own
            assert Own(one) is Own(one)
    assert outcome(limits, 1, 2)[0] is TypeError


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
@pytest.mark.parametrize("counts", [(2, 3), (3, 0), (0, 0), (1, 4), (2, 9), (1,), [2, 3], (2.0, 3), (True, 1), (-1, 2)])
def test_the_states_of_labels_are_the_same_by_both_ways(kind, counts) -> None:
    """Of labels in rows, in a row and in columns of others; where some are no classes, or too few."""
    rows = torch.tensor([[1, 1, 2, 3], [2, 3, 3, 0]], dtype=kind)
    in_a_row = rows.flatten()
    for labels in (
        rows,
        rows.t().contiguous().t(),
        rows[:, ::2],
        rows[:, :0],
        in_a_row[:5],
        in_a_row[3:8],
        rows[0],
        rows[0, 0],
    ):
        for blank, classes in ((0, 4), (3, 4), (0, 3)):
            short, long = [outcome(one, labels, counts, blank, classes) for one in (_states, _states.__wrapped__)]
            assert type(short[0]) is type(long[0])
            for one, other in zip(short, long, strict=True):
                assert np.array_equal(one, other)
                assert not isinstance(one, np.ndarray) or one.dtype == other.dtype
