"""What objects hold, as far as guards look at it."""

from __future__ import annotations

import dataclasses
import dis
import sys
import types
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from tensorcore.nn.module import Module
from tensorcore.tensor import Tensor

__all__ = [
    "codes",
    "compared",
    "exact",
    "flat_tensors",
    "globals_of",
    "imported",
    "is_library",
    "is_record",
    "items_of",
    "may_be_state",
    "named",
    "same",
    "slots",
]

_LIBRARIES = frozenset(sys.stdlib_module_names) | {"tensorcore", "numpy", "pytest", "_pytest"}
_IMPORT, _EXTENDED, _LOAD, _IS = [dis.opmap[one] for one in ("IMPORT_NAME", "EXTENDED_ARG", "LOAD_GLOBAL", "IS_OP")]
# Instructions by which code reads or puts globals, and words by which it may do so with names that are strings or made up.
_OF_GLOBALS = frozenset(
    [
        number
        for one, number in dis.opmap.items()
        if "GLOBAL" in one or one in ("LOAD_NAME", "STORE_NAME", "DELETE_NAME")
    ]
)
_BY_STRING = frozenset([
    "__dict__", "__globals__", "__import__", "attrgetter", "eval", "exec", "f_globals", "getattr", "globals", "import_module", "locals",
    "modules", "setattr", "vars",
])  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Whether an array of NumPy's, or a row of bytes, is of the kind of another one and holds the same bits."""
    if type(other) is bytes and type(one) is not bytes:
        return memoryview(one).tobytes() == other
    if type(one) is not type(other) or not isinstance(one, np.ndarray):
        return type(one) is type(other) and bool(one == other)
    alike = one.dtype == other.dtype and one.shape == other.shape
    return alike and (one.tobytes() == other.tobytes() if one.dtype != object else bool((one == other).all()))


def exact(values: Any) -> list[tuple[type, str]]:
    """What tells numbers and strings of a set apart that compare alike, in the order in which a program sees them."""
    return [(type(one), repr(one)) for one in values]


def may_be_state(value: Any) -> bool:
    return value is None or isinstance(value, Tensor) or (type(value) is tuple and all(map(may_be_state, value)))


def is_record(value: Any) -> bool:
    """Whether an object is a dataclass all of whose state is in its attributes."""
    kind = type(value)
    plain = dataclasses.is_dataclass(kind) and kind.__new__ is object.__new__ and kind.__setattr__ is object.__setattr__
    return plain and not isinstance(value, Module) and not slots(kind)


def items_of(container: Any) -> dict[Any, Any]:
    """What is in a list, a dict, a cell of a closure or a dataclass, by key."""
    kind = type(container)
    if kind is types.CellType:
        with suppress(ValueError):  # of one that is empty
            return {"cell_contents": container.cell_contents}
        return {}
    return dict(enumerate(container)) if kind is list else container if kind is dict else vars(container)


def flat_tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from flat_tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from flat_tensors(one)
    elif is_record(value):
        yield from flat_tensors(vars(value))


def codes(code: types.CodeType) -> list[types.CodeType]:
    """Code, and that of the functions and classes inside it."""
    return [code, *[inner for one in code.co_consts if isinstance(one, types.CodeType) for inner in codes(one)]]


def named(code: types.CodeType) -> set[str]:
    """The names in code, that of functions inside it included; and its strings, which may be names of modules and attributes."""
    every = codes(code)
    return {key for one in every for key in (*one.co_names, *[text for text in one.co_consts if type(text) is str])}


def globals_of(code: types.CodeType) -> set[str]:
    """The names in code that may be of globals: not those of attributes alone, which a global may have too."""
    every = codes(code)
    if not _BY_STRING.isdisjoint([key for one in every for key in one.co_names]):
        return named(code)
    found = set()
    for one in every:
        argument, text = 0, one.co_code
        for op, low in zip(text[::2], text[1::2], strict=True):
            argument = argument << 8 | low
            if op in _OF_GLOBALS:
                found.add(one.co_names[argument >> 1 if op == _LOAD else argument])
            if op != _EXTENDED:
                argument = 0
    return found


def compared(code: types.CodeType) -> set[str]:
    """The names in code, that of functions inside it left out, that ``is`` and ``is not`` stand beside."""
    if _IS not in code.co_code[::2]:  # read as instructions where there is one alone
        return set()
    found, last = set(), deque[Any](maxlen=2)
    for one in dis.get_instructions(code):
        if one.opcode == _IS:
            found.update([each.argval for each in last if each.opname.startswith("LOAD_") and type(each.argval) is str])
        last.append(one)
    return found


def imported(code: types.CodeType) -> set[str]:
    """The names of modules that code may import inside functions: of its statements, and any where it asks for some by name."""
    every = codes(code)
    if not {"import_module", "__import__", "modules"}.isdisjoint([key for one in every for key in one.co_names]):
        return named(code)
    # Read as instructions where there is an import alone: that takes far longer than a look.
    found = [one for each in every if _IMPORT in each.co_code[::2] for one in dis.get_instructions(each)]
    return {str(one.argval) for one in found if one.opcode == _IMPORT or one.opname == "IMPORT_FROM"}


def slots(kind: type) -> list[str]:
    """The attributes of an object that are in no dict."""
    return [key for one in kind.__mro__ for key, held in vars(one).items() if type(held) is types.MemberDescriptorType]


def is_library(module: Any) -> bool:
    """Whether a module of this name is Python's, NumPy's, this package's, or of a package that was installed; else a program's own.

    What has no name is none of a program's. Packages that are installed to be worked on lie where their authors put them.
    """
    if type(module) is not str or module.startswith(("tensorcore_", "namedtuple_")):
        return True
    top = module.partition(".")[0]
    return top != "__main__" and (top in _LIBRARIES or _is_installed(top))


def _is_installed(package: str) -> bool:
    found = sys.modules.get(package)
    places = [getattr(found, "__file__", None), *getattr(found, "__path__", ())]
    return any(one is not None and ("site-packages" in one or "dist-packages" in one) for one in places)
