"""Apple's GPUs, as PyTorch names them: there where a plugin offers devices of the name ``mps``."""

from __future__ import annotations

from tensorcore.accelerators import Devices

_devices = Devices("mps")

__all__ = [
    "current_device", "device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "memory_allocated",
    "seed", "seed_all", "set_device", "synchronize",
]  # fmt: skip

current_device = _devices.current_device
device_count = _devices.device_count
empty_cache = _devices.empty_cache
is_available = _devices.is_available
manual_seed = _devices.manual_seed
manual_seed_all = _devices.manual_seed_all
memory_allocated = _devices.memory_allocated
seed = _devices.seed
seed_all = _devices.seed_all
set_device = _devices.set_device
synchronize = _devices.synchronize
