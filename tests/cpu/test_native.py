"""The C extension as a whole: the switch, fallbacks, threads, forks."""

import os
import pathlib
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import tensorcore
from tensorcore.backend.kernels import KERNELS
from tensorcore_cpu import native

from .memory import linux
from .native import is_left_to_another_day, kernel, needs_native

pytestmark = needs_native


def run(program, **environment):
    """What a program prints in a new interpreter with these environment variables."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def test_the_switch_turns_it_off():
    """TENSORCORE_NATIVE=0 leaves NumPy's kernels in the table."""
    program = "import tensorcore as tc; print(tc.device('cpu').kernels['add'])"
    assert run(program, TENSORCORE_NATIVE="0") == "<ufunc 'add'>"
    assert run(program, TENSORCORE_NATIVE="") == "<native kernel add>"


def test_an_older_instruction_set_can_be_asked_for():
    """TENSORCORE_NATIVE_ISA names the set."""
    program = "import tensorcore as tc; tc.device('cpu'); from tensorcore_cpu import native; print(native.isa())"
    assert run(program, TENSORCORE_NATIVE_ISA="plain") == "plain"


def test_an_instruction_set_that_is_not_there_is_refused():
    """The error names the best one."""
    with pytest.raises(ValueError, match="expected an instruction set of this machine, got 'mmx'; its best is"):
        native.isa("mmx")


def test_a_case_meets_each_instruction_set_within_as_many_days():
    """Of the sets that a run has one of, a case has one each day, after two days both; other tests are there every day."""

    def item(case, **given):
        call = types.SimpleNamespace(id=case, params=given)
        return types.SimpleNamespace(callspec=call, path=pathlib.Path("test_native_sums.py"), originalname="test_sums")

    sets, firsts = ["plain", "avx2"], set()
    for size in range(20):
        items = [item(f"float32-{name}-{size}", isa=name) for name in sets]
        kept = [
            [one.callspec.params["isa"] for one in items if not is_left_to_another_day(one, sets, day)]
            for day in (0, 1)
        ]
        assert sorted(kept) == [["avx2"], ["plain"]]
        firsts.add(kept[0][0])
        for same in (
            item("avx512", isa="avx512"),
            item("mkl", products="mkl"),
            item("3", size=3),
            types.SimpleNamespace(),
        ):
            assert not is_left_to_another_day(same, sets, size)
    assert firsts == {"plain", "avx2"}


def test_what_a_kernel_cannot_take_goes_to_numpy():
    """Complex numbers, other byte orders, subclasses and unknown options are the fallback's."""
    add, fallback = kernel("add")
    assert fallback is np.add
    assert add(np.array([1 + 2j]), np.array([1j])).tolist() == [1 + 3j]
    assert add(np.array([1, 2], ">f4"), np.array([1, 2], ">f4")).tolist() == [2, 4]
    assert type(add(np.ma.array([1.0, 2.0]), np.ma.array([1.0, 2.0]))) is np.ma.MaskedArray
    assert add(np.float32([1, 2]), np.float32([1, 2]), dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="could not be broadcast"):
        add(np.ones(2), np.ones(3))


def test_a_call_of_nothing_goes_to_numpy():
    """Also where C calls a kernel and gives no place for arguments, as an iterator does."""
    found = [one for one in map(tensorcore.device("cpu").kernels.__getitem__, KERNELS) if hasattr(one, "fallback")]
    assert len(found) > 100
    for one in found:
        with pytest.raises((TypeError, ValueError, IndexError)):
            next(iter(one, None))


def test_threads_are_asked_for_by_number():
    """The count is what was set, for matrix products too."""
    before = tensorcore.get_num_threads()
    try:
        tensorcore.set_num_threads(2)
        assert tensorcore.get_num_threads() == native.threads() == 2
    finally:
        tensorcore.set_num_threads(before)


@pytest.mark.parametrize("count", [0, -1, 2.0, "2", True, None])
def test_a_thread_count_is_a_positive_int(count):
    """Anything else raises RuntimeError, as in PyTorch, and changes nothing."""
    before = tensorcore.get_num_threads()
    with pytest.raises(RuntimeError, match="set_num_threads: expects"):
        tensorcore.set_num_threads(count)
    assert tensorcore.get_num_threads() == before


def test_threads_follow_the_environment():
    """OMP_NUM_THREADS is the count to begin with."""
    assert run("import tensorcore; print(tensorcore.get_num_threads())", OMP_NUM_THREADS="3") == "3"


def test_several_threads_compute_the_same():
    """The result does not depend on the number of threads."""
    add, fallback = kernel("add")
    values = np.random.default_rng(8).random((1001, 997), np.float32)
    before = native.threads()
    try:
        native.threads(4)
        for _ in range(50):
            np.testing.assert_array_equal(add(values, values.T[0, :1]), fallback(values, values.T[0, :1]))
    finally:
        native.threads(before)


def test_each_piece_runs_once_when_the_number_of_threads_changes():
    """Between loops it grows and shrinks, over the number of processors too: a late worker takes nothing of another loop."""
    add, _ = kernel("add")
    zeros, one = np.zeros(200_003, np.float32), np.float32(1)
    before = native.threads()
    try:
        for turn in range(300):
            native.threads((1, 5, 2, 8, 3)[turn % 5])
            add(zeros, 1.0, out=zeros)  # in place: what is not touched, or twice, stays behind or runs ahead
            if turn % 20 == 19:
                np.testing.assert_array_equal(zeros, np.full(200_003, (turn + 1) * one))
    finally:
        native.threads(before)


def test_python_threads_can_call_at_once():
    """Kernels that run on the pool at the same time do not meet."""
    add, _ = kernel("add")
    before = native.threads()
    failures = []

    def work(number):
        values = np.full(300_000, number, np.float32)
        for _ in range(50):
            if (add(values, values) != 2 * number).any():
                failures.append(number)

    try:
        native.threads(3)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        native.threads(before)
    assert failures == []


def test_the_thread_count_may_change_while_kernels_run():
    """Another Python thread may set it at any time; results stay right."""
    add, _ = kernel("add")
    before, failures = native.threads(), []
    values = np.ones(300_000, np.float32)

    def work():
        for _ in range(100):
            if (add(values, values) != 2).any():
                failures.append("wrong")

    worker = threading.Thread(target=work)
    try:
        native.threads(2)
        worker.start()
        while worker.is_alive():
            for count in (1, 3, 2):
                native.threads(count)
    finally:
        worker.join()
        native.threads(before)
    assert failures == []


WATCHED = """
import os, subprocess, sys, time, tensorcore as tc
x, found, right, end = tc.ones(5_000_000), 0, True, time.monotonic() + 20
os.sched_setaffinity(0, {processors})
tc.set_num_threads(2)
others = set(os.listdir("/proc/self/task"))
busy = "import os; os.sched_setaffinity(0, {busy})\\nwhile os.getppid() == " + str(os.getpid()) + ": pass"
beside = subprocess.Popen([sys.executable, "-c", busy]) if {busy} else None
for wanted in {wanted}:
    while found != wanted and time.monotonic() < end:
        y = x.lgamma()  # one loop, as a second one keeps the worker off again, whose pieces take ms: the other program comes between
        worker, = set(os.listdir("/proc/self/task")) - others
        found = len(os.sched_getaffinity(int(worker)))
        time.sleep({pause})
    right = right and not y.any()
    if beside:
        beside.kill()
        beside.wait()
print(found, bool(right))
"""


def watch_worker(count, *wanted, busy=0, pause=0.0):
    """On how many of ``count`` processors a worker may run, once those are as many as wanted, and then as wanted next; ``busy`` of them
    run another program at first."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < count:
        pytest.skip("needs two processors")
    program = WATCHED.format(processors=allowed[:count], busy=allowed[:busy], wanted=wanted, pause=pause)
    return run(program, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a Linux system")
@pytest.mark.parametrize("count", [1, 2])
def test_workers_keep_off_the_callers_processor(count):
    """A worker that is woken may run on every processor of the process but the caller's; where there is one, on that."""
    assert watch_worker(count, 1, pause=0.2) == "1 True"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a Linux system")
def test_a_worker_behind_another_program_may_come_to_the_caller():
    """Where it waits with a piece of work, the caller falls asleep and leaves it its own processor too."""
    assert watch_worker(2, 2, busy=1) == "2 True"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a Linux system")
def test_a_worker_leaves_the_callers_processor_again():
    """The loops after such a wait keep it off, also where it never slept: else both would go on on one processor."""
    assert watch_worker(2, 2, 1, busy=1) == "1 True"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")
def test_the_child_of_a_fork_has_threads_of_its_own():
    """The pool works in parent and child after a fork."""
    program = """
import os, numpy as np, tensorcore as tc
tc.set_num_threads(3)
x = tc.ones(1_000_000)
(x + x)
child = os.fork()
if not child:
    for _ in range(20): good = bool(((x + x).numpy() == 2).all())
    os._exit(0 if good else 1)
for _ in range(20): good = bool(((x + x).numpy() == 2).all())
print(good, os.waitpid(child, 0)[1])
"""
    assert run(program) == "True 0"


def test_large_results_lie_in_cached_blocks():
    """A freed result's memory goes to the next one of its size; an emptied cache gives it back."""
    device = tensorcore.device("cpu")
    device.empty_cache()
    values = np.ones((1200, 1000), np.float32)
    add, _ = kernel("add")
    before = device.memory_stats()
    made = add(values, values)
    grown = device.memory_stats()
    assert grown["allocated_bytes.current"] - before["allocated_bytes.current"] == values.nbytes
    assert grown["cache.misses"] == before["cache.misses"] + 1
    assert made.ctypes.data % 64 == 0
    del made
    for _ in range(5):
        made = add(values, values)
        del made
    after = device.memory_stats()
    assert after["cache.hits"] == grown["cache.hits"] + 5
    assert after["cache.misses"] == grown["cache.misses"]
    assert after["cached_bytes.current"] >= values.nbytes
    assert device.empty_cache() >= values.nbytes
    assert device.memory_stats()["cached_bytes.current"] == 0


@linux
def test_an_array_of_whole_huge_pages_takes_no_third_of_them():
    """Blocks lie side by side and share their last huge page: 4 MiB take 4 MiB and a few pages."""
    program = """
import mmap
import tensorcore as tc
ones = tc.ones(1024, 1024)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE
before = resident()
made = [ones + ones for _ in range(16)]
print((resident() - before) // made[0].nbytes)
"""
    assert int(run(program)) in range(15, 18)


@linux
def test_arrays_smaller_than_a_huge_page_share_them():
    """Where the system gives huge pages, 16 arrays of 384 KiB lie on three or four; freed and emptied, they are the system's."""
    program = """
import tensorcore as tc
ones = tc.ones(96, 1024)
def huge():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages")) // 2048
tc.device("cpu").empty_cache()
before = huge()
large = ones.repeat(200, 1)
given = huge() - before
del large
tc.device("cpu").empty_cache()
before = huge()
made = [ones + ones for _ in range(16)]
print(given, huge() - before, tc.device("cpu").memory_stats()["active.current"])
del made
print(tc.device("cpu").empty_cache() // 393216, tc.device("cpu").memory_stats()["cached_bytes.current"])
"""
    given, shared, active, freed, cached = map(int, run(program).split())
    assert (active, cached) == (17, 0)
    assert freed in (16, 17)
    if not given:
        pytest.skip("the system gives no huge pages")
    assert shared in (3, 4)


def test_a_block_serves_an_array_that_is_a_little_smaller():
    """An unused block goes to an array of seven eighths of its size too, and not to one of half."""
    device = tensorcore.device("cpu")
    device.empty_cache()
    add, _ = kernel("add")
    large, smaller, half = (np.ones((rows, 1000), np.float32) for rows in (1200, 1100, 600))
    add(large, large)
    for values, hits in ((smaller, 1), (half, 0), (large, 1)):
        before = device.memory_stats()["cache.hits"]
        add(values, values)
        assert device.memory_stats()["cache.hits"] == before + hits


def test_many_blocks_of_many_sizes_are_kept():
    """A thousand freed blocks are all found again, the one that fits best for each array."""
    device = tensorcore.device("cpu")
    device.empty_cache()
    add, _ = kernel("add")
    values = [np.ones(70_000 + 70 * i, np.float32) for i in range(100)]
    for _ in range(2):
        before = device.memory_stats()
        made = [add(one, one) for _ in range(10) for one in values]
        assert all(one[0] == one[-1] == 2 for one in made)
        del made
    after = device.memory_stats()
    assert after["cache.hits"] == before["cache.hits"] + 1000
    assert after["cached_bytes.current"] == before["cached_bytes.current"] > 0
    assert device.empty_cache() == after["cached_bytes.current"]
    assert (
        device.memory_stats()["reserved_bytes.current"]
        == before["reserved_bytes.current"] - after["cached_bytes.current"]
    )


def test_the_cache_of_results_is_bounded():
    """Over the limit, the blocks that came back longest ago are unmapped."""
    library = native._library
    before = library.memory_limit(None)
    add, _ = kernel("add")
    values = np.ones(1 << 20, np.float32)
    try:
        library.empty_cache()
        library.memory_limit(16 << 20)
        kept = [add(values, 1.0) for _ in range(8)]
        del kept
        assert 0 < library.memory_statistics()["cached_bytes.current"] <= 16 << 20
        library.memory_limit(0)
        assert library.memory_statistics()["cached_bytes.current"] == 0
    finally:
        library.memory_limit(before)


def test_numpy_can_resize_and_free_such_a_result():
    """The memory handler of the array is its own for as long as it lives."""
    add, _ = kernel("add")
    made = add(np.ones(1 << 20, np.float32), 1.0)
    made.resize(3 << 20, refcheck=False)
    assert made[(1 << 20) - 1] == 2
    assert made[-1] == 0


def test_counts_of_memory_may_be_asked_for_while_garbage_is_collected():
    """Whichever allocation collects a large tensor, the answer comes: a block goes back while nobody holds the lock."""
    program = """
import gc
import tensorcore
device, kept = tensorcore.device("cpu"), [{} for _ in range(500)]
class Garbage: pass
gc.disable()
gc.freeze()
for threshold in range(1, 40):
    gc.collect()
    one = Garbage()
    one.itself, one.large = one, tensorcore.ones(1 << 17)
    del one
    gc.set_threshold(threshold, 1000, 1000)
    gc.enable()
    kept.append(device.memory_stats())
    gc.disable()
print("right")
"""
    assert run(program) == "right"
