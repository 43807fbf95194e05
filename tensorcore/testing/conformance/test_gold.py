"""Gold: what a device claims beyond computing: fused kernels, pinned memory, statistics, exchange, collectives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.base import Backend
from tensorcore.backend.kernels import OPTIONAL
from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.backend.registry import communicator, communicators
from tensorcore.errors import TensorcoreError
from tensorcore.testing.calls import RANDOM, calls_of
from tensorcore.testing.compare import agree, built, outcome
from tensorcore.testing.conformance.test_silver import DEFINED, derivatives, function_of, run
from tensorcore.testing.watch import WatchedTable, hiding_optional

__all__: list[str] = []


def overridden(device: Backend, name: str) -> bool:
    """Whether a device's class has its own method of an optional protocol."""
    return getattr(type(device), name) is not getattr(Backend, name)


@pytest.mark.parametrize("name", [name for name in DEFINED if name not in RANDOM])
def test_fused(device: Any, kernels: WatchedTable, name: str, wide: str) -> None:
    """Where a kernel does without a decomposition, both have the same values and derivatives."""
    for number, call in enumerate(calls_of(name)):
        for dtype in {wide, "float32"} & device.capabilities.dtypes:
            kernels.clear()
            found = run(name, call, device, dtype)
            gradients = outcome(derivatives, function_of(name), built(call, device, dtype, grad=True))
            if not kernels.native & OPTIONAL:
                continue
            with hiding_optional(device):
                plain = run(name, call, device, dtype)
                agree(found, plain, f"call {number} {dtype}", loose=10)
                expected = outcome(derivatives, function_of(name), built(call, device, dtype, grad=True))
            if not isinstance(expected, Exception):
                agree(gradients, expected, f"gradient of call {number} {dtype}", loose=100)


class TestMemory:
    """What the device says of its memory."""

    def test_pinned(self, device: Any) -> None:
        """Pinned memory is told from other memory, holds the values, and transfers."""
        if not device.capabilities.pinned:
            pytest.skip("not claimed: pinned")
        host = np.arange(1 << 16, dtype=np.float32)
        pinned = device.pin(host)
        if not device.is_pinned(pinned):
            pytest.skip("the system grants no page-locked memory")
        assert not device.is_pinned(host)
        np.testing.assert_array_equal(device.to_host(device.from_host(pinned)), host)

    def test_statistics(self, device: Any) -> None:
        """Statistics are whole numbers, and those of live memory grow with a tensor and shrink without it."""
        if not overridden(device, "memory_stats"):
            pytest.skip("not claimed: memory_stats")
        before = device.memory_stats()
        x = tc.ones(1 << 20, device=device)
        device.synchronize()
        during = device.memory_stats()
        del x
        after = device.memory_stats()
        assert all(type(one) is int and one >= 0 for one in during.values())
        assert during["allocated_bytes.current"] - before["allocated_bytes.current"] >= 3 << 20
        assert after["allocated_bytes.current"] <= before["allocated_bytes.current"]
        assert during["allocated_bytes.peak"] >= during["allocated_bytes.current"]

    def test_cache(self, device: Any) -> None:
        """``empty_cache`` says how many bytes it gave back, and the second time none."""
        if not overridden(device, "empty_cache"):
            pytest.skip("not claimed: empty_cache")
        del_me = tc.ones(1 << 20, device=device)
        del del_me
        device.synchronize()
        assert device.empty_cache() >= 0
        assert device.empty_cache() == 0

    def test_too_much(self, device: Any) -> None:
        """More memory than there is raises OutOfMemoryError, and the device goes on."""
        if device.capabilities.host:
            pytest.skip("the host gives memory that it does not have")
        with pytest.raises((tc.errors.OutOfMemoryError, MemoryError)):
            tc.empty(1 << 60, dtype=tc.int64 if "int64" in device.capabilities.dtypes else tc.float32, device=device)
        assert tc.ones(2, device=device).tolist() == [1, 1]


def test_exchange(device: Any) -> None:
    """A tensor goes through DLPack and back without a copy."""
    if device.dlpack_type is None:
        pytest.skip("not claimed: dlpack_type")
    x = tc.arange(6, dtype=tc.float32, device=device).reshape(2, 3)
    assert x.__dlpack_device__()[0] == device.dlpack_type
    y = tc.from_dlpack(x)
    assert y.device.dlpack_type == device.dlpack_type
    y[0, 0] = 9
    assert x.tolist() == [[9, 1, 2], [3, 4, 5]]


def test_streams(device: Any) -> None:
    """Work on a second stream waits for an event of the first, and the first for one of the second."""
    if not device.capabilities.streams:
        pytest.skip("not claimed: streams")
    x = tc.ones(1 << 16, device=device)
    first, second = device.current_stream(), device.new_stream()
    ready, done = device.new_event(), device.new_event()
    y = x + 1
    first.record(ready)
    second.wait(ready)
    device.use_stream(second)
    try:
        z = y * 3
        second.record(done)
    finally:
        device.use_stream(first)
    first.wait(done)
    assert (z + 1)[:2].tolist() == [7, 7]
    device.record_stream(y.native, second)
    done.synchronize()
    assert done.query()


def test_graph(device: Any) -> None:
    """A captured graph does nothing until it is replayed, and then what was called, on the values that are there."""
    if not device.capabilities.graphs:
        pytest.skip("not claimed: graphs")
    x, before = tc.ones(5, device=device), device.current_stream()
    (x + 1) * x  # what is compiled at its first call is compiled now
    graph, stream = device.new_graph(), device.new_stream()
    device.use_stream(stream)
    try:
        graph.begin(None)
        assert device.capturing()
        y = (x + 1) * x
        graph.end()
    finally:
        device.use_stream(before)
    assert not device.capturing()
    x.fill_(3)
    graph.replay()
    assert y.tolist() == [12] * 5
    x.fill_(4)
    graph.replay()
    assert y.tolist() == [20] * 5


def test_collectives(device: Any) -> None:
    """A group of one reduces, gathers and broadcasts its own array on some transport."""
    if not device.capabilities.collectives:
        pytest.skip("not claimed: collectives")
    refusals = []
    for name in communicators():
        try:
            group = communicator(name, backend=device, rank=0, size=1)
        except (TensorcoreError, TypeError) as error:
            refusals.append(f"{name}: {error}")
            continue
        try:
            x = tc.arange(4, dtype=tc.float32, device=device)
            group.all_reduce(x.native).wait()
            assert x.tolist() == [0, 1, 2, 3]
        finally:
            group.close()
        return
    pytest.fail(f"collectives are claimed, and no transport takes the device: {refusals}")


def test_random(device: Any, wide: str) -> None:
    """A seed gives the same numbers again, and numbers of a device's own are distributed as they should be."""
    found = []
    for _ in range(2):
        tc.manual_seed(5)
        found.append(tc.randn(4096, dtype=getattr(tc, wide), device=device).cpu().numpy())
    np.testing.assert_array_equal(found[0], found[1])
    assert abs(float(found[0].mean())) < 0.1
    assert abs(float(found[0].std()) - 1) < 0.1


def test_compile(device: Any) -> None:
    """What ``compile`` answers to a program does what its steps do; None is an answer too."""
    spec = Spec((3,), tc.float32)
    steps = (Step("mul", (Value(0), Value(1)), {}, (spec,)), Step("add", (Value(2), 1.0), {}, (spec,)))
    kernel = device.compile(Program((spec, spec), steps, (Value(3),)))
    if kernel is not None:
        x, y = (tc.tensor([1.0, 2.0, 3.0], device=device) * k for k in (1, 2))
        (made,) = kernel(x.native, y.native)
        assert device.to_host(made).tolist() == [3.0, 9.0, 19.0]
