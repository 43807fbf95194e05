"""Sparse tensors: against the dense ones, and against PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

from .made import DENSE, INDICES, VALUES, coo, csr, dense, hybrid

# PyTorch warns that its sparse tensors are new.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")

# What both libraries must answer alike.
CALLS: dict[str, Any] = {
    "repr": lambda lib: (repr(coo(lib)), repr(coo(lib).coalesce()), repr(hybrid(lib)), repr(csr(lib)), repr(csr(lib, True))),
    "repr with gradient": lambda lib: (repr(coo(lib, True)), repr(coo(lib, True) * 2)),
    "repr of nothing": lambda lib: (
        repr(lib.sparse_coo_tensor((2, 3))), repr(lib.zeros(3).to_sparse()), repr(lib.tensor(3.0).to_sparse())
    ),
    "repr of others": lambda lib: (
        repr(coo(lib).double()), repr(lib.eye(2).long().to_sparse()), repr(lib.eye(30).to_sparse()), repr(lib.eye(2).bool().to_sparse())
    ),
    "what it is": lambda lib: (
        tuple(coo(lib).shape), coo(lib).dim(), coo(lib).numel(), coo(lib)._nnz(), coo(lib).sparse_dim(), coo(lib).dense_dim(),
        hybrid(lib).sparse_dim(), hybrid(lib).dense_dim(), coo(lib).is_coalesced(), coo(lib).is_sparse, coo(lib).is_sparse_csr,
        csr(lib).is_sparse, csr(lib).is_sparse_csr, str(coo(lib).layout), str(csr(lib).layout), str(dense(lib).layout),
        isinstance(coo(lib), lib.Tensor), coo(lib).is_floating_point(), coo(lib).requires_grad, str(coo(lib).dtype),
        str(lib.sparse_coo), str(lib.sparse_csr), csr(lib)._nnz(), csr(lib).dense_dim(),
    ),
    "parts": lambda lib: (
        coo(lib)._indices(), coo(lib)._values(), coo(lib).coalesce().indices(), coo(lib).coalesce().values(),
        csr(lib).crow_indices(), csr(lib).col_indices(), csr(lib).values(), hybrid(lib).coalesce().values(),
    ),
    "made": lambda lib: (
        lib.sparse_coo_tensor(INDICES, VALUES), lib.sparse_coo_tensor([[0, 3]], [1, 2]), lib.sparse_coo_tensor((2, 0)),
        lib.sparse_coo_tensor([[1]], [1.0], (3,), dtype=lib.float64), lib.sparse_csr_tensor([0, 2], [0, 3], [1.0, 2.0]),
        lib.sparse_compressed_tensor([0, 2], [0, 3], [1.0, 2.0], layout=lib.sparse_csr),
    ),
    "to dense": lambda lib: (coo(lib).to_dense(), hybrid(lib).to_dense(), csr(lib).to_dense(), lib.sparse_coo_tensor((2, 3)).to_dense()),
    "to sparse": lambda lib: (
        dense(lib).to_sparse(), dense(lib).to_sparse(1), dense(lib).to_sparse_csr(), dense(lib).relu().to_sparse(),
        dense(lib).to_sparse(layout=lib.sparse_csr), coo(lib).to_sparse_csr(), csr(lib).to_sparse(), lib.ones(2, 3, 2).to_sparse(2),
    ),
    "arithmetic": lambda lib: (
        coo(lib) + coo(lib), coo(lib) - hybrid(lib).to_dense()[..., 0].to_sparse(), coo(lib) * 2, 2 * coo(lib), coo(lib) / 4,
        -coo(lib), coo(lib) * lib.tensor(3.0), coo(lib).coalesce() * coo(lib).coalesce(), lib.add(coo(lib), coo(lib), alpha=2),
        lib.mul(coo(lib), 2), lib.sub(coo(lib), coo(lib)), hybrid(lib) + hybrid(lib), hybrid(lib) * 3,
    ),
    "with dense": lambda lib: (
        lib.ones(2, 3) + coo(lib), coo(lib).coalesce() * lib.full((2, 3), 2.0), lib.add(lib.ones(2, 3), coo(lib), alpha=3),
    ),
    "of one": lambda lib: (
        coo(lib).abs(), coo(lib).sin(), lib.sqrt(coo(lib).abs()), coo(lib).tanh(), coo(lib).pow(2), coo(lib) ** 2, lib.neg(coo(lib)),
        coo(lib).relu(), coo(lib).sign(), lib.expm1(coo(lib)), csr(lib).sin(),
    ),
    "products": lambda lib: (
        lib.mm(coo(lib), dense(lib)), coo(lib) @ dense(lib), lib.sparse.mm(coo(lib), dense(lib)), csr(lib) @ dense(lib),
        lib.matmul(coo(lib), dense(lib)[:, 0]), coo(lib).mm(dense(lib)), dense(lib).t() @ coo(lib).t(), coo(lib).mv(dense(lib)[:, 1]),
        lib.mm(csr(lib), dense(lib)), lib.sparse.mm(coo(lib), coo(lib).t()), csr(lib) @ dense(lib)[:, 2],
    ),
    "addmm": lambda lib: (
        lib.addmm(lib.ones(2, 4), coo(lib), dense(lib)), lib.sparse.addmm(lib.ones(2, 4), coo(lib), dense(lib), beta=2, alpha=3),
        lib.addmm(lib.ones(2, 4), csr(lib), dense(lib), alpha=2),
    ),
    "sums": lambda lib: (
        coo(lib).sum(), lib.sum(coo(lib)), lib.sparse.sum(coo(lib)), lib.sparse.sum(coo(lib), 0), lib.sparse.sum(coo(lib), (0, 1)),
        lib.sparse.sum(hybrid(lib), -1), lib.sparse.sum(hybrid(lib), 1), lib.sparse.sum(hybrid(lib), (0, 2)),
        lib.sparse.sum(coo(lib), 1, dtype=lib.float64), lib.sparse.sum(hybrid(lib), (0, 1)),
    ),
    "softmax": lambda lib: (
        lib.sparse.softmax(coo(lib), 0), lib.sparse.softmax(coo(lib), 1), lib.sparse.log_softmax(coo(lib), 1),
        lib.sparse.softmax(hybrid(lib), 2), lib.sparse.softmax(hybrid(lib), 1), lib.sparse.softmax(coo(lib), 1, dtype=lib.float64),
    ),
    "transposed": lambda lib: (coo(lib).t(), coo(lib).transpose(0, 1), hybrid(lib).transpose(0, 1)),
    "copies": lambda lib: (coo(lib).clone(), coo(lib).detach(), coo(lib).to(lib.float64), coo(lib).double(), copy.deepcopy(coo(lib))),
    "mask": lambda lib: lib.arange(6.0).reshape(2, 3).sparse_mask(coo(lib).coalesce()),
    "slices": lambda lib: (
        coo(lib).index_select(0, lib.tensor([1, 0, 1])), coo(lib).index_select(1, lib.tensor([2])), coo(lib)[1], coo(lib)[-1],
        hybrid(lib).index_select(2, lib.tensor([1])), hybrid(lib)[0], lib.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (4,))[1],
        coo(lib).index_select(0, lib.tensor([], dtype=lib.int64)),
    ),
    "older names": lambda lib: (lib.spmm(coo(lib), dense(lib)), lib.sparse_coo_tensor(INDICES, VALUES, lib.Size([2, 3])).cpu()),
    "new ones": lambda lib: (
        coo(lib).new(lib.tensor([[0], [1]]), lib.ones(1)), coo(lib).new(lib.tensor([[0], [1]]), lib.ones(1), lib.Size([2, 3])),
        coo(lib).double().new(2, 3), coo(lib).new(lib.Size([4])), coo(lib).new(), coo(lib).new().resize_as_(coo(lib)),
    ),
    "zeroed": lambda lib: coo(lib).zero_(),
    "from a layout": lambda lib: (
        lib.zeros(2, 3, layout=lib.sparse_coo), lib.empty((3,), layout=lib.sparse_coo, dtype=lib.float64),
        lib.zeros(2, 3, layout=lib.sparse_csr), lib.zeros_like(dense(lib), layout=lib.sparse_coo),
        dense(lib).new_zeros((2, 2), layout=lib.sparse_csr), lib.zeros(2, requires_grad=True, layout=lib.sparse_coo).requires_grad,
    ),
    "reduced products": lambda lib: tuple(
        [lib.sparse.mm(lib.sparse_csr_tensor([0, 2, 2, 3], [0, 2, 1], [1.0, -2.0, 3.0], (3, 3)), dense(lib), one)
         for one in ("sum", "mean", "amax", "amin")]
    ),
    "sampled products": lambda lib: lib.sparse.sampled_addmm(csr(lib), dense(lib)[:2], dense(lib).t(), beta=0.5, alpha=2.0),
}  # fmt: skip


def compare(mine: Any, theirs: Any) -> None:
    """The same elements in the same layout, or equal whatever else they are."""
    if isinstance(theirs, tuple):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            compare(one, other)
    elif hasattr(theirs, "detach"):
        assert str(mine.layout) == str(theirs.layout)
        assert str(mine.dtype) == str(theirs.dtype)
        assert tuple(mine.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(
            mine.detach().to_dense().numpy(), theirs.detach().to_dense().numpy(), rtol=1e-6, atol=1e-6
        )
    else:
        assert mine == theirs


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
def test_call(name: str, torch: ModuleType) -> None:
    """Results, layouts, texts and traits are PyTorch's."""
    compare(CALLS[name](tc), CALLS[name](torch))


# Functions of a sparse and a dense matrix that are differentiated; the sum of squares of the result is the loss.
GRADIENTS: dict[str, Any] = {
    "mm": lambda lib, s, d: s @ d,
    "sparse.mm": lambda lib, s, d: lib.sparse.mm(s, d),
    "addmm": lambda lib, s, d: lib.sparse.addmm(d[:2], s, d, beta=0.5, alpha=2.0),
    "turned": lambda lib, s, d: (s.t().t() @ d) * 2,
    "scaled": lambda lib, s, d: (s * 3) @ d,
    "coalesced": lambda lib, s, d: s.coalesce() @ d,
    "to_dense": lambda lib, s, d: s.to_dense() @ d,
    "sum": lambda lib, s, d: lib.sparse.sum(s) * d,
    "sum of rows": lambda lib, s, d: lib.sparse.sum(s, 0).to_dense() @ d,
    "softmax": lambda lib, s, d: lib.sparse.softmax(s, 1).to_dense() @ d,
    "twice": lambda lib, s, d: (s + s).to_dense() @ d,
    "mean": lambda lib, s, d: lib.sparse.mm(s.to_sparse_csr(), d, "mean"),
    "amax": lambda lib, s, d: lib.sparse.mm(s.to_sparse_csr(), d, "amax"),
    "amin of equals": lambda lib, s, d: lib.sparse.mm(s.to_sparse_csr(), d * 0 + 1, "amin") @ d.t(),
    "sampled": lambda lib, s, d: lib.sparse.sampled_addmm(
        s.to_sparse_csr(), d[:2, :3], d[:, :3].t(), beta=0.5
    ).to_dense(),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str, torch: ModuleType) -> None:
    """The gradients of the stored values and of the dense operand are PyTorch's."""
    answers = []
    for lib in (torch, tc):
        s = lib.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)).coalesce().requires_grad_()
        d = lib.tensor(DENSE, requires_grad=True)
        GRADIENTS[name](lib, s, d).square().sum().backward()
        gradient = s.grad.to_dense().numpy()
        answers.append((gradient[[0, 1, 1], [2, 0, 2]], d.grad.numpy()))
    for one, other in zip(answers[1], answers[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_gradient_of_a_graph_convolution() -> None:
    """Two sparse products in a row have the gradients of the dense ones, of the second order too."""
    adjacency = tc.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.2, 1.0]]).double()
    found = []
    for a in (adjacency, adjacency.to_sparse(), adjacency.to_sparse_csr()):
        w = tc.linspace(-1, 1, 12, dtype=tc.float64).reshape(3, 4).requires_grad_()
        made = a @ (a @ w).tanh()
        (g,) = tc.autograd.grad(made.square().sum(), w, create_graph=True)
        (second,) = tc.autograd.grad(g.square().sum(), w)
        found.append((made.detach().numpy(), g.detach().numpy(), second.numpy()))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.float16, tc.bfloat16, tc.int64, tc.complex64])
def test_product_in_every_dtype(dtype: Any) -> None:
    """A product with a sparse matrix is that with the dense one."""
    a = tc.tensor([[1, 0, 2], [0, 0, 0], [3, 4, 0]]).to(dtype)
    b = tc.tensor([[1, 2], [3, 4], [5, 6]]).to(dtype)
    assert ((a.to_sparse() @ b) == a @ b).all()


def test_backend_without_the_kernel() -> None:
    """Where a backend has no kernel for it, the product and its gradients are made of other ops."""
    from tensorcore.ops.sparse.arithmetic import _product

    s, d = coo(tc), dense(tc).requires_grad_()
    rows, columns = s._indices().unbind(0)
    values = s._values().requires_grad_()
    found = []
    for made in (
        _product((rows, columns, values, d), {"count": 2, "compressed": False}, tc.float32),
        _product.decomposition(rows, columns, values, d, count=2, compressed=False),
    ):
        found.append((made.detach(), *tc.autograd.grad(made.square().sum(), [values, d])))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-6)


# Calls that must fail in both.
BAD: dict[str, Any] = {
    "an index too high": lambda lib: lib.sparse_coo_tensor([[5]], [1.0], (3,), check_invariants=True),
    "a negative index": lambda lib: lib.sparse_coo_tensor([[-1]], [1.0], (3,), check_invariants=True),
    "too many values": lambda lib: lib.sparse_coo_tensor([[1]], [1.0, 2.0], (3,)),
    "another number of dims": lambda lib: lib.sparse_coo_tensor([[1]], [1.0], (3, 3)),
    "values of one that is not coalesced": lambda lib: coo(lib).values(),
    "indices of one that is not coalesced": lambda lib: coo(lib).indices(),
    "numpy": lambda lib: coo(lib).numpy(),
    "rows that do not rise": lambda lib: lib.sparse_csr_tensor(
        [0, 2, 1], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True
    ),
    "sizes that do not fit": lambda lib: coo(lib) + lib.sparse_coo_tensor((3, 3)),
    "inner sizes that do not fit": lambda lib: coo(lib) @ coo(lib),
    "a product of two dtypes": lambda lib: coo(lib) @ dense(lib).double(),
    "an op that there is not": lambda lib: lib.atan2(coo(lib), coo(lib)),
    "exp": lambda lib: lib.exp(coo(lib)),
    "by a matrix": lambda lib: coo(lib) / lib.ones(2, 3),
    "ones in a sparse layout": lambda lib: lib.ones(2, 3, layout=lib.sparse_coo),
    "a count in a sparse layout": lambda lib: lib.arange(3, layout=lib.sparse_coo),
    "random numbers in a sparse layout": lambda lib: lib.rand(2, layout=lib.sparse_coo),
    "a window in a sparse layout": lambda lib: lib.hann_window(3, layout=lib.sparse_coo),
    "a vector row by row": lambda lib: lib.zeros(3, layout=lib.sparse_csr),
    "a layout by its name": lambda lib: lib.zeros(3, layout="sparse_coo"),
    "another layout than out": lambda lib: lib.zeros(2, 3, out=lib.empty(2, 3), layout=lib.sparse_coo),
    "a reduction that there is not": lambda lib: lib.sparse.mm(csr(lib), dense(lib), "most"),
    "means of COO products": lambda lib: lib.sparse.mm(coo(lib), dense(lib), "mean"),
    "samples of another size": lambda lib: lib.sparse.sampled_addmm(csr(lib), dense(lib), dense(lib).t()),
    "samples of no product": lambda lib: lib.sparse.sampled_addmm(csr(lib), dense(lib)[:2], dense(lib)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str, torch: ModuleType) -> None:
    """What PyTorch refuses is refused, with an error of the same type."""
    errors = []
    for lib in (torch, tc):
        with pytest.raises(Exception) as caught:
            BAD[name](lib)
        errors.append(caught.value)
    builtin = next(one for one in type(errors[0]).__mro__ if one.__module__ == "builtins")
    assert isinstance(errors[1], builtin), errors


def test_layouts_that_only_fill() -> None:
    """An op that fills all elements says so in a sparse layout, instead of giving a dense tensor."""
    for make in (tc.ones, tc.rand, tc.eye):
        with pytest.raises(NotImplementedError, match=f"{make.__name__}: is not implemented for sparse layouts"):
            make(3, layout=tc.sparse_csr)
    assert tc.ones(2, layout=tc.strided).tolist() == [1.0, 1.0]
    assert tc.zeros_like(tc.ones(2).to_sparse(), layout=tc.strided).tolist() == [0.0, 0.0]


def test_dense_ops_say_so() -> None:
    """An op without a sparse form names what to do."""
    with pytest.raises(NotImplementedError, match=r"use to_dense\(\)"):
        coo(tc).reshape(6)
    with pytest.raises(NotImplementedError, match=r"use to_dense\(\)"):
        tc.cumsum(coo(tc), 0)


@pytest.mark.oracle
@pytest.mark.parametrize("layer", ["Embedding", "EmbeddingBag"])
def test_sparse_gradient_of_embeddings(layer: str, torch: ModuleType) -> None:
    """The gradient is sparse, has the rows that were asked for, and adds up over walks and uses."""
    answers = []
    for lib in (torch, tc):
        lib.manual_seed(8)
        table = getattr(lib.nn, layer)(6, 3, sparse=True, padding_idx=1)
        weight = lib.arange(12.0).reshape(4, 3)
        first = lib.tensor([[0, 5], [1, 5]])
        (table(first).sum() * 2).backward()
        texts = repr(table.weight.grad.coalesce())
        (
            table(first).reshape(-1, 3)[:2] * weight[:2]
            + table(first).reshape(-1, 3)[:2]
            + table(first).reshape(-1, 3)[:2]
        ).sum().backward()
        answers.append((texts, table.weight.grad, table.weight.grad.is_sparse))
    compare(answers[1], answers[0])


def test_shared_table() -> None:
    """A dense and a sparse gradient of one table add up to a dense one."""
    weight = tc.ones(4, 2, requires_grad=True)
    loss = tc.nn.functional.embedding(tc.tensor([1, 1]), weight, sparse=True).sum() + weight.sum()
    loss.backward()
    assert weight.grad.tolist() == [[1, 1], [3, 3], [1, 1], [1, 1]]


OPTIMIZERS: dict[str, Any] = {
    "SparseAdam": lambda optim, p: optim.SparseAdam(p, lr=0.1),
    "SparseAdam maximizing": lambda optim, p: optim.SparseAdam(p, lr=0.1, betas=(0.5, 0.9), maximize=True),
    "SGD": lambda optim, p: optim.SGD(p, lr=0.1),
    "Adagrad": lambda optim, p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_trajectory(name: str, torch: ModuleType) -> None:
    """Ten steps along sparse gradients lead where PyTorch's do; a state read back goes on from there."""
    answers = []
    for lib in (torch, tc):
        table = lib.nn.Embedding.from_pretrained(lib.arange(12.0).reshape(6, 2) / 7, freeze=False, sparse=True)
        optimizer = OPTIMIZERS[name](lib.optim, table.parameters())
        for step in range(10):
            if step == 5:
                state, optimizer = optimizer.state_dict(), OPTIMIZERS[name](lib.optim, table.parameters())
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            table(lib.tensor([step % 4, 5, 5])).square().sum().backward()
            optimizer.step()
        answers.append(table.weight.detach().numpy())
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-5)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop"])
def test_optimizers_without_sparse_steps(name: str) -> None:
    """An optimizer that cannot step along a sparse gradient says which one can, and moves nothing."""
    table = tc.nn.Embedding(4, 2, sparse=True)
    before = table.weight.detach().clone()
    table(tc.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients, please consider SparseAdam"):
        getattr(tc.optim, name)(table.parameters()).step()
    assert (table.weight == before).all()


def test_sparse_adam_refuses_dense() -> None:
    """SparseAdam is for sparse gradients alone."""
    p = tc.ones(3, requires_grad=True)
    p.sum().backward()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        tc.optim.SparseAdam([p]).step()


@pytest.mark.oracle
def test_files(torch: ModuleType) -> None:
    """Files with sparse tensors go both ways."""
    for source, target in ((torch, tc), (tc, torch)):
        file = io.BytesIO()
        held = {"a": coo(source), "b": coo(source).coalesce(), "c": csr(source), "d": hybrid(source)}
        source.save(held, file)
        file.seek(0)
        found = target.load(file, weights_only=True)
        for name, one in held.items():
            mine, theirs = (found[name], one) if target is tc else (one, found[name])
            compare(mine, theirs)
            if name != "c":
                assert found[name].is_coalesced() == one.is_coalesced()


@pytest.mark.oracle
def test_damaged_file(torch: ModuleType) -> None:
    """A file whose indices are outside the tensor is refused."""
    file = io.BytesIO()
    made = torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (8,))
    made._indices()[0, 1] = 900
    torch.save({"x": made}, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="found index 900"):
        tc.load(file)


def test_pickled() -> None:
    """A sparse tensor comes back from a pickle."""
    for one in (coo(tc), csr(tc), hybrid(tc)):
        again = pickle.loads(pickle.dumps(one))
        assert repr(again) == repr(one)


def test_no_elements() -> None:
    """Tensors without elements, or without rows, behave like others."""
    nothing = tc.sparse_coo_tensor((2, 3))
    assert (nothing @ tc.ones(3, 2)).tolist() == [[0, 0], [0, 0]]
    assert (nothing * nothing)._nnz() == 0
    assert (nothing + coo(tc)).to_dense().tolist() == coo(tc).to_dense().tolist()
    assert tc.sparse.sum(nothing) == 0
    assert tc.sparse.softmax(nothing, 1)._nnz() == 0
    assert nothing.to_sparse_csr().crow_indices().tolist() == [0, 0, 0]
    assert tc.zeros(0, 3).to_sparse().to_dense().shape == (0, 3)


def test_sparse_is_imported_when_used() -> None:
    """A program without sparse tensors does not import them."""
    import subprocess
    import sys

    code = "import sys, tensorcore as tc; (tc.ones(2, 2) @ tc.ones(2, 2)).sum(); print('tensorcore.ops.sparse.making' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_legacy_constructor() -> None:
    """``sparse.FloatTensor``, as older graph programs make their adjacency matrices, is here."""
    made = tc.sparse.FloatTensor(tc.tensor([[0, 1], [1, 0]]), tc.tensor([1.0, 2.0]), tc.Size([2, 2]))
    assert made.to_dense().tolist() == [[0, 1], [2, 0]]
    assert tc.sparse.LongTensor(tc.tensor([[0]]), tc.tensor([3])).dtype is tc.int64
