"""The page of kernels for those who write a backend, from the shape rules and the kernels of ``XPBackend``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tensorcore.backend.composed import COMPOSED
from tensorcore.backend.decompose import VIEWED
from tensorcore.backend.kernels import KERNELS, OPTIONAL
from tensorcore.backend.shapes import VIEWS
from tensorcore.backend.xp import XPBackend
from tensorcore.ops.define import OPS

__all__ = ["listed", "needed", "page"]

_HEAD = """# Kernels

Every kernel by its name, with what it takes and what it answers with: look here before you write `kernel_{name}`, or a line
of `dense_kernels`. [A backend in an hour](writing-a-backend.md) says how a device offers them; `python -m docs.document`
writes this page from the kernels of `XPBackend`, which are the reference where a line is too short.

- Arrays come by position, and where two meet, one of them may be a Python number. Options come by keyword.
- Arrays broadcast as NumPy's do. They have one dtype, except where the line says otherwise: `cast` comes before.
- Bools are added, multiplied and compared as NumPy does it: `add` and `maximum` say whether one of them holds, `mul` whether
  both do; a sum counts.
- `out` is None, or an array of the result's shape and dtype to write to.
- Shapes, dtypes and dims are checked before a kernel is called, and dims are not negative. What an array of indices holds
  is the kernel's to check: it raises IndexError for one that lies outside.
- Start with what bronze asks for, about half of those that are needed: `tensorcore check NAME --level bronze -x` names the first
  kernel that is missing.
- Random numbers are no kernels: `Backend.random` draws them on the host, and a device may draw its own.
"""
_SECTIONS = {
    "Needed": "With these and `as_strided`, and three of the views below where there are complex numbers, every op runs and has its "
    "derivative. They are for all ops together: a device that lacks some runs the ops that do not need them, and "
    "[a fallback](writing-a-backend.md#5-kernels-that-are-still-missing) runs the others. `StridedBackend` brings the views.",
    "Made of others": "Where one is missing, it is made of the kernels above. Write it when it is slow.",
    "Whole ops": "Where one is missing, the op is computed in other ops, and its derivative too. Gold compares each with "
    "what it stands for.",
    "Views": "`as_strided` of the backend is enough for those without a remark. A view shares the memory of its array.",
}  # fmt: skip


_EVERY = set(KERNELS) | set(VIEWS)


def needed() -> set[str]:
    """The kernels that are made of no others, without views."""
    return _EVERY - OPTIONAL - COMPOSED - set(VIEWS)


def listed(parameters: Iterable[inspect.Parameter], show: Callable[[inspect.Parameter], str]) -> list[str]:
    """The parameters as a definition has them: as ``show`` writes each, with the stars."""
    words, star = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not star:
            words.append("*")
        star = star or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        words.append({one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "") + show(one))
    return words


def page() -> str:
    """The text of the page."""
    backend = XPBackend(np, "page")
    composed = (_EVERY & COMPOSED) - set(VIEWS)
    sections = dict(zip(_SECTIONS, (needed(), composed, _EVERY & OPTIONAL, set(VIEWS)), strict=True))
    lines = [_HEAD]
    for title, names in sections.items():
        lines += [
            f"## {title}",
            "",
            f"{len(names)} kernels. {_SECTIONS[title]}",
            "",
            "| kernel | what it gives |",
            "| --- | --- |",
        ]
        lines += [_row(name, backend.find_kernel(name)) for name in sorted(names)]
        lines.append("")
    return "\n".join(lines)


def _row(name: str, kernel: Callable[..., Any] | None) -> str:
    assert kernel is not None, name
    text = _text(name, kernel)
    if name in VIEWS and name not in VIEWED:
        text += " Needed, where the device stores such dtypes."
    cells = [f"`{name}({', '.join(_parameters(name, kernel))})`", text]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _parameters(name: str, kernel: Callable[..., Any]) -> Iterable[str]:
    function = getattr(kernel, "func", kernel)
    if isinstance(function, np.ufunc):
        return [*("x", "y")[: function.nin], "out=None"]
    return listed(
        inspect.signature(kernel).parameters.values(),
        lambda one: one.name + ("" if one.default is one.empty else f"={one.default!r}"),
    )


def _text(name: str, kernel: Callable[..., Any]) -> str:
    function = getattr(kernel, "func", kernel)
    # A kernel that only lays out the results of another has the other's words.
    text = "" if isinstance(function, np.ufunc) else inspect.getdoc(inspect.unwrap(kernel)) or ""
    forward = name.removesuffix("_backward")
    if not text and name in OPS:
        text = OPS[name].doc or ""
    if not text and forward != name:
        text = f"The gradients of the arrays that `{forward}` takes; `g` is the gradient of its result."
    return re.sub(r":\w+:(`[^`]+`)", r"\1", text.partition("\n\n")[0]).replace("``", "`").replace("\n", " ")
