"""sparse.spdiags against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc

torch = pytest.importorskip("torch")


def alike(found: Any, expected: Any) -> None:
    assert str(found.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


BAD: dict[str, Any] = {
    "repeated offsets": lambda lib: lib.sparse.spdiags(lib.ones(2, 3), lib.tensor([1, 1]), (3, 3)),
    "too few offsets": lambda lib: lib.sparse.spdiags(lib.ones(2, 3), lib.tensor([1]), (3, 3)),
    "short offsets": lambda lib: lib.sparse.spdiags(lib.ones(1, 3), lib.tensor([1]).int(), (3, 3)),
    "a shape of three": lambda lib: lib.sparse.spdiags(lib.ones(1, 3), lib.tensor([1]), (3, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_calls_raise_as_pytorch(name: str) -> None:
    """The same kind of exception in both."""
    with pytest.raises(Exception) as theirs:
        BAD[name](torch)
    with pytest.raises(type(theirs.value)):
        BAD[name](tc)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_spdiags_sets_diagonals() -> None:
    """Above, on and below the main diagonal, of matrices larger and smaller than the diagonals, in COO and CSR."""
    for shape in ((5, 5), (2, 4), (3, 3)):
        answers = []
        for lib in (tc, torch):
            rows = lib.arange(9.0).reshape(3, 3) + 1
            made = lib.sparse.spdiags(rows, lib.tensor([0, -1, 2]), shape)
            packed = lib.sparse.spdiags(rows, lib.tensor([0, -1, 2]), shape, layout=lib.sparse_csr)
            answers.append((made.to_dense(), packed.to_dense(), made._indices(), packed.crow_indices()))
        for found, expected in zip(*answers, strict=True):
            alike(found, expected)
    # A diagonal wholly outside sets nothing; PyTorch wraps it into another row.
    outside = tc.sparse.spdiags(tc.arange(3.0), tc.tensor([2]), (4, 2))
    assert (outside._nnz(), outside.shape) == (0, (4, 2))
