"""Ranks as threads of one process, for programs and tests that need no more."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from tensorcore.backend.default_generator import default_generator
from tensorcore.distributed.group import State, enter
from tensorcore.distributed.meeting import Launch

__all__ = ["run_threads"]

_worlds = itertools.count()


def run_threads(function: Callable[..., Any], size: int, *args: Any) -> list[Any]:
    """What ``function(*args)`` returns on each of ``size`` ranks, which are threads of this process.

    Each has process groups of its own, and ``init_process_group()`` in it joins the others; one that the function
    left open is destroyed at the end. An exception in one rank ends the others' waiting, and is raised here with a
    note of its rank. Each rank has a default generator of its own, which starts where the caller's is, so that ``manual_seed``
    seeds one rank alone, as in processes. Threads of kernels and other settings of the process are shared.
    """
    world = f"threads {next(_worlds)}"
    results: list[Any] = [None] * size
    errors: list[tuple[int, BaseException]] = []
    failed: list[str] = []
    generator = default_generator()

    def act(rank: int) -> None:
        state = State(Launch(rank, size, world, failed))
        enter(state, generator.clone())
        try:
            results[rank] = function(*args)
        except BaseException as error:
            errors.append((rank, error))
            failed.append(f"rank {rank} gave up: {type(error).__name__}: {error}")
            if state.world is not None:
                state.give_up(f"{type(error).__name__}: {error}")
        finally:
            if state.world is not None:
                state.leave()

    threads = [threading.Thread(target=act, args=(rank,), name=f"rank {rank}") for rank in range(size)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if errors:
        rank, error = errors[0]
        error.add_note(f"on rank {rank} of {size}")
        raise error
    return results
