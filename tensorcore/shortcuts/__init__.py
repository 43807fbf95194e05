"""Short ways in C through the functions that most calls pass, where they were built: the Python stays, and takes what is unusual.

A short way makes no tensor other than its function would: it looks whether a call is one of the usual ones, fills the slots of a
Tensor where they lie, and hands everything else on. ``TENSORCORE_NATIVE=0`` leaves them out, ``=1`` makes it an error that they
are missing, as with the kernels of the CPU. While a function runs other code than its own, which looks on (``amp.bodies``), its
short way is closed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

__all__ = [
    "along_way",
    "before",
    "behind",
    "elementwise_way",
    "fused_way",
    "in_python",
    "learn",
    "pair_way",
    "place_way",
    "placed_way",
    "product_place_way",
    "product_way",
    "properties",
    "reason",
    "reduced_way",
]

F = TypeVar("F", bound=Callable[..., Any])
_wanted = os.environ.get("TENSORCORE_NATIVE", "")
_library: Any = None
properties: dict[str, property] = {}  # in Python, of those that have a short way
_ways: dict[FunctionType, Any] = {}  # what stands before functions
reason = "TENSORCORE_NATIVE=0 turns them off"  # why there are none; empty where there are
if _wanted != "0":
    try:
        import tensorcore.shortcuts._shortcuts as _library
    except ImportError as error:
        if _wanted == "1":
            raise
        reason = f"they were not built, or not for this Python: {error}"
    else:
        reason = ""


def learn(tensor: type, size: type, version: type, node: type, unusual: Any, mode: Any, next_order: Any) -> None:
    """Tells the short ways where a Tensor has its slots, and what they ask; gives it those of its properties that have one.

    Args:
        unusual, mode: the counters of threads that are not plain, and the switches of each.
        next_order: the clock.
    """
    if _library is not None:
        for name, found in _library.learn(tensor, size, version, node, unusual, mode, next_order).items():
            properties[name] = vars(tensor)[name]
            setattr(tensor, name, found)


def before(name: str, *known: Any) -> Callable[[F], F]:
    """A decorator: the short way of that name before a function, which takes what that does not; as it is where there is none.

    Args:
        known: what the short way has to know besides.
    """

    def enter(function: F) -> F:
        if _library is None:
            return function
        way = _library.before(name, function, *known)
        if type(function) is FunctionType:
            _ways[function] = way
        return way  # type: ignore[no-any-return]

    return enter


def behind(function: FunctionType, twin: Any) -> Any:
    """A twin of a function behind the short way that stands before that one; the twin itself where there is none."""
    way = _ways.get(function)
    return twin if way is None else way.around(twin)


def in_python(function: Any) -> Any:
    """The function behind its short way; itself where it has none."""
    return function.__wrapped__ if _library is not None and type(function) is _library.shortcut else function


def elementwise_way(
    op: Any,
    again: Callable[..., Any],
    accepts: frozenset[Any] | None,
    result: Any,
    floats: frozenset[Any] = frozenset(),
    integers: frozenset[Any] = frozenset(),
    narrow: frozenset[Any] = frozenset(),
    places: bool = False,
) -> Callable[[F], F]:
    """A decorator: the elementwise call of one tensor, of two, or of one and a number, where nothing is unusual, before its function.

    Args:
        again: asks a kernel that found no memory a second time.
        accepts: the dtypes for which the kernel computes in the operands' own; None for all.
        result: the result's dtype where that is not theirs.
        floats, integers: the dtypes beside which a number of Python's, or a whole one of 32 bits, may stand.
        narrow: those beside which one may stand on devices whose kernel takes it (``Backend.narrow_numbers``).
        places: whether an op of another kind has a short way to a place too.
    """
    # Products come here too, and have no short way to a place: they count as fewer than none.
    operands = len(op.inputs) if places or op.kind == "elementwise" else -len(op.inputs)
    return before("elementwise", op, op.name, accepts, result, floats, integers, _traits(op), again, narrow, operands)


def place_way(
    op: Any,
    accepts: frozenset[Any] | None,
    result: Any,
    floats: frozenset[Any] = frozenset(),
    integers: frozenset[Any] = frozenset(),
    narrow: frozenset[Any] = frozenset(),
    store: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """The same of a call with ``out=`` alone, which comes first, is written by the kernel, and is the answer; None for other calls.

    Args:
        store: of an op whose result has a shape of its own, as ``placed_way`` says; options of its kernel follow by name.
    """
    return before("into", op, op.kernel, accepts, result, floats, integers, store is None, store, narrow)(_no_place)


def placed_way(function: Callable[..., Any], title: str, store: Callable[..., Any]) -> Callable[..., Any]:
    """A call of the function whose results are copied into the tensors that come first, ``out``; None where that is unusual.

    Args:
        title, store: ``store(title, result, out)`` is where ``out`` has to take the result's shape.
    """
    return before("placed", function, title, store)(_no_place)


def along_way(
    op: Any,
    accepts: frozenset[Any],
    words: dict[str, Any],
    record: Callable[..., Any],
    store: Callable[..., Any],
    again: Callable[..., Any],
    result: Any = None,
    answer: Any = None,
    of_matrices: tuple[dict[str, Any], tuple[str, ...], int, bool | None] | None = None,
) -> Callable[[F], F]:
    """A decorator: the usual calls before a function of a tensor of those dtypes that works along a dim, by its kernel.

    Args:
        words: dim, bools and counts, as the function and its kernel name them, and what they are where left out; ``...`` for nothing.
        record, store, again: as ``apply`` and ``apply_into`` have them.
        result: the result's dtype, None for the tensor's, or a tuple of those of several.
        answer: the class of several results, which say where elements were: the function records them itself.
        of_matrices: of what works on matrices, and has no dim: what the kernel is always told, the words that it is never told, how
            many may be given by position, and whether the matrices are square; None there of what takes any dims.
    """
    known = result, answer, tuple(words), tuple(words.values()), record, store, again, of_matrices
    return before("along", op, accepts, *known)


def pair_way(
    op: Any,
    accepts: frozenset[Any],
    word: str,
    default: Any,
    positions: int,
    record: Callable[..., Any],
    store: Callable[..., Any],
    again: Callable[..., Any],
    result: Any = None,
) -> Callable[[F], F]:
    """The same of two tensors and one word, ``dim`` of cross products or a bool of sorted sequences.

    Args:
        default: what the word is where it is left out.
        positions: how many arguments may be given by position.
    """
    return before("pair", op, accepts, result, positions, (word,), (default,), record, store, again)


def reduced_way(
    op: Any,
    again: Callable[..., Any],
    accepts: frozenset[Any],
    dims: Any,
    store: Callable[..., Any],
    result: Any = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the usual calls before a reduction of a tensor of those dtypes.

    Args:
        again: asks a kernel that found no memory a second time.
        dims: True where a call with dims is usual too, or what takes it, and gives None where it is not.
        result: the result's dtype where that is not the tensor's.
        store: ``store(title, result, out)`` is where ``out`` has to take the result's shape.
    """
    return before("reduced", op, op.kernel, accepts, result, again, frozenset(), False, store, frozenset(), dims)


def product_way(
    op: Any, kernel: str, again: Callable[..., Any], accepts: frozenset[Any], dims: tuple[int, int]
) -> Callable[..., Any]:
    """The same of a product of two tensors of so many dims."""
    return before("product", op, kernel, accepts, None, *dims, _traits(op), again, frozenset())(_nothing)


def product_place_way(
    op: Any, kernel: str, accepts: frozenset[Any], dims: tuple[int, int], store: Callable[..., Any]
) -> Callable[..., Any]:
    """The same into ``out``, which comes first, as ``place_way`` says."""
    return before("product_into", op, kernel, accepts, None, *dims, False, store, frozenset())(_no_place)


def fused_way(kernel: str, again: Callable[..., Any]) -> Callable[..., Any]:
    """What the kernel of that name answers first to tensors of one device that are not recorded; None for all other calls."""
    return before("fused", kernel, again)(_no_call)


def _traits(op: Any) -> int:
    """How a call of the op is recorded, in bits."""
    facts = [bool(op.grads), op.keeps_inputs, op.keeps_out]
    facts += [formula in kept for kept in op.needed_for for formula in range(2)]
    return sum([1 << i for i, fact in enumerate(facts) if fact])


def _no_call(inputs: Any, options: Any, dtype: Any) -> Any:
    """In the place of a short way that was not built."""


def _no_place(out: Any, *inputs: Any, **options: Any) -> Any:
    """In the place of a short way that was not built."""


def _nothing(input: Any, other: Any = None) -> Any:
    """In the place of a short way that was not built."""
