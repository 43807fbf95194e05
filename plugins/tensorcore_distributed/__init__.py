"""The transports between ranks: MPI between processes and hosts, NCCL between GPUs, and threads within one process."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.util import find_spec

from tensorcore.plugin import hookimpl

__all__ = ["register_communicators"]

INTERFACE = (1, 0)


@hookimpl
def register_communicators(register):
    """Offer ``mpi``, ``nccl`` and ``threads``."""
    register("mpi", make_mpi, probe=probe_mpi, remedy="pip install 'tensorcore[mpi]'")
    register("nccl", make_nccl, probe=probe_nccl, remedy="pip install 'tensorcore[mpi,cuda13]' nvidia-nccl-cu13")
    register("threads", make_threads)


def make_mpi(**options):
    """One process's end of all processes that the MPI launcher started, or another that set torchrun's variables."""
    _prepare(options)
    from tensorcore_distributed.communicators.mpi import MpiCommunicator

    return MpiCommunicator(**options)


def make_nccl(**options):
    """One process's end of all processes that the MPI launcher started, each with a GPU."""
    _prepare(options)
    from tensorcore_distributed.communicators.nccl import NcclCommunicator

    return NcclCommunicator(**options)


def make_threads(**options):
    """One thread's end of a world of threads."""
    from tensorcore_distributed.communicators.threads import ThreadsCommunicator

    return ThreadsCommunicator(**options)


def probe_mpi():
    """None where mpi4py is installed, else what is missing."""
    return None if find_spec("mpi4py") else "mpi4py is not installed"


def probe_nccl():
    """None where CuPy is installed and the driver finds a GPU, else what is missing. Several processes need mpi4py too."""
    if find_spec("cupy") is None:
        return "cupy is not installed"
    try:
        driver = ctypes.CDLL(os.environ.get("TENSORCORE_CUDA_DRIVER", "libcuda.so.1"))
    except OSError:
        return "there is no GPU: NVIDIA's driver is not installed (no libcuda.so.1); install it, or use mpi"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "NVIDIA's driver finds no GPU; see nvidia-smi, or use mpi"
    return None


def _prepare(options):
    """Where no MPI launcher started this process, have MPI find the others at the ``address``, which is taken out."""
    address = options.pop("address", None)
    started = any(name in os.environ for name in ("PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"))
    if address is None or started or "mpi4py.MPI" in sys.modules:
        return
    from tensorcore_distributed.pmi import meet_at

    meet_at(options["rank"], options["size"], *address, options.get("timeout", 300.0))
