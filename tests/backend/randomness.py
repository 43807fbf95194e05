"""What the tests of the random generator share: names of dtypes, and checksums of arrays."""

import zlib

import numpy as np

import tensorcore.dtypes as dtypes

FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = ("uint8", "int8", "int16", "int32", "int64")
SIZES = (1, 15, 16, 17, 33, 1000)


def named(name):
    """The dtype of this name."""
    return getattr(dtypes, "bool_" if name == "bool" else name)


def crc(array):
    """CRC-32 of the array's bytes in C order."""
    return zlib.crc32(np.ascontiguousarray(array).tobytes())
