"""Batching rules of the kernels that join arrays, multiply matrices, look up places, or have a batch dim of their own."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorcore.backend.base import Kernel
from tensorcore.dtypes import int64
from tensorcore.func.batching import Rule, aligned, any_batched, everyone, made, reshaped, rule, shared, written

if TYPE_CHECKING:
    from tensorcore.func.levels import BatchedBackend

__all__ = ["RULES"]

Shape = tuple[int, ...]


# Joining


@rule
def cat(backend: BatchedBackend, kernel: Kernel, xs: list[Any], *, dim: int, shape: Shape) -> Any:
    """One after the other; empty vectors stand for nothing beside arrays of more dims."""
    solid = [one for one in xs if tuple(one.shape) != (0,) or len(shape) == 1]
    inner = [everyone(backend, one) for one in solid]
    return made(backend, kernel(inner, dim=dim + 1, shape=(backend.level.size, *shape)), True)


@rule
def stack(backend: BatchedBackend, kernel: Kernel, xs: list[Any], *, dim: int) -> Any:
    """On top of one another."""
    return made(backend, kernel([everyone(backend, one) for one in xs], dim=dim + 1), True)


@rule
def repeat(backend: BatchedBackend, kernel: Kernel, x: Any, *, repeats: Shape) -> Any:
    """Beside one another."""
    return made(backend, kernel(aligned(backend, x, len(repeats)), repeats=(1, *repeats)), True)


@rule
def repeat_interleave(backend: BatchedBackend, kernel: Kernel, x: Any, *, repeats: Any, dim: int) -> Any:
    """Each element several times."""
    if any_batched(backend, repeats):
        return NotImplemented
    return made(backend, kernel(backend.take(x)[0], repeats=shared(backend, repeats), dim=dim + 1), True)


@rule
def roll(backend: BatchedBackend, kernel: Kernel, x: Any, *, shifts: Any, dims: Any) -> Any:
    """Along dims, or all elements in a row."""
    inner, size = backend.take(x)[0], backend.level.size
    if dims is None:
        line = kernel(reshaped(backend, inner, (size, prod(x.shape))), shifts=shifts, dims=1)
        return made(backend, reshaped(backend, line, (size, *x.shape)), True)
    moved = dims + 1 if isinstance(dims, int) else tuple([one + 1 for one in dims])
    return made(backend, kernel(inner, shifts=shifts, dims=moved), True)


# Gradients of views


@rule
def unindex(backend: BatchedBackend, kernel: Kernel, x: Any, *, shape: Shape, key: tuple[Any, ...]) -> Any:
    """Each example in its place."""
    found = kernel(backend.take(x)[0], shape=(backend.level.size, *shape), key=(slice(None), *key))
    return made(backend, found, True)


@rule
def undiagonal(
    backend: BatchedBackend, kernel: Kernel, x: Any, *, shape: Shape, offset: int, dim1: int, dim2: int
) -> Any:
    """Each example on its diagonal."""
    found = kernel(backend.take(x)[0], shape=(backend.level.size, *shape), offset=offset, dim1=dim1 + 1, dim2=dim2 + 1)
    return made(backend, found, True)


@rule
def unwindows(backend: BatchedBackend, kernel: Kernel, x: Any, *, shape: Shape, dim: int, size: int, step: int) -> Any:
    """Each example's windows."""
    if not shape:
        return NotImplemented
    found = kernel(backend.take(x)[0], shape=(backend.level.size, *shape), dim=dim + 1, size=size, step=step)
    return made(backend, found, True)


@rule
def diagonals(
    backend: BatchedBackend, kernel: Kernel, x: Any, *, dim1: int, dim2: int, shape: Shape | None = None
) -> Any:
    """Copies of diagonals, and zeros around them."""
    wide = {} if shape is None else {"shape": (backend.level.size, *shape)}
    return made(backend, kernel(backend.take(x)[0], dim1=dim1 + 1, dim2=dim2 + 1, **wide), True)


@rule
def spread(
    backend: BatchedBackend, kernel: Kernel, x: Any, *, shape: Shape, dim: Any = None, keepdim: bool = False
) -> Any:
    """What a sum took together, repeated."""
    dims = tuple(range(1, len(shape) + 1)) if dim is None else tuple([one + 1 for one in dim])
    inner, size = backend.take(x)[0], backend.level.size
    keepdim = keepdim or (dim is None and len(x.shape) == len(shape))
    if not shape:
        return made(backend, backend.inner.kernels["clone"](inner), True)
    return made(backend, kernel(inner, shape=(size, *shape), dim=dims, keepdim=keepdim), True)


@rule
def constant_pad(
    backend: BatchedBackend, kernel: Kernel, x: Any, *, shape: Shape, key: tuple[Any, ...], value: Any
) -> Any:
    """Each example within an array of one value."""
    found = kernel(backend.take(x)[0], shape=(backend.level.size, *shape), key=(slice(None), *key), value=value)
    return made(backend, found, True)


# Products


@rule
def matmul(backend: BatchedBackend, kernel: Kernel, x: Any, y: Any) -> Any:
    """Vectors, matrices and batches: one product of all rows where the second matrix is the same for everybody."""
    inner_x, batched_x = backend.take(x)
    inner_y, batched_y = backend.take(y)
    dims_x, dims_y = len(x.shape), len(y.shape)
    if batched_x and not batched_y and (dims_y == 1 or (dims_x == 1 and dims_y == 2)):
        return made(backend, kernel(inner_x, inner_y), True)
    if batched_y and not batched_x and dims_y == 1 and dims_x <= 2:
        turned = inner_x if dims_x == 1 else backend.inner.kernels["permute"](inner_x, dims=(1, 0))
        return made(backend, kernel(inner_y, turned), True)
    if dims_x == 1:
        inner_x = reshaped(backend, inner_x, (*inner_x.shape[:-1], 1, inner_x.shape[-1]))
    if dims_y == 1:
        inner_y = reshaped(backend, inner_y, (*inner_y.shape, 1))
    wide = max(dims_x, dims_y, 2)
    if batched_x:
        inner_x = _padded(backend, inner_x, wide)
    if batched_y:
        inner_y = _padded(backend, inner_y, wide)
    # The gradient of one example by a weight is a column times a row: no sums, and no call of BLAS for each example.
    found = backend.inner.kernels["mul"](inner_x, inner_y) if inner_x.shape[-1] == 1 else kernel(inner_x, inner_y)
    shape = tuple(found.shape)
    if dims_x == 1:
        shape = (*shape[:-2], shape[-1])
    return made(backend, reshaped(backend, found, shape[:-1] if dims_y == 1 else shape), True)


def _padded(backend: BatchedBackend, inner: Any, ndim: int) -> Any:
    """Dims of size 1 behind the examples, so that the dims of batches within them meet."""
    return reshaped(backend, inner, (inner.shape[0], *[1] * (ndim + 1 - len(inner.shape)), *inner.shape[1:]))


@rule
def linear(backend: BatchedBackend, kernel: Kernel, x: Any, weight: Any, bias: Any) -> Any:
    """Rows times a transposed matrix, in one product where all examples share it."""
    if not any_batched(backend, (weight, bias)):
        return made(backend, kernel(backend.take(x)[0], shared(backend, weight), shared(backend, bias)), True)
    kernels = backend.kernels
    found = kernels["matmul"](x, kernels["permute"](weight, dims=(1, 0)))
    return found if bias is None else kernels["add"](found, bias)


@rule
def cross(backend: BatchedBackend, kernel: Kernel, x: Any, y: Any, *, dim: int) -> Any:
    """Vectors of three numbers along a dim."""
    return made(backend, kernel(everyone(backend, x), everyone(backend, y), dim=dim + 1), True)


# Places that arrays name


@rule
def index_select(backend: BatchedBackend, kernel: Kernel, x: Any, index: Any, *, dim: int) -> Any:
    """Slices along a dim."""
    if not x.shape:
        return NotImplemented
    if not any_batched(backend, index):
        return made(backend, kernel(backend.take(x)[0], shared(backend, index), dim=dim + 1), True)
    size, count = backend.level.size, prod(index.shape)
    at = reshaped(backend, backend.take(index)[0], (size, *[count if i == dim else 1 for i in range(len(x.shape))]))
    wide = tuple([count if i == dim else n for i, n in enumerate(x.shape)])
    at = backend.inner.kernels["expand"](at, shape=(size, *wide))
    return made(backend, backend.inner.kernels["gather"](everyone(backend, x), at, dim=dim + 1), True)


@rule
def index_write(backend: BatchedBackend, kernel: Kernel, x: Any, index: Any, source: Any, *, dim: int, out: Any = None,
                **options: Any) -> Any:  # fmt: skip
    """Slices written along a dim, at places that all examples share."""
    if not x.shape or not source.shape or any_batched(backend, index):
        return NotImplemented
    target = everyone(backend, x)
    found = kernel(target, shared(backend, index), everyone(backend, source), dim=dim + 1, **options)
    return made(backend, found, True) if out is None else written(backend, out, found)


@rule
def index_fill(
    backend: BatchedBackend, kernel: Kernel, x: Any, index: Any, value: Any, *, dim: int, out: Any = None
) -> Any:
    """One value for all examples, written along a dim at places that they share."""
    if not x.shape or any_batched(backend, (index, value)):
        return NotImplemented
    found = kernel(everyone(backend, x), shared(backend, index), shared(backend, value), dim=dim + 1)
    return made(backend, found, True) if out is None else written(backend, out, found)


def _key(backend: BatchedBackend, indices: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The indices of all examples at once: behind a full dim, or behind each example's own number."""
    if not any_batched(backend, indices):
        return (None, *[None if one is None else shared(backend, one) for one in indices])
    ndim = max(len(one.shape) for one in indices if one is not None)
    size = backend.level.size
    numbers = backend.inner.kernels["arange"](0, 1, size, dtype=int64)
    first = reshaped(backend, numbers, (size, *[1] * ndim))
    return (first, *[None if one is None else aligned(backend, one, ndim) for one in indices])


@rule
def index_tensors(backend: BatchedBackend, kernel: Kernel, x: Any, *, indices: tuple[Any, ...]) -> Any:
    """The elements at the places that several arrays name."""
    places = [i for i, one in enumerate(indices) if one is not None]
    neighbours = places[-1] - places[0] == len(places) - 1
    own = any_batched(backend, indices)
    if not own and not neighbours:
        return NotImplemented
    found = kernel(everyone(backend, x), indices=_key(backend, indices))
    if own and neighbours and places[0] > 0:
        # NumPy has put the indices' dims in front, right behind the examples.
        common = max(len(one.shape) for one in indices if one is not None)
        order = [0, *range(1 + common, 1 + common + places[0]), *range(1, 1 + common)]
        order += range(len(order), len(found.shape))
        found = backend.inner.kernels["contiguous"](backend.inner.kernels["permute"](found, dims=tuple(order)))
    return made(backend, found, True)


@rule
def index_put(backend: BatchedBackend, kernel: Kernel, x: Any, values: Any, *, indices: tuple[Any, ...],
              accumulate: bool = False, out: Any = None) -> Any:  # fmt: skip
    """Values written at the places that several arrays name."""
    places = [i for i, one in enumerate(indices) if one is not None]
    neighbours = places[-1] - places[0] == len(places) - 1
    if not neighbours or (any_batched(backend, indices) and places[0] > 0):
        return NotImplemented
    common = max(len(one.shape) for one in indices if one is not None)
    wanted = len(x.shape) - len(places) + common
    target = everyone(backend, x)
    found = kernel(target, aligned(backend, values, wanted), indices=_key(backend, indices), accumulate=accumulate)
    return made(backend, found, True) if out is None else written(backend, out, found)


@rule
def take(backend: BatchedBackend, kernel: Kernel, x: Any, index: Any) -> Any:
    """Elements of each example as if it had one dim."""
    size, kernels = backend.level.size, backend.inner.kernels
    if not any_batched(backend, x):
        return made(backend, kernel(shared(backend, x), backend.take(index)[0]), True)
    line = reshaped(backend, backend.take(x)[0], (size, prod(x.shape)))
    if any_batched(backend, index):
        return NotImplemented
    at = shared(backend, index)
    found = kernels["index_tensors"](line, indices=(None, at))
    return made(backend, found, True)


@rule
def searchsorted(backend: BatchedBackend, kernel: Kernel, x: Any, values: Any, *, right: bool = False) -> Any:
    """Places in sorted lines."""
    if not any_batched(backend, x) and len(x.shape) == 1:
        return made(backend, kernel(shared(backend, x), backend.take(values)[0], right=right), True)
    lines, wanted = everyone(backend, x), everyone(backend, values)
    if len(x.shape) == 1:
        wanted = reshaped(backend, wanted, (backend.level.size, prod(values.shape)))
    found = kernel(lines, wanted, right=right)
    return made(backend, reshaped(backend, found, (backend.level.size, *values.shape)), True)


@rule
def embedding(backend: BatchedBackend, kernel: Kernel, weight: Any, indices: Any, **options: Any) -> Any:
    """Rows of a table; tables of several examples are one under the other."""
    if options.get("by_count"):
        return NotImplemented
    if not any_batched(backend, weight):
        return made(backend, kernel(shared(backend, weight), backend.take(indices)[0], **options), True)
    rows = weight.shape[0]
    table = reshaped(backend, backend.take(weight)[0], (backend.level.size * rows, *weight.shape[1:]))
    return made(backend, kernel(table, _apart(backend, indices, rows), **options), True)


@rule
def embedding_pick(
    backend: BatchedBackend, kernel: Kernel, weight: Any, indices: Any, *, padding: Any, by_count: bool
) -> Any:
    """The adjoint of the gradient: rows again, where there is no exception among them."""
    if padding is not None or by_count:
        return NotImplemented
    return backend.kernels["embedding"](weight, indices, padding=None, by_count=False)


@rule
def embedding_gradient(backend: BatchedBackend, kernel: Kernel, g: Any, indices: Any, *, rows: int, padding: Any,
                       by_count: bool) -> Any:  # fmt: skip
    """Rows added up where their indices say, for each example in a table of its own."""
    if padding is not None or by_count:
        return NotImplemented
    size = backend.level.size
    found = kernel(everyone(backend, g), _apart(backend, indices, rows), rows=size * rows, padding=None, by_count=False)
    return made(backend, reshaped(backend, found, (size, rows, *found.shape[1:])), True)


def _apart(backend: BatchedBackend, indices: Any, rows: int) -> Any:
    """Indices into tables that lie one under the other."""
    kernels, size = backend.inner.kernels, backend.level.size
    starts = reshaped(backend, kernels["arange"](0, rows, size, dtype=int64), (size, *[1] * len(indices.shape)))
    return kernels["add"](everyone(backend, indices), starts)


# Kernels whose first dim is a batch already


@rule
def samples(backend: BatchedBackend, kernel: Kernel, /, *natives: Any, **options: Any) -> Any:
    """Arrays of (batch, channels, ...): the examples become part of the batch."""
    size = backend.level.size
    inner = [_merged(backend, everyone(backend, one)) for one in natives]
    count = natives[0].shape[0]
    if "shape" in options:
        options["shape"] = (size * options["shape"][0], *options["shape"][1:])
    found = kernel(*inner, **options)
    return made(backend, reshaped(backend, found, (size, count, *found.shape[1:])), True)


def _merged(backend: BatchedBackend, inner: Any) -> Any:
    """The first two dims as one."""
    return reshaped(backend, inner, (inner.shape[0] * inner.shape[1], *inner.shape[2:]))


def _beside(backend: BatchedBackend, inner: Any) -> Any:
    """(examples, batch, channels, ...) as (batch, examples * channels, ...)."""
    order = (1, 0, *range(2, len(inner.shape)))
    return _merged_at(backend, backend.inner.kernels["permute"](inner, dims=order))


def _merged_at(backend: BatchedBackend, inner: Any) -> Any:
    return reshaped(backend, inner, (inner.shape[0], inner.shape[1] * inner.shape[2], *inner.shape[3:]))


def _parted(backend: BatchedBackend, inner: Any) -> Any:
    """(batch, examples * channels, ...) as (examples, batch, channels, ...)."""
    size = backend.level.size
    shape = (inner.shape[0], size, inner.shape[1] // max(size, 1), *inner.shape[2:])
    order = (1, 0, *range(2, len(shape)))
    return backend.inner.kernels["permute"](reshaped(backend, inner, shape), dims=order)


@rule
def conv(
    backend: BatchedBackend, kernel: Kernel, x: Any, weight: Any, bias: Any, *, groups: int, **options: Any
) -> Any:
    """Weights that all examples share see a larger batch; weights of their own are so many groups more."""
    size = backend.level.size
    if not any_batched(backend, weight) and not any_batched(backend, bias):
        made_ = kernel(_merged(backend, everyone(backend, x)), shared(backend, weight), shared(backend, bias), groups=groups,
                       **options)  # fmt: skip
        return made(backend, reshaped(backend, made_, (size, x.shape[0], *made_.shape[1:])), True)
    offset = None if bias is None else _merged(backend, everyone(backend, bias))
    found = kernel(_beside(backend, everyone(backend, x)), _merged(backend, everyone(backend, weight)), offset,
                   groups=groups * size, **options)  # fmt: skip
    return made(backend, _parted(backend, found), True)


@rule
def conv_input_gradient(backend: BatchedBackend, kernel: Kernel, g: Any, weight: Any, *, shape: Shape, groups: int,
                        **options: Any) -> Any:  # fmt: skip
    """As ``conv``."""
    size = backend.level.size
    if not any_batched(backend, weight):
        found = kernel(_merged(backend, everyone(backend, g)), shared(backend, weight), shape=(size * shape[0], *shape[1:]),
                       groups=groups, **options)  # fmt: skip
        return made(backend, reshaped(backend, found, (size, *shape)), True)
    found = kernel(_beside(backend, everyone(backend, g)), _merged(backend, everyone(backend, weight)),
                   shape=(shape[0], size * shape[1], *shape[2:]), groups=groups * size, **options)  # fmt: skip
    return made(backend, _parted(backend, found), True)


@rule
def conv_weight_gradient(backend: BatchedBackend, kernel: Kernel, g: Any, x: Any, *, shape: Shape, groups: int,
                         **options: Any) -> Any:  # fmt: skip
    """Each example's gradient is that of groups of its own."""
    size = backend.level.size
    found = kernel(_beside(backend, everyone(backend, g)), _beside(backend, everyone(backend, x)),
                   shape=(size * shape[0], *shape[1:]), groups=groups * size, **options)  # fmt: skip
    return made(backend, reshaped(backend, found, (size, *shape)), True)


RULES: dict[str, Rule] = {
    "cat": cat, "stack": stack, "repeat": repeat, "repeat_interleave": repeat_interleave, "roll": roll,
    "unindex": unindex, "undiagonal": undiagonal, "unwindows": unwindows, "take_diagonal": diagonals,
    "put_diagonal": diagonals, "spread": spread, "constant_pad": constant_pad,
    "matmul": matmul, "linear": linear, "cross": cross,
    "index_select": index_select, "index_add": index_write, "index_copy": index_write, "index_fill": index_fill,
    "index_tensors": index_tensors, "index_put": index_put, "take": take, "searchsorted": searchsorted,
    "embedding": embedding, "embedding_pick": embedding_pick, "embedding_gradient": embedding_gradient,
    "conv": conv, "conv_input_gradient": conv_input_gradient, "conv_weight_gradient": conv_weight_gradient,
    **dict.fromkeys(("unfold", "fold", "avg_pool", "avg_pool_gradient", "max_unpool", "max_unpool_gradient"), samples),
    **dict.fromkeys(("adaptive_avg_pool", "adaptive_avg_pool_gradient"), samples),
    **dict.fromkeys(("max_pool", "max_pool_gradient", "max_pool_pick", "max_pool_indices"), samples),
}  # fmt: skip
