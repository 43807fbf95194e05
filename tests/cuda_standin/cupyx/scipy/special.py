"""``cupyx.scipy.special``."""

import scipy.special
from cupy import _functions

globals().update(_functions.table("cupyx.scipy.special", scipy.special))
