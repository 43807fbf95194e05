"""CUDA devices, as PyTorch names them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorcore.accelerators import DeviceContext, Devices
from tensorcore.cuda import amp, nvtx
from tensorcore.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from tensorcore.errors import OutOfMemoryError
from tensorcore.ops.creation.legacy import tensor_type

_devices = Devices("cuda")
_GRAPHS = ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables")
_TYPES = ("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
          "LongTensor", "ShortTensor")  # fmt: skip

__all__ = [
    "CUDAGraph", "Event", "ExternalStream", "OutOfMemoryError", "Stream", "StreamContext", "amp",
    "can_device_access_peer", "current_device", "current_stream", "default_stream", "device", "device_count",
    "device_of", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all",
    "get_stream_from_external", "graph", "graph_pool_handle", "init", "initial_seed", "ipc_collect", "is_available",
    "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "is_tf32_supported",
    "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_summary", "nvtx", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip

can_device_access_peer = _devices.can_device_access_peer
current_device = _devices.current_device
device_count = _devices.device_count
device_of = _devices.device_of
empty_cache = _devices.empty_cache
get_device_capability = _devices.get_device_capability
get_device_name = _devices.get_device_name
get_device_properties = _devices.get_device_properties
get_per_process_memory_fraction = _devices.get_per_process_memory_fraction
get_rng_state = _devices.get_rng_state
get_rng_state_all = _devices.get_rng_state_all
init = _devices.init
initial_seed = _devices.initial_seed
is_available = _devices.is_available
is_bf16_supported = _devices.is_bf16_supported
is_initialized = _devices.is_initialized
manual_seed = _devices.manual_seed
manual_seed_all = _devices.manual_seed_all
max_memory_allocated = _devices.max_memory_allocated
reset_max_memory_allocated = reset_max_memory_cached = _devices.reset_peak_memory_stats
max_memory_cached = _devices.max_memory_cached
max_memory_reserved = _devices.max_memory_reserved
mem_get_info = _devices.mem_get_info
memory_allocated = _devices.memory_allocated
memory_cached = _devices.memory_cached
memory_reserved = _devices.memory_reserved
memory_snapshot = _devices.memory_snapshot
memory_stats = _devices.memory_stats
memory_summary = _devices.memory_summary
reset_peak_memory_stats = _devices.reset_peak_memory_stats
seed = _devices.seed
seed_all = _devices.seed_all
set_device = _devices.set_device
set_per_process_memory_fraction = _devices.set_per_process_memory_fraction
set_rng_state = _devices.set_rng_state
set_rng_state_all = _devices.set_rng_state_all
synchronize = _devices.synchronize


class device(DeviceContext):
    """``set_device`` for the length of a ``with`` block; None and negative indices change nothing."""

    def __init__(self, device: Any) -> None:
        super().__init__(_devices, device)


def get_arch_list() -> list[str]:
    """What kernels are compiled for: the architectures of the devices that are here, when a kernel is first used."""
    found = {get_device_capability(i) for i in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(found)]


def ipc_collect() -> None:
    """Give back memory that other processes were done with: there is none, as tensors go to them through the host."""
    init()


def is_tf32_supported() -> bool:
    """Whether products of float32 may run on tensor cores, in fewer bits."""
    return is_available() and get_device_capability()[0] >= 8


__all__ += list(_TYPES)


def __getattr__(name: str) -> Any:
    if name == "_initialized":  # what programs ask before they touch the generators
        return is_initialized()
    if name in ("memory", "random"):
        return import_module(f"tensorcore.cuda.{name}")
    if name in _GRAPHS:  # they bring modules and custom functions in
        from tensorcore.cuda import graphs

        return getattr(graphs, name)
    if name not in _TYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = tensor_type(name, "cuda")
    return found
