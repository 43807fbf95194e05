"""The device ``jax``: XLA's arrays as memory, ``jax.numpy``'s functions as kernels.

JAX's arrays never change and have no views. ``StridedBackend`` gives it both: a native array is a place in a flat JAX
array, and a write puts another array there.
"""

from importlib.util import find_spec

from tensorcore.plugin import hookimpl

__all__ = ["register_backends"]

INTERFACE = (1, 1)


@hookimpl
def register_backends(register):
    """Offer the device ``jax``; JAX is imported when it is first used."""
    register("jax", make, probe=probe, remedy="pip install jax")


def make(index):
    """The backend of one of JAX's devices."""
    from .backend import JaxBackend

    return JaxBackend(index)


def probe():
    """None where JAX is installed, else what is missing; imports nothing."""
    return None if find_spec("jax") else "JAX is not installed"
