"""How a device is spelled: ``"name"``, ``"name:index"``, or a name and an index."""

from __future__ import annotations

import operator
import re
from contextlib import suppress

from tensorcore.backend.discovery import show
from tensorcore.errors import ArgumentTypeError, UnknownDevice

__all__ = ["parse_device"]

_SPELLING = re.compile(r"([a-z][a-z0-9_]*)(?::(0|[1-9][0-9]*))?")


def parse_device(type: object, index: object) -> tuple[str, int]:
    """The name and the index that a program means by ``device(type, index)``."""
    if not isinstance(type, str):
        raise ArgumentTypeError(
            f"device: expected a string 'name' or 'name:index', or a device without an index, got {show(type)}"
            + (f" and {show(index)}" if index is not None else "")
            + "; pass one of these"
        )
    number = None
    if index is not None:
        with suppress(TypeError):
            number = None if isinstance(index, bool) else operator.index(index)  # type: ignore[arg-type]
        if number is None:
            raise ArgumentTypeError(f"device: expected the index to be an int, got {show(index)}; pass e.g. 0")
    matched = _SPELLING.fullmatch(type)
    if matched is None:
        name = re.match(r"\s*([a-z][a-z0-9_]*)", type, re.IGNORECASE)
        advice = f"write '{name[1].lower()}' or '{name[1].lower()}:0'" if name else "name a device, see backends()"
        raise UnknownDevice(
            f"device: expected 'name' or 'name:index' with an index of digits, got {type[:100]!r}; {advice}"
        )
    if number is None:
        return matched[1], int(matched[2] or 0)
    if matched[2] is not None:
        raise UnknownDevice(
            f"device: expected one index, got {type!r} and {number}; write '{matched[1]}:{number}' or '{type}'"
        )
    if number < 0:
        raise UnknownDevice(f"device: expected an index of 0 or more, got {number}; write '{matched[1]}:0'")
    return matched[1], number
