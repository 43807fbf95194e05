"""What names the code has that runs: attributes that none of it names were not read."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from tensorcore.compiler.asks import ENVIRONMENT, asked, dates, is_own, listeners
from tensorcore.compiler.objects import is_library
from tensorcore.lazy.record import is_inside
from tensorcore.nn.module import Module

__all__ = ["Names"]

# Code that has one of these names may read attributes by names that it makes up.
_COMPUTING = frozenset([
    "__dict__", "__getattribute__", "__getstate__", "__reduce_ex__", "attrgetter", "dir", "eval", "exec", "getattr",
    "getmembers", "locals", "methodcaller", "vars",
])  # fmt: skip
# Modules that do so with objects of a program; the rest of Python's own does it with its own objects.
_COMPUTED_BY = frozenset(["copy", "copyreg", "dataclasses", "inspect", "json", "pickle", "pprint", "reprlib"])
# These look for one member by its name, which the code has that they are called by; others that name the buffers read all.
_ALL_BUFFERS = "_buffers"
_BY_NAME = frozenset([
    id(one.__code__) for one in (Module.__getattr__, Module.__setattr__, Module.__delattr__, Module.register_buffer)
])  # fmt: skip


class Names:
    """While ``with`` lasts, notes the code of every function that this thread calls.

    What an import runs, and what the collector of garbage calls, is left out.
    A profiler that is at work already is left alone, and then nothing is known.

    Args:
        met: is told of code of the program's, with its globals, when it runs for the first time.
        asks: is told why a call of a function of C's cannot be left out of a replay.
        around: is told that the variables of the process are read.
        grad, place: as for ``listeners``.
    """

    def __init__(
        self, met: Callable[[CodeType, Any], None], asks: Callable[[str], None], around: Callable[[], None],
        grad: Callable[[Any], None], place: Callable[[Any], None],
    ) -> None:  # fmt: skip
        self._codes: dict[int, tuple[CodeType, str]] | None = None
        self._met, self._asks, self._around = met, asks, around
        self._heard = listeners(asks, grad, place)
        self._made: dict[int, Any] = {}  # generators that the call makes

    def __enter__(self) -> Names:
        if sys.getprofile() is None:
            codes = self._codes = {}
            heard = self._heard
            away: Any = None  # the frame around what is left out
            collecting = {getattr(one, "__code__", None) for one in gc.callbacks}

            def note(frame: Any, event: str, argument: Any) -> None:
                nonlocal away
                if event == "call":
                    code = frame.f_code
                    if away is None and id(code) in heard:
                        heard[id(code)][1](frame)
                    if away is None and id(code) not in codes:  # by identity: a code object has no hash at hand
                        imports = code.co_name == "_find_and_load" and code.co_filename.startswith("<frozen importlib")
                        if imports or code in collecting:
                            away = frame
                        else:
                            module = str(frame.f_globals.get("__name__", ""))
                            codes[id(code)] = code, module
                            self._began(code, module, frame)
                elif event == "c_call":
                    if away is None and (why := asked(argument, frame, self._made)):
                        self._asks(why)
                elif frame is away and event == "return":
                    away = None

            sys.setprofile(note)
        return self

    def _began(self, code: CodeType, module: str, frame: Any) -> None:
        if code in ENVIRONMENT:
            if not is_own(frame):
                self._around()
        elif not is_library(module) and not is_inside(code):
            if dates(frame):
                self._asks("reads a clock, if it is now that it makes a numpy.datetime64 of")
            self._met(code, frame.f_globals)

    def __exit__(self, *error: object) -> None:
        if self._codes is not None:
            sys.setprofile(None)

    def found(self) -> tuple[frozenset[str] | None, frozenset[int]] | None:
        """The words in all of the code, None where attributes may have been read by other names; and its ids.

        None where nothing is known.
        """
        if self._codes is None:
            return None
        names: set[str] = set()
        ran = frozenset(self._codes)
        for code, module in self._codes.values():
            if not _COMPUTING.isdisjoint(code.co_names) and _of_the_program(code, module):
                return None, ran
            words = {*code.co_names}
            for one in code.co_consts:
                if type(one) is str:
                    words.update([one] if one.isidentifier() else re.findall(r"\w+", one))
            names |= words - {_ALL_BUFFERS} if id(code) in _BY_NAME else words
        return frozenset(names), ran


def _of_the_program(code: CodeType, module: str) -> bool:
    """Whether code may ask objects of the program for attributes.

    This package does so only with the members of modules, which are looked at whatever their names, and its plugins see
    arrays alone.
    """
    if is_inside(code) or module.startswith("tensorcore"):
        return False
    top = module.partition(".")[0]
    return top in _COMPUTED_BY or top not in sys.stdlib_module_names
