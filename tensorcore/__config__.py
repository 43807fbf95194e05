"""``torch.__config__``: what the library was built with and how many threads it runs on, as text."""

from __future__ import annotations

from tensorcore._version import __version__
from tensorcore.ops.placement import host_device
from tensorcore.threads import get_num_interop_threads, get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The version, and what the device that tensors are made on reports: its libraries, what products run on, its kernels."""
    facts = host_device().report()
    return "\n".join(
        [f"tensorcore {__version__} built with:", *(f"  - {key}: {value}" for key, value in facts.items())]
    )


def parallel_info() -> str:
    """The numbers of threads."""
    return f"get_num_threads() : {get_num_threads()}\nget_num_interop_threads() : {get_num_interop_threads()}\n"
