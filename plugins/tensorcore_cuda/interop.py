"""Memory exchanged with PyTorch, CuPy and others on the device, in the order of the streams of both."""

from __future__ import annotations

from typing import Any

import cupy

from tensorcore.plugin import dtypes

__all__ = ["from_dlpack", "to_dlpack"]

Native = Any
_BY_NUMPY = {one.numpy: one for one in dtypes.ALL}


def to_dlpack(
    backend: Any, native: Native, dtype: dtypes.dtype, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
    copy: bool | None = None,
) -> Any:  # fmt: skip
    """A capsule whose consumer's ``stream`` waits for what the current one was given; ``-1`` asks for no wait."""
    if dl_device is not None and tuple(dl_device) != (backend.dlpack_type, backend.index):
        raise BufferError(
            f"__dlpack__: expected device {(backend.dlpack_type, backend.index)}, got {dl_device}; move it first"
        )
    with backend.place:
        exported = native.copy() if copy else native
        return exported.__dlpack__(stream=stream)


def from_dlpack(backend: Any, exporter: Any, *, copy: bool | None = None) -> tuple[Native, dtypes.dtype]:
    """An array over the exporter's memory; the exporter makes our stream wait for its work."""
    with backend.place:
        found = cupy.from_dlpack(exporter)
        found = found.copy() if copy else found
    return found, _BY_NUMPY[found.dtype]
