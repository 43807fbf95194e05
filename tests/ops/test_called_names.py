"""Errors about a call name what the program called: no private function or class, and no option is passed on unread."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import errors

FUNCTIONS = [tc, tc.nn.functional, tc.linalg, tc.fft, tc.special]


def blamed(function: Any, *args: Any) -> str:
    """Whom the error of a call with an option that nothing has names; empty where the library itself refused."""
    with pytest.raises(Exception) as caught:
        function(*args, no_such_option=1)
    named = re.match(r"([\w.<>]+)\(\)", str(caught.value))
    return named[1] if named and caught.type is TypeError else ""


@pytest.mark.filterwarnings("ignore")
def test_no_function_names_a_private_one() -> None:
    """What Python says of a wrong keyword begins with a name without underscore in front, for all functions and methods."""
    public = [
        (getattr(space, name), ())
        for space in FUNCTIONS
        for name in dir(space)
        if not name.startswith("_") and inspect.isroutine(getattr(space, name))
    ]
    passes_on = {"type"}  # its older options are taken and do nothing, as in PyTorch
    methods = [
        (getattr(tc.Tensor, name), (tc.ones(2),))
        for name in dir(tc.Tensor)
        if not name.startswith("_") and inspect.isroutine(getattr(tc.Tensor, name)) and name not in passes_on
    ]
    names = [blamed(function, *args) for function, args in public + methods]
    assert len(names) > 1000
    assert [one for one in names if one.startswith("_") or "<locals>" in one] == []


def test_a_module_is_named_by_its_own_name() -> None:
    """Also where a private base wrote ``__init__``, whose ``super()`` and signature are as they were."""
    with pytest.raises(TypeError, match=r"^Conv2d\.__init__\(\) missing 1 required positional argument: 'kernel_size'"):
        tc.nn.Conv2d(3, 8)
    assert tc.nn.Conv2d.__init__.__qualname__ == "Conv2d.__init__"
    assert inspect.signature(tc.nn.Conv2d) == inspect.signature(tc.nn.Conv2d.__mro__[1])
    made = tc.nn.Conv2d(3, 8, (2, 1), bias=False)
    assert (made.kernel_size, made.bias, made.weight.shape) == ((2, 1), None, (8, 3, 2, 1))


def test_what_is_written_in_place_takes_what_the_op_takes() -> None:
    """No option reaches the kernel that the op does not have, and no operand too many or too few."""
    x = tc.tensor([1.0, 2.0])
    for call in (
        lambda: x.exp_(where=x > 1), lambda: x.mul_(x, where=x > 1), lambda: x.mul_(), lambda: x.cos_(x), lambda: x.div_(x, x),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()
    assert x.tolist() == [1.0, 2.0]
    assert x.mul_(other=x).tolist() == [1.0, 4.0]
    with pytest.raises(errors.ArgumentTypeError, match=r"^mul_: expected after the tensor other, got 0"):
        x.mul_()


def test_every_option_of_to_is_read() -> None:
    """A tensor to be like under its keyword, and the two switches by position; other keywords are refused."""
    x = tc.tensor([1.0])
    like = tc.zeros(1, dtype=tc.float64)
    assert x.to(other=like).dtype is tc.float64
    assert x.to(tc.float32, False, False) is x
    for copied in (x.to(tc.float32, False, True), x.to("cpu", tc.float32, False, True), x.to(x, False, True)):
        assert copied is not x
        assert copied.tolist() == [1.0]
    with pytest.raises(errors.ArgumentTypeError, match="'dtpye'"):
        x.to(dtpye=tc.float64)


def test_an_argument_of_another_kind_is_named() -> None:
    """A str where a number belongs is refused by name, and errors of what is within do not show; other errors stay what they are."""
    with pytest.raises(errors.ArgumentTypeError, match=r"^dropout: expected p to be a number, got '0.5'") as caught:
        tc.nn.functional.dropout(tc.ones(2), "0.5")
    assert caught.value.__suppress_context__
    with pytest.raises(errors.ArgumentTypeError, match=r"^kthvalue: expected k to be an int, got '1'"):
        tc.ones(3).kthvalue("1")

    class Own(tc.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise KeyError(function.__name__)

    with pytest.raises(KeyError, match="dropout"):
        tc.nn.functional.dropout(tc.ones(2).as_subclass(Own), 0.5)
