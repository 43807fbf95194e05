"""Batches on a device before they are needed: while one is worked on, the next are on their way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from tensorcore.backend.registry import device as find_device
from tensorcore.errors import ArgumentError
from tensorcore.utils.data.pinning import each, pinned

__all__ = ["DevicePrefetcher"]


class DevicePrefetcher:
    """The batches of a loader on a device, in the same structures.

    Batches go through page-locked memory and are copied without waiting, so that on a device with streams copies run beside
    the work on earlier batches; what is called on a batch waits for its own copy alone.

    Args:
        loader: gives batches; a DataLoader with ``pin_memory=True`` pins them in a thread.
        device: where to.
        ahead: how many batches are under way beside the one in use.
    """

    def __init__(self, loader: Iterable[Any], device: Any, ahead: int = 1) -> None:
        if ahead < 1:
            raise ArgumentError(f"DevicePrefetcher: expected to be ahead by 1 batch or more, got {ahead}; pass 1")
        self.loader, self.device, self.ahead = loader, find_device(device), ahead

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        waiting: deque[Any] = deque()
        for batch in self.loader:
            waiting.append(each(pinned(batch), "to", self._sent))
            if len(waiting) > self.ahead:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()

    def _sent(self, one: Any) -> Any:
        return one.to(self.device, non_blocking=True)
