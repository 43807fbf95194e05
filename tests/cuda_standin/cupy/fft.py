"""``cupy.fft``."""

import numpy.fft

from . import _functions

globals().update(_functions.table("cupy.fft", numpy.fft))
