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
