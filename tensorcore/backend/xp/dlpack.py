"""DLPack through NumPy's own capsules, with the one dtype that NumPy does not know: bfloat16.

A capsule's name says where its DLTensor starts. Its dtype code stands after the data pointer, the device (two ints)
and the number of dims: https://dmlc.github.io/dlpack/latest/c_api.html
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tensorcore import dtypes

__all__ = ["capsule_device", "export_array", "import_array"]

_INT, _BFLOAT = 0, 4  # DLDataTypeCode
_CODE = 20  # bytes from the start of a DLTensor to the dtype's code
_STARTS = {b"dltensor": 0, b"dltensor_versioned": 32}  # the versioned struct has version, context, deleter, flags first

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def export_array(array: np.ndarray, dtype: dtypes.dtype, **options: Any) -> Any:
    """A capsule over the memory of a NumPy array."""
    if dtype is not dtypes.bfloat16:
        return array.__dlpack__(**options)
    capsule = array.view(np.int16).__dlpack__(**options)
    _code_of(capsule).value = _BFLOAT
    return capsule


def import_array(exporter: Any, copy: bool | None = None) -> np.ndarray:
    """A NumPy array over the memory of an object that has ``__dlpack__``, or over a copy of it."""
    once = _Once(exporter)
    array = np.from_dlpack(once, copy=copy)
    if not once.versioned and not array.flags.writeable:
        array = np.asarray(_Writable(array))
    return array.view(dtypes.bfloat16.numpy) if once.bfloat else array


def capsule_device(capsule: Any) -> tuple[int, int]:
    """The kind and the number of the device that a capsule's memory is on. Raises BufferError for one that was used."""
    start = _start_of(capsule)
    kind, index = (ctypes.c_int32 * 2).from_address(start + ctypes.sizeof(ctypes.c_void_p))
    return kind, index


class _Writable:
    """An array that NumPy takes for read-only, because before DLPack 1.0 nobody could say so, as one that is not."""

    def __init__(self, array: np.ndarray) -> None:
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}
        self.owner = array


class _Once:
    """Hands an exporter's capsule to NumPy, bfloat16 marked as integers of that size."""

    def __init__(self, exporter: Any) -> None:
        self.exporter = exporter
        self.bfloat = False
        self.versioned = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.exporter.__dlpack_device__()  # type: ignore[no-any-return]

    def __dlpack__(self, **options: Any) -> Any:
        try:
            capsule = self.exporter.__dlpack__(**options)
        except TypeError:  # an exporter from before DLPack 1.0
            capsule = self.exporter.__dlpack__()
        self.versioned = _name_of(capsule) != b"dltensor"
        code = _code_of(capsule)
        if code.value == _BFLOAT:
            code.value, self.bfloat = _INT, True
        return capsule


def _code_of(capsule: Any) -> ctypes.c_uint8:
    return ctypes.c_uint8.from_address(_start_of(capsule) + _CODE)


def _start_of(capsule: Any) -> int:
    """Where the description of the tensor begins: its address, its device and so on."""
    name = _name_of(capsule)
    if name not in _STARTS:
        raise BufferError(
            f"from_dlpack: expected a fresh DLPack capsule, got one named {name!r}; each can be used once"
        )
    return int(_pointer_of(capsule, name)) + _STARTS[name]
