"""Batching rules of the kernels that make memory, write over it, or show it in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorcore.backend.base import Kernel
from tensorcore.func.arrays import BatchedArray
from tensorcore.func.batching import Rule, aligned, any_batched, is_array, shared, written

if TYPE_CHECKING:
    from tensorcore.func.levels import BatchedBackend

__all__ = ["RULES"]

Shape = tuple[int, ...]


def full(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Room for each example, so that it can be written to."""
    return lambda shape, value, **options: backend.make(kernel((backend.level.size, *shape), value, **options), True)


def made_alike(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Kernels without arrays among their arguments."""
    return lambda *values, **options: backend.make(kernel(*values, **options), False)


def copy(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Write over memory."""

    def call(target: Any, source: Any) -> Any:
        inner, batched = backend.take(target)
        from_ = aligned(backend, source, len(target.shape)) if is_array(source) else source
        if batched or not any_batched(backend, source):
            kernel(inner, from_)
            return target
        return written(backend, target, from_)

    return call


def fill(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Write one value over memory."""

    def call(target: Any, value: Any) -> Any:
        if any_batched(backend, value):
            return backend.kernels["copy"](target, value)
        kernel(backend.take(target)[0], shared(backend, value))
        return target

    return call


# Views


def viewed(change: Callable[..., dict[str, Any]]) -> Rule:
    """A view of each example: ``change(shape, size, **options)`` gives the options of the view of all of them."""

    def make(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
        def call(x: Any, **options: Any) -> Any:
            inner, batched = backend.take(x)
            if batched:
                options = change(tuple(x.shape), backend.level.size, **options)
                if name == "expand":
                    inner = aligned(backend, x, len(options["shape"]) - 1)
            found = kernel(inner, **options)
            if found is None:
                return None
            made = backend.make(found, batched)
            made.viewed = True
            if type(x) is BatchedArray:
                x.viewed = True
            return made

        return call

    return make


def _windows(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    plain = viewed(lambda shape, examples, /, dim, **options: {"dim": dim + 1, **options})(backend, name, kernel)

    def call(x: Any, **options: Any) -> Any:
        if x.shape or not any_batched(backend, x):
            return plain(x, **options)
        line = plain(backend.kernels["view"](x, shape=(1,)), **options)
        return backend.kernels["index"](line, key=(0,))

    return call


def _as_it_is(shape: Shape, examples: int, /, **options: Any) -> dict[str, Any]:
    return options


def as_strided(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Any view of the memory, from each example's first element on."""

    def call(x: Any, *, shape: Shape, strides: Shape, offset: int) -> Any:
        inner, batched = backend.take(x)
        if batched:
            shape, strides = (backend.level.size, *shape), (backend.inner.strides(inner)[0], *strides)
        made = backend.make(kernel(inner, shape=shape, strides=strides, offset=offset), batched)
        made.viewed = True
        return made

    return call


RULES: dict[str, Rule] = {
    "full": full,
    **dict.fromkeys(("arange", "linspace", "eye", "triangle_indices"), made_alike),
    "copy": copy,
    "fill": fill,
    "permute": viewed(lambda shape, size, dims: {"dims": (0, *[one + 1 for one in dims])}),
    "expand": viewed(lambda own, size, shape: {"shape": (size, *shape)}),
    "view": viewed(lambda own, size, shape: {"shape": (size, *shape)}),
    "unsqueeze": viewed(lambda shape, size, dim, step=None: {"dim": dim + 1, "step": step}),
    "index": viewed(lambda shape, size, key: {"key": (slice(None), *key)}),
    "diagonal": viewed(lambda shape, size, offset, dim1, dim2: {"offset": offset, "dim1": dim1 + 1, "dim2": dim2 + 1}),
    **dict.fromkeys(("reinterpret", "real", "imag", "view_as_real", "view_as_complex"), viewed(_as_it_is)),
    "windows": _windows,
    "as_strided": as_strided,
}  # fmt: skip
