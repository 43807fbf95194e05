"""A stand-in for a backend's ``compile``: it runs a group step by step, so that grouping is tried without changing a bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorcore as tc
from tensorcore.backend.program import Program

__all__ = ["Stepwise", "stepwise"]


class Stepwise:
    """Notes the groups it was asked for.

    Args:
        refuses: answer that no group can be fused.
    """

    def __init__(self, refuses: bool = False) -> None:
        self.groups: list[Program] = []
        self.refuses = refuses

    def __call__(self, group: Program) -> Any:
        self.groups.append(group)
        return None if self.refuses else stepwise(group)


def stepwise(group: Program) -> Any:
    """A kernel of the group, as ``Backend.compile`` promises it: contiguous results, some of them into given arrays."""
    kernels = tc.device("cpu").kernels

    def run(*natives: Any, out: Any = None) -> tuple[Any, ...]:
        made = [np.asarray(one, order="C") for one in group.run(kernels, natives)]
        for i, one in enumerate(made):
            if out is not None and out[i] is not None:
                assert out[i].flags.c_contiguous
                out[i][...] = one
                made[i] = out[i]
        return tuple(made)

    return run
