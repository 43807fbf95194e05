"""The transports between ranks: MPI between processes and hosts, NCCL between GPUs, and threads within one process."""

from __future__ import annotations

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
    """None where CuPy is installed, else what is missing. More than one process need mpi4py too."""
    return None if find_spec("cupy") else "cupy is not installed"


def _prepare(options):
    """Where no MPI launcher started this process, have MPI find the others at the ``address``, which is taken out."""
    address = options.pop("address", None)
    started = any(name in os.environ for name in ("PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"))
    if address is None or started or "mpi4py.MPI" in sys.modules:
        return
    from tensorcore_distributed.pmi import meet_at

    meet_at(options["rank"], options["size"], *address, options.get("timeout", 300.0))
