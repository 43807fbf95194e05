"""Little programs about autograd answer as PyTorch does: values, versions, names of nodes, types of errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcore
from tests.autograd import checkpoints, functions, hooks, leaves, modes, walks, writes  # noqa: F401 - they enter programs
from tests.autograd.programs import PROGRAMS

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)


def answer(program: Callable[[Any], Any], library: Any) -> Any:
    """What a program returns, with tensors as arrays; or the builtin type of its error."""
    before = library.is_grad_enabled()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Using backward\\(\\) with create_graph=True")
            return plain(program(library), library)
    except ERRORS as error:
        return next(kind for kind in type(error).__mro__ if kind in ERRORS)
    finally:
        library.set_grad_enabled(before)


def plain(value: Any, library: Any) -> Any:
    if isinstance(value, library.Tensor):
        return value.detach().numpy().copy()
    if isinstance(value, (list, tuple)):
        return [plain(one, library) for one in value]
    return value


def compare(mine: Any, other: Any, place: str) -> None:
    if isinstance(mine, np.ndarray) or isinstance(other, np.ndarray):
        assert type(mine) is type(other), place
        assert mine.dtype == other.dtype, place
        assert mine.shape == other.shape, place
        np.testing.assert_allclose(mine, other, rtol=1e-12, err_msg=place)
    elif isinstance(mine, list) and isinstance(other, list):
        assert len(mine) == len(other), place
        for i, (a, b) in enumerate(zip(mine, other, strict=True)):
            compare(a, b, f"{place}[{i}]")
    else:
        assert mine == other, f"{place}: {mine} against {other}"


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_as_pytorch(name: str, torch: Any) -> None:
    """The program gives the same with both libraries."""
    compare(answer(PROGRAMS[name], tensorcore), answer(PROGRAMS[name], torch), name)
