"""Reading and writing at places that an index names, along a dim or in the flattened tensor."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import kind_of
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, GradientError, ShapeError, UnsupportedDtype
from tensorcore.ops import rules
from tensorcore.ops.calls import PLAIN_FLOATS, apply
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.index import nothing, number_of
from tensorcore.ops.indexing.parse import check_places, check_scattered, long
from tensorcore.ops.indexing.scatter_gradients import padded, reduce_gradients
from tensorcore.ops.inplace import _before, attach, check_writable
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.operands import check_tensors, lifted, plain
from tensorcore.ops.output import check_apart, store, written
from tensorcore.ops.record import record
from tensorcore.ops.samples import index as samples
from tensorcore.ops.signature import checked
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "gather", "index_add", "index_copy", "index_fill", "index_reduce", "index_select", "scatter", "scatter_add",
    "scatter_reduce", "take_along_dim",
]  # fmt: skip

# Primitives. An index is an input without a formula: it is saved, and checked for writes, like any other.

_gather = Op("gather", "input index", "Elements at an index along a dim.", register=False,
             grads=dict(input=lambda g, input_shape, index, dim: scatter_add(nothing(g, input_shape), dim, index, g)))  # fmt: skip
_scatter = Op(
    "scatter", "input index src", "Elements written at an index along a dim.", register=False,
    grads=dict(input=lambda g, index, dim: scatter(g, dim, index, 0), src=lambda g, index, dim, src_shape: padded(
        gather(g, dim, index), src_shape)),
)  # fmt: skip
_scatter_add = Op(
    "scatter_add", "input index src", "Elements added at an index along a dim.", kernel="scatter_reduce", register=False,
    grads=dict(input=lambda g: g, src=lambda g, index, dim, src_shape: padded(gather(g, dim, index), src_shape)),
)  # fmt: skip
_scatter_reduce = Op(
    "scatter_reduce", "input index src", "Elements combined at an index along a dim.", register=False,
    grads=dict(
        input=lambda g, out, input, index, src, dim, reduce, include_self: reduce_gradients(
            g, out, input, index, src, dim, reduce, include_self)[0],
        src=lambda g, out, input, index, src, dim, reduce, include_self: reduce_gradients(
            g, out, input, index, src, dim, reduce, include_self)[1]),
)  # fmt: skip
_index_select = Op(
    "index_select", "input index", "Slices at indices along a dim.", register=False,
    grads=dict(input=lambda g, input_shape, index, dim: index_add(nothing(g, input_shape), dim, index, g)),
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
               value=lambda g, index, dim: (g * index_fill(g.new_zeros(g.shape), dim, index, 1)).sum()),
)  # fmt: skip


def renamed(op: Op, number: int) -> Op:
    """The same op as PyTorch calls it where the value is a tensor, or a number."""
    return Op(op.name, op.inputs, op.doc, grads=op.grads, kernel=op.kernel, register=False,
              backward_name=op.node_name[:-1] + str(number))  # fmt: skip


_scatter_value, _index_fill_tensor = (renamed(op, 1) for op in (_scatter, _index_fill))
_index_reduce = Op("index_reduce", "input index src", "Slices combined at indices along a dim.", kernel="scatter_reduce",
                   grads=_scatter_reduce.grads, register=False)  # fmt: skip


# How they are called


def call(op: Op, inputs: tuple[Any, ...], options: dict[str, Any], error: type[Exception], write: bool) -> Tensor:
    """Run a primitive whose kernel raises IndexError for an index outside, into a copy or into the first input."""
    if not write:
        inputs = lifted(op.name, *inputs)
    input = inputs[0]
    if (
        input.dtype.is_complex
        and op.kernel == "scatter_reduce"
        and op is not _scatter_add
        and mode.enabled
        and any(isinstance(one, Tensor) and one.node is not None for one in inputs)
    ):
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
        recording = mode.enabled and any([isinstance(one, Tensor) and one.node is not None for one in inputs])
        if recording:
            inputs = (_before(op, input, inputs), *inputs[1:])
        _run(op, inputs, options | extra, input.native)
    except IndexError as wrong:
        raise error(
            f"{op.name}: expected every index inside its dimension, got one outside: {wrong}; check the index"
        ) from None
    written(input)
    if recording:
        result = new_tensor(input.native, input.dtype, input.device)
        result.version = input.version
        record(op, inputs, options, result)
        if result.node is not None:
            attach(input, result.node)
    return input


def _run(op: Op, inputs: tuple[Any, ...], options: dict[str, Any], out: Any = None) -> Any:
    kernel = inputs[0].device.kernels[op.kernel]
    natives = [one.native for one in inputs]
    return kernel(*natives, **options) if out is None else kernel(*natives, **options, out=out)


def both(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """The function without ``write`` under its name, and as a method with an underscore that writes."""

    def enter(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        function = checked(function, name)

        def plain(input: Tensor, *args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
            if not isinstance(input, Tensor):
                raise ArgumentTypeError(
                    f"{name}: expected argument 'input' to be a Tensor, got {input!r}; wrap it in torch.tensor(...)"
                )
            made = function(name, False, input, *args, **kwargs)
            return made if out is None else store(name, made, out, input, *args)

        def written_form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            check_writable(f"{name}_", input)
            if name not in ("masked_scatter", "masked_fill", "index_fill"):  # PyTorch compares no memory there
                check_apart(f"{name}_", input, args, all_of_it=True)
            return function(f"{name}_", True, input, *args, **kwargs)

        plain.__name__ = plain.__qualname__ = name
        plain.__doc__ = function.__doc__
        plain.__wrapped__ = function  # type: ignore[attr-defined]
        written_form.__name__ = written_form.__qualname__ = f"{name}_"
        written_form.__doc__ = f"In-place form of :func:`{name}`."
        method(written_form)
        calls = getattr(samples, name, None)
        if calls is None:
            # PyTorch warns at every call of index_reduce, which no comparison survives; it has tests of its own.
            return method(plain)
        return operation(samples=calls, name=name)(plain)

    return enter


def same_dtype(op: str, input: Tensor, other: Tensor, name: str) -> None:
    check_tensors(op, **{name: other})
    if other.dtype is not input.dtype:
        raise DtypeError(
            f"{op}: Expected self.dtype to be equal to {name}.dtype, got {input.dtype} and "
            f"{other.dtype}; convert one with .to(...)"
        )


def scalar(op: str, input: Tensor, value: Any) -> Tensor:
    """A number, or a tensor without dims, as a 0-d tensor of the input's dtype."""
    if type(value) is float and input.dtype in PLAIN_FLOATS:  # no rule to check: half the time of what follows
        dtype, device = input.dtype, input.device
        return new_tensor(device.kernels["full"]((), value, dtype=dtype), dtype, device)
    if isinstance(value, Tensor):
        if value.native.shape:
            raise ShapeError(
                f"{op}: only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s); use where"
            )
        if value.dtype.is_complex and not input.dtype.is_complex:
            raise DtypeError(
                f"{op}: value cannot be converted to type {input.dtype.name} without overflow, got {value.dtype}"
            )
        return value.to(input.device, input.dtype)  # type: ignore[attr-defined]
    if kind_of(value) is None:
        raise ArgumentTypeError(f"{op}: expected value to be a number or a 0-d Tensor, got {value!r}; pass a number")
    return number_of(input, value)


def _quick(op: Op, inputs: tuple[Tensor, ...], options: dict[str, Any], **others: Any) -> Tensor | None:
    """What the kernel makes, recorded; None where it refuses: the slower call knows how to go on, and what to say.

    Args:
        options: those that are recorded, too; ``others`` are for the kernel alone.
    """
    input = inputs[0]
    device = input.device
    try:
        native = device.kernels[op.kernel](*[one.native for one in inputs], **options, **others)
    except (IndexError, MemoryError):
        return None
    made = new_tensor(native, input.dtype, device)
    if mode.enabled:
        for one in inputs:
            if one.node is not None:
                record(op, inputs, options, made)
                break
    return made  # type: ignore[no-any-return]


def _usual(input: Any, dim: Any, index: Any, src: Any) -> int:
    """``dim`` from the front where a call meets every rule of ``gather`` (of ``input`` alone) or ``scatter``; else -1.

    In the place of five functions that look at one rule each, and know what to say.
    """
    if (
        type(input) is not Tensor
        or type(index) is not Tensor
        or type(src) is not Tensor
        or type(dim) is not int
        or index.dtype is not dtypes.int64
        or src.dtype is not input.dtype
        or src.device is not input.device
        or index.device is not input.device
    ):
        return -1
    shape, places, have = input.native.shape, index.native.shape, src.native.shape
    ndim = len(shape)
    if len(places) != ndim or len(have) != ndim or not -ndim <= dim < ndim:
        return -1
    at = dim % ndim
    same = src is input
    for i, size in enumerate(places):
        if not size or (i != at and size > shape[i]) or (not same and size > have[i]):
            return -1
    return at


# Along a dim, at an index of the result's shape


@operation(samples=samples.gather)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """``input[index[i, j], j]`` for ``dim`` 0, and so on: the elements at ``index`` along ``dim``, in the index's shape."""
    at = _usual(input, dim, index, input) if out is None else -1
    if at >= 0:
        made = _quick(_gather, (input, index), {"dim": at})
        if made is not None:
            return made
    if type(input) is not Tensor:
        check_tensors("gather", input=input)
    index = long("gather", index, empty=True)
    at = check_places("gather", input, index, None, dim)
    if not index.numel():  # of any shape
        input = input.reshape(-1)[:0].reshape(index.native.shape)  # type: ignore[attr-defined]
    made = call(_gather, (input, index), {"dim": at}, ShapeError, False)
    return made if out is None else store("gather", made, out, input, index, all_of_it=True)


@operation(samples=samples.take_along_dim)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """``gather`` with an index that broadcasts with the input; of all elements in a row without ``dim``."""
    if type(input) is not Tensor:
        check_tensors("take_along_dim", input=input)
    long("take_along_dim", indices, names=("int64",))
    if dim is None:
        made = gather(input.reshape(-1), 0, indices.reshape(-1))  # type: ignore[attr-defined]
        return made if out is None else store("take_along_dim", made, out)
    if input.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_dim: torch.take_along_dim(): input and indices should have the same "
            f"number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices; unsqueeze one"
        )
    at = rules.wrap_dim("take_along_dim", dim, input.ndim)
    shape, places = list(input.native.shape), list(indices.native.shape)
    common = rules.broadcast("take_along_dim", (*shape[:at], 1, *shape[at + 1 :]), (*places[:at], 1, *places[at + 1 :]))
    input = input.expand(*common[:at], shape[at], *common[at + 1 :])  # type: ignore[attr-defined]
    indices = indices + (indices < 0) * shape[at] if prod(places) else indices  # type: ignore[operator]
    made = gather(input, at, indices.expand(*common[:at], places[at], *common[at + 1 :]))  # type: ignore[attr-defined]
    return made if out is None else store("take_along_dim", made, out)


@both("scatter")
def scatter(name: str, write: bool, input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
            reduce: str | None = None) -> Tensor:  # fmt: skip
    """``input`` with ``src[i, j]`` (or one number) written at ``[index[i, j], j]`` for ``dim`` 0, and so on.

    Args:
        reduce: ``"add"`` or ``"multiply"`` with what is there, instead of replacing it.
    """
    if src is None:
        src = value
    if reduce is None and not write:
        at = _usual(input, dim, index, src)
        made = None if at < 0 else _quick(_scatter, (input, index, src), {"dim": at})
        if made is not None:
            return made
    index = long(name, index, empty=True)
    given = isinstance(src, Tensor)
    if given:
        same_dtype(name, input, src, "src")
        at, index, src = check_scattered(name, input, index, src, dim)
    else:
        src = scalar(name, input, src)
        at, index, _ = check_scattered(name, input, index, None, dim)
        src = src.expand(index.native.shape)  # type: ignore[attr-defined]
    if reduce is None:
        return call(_scatter if given else _scatter_value, (input, index, src), {"dim": at}, ShapeError, write)
    if reduce not in ("add", "multiply"):
        raise ShapeError(f"{name}: reduce argument must be either add or multiply, got {reduce!r}; pass one of those")
    options = {"dim": at, "reduce": {"add": "sum", "multiply": "prod"}[reduce], "include_self": True}
    return call(_scatter_reduce, (input, index, src), options, ShapeError, write)


@both("scatter_add")
def scatter_add(name: str, write: bool, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with ``src[i, j]`` added at ``[index[i, j], j]`` for ``dim`` 0, and so on; equal indices all count."""
    at = _usual(input, dim, index, src)
    if at >= 0:
        made = None if write else _quick(_scatter_add, (input, index, src), {"dim": at}, reduce="sum")
        return call(_scatter_add, (input, index, src), {"dim": at}, ShapeError, write) if made is None else made
    index = long(name, index, empty=True)
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"{name}: expected src to be a Tensor, got {src!r}; use scatter(..., reduce='add')")
    same_dtype(name, input, src, "src")
    at, index, src = check_scattered(name, input, index, src, dim)
    return call(_scatter_add, (input, index, src), {"dim": at}, ShapeError, write)


@both("scatter_reduce")
def scatter_reduce(name: str, write: bool, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True) -> Tensor:  # fmt: skip
    """``input`` combined with ``src[i, j]`` at ``[index[i, j], j]`` for ``dim`` 0, and so on.

    Args:
        reduce: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: whether what is in ``input`` counts in places that ``index`` names.
    """
    if not write and reduce in ("sum", "prod", "mean", "amax", "amin") and input.dtype in PLAIN_FLOATS:
        at = _usual(input, dim, index, src)
        options = {"dim": at, "reduce": reduce, "include_self": include_self}
        made = None if at < 0 else _quick(_scatter_reduce, (input, index, src), options)
        if made is not None:
            return made
    index = long(name, index, empty=True)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ShapeError(
            f"{name}: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}; pass one of those"
        )
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"{name}: expected src to be a Tensor, got {src!r}; wrap it in torch.tensor(...)")
    same_dtype(name, input, src, "src")
    if (reduce == "mean" and input.dtype is dtypes.bool_) or (reduce in ("amax", "amin") and input.dtype.is_complex):
        raise UnsupportedDtype(
            f'{name}: "{reduce}" not implemented for {input.dtype.name}, got tensors of it; use another reduce'
        )
    at, index, src = check_scattered(name, input, index, src, dim)
    options = {"dim": at, "reduce": reduce, "include_self": include_self}
    return call(_scatter_reduce, (input, index, src), options, ShapeError, write)


# Along a dim, at a vector of indices


def _vector(op: str, index: Tensor) -> None:
    if len(index.native.shape) > 1:
        raise DimensionError(f"{op}: Index is supposed to be a vector, got {len(index.native.shape)} dims; flatten it")


@operation(samples=samples.index_select)
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices at ``index``, a vector, along ``dim``, as a copy."""
    if (
        type(input) is Tensor
        and type(index) is Tensor
        and index.dtype is dtypes.int64
        and type(dim) is int
        and out is None
    ):
        ndim = len(input.native.shape)
        if -ndim <= dim < ndim and len(index.native.shape) == 1 and input.device is index.device:
            made = _quick(_index_select, (input, index), {"dim": dim % ndim})
            if made is not None:
                return made
    if type(input) is not Tensor:
        check_tensors("index_select", input=input)
    long("index_select", index)
    _vector("index_select", index)
    at = rules.wrap_dim("index_select", dim, len(input.native.shape))
    if not input.native.shape and index.numel() != 1:
        raise DimensionError(
            f"index_select: Index to scalar can have only 1 value, got {index.numel()} value(s); unsqueeze the input"
        )
    made = call(_index_select, (input, index), {"dim": at}, DimensionError, False)
    return made if out is None else store("index_select", made, out, input, index, all_of_it=True)


def check_source(name: str, input: Tensor, at: int, index: Tensor, source: Tensor) -> None:
    shape, have = input.native.shape, source.native.shape
    if len(have) > 1 or len(shape) > 1 or have:
        expected = (*shape[:at], index.numel(), *shape[at + 1 :])
        if tuple(have) != expected and not (len(shape) == 0 and prod(have) == 1):
            apart = not have or len(have) != len(shape) or have[at] != index.numel()
            kind = DimensionError if name.startswith("index_copy") and apart else ShapeError
            raise kind(
                f"{name}: expected source of shape {list(expected)} (Number of indices should be "
                f"equal to source.size(dim)), got "
                f"{list(have)}; give it that shape"
            )
    elif index.numel() != 1:
        raise ShapeError(f"{name}: expected a single index for a 0-d source, got {index.numel()}; unsqueeze the source")


@both("index_add")
def index_add(
    name: str, write: bool, input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1
) -> Tensor:
    """``input`` with the slices of ``alpha * source`` added at ``index``, a vector, along ``dim``; equal indices all count."""
    long(name, index)
    _vector(name, index)
    if not isinstance(source, Tensor):
        raise ArgumentTypeError(f"{name}: expected source to be a Tensor, got {source!r}; use index_fill")
    same_dtype(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    check_source(name, input, at, index, source)
    return call(_index_add, (input, index, source), {"dim": at, "alpha": plain(alpha)}, ShapeError, write)


@both("index_copy")
def index_copy(name: str, write: bool, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with the slices of ``source`` written at ``index``, a vector, along ``dim``."""
    long(name, index, names=("int64",))
    _vector(name, index)
    if not isinstance(source, Tensor):
        raise ArgumentTypeError(f"{name}: expected source to be a Tensor, got {source!r}; use index_fill")
    same_dtype(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    check_source(name, input, at, index, source)
    return call(_index_copy, (input, index, source), {"dim": at}, DimensionError, write)


@both("index_fill")
def index_fill(name: str, write: bool, input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``input`` with one value (a number or a 0-d tensor) in the slices at ``index``, a vector, along ``dim``."""
    check_tensors(name, input=input, index=index)
    if index.dtype.name not in ("int64", "int32"):
        raise DimensionError(
            f"{name}: index_fill_(): Expected dtype int64 for index, got {index!r}; convert it with .long()"
        )
    _vector(name, index)
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    op = _index_fill_tensor if isinstance(value, Tensor) else _index_fill
    return call(op, (input, index, scalar(name, input, value)), {"dim": at}, DimensionError, write)


@both("index_reduce")
def index_reduce(name: str, write: bool, input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                 include_self: bool = True) -> Tensor:  # fmt: skip
    """``input`` combined with the slices of ``source`` at ``index``: ``prod``, ``mean``, ``amax`` or ``amin``."""
    long(name, index)
    _vector(name, index)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ShapeError(
            f"{name}: reduce argument must be either prod, mean, amax or amin, got {reduce}; pass one of those"
        )
    same_dtype(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    check_source(name, input, at, index, source)
    shape = [1] * max(len(source.native.shape), 1)
    shape[at] = -1
    places = index.reshape(shape[: len(source.native.shape)]).expand(source.native.shape)  # type: ignore[attr-defined]
    options = {"dim": at, "reduce": reduce, "include_self": include_self}
    return call(_index_reduce, (input, places, source), options, DimensionError, write)


# Parts of formulas


def _times(g: Tensor, alpha: Any) -> Tensor:
    return g if alpha == 1 else g * alpha


def _slices(g: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    return index_select(g, dim, index).reshape(shape)
