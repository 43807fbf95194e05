"""How the registry's sampled calls are built, run and compared in two libraries, for the suite over every op."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from tensorcore.ops.define import OPS
from tensorcore.ops.samples import find_function
from tensorcore.testing.calls import RANDOM, UNDEFINED, Call, calls_of, degenerate, misfits, refused
from tensorcore.testing.invariants import defined

__all__ = [
    "RANDOM", "UNDEFINED", "Call", "at_specials", "build", "calls_of", "counterpart", "degenerate", "derivative", "flat",
    "misfits", "numbers", "own", "refused", "run", "same",
]  # fmt: skip

# Nothing is said of elements where any of these meets another dtype than it is made for.
SPECIALS = {
    "float32": (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 1.0, -1.0, 0.5, 2.5),
    "float64": (np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-320, -5e-320, 1.5e308, -1.5e308, 1.0, -1.0, 0.5, 2.5),
}
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "complex64": 2e-6, "float64": 1e-10}


def at_specials(call: Call, dtype: str, grid: bool) -> Iterator[tuple[str, Call]]:
    """The call at NaN, infinities, zeros, denormal and huge numbers.

    Args:
        grid: all combinations of the operands' values at once, for elementwise ops; else each value in turn
            takes the place of the first and then of half of the elements.
    """
    values = SPECIALS[dtype]
    count = len(call.floats())
    if grid:
        columns = np.array(list(product(values, repeat=count))).T
        yield "specials", call.replaced(lambda _, position: columns[position].copy())
        return

    def placed(value: float, half: bool) -> Call:
        def change(array: np.ndarray, _: int) -> np.ndarray:
            at = np.indices(array.shape).sum(0) % 2 == 1 if half else np.arange(array.size).reshape(array.shape) == 0
            return np.where(at, value, array)

        return call.replaced(change)

    for value in values[:9]:
        yield f"one {value}", placed(value, False)
        yield f"half {value}", placed(value, True)
    infinities = call.replaced(lambda array, _: np.where(np.indices(array.shape).sum(0) % 2, np.inf, -np.inf))
    yield "both infinities", infinities


def arranged(array: np.ndarray, layout: str) -> np.ndarray:
    """The array in another memory layout; ``expanded`` repeats its first row or element."""
    if layout == "transposed" and array.ndim > 1:
        return np.ascontiguousarray(array.T).T
    if layout == "expanded" and array.ndim:
        return np.broadcast_to(array[:1], array.shape)
    return array


def build(module: Any, value: Any, dtype: str, layout: str = "contiguous", grad: bool = False) -> Any:
    """A sampled argument in a library: arrays of floats become tensors of the dtype, others keep theirs."""
    if isinstance(value, np.ndarray):
        array = arranged(value, layout)
        kind = getattr(module, dtype if array.dtype == np.float64 else str(array.dtype))
        strided = module.tensor(array.tolist() if not array.size else np.array(array), dtype=kind)
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


def own(name: str) -> Callable[..., Any]:
    """Our function of that name, see ``invariants.py``."""
    return defined(name, OPS[name].function)  # type: ignore[arg-type]


def counterpart(torch: Any, name: str) -> Callable[..., Any] | None:
    """PyTorch's function of the same name, wherever it keeps it."""
    found = find_function(torch, name)
    return None if found is None else defined(name, found)


def flat(result: Any) -> list[Any]:
    """The tensors of a result, one or several."""
    if isinstance(result, (list, tuple)):
        return [tensor for one in result for tensor in flat(one)]
    return [result]


def run(
    module: Any, function: Callable[..., Any], call: Call, dtype: str, layout: str = "contiguous", grad: bool = False
) -> Any:
    """The call in a library: its result and its arguments, or the exception."""
    # PyTorch's own function formats the stack of each call for every kind of device that is not there, and keeps it: of a comparison
    # that took four fifths.
    module.default_generator.manual_seed(3)
    args = tuple(build(module, one, dtype, layout, grad) for one in call.args)
    kwargs = {key: build(module, one, dtype, layout, grad) for key, one in call.kwargs.items()}
    try:
        with warnings.catch_warnings():
            # Advice to the user is not compared; NumPy's warnings of overflow and the like stay errors.
            warnings.simplefilter("ignore", UserWarning)
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
    assert len(mine) == len(other), f"{context}: expected {len(other)} results, got {len(mine)}"
    for a, b in zip(mine, other, strict=True):
        if not hasattr(b, "dtype"):
            assert a == b, f"{context}: expected {b}, got {a}"
            continue
        assert str(a.dtype) == str(b.dtype), f"{context}: expected {b.dtype}, got {a.dtype}"
        assert tuple(a.shape) == tuple(b.shape), f"{context}: expected {tuple(b.shape)}, got {tuple(a.shape)}"
        tolerance = TOLERANCE.get(dtype, 1e-6)
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=tolerance, atol=tolerance, err_msg=context)


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
