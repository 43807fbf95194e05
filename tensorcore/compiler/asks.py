"""What a call asks of the world around it, which has another answer each time: clocks, files, the system, random numbers."""

from __future__ import annotations

import _io
import datetime
import os
import random
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tensorcore.compiler.objects import is_library
from tensorcore.ops.shapes.views_part import as_strided, as_strided_
from tensorcore.tape.aside import TELLING
from tensorcore.tensor import Tensor

__all__ = ["ENVIRONMENT", "asked", "dates", "is_own", "listeners"]

# What reads the variables of the process.
ENVIRONMENT = frozenset([getattr(type(os.environ), key).__code__ for key in ("__getitem__", "__iter__", "__len__")])

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime")
_BY_MODULE: dict[str, tuple[str, tuple[str, ...]]] = {
    "time": ("reads a clock", (*_CLOCKS, *[f"{one}_ns" for one in _CLOCKS], "localtime", "gmtime", "ctime")),
    "io": ("opens a file", ("open", "open_code")),
    "_io": ("opens a file", ("open", "open_code")),
    "posix": ("asks the system for something", (
        "access", "getcwd", "getcwdb", "getrandom", "listdir", "lstat", "open", "read", "readlink", "scandir", "stat",
        "statvfs", "times", "urandom",
    )),
    "_thread": ("starts a thread, whose work no trace sees", ("start_new_thread", "start_joinable_thread")),
    "builtins": ("waits for input", ("input",)),
    "numpy": ("opens a file", ("fromfile",)),
    "numpy._core._multiarray_umath": ("asks how NumPy treats errors", ("_get_extobj_dict",)),  # geterr, seterr
    "_uuid": ("asks the system for something", ("generate_time_safe", "UuidCreate")),
    "sys": ("asks the interpreter for something", ("getrecursionlimit", "getrefcount", "getswitchinterval")),
    "decimal": ("asks for the precision of decimals", ("getcontext",)),
}  # fmt: skip
_BY_MODULE["nt"] = _BY_MODULE["posix"]
_BY_MODULE["_decimal"] = _BY_MODULE["decimal"]
_READS = ("getbuffer", "getvalue", "peek", "read", "read1", "readall", "readinto", "readline", "readlines", "tell")
_TAKES = ("get", "get_nowait", "put", "put_nowait", "qsize", "empty")
_DRAWS = ("getrandbits", "getstate", "random", "seed", "setstate", "__reduce_ex__")
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_NAMES = frozenset([
    *[name for _, names in _BY_MODULE.values() for name in names], "now", "today", "utcnow", *_READS, *_TAKES, *_DRAWS,
])  # fmt: skip
_OWN = ("time", "sys")  # what this package asks is for its own accounts
_GRAD = [vars(Tensor)["grad"].fget.__code__, vars(Tensor)["grad"].fset.__code__]
# These look at clocks and files only to write about a call.
_REPORTS = frozenset(["linecache", "logging", "tokenize", "traceback", "warnings"])


def listeners(
    asks: Callable[[str], None], grad: Callable[[Any], None], place: Callable[[Any], None]
) -> dict[int, tuple[CodeType, Callable[[FrameType], None]]]:
    """What is told of calls of this package's own functions, by the ``id`` of their code, which stands beside it.

    Args:
        asks: is told why such a call is none to replay, where it is the program that calls.
        grad: is told of tensors whose gradient the program, or a function of ``torch.nn``, asks for or is about to put.
        place: is told of tensors of which the program takes a part by its place in memory.
    """
    found: dict[int, tuple[CodeType, Callable[[FrameType], None]]] = {}
    for one, why in TELLING:
        code = one.__code__
        found[id(code)] = code, lambda frame, why=why: None if is_library(_caller(frame)) else asks(why)

    def part(frame: FrameType) -> None:
        if not is_library(_caller(frame)) and _given(frame, "storage_offset", 3) is not None:
            place(_given(frame, "input", 0))

    def gradient(frame: FrameType) -> None:
        if not is_library(_caller(frame)) or _caller(frame).startswith("tensorcore.nn."):
            tensor = frame.f_locals["self"]
            if tensor.node is None and ("value" in frame.f_locals or tensor.grad is not None):
                asks("asks for the gradient of a tensor that requires none")
            else:
                grad(tensor)

    found |= {id(one.__code__): (one.__code__, part) for one in (as_strided, as_strided_)}
    return found | {id(code): (code, gradient) for code in _GRAD}


def _caller(frame: FrameType) -> str:
    """The name of the module that calls."""
    return "" if frame.f_back is None else str(frame.f_back.f_globals.get("__name__"))


def _given(frame: FrameType, name: str, position: int) -> Any:
    """What a call was given; a body that stands in for the function's own, as subclasses want it, has it under no name."""
    held = frame.f_locals
    if name in held:
        return held[name]
    return held["kwargs"].get(name, held["args"][position] if position < len(held["args"]) else None)


def asked(function: Any, frame: FrameType, made: dict[int, Any]) -> str:
    """Why a call of a function of C's is one that no replay can leave out, as part of a sentence; empty where it can.

    Args:
        frame: what calls it.
        made: generators of random numbers that this call made of a seed, by ``id``; they may draw.
    """
    name = function.__name__
    if name not in _NAMES:
        return ""
    owner = function.__self__
    if isinstance(owner, _GENERATORS):
        found = _drawing(owner, name, frame, made)
    elif name in _READS and isinstance(owner, _io._IOBase):
        found = "reads a stream"
    elif name in _TAKES and type(owner).__name__ == "SimpleQueue":
        found = "takes from a queue, or hands to one"
    elif isinstance(owner, type) and issubclass(owner, datetime.date):
        found = "reads a clock"
    else:
        what, names = _BY_MODULE.get(function.__module__ or "", ("", ()))
        if name not in names or (
            function.__module__ in _OWN and str(frame.f_globals.get("__name__")).startswith("tensorcore")
        ):
            return ""
        found = f"{what} ({function.__module__}.{name})"
    return "" if not found or _is_report(frame) or is_own(frame) else found


def dates(frame: FrameType) -> bool:
    """Whether code that begins may make dates of NumPy's, among which "now" is another one each time.

    That is no call that a profiler is told of; so the class or a dtype of dates is enough that is named where it runs.
    """
    code = frame.f_code
    reached = [*frame.f_locals.values(), *[frame.f_globals.get(one) for one in code.co_names]]
    return (
        "datetime64" in code.co_names
        or any(one is np.datetime64 for one in reached)
        or any(type(one) is str and one.lstrip("<>=").startswith(("M8", "datetime64")) for one in code.co_consts)
    )


def _drawing(owner: Any, name: str, frame: FrameType, made: dict[int, Any]) -> str:
    if name == "seed" and frame.f_back is not None and frame.f_back.f_code is random.Random.__init__.__code__:
        if frame.f_locals.get("a") is not None:
            made[id(owner)] = owner
        return ""
    return "" if id(owner) in made else "draws random numbers of Python's or NumPy's own"


def is_own(frame: FrameType | None) -> bool:
    """Whether it is a backend that asks, such as for libraries to load: the innermost code that is not Python's own."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("tensorcore_"):
            return True
        if name.startswith("tensorcore.") or not is_library(name):
            return False
        frame = frame.f_back
    return False


def _is_report(frame: FrameType | None) -> bool:
    """Whether something around a call only writes about it."""
    for _ in range(20):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in _REPORTS:
            return True
        frame = frame.f_back
    return False
