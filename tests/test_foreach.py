"""Ops over lists of tensors, as optimizers of one's own call them, beside PyTorch's."""

import pytest

import tensorcore as tc
from tensorcore import foreach
from tensorcore.errors import ArgumentTypeError, UsageError

SHAPES = [(2,), (3, 2), ()]


def lists(torch, count=3):
    """Equal lists of positive tensors in both libraries, as many as asked for."""
    found = [], []
    for i in range(count):
        values = [tc.rand(shape, generator=tc.Generator().manual_seed(i)) * 0.8 + 0.1 for shape in SHAPES]
        found[0].append(values)
        found[1].append([torch.tensor(one.tolist()) for one in values])
    return found


def assert_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert str(one.dtype) == str(other.dtype)
        assert tuple(one.shape) == tuple(other.shape)
        assert one.flatten().tolist() == pytest.approx(other.flatten().tolist(), rel=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("name", foreach._ONE.split())
def test_one_list(name, torch):
    """The op of each tensor, and its form that writes."""
    (x, *_), (y, *_) = lists(torch)
    assert_same(getattr(tc, f"_foreach_{name}")(x), getattr(torch, f"_foreach_{name}")(y))
    assert getattr(tc, f"_foreach_{name}_")(x) is None
    getattr(torch, f"_foreach_{name}_")(y)
    assert_same(x, y)


@pytest.mark.oracle
@pytest.mark.parametrize("name", foreach._TWO.split())
def test_two_lists_or_numbers(name, torch):
    """The other operand is a list, a number, or a list of numbers."""
    (x, other, _), (y, others, _) = lists(torch)
    for given, same in ((other, others), (2, 2), ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])):
        assert_same(getattr(tc, f"_foreach_{name}")(x, given), getattr(torch, f"_foreach_{name}")(y, same))
        getattr(tc, f"_foreach_{name}_")(x, given)
        getattr(torch, f"_foreach_{name}_")(y, same)
        assert_same(x, y)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        lambda lib, a, b, c: lib._foreach_add(a, b, alpha=-0.1),
        lambda lib, a, b, c: lib._foreach_sub_(a, b, alpha=2) or a,
        lambda lib, a, b, c: lib._foreach_mul(a, lib.tensor(3.0)),
        lambda lib, a, b, c: lib._foreach_addcmul(a, b, c, 0.5),
        lambda lib, a, b, c: lib._foreach_addcmul_(a, b, c, value=0.5) or a,
        lambda lib, a, b, c: lib._foreach_addcdiv(a, b, c),
        lambda lib, a, b, c: lib._foreach_addcdiv_(a, b, c, [1.0, 2.0, 3.0]) or a,
        lambda lib, a, b, c: lib._foreach_addcmul(a, b, c, lib.tensor([1.0, 2.0, 3.0])),
        lambda lib, a, b, c: lib._foreach_lerp(a, b, 0.25),
        lambda lib, a, b, c: lib._foreach_lerp_(a, b, weight=0.25) or a,
        lambda lib, a, b, c: lib._foreach_lerp(a, b, c),
        lambda lib, a, b, c: lib._foreach_norm(a),
        lambda lib, a, b, c: lib._foreach_norm(a, ord=1),
        lambda lib, a, b, c: lib._foreach_copy_(a, b) or a,
        lambda lib, a, b, c: lib._foreach_zero_(a) or a,
    ],
)
def test_more_operands(call, torch):
    """Scales, weights, norms and copies."""
    ours, theirs = lists(torch)
    assert_same(call(tc, *ours), call(torch, *theirs))


def test_gradients_pass():
    """They are ordinary ops."""
    x = [tc.ones(2, requires_grad=True), tc.ones(1, requires_grad=True)]
    sum(one.sum() for one in tc._foreach_mul(x, [2.0, 3.0])).backward()
    assert [one.grad.tolist() for one in x] == [[2.0, 2.0], [3.0]]


@pytest.mark.parametrize(
    "act, error, text",
    [
        (lambda: tc._foreach_add([], 1), UsageError, "at least one tensor"),
        (lambda: tc._foreach_add([tc.ones(1)], [1, 2]), UsageError, "as many others as tensors, 1, got 2"),
        (lambda: tc._foreach_add(tc.ones(1), 1), ArgumentTypeError, "expected a list of tensors"),
        (lambda: tc._foreach_what, AttributeError, "_foreach_what"),
    ],
)
def test_misuse_is_refused(act, error, text):
    """With PyTorch's kinds of errors."""
    with pytest.raises(error, match=text):
        act()
