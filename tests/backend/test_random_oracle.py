"""The host's random generator against PyTorch itself: the same bits, and states that travel both ways."""

import numpy as np
import pytest

import tensorcore.dtypes as dtypes
from tensorcore.backend.random import DEFAULT_SEED, Generator
from tests.backend.randomness import COMPLEX, FLOATING, INTEGER, named


@pytest.fixture
def torch(torch):
    """PyTorch, whose own random state is put back afterwards."""
    state = torch.get_rng_state()
    yield torch
    torch.set_rng_state(state)


@pytest.fixture
def vector_torch(torch):
    """PyTorch with vector instructions, the only one that our normals follow to the bit."""
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("PyTorch rounds normals and scaled numbers otherwise where it runs without vector instructions")
    return torch


class Pair:
    """PyTorch's default generator and ours on one seed; each comparison also compares the states."""

    def __init__(self, torch, seed):
        self.torch, self.generator = torch, Generator(seed)
        torch.manual_seed(seed)

    def compare(self, theirs, ours):
        theirs = theirs.contiguous()
        assert tuple(theirs.shape) == ours.shape
        assert theirs.reshape(-1).view(self.torch.uint8).numpy().tobytes() == ours.tobytes()
        assert np.array_equal(self.torch.get_rng_state().numpy(), self.generator.get_state())


ORACLE_SIZES = (1, 2, 3, 15, 16, 17, 31, 33, 623, 624, 1000)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", [0, 1, 8, DEFAULT_SEED, -3, 2**64 - 1, 123456789012])
@pytest.mark.parametrize("name", FLOATING + COMPLEX)
def test_oracle_uniform_and_normal(vector_torch, seed, name):
    """Uniforms and normals of any size, taking turns on one state, have PyTorch's bits."""
    torch, pair, ours = vector_torch, Pair(vector_torch, seed), named(name)
    dtype = getattr(torch, name)
    for index, n in enumerate(ORACLE_SIZES):
        low, high, mean, std = -0.1 * index, 0.7 + index / 3, index / 7 - 0.5, 0.1 + index / 9
        pair.compare(torch.rand(n, dtype=dtype), pair.generator.uniform((n,), ours))
        pair.compare(torch.randn(n, dtype=dtype), pair.generator.normal((n,), ours))
        empty = torch.empty(n, dtype=dtype)
        pair.compare(empty.uniform_(low, high), pair.generator.uniform((n,), ours, low, high))
        pair.compare(empty.normal_(mean, std), pair.generator.normal((n,), ours, mean, std))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_oracle_many_normals(vector_torch, name):
    """2**20 + 5 normals have PyTorch's bits."""
    torch, pair = vector_torch, Pair(vector_torch, 42)
    pair.compare(torch.randn(2**20 + 5, dtype=getattr(torch, name)), pair.generator.normal((2**20 + 5,), named(name)))


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOATING + INTEGER + ("bool",))
def test_oracle_whole_numbers(torch, name):
    """``randint``, ``random_`` and ``bernoulli_`` have PyTorch's bits in every dtype."""
    pair, dtype, ours = Pair(torch, 5), getattr(torch, name), named(name)
    ranges = [(0, 2)] + [(0, 7), (3, 99)] * (name != "bool") + [(-100, 100)] * (name not in ("bool", "uint8"))
    ranges += [(0, 2**28 - 1), (0, 2**28), (-(2**31), 2**31 - 1)] * (name in ("int32", "int64", "float64"))
    ranges += [(-(2**63), 2**63 - 1), (-5, 2**62 + 3)] * (name == "int64")
    for n in ORACLE_SIZES:
        for low, high in ranges:
            pair.compare(torch.randint(low, high, (n,), dtype=dtype), pair.generator.integers((n,), ours, low, high))
        empty = torch.empty(n, dtype=dtype)
        pair.compare(empty.random_(), pair.generator.random((n,), ours))
        pair.compare(empty.bernoulli_(0.37), pair.generator.bernoulli(0.37, (n,), ours))
        if name != "bool":
            pair.compare(empty.geometric_(0.11), pair.generator.geometric((n,), ours, 0.11))
            if n < 127:
                pair.compare(torch.randperm(n, dtype=dtype), pair.generator.permutation(n, ours))


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOATING)
def test_oracle_families(vector_torch, name):
    """The continuous families and tensor probabilities have PyTorch's bits."""
    torch, pair, ours = vector_torch, Pair(vector_torch, 6), named(name)
    dtype = getattr(torch, name)
    for n in ORACLE_SIZES:
        empty = torch.empty(n, dtype=dtype)
        pair.compare(empty.exponential_(0.3), pair.generator.exponential((n,), ours, 0.3))
        pair.compare(empty.log_normal_(0.2, 0.7), pair.generator.log_normal((n,), ours, 0.2, 0.7))
        pair.compare(empty.cauchy_(-1.3, 0.7), pair.generator.cauchy((n,), ours, -1.3, 0.7))
        p = torch.rand(n, dtype=dtype)
        q = pair.generator.uniform((n,), ours)
        pair.compare(torch.bernoulli(p), pair.generator.bernoulli(q))


@pytest.mark.oracle
@pytest.mark.parametrize("n", [2, 511, 512, 513, 1000, 4096, 100_000])
def test_oracle_permutations(torch, n):
    """Both ways of swapping give PyTorch's permutation for several seeds."""
    for seed in range(5):
        pair = Pair(torch, seed)
        pair.compare(torch.randperm(n), pair.generator.permutation(n))


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOATING)
def test_oracle_multinomial(torch, name):
    """Indices with replacement, and without it as long as no two ratios are equal, are PyTorch's."""
    pair = Pair(torch, 7)
    for n in (1, 2, 7, 50):
        weights = np.linspace(0.5, 3.0, 3 * n).reshape(3, n).astype(named(name).numpy)
        tensor = torch.from_numpy(weights.astype(np.float64)).to(getattr(torch, name))
        pair.compare(torch.multinomial(tensor, 20, True), pair.generator.multinomial(weights, (20,), True))
        pair.compare(torch.multinomial(tensor[0], 5, True), pair.generator.multinomial(weights[0], (5,), True))
        pair.compare(torch.multinomial(tensor, 1), pair.generator.multinomial(weights, (1,)))
        if name in ("float32", "float64"):
            pair.compare(torch.multinomial(tensor, n), pair.generator.multinomial(weights, (n,)))


@pytest.mark.oracle
def test_oracle_dropout(torch):
    """The mask of ``F.dropout`` is ``bernoulli(1 - p)``."""
    pair = Pair(torch, 11)
    theirs = torch.nn.functional.dropout(torch.ones(1000), 0.4)
    pair.compare((theirs != 0).float(), pair.generator.bernoulli(1 - 0.4, (1000,)))


@pytest.mark.oracle
@pytest.mark.parametrize("drawn", [0, 1, 3, 623, 624, 625, 5000])
def test_oracle_states_travel_both_ways(vector_torch, drawn):
    """A state taken from either generator goes on in the other, the kept normal included."""
    torch, ours = vector_torch, Generator(21)
    ours.uniform((drawn,))
    ours.normal((3,))
    torch.set_rng_state(torch.from_numpy(ours.get_state()))
    assert np.array_equal(torch.randn(20).numpy(), ours.normal((20,)))
    assert np.array_equal(torch.randn(3).numpy(), ours.normal((3,)))
    torch.rand(drawn)
    ours.set_state(torch.get_rng_state().numpy())
    assert np.array_equal(torch.randn(5, dtype=torch.float64).numpy(), ours.normal((5,), dtypes.float64))
    assert np.array_equal(torch.rand(700).numpy(), ours.uniform((700,)))
