"""The CPU plugin's allocator: alignment, reuse, counts, limits, threads, and systems that lack something."""

import gc
import mmap
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tensorcore_cpu import blocks
from tensorcore_cpu.memory import Allocator
from tests.cpu.memory import BYTE, FLOAT, FORTY_MB, MIB, address, linux, run


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, ml_dtypes.bfloat16, np.float32, np.complex128])
@pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0, 2), (1,), (7,), (3, 5), (1, 1, 9), (1000,), (33, 77), (300, 400), (1100, 1100)]
)
def test_arrays_are_contiguous_and_aligned(allocator, shape, dtype):
    """The first, the second and the twentieth array of a shape are C-contiguous, on 64 bytes, and can be written."""
    arrays = [allocator.empty(shape, np.dtype(dtype)) for _ in range(20 if np.prod(shape) < 1e5 else 2)]
    for array in arrays:
        array[...] = 1
        assert type(array) is np.ndarray
        assert (array.shape, array.dtype) == (shape, dtype)
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert address(array) % 64 == 0


@pytest.mark.parametrize("shape", [(8,), (5000,), (20_000,), (1_000_000,)])
def test_living_arrays_never_overlap(allocator, shape):
    """Arrays that live at the same time keep their own values."""
    arrays = []
    for value in range(20):
        arrays.append(allocator.empty(shape, FLOAT))
        arrays[-1].fill(value)
    assert [(array.min(), array.max()) for array in arrays] == [(value, value) for value in range(20)]


@pytest.mark.parametrize("shape", [(), (8,), (5000,), (20_000,), (1_000_000,)])
def test_base_of_a_view_is_the_array_it_was_taken_from(allocator, shape):
    """A view's base is the allocated array, whatever was between them, so a storage ends where its array ends."""
    for _ in range(3):
        array = allocator.empty(shape, FLOAT)
        view = array.reshape(-1)[:1].view(np.int32)[::-1]
        assert view.base is array
        assert type(array.base) is not np.ndarray


@pytest.mark.parametrize("shape", [(20_000,), (250_000,), FORTY_MB])
def test_block_is_reused_once_its_array_is_gone(allocator, shape):
    """The next array of the size lies where the dropped one lay."""
    array = allocator.empty(shape, FLOAT)
    place = address(array)
    del array
    assert address(allocator.empty(shape, FLOAT)) == place
    assert allocator.statistics()["cache.hits"] == 1


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array[5:10],
        lambda array: array.reshape(100, -1).T[3:4, ::2],
        lambda array: array.view(np.int32)[::-1],
        lambda array: memoryview(array)[3:9],
        lambda array: np.frombuffer(array, np.uint8)[40:],
        lambda array: np.from_dlpack(array)[1:],
    ],
    ids=["slice", "transpose", "dtype", "memoryview", "frombuffer", "dlpack"],
)
def test_block_is_not_reused_while_a_view_lives(allocator, hold):
    """Values seen through a view survive the array and later allocations of the same size."""
    array = allocator.empty((100_000,), FLOAT)
    array[...] = np.arange(100_000)
    view = hold(array)
    before = bytes(np.asarray(view).tobytes())
    del array
    later = [allocator.empty((100_000,), FLOAT) for _ in range(3)]
    for each in later:
        each.fill(-1)
    assert np.asarray(view).tobytes() == before
    assert allocator.statistics()["cache.hits"] == 0
    del view
    again = allocator.empty((100_000,), FLOAT)
    assert allocator.statistics()["cache.hits"] == 1
    del again


def test_array_in_a_cycle_comes_back_at_collection(allocator):
    """A block whose array sits in a reference cycle is active until the collector finds it."""

    class Holder:
        pass

    holder = Holder()
    holder.itself, holder.array = holder, allocator.empty((100_000,), FLOAT)
    gc.disable()
    try:
        del holder
        assert allocator.statistics()["active.current"] == 1
    finally:
        gc.enable()
    gc.collect()
    assert allocator.statistics()["active.current"] == 0


def test_statistics_follow_each_step(allocator):
    """Allocated bytes are what arrays asked for, reserved bytes what their classes take."""

    def counts():
        numbers = allocator.statistics()
        return tuple(numbers[key] for key in keys)

    keys = (
        "allocated_bytes.current",
        "allocated_bytes.peak",
        "allocated_bytes.allocated",
        "allocated_bytes.freed",
        "reserved_bytes.current",
        "reserved_bytes.peak",
        "cached_bytes.current",
        "active.current",
        "active.peak",
        "cache.hits",
        "cache.misses",
    )
    assert counts() == (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    first = allocator.empty((100_000,), BYTE)  # 104 KiB: 13 steps of 8 KiB
    assert counts() == (100_000, 100_000, 100_000, 0, 106_496, 106_496, 0, 1, 1, 0, 1)
    second = allocator.empty((3 * MIB,), BYTE)  # 12 steps of 256 KiB
    assert counts() == (3_245_728, 3_245_728, 3_245_728, 0, 3_252_224, 3_252_224, 0, 2, 2, 0, 2)
    del first
    assert counts() == (3_145_728, 3_245_728, 3_245_728, 100_000, 3_252_224, 3_252_224, 106_496, 1, 2, 0, 2)
    third = allocator.empty((99_000,), BYTE)
    assert counts() == (3_244_728, 3_245_728, 3_344_728, 100_000, 3_252_224, 3_252_224, 0, 2, 2, 1, 2)
    del second, third
    allocator.reset_peak_statistics()
    assert counts() == (0, 0, 3_344_728, 3_344_728, 3_252_224, 3_252_224, 3_252_224, 0, 0, 1, 2)


def test_small_arrays_are_not_counted(allocator):
    """Arrays under 32 KiB appear in no count."""
    array = allocator.empty((32_767,), BYTE)
    assert (array.nbytes, allocator.statistics()["allocated_bytes.allocated"]) == (32_767, 0)
    allocator.empty((32_768,), BYTE)
    assert allocator.statistics()["allocated_bytes.allocated"] == 32_768


def test_size_classes_waste_at_most_an_eighth():
    """A block is never smaller than asked, and larger by an eighth at most."""
    for nbytes in [*range(32_768, 200_000, 331), *range(2 * MIB - 5, 200 * MIB, 1_234_567)]:
        size = blocks.Blocks.size_class(nbytes)
        assert size >= nbytes
        assert size - nbytes <= nbytes / 8
        assert blocks.Blocks.size_class(size) == size


@linux
def test_empty_cache_gives_everything_back(allocator):
    """All cached bytes are returned, the number is right, and the process shrinks by them."""

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    arrays = [allocator.empty(FORTY_MB, FLOAT) for _ in range(3)]
    for array in arrays:
        array.fill(1)
    kept = arrays.pop()
    del arrays, array
    before = resident()
    assert allocator.empty_cache() == 2 * 40 * MIB
    assert resident() < before - 70 * MIB
    assert allocator.statistics()["cached_bytes.current"] == 0
    assert allocator.statistics()["reserved_bytes.current"] == 40 * MIB
    assert allocator.empty_cache() == 0
    assert kept[0] == kept[-1] == 1


def test_limit_drops_the_oldest_blocks_first(allocator):
    """Over the limit, the block that was given back longest ago goes, whatever its class."""
    oldest, middle, newest = (allocator.empty((size,), BYTE) for size in (2 * MIB, 4 * MIB, 6 * MIB))
    del oldest, middle, newest
    assert allocator.limit(10 * MIB) == 10 * MIB
    assert allocator.statistics()["cached_bytes.current"] == 10 * MIB
    assert allocator.limit(9 * MIB) == 9 * MIB
    assert allocator.statistics()["cached_bytes.current"] == 6 * MIB
    array = allocator.empty((6 * MIB,), BYTE)
    assert allocator.statistics()["cache.hits"] == 1
    del array


def test_limit_holds_without_another_allocation(allocator):
    """Blocks that come back over the limit go to the system at once."""
    allocator.limit(5 * MIB)
    arrays = [allocator.empty((2 * MIB,), BYTE) for _ in range(8)]
    del arrays
    assert allocator._blocks.cached == 4 * MIB  # statistics() would settle the queue itself


def test_block_larger_than_the_limit_leaves_the_others(allocator):
    """A block that can never be cached does not push out those that are."""
    allocator.limit(5 * MIB)
    small, large = allocator.empty((4 * MIB,), BYTE), allocator.empty((6 * MIB,), BYTE)
    del small
    del large
    assert allocator.statistics()["cached_bytes.current"] == 4 * MIB


def test_default_limit_is_a_quarter_of_memory(monkeypatch):
    """Without being told, the cache holds a quarter of the memory that the process may use."""
    monkeypatch.setattr("tensorcore_cpu.memory._machine_memory", lambda: 64 << 30)
    assert Allocator().limit() == 16 << 30
    assert Allocator().pinned_limit() == 8 << 30


def test_thousand_cycles_do_not_grow(allocator):
    """A loop over the same sizes maps memory in its first turn only."""

    def turn():
        arrays = [allocator.empty((size,), FLOAT) for size in (10, 3000, 10_000, 300_000, 2_000_000)]
        return arrays[1:2]

    turn()
    first = allocator.statistics()
    for _ in range(1000):
        turn()
    last = allocator.statistics()
    assert last["reserved_bytes.peak"] == first["reserved_bytes.peak"]
    assert last["cache.misses"] == first["cache.misses"] == 3
    assert last["active.peak"] == 3


def test_many_shapes_do_not_grow_the_stock(allocator):
    """Arrays that are kept ready for shapes seen once are dropped again."""
    for size in range(5000):
        allocator.empty((size,), BYTE)
        allocator.empty((size,), BYTE)
    assert sum(len(shapes) for shapes in allocator._stock.values()) <= 512


@linux
def test_reuse_takes_no_page_faults(allocator):
    """Twenty writes of 40 MB into reused memory cost fewer faults than a hundredth of one write into new memory."""
    import resource

    allocator.empty(FORTY_MB, FLOAT).fill(0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for value in range(20):
        allocator.empty(FORTY_MB, FLOAT).fill(value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 90


@linux
def test_big_blocks_lie_on_huge_pages(allocator):
    """Where the system gives huge pages on request, a written 40 MB array is on them."""

    def huge_after_writing(mapping):
        before = allocator.huge_page_bytes()
        np.frombuffer(mapping, np.uint8)[:] = 1
        return None if before is None else allocator.huge_page_bytes() - before

    private = mmap.mmap(-1, 8 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    private.madvise(mmap.MADV_HUGEPAGE)
    if not huge_after_writing(private):
        pytest.skip("the system gives no huge pages, or does not say")
    assert huge_after_writing(allocator.empty(FORTY_MB, FLOAT)) > 0


def test_threads_keep_their_values_and_the_counts(allocator):
    """Four threads that allocate, pass on and drop arrays never see another's values, and no byte is miscounted."""
    allocator.limit(8 * MIB)
    wrong, handed = [], []

    def work(seed):
        random = np.random.default_rng(seed)
        held = []
        for step in range(400):
            array = allocator.empty((int(random.choice([16, 2000, 9000, 60_000, 700_000])),), FLOAT)
            array.fill(seed * 1000 + step)
            held.append((array[1:], seed * 1000 + step))
            handed.append(array)  # dropped by whichever thread comes next
            if len(handed) > 4:
                handed.pop(0)
            if len(held) > 6:
                view, value = held.pop(int(random.integers(6)))
                if not (view[0] == view[-1] == value):
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handed.clear()
    numbers = allocator.statistics()
    assert wrong == []
    assert numbers["allocated_bytes.current"] == numbers["active.current"] == 0
    assert numbers["reserved_bytes.current"] == numbers["cached_bytes.current"] <= 8 * MIB
    assert allocator.empty_cache() == numbers["reserved_bytes.current"]
    assert allocator.statistics()["reserved_bytes.current"] == 0


def test_dropping_an_array_never_waits(allocator):
    """A finalizer that runs while another thread is inside the allocator leaves its block for later."""
    arrays = [allocator.empty((100_000,), FLOAT)]
    thread = threading.Thread(target=arrays.clear)
    with allocator._blocks.lock:
        thread.start()
        thread.join(timeout=10)
        assert not thread.is_alive()
        assert allocator._blocks.active == 1
    assert allocator.statistics()["active.current"] == 0


def test_failed_construction_gives_the_block_back(allocator):
    """A shape that NumPy refuses raises and leaves nothing allocated."""
    with pytest.raises(ValueError, match="dimension"):
        allocator.empty((1,) * 70 + (100_000,), FLOAT)
    numbers = allocator.statistics()
    assert (numbers["active.current"], numbers["allocated_bytes.current"]) == (0, 0)


def test_impossible_size_raises_out_of_memory(allocator):
    """More bytes than an address can count raise the error of the library after one retry."""
    from tensorcore.errors import OutOfMemoryError

    with pytest.raises(OutOfMemoryError, match=r"^empty: expected room for 4611686018427387904000 bytes, got "):
        allocator.empty((1 << 60, 1000), FLOAT)
    numbers = allocator.statistics()
    assert (numbers["num_alloc_retries"], numbers["num_ooms"]) == (1, 1)


@linux
def test_out_of_memory_empties_the_cache_then_says_why():
    """Under RLIMIT_AS a full cache makes way once; then the error names the bytes asked and held and the limit."""
    printed = run("""
        import resource
        from tensorcore.errors import OutOfMemoryError
        allocator = Allocator()
        allocator.limit(1 << 30)
        byte = np.dtype(np.uint8)
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + (300 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        held = allocator.empty((96 << 20,), byte)
        allocator.empty((128 << 20,), byte)
        more = allocator.empty((160 << 20,), byte)
        numbers = allocator.statistics()
        print(numbers["num_alloc_retries"], numbers["num_ooms"], numbers["reserved_bytes.current"] >> 20)
        try:
            allocator.empty((1 << 30,), byte)
        except OutOfMemoryError as error:
            print(str(error).replace(str(limit), "LIMIT"))
        print(held.nbytes + more.nbytes >> 20)
    """)
    assert printed.splitlines() == [
        "1 0 256",
        "empty: expected room for 1073741824 bytes, got 'Cannot allocate memory' with an empty cache and 268435456 "
        "bytes held by 2 arrays of the LIMIT that RLIMIT_AS lets the process map; drop arrays or make smaller ones",
        "256",
    ]


def test_system_without_private_mappings_and_huge_pages_works(allocator, monkeypatch):
    """Big arrays need neither MAP_ANONYMOUS nor MADV_HUGEPAGE."""
    monkeypatch.delattr(mmap, "MAP_ANONYMOUS", raising=False)
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    array = allocator.empty(FORTY_MB, FLOAT)
    array.fill(3)
    assert array.sum(dtype=np.float64) == 30_000_000
    assert address(array) % 64 == 0


@linux
def test_mapping_off_a_huge_page_boundary_is_made_anew(monkeypatch):
    """Where the kernel does not align mappings, a larger one is made and the part from the boundary on is used."""
    real = blocks.address
    monkeypatch.setattr(blocks, "address", lambda buffer: real(buffer) + 4096)  # the kernel here aligns
    buffer = blocks._huge_mapping(4 * MIB)
    assert len(buffer) == 4 * MIB
    assert (real(buffer) + 4096) % (2 * MIB) == 0
