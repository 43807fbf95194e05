"""What real CuPy offers, written down: names, parameters, and the dtypes of its ufuncs. ``python surface.py`` records it."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

__all__ = ["PATH", "read"]

PATH = Path(__file__).with_name("surface.json")
_MODULES = (
    "cupy", "cupy.linalg", "cupy.fft", "cupy.cuda", "cupy.cuda.runtime", "cupy.cuda.pinned_memory",
    "cupy.cuda.memory", "cupy.cuda.nvtx", "cupyx", "cupyx.scipy.special",
)  # fmt: skip
_CLASSES = {
    "cupy": ("ndarray", "ufunc", "RawModule", "RawKernel", "ElementwiseKernel"),
    "cupy.cuda": (
        "Stream", "ExternalStream", "Event", "Device", "MemoryPool", "MemoryPointer", "PinnedMemoryPool", "PinnedMemory", "Graph",
        "UnownedMemory", "PinnedMemoryPointer",
    ),
    "cupy.cuda.memory": ("MemoryPointer",),
}  # fmt: skip


def read() -> dict[str, dict[str, Any]]:
    """Module or class -> name -> what is known of it: ``types`` of ufuncs, ``parameters`` of functions."""
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)


def found() -> dict[str, dict[str, Any]]:
    """The surface of the CuPy that is installed."""
    table: dict[str, dict[str, Any]] = {}
    for module in _MODULES:
        holder = importlib.import_module(module)
        names = [name for name in dir(holder) if not name.startswith("_")]
        table[module] = {name: _described(getattr(holder, name)) for name in names if _belongs(holder, name)}
        for one in _CLASSES.get(module, ()):
            kind = getattr(holder, one)
            members = [name for name in dir(kind) if not name.startswith("_") or name in ("__init__", "__dlpack__")]
            table[f"{module}.{one}"] = {name: _described(getattr(kind, name)) for name in members}
    return table


def _belongs(holder: Any, name: str) -> bool:
    return not inspect.ismodule(getattr(holder, name, None))


def _described(value: Any) -> dict[str, Any]:
    import cupy

    if isinstance(value, cupy.ufunc):
        return {"types": value.types}
    if isinstance(value, int) and not isinstance(value, bool):
        return {}
    try:
        return {"parameters": _plain(inspect.signature(value))}
    except (TypeError, ValueError):
        pass
    # Cython writes the signature into the first line of the docstring.
    text = re.match(r"[\w.]+\((.*?)\)(?: ->|\n|$)", getattr(value, "__doc__", None) or "", re.DOTALL)
    return {"parameters": _from_text(text.group(1))} if text else {}


def _plain(signature: inspect.Signature) -> list[str]:
    marks = {
        inspect.Parameter.POSITIONAL_ONLY: "{}/",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "{}",
        inspect.Parameter.VAR_POSITIONAL: "*{}",
        inspect.Parameter.KEYWORD_ONLY: "{}!",
        inspect.Parameter.VAR_KEYWORD: "**{}",
    }
    made = []
    for one in signature.parameters.values():
        made.append(marks[one.kind].format(one.name) + ("" if one.default is inspect.Parameter.empty else "="))
    return [one for one in made if one != "self"]


def _from_text(text: str) -> list[str]:
    made, keyword = [], False
    for part in re.split(r",\s*(?![^(\[]*[)\]])", text):
        part = part.strip()
        if part == "*":
            keyword = True
        elif part.startswith("*"):
            made.append(part)
        elif part and part != "self":
            name, equals, _ = part.partition("=")
            made.append(name.split(":")[0].split()[-1].strip() + ("!" if keyword else "") + ("=" if equals else ""))
    return made


if __name__ == "__main__":
    table = found()
    lines = ",\n".join(
        [
            f'"{module}": ' + json.dumps(names, sort_keys=True, separators=(",", ":"))
            for module, names in sorted(table.items())
        ]
    )
    PATH.write_text("{\n" + lines + "\n}\n", "utf-8")
