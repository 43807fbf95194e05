"""The kernels that programs run on: those of a backend, and pure forms of what that backend does in place.

What is new to a backend's own table:

- ``place(base, part, *places, chain=...)`` is ``base`` with ``part`` in the place of a view; ``chain`` has the view kernels
  that lead to it and pairs of their options, but for the ints ``places`` of their indices;
- ``checked(labels, kernel=, classes=, ignore_index=)`` is a copy of ``labels``, all of which are classes or ignored;
- ``update(..., kernel=, targets=, options=)`` calls a kernel that writes to some of its operands, and answers with new
  arrays for these: a target is a position, or a position and one in the list there.
"""

from __future__ import annotations

from typing import Any

from tensorcore.backend.base import Backend, Kernel
from tensorcore.lazy.kinds import indexed
from tensorcore.ops.layers.labels import check_labels

__all__ = ["PureKernels", "pure_kernels"]


class PureKernels(dict[str, Kernel]):
    """The table by name; each kernel is looked for once."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.backend = backend

    def __missing__(self, name: str) -> Kernel:
        kernel = self[name] = self._found(name)
        return kernel

    def _found(self, name: str) -> Kernel:
        if name == "place":
            return _placing(self.backend)
        if name == "update":
            return _updating(self.backend)
        if name == "checked":
            return _checking(self.backend)
        if name == "view":
            return _viewing(self.backend)
        return self.backend.kernels[name]


_tables: dict[int, PureKernels] = {}


def pure_kernels(backend: Backend) -> PureKernels:
    """The one table of a backend."""
    found = _tables.get(id(backend))
    if found is None or found.backend is not backend:
        found = _tables[id(backend)] = PureKernels(backend)
    return found


def _placing(backend: Backend) -> Kernel:
    kernels = backend.kernels

    def place(base: Any, part: Any, *places: int, chain: Any) -> Any:
        made = at = kernels["clone"](base)
        numbers = iter(places)
        for name, options in chain:
            at = kernels[name](at, **indexed(options, numbers))
        kernels["copy"](at, part)
        return made

    return place


def _checking(backend: Backend) -> Kernel:
    def checked(labels: Any, *, kernel: str, classes: int, ignore_index: int) -> Any:
        check_labels(kernel, backend, labels, classes, ignore_index)
        return backend.kernels["clone"](labels)

    return checked


def _updating(backend: Backend) -> Kernel:
    kernels = backend.kernels

    def update(*operands: Any, kernel: str, targets: Any, options: Any) -> tuple[Any, ...]:
        clone = kernels["clone"]
        given = [list(one) if isinstance(one, list | tuple) else one for one in operands]
        made = []
        for target in targets:
            held, at = (given, target) if type(target) is int else (given[target[0]], target[1])
            held[at] = clone(held[at])
            made.append(held[at])
        # Kernels that take a number for each array take a list of them.
        kernels[kernel](*given, **{key: list(one) if type(one) is tuple else one for key, one in options})
        return tuple(made)

    return update


def _viewing(backend: Backend) -> Kernel:
    kernels = backend.kernels

    def view(x: Any, *, shape: Any) -> Any:
        """Of a copy, where the backend's kernels made ``x`` lie in memory in another way than was written down."""
        made = kernels["view"](x, shape=shape)
        return kernels["view"](kernels["contiguous"](x), shape=shape) if made is None else made

    return view
