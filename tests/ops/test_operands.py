"""What stands where a tensor or a number belongs and is none, or another one: every op answers as PyTorch does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import TensorcoreError
from tensorcore.ops.define import OPS
from tests.ops.registry_calls import RANDOM, UNDEFINED, Call, calls_of, counterpart, own, run, same

SAMPLED = sorted(
    name for name, op in OPS.items() if op.samples is not None and op.function is not None and name[0] != "_"
)
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None, "a str": lambda: "x", "a list": lambda: [1.0], "an int": lambda: 3, "an object": object,
}  # fmt: skip

# Where we answer otherwise on purpose: op -> why. An entry that is not needed fails the suite.
_OPERATORS = "written with Python's operators in PyTorch, which take a number here and there"
_EDGES = "PyTorch has two forms, one of them without the argument; None is its default here"
DIFFERENT = {
    "cumulative_trapezoid": _EDGES,
    "gaussian_nll_loss": _OPERATORS,
    "histogramdd": "the number of the edges is looked at before what they are",
    "index_put": "None is an index that takes a whole dim, as in brackets; PyTorch has it for the method alone",
    "multilabel_soft_margin_loss": _OPERATORS,
    "repeat_interleave": "None is the default of the counts; PyTorch has two forms",
    "trapezoid": _EDGES,
    "trapz": _EDGES,
}


def misplaced(call: Call) -> Iterator[tuple[str, Call]]:
    """The call with one of its tensors, or the last of a list of them, replaced by what is none."""
    places: list[tuple[str, Any, Callable[[Any], Call]]] = []
    for i, one in enumerate(call.args):
        places.append(
            (f"argument {i}", one, lambda new, i=i: Call((*call.args[:i], new, *call.args[i + 1 :]), call.kwargs))
        )
    for key, one in call.kwargs.items():
        places.append((key, one, lambda new, key=key: Call(call.args, {**call.kwargs, key: new})))
    for where, one, replaced in places:
        listed = isinstance(one, (list, tuple)) and one and all(isinstance(part, np.ndarray) for part in one)
        for what, make in WRONG.items():
            if listed or isinstance(one, np.ndarray):
                yield f"{what} as {where}", replaced(make())
            if listed:
                yield f"{what} as the last of {where}", replaced(type(one)([*one[:-1], make()]))


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_what_is_no_tensor_is_refused_as_pytorch_refuses_it(name: str, torch: Any) -> None:
    """The error is of PyTorch's type and says what was expected, and what PyTorch takes is taken."""
    function = counterpart(torch, name)
    if function is None:
        pytest.skip(f"PyTorch has no function named {name}")
    found = [
        text for call in calls_of(name) for what, wrong in misplaced(call) if (text := told(torch, name, wrong, what))
    ]
    if name in DIFFERENT:
        assert found, f"{name}: agrees with PyTorch; strike it off DIFFERENT"
    else:
        assert not found, "\n".join(found)


def told(torch: Any, name: str, wrong: Call, what: str) -> str:
    """What the call does otherwise than in PyTorch, or nothing."""
    theirs, _ = run(torch, counterpart(torch, name), wrong, "float64")  # type: ignore[arg-type]
    ours, _ = run(tc, own(name), wrong, "float64")
    if not isinstance(theirs, Exception):
        return f"{what}: {ours!r}" if isinstance(ours, Exception) else ""
    # PyTorch's functions that are written in Python reach for an attribute, which is no answer to follow.
    kind = TypeError if isinstance(theirs, AttributeError) else type(theirs)
    if isinstance(ours, kind) and (isinstance(ours, TensorcoreError) or "argument" in str(ours)):
        return ""
    return f"{what}: {ours!r} for {theirs!r}"


def other_numbers(call: Call) -> Iterator[tuple[str, Callable[[Any], Call]]]:
    """The call with one of its numbers, or all of a list of ints, as one of NumPy's or as 0-d tensors."""

    def changed(one: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        listed = isinstance(one, (list, tuple)) and one and all(type(part) is int for part in one)
        if type(one) in (int, float) or listed:
            numpy = np.int64 if type(one) is not float else np.float64
            yield "a 0-d tensor", lambda module: type(one)(map(module.tensor, one)) if listed else tensor(module, one)
            yield "a number of NumPy's", lambda module: type(one)(map(numpy, one)) if listed else numpy(one)

    def tensor(module: Any, one: Any) -> Any:
        return module.tensor(one, dtype=module.float64 if type(one) is float else module.int64)

    for i, one in enumerate(call.args):
        for what, make in changed(one):
            yield (
                f"{what} as argument {i}",
                lambda module, i=i, make=make: Call((*call.args[:i], make(module), *call.args[i + 1 :]), call.kwargs),
            )
    for key, one in call.kwargs.items():
        for what, make in changed(one):
            yield (
                f"{what} as {key}",
                lambda module, key=key, make=make: Call(call.args, {**call.kwargs, key: make(module)}),
            )


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in SAMPLED if name not in UNDEFINED])
def test_numbers_may_be_of_numpy_or_tensors_without_dims(name: str, torch: Any) -> None:
    """Where PyTorch takes such a number for an int or a float, the result is PyTorch's."""
    function = counterpart(torch, name)
    if function is None:
        pytest.skip(f"PyTorch has no function named {name}")
    for number, call in enumerate(calls_of(name)):
        for what, made in other_numbers(call):
            theirs, _ = run(torch, function, made(torch), "float64")
            if isinstance(theirs, Exception):
                continue
            ours, _ = run(tc, own(name), made(tc), "float64")
            assert not isinstance(ours, Exception), f"call {number}, {what}: {ours!r}"
            if name not in RANDOM and name != "polygamma":  # of which PyTorch has fewer digits
                same(ours, theirs, "float64", f"call {number}, {what}")
