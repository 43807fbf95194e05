"""Reading and writing at places that an index names along a dim, at places in a mask."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import kind_of
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules, samples_index as samples
from tensorcore.ops.calls import apply, record, store, written
from tensorcore.ops.define import Op, without_derivative
from tensorcore.ops.inplace import _before, attach, check_writable
from tensorcore.ops.kinds import method, operation
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "argwhere", "bincount", "bucketize", "gather", "index_add", "index_copy", "index_fill", "index_reduce", "index_select",
    "masked_fill", "masked_scatter", "masked_select", "nonzero", "put", "scatter", "scatter_add", "scatter_reduce",
    "take", "take_along_dim",
]  # fmt: skip

# Primitives. An index is an input without a formula: it is saved, and checked for writes, like any other.

_gather = Op("gather", "input index", "Elements at an index along a dim.", register=False,
             grads=dict(input=lambda g, input_shape, index, dim: scatter_add(g.new_zeros(input_shape), dim, index, g)))  # fmt: skip
_scatter = Op(
    "scatter", "input index src", "Elements written at an index along a dim.", register=False,
    grads=dict(input=lambda g, index, dim: scatter(g, dim, index, 0), src=lambda g, index, dim, src_shape: _padded(
        gather(g, dim, index), src_shape)),
)  # fmt: skip
_scatter_add = Op(
    "scatter_add", "input index src", "Elements added at an index along a dim.", kernel="scatter_reduce", register=False,
    grads=dict(input=lambda g: g, src=lambda g, index, dim, src_shape: _padded(gather(g, dim, index), src_shape)),
)  # fmt: skip
_scatter_reduce = Op(
    "scatter_reduce", "input index src", "Elements combined at an index along a dim.", register=False,
    grads=dict(
        input=lambda g, out, input, index, src, dim, reduce, include_self: _reduce_grads(
            g, out, input, index, src, dim, reduce, include_self)[0],
        src=lambda g, out, input, index, src, dim, reduce, include_self: _reduce_grads(
            g, out, input, index, src, dim, reduce, include_self)[1]),
)  # fmt: skip
_index_select = Op(
    "index_select", "input index", "Slices at indices along a dim.", register=False,
    grads=dict(input=lambda g, input_shape, index, dim: index_add(g.new_zeros(input_shape), dim, index, g)),
)  # fmt: skip
_index_add = Op(
    "index_add", "input index source", "Slices added at indices along a dim.", register=False,
    grads=dict(input=lambda g: g, source=lambda g, index, source_shape, dim, alpha: _times(
        _slices(g, dim, index, source_shape), alpha)),
)  # fmt: skip
_index_copy = Op(
    "index_copy", "input index source", "Slices written at indices along a dim.", register=False,
    grads=dict(input=lambda g, index, dim: index_fill(g, dim, index, 0),
               source=lambda g, index, source_shape, dim: _slices(g, dim, index, source_shape)),
)  # fmt: skip
_index_fill = Op(
    "index_fill", "input index value", "One value at indices along a dim.", register=False,
    grads=dict(input=lambda g, index, dim: index_fill(g, dim, index, 0),
               value=lambda g, index, dim: _chosen(g, dim, index).sum()),
)  # fmt: skip
_take = Op("take", "input index", "Elements at indices into the flattened tensor.", register=False,
           grads=dict(input=lambda g, input_shape, index: put(g.new_zeros(input_shape), index, g, True)))  # fmt: skip
_put = Op(
    "put", "input index source", "Elements written at indices into the flattened tensor.", register=False,
    grads=dict(input=lambda g, index, accumulate: g if accumulate else put(g, index, g.new_zeros(index.shape), False),
               source=lambda g, index, source_shape: take(g, index).reshape(source_shape)),
)  # fmt: skip
_masked_fill = Op(
    "masked_fill", "input mask value", "One value where a mask is true.", register=False,
    grads=dict(input=lambda g, mask: masked_fill(g, mask, 0), value=lambda g, mask: masked_select(g, mask).sum()),
)  # fmt: skip
_masked_select = Op(
    "masked_select", "input mask", "The elements where a mask is true.", register=False,
    grads=dict(input=lambda g, mask, input_shape: masked_scatter(
        g.new_zeros(rules.broadcast("masked_select", tuple(input_shape), tuple(mask.native.shape))), mask, g)),
)  # fmt: skip
_masked_scatter = Op(
    "masked_scatter", "input mask source", "Elements of another tensor where a mask is true.", register=False,
    grads=dict(input=lambda g, mask: masked_fill(g, mask, 0),
               source=lambda g, mask, source_shape: _unselected(masked_select(g, mask), source_shape)),
)  # fmt: skip


def _renamed(op: Op, number: int) -> Op:
    """The same op as PyTorch calls it where the value is a tensor, or a number."""
    return Op(op.name, op.inputs, op.doc, grads=op.grads, kernel=op.kernel, register=False,
              backward_name=op.node_name[:-1] + str(number))  # fmt: skip


_scatter_value, _masked_fill_tensor, _index_fill_tensor = (_renamed(op, 1) for op in (_scatter, _masked_fill, _index_fill))
_bincount = Op("bincount", "input weights", "How often each value is met, weighted.", register=False,
               grads=dict(weights=without_derivative("bincount")))  # fmt: skip
_index_reduce = Op("index_reduce", "input index src", "Slices combined at indices along a dim.", kernel="scatter_reduce",
                   grads=_scatter_reduce.grads, register=False)  # fmt: skip


# How they are called


def _call(op: Op, inputs: tuple[Any, ...], options: dict[str, Any], error: type[Exception], write: bool) -> Tensor:
    """Run a primitive whose kernel raises IndexError for an index outside, into a copy or into the first input."""
    input = inputs[0]
    if input.dtype.is_complex and op.kernel == "scatter_reduce" and op is not _scatter_add and mode.enabled:
        if any(isinstance(one, Tensor) and one.node is not None for one in inputs):
            raise GradientError(
                f"{op.name}: {op.name} does not support automatic differentiation for outputs with complex dtype, got "
                f"{input.dtype.name} that requires grad; detach() it"
            )
    extra = {"reduce": "sum"} if op is _scatter_add else {}
    try:
        if not write:
            if not extra:
                return apply(op, inputs, options)
            made = new_tensor(_run(op, inputs, options | extra), input.dtype, input.device)
            if mode.enabled and any(isinstance(one, Tensor) and one.node is not None for one in inputs):
                record(op, inputs, options, made)
            return made
        recording = mode.enabled and any(isinstance(one, Tensor) and one.node is not None for one in inputs)
        if recording:
            inputs = (_before(op, input, inputs), *inputs[1:])
        _run(op, inputs, options | extra, input.native)
    except IndexError as wrong:
        raise error(f"{op.name}: expected every index inside its dimension, got one outside: {wrong}; check the index") from None
    written(input)
    if recording:
        result = new_tensor(input.native, input.dtype, input.device)
        result.version = input.version
        record(op, inputs, options, result)
        if result.node is not None:
            attach(input, result.node)
    return input


def _run(op: Op, inputs: tuple[Any, ...], options: dict[str, Any], out: Any = None) -> Any:
    natives = [one.native for one in inputs]
    if out is not None:
        options = options | {"out": out}
    return inputs[0].device.kernels[op.kernel](*natives, **options)


def _both(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """The function with ``write=False`` under its name, and as a method with an underscore that writes."""

    def enter(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def plain(input: Tensor, *args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
            if not isinstance(input, Tensor):
                raise ArgumentTypeError(f"{name}: expected argument 'input' to be a Tensor, got {input!r}; wrap it in torch.tensor(...)")
            made = function(name, input, *args, **kwargs)
            return made if out is None else store(name, made, out)

        def written_form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            check_writable(f"{name}_", input)
            return function(f"{name}_", input, *args, write=True, **kwargs)

        plain.__name__ = plain.__qualname__ = name
        plain.__doc__ = function.__doc__
        plain.__wrapped__ = function  # type: ignore[attr-defined]
        written_form.__name__ = written_form.__qualname__ = f"{name}_"
        written_form.__doc__ = f"In-place form of :func:`{name}`."
        method(written_form)
        return operation(samples=getattr(samples, name), name=name)(plain)

    return enter


def _long(op: str, index: Any, *, names: tuple[str, ...] = ("int64", "int32")) -> Tensor:
    if not isinstance(index, Tensor):
        raise ArgumentTypeError(f"{op}: expected index to be a Tensor, got {index!r}; wrap it in torch.tensor(...)")
    if index.dtype.name not in names:
        raise DtypeError(f"{op}: Expected dtype int64 for index, got {index.dtype}; convert it with .long()")
    return index


def _same(op: str, input: Tensor, other: Tensor, name: str) -> None:
    if other.dtype is not input.dtype:
        raise DtypeError(
            f"{op}: Expected self.dtype to be equal to {name}.dtype, got {input.dtype} and {other.dtype}; convert one with .to(...)"
        )


def _value(op: str, input: Tensor, value: Any) -> Tensor:
    """A number, or a tensor without dims, as a 0-d tensor of the input's dtype."""
    if isinstance(value, Tensor):
        if value.native.shape:
            raise ShapeError(
                f"{op}: only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s); use where"
            )
        if value.dtype.is_complex and not input.dtype.is_complex or (
            input.dtype.kind in ("integer", "bool") and value.dtype.is_floating_point
        ):
            raise DtypeError(f"{op}: value cannot be converted to type {input.dtype.name} without overflow, got {value.dtype}")
        return value.to(input.device, input.dtype)  # type: ignore[attr-defined]
    if kind_of(value) is None:
        raise ArgumentTypeError(f"{op}: expected value to be a number or a 0-d Tensor, got {value!r}; pass a number")
    from tensorcore.ops.index import _number

    return _number(input, value)


def _check_places(op: str, input: Tensor, index: Tensor, src: Tensor | None, dim: int, *, bounded: bool) -> int:
    """The rules that ``gather`` and ``scatter`` share; gives ``dim`` from the front."""
    shape, places = input.native.shape, index.native.shape
    at = rules.wrap_dim(op, dim, len(shape))
    if not prod(places):
        return at
    if max(len(places), 1) != max(len(shape), 1):
        raise ShapeError(
            f"{op}: Index tensor must have the same number of dimensions as input tensor, got {len(places)} and {len(shape)}; "
            f"expand or unsqueeze it"
        )
    if src is not None and src.native.shape and max(len(src.native.shape), 1) != max(len(places), 1):
        raise ShapeError(
            f"{op}: Index tensor must have the same number of dimensions as src tensor, got {len(places)} and "
            f"{len(src.native.shape)}; expand or unsqueeze it"
        )
    for i, size in enumerate(places):
        if shape and i != at and size > shape[i]:
            raise ShapeError(
                f"{op}: Expected index {list(places)} to be no larger than self {list(shape)} apart from dimension {at}, got "
                f"{size} at dimension {i}; make it smaller"
            )
        if src is not None and src.native.shape and size > src.native.shape[i]:
            raise ShapeError(
                f"{op}: Expected index {list(places)} to be no larger than src {list(src.native.shape)}, got {size} at dimension "
                f"{i}; make it smaller"
            )
    return at


# Along a dim, at an index of the result's shape


@operation(samples=samples.gather)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """``input[index[i, j], j]`` for ``dim`` 0, and so on: the elements at ``index`` along ``dim``, in the index's shape."""
    _long("gather", index)
    at = _check_places("gather", input, index, None, dim, bounded=True)
    made = _call(_gather, (input, index), {"dim": at}, ShapeError, False)
    return made if out is None else store("gather", made, out)


@operation(samples=samples.take_along_dim)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """``gather`` with an index that broadcasts with the input; of all elements in a row without ``dim``."""
    _long("take_along_dim", indices, names=("int64",))
    if dim is None:
        made = gather(input.reshape(-1), 0, indices.reshape(-1))  # type: ignore[attr-defined]
        return made if out is None else store("take_along_dim", made, out)
    if input.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_dim: torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices; unsqueeze one"
        )
    at = rules.wrap_dim("take_along_dim", dim, input.ndim)
    shape, places = list(input.native.shape), list(indices.native.shape)
    common = rules.broadcast("take_along_dim", (*shape[:at], 1, *shape[at + 1 :]), (*places[:at], 1, *places[at + 1 :]))
    input = input.expand(*common[:at], shape[at], *common[at + 1 :])  # type: ignore[attr-defined]
    made = gather(input, at, indices.expand(*common[:at], places[at], *common[at + 1 :]))  # type: ignore[attr-defined]
    return made if out is None else store("take_along_dim", made, out)


@_both("scatter")
def scatter(name: str, input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
            reduce: str | None = None, write: bool = False) -> Tensor:  # fmt: skip
    """``input`` with ``src[i, j]`` (or one number) written at ``[index[i, j], j]`` for ``dim`` 0, and so on.

    Args:
        reduce: ``"add"`` or ``"multiply"`` with what is there, instead of replacing it.
    """
    _long(name, index)
    if src is None:
        src = value
    given = isinstance(src, Tensor)
    if given:
        _same(name, input, src, "src")
        at = _check_places(name, input, index, src, dim, bounded=True)
    else:
        src = _value(name, input, src)
        at = _check_places(name, input, index, None, dim, bounded=True)
        src = src.expand(index.native.shape)  # type: ignore[attr-defined]
    if reduce is None:
        return _call(_scatter if given else _scatter_value, (input, index, src), {"dim": at}, ShapeError, write)
    if reduce not in ("add", "multiply"):
        raise ShapeError(f"{name}: reduce argument must be either add or multiply, got {reduce!r}; pass one of those")
    options = {"dim": at, "reduce": {"add": "sum", "multiply": "prod"}[reduce], "include_self": True}
    return _call(_scatter_reduce, (input, index, src), options, ShapeError, write)


@_both("scatter_add")
def scatter_add(name: str, input: Tensor, dim: int, index: Tensor, src: Tensor, *, write: bool = False) -> Tensor:
    """``input`` with ``src[i, j]`` added at ``[index[i, j], j]`` for ``dim`` 0, and so on; equal indices all count."""
    _long(name, index)
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"{name}: expected src to be a Tensor, got {src!r}; use scatter(..., reduce='add')")
    _same(name, input, src, "src")
    at = _check_places(name, input, index, src, dim, bounded=True)
    return _call(_scatter_add, (input, index, src), {"dim": at}, ShapeError, write)


@_both("scatter_reduce")
def scatter_reduce(name: str, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True, write: bool = False) -> Tensor:  # fmt: skip
    """``input`` combined with ``src[i, j]`` at ``[index[i, j], j]`` for ``dim`` 0, and so on.

    Args:
        reduce: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: whether what is in ``input`` counts in places that ``index`` names.
    """
    _long(name, index)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ShapeError(f"{name}: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}; pass one of those")
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"{name}: expected src to be a Tensor, got {src!r}; wrap it in torch.tensor(...)")
    _same(name, input, src, "src")
    at = _check_places(name, input, index, src, dim, bounded=True)
    options = {"dim": at, "reduce": reduce, "include_self": include_self}
    return _call(_scatter_reduce, (input, index, src), options, ShapeError, write)


# Along a dim, at a vector of indices


def _vector(op: str, index: Tensor) -> None:
    if len(index.native.shape) > 1:
        raise DimensionError(f"{op}: Index is supposed to be a vector, got {len(index.native.shape)} dims; flatten it")


@operation(samples=samples.index_select)
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices at ``index``, a vector, along ``dim``, as a copy."""
    _long("index_select", index)
    _vector("index_select", index)
    at = rules.wrap_dim("index_select", dim, len(input.native.shape))
    if not input.native.shape and index.numel() != 1:
        raise DimensionError(f"index_select: Index to scalar can have only 1 value, got {index.numel()} value(s); unsqueeze the input")
    made = _call(_index_select, (input, index), {"dim": at}, DimensionError, False)
    return made if out is None else store("index_select", made, out)


def _check_source(name: str, input: Tensor, at: int, index: Tensor, source: Tensor) -> None:
    shape, have = input.native.shape, source.native.shape
    if len(have) > 1 or len(shape) > 1 or have:
        expected = (*shape[:at], index.numel(), *shape[at + 1 :])
        if tuple(have) != expected and not (len(shape) == 0 and prod(have) == 1):
            kind = DimensionError if name.startswith("index_copy") and (not have or have[min(at, len(have) - 1)] != index.numel()) else ShapeError
            raise kind(
                f"{name}: expected source of shape {list(expected)} (Number of indices should be equal to source.size(dim)), got "
                f"{list(have)}; give it that shape"
            )
    elif index.numel() != 1:
        raise ShapeError(f"{name}: expected a single index for a 0-d source, got {index.numel()}; unsqueeze the source")


@_both("index_add")
def index_add(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1,
              write: bool = False) -> Tensor:  # fmt: skip
    """``input`` with the slices of ``alpha * source`` added at ``index``, a vector, along ``dim``; equal indices all count."""
    _long(name, index)
    _vector(name, index)
    if not isinstance(source, Tensor):
        raise ArgumentTypeError(f"{name}: expected source to be a Tensor, got {source!r}; use index_fill")
    _same(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    _check_source(name, input, at, index, source)
    return _call(_index_add, (input, index, source), {"dim": at, "alpha": alpha}, ShapeError, write)


@_both("index_copy")
def index_copy(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, *, write: bool = False) -> Tensor:
    """``input`` with the slices of ``source`` written at ``index``, a vector, along ``dim``."""
    _long(name, index, names=("int64",))
    _vector(name, index)
    if not isinstance(source, Tensor):
        raise ArgumentTypeError(f"{name}: expected source to be a Tensor, got {source!r}; use index_fill")
    _same(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    _check_source(name, input, at, index, source)
    return _call(_index_copy, (input, index, source), {"dim": at}, DimensionError, write)


@_both("index_fill")
def index_fill(name: str, input: Tensor, dim: int, index: Tensor, value: Any, *, write: bool = False) -> Tensor:
    """``input`` with one value (a number or a 0-d tensor) in the slices at ``index``, a vector, along ``dim``."""
    if not isinstance(index, Tensor) or index.dtype.name not in ("int64", "int32"):
        raise DimensionError(f"{name}: index_fill_(): Expected dtype int64 for index, got {index!r}; convert it with .long()")
    _vector(name, index)
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    op = _index_fill_tensor if isinstance(value, Tensor) else _index_fill
    return _call(op, (input, index, _value(name, input, value)), {"dim": at}, DimensionError, write)


@_both("index_reduce")
def index_reduce(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                 include_self: bool = True, write: bool = False) -> Tensor:  # fmt: skip
    """``input`` combined with the slices of ``source`` at ``index``: ``prod``, ``mean``, ``amax`` or ``amin``."""
    _long(name, index)
    _vector(name, index)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ShapeError(f"{name}: reduce argument must be either prod, mean, amax or amin, got {reduce}; pass one of those")
    _same(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    _check_source(name, input, at, index, source)
    shape = [1] * max(len(source.native.shape), 1)
    shape[at] = -1
    places = index.reshape(shape).expand(source.native.shape)  # type: ignore[attr-defined]
    options = {"dim": at, "reduce": reduce, "include_self": include_self}
    return _call(_index_reduce, (input, places, source), options, DimensionError, write)


# In the flattened tensor


@operation(samples=samples.take)
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at ``index`` into the flattened tensor, in the index's shape."""
    _long("take", index, names=("int64",))
    made = _call(_take, (input, index), {}, DimensionError, False)
    return made if out is None else store("take", made, out)


@_both("put")
def put(name: str, input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, *, write: bool = False) -> Tensor:
    """``input`` with the elements of ``source`` written at ``index`` into the flattened tensor.

    Args:
        accumulate: add to what is there; equal indices all count.
    """
    _long(name, index, names=("int64",))
    _same(name, input, source, "source")
    if index.numel() != source.numel():
        raise ShapeError(
            f"{name}: put_(): Expected source and index to have the same number of elements, got {source.numel()} and "
            f"{index.numel()}; give as many"
        )
    return _call(_put, (input, index, source), {"accumulate": accumulate}, DimensionError, write)


# Masks


def _mask(op: str, mask: Any) -> None:
    if not isinstance(mask, Tensor):
        raise ArgumentTypeError(f"{op}: expected mask to be a Tensor, got {mask!r}; compare a tensor with something")
    if mask.dtype is not dtypes.bool_:
        raise DtypeError(f"{op}: expected BoolTensor for mask, got {mask.dtype}; convert it with .bool()")


@_both("masked_fill")
def masked_fill(name: str, input: Tensor, mask: Tensor, value: Any, *, write: bool = False) -> Tensor:
    """``input`` with one value (a number or a 0-d tensor) where ``mask``, which broadcasts, is true."""
    _mask(name, mask)
    shape = rules.broadcast(name, tuple(input.native.shape), tuple(mask.native.shape))
    if write and shape != tuple(input.native.shape):
        raise ShapeError(
            f"{name}: output with shape {list(input.native.shape)} doesn't match the broadcast shape {list(shape)}, got a mask "
            f"larger than the tensor; use masked_fill"
        )
    op = _masked_fill_tensor if isinstance(value, Tensor) else _masked_fill
    return _call(op, (input, mask, _value(name, input, value)), {}, DimensionError, write)


@operation(samples=samples.masked_select)
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where ``mask`` (which broadcasts with the tensor) is true, as a vector."""
    _mask("masked_select", mask)
    rules.broadcast("masked_select", tuple(input.native.shape), tuple(mask.native.shape))
    made = apply(_masked_select, (input, mask))
    return made if out is None else store("masked_select", made, out)


@_both("masked_scatter")
def masked_scatter(name: str, input: Tensor, mask: Tensor, source: Tensor, *, write: bool = False) -> Tensor:
    """``input`` with the elements of ``source``, one after the other, where ``mask``, which broadcasts, is true."""
    _mask(name, mask)
    _same(name, input, source, "source")
    shape = rules.broadcast(name, tuple(input.native.shape), tuple(mask.native.shape))
    if shape != tuple(input.native.shape):
        if write:
            raise ShapeError(f"{name}: output with shape {list(input.native.shape)} doesn't match the broadcast shape {list(shape)}, got a larger mask; use masked_scatter")
        input = input.expand(shape)  # type: ignore[attr-defined]
    mask = mask.expand(shape)  # type: ignore[attr-defined]
    count = input.device.kernels["count_true"](mask.native)
    if count > source.numel():
        raise ShapeError(
            f"{name}: Number of elements of source < number of ones in mask, got {source.numel()} < {count}; give more elements"
        )
    return _call(_masked_scatter, (input, mask, source), {}, DimensionError, write)


# Places and counts


@operation(samples=samples.unary_plain)
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The indices of the elements that are not zero: a row for each, or with ``as_tuple`` a vector for each dim."""
    device = input.device
    if as_tuple:
        return tuple([new_tensor(one, dtypes.int64, device) for one in device.kernels["nonzero_by_dim"](input.native)])
    made = new_tensor(device.kernels["nonzero"](input.native), dtypes.int64, device)
    return made if out is None else store("nonzero", made, out)


@operation(samples=samples.unary_plain)
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row for each."""
    return nonzero(input)


@operation(method=False, samples=samples.bucketize)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False,
              out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The number of the bucket, between two of the ``boundaries``, that each value falls into."""
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries tensor must be 1 dimension, got {boundaries.ndim}; flatten it")
    from tensorcore.ops.sort import searchsorted

    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@operation(samples=samples.bincount)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each value from 0 on is in ``input``, or the sum of its ``weights``."""
    if input.ndim != 1 or input.dtype.kind != "integer":
        raise ShapeError(f"bincount: bincount only supports 1-d non-negative integral inputs, got {input.ndim}-d of {input.dtype}")
    if minlength < 0:
        raise ShapeError(f"bincount: minlength should be >= 0, got {minlength}; pass 0 or more")
    if input.numel() and input.device.kernels["lowest"](input.native) < 0:
        raise ShapeError("bincount: bincount only supports 1-d non-negative integral inputs, got a negative one; shift them")
    if weights is not None and tuple(weights.native.shape) != tuple(input.native.shape):
        raise ShapeError(f"bincount: weights should be 1-d and have the same length as input, got {list(weights.shape)}")
    dtype = dtypes.int64 if weights is None else dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    added = weights.to(dtype) if weights is not None and weights.dtype.is_complex else weights  # type: ignore[attr-defined]
    native = input.device.kernels["bincount"](
        input.native, weights=None if added is None else added.native, minlength=minlength
    )
    made = new_tensor(native, dtype, input.device)
    if mode.enabled and weights is not None and weights.node is not None:
        record(_bincount, (input, weights), None, made)
    return made


# Parts of formulas


def _times(g: Tensor, alpha: Any) -> Tensor:
    return g if alpha == 1 else g * alpha


def _padded(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a ``src`` of which an index used only the first elements of each dim."""
    if tuple(part.native.shape) == tuple(shape) or not shape:
        return part.reshape(shape) if not shape else part  # type: ignore[attr-defined]
    made = part.new_zeros(shape)  # type: ignore[attr-defined]
    key = tuple([slice(n) for n in part.native.shape])
    made[key] = part
    return made


def _chosen(g: Tensor, dim: int, index: Tensor) -> Tensor:
    """``index_select`` that counts negative indices from the end."""
    size = g.native.shape[dim] if g.native.shape else 1
    return index_select(g, dim, index + size * (index < 0).to(index.dtype))  # type: ignore[attr-defined, operator]


def _slices(g: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    return index_select(g, dim, index).reshape(shape)


def _unselected(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a source of which a mask took only the first elements."""
    total = prod(shape)
    rest = total - g.numel()
    if rest:
        from tensorcore.ops.join import cat

        g = cat([g, g.new_zeros(rest)])  # type: ignore[attr-defined]
    return g.reshape(shape)  # type: ignore[attr-defined]


def _reduce_grads(
    g: Tensor, out: Tensor, input: Tensor, index: Tensor, src: Tensor, dim: int, reduce: str, include_self: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of ``scatter_reduce`` with respect to input and src, as PyTorch defines them."""
    if not prod(index.native.shape):
        return g, g.new_zeros(src.shape)  # type: ignore[attr-defined]
    used = src[tuple([slice(n) for n in index.native.shape])] if src.native.shape else src
    if reduce == "sum":
        mine, theirs = g, gather(g, dim, index)
    elif reduce == "mean":
        ones = g.new_ones(g.shape) if include_self else g.new_zeros(g.shape)  # type: ignore[attr-defined]
        counts = scatter_add(ones, dim, index, g.new_ones(index.shape))  # type: ignore[attr-defined]
        counts = masked_fill(counts, counts.detach() == 0, 1)
        mine, theirs = g / counts, gather(g / counts, dim, index)  # type: ignore[operator]
    elif reduce == "prod":
        mine, theirs = _product_grads(g, out, input, index, used, dim, include_self)
    else:
        value = gather(out, dim, index)
        mine_is = (input == out).to(g.dtype)  # type: ignore[attr-defined]
        theirs_is = (used == value).to(g.dtype)  # type: ignore[attr-defined]
        start = mine_is if include_self else mine_is.new_zeros(mine_is.shape)
        shares = scatter_add(start, dim, index, theirs_is)
        shares = masked_fill(shares, shares == 0, 1)
        spread = g / shares  # type: ignore[operator]
        mine, theirs = mine_is * spread, theirs_is * gather(spread, dim, index)
    if not include_self:
        mine = scatter(mine, dim, index, 0)
    return mine, _padded(theirs, src.native.shape)


def _product_grads(
    g: Tensor, out: Tensor, input: Tensor, index: Tensor, src: Tensor, dim: int, include_self: bool
) -> tuple[Tensor, Tensor]:
    """Of a product: the product of all other factors, also where one of them is zero."""
    others = scatter_reduce(input.new_ones(input.shape), dim, index, src, "prod")  # type: ignore[attr-defined]
    mine = g * others  # type: ignore[operator]
    zero = (src == 0).to(src.dtype)  # type: ignore[attr-defined]
    zeros = gather(scatter_add(src.new_zeros(input.shape), dim, index, zero), dim, index)  # type: ignore[attr-defined]
    # With one zero among the factors only that zero's gradient is not zero: the product of the others.
    factors = masked_fill(src, src == 0, 1)
    start = input if include_self else input.new_ones(input.shape)  # type: ignore[attr-defined]
    rest = gather(scatter_reduce(start, dim, index, factors, "prod"), dim, index)
    alone = (zeros == zero).to(src.dtype)  # type: ignore[attr-defined]
    return mine, gather(g, dim, index) * rest / factors * alone  # type: ignore[operator]
