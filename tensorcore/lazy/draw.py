"""What is written down, as a drawing: the calls that tensors wait for, and what these start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.boxes import Box, Drawing
from tensorcore.errors import ArgumentTypeError
from tensorcore.lazy.backend import LazyBackend
from tensorcore.lazy.record import Deferred
from tensorcore.tensor import Tensor

__all__ = ["LazyGraph", "draw"]


class LazyGraph(Drawing):
    """The drawing of what is written down."""


def draw(
    what: Tensor | list[Tensor] | tuple[Tensor, ...] | Callable[..., Any], *args: Any, path: Any = None
) -> LazyGraph:
    """The calls that lazy tensors wait for; nothing is made.

    Args:
        what: a tensor, several in a list or tuple, or a function of ``args`` that gives such.
        path: also save it there: ``.png``, ``.svg`` or ``.pdf`` (with graphviz or matplotlib), ``.dot`` or ``.txt``.
    """
    called = callable(what) and not isinstance(what, Tensor)
    if args and not called:
        raise ArgumentTypeError(
            f"draw: expected arguments only with a function to call, got {args!r}; say path={args[0]!r} for a file"
        )
    found = what(*args) if called else what
    tensors = list(found) if isinstance(found, list | tuple) else [found]
    drawing = LazyGraph([], [])
    places: dict[int, int] = {}
    stack: list[tuple[Any, int]] = []
    for one in tensors:
        if not isinstance(one, Tensor) or not isinstance(one.device, LazyBackend):
            raise ArgumentTypeError(f"draw: expected lazy tensors, got {one!r}; make them inside `with tc.lazy():`")
        drawing.boxes.append(Box("result", "result", _detail(one.native.form)))
        stack.append((one.device.read(one.native), len(drawing.boxes) - 1))
    stack.reverse()
    while stack:
        value, target = stack.pop()
        at = places.get(id(value))
        if at is None:
            at = places[id(value)] = len(drawing.boxes)
            drawing.boxes.append(_box(value))
            stack.extend([(one, at) for one in reversed(list(_values(value.operands)))])
        drawing.arrows.append((at, target))
    if path is not None:
        drawing.save(path)
    return drawing


def _values(operands: tuple[Any, ...]) -> list[Deferred]:
    found = []
    for one in operands:
        if type(one) is Deferred:
            found.append(one)
        elif type(one) is tuple:
            found.extend(_values(one))
    return found


def _box(value: Deferred) -> Box:
    call = value.call
    form = call.forms[0]
    detail = ", ".join([_detail(one) for one in call.forms if one is not None])
    if call.part is not None:
        return Box("op", f"result {call.part}", _detail(form))
    if call.kernel is None or value.native is not None:
        return Box("leaf", "made" if value.native is not None else "not read yet", detail)
    numbers = [f"{one:g}" for one in value.operands if type(one) in (int, float)]
    name = call.options.get("kernel", call.kernel.partition(":")[0])
    return Box("op", " ".join([name, *numbers]), detail)


def _detail(form: Any) -> str:
    return f"{form.spec.dtype.name} [{', '.join(map(str, form.shape))}]"
