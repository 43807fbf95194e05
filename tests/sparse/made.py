"""The sparse tensors that the tests compare, in either library."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DENSE", "INDICES", "VALUES", "coo", "csr", "dense", "hybrid"]

INDICES = [[0, 1, 1, 0], [2, 0, 2, 2]]
VALUES = [3.0, 4.0, 5.0, -1.0]
DENSE = np.arange(12, dtype=np.float32).reshape(3, 4) / 5 - 1


def coo(lib: Any, grad: bool = False) -> Any:
    """A matrix of (2, 3) with an index that is there twice."""
    return lib.sparse_coo_tensor(INDICES, VALUES, (2, 3), requires_grad=grad)


def hybrid(lib: Any) -> Any:
    """A tensor of (2, 3, 2) whose last dim is dense."""
    return lib.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]], (2, 3, 2))


def csr(lib: Any, grad: bool = False) -> Any:
    """A matrix of (2, 3) row by row."""
    return lib.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3), requires_grad=grad)


def dense(lib: Any) -> Any:
    """A matrix of (3, 4)."""
    return lib.tensor(DENSE)
