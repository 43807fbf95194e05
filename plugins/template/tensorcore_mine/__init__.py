"""The device ``mine``: NumPy's functions to begin with."""

import numpy

from tensorcore.plugin import XPBackend, hookimpl

INTERFACE = (1, 1)  # the interface that this was written for


class MineBackend(XPBackend):
    """Every kernel comes from the namespace; a method ``kernel_{name}`` replaces one."""

    def __init__(self, index=0):
        super().__init__(numpy, "mine", index)

    def kernel_square(self, x, out=None):
        return numpy.multiply(x, x, out=out)


@hookimpl
def register_backends(register):
    register("mine", MineBackend, remedy="pip install tensorcore-mine")
