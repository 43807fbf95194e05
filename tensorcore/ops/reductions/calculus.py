"""Calculus on samples: differences, gradients of a grid, integrals by the trapezoidal rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors, plain
from tensorcore.ops.output import store
from tensorcore.ops.samples import numeric as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.ops.shapes.views_part import key_at, slice_op
from tensorcore.tensor import Tensor

__all__ = ["cumulative_trapezoid", "diff", "gradient", "trapezoid", "trapz"]


@operation(samples=samples.diff)
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *,
         out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The ``n``-th differences of neighbours along ``dim``; of bools whether neighbours differ.

    Args:
        prepend, append: tensors to put before and after the input along ``dim`` first.
    """
    if type(input) is not Tensor:
        check_tensors("diff", input=input)
    if prepend is not None and type(prepend) is not Tensor:
        check_tensors("diff", prepend=prepend)
    if append is not None and type(append) is not Tensor:
        check_tensors("diff", append=append)
    shape = input.native.shape
    if not shape:
        raise ShapeError("diff: diff expects input to be at least one-dimensional, got a 0-d tensor; use unsqueeze(0)")
    ends = [] if prepend is append is None else [("prepend", prepend), ("append", append)]
    for name, one in ends:
        if one is not None and one.ndim != input.ndim:
            raise ShapeError(
                f"diff: diff expects prepend or append to be the same dimension as input, got {name} of {one.ndim} dims "
                f"for {input.ndim}; reshape it"
            )
    n = rules.whole("diff", "n", n)
    if n < 0:
        raise UsageError(f"diff: order must be non-negative but got {n}; pass 0 or more")
    if not n:  # as it is, whatever else is asked for
        return input.clone() if out is None else store("diff", input, out)  # type: ignore[attr-defined]
    at = rules.wrap_dim("diff", dim, len(shape))
    made: Any = cat([one for one in (prepend, input, append) if one is not None], at) if ends else input
    for _ in range(min(n, made.native.shape[at])):
        size = made.native.shape[at] - 1
        later = slice_op.view(made, {"key": key_at(at, slice(1, size + 1, 1))})
        earlier = slice_op.view(made, {"key": key_at(at, slice(0, size, 1))})
        made = later.logical_xor(earlier) if made.dtype is dtypes.bool_ else later - earlier
    return made if out is None else store("diff", made, out)


# Integrals


def _no_bool(op: str, *values: Tensor) -> None:
    if any([one.dtype is dtypes.bool_ for one in values]):
        raise DtypeError(f"{op}: received a bool input for `x` or `y`, but bool is not supported, got one; use .int()")


def _checked(op: str, y: Tensor, x: Any, dx: Any, dim: int) -> tuple[int, Any]:
    """The dim, and the distance of the samples: a number, or a tensor that broadcasts with the sums of neighbours."""
    if x is not None and dx is not None:
        raise ArgumentTypeError(f"{op}: expected x or dx, got both; leave one out")
    check_tensors(op, y=y)
    at = rules.wrap_dim(op, dim, y.ndim)
    if not y.native.shape:
        raise rules.DimensionError(f"{op}: Dimension specified as {dim} but tensor has no dimensions, got a 0-d tensor")
    _no_bool(op, y, *([x] if isinstance(x, Tensor) else ()))
    if x is None:
        dx = plain(dx)
        if dx is not None and dtypes.kind_of(dx) not in ("integer", "floating"):
            raise ArgumentTypeError(f"{op}: Currently, we only support dx as a real number, got {dx!r}; pass a float")
        return at, 1.0 if dx is None else dx
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(f"{op}: expected x to be a Tensor, got {x!r}; pass dx=... for an even spacing")
    if x.ndim == 1:
        if x.native.shape[0] != y.native.shape[at]:
            raise ShapeError(
                f"{op}: There must be one `x` value for each sample point, got {x.native.shape[0]} for {y.native.shape[at]}"
            )
        x = x.reshape([-1 if i == at else 1 for i in range(y.ndim)])  # type: ignore[attr-defined]
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.native.shape))  # type: ignore[attr-defined]
    return at, diff(x, 1, at)


def _neighbours(y: Any, at: int) -> Any:
    """The sums of each two neighbours."""
    length = y.native.shape[at]
    return y.narrow(at, 0, max(length - 1, 0)) + y.narrow(at, min(1, length), max(length - 1, 0))


@operation(samples=samples.trapezoid, method=False)
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of samples ``y`` along ``dim`` by the trapezoidal rule.

    Args:
        x: where the samples were taken: one number for each, or a tensor that broadcasts with ``y``.
        dx: their distance, 1 unless told otherwise.
    """
    at, gap = _checked("trapezoid", y, x, dx, dim)
    if not y.native.shape[at]:
        return y.new_zeros([size for i, size in enumerate(y.native.shape) if i != at])  # type: ignore[attr-defined, no-any-return]
    if not isinstance(gap, Tensor):
        whole: Any = y
        return (whole.sum(at) - (whole.select(at, 0) + whole.select(at, -1)) * 0.5) * gap  # type: ignore[no-any-return]
    return (_neighbours(y, at) * gap).sum(at) / 2.0  # type: ignore[no-any-return]


@operation(samples=samples.trapezoid, method=False)
def trapz(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """As :func:`trapezoid`."""
    return trapezoid(y, x, dx=dx, dim=dim)


@operation(samples=samples.trapezoid, method=False)
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integrals from the first sample to each later one, see :func:`trapezoid`."""
    at, gap = _checked("cumulative_trapezoid", y, x, dx, dim)
    if not isinstance(gap, Tensor):
        return (_neighbours(y, at) * (gap / 2.0)).cumsum(at)  # type: ignore[no-any-return]
    return (_neighbours(y, at) * gap).cumsum(at) / 2.0  # type: ignore[no-any-return]


# Gradients of a grid


@operation(samples=samples.gradient, method=False)
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The derivative of a sampled function along each of ``dim`` (all of them where None).

    Second-order accurate inside (for uneven coordinates too), of order ``edge_order`` at the edges.

    Args:
        spacing: the distance of the samples: a number, one for each dim, or a vector of coordinates for each dim.
    """
    if type(input) is not Tensor:
        check_tensors("gradient", input=input)
    if input.dtype in (dtypes.uint8, dtypes.bool_):
        raise DtypeError(f"gradient: torch.gradient does not support {input.dtype.name} input, got one; use .int()")
    if edge_order not in (1, 2):
        raise UsageError(f"gradient: torch.gradient only supports edge_order=1 and edge_order=2, got {edge_order}")
    spacing, dim = plain(1 if spacing is None else spacing), plain(dim)
    several = isinstance(spacing, (list, tuple))
    count = input.ndim if dim is None else 1 if isinstance(dim, int) else len(dim)
    steps = list(spacing) if several else [spacing] * count
    if any([isinstance(one, Tensor) for one in steps]):
        check_tensors("gradient", **{f"spacing[{i}]": one for i, one in enumerate(steps)})
    elif any([dtypes.kind_of(one) is None for one in steps]):
        raise ArgumentTypeError(f"gradient: expected spacing as numbers or as tensors, got {spacing!r}; pass floats")
    if len(steps) != count:
        raise ShapeError(
            f"gradient: torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to the "
            f"number of dims, {count}, got a list of length {len(steps)}; give one for each"
        )
    dims = rules.wrap_dims("gradient", dim, input.ndim)
    for at, step in zip(dims, steps, strict=True):
        size = input.native.shape[at]
        if size < edge_order + 1:
            raise ShapeError(
                f"gradient: torch.gradient expected each dimension size to be at least edge_order+1, got {size} along {at}"
            )
        if isinstance(step, Tensor) and step.ndim == 1 and step.native.shape[0] != size:
            raise UsageError(
                f"gradient: torch.gradient expected each element of coordinates to have the same length as its dim, "
                f"got {step.native.shape[0]} for {size}"
            )
    return tuple([_slope(input, at, step, edge_order) for at, step in zip(dims, steps, strict=True)])


def _slope(y: Any, at: int, step: Any, edge_order: int) -> Tensor:
    n = y.native.shape[at]
    even = not isinstance(step, Tensor) or not step.native.shape
    if not even:
        shape = [-1 if i == at else 1 for i in range(y.ndim)]
        gaps: Any = diff(step).reshape(shape)  # type: ignore[attr-defined]

        def gap(start: int, length: int) -> Any:
            return gaps.narrow(at, start, length)
    else:

        def gap(start: int, length: int) -> Any:
            return step

    def part(start: int, length: int = 1) -> Any:
        return y.narrow(at, start, length)

    def three(start: int, length: int, left: Any, middle: Any, right: Any) -> Any:
        return left * part(start, length) + middle * part(start + 1, length) + right * part(start + 2, length)

    def edge(start: int) -> Any:
        if edge_order == 1:
            return (part(start + 1) - part(start)) / gap(start, 1)
        a, b = (gap(0, 1), gap(1, 1)) if start == 0 else (gap(n - 3, 1), gap(n - 2, 1))
        if start == 0:
            return three(0, 1, -(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b)))
        return three(n - 3, 1, b / (a * (a + b)), -(a + b) / (a * b), (2 * b + a) / (b * (a + b)))

    inner = n - 2
    if inner:
        if even:  # nothing is left of the element in the middle, whatever it is
            middle = (part(2, inner) - part(0, inner)) / (2 * step)
        else:
            a, b = gap(0, inner), gap(1, inner)
            middle = three(0, inner, -b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b)))
        return cat([edge(0), middle, edge(n - 2)], at)
    return cat([edge(0), edge(n - 2)], at)
