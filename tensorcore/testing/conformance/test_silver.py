"""Silver: every op in the registry has the reference's values, derivatives, layouts, other forms and error texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.base import Backend
from tensorcore.backend.kernels import OPTIONAL
from tensorcore.errors import GradientError
from tensorcore.ops import late
from tensorcore.ops.define import OPS
from tensorcore.testing.calls import (
    RANDOM,
    TIED,
    UNDEFINED,
    Call,
    calls_of,
    degenerate,
    misfits,
    refused,
    tensors_of,
)
from tensorcore.testing.compare import agree, built, outcome, same_error
from tensorcore.testing.invariants import REGULAR, defined, unique
from tensorcore.testing.watch import WatchedTable

__all__: list[str] = []

late.import_all()
SAMPLED = sorted(name for name, op in OPS.items() if op.samples is not None and op.function is not None)
DEFINED = [name for name in SAMPLED if name not in UNDEFINED]
# Their in-place form gives the tensor another shape over the same memory and writes no element.
RESHAPING = {"as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"}
WRITING = [name for name in DEFINED if hasattr(tc.Tensor, f"{name}_") and name not in RESHAPING]
# Their texts hold a code of whoever did the work.
CODED = {"linalg_lstsq"}
LAYOUTS = ("contiguous", "transposed", "expanded")
# Elements that share memory are written in any order; a matrix of equal rows has roundoff for a result.
SINGULAR = REGULAR | {"linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_lu_factor"}
UNDEFINED_LAYOUTS = {("as_strided_scatter", "expanded"), *[(name, "expanded") for name in SINGULAR]}


def skip_own_numbers(name: str, device: Backend) -> None:
    """Random ops agree where the numbers come from the host."""
    if name in RANDOM and type(device).random is not Backend.random:
        pytest.skip("the device draws random numbers of its own")


def run(name: str, call: Call, device: Backend, dtype: str, layout: str = "contiguous", grad: bool = False) -> Any:
    """The op's result on a device, or what it raises."""
    mine = built(call, device, dtype, layout, grad)
    return outcome(function_of(name), *mine.args, **mine.kwargs)


def own_results(name: str, call: Call, device: Backend, dtype: str, layout: str) -> Any:
    """The op's results as it makes them, with what nobody defines of their values."""
    mine = built(call, device, dtype, layout)
    return outcome(defined(name, OPS[name].function, results=False), *mine.args, **mine.kwargs)  # type: ignore[arg-type]


def function_of(name: str) -> Any:
    """The op's function, with what is defined of its arguments and results."""
    return defined(name, OPS[name].function)  # type: ignore[arg-type]


def first(result: Any, name: str, loosely: bool) -> Any:
    """Without the places of equal elements, whose order is open."""
    return tensors_of(result)[0] if loosely and name in TIED and not isinstance(result, Exception) else result


@pytest.mark.parametrize("name", DEFINED)
def test_op(device: Any, reference: Any, name: str, dtype: str) -> None:
    """Values, dtype and shape, or the kind of error, are the reference's, whatever the arguments' layout."""
    skip_own_numbers(name, device)
    for number, call in enumerate(calls_of(name)):
        for layout in LAYOUTS:
            if layout != "contiguous" and (name in RANDOM or (name, layout) in UNDEFINED_LAYOUTS):
                continue  # numbers are drawn in memory order
            found, expected = [run(name, call, one, dtype, layout) for one in (device, reference)]
            ties = layout == "expanded" or dtype not in ("float32", "float64")
            agree(*[first(one, name, ties) for one in (found, expected)], f"call {number} {layout}", dtype=dtype)


@pytest.mark.parametrize("name", [name for name in DEFINED if name not in RANDOM])
def test_gradient(device: Any, reference: Any, name: str, wide: str) -> None:
    """First and second derivatives are the reference's."""
    for number, call in enumerate(calls_of(name)):
        found = []
        for one in (device, reference):
            mine = built(call, one, wide, grad=True)
            found.append(outcome(derivatives, function_of(name), mine))
        if not isinstance(found[1], Exception) or isinstance(found[1], GradientError):
            agree(found[0], found[1], f"call {number}", loose=10)


def derivatives(function: Any, call: Call) -> list[Any]:
    """The gradients of a weighted sum of the results, and those of their squares."""
    results = tensors_of(function(*call.args, **call.kwargs))
    leaves = [one for one in tensors_of([call.args, call.kwargs]) if one.requires_grad]
    outputs = [one for one in results if one.requires_grad]
    if not leaves or not outputs:
        return []
    total = sum([(one.abs() if one.dtype.is_complex else one).mul(weights(one)).sum() for one in outputs])
    once = tc.autograd.grad(total, leaves, create_graph=True, allow_unused=True, materialize_grads=True)
    square = sum([(one.abs() if one.dtype.is_complex else one).square().sum() for one in once])
    if not square.requires_grad:  # no graph leads back: what other kernels write down as zeros
        return [*once, *[tc.zeros_like(one) for one in leaves]]
    twice = tc.autograd.grad(square, leaves, allow_unused=True, materialize_grads=True)
    return [*once, *twice]


def weights(tensor: Any) -> Any:
    """A number for each element, no two alike."""
    count = max(tensor.numel(), 1)
    line = tc.arange(1, count + 1, dtype=tc.float64)[: tensor.numel()] / count
    return line.reshape(tensor.shape).to(tensor.dtype.to_real()).to(tensor.device)


@pytest.mark.parametrize("name", [name for name in DEFINED if name not in RANDOM])
def test_layout(device: Any, reference: Any, kernels: WatchedTable, name: str, wide: str) -> None:
    """Of contiguous arguments the results lie in memory as on the reference or by the rule, of others without gaps.

    A decomposition's lie anywhere.
    """
    for number, call in enumerate(calls_of(name)):
        for layout in ("contiguous", "transposed"):
            kernels.clear()
            found, expected = [own_results(name, call, one, wide, layout) for one in (device, reference)]
            if isinstance(expected, Exception) or kernels.decomposed & OPTIONAL:
                continue
            if isinstance(found, Exception):
                raise found
            context = f"call {number} {layout}"
            ruled = own_results(name, call, tc.device("meta"), wide, layout)
            if layout == "contiguous" and not isinstance(ruled, Exception):
                assert steps(found) in (steps(expected), steps(ruled)), context
            for one, theirs in zip(tensors_of(found), tensors_of(expected), strict=True):
                assert dense(one) or not dense(theirs), f"{context}: strides {one.stride()} of {tuple(one.shape)}"


def dense(tensor: Any) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in some order of the dims."""
    wanted = 1
    for step, size in sorted([pair for pair in zip(tensor.stride(), tensor.shape, strict=True) if pair[1] > 1]):
        if step != wanted:
            return bool(tensor.numel() == 0)
        wanted *= size
    return True


def steps(result: Any) -> list[list[int]]:
    """The strides of each result, of the dims that have any."""
    return [
        [step for step, size in zip(one.stride(), one.shape, strict=True) if size > 1] if one.numel() else []
        for one in tensors_of(result)
    ]


@pytest.mark.parametrize("name", [name for name in DEFINED if name not in RANDOM])
def test_edges(device: Any, reference: Any, name: str, wide: str) -> None:
    """Without elements and without dims, results are the reference's."""
    for number, call in enumerate(calls_of(name)):
        for what, changed in degenerate(call):
            found, expected = [run(name, changed, one, wide) for one in (device, reference)]
            if not isinstance(expected, Exception):
                agree(*[first(one, name, True) for one in (found, expected)], f"call {number} {what}")


@pytest.mark.parametrize("name", [name for name in DEFINED if OPS[name].kind == "elementwise" and name not in RANDOM])
def test_special(device: Any, reference: Any, name: str, wide: str) -> None:
    """NaN, infinities and zeros give what they give on the reference."""
    numbers = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, 0.5])
    for number, call in enumerate(calls_of(name)):
        count = len(call.floats())
        if not 1 <= count <= 3:
            continue
        grid = np.stack([one.ravel() for one in np.meshgrid(*[numbers] * count, indexing="ij")])
        changed = call.replaced(lambda _, position, grid=grid: grid[position].copy())
        found, expected = [run(name, changed, one, wide) for one in (device, reference)]
        agree(found, expected, f"call {number}")


@pytest.mark.parametrize("name", WRITING)
def test_in_place(device: Any, reference: Any, name: str, wide: str) -> None:
    """``x.name_()`` writes the reference's result into the memory of ``x``, a view too, and counts one write."""
    skip_own_numbers(name, device)
    for number, call in enumerate(calls_of(name)):
        if not call.args or not isinstance(call.args[0], np.ndarray) or call.args[0].dtype != np.float64:
            continue
        for layout in ("contiguous", "transposed"):
            results = []
            for one in (device, reference):
                mine = built(call, one, wide, layout)
                x = mine.args[0]
                key, version = one.storage_key(x.native), x._version
                made = outcome(getattr(tc.Tensor, f"{name}_"), *mine.args, **mine.kwargs)
                if not isinstance(made, Exception):
                    assert made is x
                    assert one.storage_key(x.native) == key
                    assert x._version == version + 1
                results.append(made)
            if not isinstance(results[1], Exception):
                agree(results[0], results[1], f"call {number} {layout}")


@pytest.mark.parametrize("name", DEFINED)
def test_out(device: Any, reference: Any, name: str, wide: str) -> None:
    """``out=`` is written to, in place where it fits."""
    skip_own_numbers(name, device)
    for number, call in enumerate(calls_of(name)):
        plain = run(name, call, reference, wide)
        if isinstance(plain, Exception) or not tensors_of(plain):
            continue
        results = []
        for one in (reference, device):
            mine = built(call, one, wide)
            outs = [tc.zeros(tuple(each.shape), dtype=each.dtype, device=one) for each in tensors_of(plain)]
            out = tuple(outs) if isinstance(plain, (tuple, list)) else outs[0]
            results.append(outcome(OPS[name].function, *mine.args, **mine.kwargs, out=out))  # type: ignore[arg-type]
            if isinstance(results[0], Exception):  # the op has no such form, for this call
                break
        else:
            agree(*[unique(name, one) for one in reversed(results)], f"call {number}")


@pytest.mark.parametrize("name", SAMPLED)
def test_error(device: Any, reference: Any, name: str, wide: str) -> None:
    """Shapes that do not fit and dims that do not exist are refused with the reference's words."""
    for number, call in enumerate(calls_of(name)):
        wrong = list(misfits(call))
        far = refused(name, call)
        for what, changed in [*wrong, *([("dim 99", far)] if far is not None else [])]:
            expected = run(name, changed, reference, wide)
            if isinstance(expected, Exception):
                found = run(name, changed, device, wide)
                same_error(found, expected, device, reference, f"call {number} {what}", name not in CODED)


@pytest.mark.parametrize("name", SAMPLED)
def test_refusal(device: Any, reference: Any, name: str, dtype: str) -> None:
    """A dtype that an op does not take is refused with the reference's words."""
    for number, call in enumerate(calls_of(name)):
        expected = run(name, call, reference, dtype)
        if isinstance(expected, Exception):
            same_error(run(name, call, device, dtype), expected, device, reference, f"call {number}")


class TestModels:
    """Networks of several kinds."""

    @pytest.mark.parametrize("kind", ["convolution", "attention", "recurrent", "norms"])
    def test_model(self, device: Any, reference: Any, kind: str) -> None:
        """Outputs and gradients of a model are the reference's."""
        found = []
        for one in (device, reference):
            tc.manual_seed(1)
            found.append(outcome(MODELS[kind], one))
        agree(found[0], found[1], kind, loose=50)


def convolution(device: Any) -> Any:
    """Two convolutions, a pool and a linear layer."""
    nn = tc.nn
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 3), nn.Flatten(),
                        nn.Linear(8, 3)).to(device)  # fmt: skip
    x = tc.randn(2, 1, 8, 8).to(device)
    loss = nn.functional.cross_entropy(net(x), tc.tensor([0, 2], device=device))
    loss.backward()
    return [loss, *[one.grad for one in net.parameters()]]


def attention(device: Any) -> Any:
    """Scaled dot products of queries and keys, causal."""
    query, key, value = [tc.randn(2, 2, 5, 4).to(device).requires_grad_() for _ in range(3)]
    made = tc.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    made.square().sum().backward()
    return [made, query.grad, key.grad, value.grad]


def recurrent(device: Any) -> Any:
    """A gated cell over five steps."""
    x, h = tc.randn(5, 2, 3).to(device), tc.zeros(2, 4, device=device)
    sizes = [(12, 3), (12, 4), (12,), (12,)]
    parameters = [tc.randn(*size).mul(0.3).to(device).requires_grad_() for size in sizes]
    for step in x:
        h = tc.gru_cell(step, h, *parameters)
    h.sum().backward()
    return [h, *[one.grad for one in parameters]]


def norms(device: Any) -> Any:
    """Batch, layer and group norms in a row, and dropout in evaluation."""
    nn = tc.nn
    net = nn.Sequential(nn.BatchNorm1d(6), nn.LayerNorm(6), nn.GroupNorm(2, 6), nn.Dropout(0.5)).to(device)
    x = tc.randn(8, 6).to(device).requires_grad_()
    net(x)
    net.eval()
    net(x).square().mean().backward()
    return [x.grad, *[one.grad for one in net.parameters()], *net.buffers()]


MODELS = {"convolution": convolution, "attention": attention, "recurrent": recurrent, "norms": norms}
