"""The kernels in C, where they were built: they stand in the kernel table before NumPy's, and hand on what they cannot take.

Environment variables, read once when the CPU is first used: ``TENSORCORE_NATIVE=0`` leaves all of them out, ``=1`` makes
it an error that they are missing; ``TENSORCORE_NATIVE_ISA=avx2`` or ``plain`` chooses an older instruction set.
``TENSORCORE_BLAS`` chooses what matrix products run on: see ``blas.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tensorcore.plugin import dtypes

from .. import blas

__all__ = [
    "available",
    "conv_choices",
    "conv_way",
    "empty_cache",
    "fuse",
    "fusible",
    "isa",
    "measures",
    "memory_stats",
    "over",
    "products",
    "reason",
    "threads",
]

# How a kernel in C is called that gets what another one of that name, in C as well, does not take.
_BENEATH = "_beneath"
# Elementwise ones, which compute halves in single precision and round once, whatever stands beside them.
_NARROW_NUMBERS = frozenset([
    "add", "add_scaled", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "eq", "ne", "lt", "le", "gt", "ge", "clamp",
    "clamp_min", "clamp_max",
])  # fmt: skip
_wanted = os.environ.get("TENSORCORE_NATIVE", "")
_library: Any = None
reason = "TENSORCORE_NATIVE=0 turns it off"
if _wanted != "0":
    try:
        import tensorcore_cpu.native._native as _library
    except ImportError as error:
        if _wanted == "1":
            raise
        reason = f"it was not built, or not for this Python: {error}"
    else:
        reason = ""
        _library.set_bfloat16(dtypes.bfloat16.numpy)
        blas.prepare(_library)


def available() -> bool:
    """Whether the C kernels run in this process; ``reason`` says why not."""
    return _library is not None


def isa(name: str | None = None) -> str | None:
    """Sets, if given, the instruction set of all kernels, and returns the one in force: avx512, avx2 or plain.

    Raises ValueError where this machine does not have it. For tests: no kernel may be running.
    """
    return None if _library is None else _library.isa(name)


def products(name: str | None = None) -> str:
    """Sets, if given, what matrix products run on, and returns it.

    ``own`` is for the kernels, ``mkl`` for oneMKL, and ``tiles`` for the unit of that name where it is faster, beside one of
    the two. Raises ValueError for another name, or where that one is not there. For tests: no kernel may be running.
    """
    if _library is None:
        return "own"
    tiles, found = bool(_library.thirds(None)), blas.find_mkl()
    if name == "own":
        _library.blas_unload()
    elif name == "mkl" and found:
        _library.blas_load(found)
    elif name == "tiles" and _library.thirds(True):
        blas.prepare(_library)
        _library.thirds(True)
    elif name is not None:
        _library.thirds(tiles)
        raise ValueError(f"native.products: expected own, or mkl or tiles where they are there, got '{name}'")
    if name in ("own", "mkl"):
        _library.thirds(False)
    return "tiles" if _library.thirds(None) else "mkl" if _library.blas_in_use() else "own"


def describe_products() -> str:
    """The same in words, with versions."""
    return blas.describe(_library)


def measures(wanted: bool | None = None) -> bool:
    """Sets, if given, whether each convolution runs the way that was the fastest for its sizes, measured at the first call."""
    return False if _library is None else _library.conv_measures(wanted)


def conv_choices() -> tuple[int, list[tuple[str, str]]]:
    """How often the ways to make a convolution were measured, and what is remembered: kernels and their ways."""
    found: tuple[int, list[tuple[str, str]]] = _library.conv_choices()
    return found


def conv_way(name: str | None) -> tuple[str, ...]:
    """Makes convolutions that way where it fits, or with None the chosen way; returns which ways there are. For tests."""
    ways: tuple[str, ...] = _library.conv_way(name)
    return ways


def over(table: dict[str, Any], layings: dict[str, Any]) -> dict[str, Any]:
    """The table with each kernel that exists in C in the place of the one it falls back to.

    Where an argument is not row-major, ``layings`` put results in order, by the kernel's name; elementwise ones in C do it
    themselves, and NumPy's ufuncs are wrapped for it. What some do not take, there is another one for, before NumPy's turn.
    """
    if _library is None:
        return table
    named: dict[str, Any] = {name + _BENEATH: kernel for name, kernel in table.items()}
    made = _library.over(named, {})
    beneath = {name: made[name + _BENEATH] for name in table if made[name + _BENEATH] is not named[name + _BENEATH]}
    found: dict[str, Any] = _library.over(table | beneath, layings)
    return found


def methods(random: Callable[..., Any]) -> dict[str, Any]:
    """What a backend is asked for most, in C by the name of its method.

    Args:
        random: that method as it stands, for the draws that C does not make.
    """
    names = ("allocate", "data_pointer", "draw_over", "is_contiguous", "layout", "strides")
    if _library is None:
        return {}
    return {name: getattr(_library, name) for name in names} | {"random": _library.drawing(random)}


def narrow_numbers() -> frozenset[str]:
    """The kernels that take a number beside an array of a half type: see ``Backend.narrow_numbers``."""
    return frozenset() if _library is None else _NARROW_NUMBERS


def adds_into() -> frozenset[str]:
    """The kernels whose backward adds to an array that is there: see ``Backend.adds_into``."""
    return frozenset() if _library is None else frozenset(["standardize"])


def takes_out() -> bool:
    """Whether the kernels take ``out``, all of them: see ``Backend.takes_out``."""
    return _library is not None


def fuse(*description: Any) -> Any:
    """A kernel that runs several ops in one pass, from what ``fused.py`` writes down and a fallback."""
    return _library.fuse(*description)


def fusible() -> tuple[dict[str, tuple[int, int, bool, int]], dict[str, int], dict[str, int]]:
    """What can be fused, by name: elementwise ops (number, operands, whether they give bools, a bit for each type),
    activations (operands), and what a chain can do (number).
    """
    made: tuple[dict[str, tuple[int, int, bool, int]], dict[str, int], dict[str, int]] = _library.fusible()
    return made


def threads(count: int | None = None) -> int:
    """Sets, if given, how many threads a kernel may use, and returns how many it may."""
    if _library is None:
        return 1
    if count is not None:
        _library.set_threads(count)
    return _library.get_threads()


def memory_stats() -> dict[str, int]:
    """Counts of the cached blocks that large results of C kernels lie in, in bytes and blocks."""
    return {} if _library is None else _library.memory_statistics()


def reset_peak_memory_stats() -> None:
    """Makes every peak among those counts the current value."""
    if _library is not None:
        _library.reset_peaks()


def empty_cache() -> int:
    """Gives the unused ones back to the system; how many bytes that were."""
    return 0 if _library is None else _library.empty_cache()
