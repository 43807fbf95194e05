"""Sparse tensors joined, turned, indexed and changed in place: against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

from .made import coo, csr, dense, hybrid

# PyTorch warns that its sparse tensors are new.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")

SHAPES = {
    "cat": lambda m, x: m.cat([x, x * 2], 1),
    "cat of dense dims": lambda m, x: m.cat([x, x * 2], -1),
    "stack": lambda m, x: m.stack([x, x * 2], 1),
    "permute": lambda m, x: x.permute(1, 0, *range(2, x.dim())),
    "transpose": lambda m, x: m.transpose(x, 0, 1),
    "unsqueeze": lambda m, x: x.unsqueeze(0),
    "unsqueeze behind": lambda m, x: m.unsqueeze(x, -1),
    "select": lambda m, x: x.select(1, -1),
    "index": lambda m, x: x[1],
    "index of both": lambda m, x: x[1, 2],
    "index of the second": lambda m, x: x[:, 0],
    "index from the back": lambda m, x: x[..., 0],
    "clone": lambda m, x: m.clone(x),
    "zeros_like": lambda m, x: m.zeros_like(x),
    "floor_divide": lambda m, x: x.coalesce().floor_divide(2),
    "type_as": lambda m, x: x.type_as(x.double()),
    "sparse_mask": lambda m, x: (x * 2).coalesce().sparse_mask(x.coalesce()),
}


@pytest.mark.parametrize("make", [coo, hybrid], ids=["coo", "hybrid"])
@pytest.mark.parametrize("case", SHAPES)
def test_shapes(torch: ModuleType, case: str, make: Any) -> None:
    """Joined, turned and indexed they hold what PyTorch's hold, and are sparse where those are."""
    found = [SHAPES[case](m, make(m)) for m in (tc, torch)]
    assert found[0].is_sparse == found[1].is_sparse
    assert str(found[0].dtype).rpartition(".")[2] == str(found[1].dtype).rpartition(".")[2]
    np.testing.assert_array_equal(*[one.to_dense().numpy() for one in found])


def test_what_is_asked_of_all_elements(torch: ModuleType) -> None:
    """The norm, ``any``, ``isnan`` and the batched product are PyTorch's."""
    ours, theirs = coo(tc), coo(torch)
    assert ours.norm().item() == pytest.approx(theirs.norm().item())
    assert ours.any().item()
    assert not tc.zeros_like(ours).any().item()
    assert ours.isnan().to_dense().sum().item() == 0
    wide = [m.bmm(m.stack([x, x * 2]), m.stack([dense(m), dense(m)])) for m, x in ((tc, ours), (torch, theirs))]
    np.testing.assert_allclose(*[one.numpy() for one in wide], rtol=1e-5)
    linear = [m.nn.functional.linear(dense(m).t(), x) for m, x in ((tc, ours), (torch, theirs))]
    np.testing.assert_allclose(*[one.numpy() for one in linear], rtol=1e-5)


def test_gradients_through_shapes() -> None:
    """Values get the gradients through what is joined, turned and indexed that they get through dense tensors."""
    found = []
    for form in (lambda x: x, lambda x: x.to_dense()):
        values = tc.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x = form(tc.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3)))
        turned = tc.cat([x, x * 3]).transpose(0, 1)
        made = turned @ tc.arange(8.0).reshape(4, 2)
        (made.pow(2).sum() + x[1].sum() * 5 + tc.stack([x, x])[0].sum()).backward()
        found.append(values.grad.numpy())
    np.testing.assert_allclose(*found)


def test_in_place(torch: ModuleType) -> None:
    """Numbers and sparse tensors change a sparse tensor in place; what does not fit leaves it as it is."""
    found = []
    for m in (tc, torch):
        x = coo(m).coalesce()
        same = x
        x.mul_(2).add_(x.clone()).div_(4).neg_()
        x += x.clone()
        x *= 3
        assert same is x
        y = m.zeros_like(x)
        y.copy_(x)
        found.append([x.to_dense().numpy(), y.to_dense().numpy()])
    np.testing.assert_array_equal(*found)
    x = coo(tc)
    before = x.to_dense().tolist()
    for wrong in (lambda: x.add_(tc.ones(2, 3)), lambda: x.copy_(tc.ones(2, 3)), lambda: x.copy_(coo(tc).t())):
        with pytest.raises(RuntimeError):
            wrong()
    assert x.to_dense().tolist() == before
    with pytest.raises(RuntimeError, match="leaf Variable"):
        coo(tc, grad=True).mul_(2)


@pytest.mark.parametrize("change", [
    lambda x, s: x.add_(s), lambda x, s: x.add_(s, alpha=-0.5), lambda x, s: x.sub_(s), lambda x, s: x.sub_(s, alpha=2),
    lambda x, s: x.mul_(s), lambda x, s: x.__iadd__(s), lambda x, s: x.__imul__(s),
])  # fmt: skip
def test_a_dense_tensor_takes_a_sparse_one_in_place(change: Callable[[Any, Any], Any], torch: ModuleType) -> None:
    """``weight.add_(sparse_gradient, alpha=-lr)`` and its kin write into the dense tensor, a part of another one included."""
    found = []
    for m in (tc, torch):
        whole = m.arange(12.0).reshape(4, 3)
        part = whole[1:3]
        assert change(part, coo(m)) is part
        recorded = m.ones(2, 3, requires_grad=True)
        change(recorded * 2, coo(m)).pow(2).sum().backward()
        found.append(np.concatenate([whole.numpy(), recorded.grad.to_dense().numpy()]))
    np.testing.assert_array_equal(*found)


def test_a_dense_tensor_refuses_a_sparse_one_that_does_not_fit() -> None:
    """Another dtype or size is an error, and the dense tensor stays what it was."""
    for x in (tc.ones(2, 3, dtype=tc.int64), tc.ones(3), tc.ones(2, 2)):
        with pytest.raises(RuntimeError):
            x.add_(coo(tc))
        assert x.tolist() == tc.ones_like(x).tolist()


def test_indices_that_do_not_fit() -> None:
    """Too many, out of range, or of another kind: each is refused with its sentence."""
    x = coo(tc)
    for index, error in (((0, 0, 0), IndexError), (5, IndexError), (tc.tensor([0]), NotImplementedError)):
        with pytest.raises(error):
            x[index]
    assert csr(tc)[1].to_dense().tolist() == [4.0, 0.0, 5.0]
