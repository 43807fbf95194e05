"""Parameters that are bools take True and False alone, where PyTorch's do."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tensorcore as tc
import tests.ops.registry_calls as registry
from tensorcore.ops import late
from tensorcore.ops.define import OPS

late.import_all()
# An error that PyTorch finds before it looks at the bool, or after.
ORDER = {
    ("embedding_bag", "scale_grad_by_freq"), ("embedding_bag", "sparse"), ("embedding_bag", "include_last_offset"),
    ("interpolate", "antialias"),  ("interpolate", "align_corners"), ("expand", "implicit"), ("stft", "align_to_window"),
}  # fmt: skip
# Whose arguments are looked at one by one, in Python.
PYTHON = ("multi_head_attention_forward",)


def bools(name: str) -> list[str]:
    """The parameters of an op that are annotated as bools."""
    parameters = inspect.signature(registry.own(name)).parameters.values()
    found = [one.name for one in parameters if one.annotation in ("bool", "bool | None")]
    return [one for one in found if one != "write" and (name, one) not in ORDER]


def refused(module: Any, function: Any, name: str, parameter: str, value: Any) -> list[bool]:
    """Of each sampled call, whether it raises TypeError with ``value`` for the parameter."""
    names, answers = list(inspect.signature(registry.own(name)).parameters), []
    for call in registry.calls_of(name):
        args, kwargs = (
            list(registry.build(module, call.args, "float32")),
            registry.build(module, call.kwargs, "float32"),
        )
        if parameter in names[: len(args)]:
            args[names.index(parameter)] = value
        else:
            kwargs[parameter] = value
        try:
            function(*args, **kwargs)
            answers.append(False)
        except TypeError:
            answers.append(True)
        except Exception:  # of the call itself, in both
            answers.append(False)
    return answers


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", sorted(name for name in OPS if OPS[name].samples and bools(name) and name not in PYTHON)
)
def test_a_number_is_no_bool_where_it_is_none_for_pytorch(name: str, torch: Any) -> None:
    """A 1 where a bool belongs raises TypeError exactly where it does in PyTorch, by position and by name."""
    theirs = registry.counterpart(torch, name)
    if theirs is None:
        pytest.skip("PyTorch has no function of the name")
    for parameter in bools(name):
        expected = refused(torch, theirs, name, parameter, 1)
        assert refused(tc, registry.own(name), name, parameter, 1) == expected, parameter


MADE = {
    "keepdim by position": lambda t, x: x.sum(0, 1),
    "a str": lambda t, x: x.sum(0, keepdim="yes"),
    "NumPy's name": lambda t, x: x.sum(axis=0, keepdims=1),
    "a bool of a tensor": lambda t, x: x.amax(0, t.tensor(True)),
    "nothing": lambda t, x: x.topk(1, largest=None),
    "a leaf": lambda t, x: t.zeros(2, requires_grad=1),
    "a leaf of numbers": lambda t, x: t.tensor([1.0], requires_grad=1),
    "a flag": lambda t, x: x.clone().requires_grad_(1),
    "a copy": lambda t, x: x.to(t.float64, copy=1),
    "a write": lambda t, x: x.copy_(x, 1),
    "places": lambda t, x: x.index_put_((t.tensor([0]),), x[:1], accumulate=1),
    "dropout's train": lambda t, x: t.nn.functional.dropout(x, 0.5, 1),
    "a window": lambda t, x: t.hann_window(3, 1),
    "an array": lambda t, x: x.numpy(force=1),
    "a switch": lambda t, x: t.set_grad_enabled(1),
    "a layer of gates": lambda t, x: t.gru(
        t.ones(1, 1, 2), t.ones(1, 1, 2), [t.ones(6, 2)] * 2, False, 1, 0.0, 1, False, True
    ),
    "unbiased": lambda t, x: x.std(unbiased=1),
}


@pytest.mark.oracle
@pytest.mark.parametrize("what", MADE)
def test_the_error_is_pytorchs(what: str, torch: Any) -> None:
    """What is no bool is refused with a TypeError that names the argument, and nothing has happened."""
    with pytest.raises(TypeError):
        MADE[what](torch, torch.ones(2))
    with pytest.raises(TypeError, match=r"\(\): argument '\w+' must be bool, not \w+, got .*; pass True or False"):
        MADE[what](tc, tc.ones(2))
    assert tc.is_grad_enabled()


def test_a_flag_assigned_is_a_bool() -> None:
    """``x.requires_grad = 1`` is refused with RuntimeError, as in PyTorch."""
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        tc.ones(1).requires_grad = 1


def test_one_value_for_a_mask_may_have_another_dtype() -> None:
    """``index_put`` of one value at one mask takes any real dtype, as PyTorch does; several values, indices and sums need the same one."""
    x = tc.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert x.index_put((x > 1,), tc.tensor(3)).tolist() == [[1, 3], [3, 3]]
    assert x.clone().index_put_((tc.tensor([True, False]),), tc.tensor([7], dtype=tc.int16)).tolist() == [
        [7, 7],
        [3, 5],
    ]
    value = tc.tensor(2.0, dtype=tc.float64, requires_grad=True)
    x.index_put((x > 1,), value).sum().backward()
    assert (value.grad.item(), value.grad.dtype) == (3.0, tc.float64)
    for indices, values, accumulate in (
        ((x > 1,), tc.tensor(1j), False),
        ((x > 1,), tc.tensor([3, 4, 5]), False),
        ((x > 1,), tc.tensor(3), True),
        ((tc.tensor([0]),), tc.tensor(3), False),
    ):
        with pytest.raises(RuntimeError, match="dtypes match"):
            x.index_put(indices, values, accumulate)
