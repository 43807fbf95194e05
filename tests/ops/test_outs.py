"""An ``out`` of a wider dtype than the result: refused where PyTorch refuses it, else written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc

SQUARE = (3, 3)
# Each gets the library and a function that makes an ``out`` of a shape, in double precision or in the dtype it names.
REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "aminmax": lambda t, o: t.aminmax(t.ones(*SQUARE), dim=1, out=(o(3), o(3))),
    "arange": lambda t, o: t.arange(5, dtype=t.float32, out=o(5)),
    "linspace": lambda t, o: t.linspace(0, 1, 5, dtype=t.float32, out=o(5)),
    "logspace": lambda t, o: t.logspace(0, 1, 5, dtype=t.float32, out=o(5)),
    "eye": lambda t, o: t.eye(3, dtype=t.float32, out=o(3, 3)),
    "rand": lambda t, o: t.rand(5, dtype=t.float32, out=o(5)),
    "randperm": lambda t, o: t.randperm(5, dtype=t.int64, out=o(5)),
    "randint": lambda t, o: t.randint(5, (5,), dtype=t.int64, out=o(5)),
    "complex": lambda t, o: t.complex(t.ones(5), t.ones(5), out=o(5, kind="complex128")),
    "polar": lambda t, o: t.polar(t.ones(5), t.ones(5), out=o(5, kind="complex128")),
    "cummax": lambda t, o: t.cummax(t.ones(5), 0, out=(o(5), o(5, kind="int64"))),
    "cummin": lambda t, o: t.cummin(t.ones(5), 0, out=(o(5), o(5, kind="int64"))),
    "cumsum of a dtype": lambda t, o: t.cumsum(t.ones(5), 0, dtype=t.float32, out=o(5)),
    "cumprod of a dtype": lambda t, o: t.cumprod(t.ones(5), 0, dtype=t.float32, out=o(5)),
    "sum of a dtype": lambda t, o: t.sum(t.ones(*SQUARE), 0, dtype=t.float32, out=o(3)),
    "norm": lambda t, o: t.norm(t.ones(*SQUARE), 2, 0, out=o(3)),
    "vector_norm": lambda t, o: t.linalg.vector_norm(t.ones(*SQUARE), 2, 0, out=o(3)),
    "matrix_norm": lambda t, o: t.linalg.matrix_norm(t.ones(*SQUARE), out=o()),
    "amax": lambda t, o: t.amax(t.ones(*SQUARE), 0, out=o(3)),
    "amin": lambda t, o: t.amin(t.ones(*SQUARE), 0, out=o(3)),
    "argmax": lambda t, o: t.argmax(t.ones(*SQUARE), 0, out=o(3)),
    "diag": lambda t, o: t.diag(t.ones(*SQUARE), out=o(3)),
    "kthvalue": lambda t, o: t.kthvalue(t.ones(*SQUARE), 2, out=(o(3), o(3, kind="int64"))),
    "kthvalue's indices": lambda t, o: t.kthvalue(t.ones(*SQUARE), 2, out=(o(3, kind="float32"), o(3, kind="int32"))),
    "mode": lambda t, o: t.mode(t.ones(*SQUARE), out=(o(3), o(3, kind="int64"))),
    "median": lambda t, o: t.median(t.ones(*SQUARE), 0, out=(o(3), o(3, kind="int64"))),
    "topk": lambda t, o: t.topk(t.ones(*SQUARE), 1, out=(o(3, 1), o(3, 1, kind="int64"))),
    "topk's indices": lambda t, o: t.topk(t.ones(*SQUARE), 1, out=(o(3, 1, kind="float32"), o(3, 1))),
    "sort": lambda t, o: t.sort(t.ones(*SQUARE), out=(o(3, 3), o(3, 3, kind="int64"))),
    "msort": lambda t, o: t.msort(t.ones(5), out=o(5)),
    "max along a dim": lambda t, o: t.max(t.ones(*SQUARE), 0, out=(o(3), o(3, kind="int64"))),
    "min along a dim": lambda t, o: t.min(t.ones(*SQUARE), 0, out=(o(3), o(3, kind="int64"))),
    "lu_solve": lambda t, o: t.linalg.lu_solve(*t.linalg.lu_factor(t.eye(3)), t.ones(*SQUARE), out=o(3, 3)),
    "solve": lambda t, o: t.linalg.solve(t.eye(3), t.ones(*SQUARE), out=o(3, 3)),
    "solve_triangular": lambda t, o: t.linalg.solve_triangular(t.eye(3), t.eye(3), upper=True, out=o(3, 3)),
    "inv": lambda t, o: t.linalg.inv(t.eye(3), out=o(3, 3)),
    "cholesky": lambda t, o: t.linalg.cholesky(t.eye(3), out=o(3, 3)),
    "det": lambda t, o: t.linalg.det(t.eye(3), out=o()),
    "slogdet": lambda t, o: t.linalg.slogdet(t.eye(3), out=(o(), o())),
    "qr": lambda t, o: t.linalg.qr(t.eye(3), out=(o(3, 3), o(3, 3))),
    "eigh": lambda t, o: t.linalg.eigh(t.eye(3), out=(o(3), o(3, 3))),
    "eigvalsh": lambda t, o: t.linalg.eigvalsh(t.eye(3), out=o(3)),
    "svd": lambda t, o: t.linalg.svd(t.eye(3), out=(o(3, 3), o(3), o(3, 3))),
    "svdvals": lambda t, o: t.linalg.svdvals(t.eye(3), out=o(3)),
    "matrix_power": lambda t, o: t.linalg.matrix_power(t.eye(3), 2, out=o(3, 3)),
    "multi_dot": lambda t, o: t.linalg.multi_dot([t.eye(3), t.eye(3)], out=o(3, 3)),
    "where": lambda t, o: t.where(t.ones(5) > 0, t.ones(5), t.ones(5), out=o(5)),
    "take": lambda t, o: t.take(t.ones(5), t.arange(5), out=o(5)),
    "index_select": lambda t, o: t.index_select(t.ones(5), 0, t.arange(5), out=o(5)),
    "fftfreq": lambda t, o: t.fft.fftfreq(5, dtype=t.float32, out=o(5)),
    "frexp": lambda t, o: t.frexp(t.ones(5), out=(o(5), o(5, kind="int32"))),
    "float_power": lambda t, o: t.float_power(t.ones(5), 2, out=o(5, kind="float32")),
    "all": lambda t, o: t.all(t.ones(5), out=o()),
    "any": lambda t, o: t.any(t.ones(*SQUARE), 0, out=o(3)),
    "inverse": lambda t, o: t.inverse(t.eye(3), out=o(3, 3)),
    "inv_ex": lambda t, o: t.linalg.inv_ex(t.eye(3), out=(o(3, 3), o(kind="int32"))),
    "lu_factor": lambda t, o: t.linalg.lu_factor(t.eye(3), out=(o(3, 3), o(3, kind="int32"))),
    "ldl_factor": lambda t, o: t.linalg.ldl_factor(t.eye(3), out=(o(3, 3), o(3, kind="int32"))),
    "solve_ex": lambda t, o: t.linalg.solve_ex(t.eye(3), t.ones(3), out=(o(3), o(kind="int32"))),
    "vecdot": lambda t, o: t.linalg.vecdot(t.ones(*SQUARE), t.ones(*SQUARE), out=o(3)),
    "svd by its older name": lambda t, o: t.svd(t.eye(3), out=(o(3, 3), o(3), o(3, 3))),
    "qr by its older name": lambda t, o: t.qr(t.eye(3), out=(o(3, 3), o(3, 3))),
    "histogram": lambda t, o: t.histogram(t.ones(5), 2, out=(o(2), o(3))),
    "hash_tensor": lambda t, o: t.hash_tensor(t.ones(5), out=o(kind="int64")),
    "scatter_reduce": lambda t, o: t.scatter_reduce(t.ones(5), 0, t.arange(5), t.ones(5), "sum", out=o(5)),
    "select_copy": lambda t, o: t.select_copy(t.ones(*SQUARE), 0, 1, out=o(3)),
    "slice_copy": lambda t, o: t.slice_copy(t.ones(5), 0, 1, 3, out=o(2)),
    "unbind_copy": lambda t, o: t.unbind_copy(t.ones(2, 3), out=(o(3), o(3))),
    "view_as_complex_copy": lambda t, o: t.view_as_complex_copy(t.ones(5, 2), out=o(5, kind="complex128")),
}
TAKEN: dict[str, Callable[[Any, Any], Any]] = {
    "arange": lambda t, o: t.arange(5, out=o(5)),
    "all of bytes": lambda t, o: t.all(t.ones(5), out=o(kind="uint8")),
    "cumsum": lambda t, o: t.cumsum(t.ones(5), 0, out=o(5)),
    "cumprod": lambda t, o: t.cumprod(t.ones(5), 0, out=o(5)),
    "sum": lambda t, o: t.sum(t.ones(*SQUARE), 0, out=o(3)),
    "mean": lambda t, o: t.mean(t.ones(*SQUARE), 0, out=o(3)),
    "maximum": lambda t, o: t.max(t.ones(5), t.ones(5), out=o(5)),
    "erf": lambda t, o: t.erf(t.ones(5), out=o(5)),
    "cat": lambda t, o: t.cat([t.ones(2), t.ones(3)], out=o(5)),
    "outer": lambda t, o: t.outer(t.ones(3), t.ones(3), out=o(3, 3)),
    "var": lambda t, o: t.var(t.eye(3), 0, out=o(3)),
    "fft": lambda t, o: t.fft.fft(t.ones(3), out=o(3, kind="complex128")),
}


def outs(library: Any) -> Callable[..., Any]:
    """What makes the ``out`` of a call."""
    return lambda *shape, kind="float64": library.zeros(shape, dtype=getattr(library, kind))


@pytest.mark.parametrize("what", REFUSED)
def test_out_of_a_wider_dtype_is_refused(what: str) -> None:
    """Where the kernel writes straight into ``out``, it takes the result's dtype and no other."""
    with pytest.raises(RuntimeError, match="expected out to have dtype"):
        REFUSED[what](tc, outs(tc))


@pytest.mark.parametrize("what", TAKEN)
def test_out_of_a_wider_dtype_is_written_to(what: str) -> None:
    """Where PyTorch converts the result, ``out`` keeps its dtype."""
    made = TAKEN[what](tc, outs(tc))
    assert made.dtype in (tc.float64, tc.complex128, tc.uint8)
    assert made.abs().sum() > 0


@pytest.mark.parametrize("what", [*REFUSED, *TAKEN])
def test_out_of_a_wider_dtype_as_in_pytorch(what: str, torch: Any) -> None:
    """PyTorch refuses and takes the same."""
    if what in REFUSED:
        with pytest.raises(RuntimeError):
            REFUSED[what](torch, outs(torch))
    if what in TAKEN:
        TAKEN[what](torch, outs(torch))


OF_ANOTHER_KIND: dict[str, Callable[[Any], Any]] = {
    "where, a number": lambda t: t.where(t.ones(3) > 0, t.ones(3), 0.0, out=t.zeros(3)),
    "where, a number first": lambda t: t.where(t.ones(3) > 0, 0.0, t.ones(3), out=t.zeros(3)),
    "where, a condition alone": lambda t: t.where(t.ones(3) > 0, out=t.zeros(3)),
    "unbind_copy": lambda t: t.unbind_copy(t.ones(3), out=t.zeros(3)),
    "split_copy": lambda t: t.split_copy(t.ones(3), 1, out=t.zeros(3, 1)),
}


@pytest.mark.parametrize("what", OF_ANOTHER_KIND)
def test_an_out_for_operands_of_another_kind_is_refused(what: str) -> None:
    """``where`` writes into ``out`` what it chooses from two tensors; parts go into a tuple, not along the rows of a tensor."""
    with pytest.raises(TypeError):
        OF_ANOTHER_KIND[what](tc)


@pytest.mark.parametrize("what", OF_ANOTHER_KIND)
def test_an_out_for_operands_of_another_kind_as_in_pytorch(what: str, torch: Any) -> None:
    """PyTorch refuses the same."""
    with pytest.raises(TypeError):
        OF_ANOTHER_KIND[what](torch)


@pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.int64])
def test_elementwise_results_in_place_of_alike_operands(dtype: Any) -> None:
    """They lie in ``out``'s memory, which may be an operand's, and count as a write; of another shape they get new memory."""
    x, y, out = tc.tensor([1, 2, 3], dtype=dtype), tc.tensor([4, 5, 6], dtype=dtype), tc.zeros(3, dtype=dtype)
    memory, before = out.data_ptr(), out._version
    assert tc.mul(x, y, out=out) is out
    assert (out.tolist(), out.data_ptr(), out._version) == ([4, 10, 18], memory, before + 1)
    assert tc.add(out, 1, out=out).tolist() == [5, 11, 19]
    assert tc.sub(x.reshape(3, 1), y, out=tc.empty(0, dtype=dtype)).shape == (3, 3)


def test_a_write_that_backward_must_not_meet() -> None:
    """A saved tensor that is written by ``out=`` is stale, and what asks for a gradient is refused."""
    x, saved = tc.ones(3, requires_grad=True), tc.ones(3)
    product = (x * saved).sum()
    tc.add(tc.ones(3), tc.ones(3), out=saved)
    with pytest.raises(RuntimeError, match="modified"):
        product.backward()
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        tc.add(x, x, out=tc.empty(3))
