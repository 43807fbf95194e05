"""The generator that numbers come from where no other one is passed: the process's, or a thread's own."""

from __future__ import annotations

import threading

from tensorcore.backend.random import Generator
from tensorcore.backend.sources import sources
from tensorcore.backend.turns import renewed

__all__ = ["default_generator", "own_generator"]

_default_lock = renewed(threading.Lock())


class _Threads(threading.local):
    generator: Generator | None = None


_threads = _Threads()


def default_generator() -> Generator:
    """The generator that ``torch.manual_seed`` seeds; it starts from ``DEFAULT_SEED``.

    It is one for the process, but for threads that ``own_generator`` gave one of their own.
    """
    if sources.threads and (found := _threads.generator) is not None:
        return found
    if sources.process is None:
        with _default_lock:  # made on first use: importing numpy.random takes longer than the rest of this file
            sources.process = sources.process or Generator()
    return sources.process  # type: ignore[no-any-return]


def own_generator(generator: Generator | None) -> None:
    """Let this thread's default generator be this one, or that of the process again."""
    with _default_lock:
        sources.threads += (generator is not None) - (_threads.generator is not None)
    _threads.generator = generator
