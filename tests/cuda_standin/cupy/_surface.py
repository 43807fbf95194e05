"""What real CuPy has, as it was recorded, and calls that are checked against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["METHODS", "SURFACE", "bind"]

SURFACE: dict[str, dict[str, dict[str, Any]]] = json.loads(
    Path(__file__).parent.with_name("surface.json").read_text("utf-8")
)
METHODS = SURFACE["cupy.ndarray"]


def bind(name: str, parameters: list[str] | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TypeError where real CuPy's signature does not take these arguments."""
    if parameters is None:
        return
    plain = [one.rstrip("=") for one in parameters]
    several = any([one.startswith("*") and not one.startswith("**") for one in plain])
    places = [one for one in plain if not one.startswith("*") and not one.endswith("!")]
    if len(args) > len(places) and not several:
        raise TypeError(f"{name}() takes {len(places)} positional arguments but {len(args)} were given")
    if any([one.startswith("**") for one in plain]):
        return
    known = {one.rstrip("!/") for one in plain}
    for key in kwargs:
        if key not in known:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
