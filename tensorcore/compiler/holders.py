"""What objects of Python's and NumPy's own hold for a program, and how expressions ask for it."""

from __future__ import annotations

import argparse
import array
import collections
import ctypes
import functools
import logging
import queue
import random
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["NUMBERS", "VIEWS", "Parts", "drawn", "is_open", "parts"]

_FOREIGN = ctypes.c_int.__mro__[2]  # what all classes of ctypes are
NUMBERS = (np.ndarray, bytearray, array.array, memoryview, _FOREIGN)  # rows of numbers, which are compared
_OPEN = (types.SimpleNamespace, argparse.Namespace, threading.local)  # of libraries, but the program's to fill
VIEWS = (types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))  # of dicts that others write to
_Ask = Callable[[Any], Any]

# By class: what is asked for, as an expression that follows the object's own, and how to get it here.
_HELD: list[tuple[Any, tuple[tuple[str, _Ask], ...]]] = [
    (types.MethodType, ((".__self__", lambda v: v.__self__), (".__func__", lambda v: v.__func__))),
    (types.BuiltinFunctionType, ((".__self__", lambda v: v.__self__),)),
    (functools.partial, ((".func", lambda v: v.func), (".args", lambda v: v.args), (".keywords", lambda v: v.keywords))),
    (functools.partialmethod, ((".func", lambda v: v.func), (".args", lambda v: v.args),
                               (".keywords", lambda v: v.keywords))),
    (property, ((".fget", lambda v: v.fget),)),
    (staticmethod | classmethod, ((".__func__", lambda v: v.__func__),)),
    (functools.cached_property, ((".func", lambda v: v.func),)),
    (functools._lru_cache_wrapper, ((".__wrapped__", lambda v: v.__wrapped__),
                                    (".cache_info().misses", lambda v: v.cache_info().misses))),
    (collections.UserDict | collections.UserList, ((".data", lambda v: v.data),)),
    (weakref.WeakSet | weakref.WeakKeyDictionary | weakref.WeakValueDictionary, ((".data", lambda v: v.data),)),
    (collections.ChainMap, ((".maps", lambda v: v.maps),)),
    (queue.Queue, ((".queue", lambda v: v.queue),)),
    (threading.Event, ((".is_set()", lambda v: v.is_set()),)),
    (type(threading.Lock()), ((".locked()", lambda v: v.locked()),)),
    (logging.Logger, ((".getEffectiveLevel()", lambda v: v.getEffectiveLevel()),)),
]  # fmt: skip
_DRAWS = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)


class Parts(NamedTuple):
    """What an object holds: expressions that follow its own, and what they give; and whether it draws random numbers."""

    held: tuple[tuple[str, Any], ...] = ()
    draws: bool = False

    def __bool__(self) -> bool:
        return bool(self.held or self.draws)


def parts(value: Any) -> Parts:
    """What an object of no class of the program's own holds, as far as is known."""
    if isinstance(value, _DRAWS):
        return Parts(draws=True)
    for kind, asked in _HELD:
        if isinstance(value, kind):
            held = [(suffix, ask(value)) for suffix, ask in asked]
            return Parts(tuple([one for one in held if not isinstance(one[1], types.ModuleType | None)]))
    return Parts()


def is_open(value: Any) -> bool:
    """Whether an object of Python's own has the attributes that a program gives it."""
    return isinstance(value, _OPEN)


def drawn(generator: Any) -> Any:
    """How far a generator of random numbers of Python's or NumPy's has come, as something to compare."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    if isinstance(generator, np.random.Generator):
        generator = generator.bit_generator
    return _plain(
        generator.state if isinstance(generator, np.random.BitGenerator) else generator.get_state(legacy=False)
    )


def _plain(state: Any) -> Any:
    """Nested dicts, with arrays as bytes."""
    if isinstance(state, dict):
        return {key: _plain(one) for key, one in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state
