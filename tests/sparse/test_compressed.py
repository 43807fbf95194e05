"""Compressed matrices by rows and columns, of elements and of blocks: what they hold, print and compute is PyTorch's."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import pytest

import tensorcore as tc

KINDS = ("csr", "csc", "bsr", "bsc")


def places(T: ModuleType) -> dict[str, Any]:
    """A matrix in each layout, by the names that the expressions use."""
    m = T.tensor([[1.0, 0, 2, 0], [0, 0, 3, 0], [0, 4, 0, 5], [0, 0, 0, 6]])
    d = T.arange(12.0).reshape(4, 3) / 7
    found = {"csr": m.to_sparse_csr(), "csc": m.to_sparse_csc(), "coo": m.to_sparse(), "m": m, "d": d, "T": T}
    return found | {"bsr": m.to_sparse_bsr((2, 2)), "bsc": m.to_sparse_bsc((2, 2)), "F": T.nn.functional}


def shown(T: ModuleType, expression: str) -> str:
    """What an expression gives: a sparse tensor as it prints, of a dense one the values and shape; or the error's type."""
    try:
        made = eval(expression, places(T))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return next(kind.__name__ for kind in (TypeError, NotImplementedError, RuntimeError) if isinstance(error, kind))
    if getattr(made, "layout", T.strided) != T.strided or not hasattr(made, "tolist"):
        return str(made)
    return f"{[round(one, 4) for one in made.flatten().tolist()]} {tuple(made.shape)}"


EACH = """{0}; {0}.t(); {0}.transpose(-1, 0); {0}.t().to_dense(); {0}.to_dense(); {0}.to_sparse(); {0} + {0}; {0} * 2; {0}.sum()
{0}.neg(); {0}.sin(); {0}.double(); {0}.clone().requires_grad_(); {0}.to_sparse_bsr((2, 2)); {0}.to_sparse_bsc((2, 2))
{0}._nnz(); {0}.sparse_dim(); {0}.dense_dim(); {0}.is_sparse; {0}.is_sparse_csr; {0}.crow_indices(); {0}.col_indices()
{0}.ccol_indices(); {0}.row_indices(); {0}.values(); {0}.indices(); {0}.coalesce(); {0}.is_coalesced(); {0}.numel(); {0}.stride()
{0}.numpy(); m.sparse_mask({0}); {0}.layout; T.zeros_like({0})._nnz()""".replace("\n", "; ").split("; ")
ROWS = """{0} @ d; d.t() @ {0}; T.mv({0}, d[:, 0]); T.addmm(d, {0}, d); T.sparse.mm({0}, d); F.linear(d.t(), {0}); m + {0}; {0} + m
{0}.to_sparse_csr(); {0}.to_sparse_csc(); {0}.to_sparse_bsr((1, 2)); {0}.to_sparse(layout=T.sparse_csc); {0}[1]; {0}[1, 2]
({0} @ {0}).to_dense()""".replace("\n", "; ").split("; ")
OTHERS = """csr * csr; csr * m; bsr @ d; T.mv(bsr, d[:, 0]); d.t() @ bsc; F.linear(d.t(), bsr); coo.to_sparse_csc()
coo.to_sparse_bsr((2, 2)); coo.to_sparse_bsr(2); m.to_sparse(layout=T.sparse_bsr, blocksize=(2, 2)); m.to_sparse_bsr((3, 2))
m.to_sparse_bsr((2,)); m.to_sparse(layout=T.sparse_csr, blocksize=(2, 2)); m.to_sparse(blocksize=(2, 2))
coo.to_sparse_bsr((3, 2)); T.zeros(4, 4, layout=T.sparse_csc)._nnz(); T.empty(4, 4, layout=T.sparse_bsr)
T.zeros(4, 6).to_sparse_bsr((2, 3)); T.zeros(4, 6).to_sparse_csc(); d.to_sparse_bsc((2, 3)); d.t().to_sparse_bsc((3, 1)).t()
T.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0]); T.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (3, 2))
T.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[1.0, 2, 3], [3, 4, 5]], [[5, 6, 7], [7, 8, 9]]])
T.sparse_bsc_tensor([0, 1, 2], [0, 1], [[[1.0, 2, 3], [3, 4, 5]], [[5, 6, 7], [7, 8, 9]]])
T.sparse_bsr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
T.sparse_csc_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2), check_invariants=True)
T.sparse_csc_tensor([0, 3, 2], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True)
T.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], layout=T.sparse_csc)
T.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], layout=T.strided)
m.values(); m.indices(); m.coalesce(); m.is_coalesced(); m.crow_indices(); m.sparse_dim(); m.dense_dim()
T.sspaddmm(coo, coo, m); coo.sspaddmm(coo, m, beta=2, alpha=3); T.smm(coo, m); coo.smm(d); T.hspmm(coo, d); T.hsmm(coo, d)
T.dsmm(coo, d); T.zeros(2, 3).to_sparse().resize_as_sparse_(coo); coo.clone().resize_as_sparse_(T.eye(2).to_sparse())
coo.clone().sparse_resize_((5, 6), 2, 0); coo.clone().sparse_resize_and_clear_((5,), 1, 0); T.crow_indices_copy(csr)
coo.clone().sparse_resize_((5, 6, 2), 2, 1); T.col_indices_copy(csr); T.ccol_indices_copy(csc); T.row_indices_copy(csc)"""
EXPRESSIONS = [one.format(kind) for one in EACH for kind in KINDS]
EXPRESSIONS += [one.format(kind) for one in ROWS for kind in ("csr", "csc")] + OTHERS.replace("\n", "; ").split("; ")


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_in_pytorch(expression: str, torch: ModuleType) -> None:
    """The expression has PyTorch's values, layout and text, or raises an error of its type."""
    assert shown(tc, expression) == shown(torch, expression)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_go_through_the_layout(kind: str, torch: ModuleType) -> None:
    """A dense matrix gets its gradient from the places that are stored, zeros of blocks among them."""
    found = []
    for T in (tc, torch):
        x = places(T)["m"].requires_grad_()
        made = getattr(x, f"to_sparse_{kind}")(*([(2, 1)] if kind[0] == "b" else []))
        (made.to_dense() * places(T)["d"].sum(1)).sum().backward()
        found.append(x.grad)
    for mine, theirs in zip(found[0].tolist(), found[1].tolist(), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_a_leaf_have_the_gradient(kind: str) -> None:
    """The gradient of a compressed leaf has its layout and places."""
    leaf = places(tc)[kind].requires_grad_()
    (leaf @ places(tc)["d"]).sum().backward()
    expected = places(tc)["d"].sum(1).expand(4, 4)
    assert leaf.grad.layout is leaf.layout
    stored = leaf.grad.to_dense() != 0
    assert tc.allclose(leaf.grad.to_dense()[stored], expected[stored])


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_files(kind: str, torch: ModuleType) -> None:
    """They go into PyTorch's files and come out of them."""
    for here, there in ((tc, torch), (torch, tc)):
        file = io.BytesIO()
        here.save({"x": places(here)[kind]}, file)
        file.seek(0)
        assert str(there.load(file)["x"]) == str(places(there)[kind])
