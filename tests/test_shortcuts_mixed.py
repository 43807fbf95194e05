"""The short ways in C before calls of several dtypes, and of calls that put their result into ``out``."""

import itertools

import pytest

import tensorcore as torch
from tensorcore.ops.calls import apply
from tensorcore.ops.define import OPS
from tensorcore.tape.mode import unusual

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")

DTYPES = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
          torch.complex64]  # fmt: skip
BINARY = ["add", "mul", "div", "pow", "maximum", "lt", "eq", "atan2", "floor_divide", "remainder", "logaddexp"]
UNARY = ["exp", "sqrt", "sin", "reciprocal", "isnan", "neg", "erf", "floor"]
NUMBERS = [2, 0.5, -1, 2**31, -(2**40), True, 1 + 2j]


def told(call):
    """A call's values, dtype and gradient formula, or its error."""
    try:
        made = call()
    except (TypeError, ValueError, RuntimeError, OverflowError, IndexError) as error:
        return type(error), str(error)
    return made.tolist().__repr__(), made.dtype, made.shape, getattr(made.grad_fn, "name", str)()


def tensors(dtype):
    """One with dims and one without."""
    return torch.tensor([[0, 1, 2], [3, 1, 4]]).to(dtype), torch.tensor(3).to(dtype)


def twice(name, call):
    """A call as it is made the first time, and as it is once its dtypes have met."""
    for op in OPS.values():
        op.promoted.clear()
    first = told(call)
    assert told(call) == first, name
    assert told(call) == first, name


@pytest.mark.parametrize("name", BINARY)
def test_dtypes_that_have_met_give_what_they_gave(name) -> None:
    """Each pair of dtypes, with dims and without: values, dtype and error of the second call are those of the first."""
    function = getattr(torch, name)
    for one, other in itertools.product(DTYPES, DTYPES):
        for x, y in itertools.product(tensors(one), tensors(other)):
            twice((name, one, other), lambda x=x, y=y: function(x, y))


@pytest.mark.parametrize("name", BINARY)
def test_numbers_beside_dtypes_give_what_they_gave(name) -> None:
    """Numbers of each kind and size on either side; one that does not fit raises the second time too."""
    function = getattr(torch, name)
    for one, number in itertools.product(DTYPES, NUMBERS):
        for x in tensors(one):
            twice((name, one, number), lambda x=x, number=number: function(x, number))
            # Another number of the same class meets what the first one left.
            for later in NUMBERS:
                expected = told(lambda x=x, later=later: function(x, later))
                for op in OPS.values():
                    op.promoted.clear()
                assert told(lambda x=x, later=later: function(x, later)) == expected
                told(lambda x=x, number=number: function(x, number))


@pytest.mark.parametrize("name", UNARY)
def test_integers_in_float_functions_give_what_they_gave(name) -> None:
    """A function of floats makes floats of integers, the second time too."""
    for one in DTYPES:
        for x in tensors(one):
            twice((name, one), lambda x=x: getattr(torch, name)(x))


def test_another_default_dtype_is_asked_anew() -> None:
    """What integers become was worked out under the default dtype of then."""
    i = torch.arange(1, 4)
    assert [(i / 2).dtype, i.exp().dtype, (i * 0.5).dtype, (i / 2).dtype] == [torch.float32] * 4
    torch.set_default_dtype(torch.float64)
    try:
        assert [(i / 2).dtype, i.exp().dtype, (i * 0.5).dtype] == [torch.float64] * 3
    finally:
        torch.set_default_dtype(torch.float32)
    assert [(i / 2).dtype, i.exp().dtype, (i * 0.5).dtype] == [torch.float32] * 3


def test_gradients_flow_through_mixed_dtypes() -> None:
    """A call of two dtypes has the gradients of the same call after a cast, each in its input's dtype."""
    for _ in range(3):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = torch.tensor([0.5, 4.0, 2.0], dtype=torch.float64, requires_grad=True)
        (x * y + x / torch.tensor([1, 2, 4]) - y * torch.tensor([True, False, True])).sum().backward()
        assert x.grad.dtype is torch.float32
        assert y.grad.dtype is torch.float64
        torch.testing.assert_close(x.grad, torch.tensor([1.5, 4.5, 2.25]))
        torch.testing.assert_close(y.grad, torch.tensor([0.0, 2.0, 2.0], dtype=torch.float64))


def test_nothing_is_recorded_where_nothing_is_asked_for() -> None:
    """Under no_grad a mixed call gives a tensor without history; in inference mode one that says so."""
    x, i = torch.ones(3, requires_grad=True), torch.arange(3)
    for _ in range(2):
        with torch.no_grad():
            assert (x + i).grad_fn is None
        with torch.inference_mode():
            assert (x.detach() + i).is_inference()
        assert (x + i).grad_fn is not None


def test_writes_of_another_dtype_are_counted_and_refused_alike() -> None:
    """``add_`` of a narrower dtype writes and counts once; one that cannot be cast to, is too large, or overlaps raises each time."""
    for _ in range(3):
        x, i = torch.ones(2, 3), torch.arange(3)
        before = x._version
        assert x.add_(i).tolist() == [[1, 2, 3], [1, 2, 3]]
        assert x._version == before + 1
        assert x.mul_(torch.tensor([True, False, True])).tolist() == [[1, 0, 3], [1, 0, 3]]
        with pytest.raises(RuntimeError, match="can't be cast"):
            i.add_(x[0])
        with pytest.raises(RuntimeError, match="broadcast shape"):
            x[0].add_(torch.arange(6).view(2, 3))
        leaf = torch.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="leaf"):
            leaf.add_(i)
        held = leaf * 1
        held.add_(i).sum().backward()
        assert leaf.grad.tolist() == [1, 1, 1]


# A call with ``out=``, by what it is given; some give several results.
PLACED = {
    "add": lambda t, x, **out: t.add(x, x, **out),
    "a number": lambda t, x, **out: t.mul(x, 2.5, **out),
    "broadcast": lambda t, x, **out: t.sub(x, x[0], **out),
    "compare": lambda t, x, **out: t.gt(x, 0.5, **out),
    "unary": lambda t, x, **out: t.exp(x, **out),
    "isnan": lambda t, x, **out: t.logical_not(x, **out),
    "mm": lambda t, x, **out: t.mm(x, x.t(), **out),
    "matmul": lambda t, x, **out: t.matmul(x, x[0], **out),
    "sum": lambda t, x, **out: t.sum(x, 1, **out),
    "all of it": lambda t, x, **out: t.sum(x, **out),
    "amax": lambda t, x, **out: t.amax(x, 0, True, **out),
    "softmax": lambda t, x, **out: t.softmax(x, 1, **out),
    "cumsum": lambda t, x, **out: t.cumsum(x, 0, **out),
    "cat": lambda t, x, **out: t.cat([x, x], 1, **out),
    "stack": lambda t, x, **out: t.stack([x, x], **out),
    "max": lambda t, x, **out: t.max(x, 1, **out),
    "sort": lambda t, x, **out: t.sort(x, 1, **out),
    "addmm": lambda t, x, **out: t.addmm(x[:, :3], x, x.t(), **out),
    "hardshrink": lambda t, x, **out: t.hardshrink(x, 0.7, **out),
    "index_select": lambda t, x, **out: t.index_select(x, 1, t.tensor([2, 0]), **out),
    "qr": lambda t, x, **out: t.linalg.qr(x, **out),
    "clamp": lambda t, x, **out: t.clamp(x, 0.1, 0.9, **out),
    "nan_to_num": lambda t, x, **out: t.nan_to_num(x, **out),
    "tril": lambda t, x, **out: t.tril(x, **out),
}


def numbers(library):
    return library.arange(12.0).reshape(3, 4).sin()


@pytest.mark.parametrize("name", PLACED)
def test_results_go_into_out(name) -> None:
    """``out`` is the answer and holds what the call gives without it, is written once, and shows it to whoever shares the memory."""
    call, x = PLACED[name], numbers(torch)
    plain = call(torch, x)
    several = isinstance(plain, tuple)
    expected = plain if several else (plain,)
    places = tuple(torch.zeros_like(one) for one in expected)
    shown = [one.reshape(-1)[:1] if one.numel() else one for one in places]
    versions, at = [one._version for one in places], [one.data_ptr() for one in places]
    answer = call(torch, x, out=places if several else places[0])
    given = answer if several else (answer,)
    assert type(answer) is type(plain)
    for one, place, want, view, version, start in zip(given, places, expected, shown, versions, at, strict=True):
        assert one is place
        assert place.tolist() == want.tolist()
        assert place._version == version + 1
        assert place.data_ptr() == start
        assert view.tolist() == want.reshape(-1)[:1].tolist()


@pytest.mark.parametrize("name", PLACED)
def test_an_out_that_is_no_place_is_dealt_with_as_before(name) -> None:
    """Of another shape, dtype or layout, a view, a part of the input, one that requires grad: the same answer or error as without the
    short way, and nothing else is changed."""
    call = PLACED[name]

    def outcome(make):
        x = numbers(torch)
        plain = call(torch, x)
        several = isinstance(plain, tuple)
        made = tuple(make(torch, x, one) for one in (plain if several else (plain,)))
        try:
            answer = call(torch, x, out=made if several else made[0])
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            return type(error), str(error), x.tolist()
        return [one.tolist() for one in (answer if several else (answer,))], [one.tolist() for one in made], x.tolist()

    makers = {
        "empty": lambda t, x, one: t.empty(0, dtype=one.dtype),
        "double": lambda t, x, one: t.zeros(one.shape, dtype=t.float64),
        "whole": lambda t, x, one: t.zeros(one.shape, dtype=t.int64),
        "complex": lambda t, x, one: t.zeros(one.shape, dtype=t.complex64),
        "turned": lambda t, x, one: t.zeros(one.shape[::-1], dtype=one.dtype).permute(*range(one.ndim)[::-1]),
        "spread": lambda t, x, one: t.zeros([1] * one.ndim, dtype=one.dtype).expand(one.shape),
        "grad": lambda t, x, one: t.zeros(one.shape, requires_grad=one.dtype.is_floating_point),
        "part": lambda t, x, one: x[: one.shape[0] if one.ndim else 1] if one.dtype == x.dtype else t.zeros_like(one),
        "input": lambda t, x, one: x if one.shape == x.shape and one.dtype == x.dtype else t.zeros_like(one),
    }
    for kind, make in makers.items():
        assert outcome(make) == told_in_python(lambda make=make: outcome(make)), (name, kind)


def told_in_python(call):
    """The call while short ways take nothing, as in inference mode."""
    unusual.inference += 1
    try:
        return call()
    finally:
        unusual.inference -= 1


def test_random_numbers_are_drawn_once_into_out() -> None:
    """With a place that fits and one that does not, the numbers are those of the same seed without a place."""
    p = torch.full((4, 4), 0.5)
    for make in (lambda: torch.zeros(4, 4), lambda: torch.zeros(4, 4, dtype=torch.float64), lambda: torch.empty(0)):
        torch.manual_seed(3)
        first, second = torch.bernoulli(p), torch.rand(3)
        torch.manual_seed(3)
        assert torch.bernoulli(p, out=make()).tolist() == first.tolist()
        assert torch.rand(3).tolist() == second.tolist()


def test_an_out_of_another_shape_costs_no_second_call(monkeypatch) -> None:
    """It takes the result's shape, and the product was made once."""
    x, kernels = numbers(torch), torch.device("cpu").kernels
    calls, product = [], kernels["matmul"]
    monkeypatch.setitem(kernels, "matmul", lambda *given, **options: calls.append(1) or product(*given, **options))
    out = torch.empty(0)
    assert torch.mm(x, x.t(), out=out) is out
    assert out.tolist() == (x @ x.t()).tolist()
    assert len(calls) == 2  # the other one is the line above
