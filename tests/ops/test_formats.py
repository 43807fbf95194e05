"""Memory formats: where elements lie after a copy, and what is refused."""

from __future__ import annotations

import pytest

import tensorcore as tc
from tensorcore.errors import ArgumentTypeError, ShapeError


def channels(t):
    """A batch of two pictures of three channels whose elements are numbered."""
    return t.arange(48, dtype=t.float64).reshape(2, 3, 2, 4)


CALLS = {
    "contiguous": lambda t, x: x.contiguous(memory_format=t.channels_last),
    "to": lambda t, x: x.to(memory_format=t.channels_last),
    "to and cast": lambda t, x: x.to(t.float32, memory_format=t.channels_last),
    "clone": lambda t, x: x.clone(memory_format=t.channels_last),
    "clone keeps": lambda t, x: x.to(memory_format=t.channels_last).clone(),
    "clone back": lambda t, x: x.to(memory_format=t.channels_last).clone(memory_format=t.contiguous_format),
    "contiguous back": lambda t, x: x.to(memory_format=t.channels_last).contiguous(),
    "cast keeps": lambda t, x: x.to(memory_format=t.channels_last).to(t.float32),
    "sum keeps": lambda t, x: x.to(memory_format=t.channels_last) + 1,
    "volumes": lambda t, x: x.unsqueeze(2).contiguous(memory_format=t.channels_last_3d),
    "zeros_like": lambda t, x: t.zeros_like(x, memory_format=t.channels_last),
    "zeros_like keeps": lambda t, x: t.zeros_like(x.to(memory_format=t.channels_last)),
    "empty": lambda t, x: t.empty(2, 3, 4, 5, memory_format=t.channels_last).zero_(),
}


@pytest.mark.parametrize("name", CALLS)
def test_format_of_a_copy(torch, name) -> None:
    """Strides and values of what a call with a memory format makes are PyTorch's."""
    ours, theirs = (CALLS[name](t, channels(t)) for t in (tc, torch))
    assert (ours.stride(), ours.tolist(), str(ours.dtype)) == (theirs.stride(), theirs.tolist(), str(theirs.dtype))


def test_is_contiguous_asks_for_one_format() -> None:
    """A tensor is contiguous in the format it was laid out in; other numbers of dims are so in none of pictures."""
    x = channels(tc).to(memory_format=tc.channels_last)
    assert [x.is_contiguous(), x.is_contiguous(memory_format=tc.channels_last)] == [False, True]
    assert not x[0].is_contiguous(memory_format=tc.channels_last)
    assert x.to(memory_format=tc.channels_last) is x


def test_a_format_passes_the_gradient_on() -> None:
    """A copy in another format is differentiable: its gradient is the result's own."""
    x = channels(tc).requires_grad_()
    (x.contiguous(memory_format=tc.channels_last) * 3).sum().backward()
    assert x.grad.unique().tolist() == [3.0]


def test_wrong_formats_are_refused() -> None:
    """Pictures have four dims, and a format is no string."""
    with pytest.raises(ShapeError, match="required rank 4 tensor"):
        tc.ones(3).to(memory_format=tc.channels_last)
    with pytest.raises(ArgumentTypeError, match="expected a memory_format, got 'nhwc'"):
        tc.ones(3).clone(memory_format="nhwc")


def test_names_print_as_pytorch_prints_them() -> None:
    """Formats and layouts show the name that a program writes."""
    assert f"{tc.channels_last} {tc.ones(1).layout}" == "torch.channels_last torch.strided"
