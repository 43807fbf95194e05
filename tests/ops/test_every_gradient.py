"""What holds for the derivatives of every op in the registry: finite differences confirm the first and the second.

Each sampled call is checked with contiguous, strided and expanded inputs, with 0-d and with empty ones, and with
complex numbers where the op takes them. An op without a formula is checked too: its differences must be zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.autograd.gradcheck import gradcheck, gradgradcheck
from tensorcore.errors import ArgumentTypeError, LinAlgError, TensorcoreError
from tensorcore.ops.define import OPS
from tensorcore.testing.invariants import REGULAR, defined
from tests.ops.registry_forms import SAMPLED, Call, calls_of, mapped, tensors_of, with_leaves

# Calls that no difference can confirm, by op and what they pass, each with the reason.
UNCONFIRMED = {
    (
        "ctc_loss",
        "zero_infinity",
    ): "the gradient is that of scores before a log_softmax; test_sequence.py confirms it there",
    ("embedding", "padding_idx"): "the gradient of the padding row is zero by definition",
    ("embedding", "scale_grad_by_freq"): "the gradient is divided by the counts by definition",
    ("histogram", "weight"): "PyTorch's histograms have no derivative with respect to the weights",
    ("histogramdd", "weight"): "PyTorch's histograms have no derivative with respect to the weights",
    ("embedding_bag", "scale_grad_by_freq"): "the gradient is divided by the counts by definition",
    ("gumbel_softmax", "hard"): "the gradient is that of the soft sample by definition",
    ("linalg_lstsq", "driver"): "singular values and ranks are constants by definition",
}
# Arguments that the op takes no gradient for and refuses where they require one: the op and the position.
CONSTANT = {"nll_loss": 2, "cross_entropy": 2, "multi_margin_loss": 4}
# Ops of the memory as it lies: another layout is another program, or none.
OF_MEMORY = {"as_strided", "as_strided_copy", "as_strided_scatter", "view", "view_as_complex", "view_as_complex_copy"}
LAYOUTS = ("contiguous", "transposed", "strided", "expanded", "scalar", "empty", "complex")
# Inputs of more elements are moved along some random directions instead of element by element.
SMALL, DIRECTIONS = 16, 2


def reduced(array: np.ndarray, layout: str) -> np.ndarray:
    """What the layout leaves of an array."""
    if layout == "expanded" and array.ndim:
        return array[:1].copy()
    if layout == "scalar":
        return array.reshape(-1)[:1].reshape(()).copy() if array.size else array
    if layout == "empty" and array.ndim:
        return array[:0].copy()
    if layout == "complex" and array.dtype == np.float64:
        # Turned by a fixed angle: real numbers lie on the branch cuts.
        return np.asarray(array * (0.8 + 0.6j))
    return array


def arranged(tensor: tc.Tensor, layout: str, shape: tuple[int, ...]) -> tc.Tensor:
    """The tensor in the memory order of the layout, on the tape."""
    if layout == "transposed" and tensor.ndim > 1:
        order = tuple(reversed(range(tensor.ndim)))
        return tensor.permute(order).contiguous().permute(order)
    if layout == "strided" and tensor.ndim:
        return tc.stack([tensor, tensor], -1).select(-1, 1)
    return tensor.expand(shape) if layout == "expanded" and shape else tensor


def program(name: str, call: Call, layout: str) -> tuple[Any, list[np.ndarray]]:
    """The op as a function of its floating tensors, and their values."""
    arrays, rebuilt = with_leaves(call)
    shapes = [one.shape for one in arrays]
    function = defined(name, OPS[name].function)  # type: ignore[arg-type]

    def run(*leaves: tc.Tensor) -> tuple[tc.Tensor, ...]:
        tc.manual_seed(3)
        values = [arranged(one, layout, shape) for one, shape in zip(leaves, shapes, strict=True)]
        args, kwargs = mapped(rebuilt(values), tc.from_numpy)
        return tuple(tensors_of(function(*args, **kwargs)))

    run.__name__ = name
    return run, [reduced(one, layout) for one in arrays]


def projected(run: Any, arrays: list[np.ndarray]) -> Any:
    """The program of one number for each of some random directions, whose results are random sums of the program's."""
    drawn: list[tc.Tensor] = []  # in the order of use, which is the same in every run

    def along(steps: tc.Tensor) -> tuple[tc.Tensor, ...]:
        rng, used = np.random.default_rng(5) if not drawn else None, iter([*drawn])

        def weights(*shape: int, real: bool = False) -> tc.Tensor:
            if rng is None:
                return next(used)
            made = rng.uniform(0.5, 1.5, shape)
            made = made if real else made * np.exp(1j * rng.uniform(0, 6, shape))
            drawn.append(tc.from_numpy(np.asarray(made)))
            return drawn[-1]

        moved = []
        for one in arrays:
            way = weights(DIRECTIONS, *one.shape, real=one.dtype.kind == "f")
            moved.append(tc.from_numpy(one) + (way * steps.reshape(DIRECTIONS, *[1] * one.ndim)).sum(0))
        return tuple(
            [(one * weights(2, *one.shape, real=not one.is_complex())).reshape(2, -1).sum(1)
             for one in run(*moved) if one.is_floating_point() or one.is_complex()]
        )  # fmt: skip

    along.__name__ = run.__name__
    return along


def changes_anything(layout: str, call: Call) -> bool:
    """Whether the layout makes another call of it than the contiguous one."""
    arrays, _ = with_leaves(call)
    if layout == "transposed":
        return any(one.ndim > 1 and one.size for one in arrays)
    if layout in ("strided", "expanded", "empty"):
        return any(one.ndim and one.size for one in arrays)
    return layout != "scalar" or any(one.ndim for one in arrays)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", SAMPLED)
def test_gradient_is_confirmed_by_differences(name: str) -> None:
    """First and second derivatives agree with central differences for every sampled call in every layout."""
    for number, call in enumerate(calls_of(name)):
        for layout in [one for one in LAYOUTS if one != "expanded" or name not in REGULAR]:
            confirm(name, number, call, layout)


def test_refused_gradients_are_refused() -> None:
    """An argument that is listed as one without a gradient raises where it requires one."""
    for name, at in CONSTANT.items():
        call = next(one for one in calls_of(name) if len(one.args) > at)
        run, arrays = program(name, call, "contiguous")
        with pytest.raises(RuntimeError, match="not differentiable"):
            run(*[tc.from_numpy(one).requires_grad_() for one in arrays])


def test_calls_without_confirmation_are_in_the_samples() -> None:
    """An exception stands for a call that is still made."""
    for name, option in UNCONFIRMED:
        assert any(option in call.kwargs for call in calls_of(name)), f"{name}({option}=...) is sampled no more"


def differentiable(results: list[tc.Tensor], leaves: list[tc.Tensor], layout: str) -> bool:
    """Whether there are derivatives to compare: not where the op has none by decision, nor around infinite results."""
    recorded = [one for one in results if one.requires_grad]
    found: Any = []
    try:
        if recorded:
            found = tc.autograd.grad(recorded, leaves, [tc.ones_like(one) for one in recorded], allow_unused=True)
    except TensorcoreError as error:
        if "is not implemented" not in str(error):
            raise
        return False
    for one, g in zip(leaves, found, strict=False):
        assert g is None or (g.shape == one.shape and g.dtype is one.dtype)
    return all(bool(one.isfinite().all()) for one in results)


def confirm(name: str, number: int, call: Call, layout: str) -> None:
    """Check one call in one layout; calls that the op refuses for their dtype, shape or strides are none."""
    if any((name, key) in UNCONFIRMED for key in call.kwargs) or not changes_anything(layout, call):
        return
    at = CONSTANT.get(name, len(call.args))
    call = Call((*call.args[:at], *mapped(call.args[at : at + 1], tc.from_numpy), *call.args[at + 1 :]), call.kwargs)
    run, arrays = program(name, call, layout)
    if not arrays or (name in OF_MEMORY and layout in ("transposed", "strided", "expanded")):
        return
    leaves = [tc.from_numpy(one.copy()).requires_grad_() for one in arrays]
    try:
        results = run(*leaves)
    except (TensorcoreError, NotImplementedError) as error:
        # A number where a tensor belongs is sampled to be refused; equal rows make a matrix singular.
        if (
            layout in ("scalar", "empty", "complex")
            or isinstance(error, ArgumentTypeError)
            or (layout == "expanded" and isinstance(error, LinAlgError))
        ):
            return
        raise
    results = [one for one in results if one.is_floating_point() or one.is_complex()]
    if OPS[name].off_tape:
        assert not any(one.requires_grad for one in results)
        return
    if not results or not differentiable(results, leaves, layout):
        return
    if layout != "contiguous" or max(one.numel() for one in (*leaves, *results)) > SMALL:
        run, leaves = projected(run, arrays), [tc.zeros(DIRECTIONS, dtype=tc.float64).requires_grad_()]
    try:
        gradcheck(run, leaves)
        if any(one.requires_grad for one in results):
            gradgradcheck(run, leaves)
    except Exception as error:
        raise AssertionError(f"{name} call {number} {layout}: {error}") from error
