"""NCCL among the devices of one process: ranks are threads, each with a device of its own, and meet in a board."""

from __future__ import annotations

__all__: list[str] = []
