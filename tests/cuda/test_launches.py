"""How much the device is given to do: kernels, arrays and waits of common calls, which is what their time is made of."""

from __future__ import annotations

import pytest

import tensorcore as tc

pytestmark = pytest.mark.standin
F = tc.nn.functional


def matrix(dtype: tc.dtype = tc.float32) -> tc.Tensor:
    return tc.arange(24, device="cuda").reshape(4, 6).to(dtype) / 10


# The call, of a matrix, and how many kernels and new arrays it needs.
CALLS = {
    "add": (lambda x: x + x, 1, 1),
    "add a number": (lambda x: x + 1, 1, 1),
    "add a row": (lambda x: x + x[0], 1, 1),
    "into out": (lambda x: tc.add(x, x, out=x), 1, 0),
    "into out, of one operand": (lambda x: tc.exp(x, out=x), 1, 0),
    "in place": (lambda x: x.add_(x), 1, 0),
    "of a turned matrix": (lambda x: -x.T, 1, 1),
    "gelu": (lambda x: F.gelu(x), 1, 1),
    "cast": (lambda x: x.half(), 1, 1),
    "contiguous": (lambda x: x.T.contiguous(), 1, 1),
    "fill_": (lambda x: x.fill_(2.0), 1, 0),
    "zero_": (lambda x: x.zero_(), 1, 0),
    "sum of rows": (lambda x: x.sum(1), 1, 1),
    "sum of columns": (lambda x: x.sum(0), 1, 1),
    "sum": (lambda x: x.sum(), 1, 1),
    "var": (lambda x: x.var(1), 1, 1),
    "max": (lambda x: x.max(1), 1, 2),
    "softmax": (lambda x: x.softmax(1), 1, 1),
    "log_softmax": (lambda x: x.log_softmax(1), 1, 1),
    "cumsum": (lambda x: x.cumsum(1), 1, 1),
    "matmul": (lambda x: x @ x.T, 1, 1),
    "linear": (lambda x: F.linear(x, x), 1, 1),
    "linear with a bias": (lambda x: F.linear(x, x, x[:, 0]), 2, 1),
    "cat": (lambda x: tc.cat([x, x]), 1, 1),
    "topk": (lambda x: x.topk(2), 1, 2),
    "rand": (lambda x: tc.rand(9, device="cuda"), 1, 1),
    "randn": (lambda x: tc.randn(9, device="cuda"), 1, 1),
    "dropout": (lambda x: F.dropout(x, 0.5), 2, 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_launches_no_more_than_it_needs(place, clock, name: str) -> None:
    """Kernels and new arrays are counted; the host waits for nothing."""
    call, launches, arrays = CALLS[name]
    x = matrix()
    call(x)
    before = clock.launches, place.memory.count, clock.waits
    kept = call(x)
    after = clock.launches, place.memory.count, clock.waits
    assert [b - a for a, b in zip(before, after, strict=True)] == [launches, arrays, 0]
    assert kept is not None


ALGORITHMS = ("SGD", "Adam", "AdamW", "Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_an_optimizer_steps_many_parameters_at_once(clock, kind: str) -> None:
    """A hundred parameters take four launches, in which none is new, and their gradients as many as they are to clear."""
    parameters = [tc.zeros(3, device="cuda").requires_grad_() for _ in range(100)]
    for one in parameters:
        one.grad = tc.ones(3, device="cuda")
    optimizer = getattr(tc.optim, kind)(parameters, lr=0.1)
    optimizer.step()
    before = clock.launches, clock.waits
    optimizer.step()
    assert (clock.launches - before[0], clock.waits - before[1]) == (4, 0)
    before = clock.launches
    optimizer.zero_grad(set_to_none=False)
    assert clock.launches - before == 100


@pytest.mark.parametrize("kind, dtype", [(2.0, "float32"), (1.0, "bfloat16"), (float("inf"), "float16")])
def test_gradients_are_clipped_many_at_once(clock, kind: float, dtype: str) -> None:
    """Norms of a hundred gradients take two launches for 32 of them, and the factor one; the host waits for nothing."""
    shapes = [(), (3,), (4, 2) if kind > 2 else (0, 2), *[(2 + i % 5, 3) for i in range(97)]]
    host = [tc.randn(shape).to(getattr(tc, dtype)) for shape in shapes]
    parameters = [tc.zeros(shape, device="cuda", dtype=getattr(tc, dtype)).requires_grad_() for shape in shapes]
    alike = [tc.zeros(shape, dtype=getattr(tc, dtype)).requires_grad_() for shape in shapes]
    for one, other, grad in zip(parameters, alike, host, strict=True):
        one.grad, other.grad = grad.to("cuda"), grad.clone()
    before = clock.launches, clock.waits
    total = tc.nn.utils.clip_grad_norm_(parameters, 0.5, norm_type=kind)
    assert clock.launches - before[0] < 30
    assert clock.waits == before[1]
    expected = tc.nn.utils.clip_grad_norm_(alike, 0.5, norm_type=kind)
    limits = dict(rtol=1e-5, atol=1e-6) if dtype == "float32" else dict(rtol=0.02, atol=1e-3)
    tc.testing.assert_close(total.cpu(), expected, **limits)
    for one, other in zip(parameters, alike, strict=True):
        tc.testing.assert_close(one.grad.cpu(), other.grad, **limits)
