"""The device meta: a shape rule for each primitive, and each op's shape, dtype and strides as on the host."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.kernels import KERNELS
from tensorcore.backend.shapes import VIEWS
from tensorcore.backend.xp import XPBackend
from tensorcore.ops.define import OPS
from tests.ops.test_every_op import SAMPLED, calls_of

# Kernels whose answer is no array.
ASKED = {"index_bounds"}


def meta(*shape: int, **options: Any) -> Any:
    return tc.empty(*shape, device="meta", **options)


def test_every_primitive_has_a_shape_rule() -> None:
    """The rules name each kernel that XPBackend has, but for those that only calls one by one take, and none that it has not."""
    ruled = set(KERNELS) | set(VIEWS) | ASKED
    assert set(XPBackend().table) - ruled == set()
    assert ruled - set(XPBackend().table) == set()


def build(value: Any, device: str, dtype: str) -> Any:
    """A sampled argument on a device."""
    if isinstance(value, np.ndarray):
        return tc.tensor(value, dtype=getattr(tc, dtype) if value.dtype == np.float64 else None).to(device)
    if isinstance(value, (list, tuple)) and any(isinstance(one, np.ndarray) for one in value):
        return type(value)(build(one, device, dtype) for one in value)
    return value


def described(value: Any) -> Any:
    """What is left of a result without its values."""
    if isinstance(value, tc.Tensor):
        strides = value.stride() if value.numel() else ()
        sizes = tuple(value.shape)
        return (
            sizes,
            value.dtype,
            [step for step, size in zip(strides, sizes, strict=False) if size > 1],
            value.native.dtype,
        )
    if isinstance(value, (list, tuple)):
        return [described(one) for one in value]
    return value


@pytest.mark.parametrize("name", SAMPLED)
def test_an_op_gives_on_meta_what_it_gives_on_the_host(name: str) -> None:
    """Shape, dtype and strides of a result are those on the CPU, unless the op says that it needs values."""
    function = OPS[name].function
    compared, refusals = 0, []
    for dtype in ("float32", "complex64", "int64", "bool"):
        for args, kwargs in calls_of(name):

            def run(device: str, dtype: str = dtype, args: Any = args, kwargs: Any = kwargs) -> Any:
                options = {key: build(value, device, dtype) for key, value in kwargs.items()}
                return function(*[build(one, device, dtype) for one in args], **options)

            try:
                expected = run("cpu")
            except Exception:  # a dtype that the op does not take
                continue
            try:
                got = run("meta")
            except (NotImplementedError, tc.errors.UsageError) as error:
                refusals.append(str(error))
                continue
            assert described(got) == described(expected), (dtype, args, kwargs)
            compared += 1
    assert bool(compared) is (name not in VALUE_DEPENDENT)
    assert [text for text in refusals if "meta" not in text] == []


# Ops of which no sample runs without values.
VALUE_DEPENDENT = {
    "allclose", "argwhere", "bincount", "is_nonzero", "ctc_loss", "masked_select", "nonzero", "unique", "unique_consecutive",
}  # fmt: skip


class TestTape:
    """Models run on meta."""

    def test_a_chain_of_huge_products_costs_no_memory(self) -> None:
        """Matrices of 40 GB are multiplied and differentiated in less than a megabyte."""
        tracemalloc.start()
        w = meta(100_000, 100_000, requires_grad=True)
        x = meta(100_000, 100_000)
        for _ in range(10):
            x = (x @ w).relu()
        x.sum().backward()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20
        assert tuple(w.grad.shape) == (100_000, 100_000)
        assert w.grad.is_meta

    def test_views_share_their_storage(self) -> None:
        """A view knows its place in the storage of its base."""
        x = meta(4, 6)
        part = x.t().narrow(0, 2, 3)
        assert (part.stride(), part.storage_offset()) == ((1, 6), 2)
        assert part.untyped_storage() is x.untyped_storage()
        assert meta(4, 6).untyped_storage() is not x.untyped_storage()

    def test_elementwise_results_lie_as_their_inputs(self) -> None:
        """A transposed input gives a transposed result, as on the host."""
        assert (meta(3, 4).t() * 2.0).stride() == (tc.ones(3, 4).t() * 2.0).stride() == (1, 4)


class TestRefusals:
    """What needs values says so."""

    @pytest.mark.parametrize(
        "call, error",
        [
            (lambda x: x.sum().item(), RuntimeError),
            (lambda x: bool(x.sum()), RuntimeError),
            (lambda x: float(x.sum()), RuntimeError),
            (lambda x: x.numpy(), TypeError),
            (lambda x: np.asarray(x), TypeError),
            (lambda x: x.numpy(force=True), NotImplementedError),
            (lambda x: x.tolist(), NotImplementedError),
            (lambda x: x.to("cpu"), NotImplementedError),
            (lambda x: tc.empty(2, 3).copy_(x), NotImplementedError),
            (lambda x: tc.unique(x), NotImplementedError),
            (lambda x: x.nonzero(), NotImplementedError),
            (lambda x: x.masked_select(x > 0), NotImplementedError),
            (lambda x: x[x > 0], NotImplementedError),
            (lambda x: x.__dlpack__(), BufferError),
            (lambda x: x.__dlpack_device__(), ValueError),
            (lambda x: x.pin_memory(), RuntimeError),
            (lambda x: x.share_memory_(), RuntimeError),
            (lambda x: x.storage().tolist(), NotImplementedError),
        ],
    )
    def test_the_error_is_of_the_type_that_pytorch_raises(self, call: Any, error: type) -> None:
        """Each refusal is caught by the clause that catches PyTorch's."""
        with pytest.raises(error, match="meta"):
            call(meta(2, 3))

    def test_no_data_to_copy_out(self) -> None:
        """A copy to a real device raises as in PyTorch."""
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            meta(2).to("cpu")


def test_values_are_dropped_on_the_way_to_meta() -> None:
    """``to`` keeps shape, dtype and strides; ``copy_`` from a real tensor is taken and forgotten."""
    x = tc.ones(2, 3, dtype=tc.float64).t().to("meta")
    assert (tuple(x.shape), x.dtype, x.stride()) == ((3, 2), tc.float64, (1, 3))
    assert meta(2).copy_(tc.ones(2)).is_meta
    assert str(meta(2, 3)) == "tensor(..., device='meta', size=(2, 3))"
    assert (meta(2) + tc.ones(())).is_meta
