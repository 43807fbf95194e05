"""Batches in page-locked memory, copied there by a thread while the program computes."""

from __future__ import annotations

import contextlib
import copy
import queue
import threading
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from tensorcore.tensor import Tensor
from tensorcore.utils.data.crew import Cancelled, Crew

__all__ = ["Pinner", "each", "pinned"]


def pinned(data: Any, device: Any = None) -> Any:
    """The same structure with every tensor in page-locked memory, and with what its own ``pin_memory`` gives."""

    def act(one: Any) -> Any:
        if isinstance(one, Tensor):
            return one.pin_memory(device) if one.device.capabilities.host else one  # type: ignore[attr-defined]
        return one.pin_memory()

    return each(data, "pin_memory", act)


def each(data: Any, name: str, act: Callable[[Any], Any]) -> Any:
    """The same structure with what ``act`` makes of each tensor, and of each object that has a method ``name``."""
    if isinstance(data, Tensor) or hasattr(data, name):
        return act(data)
    if isinstance(data, (str, bytes)):
        return data
    kind: Any = type(data)
    if isinstance(data, Mapping):
        items = {key: each(one, name, act) for key, one in data.items()}
        with contextlib.suppress(TypeError):
            if isinstance(data, MutableMapping):
                made = copy.copy(data)
                made.update(items)
                return made
            return kind(items)
        return items
    if isinstance(data, tuple):
        parts = [each(one, name, act) for one in data]
        return kind(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, Sequence):
        parts = [each(one, name, act) for one in data]
        with contextlib.suppress(TypeError):
            if isinstance(data, MutableSequence):
                filled = copy.copy(data)
                for i, one in enumerate(parts):
                    filled[i] = one
                return filled
            return kind(parts)
        return parts
    return data


class Pinner:
    """A thread that hears a crew and pins what it hears."""

    def __init__(self, crew: Crew, device: Any) -> None:
        self.crew, self.device = crew, device
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        crew.listener = False
        self.thread = threading.Thread(target=self._run, name="tensorcore pinning", daemon=True)
        self.thread.start()

    def hear(self, timeout: float | None) -> Any:
        """As ``Crew.hear``, with the batch pinned."""
        try:
            found = self.done.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """End the thread, which may be waiting for a worker."""
        self.crew.ring()
        if self.thread is not threading.current_thread():
            self.thread.join()

    def _run(self) -> None:
        while True:
            try:
                heard = self.crew.hear(None)
                assert heard is not None
                worker, epoch, task, answer = heard
                self.done.put((worker, epoch, task, pinned(answer, self.device)))
            except Cancelled:
                return
            except BaseException as error:
                self.done.put(error)
                return
