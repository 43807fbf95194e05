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
