"""Copies between host and device: pinned memory, copies that nobody waits for, and memory that is given back."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.plugin import isolated_registry


def test_pinned_memory_is_of_the_device_in_use(place) -> None:
    """``pin_memory`` puts a host tensor where the device copies from, and ``is_pinned`` knows."""
    x = tc.arange(6.0).pin_memory()
    assert x.is_pinned()
    assert place.is_pinned(x.native)
    assert x.pin_memory() is x
    assert not tc.arange(6.0).is_pinned()
    assert x.to("cuda").tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_is_pinned_before_the_device_is_used() -> None:
    """The first batch of a program is pinned before anything was moved: it lies where the device copies from."""
    with isolated_registry(cpu="tensorcore_cpu", cuda="tensorcore_cuda"):
        x = tc.ones(6, device="cpu").pin_memory()
        assert tc.device("cuda", 0).is_pinned(x.native)


@pytest.mark.standin
def test_a_copy_that_nobody_waits_for(clock) -> None:
    """``non_blocking`` from pinned memory: the host goes on, kernels wait by themselves."""
    x = tc.arange(1000.0).pin_memory()
    waits = clock.waits
    y = x.to("cuda", non_blocking=True) + 1
    assert clock.waits == waits
    assert y[-1].item() == 1000


@pytest.mark.standin
def test_the_source_is_read_late() -> None:
    """Until the copy is over the host's memory must stay as it is: what is written before arrives."""
    x = tc.zeros(8).pin_memory()
    y = x.to("cuda", non_blocking=True)
    x.fill_(5)
    assert y.tolist() == [5] * 8


@pytest.mark.standin
def test_values_arrive_at_the_host_when_it_waits() -> None:
    """A copy to the host holds poison until the device was waited for."""
    x = tc.arange(1.0, 5.0, device="cuda")
    y = x.to("cpu", non_blocking=True)
    assert np.isnan(y.numpy()).all()
    tc.cuda.synchronize()
    assert y.tolist() == [1, 2, 3, 4]
    assert y.is_pinned()


def test_pageable_memory_is_read_at_once() -> None:
    """A source that is not pinned may be written right after."""
    x = tc.zeros(8)
    y = x.to("cuda", non_blocking=True)
    x.fill_(5)
    assert y.tolist() == [0] * 8


@pytest.mark.standin
def test_a_pinned_block_in_flight_is_not_given_again(place) -> None:
    """The pool gives a freed block again only when the copy from it is over."""
    x = tc.full((128,), 7.0).pin_memory()
    address = x.data_ptr()
    y = x.to("cuda", non_blocking=True)
    del x
    other = tc.full((128,), 9.0).pin_memory()
    assert other.data_ptr() != address
    assert y.tolist() == [7] * 128
    assert tc.full((128,), 1.0).pin_memory().data_ptr() == address


def test_pinned_memory_is_given_back(place) -> None:
    """``empty_cache`` of the pool returns what nobody uses to the system."""
    x = tc.ones(1 << 16).pin_memory()
    reserved = place.pinned.reserved
    tc.cuda.synchronize()
    del x
    assert place.pinned.empty_cache() >= 1 << 18
    assert place.pinned.reserved < reserved


def test_strides_and_dtypes_arrive() -> None:
    """Views and every dtype go there and back."""
    for dtype in (tc.float32, tc.bfloat16, tc.bool, tc.complex64, tc.uint8):
        x = tc.arange(12).reshape(3, 4).to(dtype).T
        for copy in (x, x.pin_memory()):
            back = copy.to("cuda", non_blocking=True).cpu()
            assert back.dtype is dtype
            assert back.tolist() == x.tolist()


@pytest.mark.standin
def test_copy_in_place_does_not_wait(clock) -> None:
    """``copy_`` with ``non_blocking`` writes device memory behind what was called before."""
    target, source = tc.zeros(4, device="cuda"), tc.arange(4.0).pin_memory()
    waits = clock.waits
    target.copy_(source, non_blocking=True)
    assert clock.waits == waits
    assert target.tolist() == [0, 1, 2, 3]
