"""What holds for every op in the registry on the lazy device: results, gradients and writes are those of the device under it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import TensorcoreError
from tensorcore.lazy import making, plan
from tensorcore.ops.define import OPS
from tensorcore.testing.calls import RANDOM
from tests.ops.registry_forms import SAMPLED, Call, calls_of, tensors_of, with_tensors

DTYPES = ("float32", "complex64", "int64", "bool")
# Their form with an underscore gives the tensor another shape over the same memory and writes no element.
RESHAPING = {"as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"}
WRITING = [name for name in SAMPLED if hasattr(tc.Tensor, f"{name}_") and name not in RESHAPING]


@pytest.fixture(autouse=True)
def unknown_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program was met before: one that was, of another op's test, runs in groups of ops, whose sums may be added in another order."""
    monkeypatch.setattr(plan, "_plans", {})
    monkeypatch.setattr(making, "_known", OrderedDict())


def moved(value: Any, device: str) -> Any:
    """The call with its tensors on a device, as leaves where they were."""
    if isinstance(value, tc.Tensor):
        made = value.detach().to(device)
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, dict):
        return {key: moved(one, device) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(*[moved(one, device) for one in value]) if isinstance(value, Call) else type(value)(
            [moved(one, device) for one in value]
        )  # fmt: skip
    return value


def attempt(function: Any, call: Call) -> list[tc.Tensor] | Exception:
    """The tensors of the result, computed; or what was raised instead."""
    tc.manual_seed(3)
    try:
        made = tensors_of(function(*call.args, **call.kwargs))
        tc.evaluate(*made)
    except (TensorcoreError, ArithmeticError, ValueError, TypeError, IndexError, RuntimeError) as error:
        return error
    return made


def bits(tensor: tc.Tensor) -> tuple[Any, ...]:
    """All that can be seen of a tensor."""
    values = tensor.detach().cpu()
    # The stride of a dim of one element leads nowhere, and kernels leave there what they like.
    steps = [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1]
    return tuple(tensor.shape), tensor.dtype, steps, values.numpy().tobytes()


def same(wanted: list[tc.Tensor] | Exception, got: list[tc.Tensor] | Exception, what: str) -> bool:
    """Assert that two outcomes agree, bit for bit; whether there are results."""
    if isinstance(wanted, Exception):
        assert isinstance(got, Exception), f"{what}: expected {wanted!r}"
        return False
    assert not isinstance(got, Exception), f"{what}: {got!r}"
    assert [bits(one) for one in got] == [bits(one) for one in wanted], what
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*SAMPLED, *sorted(RANDOM)])
def test_an_op_gives_the_same_bits(name: str) -> None:
    """Values, shape, dtype and strides of a lazy result are those of the eager one, random ops included."""
    compared = 0
    for dtype in DTYPES:
        for number, call in enumerate(calls_of(name)):
            mine = with_tensors(tc, call, dtype)
            wanted = attempt(OPS[name].function, mine)
            compared += same(
                wanted, attempt(OPS[name].function, moved(with_tensors(tc, call, dtype), "lazy")), f"{dtype} {number}"
            )
    assert compared


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLED)
def test_gradients_give_the_same_bits(name: str) -> None:
    """A backward pass that was written down gives the gradients of one that was not."""
    for number, call in enumerate(calls_of(name)):
        grads = []
        for device in ("cpu", "lazy"):
            mine = moved(with_tensors(tc, call, "float64", grad=True), device)
            leaves = [
                one for one in tensors_of([*mine.args, *mine.kwargs.values()]) if getattr(one, "requires_grad", False)
            ]
            made = attempt(OPS[name].function, mine)
            if isinstance(made, Exception):
                grads.append(made)
                continue
            roots = [one for one in made if one.requires_grad]
            try:
                with warnings.catch_warnings():
                    tc.autograd.backward(roots, [tc.ones_like(one) * 0.5 for one in roots])
                grads.append([one.grad for one in leaves if one.grad is not None])
            except (TensorcoreError, NotImplementedError) as error:
                grads.append(error)
        same(grads[0], grads[1], f"{name} {number}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITING)
def test_the_form_with_an_underscore_writes_the_same_bits(name: str) -> None:
    """Written into a view, an op changes the whole memory as it does eagerly, and counts one write."""
    for number, call in enumerate(calls_of(name)):
        if not call.args or not isinstance(call.args[0], np.ndarray) or call.args[0].dtype.kind != "f":
            continue
        seen = []
        for device in ("cpu", "lazy"):
            mine = moved(with_tensors(tc, call), device)
            whole = tc.stack([mine.args[0], mine.args[0]], -1)
            part = whole[..., 1]
            made = attempt(getattr(tc.Tensor, f"{name}_"), Call((part, *mine.args[1:]), mine.kwargs))
            seen.append(made if isinstance(made, Exception) else [whole, part])
            version = whole._version
        if same(seen[0], seen[1], f"{name} {number}"):
            assert version == 1
