"""The programs of ``programs.py`` and ``refusals.py`` give what they give in PyTorch, or raise the same type of exception."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import TensorcoreError
from tests.func.programs import PROGRAMS
from tests.func.refusals import REFUSED
from tests.ops.registry_forms import tensors_of


def nested(value: Any) -> list[Any]:
    """The tensors of a result as arrays."""
    return [
        one.detach().resolve_conj().numpy() if hasattr(one, "resolve_conj") else one.detach().numpy()
        for one in tensors_of(value)
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_program_gives_the_numbers_of_pytorch(torch: Any, name: str) -> None:
    """Each tensor of the result has PyTorch's values, shape and dtype."""
    expected, found = nested(PROGRAMS[name](torch)), nested(PROGRAMS[name](tc))
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_program_is_refused_as_by_pytorch(torch: Any, name: str) -> None:
    """The exception is one that a program written for PyTorch catches."""
    with pytest.raises(Exception) as theirs:
        REFUSED[name](torch)
    builtin = next(one for one in type(theirs.value).__mro__ if one.__module__ == "builtins")
    with pytest.raises(builtin) as mine:
        REFUSED[name](tc)
    assert isinstance(mine.value, (TensorcoreError, IndexError, NotImplementedError, AttributeError))
