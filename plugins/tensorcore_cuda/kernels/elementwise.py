"""Elementwise kernels: the expressions as kernels of a table, casts, and fused programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.expressions import EXPRESSIONS, Expression
from tensorcore_cuda.kernels.launch import C_TYPES, Driver
from tensorcore_cuda.kernels.pointwise import Body, Pointwise, broadcast, reach_of

__all__ = ["cast_of", "into", "kernels", "like", "number_of"]

Native = Any
Run = Callable[..., Any]

_BOOL = np.dtype(np.bool_)
KINDS = {dtype: "b" if dtype.kind == "b" else "i" if dtype.kind in "iu" else "f" for dtype in C_TYPES}
NUMBERS = {"f": "float", "d": "double", "i": "int64", "b": "int64"}


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """Kernels by name, for those that the table has; what one does not take goes to the table's."""
    maker = _Maker(driver)
    made = {name: maker.kernel(name, table[name]) for name in EXPRESSIONS if name in table}
    for name in ("gelu", "gelu_backward"):
        if name in made:
            made[name] = _by_approximation(made[name], maker.kernel(name.replace("gelu", "gelu_tanh"), table[name]))
    if "pow" in made:
        made["pow"] = _by_exponent(made["pow"], maker.kernel("pow_by_number", table["pow"]))
    made["cast"] = maker.cast(table["cast"])
    made["contiguous"] = maker.contiguous(table["contiguous"])
    made["copy"] = maker.copy(table["copy"])
    made["fill"] = maker.fill(table["fill"])
    made["masked_fill"] = maker.masked_fill(table["masked_fill"])
    return made


def _by_approximation(exact: Run, by_tanh: Run) -> Run:
    def gelu(*arrays: Native, approximate: str = "none") -> Native:
        return (by_tanh if approximate == "tanh" else exact)(*arrays)

    return gelu


def _by_exponent(of_arrays: Run, of_number: Run) -> Run:
    def pow(x: Native, y: Any, *rest: Any, **options: Any) -> Native:
        return (of_number if type(y) in (int, float, bool) else of_arrays)(x, y, *rest, **options)

    return pow


class _Maker:
    """Makes the kernels of one device."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.array = driver.xp.ndarray
        self.pointwise = Pointwise(driver)

    def kernel(self, name: str, fallback: Run) -> Run:
        """The kernel of one expression."""
        expression = EXPRESSIONS[name]
        array, pointwise, empty = self.array, self.pointwise, self.driver.empty
        letters, defaults = "abc"[: expression.operands], dict(expression.options)
        bodies: dict[Any, tuple[Body, np.dtype[Any], Callable[..., bool]] | None] = {}

        def find(key: tuple[Any, ...]) -> tuple[Body, np.dtype[Any], Callable[..., bool]] | None:
            made = _body(expression, letters, key) if len(key) == len(letters) else None
            bodies[key] = None if made is None else (*made, pointwise.flat(made[0]))
            return bodies[key]

        def kernel(*operands: Any, out: Native | None = None, **options: Any) -> Native:
            if len(operands) > len(letters):  # by position, as NumPy's functions take it
                *operands, out = operands  # type: ignore[assignment]
            key = tuple([one.dtype if type(one) is array else type(one) for one in operands])
            found = bodies[key] if key in bodies else find(key)
            if (
                found is None
                or (options and not options.keys() <= defaults.keys())
                or (out is not None and out.dtype != found[1])
            ):
                return fallback(*operands, **options) if out is None else fallback(*operands, out=out, **options)
            body, dtype, flat = found
            arrays = [one for one in operands if type(one) is array]
            numbers: Any = () if len(arrays) == len(operands) else [one for one in operands if type(one) is not array]
            if defaults:
                numbers = [*numbers, *[options.get(option, default) for option, default in defaults.items()]]
            shape, dense = arrays[0].shape, True
            for one in arrays:
                if one.shape != shape:
                    shape, dense = np.broadcast_shapes(*[one.shape for one in arrays]), False
                    break
                dense = dense and one.flags.c_contiguous
            if out is not None:
                into(pointwise, body, arrays, numbers, out)
                return out
            if dense:
                made = empty(shape, dtype)
                count = made.size
                if 0 < count < 1 << 31 and flat(count, (*[one.data.ptr for one in arrays], made.data.ptr), numbers):
                    return made
            else:
                made = like(shape, dtype, arrays, empty)
            pointwise.run(body, shape, arrays, numbers, [made])
            return made

        kernel.__name__ = name
        return kernel

    def cast(self, fallback: Run) -> Run:
        def cast(x: Native, *, dtype: Any) -> Native:
            target = dtype.numpy
            if x.dtype not in C_TYPES or target not in C_TYPES:
                return fallback(x, dtype=dtype)
            made = like(x.shape, target, [x], self.driver.empty)
            self.pointwise.run(cast_of(x.dtype, target), x.shape, [x], [], [made])
            return made

        return cast

    def contiguous(self, fallback: Run) -> Run:
        def contiguous(x: Native) -> Native:
            if x.dtype not in C_TYPES:
                return fallback(x)
            made = self.driver.empty(x.shape, x.dtype)
            self.pointwise.run(cast_of(x.dtype, x.dtype), x.shape, [x], [], [made])
            return made

        return contiguous

    def copy(self, fallback: Run) -> Run:
        def copy(target: Native, source: Native) -> Native:
            if (
                not isinstance(source, self.array)
                or source.dtype not in C_TYPES
                or target.dtype not in C_TYPES
                or source.ndim > target.ndim
            ):
                return fallback(target, source)
            into(self.pointwise, cast_of(source.dtype, target.dtype), [source], [], target)
            return target

        return copy

    def fill(self, fallback: Run) -> Run:
        def fill(target: Native, value: Any) -> Native:
            if target.dtype not in C_TYPES or type(value) not in (bool, int, float):
                return fallback(target, value)
            kind, number = C_TYPES[target.dtype], number_of(target.dtype)
            if number == "int64" and not -(1 << 63) <= value < 1 << 63:
                return fallback(target, value)
            value = bool(value) if target.dtype == _BOOL else int(value) if number == "int64" else value
            body = Body((), (number,), (kind,), f"y0 = (wide<{kind}>)n0;")
            self.pointwise.run(body, target.shape, [], [value], [target])
            return target

        return fill

    def masked_fill(self, fallback: Run) -> Run:
        def masked_fill(x: Native, mask: Native, value: Any, *, out: Native | None = None) -> Native:
            if x.dtype not in C_TYPES or mask.dtype != _BOOL:
                return fallback(x, mask, value, out=out)
            given = isinstance(value, self.array)
            if given and (value.dtype != x.dtype or value.ndim):
                return fallback(x, mask, value, out=out)
            kind = C_TYPES[x.dtype]
            if given:
                body = Body(("bool", kind, kind), (), (kind,), "y0 = x0 ? x1 : x2;")
                arrays, numbers = [mask, value, x], []
            else:
                body = Body(("bool", kind), (number_of(x.dtype),), (kind,), f"y0 = x0 ? (wide<{kind}>)n0 : x1;")
                arrays, numbers = [mask, x], [value]
            if out is not None:
                into(self.pointwise, body, arrays, numbers, out)
                return out
            shape = np.broadcast_shapes(x.shape, mask.shape)
            made = like(shape, x.dtype, [x], self.driver.empty)
            self.pointwise.run(body, shape, arrays, numbers, [made])
            return made

        return masked_fill


def into(pointwise: Pointwise, body: Body, arrays: list[Native], numbers: list[Any], out: Native) -> None:
    """Compute into an array; by way of a new one where its memory is read in another order."""
    for one in arrays:
        if one.data.ptr == out.data.ptr and broadcast(one, out.shape) == broadcast(out, out.shape):
            continue
        low, high = reach_of(one)
        start, stop = reach_of(out)
        if start < high and low < stop:
            made = pointwise.driver.empty(out.shape, out.dtype)
            pointwise.run(body, out.shape, arrays, numbers, [made])
            pointwise.run(cast_of(out.dtype, out.dtype), out.shape, [made], [], [out])
            return
    pointwise.run(body, out.shape, arrays, numbers, [out])


@cache
def cast_of(source: np.dtype[Any], target: np.dtype[Any]) -> Body:
    """A copy from one dtype to another; floats to integers are cut off, to bool they are compared with 0."""
    value = "y0 = x0 != 0;" if target == _BOOL else f"y0 = (wide<{C_TYPES[target]}>)x0;"
    return Body((C_TYPES[source],), (), (C_TYPES[target],), value)


def number_of(dtype: np.dtype[Any]) -> str:
    """The C type in which a number reaches operands of a dtype."""
    return "int64" if KINDS[dtype] != "f" else "double" if dtype.itemsize == 8 else "float"


def _body(expression: Expression, letters: str, kinds: tuple[Any, ...]) -> tuple[Body, np.dtype[Any]] | None:
    """The body for operands of these dtypes (or types of numbers) and its result's dtype; None where it takes no such."""
    arrays = [one for one in kinds if isinstance(one, np.dtype)]
    rest = arrays[1:] if expression.condition and isinstance(kinds[0], np.dtype) else arrays
    if not rest or (expression.condition and kinds[0] != _BOOL):
        return None
    dtype = rest[0]
    if dtype not in C_TYPES or KINDS[dtype] not in expression.kinds or any([one != dtype for one in rest]):
        return None
    number = number_of(dtype)
    takes = (bool, int) if number == "int64" else (bool, int, float)
    if any([one not in takes for one in kinds if not isinstance(one, np.dtype)]):
        return None
    if KINDS[dtype] == "b" and any([not isinstance(one, np.dtype) and one is not bool for one in kinds]):
        return None
    c_type = C_TYPES[dtype]
    lines, inputs, numbers = [f"typedef wide<{c_type}> W;"], 0, 0
    for letter, kind in zip(letters, kinds, strict=True):
        if isinstance(kind, np.dtype):
            lines.append(f"const auto {letter} = x{inputs};")
            inputs += 1
        else:
            lines.append(f"const W {letter} = (W)n{numbers};")
            numbers += 1
    for option, _ in expression.options:
        lines.append(f"const W {option} = (W)n{numbers};")
        numbers += 1
    result = _BOOL if expression.result == "bool" else dtype
    lines.append(f"y0 = {expression.text};")
    body = Body(tuple([C_TYPES[one] for one in arrays]), (number,) * numbers, (C_TYPES[result],), " ".join(lines))
    return body, result


def like(shape: tuple[int, ...], dtype: np.dtype[Any], arrays: list[Native], empty: Callable[..., Native]) -> Native:
    """A new array whose dims lie in memory in the order of those of the arrays, as NumPy's functions have them."""
    if len(shape) < 2 or all([one.flags.c_contiguous for one in arrays]):
        return empty(shape, dtype)
    steps = [broadcast(one, shape) for one in arrays]

    def before(i: int, j: int) -> bool:
        """Whether dim ``i`` has the longer steps, by the first array that says so."""
        for one in steps:
            if one[i] and one[j]:
                return abs(one[i]) > abs(one[j])
        return False

    order: list[int] = []
    for i in range(len(shape)):
        at = len(order)
        while at and before(i, order[at - 1]):
            at -= 1
        order.insert(at, i)
    if order == sorted(order):
        return empty(shape, dtype)
    made = empty(tuple([shape[i] for i in order]), dtype)
    return made.transpose([order.index(i) for i in range(len(shape))])
