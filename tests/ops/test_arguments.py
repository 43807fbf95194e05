"""Arguments that PyTorch refuses are refused with its exception, and mixed dtypes give its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import TensorcoreError


def overlapping(library: Any, call: Callable[[Any], Any]) -> Any:
    """The call with a vector, of which what is written and what is read are parts."""
    x = library.tensor([0.3, 0.9, 0.1, 0.7, 0.5, 0.2])
    try:
        return call(x)
    finally:
        assert np.allclose(x.tolist(), [0.3, 0.9, 0.1, 0.7, 0.5, 0.2])


REFUSED: dict[str, Callable[[Any], Any]] = {
    "a str as chance": lambda t: t.nn.functional.dropout(t.ones(2), "0.5"),
    "a str as slope of elu": lambda t: t.nn.functional.elu(t.ones(2), "1"),
    "a str as epsilon": lambda t: t.nn.functional.batch_norm(t.ones(2, 3), t.ones(3), t.ones(3), eps="1e-5"),
    "a list as the largest norm": lambda t: t.nn.functional.embedding(t.tensor([0]), t.ones(2, 2), max_norm=[1.0]),
    "a complex bound": lambda t: t.nn.functional.hardtanh(t.ones(2), 1j),
    "a str as place among the sorted": lambda t: t.ones(3).kthvalue("1"),
    "a number as weights": lambda t: t.bincount(t.tensor([1]), 2.0),
    "a list to be resized as": lambda t: t.ones(2).resize_as_([1.0]),
    "a scale of NaN": lambda t: t.nn.functional.interpolate(t.ones(1, 1, 3), scale_factor=float("nan")),
    "a scale without end": lambda t: t.nn.functional.interpolate(t.ones(1, 1, 3), scale_factor=float("inf")),
    "nothing to scatter": lambda t: t.tensor(1.0).scatter(0, t.tensor(0), t.ones(0)),
    "swaps without a dim": lambda t: t.lu_unpack(t.eye(2), t.tensor(1, dtype=t.int32)),
    "a complex threshold of integers": lambda t: t.nn.functional.threshold(t.tensor([1]), 1j, 0),
    "a str as tolerance": lambda t: t.linalg.pinv(t.eye(2), rtol="1e-3"),
    "one matrix beside a batch": lambda t: t.baddbmm(t.ones(3, 2, 2), t.ones(1, 2, 2), t.ones(3, 2, 2)),
    "a complex answer to a real score": lambda t: t.nn.functional.soft_margin_loss(
        t.ones(2), t.ones(2, dtype=t.complex64)
    ),
    "a float as dim": lambda t: t.ones(2, 2, 2).sum(2.5),
    "out of another dtype": lambda t: t.abs(t.ones(2), out=t.zeros(2, dtype=t.float64)),
    "a product's out of another dtype": lambda t: t.matmul(
        t.ones(2, 2), t.ones(2, 2), out=t.zeros(2, 2, dtype=t.float64)
    ),
    "an out with one cell for all elements": lambda t: t.mul(t.ones(3), 2, out=t.zeros(1).expand(3)),
    "a str as tensor to view as": lambda t: t.ones(2).view_as("x"),
    "a number as angle": lambda t: t.polar(t.ones(2), 1.0),
    "a list among vectors": lambda t: t.meshgrid(t.ones(2), [1.0], indexing="ij"),
    "a list beside a tensor": lambda t: t.isclose(t.ones(1), [1.0]),
    "a str as weight": lambda t: t.lerp(t.ones(2), t.ones(2), "x"),
    "a str as slope": lambda t: t.nn.functional.prelu(t.ones(2), "x"),
    "orders that do not broadcast": lambda t: t.special.hermite_polynomial_h(t.ones(2), t.ones(3)),
    "a bool as dim": lambda t: t.ones(2, 2, 2).softmax(True),
    "a float as dim of no elements": lambda t: t.ones(5, 0, 0).log_softmax(1.5),
    "a bool as size": lambda t: t.zeros(True),
    "a bool as the first of sizes": lambda t: t.ones(2, 3).reshape(True, 6),
    "a bool as features": lambda t: t.nn.Linear(3, True),
    "a bool as stride": lambda t: t.nn.functional.conv1d(t.ones(1, 1, 3), t.ones(1, 1, 2), stride=True),
    "a bool as groups": lambda t: t.nn.functional.conv1d(t.ones(1, 1, 3), t.ones(1, 1, 2), groups=True),
    "whole numbers as answers": lambda t: t.nn.functional.binary_cross_entropy_with_logits(t.ones(2), t.ones(2).long()),
    "a window of none": lambda t: t.nn.functional.conv1d(t.ones(1, 1, 3), t.ones(1, 1, 0)),
    "a bool as window": lambda t: t.nn.functional.max_pool2d(t.ones(1, 3, 3), True),
    "a float as divisor": lambda t: t.nn.functional.avg_pool2d(t.ones(1, 3, 3), 2, divisor_override=1.5),
    "a bool as output size": lambda t: t.nn.functional.adaptive_avg_pool1d(t.ones(1, 3), True),
    "floats to pad with": lambda t: t.nn.functional.pad(t.ones(3), (1.5, 1)),
    "strs to pad with": lambda t: t.nn.functional.pad(t.ones(3), ("1", "1")),
    "a number as approximation": lambda t: t.nn.functional.gelu(t.ones(2), approximate=1),
    "no dim for a cosine": lambda t: t.nn.functional.cosine_similarity(t.ones(2, 2), t.ones(2, 2), None),
    "a cosine of shorter than nothing": lambda t: t.nn.functional.cosine_similarity(t.ones(2), t.ones(2), 0, -1.0),
    "a batch norm that divides by nothing": lambda t: t.nn.BatchNorm1d(2, eps=0)(t.ones(3, 2)),
    "a running batch norm below nothing": lambda t: t.nn.BatchNorm1d(2, eps=-1.0).eval()(t.ones(3, 2)),
    "a recurrence of no input": lambda t: t.nn.GRU(0, 3),
    "a seed as generator": lambda t: list(t.utils.data.RandomSampler([1, 2], generator=3)),
    "a float as offset": lambda t: t.ones(2, 2).diagonal(offset=1.5),
    "a str as offset": lambda t: t.diagflat(t.ones(2), "x"),
    "a float as offset of memory": lambda t: t.ones(8).as_strided((2,), (1,), 2.0),
    "a float as index": lambda t: t.ones(3).select(0, 1.5),
    "a float as decimals": lambda t: t.round(t.ones(2), decimals=2.0),
    "a float as order": lambda t: t.special.polygamma(1.5, t.ones(2)),
    "a float as diagonal": lambda t: t.ones(3, 3).triu(0.5),
    "a float as count of rows": lambda t: t.tril_indices(2.5, 3),
    "a float as k": lambda t: t.ones(3).topk(1.5),
    "a str as k": lambda t: t.rot90(t.ones(2, 2), "x", [0, 1]),
    "a str as steps": lambda t: t.linspace(0, 1, "x"),
    "None as dims": lambda t: t.tensordot(t.ones(2, 2), t.ones(2, 2), dims=None),
    "bools as indices": lambda t: t.unravel_index(t.ones(2, dtype=t.bool), (2, 2)),
    "a transform of -1 points": lambda t: t.fft.ifft(t.ones(4), n=-1),
    "a size that does not broadcast": lambda t: t.ones(5, 5).sum_to_size(99, 1),
    "shapes that do not broadcast": lambda t: t.gcd(t.ones(0, 5, dtype=t.int64), t.ones(2, 5, dtype=t.int64)),
    "layer_norm of two dtypes": lambda t: t.nn.functional.layer_norm(t.ones(2, 3).double(), (3,), t.ones(3)),
    "batch_norm of two dtypes": lambda t: t.nn.functional.batch_norm(t.ones(2, 3), t.ones(3).half(), t.ones(3).half()),
    "group_norm of two dtypes": lambda t: t.nn.functional.group_norm(t.ones(2, 4).double(), 2, t.ones(4)),
    "running statistics of another size": lambda t: t.nn.functional.instance_norm(
        t.ones(2, 3, 4), t.ones(2), t.ones(2)
    ),
    "NaN as a chance": lambda t: t.nn.functional.binary_cross_entropy(t.full((1,), float("nan")), t.ones(1)),
    "a target beyond 1": lambda t: t.nn.functional.binary_cross_entropy(t.ones(1), t.full((1,), 2.0)),
    "unfold of nothing": lambda t: t.nn.functional.unfold(t.ones(1, 5, 0), 2, padding=2),
    **{
        f"overlap: {what}": call
        for what, call in {
            "add_ with alpha": lambda t: overlapping(t, lambda x: x[1:].add_(x[:-1], alpha=2)),
            "sub_ with alpha": lambda t: overlapping(t, lambda x: x[1:].sub_(x[:-1], alpha=2)),
            "places assigned": lambda t: overlapping(t, lambda x: x.__setitem__([0, 1], x[1:3])),
            "chosen elements assigned": lambda t: overlapping(t, lambda x: x[1:].__setitem__(x[1:] > 0, x[:-1])),
            "index_put_": lambda t: overlapping(t, lambda x: x.index_put_((t.tensor([0, 1]),), x[1:3])),
            "where": lambda t: overlapping(t, lambda x: t.where(x[1:] > 0, x[:-1], x[1:], out=x[1:])),
            "cumsum": lambda t: overlapping(t, lambda x: t.cumsum(x[:-1], 0, out=x[1:])),
            "logcumsumexp": lambda t: overlapping(t, lambda x: t.logcumsumexp(x[:-1], 0, out=x[1:])),
            "gather": lambda t: overlapping(t, lambda x: t.gather(x, 0, t.tensor([0, 1]), out=x[1:3])),
            "gather over its input": lambda t: overlapping(t, lambda x: t.gather(x, 0, t.arange(6), out=x)),
            "index_select": lambda t: overlapping(t, lambda x: t.index_select(x, 0, t.tensor([0, 1]), out=x[1:3])),
            "take": lambda t: overlapping(t, lambda x: t.take(x, t.tensor([0, 1]), out=x[1:3])),
            "masked_select": lambda t: overlapping(t, lambda x: t.masked_select(x, x >= 0, out=x)),
            "scatter": lambda t: overlapping(t, lambda x: t.scatter(x, 0, t.tensor([0, 1]), x[1:3], out=x)),
            "cat": lambda t: overlapping(t, lambda x: t.cat([x[:2], x[1:3]], out=x[2:])),
            "stack": lambda t: overlapping(t, lambda x: t.stack([x[:2], x[1:3]], out=x[2:].view(2, 2))),
            "sort": lambda t: overlapping(t, lambda x: t.sort(x[:-1], out=(x[1:], t.empty(0, dtype=t.int64)))),
            "topk": lambda t: overlapping(t, lambda x: t.topk(x, 2, out=(x[1:3], t.empty(0, dtype=t.int64)))),
            "nan_to_num": lambda t: overlapping(t, lambda x: t.nan_to_num(x[:-1], out=x[1:])),
            "round": lambda t: overlapping(t, lambda x: t.round(x[:-1], decimals=1, out=x[1:])),
        }.items()
    },
    "a cross product of two dtypes": lambda t: t.linalg.cross(t.ones(3), t.ones(3).double()),
    "a number times a vector as matrices": lambda t: t.matmul(t.ones(()), t.ones(3)),
    "no numbers times no vector as matrices": lambda t: t.matmul(t.ones(()), t.ones(0)),
    "a source without dims for a matrix of places": lambda t: t.zeros(4, 5).scatter(
        0, t.zeros(2, 5, dtype=t.int64), t.tensor(3.0)
    ),
    "a complex factor of a real product": lambda t: t.addmm(t.ones(2, 2), t.ones(2, 2), t.ones(2, 2), alpha=1j),
    "a factor that int8 does not hold": lambda t: t.addmv(
        t.ones(2, dtype=t.int8), t.ones(2, 2, dtype=t.int8), t.ones(2, dtype=t.int8), beta=float("inf")
    ),
    "a negative fraction at the edge of uint8": lambda t: t.nn.functional.pad(
        t.ones(2, dtype=t.uint8), (1, 1), value=-1.0
    ),
    "a str as factor": lambda t: t.addcdiv(t.ones(2), t.ones(2), t.ones(2), value="x"),
    "a complex factor of real quotients": lambda t: t.addcdiv(t.ones(2), t.ones(2), t.ones(2), value=1j),
    **{
        f"a vector of one element as {name}": call
        for name, call in {
            "chunks": lambda t: t.ones(2, 3).chunk(t.tensor([1])),
            "steps": lambda t: t.linspace(0, 1, t.tensor([3])),
            "offset": lambda t: t.ones(4, 4).diagonal(t.tensor([1])),
            "diagonal": lambda t: t.ones(4, 4).diag(t.tensor([1])),
            "power": lambda t: t.ones(4, 4).matrix_power(t.tensor([2])),
            "bins": lambda t: t.ones(4).histc(t.tensor([3])),
            "window": lambda t: t.ones(4).unfold(0, t.tensor([3]), 1),
            "turns": lambda t: t.ones(4, 4).rot90(t.tensor([1])),
            "times": lambda t: t.ones(4, 4).diff(t.tensor([1])),
            "correction": lambda t: t.ones(4, 4).var(0, correction=t.tensor([1])),
            "beta": lambda t: t.addmm(t.ones(4, 4), t.ones(4, 4), t.ones(4, 4), beta=t.tensor([1])),
            "decimals": lambda t: t.ones(3).round(decimals=t.tensor([1])),
            "start_dim": lambda t: t.ones(4, 4).flatten(t.tensor([0])),
            "upscale_factor": lambda t: t.nn.functional.pixel_shuffle(t.ones(1, 4, 2, 2), t.tensor([2])),
            "num_groups": lambda t: t.nn.functional.group_norm(t.ones(2, 4), t.tensor([2])),
            "row": lambda t: t.tril_indices(t.tensor([1]), 3),
            "N": lambda t: t.vander(t.ones(3), t.tensor([2])),
            "order": lambda t: t.polygamma(t.tensor([1]), t.ones(3)),
            "p": lambda t: t.mvlgamma(t.ones(3) * 4, t.tensor([1])),
            "r": lambda t: t.combinations(t.ones(3), t.tensor([2])),
            "dim": lambda t: t.ones(2, 3).cumsum(t.tensor([0])),
        }.items()
    },
    "a bool tensor as dim": lambda t: t.ones(2, 3).cumsum(t.tensor(False)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("what", REFUSED)
def test_refused_as_pytorch_refuses(what: str, torch: Any) -> None:
    """Both libraries raise, and ours what an ``except`` for PyTorch's catches, in a sentence of its own."""
    with pytest.raises(Exception) as expected:
        REFUSED[what](torch)
    with pytest.raises(TensorcoreError) as found:
        REFUSED[what](tc)
    wanted = next(one for one in (TypeError, IndexError, ValueError, RuntimeError) if isinstance(expected.value, one))
    assert isinstance(found.value, wanted)


RESULTS: dict[str, Callable[[Any], Any]] = {
    "a whole number of NumPy's as dim": lambda t: t.ones(2, 3).sum(np.int64(1)),
    "a tensor as dim": lambda t: t.ones(2, 3).sum(t.tensor(1)),
    "a vector of one element as dims": lambda t: t.ones(2, 3).sum(t.tensor([1])),
    "a vector of one element as shape": lambda t: t.arange(6).reshape(t.tensor([6])),
    "a vector of one element as size of parts": lambda t: t.arange(5).split(t.tensor([2]))[1],
    "a vector of one element as index": lambda t: t.arange(6).select(0, t.tensor([4])),
    "a vector of one element as diagonal": lambda t: t.ones(3, 3).tril(t.tensor([1])),
    "a negative factor of uint8": lambda t: t.addmv(
        t.ones(2, dtype=t.uint8), t.ones(2, 2, dtype=t.uint8), t.ones(2, dtype=t.uint8), beta=-1
    ),
    "a negative edge of uint8": lambda t: t.constant_pad_nd(t.ones(2, dtype=t.uint8), (1, 1), -1),
    "fractions as ends of integers": lambda t: t.linspace(4.3, 0, 9, dtype=t.int64),
    "a quotient of halves beside complex numbers": lambda t: t.addcdiv(
        t.ones(2, dtype=t.complex64), t.full((2,), 0.1).half(), t.full((2,), 0.3).half(), value=3
    ),
    "a number without dims of double precision in a block": lambda t: t.block_diag(t.ones(2, 2), t.ones(()).double()),
    "products that uint8 does not hold": lambda t: t.addcmul(
        t.ones(1), t.full((1,), 200, dtype=t.uint8), t.full((1,), 2, dtype=t.uint8)
    ),
    "an outer product that uint8 does not hold": lambda t: t.addr(
        t.zeros(1, 1), t.full((1,), 200, dtype=t.uint8), t.full((1,), 2, dtype=t.uint8)
    ),
    "an outer product of halves beside a number": lambda t: t.addr(t.ones(()), t.ones(2).half(), t.ones(3).half()),
    "a half input beside a target": lambda t: t.nn.functional.huber_loss(t.ones(2).half(), t.zeros(2)),
    "an infinite margin": lambda t: t.nn.functional.hinge_embedding_loss(
        t.tensor([1.0, float("-inf")]), t.tensor([1.0, -1.0]), reduction="none"
    ),
    "small integers as places": lambda t: t.unravel_index(t.tensor([3, 200], dtype=t.uint8), (9, 30))[0],
    "sums of small integers": lambda t: t.full((5, 5), 100, dtype=t.uint8).sum_to_size(1, 5),
    "a fraction filled into integers": lambda t: t.ones(2, dtype=t.int64).masked_fill(t.tensor([True, False]), t.tensor(2.7)),
    "parameters of single precision beside halves": lambda t: t.nn.functional.layer_norm(
        t.arange(6.0).reshape(2, 3).bfloat16(), (3,), t.ones(3), t.ones(3)
    ),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("what", RESULTS)
def test_mixed_arguments_give_the_results_of_pytorch(what: str, torch: Any) -> None:
    """Values and dtype are PyTorch's where dtypes are mixed or numbers leave the range of one."""
    expected, found = RESULTS[what](torch), RESULTS[what](tc)
    assert str(found.dtype) == str(expected.dtype)
    assert found.tolist() == expected.tolist()


THROUGH_OUT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "quantile": lambda t, x, out: t.quantile(x, 0.4, out=out),
    "nanquantile": lambda t, x, out: t.nanquantile(x, 0.4, out=out),
    "inner": lambda t, x, out: t.inner(x, x, out=out),
    "tensordot": lambda t, x, out: t.tensordot(x, x, dims=1, out=out),
    "ndtr": lambda t, x, out: t.special.ndtr(x, out=out),
    "a norm": lambda t, x, out: t.linalg.norm(x, out=out),
    "a matrix's norm": lambda t, x, out: t.linalg.matrix_norm(x.outer(x) + t.eye(4), out=out),
    "a condition": lambda t, x, out: t.linalg.cond(x.outer(x) + t.eye(4), out=out),
}


@pytest.mark.oracle
@pytest.mark.parametrize("what", THROUGH_OUT)
def test_gradients_go_through_the_out_of_what_pytorch_writes_in_other_ops(what: str, torch: Any) -> None:
    """The result that is written into ``out`` is recorded, and its gradient is PyTorch's."""
    grads = []
    for library in (torch, tc):
        x = library.tensor([0.5, 2.0, -1.0, 0.25], requires_grad=True)
        out = library.empty(0)
        THROUGH_OUT[what](library, x, out)
        out.sum().backward()
        grads.append(x.grad.tolist())
    assert np.allclose(*grads, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["eq", "lt", "logical_and", "signbit", "add", "mul", "cumsum", "gather", "where"])
def test_out_with_an_input_that_requires_grad(name: str, torch: Any) -> None:
    """What has no gradient takes ``out``; what has a formula refuses it, as in PyTorch."""

    def call(library: Any) -> Any:
        x = library.ones(3, requires_grad=True)
        rest = {
            "cumsum": (0,), "gather": (0, library.tensor([0, 1, 2])), "signbit": (), "where": (x, x),
        }.get(name, (x,))  # fmt: skip
        kind = library.float32 if name in ("add", "mul", "cumsum", "gather", "where") else library.bool
        first = x > 0 if name == "where" else x
        try:
            return getattr(library, name)(first, *rest, out=library.empty(3, dtype=kind)).tolist()
        except RuntimeError:
            return RuntimeError

    assert call(tc) == call(torch)
