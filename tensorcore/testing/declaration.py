"""What a backend's author says about cases that do not pass: never will, or not yet, each with a reason."""

from __future__ import annotations

import inspect
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tensorcore.errors import ArgumentError

__all__ = ["FILE", "Declaration", "find_declaration", "read_declaration"]

FILE = "conformance.toml"


class Declaration:
    """The cases that a backend is excused from.

    Keys are patterns of cases, as ``fnmatch`` knows them: ``op/sort/complex*`` or ``bronze/train``.
    A file reads::

        fallback = "cpu"                # may be left out: kernels that are missing run there, and are counted

        [unsupported]                   # permanent: must be refused with an error, never computed wrongly
        "op/*/complex*" = "the hardware has no complex numbers"

        [xfail]                         # temporary: wrong today; the level is provisional until it is gone
        "op/erfinv/float16" = "tracker 12: rounded twice"

    Attributes:
        unsupported, xfail: the reason for each pattern.
        fallback: the device that missing kernels run on.
        used: the patterns that some case matched.
    """

    def __init__(self, unsupported: dict[str, str], xfail: dict[str, str], fallback: str | None = None) -> None:
        self.unsupported = unsupported
        self.xfail = xfail
        self.fallback = fallback
        self.used: set[str] = set()

    def excuse(self, key: str) -> tuple[str, str] | None:
        """The kind (``unsupported`` or ``xfail``) and the reason for a case; None where it must pass."""
        found = None
        for kind, patterns in (("xfail", self.xfail), ("unsupported", self.unsupported)):
            for pattern, reason in patterns.items():
                if fnmatchcase(key, pattern):
                    self.used.add(pattern)
                    found = found or (kind, reason)
        return found

    def stale(self) -> list[str]:
        """The patterns that no case matched."""
        return [pattern for pattern in (*self.unsupported, *self.xfail) if pattern not in self.used]


def read_declaration(path: str | Path) -> Declaration:
    """The declaration in a file. ArgumentError for one of another form, with what is wrong."""
    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"conformance: expected {path} to be TOML, got {error}; correct it") from None
    unknown = content.keys() - {"unsupported", "xfail", "fallback"}
    if unknown:
        raise ArgumentError(
            f"conformance: expected 'unsupported', 'xfail' and 'fallback' in {path}, got {sorted(unknown)}; rename them"
        )
    tables: list[dict[str, str]] = []
    for name in ("unsupported", "xfail"):
        table = content.get(name, {})
        wrong = [key for key, reason in table.items() if not isinstance(reason, str) or not reason.strip()]
        if wrong:
            raise ArgumentError(
                f"conformance: expected a reason for each entry of [{name}], got none for {wrong}; say why"
            )
        tables.append(table)
    return Declaration(*tables, fallback=content.get("fallback"))


def find_declaration(backend: Any) -> Path | None:
    """The file beside the module that the backend's class, or one it derives from outside tensorcore, is defined in."""
    for kind in type(backend).__mro__:
        if kind.__module__.partition(".")[0] in ("tensorcore", "builtins"):
            continue
        try:
            path = Path(inspect.getfile(kind)).with_name(FILE)
        except (OSError, TypeError):
            continue
        if path.is_file():
            return path
    return None
