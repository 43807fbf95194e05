"""What files are written and read with, and the packages that were given to know their own storages."""

from __future__ import annotations

from typing import Any

__all__ = ["DEVICES_PRIORITY", "Options", "location_tag"]

DEVICES_PRIORITY = 10  # that of the host in PyTorch, which is the first of its own


class Options:
    """What files are written and read with.

    Attributes:
        checksums: whether each part gets a CRC-32 when it is written, and is compared with it when it is read.
        mmap_flags: how ``load(mmap=True)`` maps: ``mmap.MAP_PRIVATE`` where None, or ``mmap.MAP_SHARED``.
        safe: what ``weights_only`` may build beside tensors and plain containers, by full name.
        packages: what ``register_package`` was given, those of the lowest priority number first.
    """

    checksums = True
    mmap_flags: int | None = None
    safe: dict[str, Any] = {}  # noqa: RUF012
    packages: list[tuple[int, Any, Any]] = []  # noqa: RUF012


def location_tag(storage: Any) -> str:
    """The name of the device that a storage is on, as files have it."""
    for priority, tagger, _ in Options.packages:
        tag = tagger(storage) if priority < DEVICES_PRIORITY else None
        if tag:
            return tag
    return str(storage.device)
