"""The part of CUDA's runtime that the plugin calls by name."""

from __future__ import annotations

from typing import Any

from .. import _kernels, _memory, _state
from .. import _timeline as timeline

CUDARuntimeError = timeline.DeviceFault
is_hip = False
streamCaptureModeGlobal, streamCaptureModeThreadLocal, streamCaptureModeRelaxed = 0, 1, 2
memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = 1, 2, 3, 4
hostAllocPortable = 1
cudaDevAttrMultiProcessorCount, cudaDevAttrMaxSharedMemoryPerBlockOptin = 16, 97


def getDevice() -> int:
    """The current device."""
    return _state.current_device()


def setDevice(device: int) -> None:
    """Make a device the current one."""
    _state.set_device(device)


def getDeviceCount() -> int:
    """How many there are."""
    return _state.count()


def deviceSynchronize() -> None:
    """Wait for the current device."""
    from . import Device

    Device().synchronize()


def deviceCanAccessPeer(device: int, peerDevice: int) -> int:
    """Whether one reads the other's memory."""
    return int(device != peerDevice)


def deviceEnablePeerAccess(peerDevice: int) -> None:
    """Allow it."""


def runtimeGetVersion() -> int:
    """As of CUDA 13.0."""
    return 13000


def driverGetVersion() -> int:
    """As of CUDA 13.0."""
    return 13000


def deviceGetAttribute(attrib: int, device: int) -> int:
    """A few of them."""
    return {cudaDevAttrMultiProcessorCount: 132, cudaDevAttrMaxSharedMemoryPerBlockOptin: 232448}[attrib]


def memGetInfo() -> tuple[int, int]:
    """Free bytes and all bytes of the current device."""
    device = _state.current_device()
    size = _state.sizes.get(device, 16 << 30)
    return size - _memory._used.get(device, 0), size


def getDeviceProperties(device: int) -> dict[str, Any]:
    """What programs ask for."""
    if not 0 <= device < _state.count():
        raise timeline.DeviceFault("cudaErrorInvalidDevice: invalid device ordinal")
    return {
        "name": b"Stand-in", "totalGlobalMem": _state.sizes.get(device, 16 << 30), "major": 9, "minor": 0,
        "multiProcessorCount": 132, "warpSize": 32, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 49152,
        "sharedMemPerBlockOptin": 232448, "regsPerMultiprocessor": 65536, "maxThreadsPerMultiProcessor": 2048,
        "l2CacheSize": 50 << 20, "integrated": 0, "isMultiGpuBoard": 0, "uuid": bytes(16), "pciBusID": device,
        "pciDeviceID": 0, "pciDomainID": 0,
    }  # fmt: skip


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """A copy between host and device, which a capture takes too."""
    line = _kernels.line_of(stream)
    device, host = (dst, src) if kind == memcpyHostToDevice else (src, dst)
    block = _memory.block_at(device)
    if kind not in (memcpyHostToDevice, memcpyDeviceToHost) or block is None:
        raise timeline.DeviceFault("cudaErrorInvalidValue: invalid argument")
    place = _memory.MemoryPointer(block, device - block.ptr)
    (place.receive if kind == memcpyHostToDevice else place.deliver)(line, host, size)


def hostAlloc(size: int, flags: int = 0) -> int:
    """Page-locked memory."""
    return _memory.host_alloc(size)


def freeHost(ptr: int) -> None:
    """Give it back."""
    _memory.host_free(ptr)


def eventQuery(event: int) -> int:
    """Not offered: events are asked through their objects."""
    raise NotImplementedError("eventQuery: ask Event.done")
