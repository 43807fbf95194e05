"""Results that go into ``out=``: the same on devices that write there and those that copy, eager, lazy and compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

WIDE, LONG = ((3, 4), tc.float32), ((3,), tc.int64)
# Each with the shapes and dtypes of its results.
CALLS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "softmax": (lambda x, **to: tc.softmax(x, 1, **to), [WIDE]),
    "sum": (lambda x, **to: tc.sum(x, 1, **to), [((3,), tc.float32)]),
    "amax of two dims": (lambda x, **to: tc.amax(x, (0, 1), **to), [((), tc.float32)]),
    "tril": (lambda x, **to: tc.tril(x, **to), [WIDE]),
    "cumsum": (lambda x, **to: tc.cumsum(x, 0, **to), [WIDE]),
    "where": (lambda x, **to: tc.where(x > 0, x, x * 2, **to), [WIDE]),
    "clamp": (lambda x, **to: tc.clamp(x, -1.0, 1.0, **to), [WIDE]),
    "addmm": (lambda x, **to: tc.addmm(x, x @ x.t(), x, beta=0.5, **to), [WIDE]),
    "add": (lambda x, **to: tc.add(x, x, alpha=3, **to), [WIDE]),
    "argmax": (lambda x, **to: tc.argmax(x, 1, **to), [LONG]),
    "gather": (lambda x, **to: tc.gather(x, 1, tc.ones(3, 4, dtype=tc.int64, device=x.device), **to), [WIDE]),
    "mm": (lambda x, **to: tc.mm(x, x.t(), **to), [((3, 3), tc.float32)]),
    "amax of all": (lambda x, **to: tc.amax(x, **to), [((), tc.float32)]),
    "scatter_add": (
        lambda x, **to: tc.scatter_add(x, 0, tc.ones(2, 4, dtype=tc.int64, device=x.device), x, **to),
        [WIDE],
    ),
    "index_copy": (lambda x, **to: tc.index_copy(x, 0, tc.tensor([2], device=x.device), x[:1], **to), [WIDE]),
    "chebyshev_polynomial_t": (
        lambda x, **to: tc.special.chebyshev_polynomial_t(x, tc.arange(4, device=x.device), **to),
        [WIDE],
    ),
    "ldexp": (lambda x, **to: tc.ldexp(x, tc.arange(4, device=x.device), **to), [WIDE]),
    "float_power": (lambda x, **to: tc.float_power(x, 2, **to), [((3, 4), tc.float64)]),
    "hstack": (lambda x, **to: tc.hstack([x, x], **to), [((3, 8), tc.float32)]),
    "narrow_copy": (lambda x, **to: tc.narrow_copy(x, 1, 1, 2, **to), [((3, 2), tc.float32)]),
    "bessel_j0": (lambda x, **to: tc.special.bessel_j0(x, **to), [WIDE]),
    "xlogy": (lambda x, **to: tc.xlogy(x, x, **to), [WIDE]),
    "polar": (lambda x, **to: tc.polar(x, x, **to), [((3, 4), tc.complex64)]),
    "avg_pool2d": (
        lambda x, **to: tc.nn.functional.avg_pool2d(x.reshape(1, 1, 3, 4), 2, **to),
        [((1, 1, 1, 2), tc.float32)],
    ),
    "topk": (lambda x, **to: tc.topk(x, 2, **to), [((3, 2), tc.float32), ((3, 2), tc.int64)]),
    "sort": (lambda x, **to: tc.sort(x, 1, **to), [WIDE, ((3, 4), tc.int64)]),
    "max": (lambda x, **to: tc.max(x, 0, **to), [((4,), tc.float32), ((4,), tc.int64)]),
    "frexp": (lambda x, **to: tc.frexp(x, **to), [WIDE, ((3, 4), tc.int32)]),
    "cat": (lambda x, **to: tc.cat([x, x], 1, **to), [((3, 8), tc.float32)]),
    "stack": (lambda x, **to: tc.stack([x, x], 1, **to), [((3, 2, 4), tc.float32)]),
    "aminmax": (lambda x, **to: tc.aminmax(x, dim=0, **to), [((4,), tc.float32)] * 2),
    "cholesky_ex": (
        lambda x, **to: tc.linalg.cholesky_ex(x @ x.t() + tc.eye(3, device=x.device), **to),
        [((3, 3), tc.float32), ((), tc.int32)],
    ),
    "lu_factor_ex": (
        lambda x, **to: tc.linalg.lu_factor_ex(x, **to),
        [WIDE, ((3,), tc.int32), ((), tc.int32)],
    ),
}


def values(results: Any) -> list[np.ndarray]:
    return [one.cpu().numpy() for one in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("how", ["eager", "compiled", "lazy", "trace:cpu"])
@pytest.mark.parametrize("name", CALLS)
def test_results_lie_in_out(name: str, how: str) -> None:
    """The values of the plain call, in the tensors that were given, which are the answer; an empty one takes the shape."""
    call, kinds = CALLS[name]
    device = "cpu" if how in ("eager", "compiled") else how
    x = tc.linspace(-2, 2, 12).reshape(3, 4).clone().to(device)
    wanted = values(call(x))
    for shapes in ([shape for shape, _ in kinds], [(0,)] * len(kinds)):
        places = [tc.empty(shape, dtype=kind, device=device) for shape, (_, kind) in zip(shapes, kinds, strict=True)]
        out = tuple(places) if len(places) > 1 else places[0]
        if how == "compiled" and shapes[0] != (0,):
            step = tc.compile(functools.partial(_run, call))
            for _ in range(2):  # traced, then replayed
                for one in places:
                    one.zero_()
                step(x, *places)
        else:
            made = call(x, out=out)
            assert all(one is place for one, place in zip(made if len(places) > 1 else (made,), places, strict=True))
        for got, expected in zip(values(tuple(places)), wanted, strict=True):
            np.testing.assert_array_equal(got, expected)


def _run(call: Callable[..., Any], x: Any, *places: Any) -> Any:
    call(x, out=places if len(places) > 1 else places[0])
    return x + 1


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3), (6,)])
def test_an_out_that_the_result_would_broadcast_to_takes_its_shape(shape: tuple[int, ...]) -> None:
    """The result is not repeated along the dims that ``out`` has besides: as in PyTorch it gets the result's shape."""
    x = tc.tensor([1.0, 2.0, 3.0])
    one = x[:1].clone()
    for call in (
        lambda out: tc.where(x > 1, x, x, out=out),
        lambda out: tc.special.chebyshev_polynomial_t(x, x, out=out),
        lambda out: tc.special.i0e(x, out=out),
        lambda out: tc.special.ndtr(one, out=out),
        lambda out: tc.add(one, one, out=out),
    ):
        expected, out = call(None), tc.zeros(shape)
        assert call(out) is out
        assert out.shape == expected.shape
        assert tc.equal(out, expected)


FAILING: dict[str, Callable[..., Any]] = {
    "max": lambda x, out: tc.max(x, 0, out=out),
    "aminmax": lambda x, out: tc.aminmax(x, out=out),
    "aminmax of a dim": lambda x, out: tc.aminmax(x, dim=1, out=out),
    "sort": lambda x, out: tc.sort(x, 1, out=out),
    "topk": lambda x, out: tc.topk(x, 2, out=out),
    "cummax": lambda x, out: tc.cummax(x, 1, out=out),
    "frexp": lambda x, out: tc.frexp(x, out=out),
    "linalg.qr": lambda x, out: tc.linalg.qr(x, out=out),
    "linalg.eigh": lambda x, out: tc.linalg.eigh(x, out=out),
    "lu": lambda x, out: tc.lu(x, out=out),
    "unbind_copy": lambda x, out: tc.unbind_copy(x[:2], out=out),
    "split_with_sizes_copy": lambda x, out: tc.split_with_sizes_copy(x, [1, 2], out=out),
}


@pytest.mark.parametrize("what", FAILING)
def test_a_second_place_that_cannot_take_its_result_leaves_the_first_as_it_was(what: str) -> None:
    """Nothing is written before all places are looked at: another dtype, a view of another shape, a number, and one too few."""
    x = tc.linspace(-2, 2, 9).reshape(3, 3)
    x = x + x.t()
    kinds = FAILING[what](x, None) or [x[0], x[0]]
    for second in (tc.zeros(3, dtype=tc.bool), tc.zeros(7, dtype=kinds[1].dtype)[1:6], 3.0, None):
        first = tc.full_like(kinds[0], 9)
        with pytest.raises((RuntimeError, TypeError)):
            FAILING[what](x, (first, second) if second is not None else (first,))
        assert first.shape == kinds[0].shape
        assert (first == 9).all()
        assert first._version == 0


def test_a_cross_product_is_not_written_over_its_operands() -> None:
    """Each element is read three times, so that PyTorch refuses an operand as ``out``."""
    x = tc.arange(6.0).reshape(2, 3)
    for out in (x, x.view(2, 3)):
        with pytest.raises(RuntimeError, match="single memory location"):
            tc.linalg.cross(x, tc.ones(2, 3), out=out)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
