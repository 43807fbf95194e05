"""What is written down: deferred values, each one call of a kernel, and the form that its result will have.

Forms and calls are interned, so that two calls of one kernel on arrays of the same forms share one object: it is
looked up by identity, and a whole program is recognised by the calls that it is made of.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tensorcore.backend.meta import MetaArray, MetaBackend, MetaStorage
from tensorcore.backend.program import Spec
from tensorcore.backend.strides import contiguous_strides
from tensorcore.dtypes import from_numpy_dtype

__all__ = [
    "Call", "Deferred", "Form", "Host", "Line", "array_call", "call_of", "copied", "dense_form", "form", "frozen", "is_inside",
    "known_call", "leaf", "line_of", "user_frame", "user_line",
]  # fmt: skip

Shape = tuple[int, ...]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MOST_CALLS = 1 << 14  # a program that makes more different calls than this starts a new table
_meta = MetaBackend()
_forms: dict[tuple[Any, ...], Form] = {}
_calls: dict[Any, Call] = {}


class Form:
    """How an array lies in its memory: shape, strides, offset and dtype. There is one object of each.

    Attributes:
        dtype: NumPy's.
        dense: whether it is in row-major order without gaps.
        based: the form from the start of the memory, which is all that most kernels see.
        spec: shape and dtype, as programs have them.
    """

    __slots__ = ("based", "dense", "dtype", "nbytes", "offset", "shape", "spec", "strides")

    def __init__(self, shape: Shape, strides: Shape, offset: int, dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        self.based = self if not offset else form(shape, strides, 0, dtype)
        self.nbytes = prod(shape) * dtype.itemsize
        self.spec = Spec(shape, from_numpy_dtype(dtype))
        self.dense = 0 in shape or all(
            size == 1 or step == wanted
            for size, step, wanted in zip(shape, strides, contiguous_strides(shape), strict=True)
        )

    def __repr__(self) -> str:
        return f"Form({self.shape}, {self.strides}, {self.offset}, {self.dtype})"


class Host(NamedTuple):
    """Stands for an array of the host among the forms that a call is on."""

    form: Form


class Call:
    """A kernel, its options, and what it answers with given arrays of certain forms.

    Attributes:
        kernel: its name, None for a result that is one of several of another call and for values that no kernel makes.
        forms: of the results, None for one that is not made.
        part: which of several results of its operand it is, else None.
        view: whether the result shares the memory of the first operand.
    """

    __slots__ = ("forms", "kernel", "nbytes", "options", "part", "parts", "several", "view")

    def __init__(
        self,
        kernel: str | None,
        options: dict[str, Any],
        forms: tuple[Form | None, ...],
        several: bool = False,
        view: bool = False,
        part: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.options = options
        self.forms = forms
        self.several = several
        self.view = view
        self.part = part
        self.nbytes = 0 if view else sum(one.nbytes for one in forms if one is not None)
        made = enumerate(one for one in forms if one is not None)
        self.parts = tuple([Call(None, {}, (one,), part=i) for i, one in made]) if several else ()

    def __repr__(self) -> str:
        return f"Call({self.kernel}, {self.options}, {self.forms})"


class Deferred:
    """A value that was written down and may not have been made yet.

    Attributes:
        call: what makes it.
        operands: what that takes: deferred values, numbers, None, and tuples of these; nothing any more once it is
            made. A value that no kernel makes has a function here that does, without arguments.
        native: the array of the backend underneath, None until it is made; a list of them for several results.
        line: where in the user's program it was written down: the call, so many frames up, the code and the place in it.
    """

    __slots__ = ("__weakref__", "call", "line", "native", "operands")

    call: Call
    operands: tuple[Any, ...]
    native: Any
    line: Line


Line = tuple[Call, int, CodeType, int]


def form(shape: Shape, strides: Shape, offset: int, dtype: np.dtype[Any]) -> Form:
    """The one form of these."""
    key = (shape, strides, offset, dtype)
    found = _forms.get(key)
    if found is None:
        found = _forms[key] = Form(shape, strides, offset, dtype)
    return found


def dense_form(shape: Shape, dtype: np.dtype[Any]) -> Form:
    """The form of a new array in row-major order."""
    return form(shape, contiguous_strides(shape), 0, dtype)


def leaf(one: Form, native: Any = None, maker: Callable[[], Any] | None = None) -> Deferred:
    """A value that no kernel makes: it is there, or ``maker`` brings it when it is first needed."""
    call = _calls.get(one)
    if call is None:
        call = _calls[one] = Call(None, {}, (one,))
    made = Deferred()
    made.call = call
    made.operands = () if maker is None else (maker,)
    made.native = native
    return made


def frozen(value: Any) -> Any:
    """A value that tells options apart: hashable, and another one for 1, 1.0 and True, and for 0.0 and -0.0."""
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value
    if kind is tuple or kind is list:
        return (kind, *map(frozen, value))
    if kind is float:
        return value.hex()
    if kind is slice:
        return ("slice", value.start, value.stop, value.step)
    if kind is dict:
        return ("dict", *[(key, frozen(one)) for key, one in value.items()])
    return (kind, value)


def call_of(kernel: str, key: Any, operands: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """The call of a kernel on forms (and numbers, None, tuples of these), by its shape rule; interned under ``key``.

    Raises what the rule raises where the operands do not fit.
    """
    found = _calls.get(key)
    if found is None:
        if len(_calls) > _MOST_CALLS:
            _calls.clear()
        found = _calls[key] = _ruled(kernel, operands, options)
    return found


def known_call(key: Any) -> Call | None:
    """The call that was interned under ``key``, if there is one."""
    return _calls.get(key)


def array_call(
    kernel: str | None, key: Any, forms: tuple[Form, ...], options: dict[str, Any], several: bool = False
) -> Call:
    """The call of a kernel whose results' forms are known."""
    found = _calls.get(key)
    if found is None:
        found = _calls[key] = Call(kernel, options, forms, several=several)
    return found


def copied(one: Form) -> Form:
    """The form of a copy of an array."""
    made = call_of("clone", ("clone", one), (one,), {}).forms[0]
    assert made is not None
    return made


def _ruled(kernel: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Call:
    from tensorcore.backend.shapes import VIEWS

    name, _, named = kernel.partition(":")
    names = named.split(",") if named else []
    storage = MetaStorage(0)

    def meant(one: Any) -> Any:
        if type(one) is Form:
            return MetaArray(one.shape, one.strides, one.offset, one.dtype, storage)
        if type(one) is Host:
            return np.broadcast_to(np.zeros((), one.form.dtype), one.form.shape)
        return list(map(meant, one)) if type(one) is tuple and _holds_forms(one) else one

    given = list(map(meant, operands))
    extra = {key: given.pop(len(given) - len(names)) for key in names} if names else {}
    made = _meta.kernels[name](*given, **options, **extra)
    if made is None:
        return Call(None, options, (None,))
    if type(made) is tuple:
        return Call(kernel, options, tuple([None if one is None else _formed(one) for one in made]), several=True)
    return Call(kernel, options, (_formed(made),), view=name in VIEWS)


def _holds_forms(operand: tuple[Any, ...]) -> bool:
    return any(type(one) is Form or (type(one) is tuple and _holds_forms(one)) for one in operand)


def _formed(made: MetaArray) -> Form:
    return form(tuple(made.shape), tuple(made.strides), made.offset, made.dtype)


# Where in the user's program

_inside_files: set[str] = set()  # names of files of this package, as far as they were met
_outside_files: set[str] = set()


def user_line(frame: Any) -> tuple[CodeType, int]:
    """The innermost place of a call stack that is not in this package."""
    found, _ = user_frame(frame)
    return found.f_code, found.f_lasti


def user_frame(frame: Any) -> tuple[Any, int]:
    """The innermost frame of a call stack that is not of this package, and how many frames up it is."""
    up = 0
    # By name: a code object has no hash at hand, and a call from a module passes a dozen frames.
    while (name := frame.f_code.co_filename) in _inside_files or (
        name not in _outside_files and is_inside(frame.f_code)
    ):
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
        up += 1
    return frame, up


def is_inside(code: CodeType) -> bool:
    """Whether code is of this package."""
    name = code.co_filename
    if name in _inside_files:
        return True
    # What this package compiles itself has a name in brackets, as in "<backward of sum>".
    inside = name.startswith((_PACKAGE, "<frozen", "<backward of", "<call of", "<plan", "<track", "<exchanged"))
    (_inside_files if inside else _outside_files).add(name)
    return inside


def line_of(code: CodeType, at: int) -> str:
    """``file:line`` of a place in a code object."""
    lines = list(code.co_positions())
    number = lines[at // 2][0] if at // 2 < len(lines) else None
    return f"{code.co_filename}:{number or code.co_firstlineno}"
