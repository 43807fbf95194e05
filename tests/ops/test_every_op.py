"""What holds for every op in the registry: it is documented and sampled, and agrees with PyTorch in value, dtype, error and gradient."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.ops.define import OPS

# Ops whose results PyTorch does not define: only shape and dtype are compared.
UNDEFINED = {"empty_like", "empty"}
# Ops that answer with the places of equal elements in an order that PyTorch leaves open.
TIED = {"kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64")
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "complex64": 2e-6, "float64": 1e-10}
LAYOUTS = ("contiguous", "transposed", "expanded", "empty")

SAMPLED = sorted(name for name, op in OPS.items() if op.samples is not None and op.function is not None)


class Call(NamedTuple):
    """One sampled call: arrays stand where tensors belong."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def calls_of(name: str) -> Iterator[Call]:
    """The sampled calls of an op, with the same numbers at every request."""
    rng = np.random.default_rng(7)

    def array(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return rng.uniform(low, high, shape)

    for args, kwargs in OPS[name].samples(array):
        yield Call(args, kwargs)


def arranged(array: np.ndarray, layout: str) -> np.ndarray:
    """The array in another memory layout; ``expanded`` repeats its first row or element."""
    if layout == "transposed" and array.ndim > 1:
        return np.ascontiguousarray(array.T).T
    if layout == "expanded" and array.ndim:
        return np.broadcast_to(array[:1], array.shape)
    return array


def build(module: Any, value: Any, dtype: str, layout: str, grad: bool) -> Any:
    """A sampled argument in a library: arrays of floats become tensors of the dtype, others keep theirs."""
    if isinstance(value, np.ndarray):
        array = arranged(value, layout)
        kind = getattr(module, dtype if array.dtype == np.float64 else str(array.dtype))
        strided = module.tensor(array.tolist() if not array.size else np.ascontiguousarray(array), dtype=kind)
        if not array.size:
            strided = module.zeros(array.shape, dtype=kind)
        if layout == "transposed" and array.ndim > 1:
            order = tuple(reversed(range(array.ndim)))
            strided = strided.permute(*order).contiguous().permute(*order)
        elif layout == "expanded" and array.ndim and array.shape[0]:
            strided = strided.narrow(0, 0, 1).clone().expand(array.shape)
        differentiable = array.dtype == np.float64 and (kind.is_floating_point or kind.is_complex)
        return strided.detach().requires_grad_() if grad and differentiable else strided
    if isinstance(value, (list, tuple)) and any(isinstance(one, np.ndarray) for one in value):
        return type(value)(build(module, one, dtype, layout, grad) for one in value)
    return copy.copy(value)


def counterpart(torch: Any, name: str) -> Callable[..., Any] | None:
    """PyTorch's function of the same name, wherever it keeps it."""
    for place in (torch.nn.functional, torch, torch.linalg, torch.special, torch.fft, torch.Tensor):
        found = getattr(place, name, None)
        if callable(found):
            return found
    return None


def flat(result: Any) -> list[Any]:
    """The tensors of a result, one or several."""
    if isinstance(result, (list, tuple)):
        return [tensor for one in result for tensor in flat(one)]
    return [result]


def run(module: Any, function: Callable[..., Any], call: Call, dtype: str, layout: str, grad: bool = False) -> Any:
    """The call in a library: its result and its arguments, or the exception."""
    module.manual_seed(3)
    args = tuple(build(module, one, dtype, layout, grad) for one in call.args)
    kwargs = {key: build(module, one, dtype, layout, grad) for key, one in call.kwargs.items()}
    try:
        return function(*args, **kwargs), [*args, *kwargs.values()]
    except Exception as error:
        return error, []


def numbers(tensor: Any) -> np.ndarray:
    """A tensor's values as an array that NumPy can compare."""
    tensor = tensor.detach()
    if str(tensor.dtype) in ("torch.bfloat16", "torch.float16"):
        tensor = tensor.float()
    return np.asarray(tensor.numpy(force=True))


def same(ours: Any, theirs: Any, dtype: str, context: str) -> None:
    """Fail unless two results are alike in structure, dtype, shape and value."""
    mine, other = flat(ours), flat(theirs)
    assert len(mine) == len(other), context
    for a, b in zip(mine, other, strict=True):
        if not hasattr(b, "dtype"):
            assert a == b, context
            continue
        assert str(a.dtype) == str(b.dtype), context
        assert tuple(a.shape) == tuple(b.shape), context
        tolerance = TOLERANCE.get(dtype, 1e-6)
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=tolerance, atol=tolerance, err_msg=context)


def test_every_op_is_documented_and_sampled() -> None:
    """An op without a sentence or without samples cannot be entered unnoticed."""
    assert [name for name, op in OPS.items() if not op.doc.strip()] == []
    assert [name for name, op in OPS.items() if op.samples is None and op.kind != "creation"] == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_op_agrees_with_pytorch(name: str, torch: Any) -> None:
    """Value, dtype and shape, or the kind of error, are PyTorch's for every dtype and layout."""
    function = counterpart(torch, name)
    if function is None:
        pytest.skip(f"PyTorch has no function named {name}")
    for number, call in enumerate(calls_of(name)):
        for dtype in DTYPES:
            for layout in LAYOUTS:
                context = f"{name} call {number} {dtype} {layout}"
                theirs, _ = run(torch, function, call, dtype, layout)
                ours, _ = run(tc, OPS[name].function, call, dtype, layout)
                if isinstance(theirs, Exception):
                    if "not implemented for" in str(theirs) and not isinstance(ours, Exception):
                        continue  # a dtype that PyTorch's CPU kernel lacks may work here
                    assert isinstance(ours, Exception), f"{context}: PyTorch raises {theirs!r}, got {ours}"
                    assert isinstance(ours, type(theirs)) or isinstance(theirs, RuntimeError | NotImplementedError), (
                        f"{context}: {ours!r} for {theirs!r}"
                    )
                    continue
                assert not isinstance(ours, Exception), f"{context}: {ours!r}"
                if name in UNDEFINED:
                    continue
                if name in TIED and (layout == "expanded" or dtype not in ("float64", "float32")):
                    ours, theirs = flat(ours)[0], flat(theirs)[0]
                same(ours, theirs, dtype, context)


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_gradient_agrees_with_pytorch(name: str, torch: Any) -> None:
    """First and second derivatives are PyTorch's, on every layout."""
    function = counterpart(torch, name)
    if function is None:
        pytest.skip(f"PyTorch has no function named {name}")
    for number, call in enumerate(calls_of(name)):
        for layout in ("contiguous", "transposed", "expanded"):
            context = f"{name} call {number} {layout}"
            theirs, their_inputs = run(torch, function, call, "float64", layout, grad=True)
            ours, our_inputs = run(tc, OPS[name].function, call, "float64", layout, grad=True)
            if isinstance(theirs, Exception) or (name in TIED and layout == "expanded"):
                continue
            assert not isinstance(ours, Exception), f"{context}: {ours!r}"
            for order in (1, 2):
                try:
                    theirs = derivative(torch, theirs, their_inputs)
                except (RuntimeError, NotImplementedError) as error:
                    assert "not implemented" in str(error), context
                    break  # PyTorch has no formula here; ours is checked numerically below
                ours = derivative(tc, ours, our_inputs)
                if theirs is None or ours is None:
                    # A derivative that is zero everywhere may be recorded as such or not at all.
                    known = ours if theirs is None else theirs
                    assert known is None or all(not numbers(one).any() for one in flat(known)), f"{context} order {order}"
                    break
                same(ours, theirs, "float64", f"{context} order {order}")


def derivative(module: Any, result: Any, inputs: list[Any]) -> list[Any] | None:
    """The gradients of a weighted sum of the result's elements; None where nothing is differentiable."""
    leaves = [one for one in flat(inputs) if hasattr(one, "requires_grad") and one.requires_grad]
    outputs = [one for one in flat(result) if hasattr(one, "requires_grad") and one.requires_grad]
    if not leaves or not outputs:
        return None
    total = None
    for one in outputs:
        weight = module.arange(1, one.numel() + 1, dtype=module.float64).reshape(one.shape) / max(one.numel(), 1)
        term = (one.abs() if one.dtype.is_complex else one).mul(weight).sum()
        total = term if total is None else total + term
    return list(module.autograd.grad(total, leaves, create_graph=True, allow_unused=True, materialize_grads=True))
