"""What a program may ask about transports before it joins a group, and names that it knows from PyTorch."""

from __future__ import annotations

from tensorcore.backend import registry
from tensorcore.backend.communicator import CommunicatorError

__all__ = [
    "Backend", "DistBackendError", "DistError", "DistNetworkError", "is_backend_available",
    "is_gloo_available", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available",
    "is_xccl_available",
]  # fmt: skip

DistError = DistBackendError = DistNetworkError = CommunicatorError


class Backend(str):
    """A transport's name, in lower case."""

    GLOO, MPI, NCCL, THREADS, UNDEFINED = "gloo", "mpi", "nccl", "threads", "undefined"

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, name.lower())


def is_backend_available(backend: str) -> bool:
    """Whether ``init_process_group`` takes the name."""
    return backend.lower() == "gloo" or backend.lower() in registry.communicators()


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return is_backend_available("mpi")


def is_nccl_available() -> bool:
    """Whether a plugin offers NCCL."""
    return is_backend_available("nccl")


def is_gloo_available() -> bool:
    """Whether ``"gloo"`` may be asked for: it stands for the host's transports."""
    return True


def is_ucc_available() -> bool:
    """Whether a plugin offers UCC."""
    return is_backend_available("ucc")


def is_xccl_available() -> bool:
    """Whether a plugin offers XCCL."""
    return is_backend_available("xccl")


def is_torchelastic_launched() -> bool:
    """Whether torchrun started the program: never, its workers are started by an MPI launcher."""
    return False
