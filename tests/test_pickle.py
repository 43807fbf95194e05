"""Copies: what deepcopy, pickle, and save with load keep."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import tensorcore as tc
from tensorcore.parameter import Parameter


def pickled(value: Any, protocol: int = 4) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def saved(value: Any, **options: Any) -> Any:
    return tc.load(io.BytesIO(written(value)), **options)


def written(value: Any) -> bytes:
    file = io.BytesIO()
    tc.save(value, file)
    return file.getvalue()


ROUND_TRIPS = [pickled, lambda x: pickled(x, 2), lambda x: pickled(x, 5), copy.deepcopy, saved]
ALL_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
              "complex64", "complex128")  # fmt: skip


@pytest.mark.parametrize("trip", ROUND_TRIPS)
class TestEveryRoundTrip:
    """What all ways of copying keep."""

    @pytest.mark.parametrize("name", ALL_DTYPES)
    def test_values_and_dtype(self, trip: Any, name: str) -> None:
        """Every dtype comes back with its values."""
        x = tc.tensor([0, 1, 2], dtype=getattr(tc, name))
        back = trip(x)
        assert (back.tolist(), back.dtype, back.device) == (x.tolist(), x.dtype, x.device)
        assert back.data_ptr() != x.data_ptr()

    def test_strides_and_offset(self, trip: Any) -> None:
        """A view comes back as the same part of a storage of the same size."""
        x = tc.arange(12.0).reshape(3, 4).t().narrow(0, 1, 2)
        back = trip(x)
        assert (back.stride(), back.storage_offset(), back.tolist()) == ((1, 4), 1, x.tolist())
        assert back.untyped_storage().nbytes() == 48

    def test_views_stay_views(self, trip: Any) -> None:
        """Two tensors of one storage share one again, and a write to one is seen by the other."""
        x = tc.arange(6.0)
        whole, part = trip([x, x.narrow(0, 2, 2)])
        assert whole.untyped_storage() is part.untyped_storage()
        whole.fill_(7)
        assert part.tolist() == [7.0, 7.0]
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

    def test_one_tensor_twice_stays_one(self, trip: Any) -> None:
        """A tensor that appears twice is one object again."""
        x = tc.ones(2)
        first, second = trip((x, x))
        assert first is second

    def test_requires_grad_and_no_history(self, trip: Any) -> None:
        """A leaf that requires grad comes back as one; so does a parameter, as a parameter."""
        leaf, parameter = trip([tc.ones(2, requires_grad=True), Parameter(tc.ones(2), requires_grad=False)])
        assert (leaf.requires_grad, leaf.is_leaf, isinstance(leaf, Parameter)) == (True, True, False)
        assert (parameter.requires_grad, isinstance(parameter, Parameter)) == (False, True)

    def test_empty_and_0d(self, trip: Any) -> None:
        """Tensors without elements and without dims come back."""
        empty, zero_d = trip((tc.zeros(0, 3), tc.tensor(5)))
        assert (tuple(empty.shape), zero_d.item()) == ((0, 3), 5)

    def test_meta(self, trip: Any) -> None:
        """A tensor without values comes back without."""
        back = trip(tc.empty(2, 3, device="meta", dtype=tc.int8))
        assert (back.is_meta, tuple(back.shape), back.dtype) == (True, (2, 3), tc.int8)

    def test_shapes_dtypes_and_devices(self, trip: Any) -> None:
        """What surrounds tensors comes back, dtypes and devices as the same objects."""
        x = tc.ones(2, 3)
        value = OrderedDict(a=[x.shape, x.dtype, x.device, None, 1.5, "text", b"bytes", {1, 2}, (True, 1j)])
        assert trip(value) == value
        assert trip(x.dtype) is x.dtype


class TestCopies:
    """What copy and deepcopy do beside."""

    def test_copy_shares_memory(self) -> None:
        """``copy.copy`` gives another tensor over the same memory, a leaf with the attributes."""
        x = tc.ones(2, requires_grad=True)
        x.note = 3
        made = copy.copy(x)
        assert made is not x
        assert (made.data_ptr(), made.requires_grad, made.note) == (x.data_ptr(), True, 3)

    def test_deepcopy_of_a_result_is_refused(self) -> None:
        """As in PyTorch, only leaves are copied; pickle makes a leaf of a result."""
        y = tc.ones(2, requires_grad=True) * 2.0
        with pytest.raises(RuntimeError, match="graph leaves"):
            copy.deepcopy(y)
        assert pickled(y).is_leaf

    def test_gradients(self) -> None:
        """deepcopy copies the gradient of a tensor and leaves out that of a parameter; pickle leaves out both."""
        x, p = tc.ones(2, requires_grad=True), Parameter(tc.ones(2))
        x.grad, p.grad = tc.tensor([1.0, 2.0]), tc.ones(2)
        made = copy.deepcopy(x)
        assert made.grad.tolist() == [1.0, 2.0]
        assert made.grad.data_ptr() != x.grad.data_ptr()
        assert copy.deepcopy(p).grad is None
        assert pickled(x).grad is None

    def test_hooks_are_left_out_with_a_warning(self) -> None:
        """A copy has no hooks, and pickle says so."""
        x = tc.ones(2, requires_grad=True)
        called = []
        x.register_hook(called.append)
        with pytest.warns(UserWarning, match="hooks will not be serialized"):
            made = pickled(x)
        for one in (made, copy.deepcopy(x)):
            (one * 2.0).sum().backward()
        assert called == []

    @pytest.mark.parametrize("what", ["shared", "parameter", "result", "attributes"])
    def test_copies_are_pytorchs(self, torch: Any, what: str) -> None:
        """copy and deepcopy keep and drop what PyTorch's do."""

        def described(m: Any) -> Any:
            x = m.arange(4.0)
            if what == "shared":
                a, b = copy.deepcopy((x, x[1:3] if m is torch else x.narrow(0, 1, 2)))
                return b.data_ptr() - a.data_ptr(), b.storage_offset(), b._is_view(), b.untyped_storage().nbytes()
            if what == "parameter":
                p = (m.nn.Parameter if m is torch else Parameter)(x)
                p.note = 1
                return hasattr(copy.deepcopy(p), "note"), copy.copy(p).note, copy.deepcopy(p).requires_grad
            if what == "result":
                made = copy.copy(x.requires_grad_() * 2.0)
                return made.requires_grad, made.is_leaf
            x.note = [1]
            made = copy.deepcopy(x)
            return made.note, made.note is x.note, copy.copy(x).note is x.note

        assert described(tc) == described(torch)

    def test_buffers_out_of_band(self) -> None:
        """Protocol 5 hands the bytes over without a copy into the pickle."""
        buffers: list[Any] = []
        x = tc.arange(1000.0)
        data = pickle.dumps(x, 5, buffer_callback=buffers.append)
        assert len(data) < 1000
        assert pickle.loads(data, buffers=buffers).tolist() == x.tolist()


@pytest.mark.parametrize(
    "name", ["sigmoid", "tanh", "relu", "matmul", "maximum", "add", "flatten", "index_add", "narrow", "sum"]
)
def test_functions_are_themselves_after_a_copy(name: str) -> None:
    """A module may hold ``torch.sigmoid`` or ``torch.flatten``: a copy and a pickle of a function are the function."""
    function = getattr(tc, name)
    for twin in (
        pickled(function),
        copy.copy(function),
        copy.deepcopy([function])[0],
        saved([function], weights_only=False)[0],
    ):
        assert twin is function


def test_methods_with_a_short_way_are_themselves_after_a_copy() -> None:
    """``Tensor.dim`` and its kin, which may be written in C, are copied and pickled by name."""
    for method in (tc.Tensor.dim, tc.Tensor.contiguous, tc.Tensor.item):
        assert pickled(method) is method
        assert copy.deepcopy([method]) == [method]
