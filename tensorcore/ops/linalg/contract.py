"""Sums of products over named dims: ``einsum`` and ``tensordot``, through one batched matrix product for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from math import prod
from operator import mul as multiply
from typing import Any

from tensorcore.errors import ArgumentTypeError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.products import _plain_pair, _reshaped, matmul, take_diagonal
from tensorcore.ops.operands import check_tensors, plain
from tensorcore.ops.output import store
from tensorcore.ops.samples import nn as samples
from tensorcore.tensor import Tensor

__all__ = ["einsum", "tensordot"]

Names = tuple[Any, ...]
Shape = tuple[int, ...]
Plan = tuple[Shape | None, Shape, Shape | None, Shape, Shape, Names]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@operation(samples=samples.einsum, method=False)
def einsum(*args: Any) -> Tensor:
    """Sum of products after Einstein's convention: each letter is a dim, those not in the result are summed.

    Args:
        args: an equation such as ``"bij,bjk->bik"`` and the operands (or a list of them); or each
            operand followed by a list of its dims as ints below 52, and at the end perhaps the
            result's. ``...`` (``Ellipsis`` in a list) stands for all other dims, which broadcast.
            Without ``->`` the result has the letters that appear once, sorted, after the other dims.

    More than two operands are contracted from left to right, or in the order that ``opt_einsum``
    finds where that is installed.
    """
    if len(args) == 3 and type(args[0]) is str and type(args[1]) is Tensor is type(args[2]):
        found = _usual(args[0], tuple(args[1].native.shape), tuple(args[2].native.shape))
        if found is not None:
            made = _product(args[1], args[2], found[0])
            return made if found[1] is None else made.permute(found[1])  # type: ignore[attr-defined, no-any-return]
    equation, operands = _written(args)
    terms, result, sizes, path, places = _read(equation, tuple([tuple(one.native.shape) for one in operands]))
    if places is not None:  # nothing is summed
        laid = []
        for operand, (order, shape) in zip(operands, places, strict=True):
            one: Any = operand if order is None else operand.permute(order)  # type: ignore[attr-defined]
            laid.append(one if shape is None else one.reshape(shape))
        return reduce(multiply, laid)  # type: ignore[no-any-return]
    left = [_prepared(operand, term) for operand, term in zip(operands, terms, strict=True)]
    for pair in path:
        x, y = (left.pop(i) for i in sorted(pair, reverse=True))
        kept = {name for _, term in left for name in term} | set(result)
        # Popped from the back: the earlier operand is ``y``.
        left.append(_contracted(y, x, kept, sizes))
    made, term = _summed(*left[0], set(result))
    if len(term) != len(result):
        raise UsageError(f"einsum: expected each subscript of the result in an operand, got {equation!r}")
    return _ordered(made, term, tuple(result))


@lru_cache(1024)
def _read(equation: str, shapes: tuple[Shape, ...]) -> tuple[
    list[Names], list[Any], dict[Any, int], list[tuple[int, ...]], list[tuple[Shape | None, Shape | None]] | None
]:  # fmt: skip
    """The names of the dims of each operand and of the result, their sizes, which pairs are contracted, and how operands lie along
    the result where they are multiplied as they are. Nobody changes these."""
    terms, result = _parse(equation, shapes)
    sizes: dict[Any, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for name, size in zip(term, shape, strict=True):
            have = sizes.get(name, 1)
            if size != have and 1 not in (size, have):
                raise ShapeError(
                    f"einsum: operands do not broadcast with remapped shapes, got sizes {have} and {size} for one subscript "
                    f"of {equation!r}; give it one size"
                )
            sizes[name] = max(have, size) if 0 not in (have, size) else 0
    return terms, result, sizes, _path(terms, result, sizes), _places(terms, shapes, tuple(result))


def _places(
    terms: list[Names], shapes: tuple[Shape, ...], result: Names
) -> list[tuple[Shape | None, Shape | None]] | None:
    """The order of each operand's dims in the result, and its shape with ones for the dims that it lacks; None where one operand is
    alone, a dim is summed or a name is repeated."""
    if len(terms) < 2 or any(len(set(term)) < len(term) or not set(term) <= set(result) for term in terms):
        return None
    made: list[tuple[Shape | None, Shape | None]] = []
    for term, shape in zip(terms, shapes, strict=True):
        sizes = dict(zip(term, shape, strict=True))
        first = next((i for i, name in enumerate(result) if name in sizes), 0)  # ones in front are broadcasting's
        order = _order(term, tuple([name for name in result if name in sizes]))
        full = tuple([sizes.get(name, 1) for name in result[first:]])
        made.append((order, None if len(full) == len(shape) else full))
    return made


def _written(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    """Both ways of calling as an equation and operands."""
    if not args:
        raise ArgumentTypeError("einsum: must specify the equation string and at least one operand, got nothing")
    if isinstance(args[0], str):
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        if not operands:
            raise ArgumentTypeError(
                "einsum: must specify the equation string and at least one operand, got the string only"
            )
        equation = args[0]
    else:

        def letters(dims: Sequence[Any]) -> str:
            dims = [plain(one) for one in dims]
            if not all(one is Ellipsis or (isinstance(one, int) and 0 <= one < 52) for one in dims):
                raise UsageError(
                    f"einsum: not enough letters: expected subscripts as ints in [0, 52), got {list(dims)}"
                )
            return "".join("..." if one is Ellipsis else _LETTERS[one] for one in dims)

        operands = args[: len(args) // 2 * 2 : 2]
        equation = ",".join(letters(dims) for dims in args[1::2])
        if len(args) % 2:
            equation += "->" + letters(args[-1])
    for one in operands:
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"einsum: expected operands as Tensors, got {type(one).__name__}; use torch.tensor(...)"
            )
    return equation, list(operands)


def _parse(equation: str, shapes: tuple[Shape, ...]) -> tuple[list[Names], list[Any]]:
    """A tuple of dim names for each operand, and the result's; the dims under an ellipsis are named by ints from the back."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    texts = inputs.split(",")
    if len(texts) != len(shapes):
        raise UsageError(
            f"einsum: more operands were provided than specified in the equation, or fewer: got {len(shapes)} for {equation!r}"
        )
    terms: list[tuple[Any, ...]] = []
    widest = 0
    for text, shape in zip(texts, shapes, strict=True):
        before, dots, after = text.partition("...")
        _check_letters(equation, before + after)
        ndim = len(shape)
        hidden = ndim - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise ShapeError(
                f"einsum: the number of subscripts in the equation ({len(before) + len(after)}) does not match the number of "
                f"dimensions ({ndim}) for an operand, got {text!r} for shape {list(shape)}"
            )
        widest = max(widest, hidden)
        terms.append((*before, *range(hidden - 1, -1, -1), *after))
    broadcast = list(range(widest - 1, -1, -1))
    if not arrow:
        letters = [name for term in terms for name in term if isinstance(name, str)]
        return terms, broadcast + sorted({one for one in letters if letters.count(one) == 1})
    before, dots, after = output.partition("...")
    _check_letters(equation, before + after)
    known = {name for term in terms for name in term}
    for one in before + after:
        if one not in known or (before + after).count(one) > 1:
            raise UsageError(
                f"einsum: output subscript {one} does not appear in the equation for any input operand, or appears twice, "
                f"got {equation!r}"
            )
    return terms, [*before, *(broadcast if dots else ()), *after]


@lru_cache(1024)
def _usual(equation: str, a: Shape, b: Shape) -> tuple[Plan, tuple[int, ...] | None] | None:
    """How two operands of these shapes are one product of matrices, and the order of its dims; None where they are not, where a
    dim is summed by itself, a letter repeated or a size of 1 stretched, and where the equation is wrong."""
    try:
        terms, result = _parse(equation, (a, b))
    except (ArgumentTypeError, ShapeError, UsageError):
        return None
    x, y = (dict(zip(term, shape, strict=True)) for term, shape in zip(terms, (a, b), strict=True))
    if len(x) != len(a) or len(y) != len(b) or not x.keys() ^ y.keys() <= set(result) <= x.keys() | y.keys():
        return None
    if any(x[name] != y[name] for name in x.keys() & y.keys()):
        return None
    plan = _plan(terms[0], a, terms[1], b, frozenset(result))
    return None if plan is None else (plan, _order(plan[-1], tuple(result)))


def _order(have: Names, wanted: Names) -> tuple[int, ...] | None:
    return None if have == wanted else tuple([have.index(name) for name in wanted])


def _check_letters(equation: str, letters: str) -> None:
    for one in letters:
        if one not in _LETTERS:
            raise UsageError(
                f"einsum: invalid subscript given, got {one!r} in {equation!r}; subscripts must be in [a-zA-Z]"
            )


def _prepared(operand: Tensor, term: Names) -> tuple[Tensor, Names]:
    """An operand in which each name stands once: repeated ones become the diagonal."""
    if len(set(term)) == len(term):
        return operand, term
    names = list(term)
    for name in dict.fromkeys(term):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if operand.native.shape[first] != operand.native.shape[second]:
                raise ShapeError(
                    f"einsum: subscript {name} is repeated for an operand but the sizes don't match, got "
                    f"{operand.native.shape[first]} != {operand.native.shape[second]}"
                )
            operand = apply(take_diagonal, (operand,), {"dim1": first, "dim2": second})
            del names[second], names[first]
            names.append(name)
    return operand, tuple(names)


@lru_cache(maxsize=1)
def _pathfinder() -> Any:
    """What finds an order of contractions, where it is installed; looked for once, which takes a hundred microseconds."""
    try:
        from opt_einsum.paths import auto
    except ImportError:
        return None
    return auto


def _path(terms: list[Names], result: list[Any], sizes: dict[Any, int]) -> list[tuple[int, ...]]:
    """Pairs of positions to contract; each contraction's result goes to the end of the list."""
    count = len(terms)
    if count > 2 and (auto := _pathfinder()) is not None:
        found = auto([set(term) for term in terms], set(result), sizes)
        if all(len(pair) == 2 for pair in found):
            return list(found)
    # From left to right: after the first pair, the running product is at the end and the next operand in front.
    return [(0, 1)] + [(0, remaining - 1) for remaining in range(count - 1, 1, -1)] if count > 1 else []


def _summed(operand: Tensor, term: tuple[Any, ...], kept: set[Any]) -> tuple[Tensor, tuple[Any, ...]]:
    """An operand without the dims that nobody else needs."""
    dims = tuple(i for i, name in enumerate(term) if name not in kept)
    if not dims:
        return operand, term
    return operand.sum(dims), tuple(name for name in term if name in kept)  # type: ignore[attr-defined]


def _contracted(
    left: tuple[Tensor, Names], right: tuple[Tensor, Names], kept: set[Any], sizes: dict[Any, int]
) -> tuple[Tensor, Names]:
    """Two operands as one, by a batched matrix product."""
    x, x_term = _summed(*left, kept | set(right[1]))
    y, y_term = _summed(*right, kept | set(left[1]))
    both = [name for name in x_term if name in y_term]
    # A size of 1 broadcasts against the other operand's.
    x = _expanded(x, x_term, both, sizes)
    y = _expanded(y, y_term, both, sizes)
    plan = _plan(x_term, tuple(x.native.shape), y_term, tuple(y.native.shape), frozenset(kept))
    if plan is not None:
        return _product(x, y, plan), plan[-1]
    rows = [name for name in x_term if name not in both]
    columns = [name for name in y_term if name not in both]
    x = _ordered(x, x_term, (*both, *rows))
    y = _ordered(y, y_term, (*both, *columns))
    x = x.reshape(*x.native.shape, *[1] * len(columns))
    y = y.reshape(*y.native.shape[: len(both)], *[1] * len(rows), *y.native.shape[len(both) :])
    return x * y, (*both, *rows, *columns)


@lru_cache(1024)
def _plan(x_term: Names, x_shape: Shape, y_term: Names, y_shape: Shape, kept: frozenset[Any]) -> Plan | None:
    """How two operands become matrices, or batches of them: the order of the dims of each, and its shape; then the shape and the
    names of their product. None where nothing is summed."""
    both = [name for name in x_term if name in y_term]
    batch = [name for name in both if name in kept]
    inner = [name for name in both if name not in kept]
    if not inner:
        return None
    rows = [name for name in x_term if name not in both]
    columns = [name for name in y_term if name not in both]
    sizes = dict(zip(x_term, x_shape, strict=True)) | dict(zip(y_term, y_shape, strict=True))
    b, m, k, n = ([sizes[name] for name in names] for names in (batch, rows, inner, columns))
    front = (prod(b),) if batch else ()
    return (
        _order(x_term, (*batch, *rows, *inner)), (*front, prod(m), prod(k)),
        _order(y_term, (*batch, *inner, *columns)), (*front, prod(k), prod(n)),
        (*b, *m, *n), (*batch, *rows, *columns),
    )  # fmt: skip


def _product(x: Any, y: Any, plan: Plan) -> Tensor:
    x_order, left, y_order, right, shape, _ = plan
    x = x if x_order is None else x.permute(x_order)
    y = y if y_order is None else y.permute(y_order)
    made: Any = matmul(
        x if x.native.shape == left else x.reshape(left), y if y.native.shape == right else y.reshape(right)
    )
    return made if made.native.shape == shape else made.reshape(shape)  # type: ignore[no-any-return]


def _expanded(operand: Tensor, term: tuple[Any, ...], names: list[Any], sizes: dict[Any, int]) -> Tensor:
    shape = tuple(operand.native.shape)
    wanted = tuple(sizes[name] if name in names else size for name, size in zip(term, shape, strict=True))
    return operand if wanted == shape else operand.expand(wanted)


def _ordered(operand: Tensor, have: tuple[Any, ...], wanted: tuple[Any, ...]) -> Tensor:
    return operand if have == wanted else operand.permute(*[have.index(name) for name in wanted])


@operation(samples=samples.tensordot, method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Products summed over several dims at once.

    Args:
        dims: how many of the last dims of ``a`` meet the first ones of ``b``; or two lists of dims.
    """
    if isinstance(dims, Tensor):
        # One number, however many dims it has, counts dims, as in PyTorch.
        dims = int(dims.item()) if dims.numel() == 1 else dims.tolist()
    check_tensors("tensordot", a=a, b=b)
    x, y = tuple(a.native.shape), tuple(b.native.shape)
    if (
        type(dims) is int
        and 0 < dims <= min(len(x), len(y))
        and x[-dims:] == y[:dims]
        and out is None
        and _plain_pair(a, b)
    ):
        front, inner, behind = x[:-dims], prod(y[:dims]), y[dims:]
        return _reshaped("matmul", a, (prod(front), inner), b, (inner, prod(behind)), front + behind)
    if isinstance(dims, int):
        if dims < 0:
            raise UsageError(f"tensordot: tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(len(x), len(y)):
            raise ShapeError(
                f"tensordot: tensordot expects dims < ndim_a and ndim_b, got dims={dims} for {len(x)}D and {len(y)}D"
            )
        dims_a, dims_b = tuple(range(len(x) - dims, len(x))), tuple(range(dims))
    elif not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise ShapeError(
            f"tensordot: tensordot expects dims to be int or two lists of ints, got dims={dims!r}; pass e.g. 1"
        )
    else:
        dims_a, dims_b = (
            rules.wrap_dims("tensordot", list(dims[0]), len(x)),
            rules.wrap_dims("tensordot", list(dims[1]), len(y)),
        )
    if len(dims_a) != len(dims_b):
        raise ShapeError(
            f"tensordot: both dimension lists should have same length, got {list(dims_a)} and {list(dims_b)}"
        )
    for i, j in zip(dims_a, dims_b, strict=True):
        if x[i] != y[j] and 1 not in (x[i], y[j]):
            raise ShapeError(
                f"tensordot: contracted dimensions need to match, but first has size {x[i]} in dim {i} and second has size "
                f"{y[j]} in dim {j}"
            )
        if x[i] != y[j]:
            # The sum over the longer one is what a stretched size of 1 gives.
            a = a.sum(i, True, dtype=a.dtype) if y[j] == 1 else a  # type: ignore[attr-defined]
            b = b.sum(j, True, dtype=b.dtype) if x[i] == 1 else b  # type: ignore[attr-defined]
            x, y = tuple(a.native.shape), tuple(b.native.shape)
    rows = [i for i in range(len(x)) if i not in dims_a]
    columns = [i for i in range(len(y)) if i not in dims_b]
    inner = prod(x[i] for i in dims_a)
    left = a.permute(*rows, *dims_a).reshape(prod(x[i] for i in rows), inner)
    right = b.permute(*dims_b, *columns).reshape(inner, prod(y[i] for i in columns))
    made = matmul(left, right).reshape([x[i] for i in rows] + [y[i] for i in columns])
    return made if out is None else store("tensordot", made, out)
