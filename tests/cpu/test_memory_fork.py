"""The CPU plugin's allocator over the life of a process: forks, and the end of the interpreter."""

import pytest

from tests.cpu.memory import posix, run


@posix
def test_child_of_a_fork_has_its_own_memory():
    """The child keeps live values, starts with an empty cache and no locks, and neither process touches the other."""
    printed = run("""
        import os
        allocator = Allocator()
        allocator.limit(1 << 30)
        number = np.dtype(np.float32)
        kept = allocator.empty((1_000_000,), number)
        kept.fill(1)
        allocator.empty((1_000_000,), number).fill(2)
        pinned = allocator.pin(np.arange(3))
        child = os.fork()
        if not child:
            numbers = allocator.statistics()
            right = kept[0] == 1 and numbers["cached_bytes.current"] == 0 and numbers["active.current"] == 1
            right = right and not allocator.is_pinned(pinned) and numbers["pinned_bytes.reserved"] == 0
            kept.fill(5)
            del kept, pinned
            allocator.empty((1_000_000,), number).fill(6)
            right = right and allocator.statistics()["cache.hits"] == 1
            os._exit(0 if right and allocator.empty_cache() == 4 << 20 else 1)
        print(os.waitpid(child, 0)[1], kept.min(), kept.max(), allocator.statistics()["cached_bytes.current"] >> 20)
        again = allocator.empty((1_000_000,), number)
        print(again.min(), again.max(), pinned.tolist(), allocator.statistics()["cache.hits"])
    """)
    assert printed.splitlines() == ["0 1.0 1.0 4", "2.0 2.0 [0, 1, 2] 1"]


@posix
def test_fork_beside_busy_threads_leaves_the_child_able_to_allocate():
    """A fork while other threads are inside the allocator never leaves the child with a lock that nobody holds."""
    printed = run("""
        import os, threading
        allocator = Allocator()
        number, running = np.dtype(np.float32), True

        def work():
            while running:
                allocator.empty((20_000,), number)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        codes = []
        for _ in range(20):
            child = os.fork()
            if not child:
                arrays = [allocator.empty((20_000,), number) for _ in range(5)]
                del arrays
                numbers = allocator.statistics()
                os._exit(numbers["reserved_bytes.current"] - numbers["cached_bytes.current"] > 2 * 81920)
            codes.append(os.waitpid(child, 0)[1])
        running = False
        for thread in threads:
            thread.join()
        print(codes)
    """)
    assert printed == f"{[0] * 20}\n"


@posix
@pytest.mark.parametrize("wait, seen", [(10, 0), (0.05, 1)], ids=["waits", "gives up"])
def test_fork_waits_for_a_thread_inside_the_allocator(wait, seen):
    """A fork waits until a half-made change is complete, but not for ever; the child can allocate in either case."""
    printed = run(f"""
        import os, threading, time
        from tensorcore_cpu import memory
        memory._FORK_WAIT = {wait}
        allocator, inside = Allocator(), threading.Event()

        def change():
            with allocator._blocks.lock:
                allocator._blocks.active += 1
                inside.set()
                time.sleep(0.5)
                allocator._blocks.active -= 1

        thread = threading.Thread(target=change)
        thread.start()
        inside.wait()
        child = os.fork()
        if not child:
            allocator.empty((20_000,), np.dtype(np.float32))
            os._exit(allocator.statistics()["active.current"])
        thread.join()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), allocator.statistics()["active.current"])
    """)
    assert printed == f"{seen} 0\n"


def test_interpreter_ends_without_a_word():
    """Arrays that live until the interpreter is gone, also in cycles and in other modules, print nothing."""
    printed = run("""
        import sys
        allocator = Allocator()
        kept = [allocator.empty((size,), np.dtype(np.float32)) for size in (3, 20_000, 1_000_000)]
        kept.append(kept)
        pinned = allocator.pin(np.arange(3))
        class Holder: pass
        holder = Holder()
        holder.itself, holder.array, holder.allocator = holder, allocator.empty((50_000,), kept[0].dtype), allocator
        np.kept_for_ever = sys.kept_for_ever = allocator.pinned_empty((50_000,), kept[0].dtype)
        print("end")
    """)
    assert printed == "end\n"
