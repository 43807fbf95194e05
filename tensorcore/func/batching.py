"""How each kernel runs on all examples of a level at once: a rule by kind, and one example after the other without one.

A rule takes what the kernel of its name takes, with arrays of the level among them, and calls the wrapped backend's
kernel on arrays whose first dim counts the examples. What kind a kernel is of follows from its shape rule where that
tells; the families of the rest are listed here, in ``batching_views``, ``batching_joint`` and ``batching_matrices``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tensorcore.backend.base import Kernel
from tensorcore.errors import GradientError
from tensorcore.func.arrays import BatchedArray

if TYPE_CHECKING:
    from tensorcore.func.levels import BatchedBackend

__all__ = [
    "RULES", "Rule", "aligned", "any_batched", "everyone", "is_array", "looped", "made", "reshaped", "rule",
    "shared", "written",
]  # fmt: skip

Rule = Callable[["BatchedBackend", str, Kernel], Kernel]
Shape = tuple[int, ...]


# What rules are made of


def is_array(value: Any) -> bool:
    """Whether an argument of a kernel is an array, and no number, None, list or option."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def reshaped(backend: BatchedBackend, inner: Any, shape: Shape) -> Any:
    """An inner array in another shape, copied where it must be."""
    if tuple(inner.shape) == shape:
        return inner
    kernels = backend.inner.kernels
    made = kernels["view"](inner, shape=shape)
    return kernels["view"](kernels["contiguous"](inner), shape=shape) if made is None else made


def aligned(backend: BatchedBackend, native: Any, ndim: int) -> Any:
    """The inner array, if batched with dims of size 1 put in behind the examples until each has ``ndim`` dims."""
    inner, batched = backend.take(native)
    if not batched or len(native.shape) >= ndim:
        return inner
    shape = (backend.level.size, *[1] * (ndim - len(native.shape)), *native.shape)
    return reshaped(backend, inner, shape)


def everyone(backend: BatchedBackend, native: Any) -> Any:
    """The inner array with the examples as first dim, repeated without a copy where they share it."""
    inner, batched = backend.take(native)
    if batched:
        return inner
    return backend.inner.kernels["expand"](inner, shape=(backend.level.size, *inner.shape))


def any_batched(backend: BatchedBackend, value: Any) -> bool:
    """Whether an argument, or an array anywhere within it, differs between the examples."""
    if isinstance(value, (list, tuple)):
        return any([any_batched(backend, one) for one in value])
    return backend.take(value)[1]


def shared(backend: BatchedBackend, value: Any) -> Any:
    """An argument that no example has for itself, as the wrapped backend takes it."""
    if isinstance(value, (list, tuple)):
        return type(value)([shared(backend, one) for one in value])
    return backend.take(value)[0]


def made(backend: BatchedBackend, found: Any, batched: bool) -> Any:
    """What a kernel answered as arrays of the level; numbers stay."""
    if isinstance(found, (list, tuple)):
        return tuple([made(backend, one, batched) for one in found])
    if found is None or not is_array(found):
        return found
    return backend.make(found, batched)


def written(backend: BatchedBackend, out: BatchedArray, found: Any) -> BatchedArray:
    """Put a result for each example into ``out``, which gets one for each where it had one for all."""
    inner, batched = backend.take(out)
    if batched:
        if found is not inner:
            backend.inner.kernels["copy"](inner, found)
        return out
    if out.viewed:
        raise GradientError(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
            "extra_args that has more elements than `self`, got one that is batched while self is not; use the form "
            "without underscore, or make self with new_empty or new_zeros of a batched tensor"
        )
    copy = backend.inner.kernels["contiguous"](everyone(backend, out))
    backend.inner.kernels["copy"](copy, found)
    out.inner, out.batched = copy, True
    return out


def _unbatched(backend: BatchedBackend, kernel: Kernel) -> Kernel:
    """The kernel where no argument differs between the examples."""

    def call(*natives: Any, out: Any = None, **options: Any) -> Any:
        options = {key: shared(backend, one) for key, one in options.items()}
        if out is not None:
            kernel(*shared(backend, natives), out=backend.take(out)[0], **options)
            return out
        return made(backend, kernel(*shared(backend, natives), **options), False)

    return call


def rule(apply: Callable[..., Any]) -> Rule:
    """A rule from a function of the backend, the inner kernel and the arguments, some of which are batched."""

    def make(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
        alone = _unbatched(backend, kernel)
        slow = looped(backend, name, kernel)

        def call(*natives: Any, **options: Any) -> Any:
            if not any_batched(backend, natives) and not any_batched(backend, tuple(options.values())):
                return alone(*natives, **options)
            found = apply(backend, kernel, *natives, **options)
            return slow(*natives, **options) if found is NotImplemented else found

        return call

    return make


# Kinds


def elementwise(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Each element from those in the same place: dims are aligned behind the examples."""
    level, array = backend.level, BatchedArray

    def call(*natives: Any, out: Any = None, **options: Any) -> Any:
        batched, ndim = False, 0
        for one in natives:
            if type(one) is array and one.level is level:
                batched = batched or one.batched
            if hasattr(one, "shape"):
                ndim = max(ndim, len(one.shape))
        if options:
            options = {key: shared(backend, one) for key, one in options.items()}
        inner = [aligned(backend, one, ndim) if hasattr(one, "shape") else one for one in natives]
        if out is None:
            return made(backend, kernel(*inner, **options), batched)
        into, same = backend.take(out)
        if same or not batched:
            kernel(*inner, out=into, **options)
            return out
        return written(backend, out, kernel(*inner, **options))

    return call


@rule
def along(backend: BatchedBackend, kernel: Kernel, /, x: Any, *rest: Any, **options: Any) -> Any:
    """Over one dim or several of one array, which are counted from behind the examples."""
    inner, batched = backend.take(x)
    if not batched or any_batched(backend, rest) or "out" in options:
        return NotImplemented
    n = len(x.shape)
    key = "dims" if "dims" in options else "dim"
    dim = options.get(key)
    if n == 0:
        # An example of no dims is a line of one element; its results have that dim again where dims are kept.
        inner = reshaped(backend, inner, (backend.level.size, 1))
        options[key] = 1 if isinstance(dim, int) else (1,)
        found = kernel(inner, *rest, **options)
        flat = [reshaped(backend, one, (backend.level.size,)) for one in _several(found)]
        return made(backend, flat if isinstance(found, (list, tuple)) else flat[0], True)
    if dim is None:
        options[key] = tuple(range(1, n + 1))
    else:
        options[key] = dim + 1 if isinstance(dim, int) else tuple([one + 1 for one in dim])
    return made(backend, kernel(inner, *rest, **options), True)


def _several(found: Any) -> Sequence[Any]:
    return found if isinstance(found, (list, tuple)) else (found,)


@rule
def along_one(backend: BatchedBackend, kernel: Kernel, x: Any, *, dim: int | None = None, **options: Any) -> Any:
    """As ``along`` for kernels that take one dim, or None for all elements in a row."""
    inner, _ = backend.take(x)
    if dim is not None and x.shape:
        return made(backend, kernel(inner, dim=dim + 1, **options), True)
    keeps = options.pop("keepdim", False)
    found = kernel(reshaped(backend, inner, (backend.level.size, prod(x.shape))), dim=1, **options)
    return made(backend, reshaped(backend, found, (backend.level.size, *[1] * (len(x.shape) * keeps))), True)


@rule
def passed(backend: BatchedBackend, kernel: Kernel, x: Any, **options: Any) -> Any:
    """Kernels of one array that treat its first dims as they come: casts, copies, the last two dims."""
    return made(backend, kernel(backend.take(x)[0], **options), True)


def together(result: int) -> Rule:
    """Kernels of several arrays that share all dims but one, such as gather: each example has its own of each.

    Args:
        result: the position of the array whose shape the result has.
    """

    @rule
    def apply(
        backend: BatchedBackend, kernel: Kernel, /, *natives: Any, dim: int, out: Any = None, **options: Any
    ) -> Any:
        size = backend.level.size
        inner = []
        for one in natives:
            if is_array(one):
                # An example of no dims is a line of one element.
                inner.append(reshaped(backend, everyone(backend, one), (size, *(tuple(one.shape) or (1,)))))
            else:
                inner.append(one)
        found = kernel(*inner, dim=dim + 1, **options)
        found = reshaped(backend, found, (size, *natives[result].shape))
        return made(backend, found, True) if out is None else written(backend, out, found)

    return apply


@rule
def put_picked(backend: BatchedBackend, kernel: Kernel, x: Any, at: Any, *, dim: int, **options: Any) -> Any:
    """The adjoint of ``pick``."""
    if not x.shape:
        return made(backend, backend.inner.kernels["contiguous"](everyone(backend, x)), True)
    return made(backend, kernel(everyone(backend, x), everyone(backend, at), dim=dim + 1, **options), True)


@rule
def ties(backend: BatchedBackend, kernel: Kernel, x: Any, top: Any, *, dim: Any = None, keepdim: bool = False,
         **options: Any) -> Any:  # fmt: skip
    """The weights of what equals the extreme of its slice."""
    size, shape = backend.level.size, tuple(x.shape)
    dims = tuple(range(len(shape) or 1)) if dim is None or not shape else dim
    kept = tuple([1 if i in dims else n for i, n in enumerate(shape or (1,))])
    inner = reshaped(backend, everyone(backend, x), (size, *(shape or (1,))))
    found = kernel(inner, reshaped(backend, everyone(backend, top), (size, *kept)), dim=tuple([one + 1 for one in dims]),
                   keepdim=True, **options)  # fmt: skip
    return made(backend, reshaped(backend, found, (size, *shape)), True)


def unseen(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Kernels whose result has as many elements as the values say: refused where examples would differ in that."""
    alone = _unbatched(backend, kernel)

    def call(*natives: Any, **options: Any) -> Any:
        if not any_batched(backend, natives) and not any_batched(backend, tuple(options.values())):
            return alone(*natives, **options)
        raise GradientError(
            f"{name}: vmap: We do not support batching operators that can output dynamic shape, or that look at values, "
            f"got one of a batched tensor; Attempted to vmap over {name}: use torch.where, or compute it outside of vmap"
        )

    return call


def bounds(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Extremes for the host, which are those of all examples together."""
    return lambda x, **options: kernel(backend.take(x)[0], **options)


def most(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """How many elements are true, for the host: in the example that has most of them."""

    def call(mask: Any) -> int:
        inner, batched = backend.take(mask)
        if not batched:
            return int(kernel(inner))
        counts = backend.inner.kernels["count_nonzero"](inner, dim=tuple(range(1, len(inner.shape))))
        return int(backend.inner.kernels["highest"](counts)) if backend.level.size else 0

    return call


# One example after the other


def looped(backend: BatchedBackend, name: str, kernel: Kernel) -> Kernel:
    """Without a rule: the kernel on each example, which is right and slow, and says so."""
    inner, size = backend.inner, backend.level.size

    def part(value: Any, i: int) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([part(one, i) for one in value])
        array, batched = backend.take(value)
        return inner.kernels["index"](array, key=(i,)) if batched else array

    def call(*natives: Any, out: Any = None, **options: Any) -> Any:
        values = tuple(options.values())
        if not any_batched(backend, natives) and not any_batched(backend, values) and not any_batched(backend, out):
            return _unbatched(backend, kernel)(*natives, **options, **({} if out is None else {"out": out}))
        if not size:
            raise GradientError(
                f"{name}: vmap: expected at least one example, got none; there is no batching rule for {name}, and nothing "
                f"to run it on"
            )
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {name}. It runs on one "
            f"example after the other.",
            UserWarning,
            stacklevel=2,
        )
        found = []
        for i in range(size):
            mine = {key: part(one, i) for key, one in options.items()}
            found.append(kernel(*[part(one, i) for one in natives], **mine))
        result = _stacked(backend, found)
        return result if out is None else written(backend, out, backend.take(result)[0])

    return call


def _stacked(backend: BatchedBackend, found: list[Any]) -> Any:
    first = found[0]
    if isinstance(first, (list, tuple)):
        return tuple([_stacked(backend, list(each)) for each in zip(*found, strict=True)])
    if first is None or not is_array(first):
        return first
    return backend.make(backend.inner.kernels["stack"](found, dim=0), True)


def _rules(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


RULES: dict[str, Rule] = {
    **_rules("masked_fill", elementwise),
    **_rules("softmax log_softmax cumsum cumprod cumsum_back logcumsumexp cummax cummin sort topk flip rot90 shifted take_rows add_rows "
             "norm var var_mean nansum count_nonzero logsumexp", along),
    **_rules("argmax argmin", along_one),
    **_rules("cast clone contiguous tri inverse", passed),
    **_rules("gather pick", together(1)),
    **_rules("scatter scatter_reduce softmax_backward log_softmax_backward", together(0)),
    "put_picked": put_picked,
    "ties": ties,
    **_rules("index_bounds lowest highest", bounds),
    "count_true": most,
}  # fmt: skip
