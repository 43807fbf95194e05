"""The CPU plugin's page-locked memory: what is locked, kept, limited and refused."""

from pathlib import Path

import numpy as np
import pytest

from tensorcore_cpu import blocks
from tensorcore_cpu.memory import Allocator
from tests.cpu.memory import BYTE, FLOAT, address, posix, run


def test_pinned_array_is_locked_in_memory(allocator):
    """An array that says it is page-locked is counted as such by the system, until the cache is emptied."""

    def locked():
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmLck:"):
                return int(line.split()[1]) << 10
        return None

    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not say how much is locked")
    before = locked()
    array = allocator.pinned_empty((5, 1000), FLOAT)
    if not allocator.is_pinned(array):
        pytest.skip(allocator.pin_refusal())
    assert locked() == before + 20_480
    assert address(array) % 64 == 0
    assert allocator.pin_refusal() is None
    assert allocator.is_pinned(array[1:].T)
    assert not allocator.is_pinned(array.copy())
    assert not Allocator().is_pinned(array)
    del array
    assert locked() == before + 20_480
    assert allocator.statistics()["pinned_bytes.cached"] == 20_480
    assert allocator.empty_cache() == 20_480
    assert locked() == before


@pytest.fixture
def lockable(monkeypatch):
    """A system that locks any pages; the list of what it was asked."""
    calls = []

    def page_lock(name):
        return lambda place, size: calls.append((name, size)) or 0

    monkeypatch.setattr(blocks, "_page_lock", page_lock)
    return calls


def test_pin_copies_values_once(allocator, lockable):
    """The copy is C-contiguous with the same values; pinning it again is the same array."""
    array = np.arange(6, dtype=np.int64).reshape(2, 3).T
    copy = allocator.pin(array)
    assert copy.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert copy.flags.c_contiguous
    assert not np.shares_memory(copy, array)
    assert allocator.pin(copy) is copy
    assert not allocator.is_pinned(array)


def test_pinned_blocks_are_reused_without_a_call(allocator, lockable):
    """A dropped page-locked block serves the next array of its size still locked."""
    place = address(allocator.pinned_empty((1000,), FLOAT))
    array = allocator.pinned_empty((900,), FLOAT)
    assert address(array) == place
    assert allocator.is_pinned(array)
    assert lockable == [("mlock", 4096)]


def test_pinned_limit_bounds_all_that_is_locked(allocator, lockable):
    """Cached blocks are unlocked to make room; with none left the array is an ordinary one, and the reason is told."""
    allocator.pinned_limit(16_384)
    held = allocator.pinned_empty((8192,), BYTE)
    dropped = allocator.pinned_empty((4096,), BYTE)
    del dropped
    second = allocator.pinned_empty((8192,), BYTE)
    assert allocator.is_pinned(second)
    assert lockable == [("mlock", 8192), ("mlock", 4096), ("munlock", 4096), ("mlock", 8192)]
    third = allocator.pinned_empty((1,), BYTE)
    assert not allocator.is_pinned(third)
    assert allocator.pin_refusal() == "20480 bytes would be page-locked, and the limit is 16384"
    assert allocator.is_pinned(held)
    assert allocator.statistics()["pinned_bytes.peak"] == 16_384


def test_refused_lock_empties_the_pinned_cache_and_tries_again(allocator, monkeypatch):
    """When the system locks no more, the cached blocks are unlocked and the lock is asked for once more."""
    locked = [0]

    def page_lock(name):
        def call(place, size):
            if name == "munlock":
                locked[0] -= size
                return 0
            if locked[0] + size > 8192:
                return 12
            locked[0] += size
            return 0

        return call

    monkeypatch.setattr(blocks, "_page_lock", page_lock)
    allocator.pinned_empty((4096,), BYTE)
    array = allocator.pinned_empty((8192,), BYTE)
    assert allocator.is_pinned(array)
    assert allocator.pin_refusal() is None
    ordinary = allocator.pinned_empty((8192,), BYTE)
    assert not allocator.is_pinned(ordinary)
    assert allocator.pin_refusal().startswith("mlock refused 8192 bytes: ")


@posix
def test_pin_is_honest_where_locking_is_forbidden():
    """With RLIMIT_MEMLOCK at zero and no privilege, the array works, is not page-locked, and the reason is told."""
    printed = run("""
        import os, resource
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        try:
            if os.geteuid() == 0:
                os.setuid(65534)  # the administrator may lock whatever the limit says
        except OSError:
            print("privileged")
            raise SystemExit
        allocator = Allocator()
        array = allocator.pin(np.arange(3))
        print(array.tolist(), allocator.is_pinned(array), allocator.statistics()["pinned_bytes.reserved"])
        print(allocator.pin_refusal())
    """)
    if printed == "privileged\n":
        pytest.skip("this process cannot give up its privilege")
    first, second = printed.splitlines()
    assert first == "[0, 1, 2] False 0"
    assert second.startswith("mlock refused 4096 bytes: ")
    assert second.endswith(", and RLIMIT_MEMLOCK is 0 bytes")


def test_system_without_mlock_gives_ordinary_arrays(allocator, monkeypatch):
    """Where there is no mlock, page-locked memory is refused with that reason."""
    monkeypatch.setattr(blocks, "_page_lock", lambda name: None)
    array = allocator.pin(np.arange(3))
    assert array.tolist() == [0, 1, 2]
    assert not allocator.is_pinned(array)
    assert allocator.pin_refusal() == "this system has no mlock"
