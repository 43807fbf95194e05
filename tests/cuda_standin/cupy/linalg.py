"""``cupy.linalg``."""

import numpy.linalg

from . import _functions

globals().update(_functions.table("cupy.linalg", numpy.linalg))
