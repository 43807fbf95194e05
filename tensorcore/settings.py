"""The settings of PyTorch's compiler, which programs write to and which change nothing here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

__all__ = ["Settings"]


class Settings(SimpleNamespace):
    """Attributes that keep what they are given; ``patch`` sets some inside a ``with``, or around a function."""

    @contextmanager
    def patch(self, changes: Mapping[str, Any] | str | None = None, value: Any = None, **more: Any) -> Iterator[None]:
        """As a dict, as a name and a value, or as keywords; ``a.b`` names a setting of a group."""
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
        before = []
        for name, one in wanted.items():
            group, _, last = name.rpartition(".")
            owner = getattr(self, group) if group else self
            before.append((owner, last, last in owner.__dict__, owner.__dict__.get(last)))
            setattr(owner, last, one)
        try:
            yield
        finally:
            for owner, last, there, one in reversed(before):
                if there:
                    setattr(owner, last, one)
                else:
                    delattr(owner, last)
