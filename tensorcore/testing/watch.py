"""A kernel table that remembers what was asked of it: which kernels ran, were decomposed, or were missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorcore.backend.base import Backend, Kernel, KernelTable, MissingKernel
from tensorcore.backend.decompose import decomposed, viewed
from tensorcore.backend.kernels import OPTIONAL

__all__ = ["WatchedTable", "hiding_optional", "watched"]


class WatchedTable(KernelTable):
    """The kernels of a backend, each of which leaves its name when it runs.

    Attributes:
        native, decomposed, fallback: the names since the last ``clear``: kernels that the backend has, that were made
            of others or left to the op's decomposition, and that it lacks and was asked to run.
        hidden: kernels that the backend is taken to lack.
    """

    def __init__(self, backend: Backend, hidden: frozenset[str] = frozenset()) -> None:
        super().__init__(backend)
        self.hidden = hidden
        self.native: set[str] = set()
        self.decomposed: set[str] = set()
        self.fallback: set[str] = set()

    def clear(self) -> None:
        """Forget what was asked."""
        for names in (self.native, self.decomposed, self.fallback):
            names.clear()

    @property
    def ran(self) -> str:
        """``fallback``, ``decomposed`` or ``native``: the farthest from the device that something ran."""
        return "fallback" if self.fallback else "decomposed" if self.decomposed else "native"

    def __missing__(self, name: str) -> Kernel:
        backend = self.backend
        own = None if name in self.hidden else backend.find_kernel(name)
        view = None if own else viewed(name, backend)  # as native as the method that it is made of
        made = own or view or decomposed(name, backend)
        if made is None:
            self[name] = _Missing(self, name)
        else:
            self[name] = _noting(made, name, self.native if own or view else self.decomposed)
        return self[name]


class _Missing(MissingKernel):
    __slots__ = ("table",)

    def __init__(self, table: WatchedTable, name: str) -> None:
        super().__init__(table.backend, name)
        self.table = table

    def __bool__(self) -> bool:
        self.table.decomposed.add(self.name)
        return False

    def __call__(self, *natives: Any, **options: Any) -> Any:
        result = super().__call__(*natives, **options)
        self.table.fallback.add(self.name)
        return result


def _noting(kernel: Kernel, name: str, names: set[str]) -> Kernel:
    def call(*natives: Any, **options: Any) -> Any:
        names.add(name)
        return kernel(*natives, **options)

    return call


@contextmanager
def watched(backend: Backend, hidden: frozenset[str] = frozenset()) -> Iterator[WatchedTable]:
    """Within the ``with`` block the backend's kernels are watched."""
    before = backend.kernels
    table = WatchedTable(backend, hidden)
    backend.kernels = table
    try:
        yield table
    finally:
        backend.kernels = before


def hiding_optional(backend: Backend) -> Any:
    """As ``watched``, without the kernels that ops do without: everything decomposes."""
    return watched(backend, OPTIONAL)
