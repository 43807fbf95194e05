"""What holds for the other forms of every op in the registry: in place, into ``out=``, and as a method of Tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import TensorcoreError
from tensorcore.ops.define import OPS
from tensorcore.testing.invariants import unique
from tests.ops.registry_forms import SAMPLED, Call, calls_of, counterpart, tensors_of, with_tensors

# Their in-place form gives the tensor another shape over the same memory and writes no element.
RESHAPING = {"as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"}
# Calls that differ from PyTorch's, each with the reason.
DIFFERENT = {
    "cumprod_ call 2 bool": "PyTorch takes a bool of no dims, and refuses one with dims",
    "cumsum_ call 2 bool": "PyTorch takes a bool of no dims, and refuses one with dims",
    "cumprod call 2 narrow": "PyTorch does not look at the dtype of out for a 0-d input",
    "lu call 0 narrow": "PyTorch copies the factors into an out of any dtype",
    "lu call 1 narrow": "PyTorch copies the factors into an out of any dtype",
    "cumsum call 2 narrow": "PyTorch does not look at the dtype of out for a 0-d input",
}
DTYPES = ("float64", "float32", "int64", "bool", "complex64")
WRITING = [name for name in SAMPLED if hasattr(tc.Tensor, f"{name}_") and name not in RESHAPING]


def on_first(name: str) -> list[Call]:
    """The sampled calls whose first argument is a floating array, as a method takes them."""
    return [
        one for one in calls_of(name)
        if one.args and isinstance(one.args[0], np.ndarray) and one.args[0].dtype.kind == "f"
    ]  # fmt: skip


def method(module: Any, name: str, call: Call) -> Any:
    """Call the method of the first argument."""
    return getattr(module.Tensor, name)(*call.args, **call.kwargs)


def fresh(call: Call, dtype: str = "float64", module: Any = tc, grad: bool = False) -> Call:
    """The call with tensors of its own."""
    return with_tensors(module, call, dtype, grad)


def fits(call: Call, name: str) -> Any:
    """The out-of-place result where it can be written over the first argument, else None."""
    result = method(tc, name, fresh(call))
    return result if tuple(result.shape) == call.args[0].shape and tc.can_cast(result.dtype, tc.float64) else None


def accepted(name: str) -> list[Call]:
    """Those of the calls that the method takes; some samples are there to be refused."""
    return [one for one in on_first(name) if not isinstance(outcome(method, tc, name, fresh(one)), Exception)]


@pytest.mark.parametrize("name", WRITING)
def test_in_place_form_writes_its_own_memory(name: str) -> None:
    """``x.name_()`` returns ``x``, whose memory then holds the result of ``x.name()``, and counts one write."""
    for call in accepted(name):
        expected = fits(call, name)
        if expected is None:
            continue
        mine = fresh(call)
        x = mine.args[0]
        at, version = x.data_ptr(), x._version
        made = method(tc, f"{name}_", mine)
        assert made is x
        assert (x.data_ptr(), x._version) == (at, version + 1)
        np.testing.assert_allclose(x.numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", WRITING)
def test_in_place_form_refuses_what_cannot_hold_the_result(name: str) -> None:
    """A leaf, an expanded tensor, and one of another shape or dtype raise RuntimeError and keep their values."""
    for call in accepted(name):
        first = call.args[0]
        mine = fresh(call)
        mine.args[0].requires_grad_()
        cases = [mine]
        if first.size and first.shape and first.shape[0] > 1:
            cases.append(
                Call((tc.from_numpy(first[:1].copy()).expand(first.shape), *fresh(call).args[1:]), fresh(call).kwargs)
            )
        if fits(call, name) is None:
            cases.append(fresh(call))
        for case in cases:
            x = case.args[0]
            before, version = x.detach().numpy().copy(), x._version
            with pytest.raises((RuntimeError, TypeError)):
                method(tc, f"{name}_", case)
            assert x._version == version
            np.testing.assert_array_equal(x.detach().numpy(), before)


@pytest.mark.parametrize("name", WRITING)
def test_in_place_form_of_a_view_is_differentiated_as_the_other_form(name: str) -> None:
    """Writing to a part of a recorded tensor gives the gradients of the program that joins the parts out of place."""
    for call in accepted(name):
        if fits(call, name) is None:
            continue
        found = []
        for write in (True, False):
            mine = fresh(call, grad=True)
            leaf = mine.args[0]
            base = tc.stack([leaf * 2.0, leaf * 3.0])
            if write:
                made = method(tc, f"{name}_", Call((base[1], *mine.args[1:]), mine.kwargs))
                assert made._base is base
            else:
                base = tc.stack([base[0], method(tc, name, Call((base[1], *mine.args[1:]), mine.kwargs))])
            if not differentiable(base):
                return
            weights = tc.arange(1, base.numel() + 1, dtype=tc.float64).reshape(base.shape)
            leaves = [one for one in tensors_of([mine.args, mine.kwargs]) if one.requires_grad]
            grads = tc.autograd.grad((base * base * weights).sum(), leaves, allow_unused=True, materialize_grads=True)
            found.append([base, *grads])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


def differentiable(result: tc.Tensor) -> bool:
    """Whether the op has a derivative: PyTorch records some ops that it cannot differentiate."""
    try:
        result.sum().backward(retain_graph=True)
    except TensorcoreError as error:
        if "is not implemented" not in str(error):
            raise
        return False
    return True


def outcome(action: Any, *args: Any, **options: Any) -> Any:
    """What an action returns, or the exception it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return action(*args, **options)
        except Exception as error:
            return error


def alike(ours: Any, theirs: Any, context: str) -> None:
    """Fail unless both are errors of one kind, or results of one dtype, shape and values, or listed as different."""
    try:
        compare(ours, theirs, context)
    except AssertionError:
        if context in DIFFERENT:
            return
        raise
    assert context not in DIFFERENT, f"{context} agrees by now: take it out of the table"


def compare(ours: Any, theirs: Any, context: str) -> None:
    """Fail unless both are errors of one kind, or results of one dtype, shape and values."""
    if isinstance(theirs, Exception):
        if "not implemented for" in str(theirs):
            return  # a dtype that PyTorch's kernel lacks may work here
        assert isinstance(ours, Exception), f"{context}: PyTorch raises {theirs!r}, got {ours}"
        kinds = [one for one in (IndexError, ValueError, TypeError, RuntimeError) if isinstance(theirs, one)]
        assert isinstance(ours, tuple(kinds)), f"{context}: {ours!r} for {theirs!r}"
        return
    assert not isinstance(ours, Exception), f"{context}: {ours!r}"
    mine, other = tensors_of(ours), tensors_of(theirs)
    assert len(mine) == len(other), context
    for a, b in zip(mine, other, strict=True):
        assert (str(a.dtype), tuple(a.shape)) == (str(b.dtype), tuple(b.shape)), context
        loose = str(a.dtype) not in ("torch.float64", "torch.complex128")
        np.testing.assert_allclose(
            a.detach().numpy(),
            b.detach().resolve_conj().numpy(),
            rtol=1e-5 if loose else 1e-8,
            atol=1e-5 if loose else 1e-8,
            err_msg=context,
        )


@pytest.mark.oracle
@pytest.mark.parametrize("name", WRITING)
def test_in_place_form_agrees_with_pytorch(name: str, torch: Any) -> None:
    """Values, and the kind of error, are PyTorch's for every dtype written to."""
    if not hasattr(torch.Tensor, f"{name}_"):
        pytest.skip(f"PyTorch has no {name}_")
    for number, call in enumerate(on_first(name)):
        for dtype in DTYPES:
            ours, theirs = [outcome(method, m, f"{name}_", fresh(call, dtype, m)) for m in (tc, torch)]
            alike(ours, theirs, f"{name}_ call {number} {dtype}")


def called(module: Any, function: Any, call: Call) -> Any:
    """Call the function with tensors of its own."""
    args, kwargs = fresh(call, module=module)
    return function(*args, **kwargs)


def into(module: Any, function: Any, call: Call, plain: Any, kind: str, grad: bool = False) -> Any:
    """Call with an ``out`` like the plain result: one that fits, an empty one, or one of a dtype that is too narrow."""
    args, kwargs = fresh(call, module=module, grad=grad)
    outs = []
    for one in tensors_of(plain):
        dtype = "bool" if kind == "narrow" else str(one.dtype).rpartition(".")[2]
        outs.append(module.zeros((0,) if kind == "empty" else tuple(one.shape), dtype=getattr(module, dtype)))
    at = [one.data_ptr() for one in outs]
    made = function(*args, **kwargs, out=tuple(outs) if isinstance(plain, (tuple, list)) else outs[0])
    assert all(a is b for a, b in zip(tensors_of(made), outs, strict=True)), "what is returned is not out"
    assert kind != "fits" or [one.data_ptr() for one in outs] == at, "out has other memory"
    return made


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_out_form_agrees_with_pytorch(name: str, torch: Any) -> None:
    """Where PyTorch's function takes ``out=``, so does ours: written to, resized, or refused in the same cases."""
    theirs = getattr(torch, name, None) or counterpart(torch, name)
    if theirs is None:
        pytest.skip("PyTorch has no such function, or does not define its values")
    ours = OPS[name].function
    for number, call in enumerate(calls_of(name)):
        plain = outcome(called, torch, theirs, call)
        if not tensors_of(plain) or isinstance(outcome(into, torch, theirs, call, plain, "fits"), Exception):
            continue
        for kind in ("fits", "empty", "narrow"):
            expected = outcome(into, torch, theirs, call, plain, kind)
            mine = unique(name, outcome(into, tc, ours, call, plain, kind))
            alike(mine, unique(name, expected), f"{name} call {number} {kind}")
        refused = outcome(into, torch, theirs, call, plain, "fits", grad=True)
        if isinstance(refused, RuntimeError):
            alike(
                outcome(into, tc, ours, call, plain, "fits", grad=True), refused, f"{name} call {number} requires grad"
            )


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_method_is_the_function(name: str, torch: Any) -> None:
    """An op that is a method of PyTorch's Tensor is one here, with the function's result."""
    if not hasattr(torch.Tensor, name):
        pytest.skip("no method in PyTorch")
    for number, call in enumerate(calls_of(name)):
        first = call.args[0] if call.args else None
        if not isinstance(first, np.ndarray):
            continue
        theirs = outcome(method, torch, name, fresh(call, module=torch))
        if isinstance(theirs, Exception):
            continue
        alike(
            unique(name, outcome(method, tc, name, fresh(call))), unique(name, theirs), f"Tensor.{name} call {number}"
        )


@pytest.mark.oracle
def test_listed_differences_are_still_there(torch: Any) -> None:
    """An entry in the table of differences names an op in the registry; that it still differs is seen at its call."""
    assert [one for one in DIFFERENT if one.partition(" ")[0].rstrip("_") not in OPS] == []
