"""The device ``torch``: PyTorch's tensors as native arrays, PyTorch's functions as kernels.

Most kernels have the names and the arguments of PyTorch's functions, so a list of names is half of the backend. The rest
are those that differ, by a line each. What is in neither runs on another device, if ``fallback`` allows it.
"""

from importlib.util import find_spec

from tensorcore.plugin import hookimpl

__all__ = ["register_backends"]

INTERFACE = (1, 1)


@hookimpl
def register_backends(register):
    """Offer the device ``torch``; PyTorch is imported when it is first used."""
    register("torch", make, probe=probe, remedy="pip install torch")


def make(index):
    """The backend of PyTorch's CPU."""
    from .backend import TorchBackend

    return TorchBackend(index)


def probe():
    """None where PyTorch is installed, else what is missing; imports nothing."""
    return None if find_spec("torch") else "PyTorch is not installed"
