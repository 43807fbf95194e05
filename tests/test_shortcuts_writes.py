"""The short ways through calls that write answer as the functions in Python, and touch nothing where they hand on."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as torch
from tensorcore.ops.define import OPS
from tensorcore.ops.inplace import check_writable, overwrite, usual_write
from tensorcore.ops.output import check_apart, written

from .test_shortcuts import HUGE, Whole, outcome

pytestmark = pytest.mark.skipif(not hasattr(overwrite, "__wrapped__"), reason="built without a compiler")

FLOATS = frozenset([torch.float32, torch.float64])
WAYS = {
    "add": usual_write(OPS["add"], None, None),
    "exp": usual_write(OPS["exp"], FLOATS, None),
    "lt": usual_write(OPS["lt"], FLOATS | {torch.int64, torch.bfloat16}, torch.bool),
    "hypot": usual_write(OPS["hypot"], FLOATS, None, numbers=False),
    "addcmul": usual_write(OPS["addcmul"], FLOATS, None, numbers=False, factors=frozenset(["value"])),
}
INPUTS = {
    "plain": lambda: torch.arange(6.0).reshape(2, 3) - 2,
    "integers": lambda: torch.arange(6).reshape(2, 3) - 2,
    "narrow": lambda: torch.arange(6, dtype=torch.bfloat16).reshape(2, 3),
    "complex": lambda: torch.arange(6).to(torch.complex64).reshape(2, 3),
    "without dims": lambda: torch.tensor(2.0),
    "empty": lambda: torch.zeros(0, 3),
    "a leaf": lambda: torch.ones(2, 3, requires_grad=True),
    "recorded": lambda: torch.ones(2, 3, requires_grad=True) * 2,
    "a view": lambda: torch.arange(12.0).reshape(3, 4).T[1:3],
    "a view of a leaf": lambda: torch.ones(4, 3, requires_grad=True)[1:3],
    "expanded": lambda: torch.ones(3).expand(2, 3),
    "meta": lambda: torch.zeros(2, 3, device="meta"),
    "a subclass": lambda: torch.nn.Parameter(torch.ones(2, 3)),
}
OTHERS = {
    "nothing": lambda x: (),
    "itself": lambda x: (x,),
    "its memory": lambda x: (x.detach(),),
    "the same kind": lambda x: (torch.full((2, 3), 3, dtype=x.dtype),),
    "a row": lambda x: (torch.full((3,), 3, dtype=x.dtype),),
    "more dims": lambda x: (torch.full((1, 2, 3), 3, dtype=x.dtype),),
    "no dims": lambda x: (torch.tensor(3, dtype=x.dtype),),
    "another dtype": lambda x: (torch.full((2, 3), 3, dtype=torch.int16),),
    "recorded": lambda x: (torch.ones(2, 3, requires_grad=True),),
    "two": lambda x: (1.0, 2.0),
    "two of the same kind": lambda x: (torch.full((2, 3), 3, dtype=x.dtype), torch.full((3,), 2, dtype=x.dtype)),
    **{repr(value): lambda x, value=value: (value,) for value in (2, 2.5, True, HUGE, Whole(2), np.float32(2), None, 1j)},
}  # fmt: skip


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", WAYS)
def test_a_write_is_the_same_by_both_ways(name, kind, recording) -> None:
    """Values and versions of what is written; what only C takes is what the op gives; what neither takes stays as it was."""
    way = WAYS[name]
    for label, others in OTHERS.items():
        with torch.set_grad_enabled(recording):
            x, y, z = INPUTS[kind](), INPUTS[kind](), INPUTS[kind]()
            short = outcome(way, x, others(x))
            long = outcome(way.__wrapped__, y, others(y))
        with torch.no_grad():
            if short is True and long is not True:
                assert long is False, label
                y = z.detach().clone().copy_(getattr(torch, name)(z.detach(), *others(z)))
            else:
                assert short == long, label
        if kind != "meta":
            assert np.array_equal(x.detach().cfloat().numpy(), y.detach().cfloat().numpy(), equal_nan=True), label
        if short is True:
            assert x._version == z._version + 1, label
        else:
            assert x._version == z._version, label


@pytest.mark.parametrize("kind", INPUTS)
def test_what_may_be_written_is_the_same_by_both_ways(kind) -> None:
    """With grad mode on and off, in inference mode, and where a tensor of inference mode is about."""
    for switch in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        x = INPUTS[kind]()
        with switch():
            assert outcome(check_writable, "op", x) == outcome(check_writable.__wrapped__, "op", x)
    assert outcome(check_writable, "op", 3) == outcome(check_writable.__wrapped__, "op", 3)


def test_shared_memory_is_found_by_both_ways() -> None:
    """The target itself, its views, other tensors and what is no tensor, also where elements are read after others were written."""
    x, other = torch.arange(6.0), torch.ones(6)
    for inputs in (
        (),
        (x,),
        (other, 3, None),
        (x[:3],),
        (x.view(2, 3),),
        (torch.nn.Parameter(torch.ones(6)),),
        [x[1:]],
    ):
        for options in ({}, {"all_of_it": True}, {"all_of_it": False}):
            short = outcome(check_apart, "op", x, inputs, **options)
            assert short == outcome(check_apart.__wrapped__, "op", x, inputs, **options)


@pytest.mark.parametrize("kind", INPUTS)
def test_a_result_goes_over_an_input_by_both_ways(kind) -> None:
    """Of its shape and dtype, of others, with a history, of another device, of its own memory."""
    results = (
        lambda x: torch.full((2, 3), 5, dtype=x.dtype), lambda x: torch.full((3,), 5, dtype=x.dtype),
        lambda x: torch.full((2, 3), 5, dtype=torch.int16), lambda x: torch.ones(2, 3, requires_grad=True) * 5,
        lambda x: x, lambda x: x.detach(), lambda x: torch.zeros(2, 3, device="meta"),
    )  # fmt: skip
    for result in results:
        with torch.no_grad():
            x, y = INPUTS[kind](), INPUTS[kind]()
        short, long = outcome(overwrite, "op", x, result(x)), outcome(overwrite.__wrapped__, "op", y, result(y))
        assert (short is x) == (long is y)
        if short is not x:
            assert short == long
        assert x._version == y._version
        assert (x.grad_fn is None) == (y.grad_fn is None)
        if kind != "meta":
            assert np.array_equal(x.detach().cfloat().numpy(), y.detach().cfloat().numpy())


@pytest.mark.parametrize("way", [written, getattr(written, "__wrapped__", written)])
def test_writes_to_many_tensors_have_one_place_in_time(way) -> None:
    """Each one's version goes up by one, a parameter's and a view's base too, and all of them are stamped alike."""
    base = torch.zeros(2, 3)
    tensors = [torch.ones(2), torch.nn.Parameter(torch.ones(2)), base[1], torch.zeros(1, device="meta")]
    tensors[0].add_(1)
    before = [one._version for one in tensors]
    assert way(*tensors) is None
    assert [one._version for one in tensors] == [one + 1 for one in before]
    assert base._version == 1
    assert len({one.version.stamp for one in tensors}) == 1
    assert way() is None
