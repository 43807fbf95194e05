"""Random tensors, draws in place, the generator, and dropout."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import ArgumentTypeError


def same(torch, draw, theirs=None):
    """Draw in both libraries from one seed: equal bits, and generators in equal states afterwards."""
    tc.manual_seed(5)
    torch.manual_seed(5)
    x, y = draw(tc), (theirs or draw)(torch)
    assert str(x.dtype) == str(y.dtype)
    assert np.array_equal(x.detach().numpy(), y.detach().numpy())
    assert np.array_equal(tc.get_rng_state().numpy(), torch.get_rng_state().numpy())


def test_seed_8():
    """Seed 8 gives PyTorch's numbers."""
    tc.manual_seed(8)
    expected = [[0.5979, 0.8453, 0.9464, 0.2965], [0.5138, 0.6443, 0.8991, 0.0141], [0.5785, 0.1218, 0.9181, 0.6805]]
    assert np.abs(tc.rand(3, 4).numpy() - expected).max() < 5e-5


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(3,), (5, 7), (0,), ()])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_rand_and_randn(torch, name, dtype, shape):
    """Both draw PyTorch's numbers in every floating dtype."""
    same(torch, lambda m: getattr(m, name)(shape, dtype=getattr(m, dtype)))


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(3,), (5, 7), (0,)])
@pytest.mark.parametrize("name, args", [
    ("uniform_", (-1, 2)), ("normal_", (1, 2)), ("bernoulli_", (0.3,)), ("exponential_", (2.0,)),
    ("geometric_", (0.3,)),
    ("log_normal_", ()), ("cauchy_", ()), ("random_", ()), ("random_", (7,)), ("random_", (2, 7)),
])  # fmt: skip
def test_draws_in_place(torch, name, args, shape):
    """Draws in place give PyTorch's numbers."""
    same(torch, lambda m: getattr(m.zeros(shape), name)(*args))


@pytest.mark.oracle
@pytest.mark.parametrize("draw", [
    lambda m: m.randint(10, (4,)), lambda m: m.randint(-3, 10, (4,), dtype=m.int32),
    lambda m: m.randint(low=2, high=5, size=(4,)),
    lambda m: m.randperm(10), lambda m: m.rand_like(m.zeros(3, dtype=m.float64)), lambda m: m.randn_like(m.zeros(3)),
    lambda m: m.randint_like(m.zeros(3), 5), lambda m: m.randint_like(m.zeros(3), 2, 5),
    lambda m: m.normal(m.ones(3), 2.0), lambda m: m.normal(1.0, m.ones(20) * 3),
    lambda m: m.normal(m.ones(3, 1), m.ones(7)),
    lambda m: m.normal(1.0, 2.0, (3,)), lambda m: m.normal(m.ones(30)),
    lambda m: m.bernoulli(m.full((5,), 0.3)), lambda m: m.bernoulli(m.zeros(5), 0.7),
    lambda m: m.zeros(2, 3).bernoulli_(m.tensor([0.1, 0.5, 0.9])),
    lambda m: m.multinomial(m.tensor([0.1, 0.2, 0.7]), 2),
    lambda m: m.multinomial(m.tensor([0.1, 0.2, 0.7]), 20, replacement=True),
    lambda m: m.rand(3, generator=m.Generator().manual_seed(3)),
    lambda m: m.zeros(4).uniform_(**{"from": 1.0, "to": 2.0}),
    lambda m: m.rand(3, out=m.empty(3)),
])  # fmt: skip
def test_other_draws(torch, draw):
    """All forms of all draws give PyTorch's numbers."""
    same(torch, draw)


@pytest.mark.oracle
@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("name, shape", [
    ("dropout", (5, 7)), ("alpha_dropout", (5, 7)), ("feature_alpha_dropout", (2, 3, 4)), ("dropout1d", (3, 4)),
    ("dropout1d", (2, 3, 4)), ("dropout2d", (2, 3, 4, 5)), ("dropout3d", (2, 3, 2, 2, 2)), ("dropout3d", (3, 2, 2, 2)),
    ("dropout3d", (4, 3, 5)), ("dropout3d", (4, 3)), ("dropout2d", (4, 3)),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:dropout.d:UserWarning")
def test_dropouts(torch, name, shape, inplace):
    """Dropout keeps what PyTorch keeps."""
    same(torch, lambda m: getattr(m.nn.functional, name)(m.ones(shape), 0.3, True, inplace))


def test_dropout_gradient_is_its_mask():
    """What was dropped gets no gradient, the rest one of 1 / (1 - p)."""
    x = tc.ones(100, requires_grad=True)
    made = tc.dropout(x, 0.5)
    made.sum().backward()
    assert x.grad.tolist() == made.tolist()
    assert set(made.tolist()) == {0.0, 2.0}


def test_dropout_without_training():
    """Nothing is drawn and nothing changes."""
    x, state = tc.ones(3), tc.get_rng_state()
    assert tc.dropout(x, 0.5, False) is x
    assert tc.get_rng_state().tolist() == state.tolist()


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_dropout_probability(error):
    """A probability over 1 is an error for those who catch either of PyTorch's."""
    with pytest.raises(error, match="between 0 and 1"):
        tc.dropout(tc.ones(3), 2.0)


def test_draw_over_a_recorded_tensor():
    """What a draw wrote over has a gradient of zero."""
    x = tc.ones(3, requires_grad=True)
    made = (x * 2).normal_()
    made.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_draw_over_a_leaf():
    """A leaf that requires grad may not be drawn over."""
    x = tc.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.normal_()
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_a_failed_draw_changes_nothing():
    """Bad bounds leave tensor and generator as they were."""
    x, state = tc.ones(3), tc.get_rng_state()
    with pytest.raises(RuntimeError, match="low <= high"):
        x.uniform_(3, 1)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert tc.get_rng_state().tolist() == state.tolist()


def test_rand_takes_a_leafs_argument():
    """``requires_grad`` makes a leaf."""
    assert tc.rand(2, requires_grad=True).is_leaf
    assert tc.rand(2, requires_grad=True).requires_grad


def test_fork_rng_comes_back():
    """After ``fork_rng`` the generator goes on from where it was."""
    tc.manual_seed(1)
    first = tc.rand(2).tolist()
    tc.manual_seed(1)
    with tc.fork_rng():
        tc.rand(50)
    assert tc.rand(2).tolist() == first


def test_generator_is_by_itself():
    """A generator of its own leaves the default one alone, and pickles with its state."""
    mine = tc.Generator().manual_seed(4)
    state = tc.get_rng_state().tolist()
    tc.rand(3, generator=mine)
    copied = pickle.loads(pickle.dumps(mine))
    assert tc.get_rng_state().tolist() == state
    assert tc.rand(3, generator=mine).tolist() == tc.rand(3, generator=copied).tolist()


def test_generator_of_another_type():
    """Anything else as generator is a TypeError."""
    with pytest.raises(ArgumentTypeError, match=r"torch\.Generator"):
        tc.rand(3, generator=5)


def test_a_backend_may_draw_its_own():
    """The seam: a device whose ``random`` is its own decides what is drawn."""
    device = tc.ones(1).device
    device.random = lambda kind, shape, dtype, generator, **options: np.full(shape, 0.25, dtype.numpy)
    try:
        assert tc.rand(2).tolist() == [0.25, 0.25]
    finally:
        del device.random


DRAWN = {
    "normal_": lambda m, x: x.normal_(1, 2),
    "exponential_": lambda m, x: x.exponential_(),
    "geometric_": lambda m, x: x.geometric_(0.3),
    "random_": lambda m, x: x.random_(),
    "random_ below": lambda m, x: x.random_(10),
    "bernoulli_ of a tensor": lambda m, x: x.bernoulli_(m.full_like(x, 0.5)),
    "rand_like": lambda m, x: m.rand_like(x),
    "randn_like": lambda m, x: m.randn_like(x),
    "randint_like": lambda m, x: m.randint_like(x, 9),
    "rand_like, contiguous": lambda m, x: m.rand_like(x, memory_format=m.contiguous_format),
    "multinomial": lambda m, x: m.multinomial(x.flatten(1).T if x.dim() > 2 else x, 2),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize(
    "lay",
    [
        lambda m: m.ones(5, 7).T,
        lambda m: m.ones(2, 3, 4, 5).permute(0, 2, 3, 1),
        lambda m: m.ones(40, 6)[::2, ::3],
        lambda m: m.ones(3, 4).T,
    ],
    ids=["transposed", "permuted", "with gaps", "below 16"],
)
def test_draws_follow_the_order_of_memory(torch, lay, name):
    """A tensor that is not contiguous gets PyTorch's numbers in PyTorch's places, and its like the same strides."""

    def draw(m):
        made = DRAWN[name](m, lay(m))
        strides.append(tuple(made.stride()))
        return made

    strides = []
    same(torch, draw)
    if name != "multinomial":  # whose indices lie as sorting leaves them
        assert strides[0] == strides[1]
