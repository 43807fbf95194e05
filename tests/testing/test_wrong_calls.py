"""What wrong calls are answered with: the words of the golden file, on every device that computes."""

from __future__ import annotations

from typing import Any

import pytest

import tensorcore as tc
from tests.examples.test_backends import offered
from tests.testing.wrong_calls import BY_VALUE, CALLS, answer, given, golden, values

DEVICES = sorted({*tc.backends(), "lazy", "pyref", "sim:1", "torch", "jax", "opencl"} - {"meta"})


@pytest.fixture(scope="module", params=DEVICES)
def place(request: pytest.FixtureRequest) -> Any:
    """One device after the other that computes, those of examples/backends too where their library is installed."""
    with offered(request.param) as device, tc.fallback("cpu"):
        yield device


def test_the_golden_file_has_a_hundred_answers() -> None:
    """At least a hundred calls, each with an error, in more than eighty wordings."""
    found = golden()
    assert list(found) == CALLS, "run python -m tests.testing.wrong_calls"
    assert len(found) == len(CALLS) >= 100
    assert "no error" not in found.values()
    assert len({text.partition(": ")[2].partition(":")[2] for text in found.values()}) > 80


@pytest.mark.parametrize("call", CALLS)
def test_the_answer_is_the_golden_one(place: Any, call: str) -> None:
    """Type and text of the error are those of the golden file, and what was given is as it was."""
    if call in BY_VALUE and not place.capabilities.host:
        pytest.skip("found out later, if at all, where the memory is not the host's")
    names = given(place)
    before = values(names)
    assert answer(call, names) == golden()[call], "run python -m tests.testing.wrong_calls"
    assert values(names) == before
