"""The CUDA plugin: CuPy's arrays and kernels of our own, on NVIDIA's devices."""

from __future__ import annotations

from tensorcore.plugin import hookimpl

__all__ = ["register_backends"]

INTERFACE = (1, 1)


@hookimpl
def register_backends(register):
    """Offer the device ``cuda``."""
    from tensorcore_cuda.probe import device_count, why_not

    register("cuda", make, count=device_count, probe=why_not, remedy="pip install 'tensorcore[cuda13]'")


def make(index):
    """The backend of one device."""
    from tensorcore_cuda.backend import CudaBackend

    return CudaBackend(index)
