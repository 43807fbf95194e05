"""The device's memory: counts, limits, holders in errors, views."""

from __future__ import annotations

import os
import warnings

import pytest

import tensorcore as tc


def test_counts_follow_tensors() -> None:
    """Live bytes, their peak, and what is kept for later."""
    before = tc.cuda.memory_allocated()
    x = tc.ones(1 << 18, device="cuda")
    assert tc.cuda.memory_allocated() - before == 1 << 20
    assert tc.cuda.max_memory_allocated() >= tc.cuda.memory_allocated()
    del x
    assert tc.cuda.memory_allocated() == before
    assert tc.cuda.memory_reserved() >= 1 << 20
    tc.cuda.empty_cache()
    tc.cuda.reset_peak_memory_stats()
    assert tc.cuda.max_memory_allocated() == tc.cuda.memory_allocated()
    assert "allocated_bytes.current" in tc.cuda.memory_summary()


def test_a_freed_block_is_given_again() -> None:
    """The next tensor of the size lies where the last one lay."""
    x = tc.ones(3000, device="cuda")
    address = x.data_ptr()
    del x
    assert tc.empty(3000, device="cuda").data_ptr() == address


def test_storages_have_the_size_that_was_asked_for() -> None:
    """Not that of the pool's block, which is larger."""
    x = tc.arange(6.0, device="cuda")
    assert x.untyped_storage().nbytes() == 24
    y = x[2:].as_strided((2, 2), (1, 2), 1)
    assert y.storage_offset() == 1
    assert y.tolist() == [[1, 3], [2, 4]]
    y.fill_(0)
    assert x.tolist() == [0, 0, 0, 0, 0, 5]
    with pytest.raises((ValueError, RuntimeError)):
        x.as_strided((4,), (2,))


def test_a_limit_raises_with_the_holders() -> None:
    """More than the share of memory that was allowed: the error names who holds the memory, and the device goes on."""
    kept = tc.ones(1 << 20, device="cuda")
    _, total = tc.cuda.mem_get_info()
    tc.cuda.empty_cache()
    fraction = (tc.cuda.memory_reserved() + (1 << 20)) / total
    tc.cuda.set_per_process_memory_fraction(fraction)
    assert tc.cuda.get_per_process_memory_fraction() == fraction
    try:
        with pytest.raises(tc.cuda.OutOfMemoryError, match="'kept'"):
            kept + 1
        small = tc.ones(1 << 10, device="cuda")
    finally:
        tc.cuda.set_per_process_memory_fraction(1.0)
    assert small.sum().item() == 1 << 10
    assert (kept + 1)[0].item() == 2


def test_a_snapshot_names_tensors() -> None:
    """Each storage with the names that the program has for it."""
    named = tc.ones(5000, device="cuda")
    (found,) = [one for one in tc.cuda.memory_snapshot() if one["nbytes"] == 20000]
    assert any("named" in name for name in found["names"])
    assert named.numel() == 5000


@pytest.mark.standin
def test_new_and_freed_memory_is_poison() -> None:
    """What nobody wrote is NaN, also where a freed tensor lay."""
    assert tc.empty(7, device="cuda").isnan().all().item()
    x = tc.ones(7, device="cuda")
    del x
    assert tc.empty(7, device="cuda").isnan().all().item()


@pytest.mark.standin
def test_devices_say_whether_they_read_one_anothers_memory() -> None:
    """The stand-in's two do; a device is no peer of its own, and a device of another kind is none at all."""
    assert tc.cuda.can_device_access_peer(0, "cuda:1")
    assert not tc.cuda.can_device_access_peer(1, 1)
    with pytest.raises(ValueError, match="Expected a cuda device"):
        tc.cuda.can_device_access_peer(0, "cpu")


@pytest.mark.standin
def test_kernels_are_compiled_for_the_devices_that_are_here() -> None:
    """Each architecture once; tensors of other processes leave nothing behind that would have to be collected."""
    assert tc.cuda.get_arch_list() == ["sm_90"]
    before = tc.cuda.memory_allocated()
    tc.cuda.ipc_collect()
    assert tc.cuda.memory_allocated() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_is_told_what_to_do() -> None:
    """CUDA does not outlive a fork: new tensors say so there, where the runtime has an error code."""
    tc.ones(1, device="cuda")
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which pytest may have
        child = os.fork()
    if not child:
        try:
            text = str(tc.ones(2, device="cuda"))
        except RuntimeError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    assert "take the 'spawn' start method" in text
    assert tc.ones(1, device="cuda").tolist() == [1.0]
