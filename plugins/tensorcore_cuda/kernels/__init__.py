"""The plugin's own CUDA kernels: sources beside the launchers that put them into the table, before CuPy's functions.

A ``.cu`` file holds a family's kernels as templates over the element types, the ``.py`` file of the same name chooses
among them and launches; ``types.cuh``, ``block.cuh`` and ``functions.cuh`` are what all share. Elementwise kernels are
generated from C text (``expressions.py``, ``pointwise.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensorcore_cuda.kernels import index as _index
from tensorcore_cuda.kernels import sparse as _sparse
from tensorcore_cuda.kernels.launch import Driver

__all__ = ["NONDETERMINISTIC", "Driver", "compiler", "over"]

NONDETERMINISTIC = {**_index.NONDETERMINISTIC, **_sparse.NONDETERMINISTIC}


def over(table: Mapping[str, Callable[..., Any]], driver: Driver) -> dict[str, Callable[..., Any]]:
    """The table with each kernel that exists here in the place of the one it falls back to."""
    from tensorcore_cuda.kernels import (
        attention,
        conv,
        elementwise,
        entropy,
        index,
        linalg,
        losses,
        norm,
        optim,
        pool,
        reduce,
        scan,
        softmax,
        sort,
        sparse,
    )

    made = dict(table)
    for one in (
        elementwise,
        linalg,
        reduce,
        softmax,
        entropy,
        losses,
        norm,
        optim,
        index,
        scan,
        sort,
        pool,
        conv,
        attention,
        sparse,
    ):
        made.update(one.kernels(driver, dict(made)))
    return made


def compiler(driver: Driver) -> Callable[[Any], Callable[..., Any] | None]:
    """What ``Backend.compile`` asks: one kernel for a program, or None."""
    from tensorcore_cuda.kernels.pointwise import Pointwise
    from tensorcore_cuda.kernels.program import compiled

    pointwise = Pointwise(driver)
    return lambda program: compiled(program, pointwise)
