"""Tensors from a rule: evenly spaced numbers, unit matrices, grids, one-hot rows."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.formats import only_strided
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange, full, made
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.placement import as_device, check_stored
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.shape import _expand, _view
from tensorcore.ops.shortage import again
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "cartesian_prod", "eye", "linspace", "logspace", "meshgrid", "one_hot", "scalar_tensor",
    "tril_indices", "triu_indices",
]  # fmt: skip


_NUMBERS = {int, float}


def _numbers(op: str, *values: Any) -> list[Any]:
    found = []
    for one in values:
        if type(one) in _NUMBERS:
            found.append(one)
            continue
        if isinstance(one, Tensor):
            if one.native.shape:
                raise ShapeError(
                    f"{op}: only supports 0-dimensional start and end tensors, got {list(one.shape)}; index one"
                )
            one = one.item()
        if dtypes.kind_of(one) is None:
            raise ArgumentTypeError(f"{op}: expected a number, got {one!r}; pass an int or a float")
        found.append(one)
    return found


def _spaced(op: str, numbers: list[Any], steps: Any, base: Any, dtype: Any, device: Any, requires_grad: bool,
            out: Tensor | None) -> Tensor:  # fmt: skip
    start, end = numbers
    steps = rules.whole(op, "steps", steps)
    if steps < 0:
        raise UsageError(f"{op}: number of steps must be non-negative, got {steps}; pass 0 or more")
    if dtype is None:
        given = {dtypes.kind_of(one) for one in numbers}
        dtype = dtypes.default_for("complex" if "complex" in given else "floating") if out is None else out.dtype
    dtype = dtypes.as_dtype(dtype, op)
    if dtype.kind == "integer" and base is None:
        start, end = int(start), int(end)
    device = as_device(device)
    native = _run(op, device, "linspace", (start, end, steps), {"base": base, "dtype": dtype})
    result = made(native, dtype, device, requires_grad)
    return result if out is None else store(op, result, out)


def linspace(start: Any, end: Any, steps: int, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``steps`` numbers from ``start`` to ``end``, both included, evenly spaced."""
    if layout is not None:
        only_strided("linspace", layout)
    plain = type(steps) is int and 0 <= steps < 2**20 and out is None and (dtype is None or dtype is dtypes.float32)
    if plain and type(start) in _NUMBERS and type(end) in _NUMBERS:
        dtype, target = dtype or dtypes.get_default_dtype(), as_device(device)  # the usual numbers need no look
        native = _answer(target, "linspace", (start, end, steps), {"base": None, "dtype": dtype})
        return made(native, dtype, target, requires_grad)
    return _spaced("linspace", _numbers("linspace", start, end), steps, None, dtype, device, requires_grad, out)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: Tensor | None = None, dtype: Any = None,
             layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``steps`` powers of ``base``, whose exponents are evenly spaced from ``start`` to ``end``, both included."""
    if layout is not None:
        only_strided("logspace", layout)
    return _spaced("logspace", _numbers("logspace", start, end), steps, float(base), dtype, device, requires_grad, out)


def eye(n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A matrix of ``n`` rows and ``m`` columns with ones on the diagonal and zeros elsewhere."""
    if layout is not None:
        only_strided("eye", layout)
    m = n if m is None else m
    if type(n) is int and type(m) is int and 0 <= n < 2**10 and 0 <= m < 2**10 and out is None and dtype is None:
        dtype, target = dtypes.get_default_dtype(), as_device(device)  # the usual sizes need no look
        return made(_answer(target, "eye", (n, m), {"dtype": dtype}), dtype, target, requires_grad)
    if n < 0 or m < 0:
        raise ShapeError(f"eye: n must be greater or equal to 0, got {min(n, m)}; pass sizes >= 0")
    if dtype is None:
        dtype = dtypes.get_default_dtype() if out is None else out.dtype
    dtype = dtypes.as_dtype(dtype, "eye")
    device = as_device(device)
    result = made(_run("eye", device, "eye", (n, m), {"dtype": dtype}), dtype, device, requires_grad)
    return result if out is None else store("eye", result, out)


def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor of one number, of the default floating dtype unless another is named."""
    return full(
        (), s, dtype=dtype or dtypes.get_default_dtype(), layout=layout, device=device, requires_grad=requires_grad
    )


def _triangle(op: str, row: int, col: int, offset: int, upper: bool, dtype: Any, device: Any) -> Tensor:
    row, col, offset = (rules.whole(op, *one) for one in (("row", row), ("col", col), ("offset", offset)))
    if row < 0 or col < 0:
        raise ShapeError(f"{op}: row and col must be non-negative, got {row} and {col}; pass sizes >= 0")
    dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype, op)
    device = as_device(device)
    native = _run(op, device, "triangle_indices", (row, col, offset), {"upper": upper, "dtype": dtype})
    return new_tensor(native, dtype, device)


def _run(op: str, device: Any, name: str, numbers: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What the kernel answers, for a dtype that the device has."""
    check_stored(op, options["dtype"], device)
    return _answer(device, name, numbers, options)


def _answer(device: Any, name: str, numbers: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What the kernel answers; where it has no room, with the caches freed."""
    try:
        return device.kernels[name](*numbers, **options)
    except MemoryError as error:
        return again(device, name, numbers, options, error)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Tensor:
    """The indices of the lower triangle of a matrix, row by row: of shape ``(2, n)``, rows first."""
    if layout is not None:
        only_strided("tril_indices", layout)
    return _triangle("tril_indices", row, col, offset, False, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Tensor:
    """The indices of the upper triangle of a matrix, row by row: of shape ``(2, n)``, rows first."""
    if layout is not None:
        only_strided("triu_indices", layout)
    return _triangle("triu_indices", row, col, offset, True, dtype, device)


@operation(method=False, samples=samples.meshgrid)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates: the i-th is the i-th vector along dim i, expanded over the others' sizes; views.

    Args:
        indexing: ``"ij"``, or ``"xy"`` with the first two dims swapped.
    """
    found = list(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else list(tensors)
    if not found:
        raise ShapeError("meshgrid: meshgrid expects a non-empty TensorList, got none; pass at least one vector")
    if indexing not in (None, "ij", "xy"):
        raise ShapeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}; pass one of those')
    for i, one in enumerate(found):
        if type(one) is not Tensor:
            check_tensors("meshgrid", **{f"tensors[{i}]": one})
        if len(one.native.shape) > 1:
            raise ShapeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(one.shape)}; flatten it"
            )
        if one.dtype is not found[0].dtype:
            raise DtypeError(
                f"meshgrid: expects all tensors to have the same dtype, got {found[0].dtype} and {one.dtype}"
            )
    swap = indexing == "xy" and len(found) > 1
    if swap:
        found[0], found[1] = found[1], found[0]
    shape = tuple([one.native.shape[0] if one.native.shape else 1 for one in found])
    ndim, grids = len(found), []
    for at, one in enumerate(found):
        lined = (*(1,) * at, shape[at], *(1,) * (ndim - at - 1))
        grids.append(_expand.view(_view.view(one, {"shape": lined}), {"shape": shape}))  # type: ignore[attr-defined]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@operation(method=False, samples=samples.cartesian_prod)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each vector, a row for each."""
    from tensorcore.ops.shapes.join import stack

    check_tensors("cartesian_prod", **{f"tensors[{i}]": one for i, one in enumerate(tensors)})
    for one in tensors:
        if one.ndim != 1:
            raise ShapeError(f"cartesian_prod: Expect a 1D vector, but got shape {list(one.shape)}; flatten it")
    if len(tensors) == 1:
        return tensors[0]
    return stack([one.reshape(-1) for one in meshgrid(*tensors, indexing="ij")], 1)  # type: ignore[attr-defined]


@operation(method=False, samples=samples.one_hot)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at each class: of shape ``(*, num_classes)``; as many as there are classes where -1."""
    if type(tensor) is not Tensor:
        check_tensors("one_hot", tensor=tensor)
    if tensor.dtype is not dtypes.int64:
        raise DtypeError(
            f"one_hot: one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}; use .long()"
        )
    if not tensor.numel() and num_classes <= 0:
        raise ShapeError(
            "one_hot: Can not infer total number of classes from empty tensor, got num_classes=-1; name it"
        )
    kernels = tensor.device.kernels
    known = tensor.numel() and (tensor.device.capabilities.values or num_classes == -1)
    lowest, highest = kernels["index_bounds"](tensor.native) if known else (0, -1)
    if lowest < 0:
        raise UsageError("one_hot: Class values must be non-negative, got a negative one; shift them")
    if num_classes == -1:
        num_classes = kernels["highest"](tensor.native) + 1
    elif highest >= num_classes:
        raise UsageError(
            f"one_hot: Class values must be smaller than num_classes, got {highest} for {num_classes}; raise it"
        )
    classes = arange(num_classes, device=tensor.device)
    native = kernels["cast"](
        kernels["eq"](kernels["unsqueeze"](tensor.native, dim=tensor.ndim), classes.native), dtype=dtypes.int64
    )
    return new_tensor(native, dtypes.int64, tensor.device)
