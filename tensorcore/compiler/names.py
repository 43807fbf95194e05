"""What names the code has that runs: attributes that none of it names were not read."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from tensorcore.lazy.record import is_inside

__all__ = ["Names"]

# Code that has one of these names may read attributes by names that it makes up.
_COMPUTING = frozenset([
    "__dict__", "__getattribute__", "__getstate__", "__reduce_ex__", "attrgetter", "dir", "eval", "exec", "getattr",
    "getmembers", "locals", "methodcaller", "vars",
])  # fmt: skip
# Modules that do so with objects of a program; the rest of Python's own does it with its own objects.
_COMPUTED_BY = frozenset(["copy", "copyreg", "dataclasses", "inspect", "json", "pickle", "pprint", "reprlib"])


class Names:
    """While ``with`` lasts, notes the code of every function that this thread calls.

    What an import runs is left out. A profiler that is at work already is left alone, and then nothing is known.
    """

    def __init__(self) -> None:
        self._codes: dict[int, tuple[CodeType, str]] | None = None

    def __enter__(self) -> Names:
        if sys.getprofile() is None:
            codes = self._codes = {}
            importing: Any = None

            def note(frame: Any, event: str, argument: Any) -> None:
                nonlocal importing
                if event == "call":
                    code = frame.f_code
                    if importing is None and id(code) not in codes:  # by identity: a code object has no hash at hand
                        if code.co_name == "_find_and_load" and code.co_filename.startswith("<frozen importlib"):
                            importing = frame
                        else:
                            codes[id(code)] = code, str(frame.f_globals.get("__name__", ""))
                elif frame is importing and event == "return":
                    importing = None

            sys.setprofile(note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._codes is not None:
            sys.setprofile(None)

    def found(self) -> frozenset[str] | None:
        """The names and strings in all of the code; None where attributes may have been read by other names."""
        if self._codes is None:
            return None
        names: set[str] = set()
        for code, module in self._codes.values():
            if not _COMPUTING.isdisjoint(code.co_names) and _of_the_program(code, module):
                return None
            names.update(code.co_names)
            names.update(one for one in code.co_consts if type(one) is str)
        return frozenset(names)


def _of_the_program(code: CodeType, module: str) -> bool:
    """Whether code may ask objects of the program for attributes.

    This package does so only with the members of modules, which are looked at whatever their names, and its plugins see
    arrays alone.
    """
    if is_inside(code) or module.startswith("tensorcore"):
        return False
    top = module.partition(".")[0]
    return top in _COMPUTED_BY or top not in sys.stdlib_module_names
