"""The interface of plugins, written down for each version, and what changed from one to another."""

from __future__ import annotations

import inspect
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from tensorcore.errors import ArgumentError

__all__ = ["current", "difference", "record", "recorded", "versions"]

Interface = dict[str, dict[str, str]]


def current() -> Interface:
    """The interface as it is now: for each public name of ``tensorcore.plugin`` its members and their signatures."""
    from tensorcore import plugin
    from tensorcore.backend import hookspecs
    from tensorcore.backend.composed import COMPOSED
    from tensorcore.backend.kernels import KERNELS, OPTIONAL
    from tensorcore.backend.shapes import VIEWS

    found: Interface = {}
    for name in sorted(plugin.__all__):
        found[name] = _members(getattr(plugin, name))
    found["hooks"] = {
        name: str(inspect.signature(getattr(hookspecs, name)))
        for name in ("register_backends", "register_communicators")
    }
    every = set(KERNELS) | set(VIEWS)
    found["kernels"] = {name: " (optional)" if name in OPTIONAL | COMPOSED else "" for name in sorted(every)}
    return found


def versions() -> list[str]:
    """The versions that are written down, oldest first."""
    names = [Path(one.name).stem for one in _folder().iterdir() if one.name.endswith(".json")]
    return sorted(names, key=lambda name: tuple(map(int, name.split("."))))


def recorded(version: str) -> Interface:
    """The interface of a version. ArgumentError for one that is not written down."""
    if version not in versions():
        raise ArgumentError(
            f"sdk-diff: expected one of the versions {', '.join(versions())}, got '{version}'; pass one of them"
        )
    return json.loads((_folder() / f"{version}.json").read_text("utf-8"))  # type: ignore[no-any-return]


def record(folder: Path | None = None) -> Path:
    """Write the current interface down as that of the current version, in a checkout."""
    from tensorcore.backend.base import INTERFACE_VERSION

    path = (folder or Path(str(_folder()))) / f"{'.'.join(map(str, INTERFACE_VERSION))}.json"
    path.write_text(json.dumps(current(), indent=1, sort_keys=True) + "\n", "utf-8")
    return path


def difference(old: str, new: str | None = None) -> list[str]:
    """What changed, a line each, worst first: removed, changed, added; and what that means for a plugin.

    A member that a class only inherits stands there once, under the class that it comes from; kernels share a line.
    """
    before = recorded(old)
    after = current() if new is None else recorded(new)
    lines: dict[str, list[str]] = {"removed": [], "changed": [], "added": []}
    for name in sorted(before.keys() | after.keys()):
        if name == "kernels":
            continue
        if name not in before or name not in after:
            word = "added" if name in after else "removed"
            lines[word].append(f"{word:<8} {name}")
            continue
        for member, (was, is_now) in _changes(before[name], after[name]).items():
            if any(
                _changes(before.get(base, {}), after.get(base, {})).get(member) == (was, is_now)
                for base in _bases(name)
            ):
                continue
            word = "removed" if is_now is None else "added" if was is None else "changed"
            text = f"{was} -> {is_now}" if word == "changed" else was if is_now is None else is_now
            lines[word].append(f"{word:<8} {f'{name}.{member}' if member else name}{text}")
    kernels: dict[str, list[str]] = {}
    for kernel, (was, is_now) in _changes(before.get("kernels", {}), after.get("kernels", {})).items():
        say = (
            "removed " if is_now is None else f"added   {is_now}" if was is None else f"now     {is_now or ' required'}"
        )
        kernels.setdefault(say, []).append(kernel)
    for say, names in sorted(kernels.items()):
        word = "removed" if say == "removed " else "changed" if say.endswith("required") else "added"
        lines[word].append(f"{say} kernels: {', '.join(names)}")
    if not any(lines.values()):
        return [f"{old} and {new or 'the installed version'} are the same"]
    if lines["removed"] or lines["changed"]:
        verdict = "A plugin that uses what was removed or changed must change."
    else:
        verdict = "A plugin need not change."
        if "added   " in kernels:
            verdict += " Ops that ask for a new kernel are missing until it has it."
    return [*lines["removed"], *lines["changed"], *lines["added"], "", verdict]


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """What each member that is not the same was and is; None where it is not there."""
    names = sorted(before.keys() | after.keys())
    return {one: (before.get(one), after.get(one)) for one in names if before.get(one) != after.get(one)}


def _bases(name: str) -> list[str]:
    """The names of the classes that a class of ``tensorcore.plugin`` is made from."""
    from tensorcore import plugin

    return (
        [one.__name__ for one in getattr(plugin, name, type).__mro__[1:]]
        if inspect.isclass(getattr(plugin, name, None))
        else []
    )


def _folder() -> Any:
    return files("tensorcore.cli") / "interfaces"


def _members(value: Any) -> dict[str, str]:
    if inspect.ismodule(value):
        return dict.fromkeys(sorted(getattr(value, "__all__", ())), "")
    if not inspect.isclass(value):
        return {"": _signature(value)}
    found = {"": ""}
    if issubclass(value, BaseException):
        return {"": f"({', '.join(one.__name__ for one in value.__mro__[1:-2])})"}
    for name, member in inspect.getmembers(value):
        if name != "__init__" and name.startswith("_"):
            continue
        if getattr(object, name, None) is member:
            continue
        found[name] = _signature(member) if callable(member) else ""
    return found


def _signature(value: Any) -> str:
    try:
        written = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    return re.sub(r" from '[^']*'>", ">", written)  # a default that is a module: without the place where it lies
