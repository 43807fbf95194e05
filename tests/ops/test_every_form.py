"""What holds for the other forms of every op in the registry: in place, into ``out=``, and as a method of Tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import TensorcoreError
from tensorcore.ops.define import OPS
from tests.ops.registry_forms import SAMPLED, Call, calls_of, counterpart, tensors_of, with_tensors

# Their in-place form gives the tensor another shape over the same memory and writes no element.
RESHAPING = {"as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"}
# Ops whose results PyTorch does not define.
UNDEFINED = {"empty", "empty_like"}
# Forms that differ from PyTorch's, each with the reason.
DIFFERENT: dict[tuple[str, str], str] = {}
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
    first = call.args[0]
    return result if tuple(result.shape) == first.shape and result.dtype is tc.float64 else None


@pytest.mark.parametrize("name", WRITING)
def test_in_place_form_writes_its_own_memory(name: str) -> None:
    """``x.name_()`` returns ``x``, whose memory then holds the result of ``x.name()``, and counts one write."""
    for call in on_first(name):
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
    for call in on_first(name):
        first = call.args[0]
        mine = fresh(call)
        mine.args[0].requires_grad_()
        cases = [mine]
        if first.ndim and first.shape[0] > 1:
            cases.append(Call((tc.from_numpy(first[:1].copy()).expand(first.shape), *fresh(call).args[1:]), fresh(call).kwargs))
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
    for call in on_first(name):
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
            weights = tc.arange(1, base.numel() + 1, dtype=tc.float64).reshape(base.shape)
            leaves = [one for one in tensors_of([mine.args, mine.kwargs]) if one.requires_grad]
            grads = tc.autograd.grad((base * base * weights).sum(), leaves, allow_unused=True, materialize_grads=True)
            found.append([base, *grads])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


def outcome(action: Any) -> Any:
    """What an action returns, or the exception it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return action()
        except Exception as error:
            return error


def alike(ours: Any, theirs: Any, context: str) -> None:
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
            a.detach().numpy(), b.detach().resolve_conj().numpy(), rtol=1e-5 if loose else 1e-8, atol=1e-5 if loose else 1e-8, err_msg=context
        )


@pytest.mark.oracle
@pytest.mark.parametrize("name", WRITING)
def test_in_place_form_agrees_with_pytorch(name: str, torch: Any) -> None:
    """Values, and the kind of error, are PyTorch's for every dtype written to."""
    if not hasattr(torch.Tensor, f"{name}_"):
        pytest.skip(f"PyTorch has no {name}_")
    if (name, "in place") in DIFFERENT:
        pytest.skip(DIFFERENT[name, "in place"])
    for number, call in enumerate(on_first(name)):
        for dtype in DTYPES:
            ours, theirs = [outcome(lambda m=m: method(m, f"{name}_", fresh(call, dtype, m))) for m in (tc, torch)]
            alike(ours, theirs, f"{name}_ call {number} {dtype}")


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_out_form_agrees_with_pytorch(name: str, torch: Any) -> None:
    """Where PyTorch's function takes ``out=``, so does ours: written to, resized, or refused in the same cases."""
    theirs = getattr(torch, name, None) or getattr(torch.special, name, None) or counterpart(torch, name)
    if theirs is None or name in UNDEFINED:
        pytest.skip("PyTorch has no such function, or does not define its values")
    if (name, "out") in DIFFERENT:
        pytest.skip(DIFFERENT[name, "out"])
    for number, call in enumerate(calls_of(name)):
        plain = outcome(lambda: theirs(*fresh(call, module=torch).args, **fresh(call, module=torch).kwargs))
        if isinstance(plain, Exception) or not tensors_of(plain):
            continue
        shapes = [(tuple(one.shape), str(one.dtype).rpartition(".")[2]) for one in tensors_of(plain)]
        several = isinstance(plain, (tuple, list))

        def into(module: Any, function: Any, kind: str, grad: bool = False) -> Any:
            mine = fresh(call, module=module, grad=grad)
            outs = []
            for shape, dtype in shapes:
                if kind == "narrow":
                    dtype = "bool" if dtype != "bool" else "bool"
                outs.append(module.zeros(shape if kind != "empty" else (0,), dtype=getattr(module, dtype)))
            at = [one.data_ptr() for one in outs]
            made = function(*mine.args, **mine.kwargs, out=tuple(outs) if several else outs[0])
            returned = tensors_of(made)
            assert all(a is b for a, b in zip(returned, outs, strict=True)), "out is not what is returned"
            if kind == "fits":
                assert [one.data_ptr() for one in outs] == at, "out has other memory"
            return made

        if isinstance(outcome(lambda: into(torch, theirs, "fits")), Exception):
            return
        ours = OPS[name].function
        for kind in ("fits", "empty", "narrow"):
            alike(outcome(lambda k=kind: into(tc, ours, k)), outcome(lambda k=kind: into(torch, theirs, k)), f"{name} call {number} {kind}")
        refused = outcome(lambda: into(torch, theirs, "fits", grad=True))
        if isinstance(refused, RuntimeError):
            alike(outcome(lambda: into(tc, ours, "fits", grad=True)), refused, f"{name} call {number} requires grad")


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_method_is_the_function(name: str, torch: Any) -> None:
    """An op that is a method of PyTorch's Tensor is one here, with the function's result."""
    if not hasattr(torch.Tensor, name) or name in UNDEFINED:
        pytest.skip("no method in PyTorch")
    for number, call in enumerate(calls_of(name)):
        first = call.args[0] if call.args else None
        if not isinstance(first, np.ndarray):
            continue
        theirs = outcome(lambda: method(torch, name, fresh(call, module=torch)))
        if isinstance(theirs, Exception):
            continue
        alike(outcome(lambda: method(tc, name, fresh(call))), theirs, f"Tensor.{name} call {number}")


def missing_names(torch: Any) -> dict[str, list[str]]:
    """The public names of PyTorch that are missing here, by the place where programs look for them."""
    places = {"Tensor": (torch.Tensor, tc.Tensor), "torch": (torch, tc), "nn.functional": (torch.nn.functional, tc.nn.functional)}
    return {
        place: sorted(
            one for one in dir(theirs)
            if not one.startswith("_") and callable(getattr(theirs, one, None)) and not isinstance(getattr(theirs, one), type)
            and not hasattr(ours, one)
        )
        for place, (theirs, ours) in places.items()
    }  # fmt: skip


@pytest.mark.oracle
def test_names_that_pytorch_has_do_not_grow_fewer(torch: Any) -> None:
    """No more of PyTorch's names are missing than are known to be; the numbers go down only."""
    found = {place: len(names) for place, names in missing_names(torch).items()}
    known = {"Tensor": 999, "torch": 999, "nn.functional": 999}
    more = {place: count for place, count in found.items() if count > known[place]}
    assert not more, f"more names are missing than before: {more}, known are {known}"


@pytest.mark.oracle
def test_listed_differences_are_still_there(torch: Any) -> None:
    """An entry in the table of differences names an op that is in the registry."""
    assert [name for name, _ in DIFFERENT if name not in OPS] == []
