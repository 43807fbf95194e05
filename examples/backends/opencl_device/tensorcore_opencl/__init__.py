"""The device ``opencl``: buffers and a queue of OpenCL, and kernels compiled from C when they are first asked for.

``StridedBackend`` gives it views and in-place writes; a kernel whose dtype has no C here is left to others.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from tensorcore.plugin import hookimpl

__all__ = ["register_backends"]

INTERFACE = (1, 1)


@hookimpl
def register_backends(register):
    """Offer the device ``opencl``; pyopencl is imported when it is first used."""
    register("opencl", make, probe=probe, remedy="pip install pyopencl intel-opencl-rt intel-cmplr-lib-rt")


def make(index):
    """The backend of one of OpenCL's devices."""
    # Intel's wheel leaves the folder that it was built in where the loader looks for the library.
    library = Path(sys.prefix, "lib", "libintelocl.so")
    if library.exists():
        os.environ.setdefault("OCL_ICD_VENDORS", str(library))
    from .backend import OpenCLBackend

    return OpenCLBackend(index)


def probe():
    """None where pyopencl is installed, else what is missing; imports nothing."""
    return None if find_spec("pyopencl") else "pyopencl is not installed"
