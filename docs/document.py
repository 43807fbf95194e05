"""The stubs for editors and type checkers, and the pages of ops and of kernels, written from the registry: ``python -m docs.document``.

A test checks that the committed files are what it writes.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import tensorcore
from docs import kernels
from tensorcore import dtypes
from tensorcore.amp.lists import ACCELERATOR, CPU
from tensorcore.ops import late
from tensorcore.shortcuts import in_python, properties
from tensorcore.tensor import Tensor

__all__ = ["files", "main"]

_HEAD = '''"""{what}: written by ``python -m docs.document``, not by hand."""

from __future__ import annotations

'''
_TYPES = """import builtins as _b
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as _np

from tensorcore.backend.base import Backend
from tensorcore.dtypes import dtype as _dtype
"""
# How a type in an annotation is written where methods named ``int`` and ``float`` stand beside it.
_WORDS = {
    **{name: f"_b.{name}" for name in ("bool", "int", "float", "complex", "str", "tuple", "list", "dict", "type", "object")},
    **{name: name for name in ("Any", "Callable", "Iterable", "Iterator", "Sequence", "SupportsIndex", "Tensor", "Size")},
    "Backend": "Backend", "None": "None", "dtype": "_dtype", "dtypes.dtype": "_dtype", "np.ndarray": "_np.ndarray[Any, Any]",
}  # fmt: skip
# Members of Tensor that Python or this library put there, and that no program names.
_INTERNAL = {
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__slots__",
    "__annotations__",
    "__array_ufunc__",
    "__hash__",
}
_ROOMS = tensorcore._ROOMS
# The rooms whose names are in the page of ops: its title, and how programs spell the room.
_PAGES = {"torch": tensorcore, "torch.nn.functional": "nn.functional", "torch.linalg": "linalg", "torch.fft": "fft",
          "torch.special": "special", "torch.signal.windows": "signal.windows"}  # fmt: skip


def main() -> int:
    """Write all files into the checkout that this module is part of."""
    root = Path(__file__).parent.parent
    for place, text in files().items():
        (root / place).write_text(text, encoding="utf-8")
    return 0


def files() -> dict[str, str]:
    """The text of each written file, by its path in the checkout."""
    late.import_all()
    return {
        "tensorcore/tensor.pyi": _tensor_stub(),
        "tensorcore/__init__.pyi": _facade_stub(),
        "tensorcore/nn/functional.pyi": _functions_stub("nn.functional", "The functions behind the layers"),
        "tensorcore/nn/__init__.pyi": _room_stub("nn", "Layers, by name", ("functional", "init", "utils")),
        "tensorcore/optim/__init__.pyi": _room_stub("optim", "Optimizers, by name", ("lr_scheduler", "swa_utils")),
        "docs/ops.md": _page(),
        "docs/kernels.md": kernels.page(),
    }


# Stubs


def _tensor_stub() -> str:
    members = [
        "    __slots__ = ()",
        "    dtype: _dtype",
        "    device: Backend",
        "    native: Any",
        "    node: Any",
        "    version: Any",
        "    trail: Any",
        "    __hash__: Callable[[], _b.int]  # type: ignore[assignment]",
        "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...",
    ]
    for name, value in sorted((vars(Tensor) | properties).items()):
        if name in _INTERNAL or isinstance(value, types.MemberDescriptorType):
            continue
        if isinstance(value, property):
            members += _property(name, value)
        elif isinstance(value, (staticmethod, classmethod)):
            kind = type(value).__name__
            members.append(f"    @{kind}")
            members.append(f"    {_definition(name, value.__func__, 'cls' if kind == 'classmethod' else None)}")
        elif callable(value):
            members.append(f"    {_definition(name, value, 'self')}")
    functions = ["", "", "def new_tensor(native: Any, dtype: _dtype, device: Any, cls: Any = ...) -> Any: ..."]
    head = _HEAD.format(what="Types of the Tensor") + _TYPES + "from tensorcore.formats import Size"
    return "\n".join([head, "", "", "class Tensor:", *members, *functions]) + "\n"


def _property(name: str, value: property) -> list[str]:
    result = _annotation(inspect.signature(value.fget).return_annotation, value.fget)  # type: ignore[arg-type]
    known = {"T": "Tensor", "H": "Tensor", "mT": "Tensor", "mH": "Tensor", "real": "Tensor", "imag": "Tensor"}
    result = "_b.bool" if name.startswith("is_") else known.get(name, result)
    lines = ["    @property", f"    def {name}(self) -> {result}: ..."]
    if value.fset is not None:
        lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
    if value.fdel is not None:
        lines += [f"    @{name}.deleter", f"    def {name}(self) -> None: ..."]
    return lines


def _facade_stub() -> str:
    imported, defined, values = [], [], ["device = Backend"]
    for name in sorted(_public(tensorcore)):
        value = getattr(tensorcore, name)
        if name == "device":
            continue
        if inspect.ismodule(value) and callable(value):  # `with tc.lazy():`; its members are Any
            imported.append(f"from {value.__name__} import {type(value).__name__}")
            values.append(f"{name}: {type(value).__name__}")
        elif name in _ROOMS or inspect.ismodule(value):
            if name in _ROOMS or name in ("dtypes", "errors"):
                imported.append(f"from tensorcore import {name} as {name}")
        elif isinstance(value, dtypes.dtype):
            values.append(f"{name}: _dtype")
        elif _is_op(value) or (inspect.isroutine(value) and not value.__qualname__.isidentifier()):
            defined.append(_definition(name, value, None))
        elif callable(value):
            if value.__module__.startswith("tensorcore."):
                imported.append(f"from {value.__module__} import {value.__qualname__} as {name}")
            else:
                values.append(f"{name}: Any")
        else:
            values.append(f"{name}: Any")
    lines = [
        _HEAD.format(what="Types of what programs import") + _TYPES,
        *imported,
        "",
        "__version__: _b.str",
        *values,
        "",
        *defined,
    ]
    return "\n".join(lines) + "\n"


def _functions_stub(room: str, what: str) -> str:
    module = _room(room)
    lines = [_definition(name, getattr(module, name), None) for name in sorted(_public(module))]
    taken = "from tensorcore.formats import Size\nfrom tensorcore.tensor import Tensor"
    return "\n".join([_HEAD.format(what=what) + _TYPES + taken, "", *lines]) + "\n"


def _room_stub(room: str, what: str, inner: tuple[str, ...]) -> str:
    module = _room(room)
    lines = [f"from tensorcore.{room} import {name} as {name}" for name in inner]
    for name in sorted(_public(module)):
        value = getattr(module, name)
        if name not in inner and hasattr(value, "__qualname__"):
            lines.append(f"from {value.__module__} import {value.__qualname__} as {name}")
    return "\n".join([_HEAD.format(what=what), *lines]) + "\n"


def _definition(name: str, function: Callable[..., Any], owner: str | None) -> str:
    """``def name(...) -> ...``: of a method where it has an owner, ``self`` or ``cls``."""
    parameters, result = _signature(name, function)
    if owner is not None:
        parameters = parameters[1:]

    def show(one: inspect.Parameter) -> str:
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        return f"{one.name}: {_annotation(one.annotation, function)}{default}"

    words = [*([owner] if owner else []), *kernels.listed(parameters, show)]
    note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    return f"def {name}({', '.join(words)}) -> {_result(name, result, function)}: ...{note}"


def _signature(name: str, function: Callable[..., Any]) -> tuple[list[inspect.Parameter], Any]:
    """The parameters, and the annotation of the result."""
    found = inspect.signature(function)
    parameters = list(found.parameters.values())
    writes = name.endswith("_") and not name.endswith("__")
    if [one.name for one in parameters[:2]] == ["name", "write"]:
        # One function behind the forms with and without an underscore.
        parameters = parameters[2:]
        if not writes:
            parameters.append(
                inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")
            )
    elif name.startswith("__"):
        parameters = [one for one in parameters if one.name != "out"]
    elif writes and any(one.kind is one.VAR_POSITIONAL for one in parameters) and hasattr(Tensor, name[:-1]):
        plain, _ = _signature(name[:-1], getattr(Tensor, name[:-1]))
        parameters = [one for one in plain if one.name != "out"]
    return parameters, found.return_annotation


def _result(name: str, annotation: Any, function: Callable[..., Any]) -> str:
    if name.startswith(("__i", "__r")) and annotation in ("Any", inspect.Parameter.empty) and "reduce" not in name:
        return "Tensor"  # operators that write, and those of a right operand
    return _annotation(annotation, function)


def _default(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else "..."


def _annotation(annotation: Any, function: Callable[..., Any]) -> str:
    """The annotation in words that hold in a stub; Any for what they have no name for."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    names = getattr(inspect.unwrap(function), "__globals__", {})
    while isinstance(names.get(text), types.UnionType):  # an alias such as Dims
        text = str(names[text]).replace("collections.abc.", "").replace("typing.", "")
    try:
        return _written(ast.parse(text, mode="eval").body)
    except KeyError:
        return "Any"


def _written(node: ast.expr) -> str:
    if isinstance(node, ast.BinOp):
        return f"{_written(node.left)} | {_written(node.right)}"
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return f"{_written(node.value)}[{', '.join(map(_written, inner))}]"
    if isinstance(node, ast.List):
        return f"[{', '.join(map(_written, node.elts))}]"
    text = ast.unparse(node)
    return text if text == "..." else _WORDS[text]


# The page of ops


def _page() -> str:
    lines = [
        "# Ops",
        "",
        "Every op, by the room of PyTorch's that it is in, as `python -m docs.document` finds it in the registry. Forms:",
        "`.` a method of Tensor too, `_` with a form that writes to its tensor, `out` with a place for the result. The last column",
        "says what [autocast](https://docs.pytorch.org/docs/2.13/amp.html) makes of the inputs, on the CPU and on accelerators",
        "where they differ. What PyTorch has and this library has not is on [a page of its own](missing.md).",
    ]
    count = 0
    for title, room in _PAGES.items():
        module = room if inspect.ismodule(room) else _room(room)
        rows = [_row(name, getattr(module, name)) for name in sorted(_public(module)) if _listed(module, name)]
        count += len(rows)
        lines += [
            "",
            f"## {title}",
            "",
            "| op | what it gives | forms | autocast |",
            "| --- | --- | --- | --- |",
            *rows,
        ]
    methods = [name for name, value in sorted(vars(Tensor).items()) if _is_op(value) and _only_method(name)]
    lines += ["", "## Methods of Tensor alone", "", ", ".join(f"`{name}`" for name in methods), ""]
    lines[2] = f"{count} functions and {len(methods)} more methods. " + lines[2]
    return "\n".join(lines)


def _row(name: str, function: Callable[..., Any]) -> str:
    parameters, _ = _signature(name, function)
    words = kernels.listed(
        parameters, lambda one: one.name + ("" if one.default is one.empty else f"={_default(one.default)}")
    )
    forms = ["."] if callable(getattr(Tensor, name, None)) else []
    forms += ["`_`"] if hasattr(Tensor, f"{name}_") else []
    forms += ["out"] if any(one.name == "out" for one in parameters) else []
    text = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
    text = re.sub(r":\w+:`([^`]+)`", r"``\1``", text)
    cells = [f"`{name}({', '.join(words)})`", text, " ".join(forms), _autocast(name)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _autocast(name: str) -> str:
    kinds = []
    for table in (CPU, ACCELERATOR):
        found = table.get(name, "as_is")
        kinds.append("depends" if callable(found) else found.replace("_", " "))
    return kinds[0] if kinds[0] == kinds[1] else " / ".join(kinds)


def _only_method(name: str) -> bool:
    plain = name.rstrip("_")
    return not name.startswith("_") and not hasattr(tensorcore, name) and not hasattr(tensorcore, plain)


def _listed(module: types.ModuleType, name: str) -> bool:
    """Whether the op has a row; the form that writes is in that of the other form."""
    return _is_op(getattr(module, name)) and not (name.endswith("_") and hasattr(module, name[:-1]))


def _is_op(value: Any) -> bool:
    value = in_python(value)
    if not inspect.isfunction(value):
        return False
    ours = value.__module__.startswith("tensorcore.ops") and not value.__name__.startswith("_")
    return ours or getattr(value, "op", None) is not None


def _room(path: str) -> types.ModuleType:
    return import_module(f"tensorcore.{path}")


def _public(module: types.ModuleType) -> Iterator[str]:
    names = dir(module) if module is tensorcore else module.__all__
    yield from (name for name in names if not name.startswith("_") and name not in ("annotations", "Default"))


if __name__ == "__main__":
    sys.exit(main())
