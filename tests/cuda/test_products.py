"""Matrix products on the device: one call of cuBLAS each, in the precision that the program allows."""

from __future__ import annotations

import pytest

import tensorcore as tc


@pytest.mark.standin
def test_tf32_is_a_switch() -> None:
    """float32 products are exact to float32 unless ``allow_tf32`` or the precision says otherwise, at each call anew."""
    x, y = tc.full((2, 2), 1 + 2**-12, device="cuda"), tc.eye(2, device="cuda")
    exact, rounded = x.cpu(), tc.ones(2, 2)

    def found():
        return [(x @ y).cpu(), tc.nn.functional.linear(x, y).cpu(), tc.bmm(x[None], y[None])[0].cpu()]

    assert all(tc.equal(one, exact) for one in found())
    try:
        tc.backends.cuda.matmul.allow_tf32 = True
        assert all(tc.equal(one, rounded) for one in found())
        tc.set_float32_matmul_precision("highest")
        assert all(tc.equal(one, exact) for one in found())
        tc.set_float32_matmul_precision("high")
        assert all(tc.equal(one, rounded) for one in found())
        assert tc.equal((x.double() @ y.double()).cpu(), exact.double())
    finally:
        tc.set_float32_matmul_precision("highest")


@pytest.mark.standin
@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16, tc.float32, tc.float64, tc.complex64])
def test_a_product_is_one_call(dtype, clock) -> None:
    """Of two matrices, of a batch, of a batch and one matrix, of turned ones: nothing is copied and nothing is cast."""
    x, y = (tc.ones(3, 4, 4, device="cuda", dtype=dtype) for _ in range(2))
    for left, right in ((x[0], y[0]), (x, y), (x, y[0]), (x[0], y), (x.mT, y), (x, y.mT), (x[1:], y[:2])):
        before = clock.launches, clock.copies
        made = left @ right
        assert (clock.launches, clock.copies) == (before[0] + 1, before[1])
        assert (made == 4).all()


@pytest.mark.parametrize("dtype", [tc.float32, tc.bfloat16, tc.complex64, tc.int64], ids=str)
@pytest.mark.parametrize("stored", ["coo", "csr"])
def test_sparse_products(dtype: tc.dtype, stored: str) -> None:
    """A sparse matrix times a dense one is what the CPU has, its gradients too, and always in one order where asked for."""
    ends = tc.tensor([[2, 0, 0, 3, 2], [1, 3, 0, 2, 3]])
    held = tc.sparse_coo_tensor(ends, tc.tensor([1, 2, 3, 4, 5], dtype=dtype), (4, 4)).coalesce()
    dense = (tc.arange(12).reshape(4, 3) - 5).to(dtype)
    differentiable = dtype.is_floating_point or dtype.is_complex

    def found(device: str) -> list[tc.Tensor]:
        sparse, x = held.to(device), dense.to(device, copy=True).requires_grad_(differentiable)
        values = sparse.values().detach().clone().requires_grad_(differentiable)
        if stored == "csr":
            rows = sparse.to_sparse_csr()
            sparse = tc.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), values, (4, 4))
        else:
            sparse = tc.sparse_coo_tensor(sparse.indices(), values, (4, 4))
        y = sparse @ x
        if differentiable:
            y.backward(tc.ones_like(y))
        return [one.cpu() for one in (y, values.grad, x.grad) if one is not None]

    expected = found("cpu")
    for strict in (False, True):
        tc.use_deterministic_algorithms(strict)
        try:
            for one, other in zip(found("cuda"), expected, strict=True):
                assert tc.equal(one, other)
        finally:
            tc.use_deterministic_algorithms(False)


@pytest.mark.standin
def test_sparse_products_wait_for_nothing(clock) -> None:
    """Neither the product nor its gradient lets the host wait for the device."""
    ends = tc.tensor([[0, 1], [1, 0]])
    held = tc.sparse_coo_tensor(ends, tc.ones(2), (2, 2)).coalesce().to("cuda")
    x = tc.ones(2, 3, device="cuda", requires_grad=True)
    before = clock.waits
    (held @ x).sum().backward()
    assert clock.waits == before
