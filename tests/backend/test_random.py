"""The host's random generator: seeds, states, and what all of its draws have in common."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorcore.dtypes as dtypes
from tensorcore.backend.default_generator import default_generator
from tensorcore.backend.random import DEFAULT_SEED, Generator, RandomError
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError
from tests.backend.randomness import crc

# Seeds and states


@pytest.mark.parametrize(
    ("seed", "stored", "first"),
    [
        (0, 0, 0.49625658988952637),
        (DEFAULT_SEED, DEFAULT_SEED, 0.267295241355896),
        (2**32, 2**32, 0.49625658988952637),
        (2**63, 2**63, 0.49625658988952637),
        (2**64 - 1, 2**64 - 1, 0.9937993884086609),
        (-1, 2**64 - 1, 0.9937993884086609),
        (-(2**63), 2**63, 0.49625658988952637),
    ],
)
def test_the_low_32_bits_of_a_seed_start_the_twister(seed, stored, first):
    """A negative seed counts from 2**64 down, and only the low 32 bits matter to the numbers."""
    generator = Generator().manual_seed(seed)
    assert generator.initial_seed() == stored
    assert generator.uniform((1,))[0] == first


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5, "8", True, None])
def test_a_seed_that_is_no_64_bit_int_is_refused(seed):
    """PyTorch raises ValueError or RuntimeError for these; the error is both."""
    with pytest.raises(RandomError, match="manual_seed: expected") as caught:
        Generator().manual_seed(seed)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RuntimeError)


def test_a_new_generator_has_the_default_seed():
    """Without a seed the generator starts where PyTorch's does."""
    assert Generator().initial_seed() == 67280421310721


def test_seed_is_new_each_time_and_kept():
    """``seed()`` draws a seed from the operating system, starts from it and returns it."""
    generator = Generator()
    first, second = generator.seed(), generator.seed()
    assert first != second
    assert generator.initial_seed() == second
    assert np.array_equal(generator.uniform((5,)), Generator(second).uniform((5,)))


def test_the_default_generator_is_one():
    """Every call answers with the same generator."""
    assert default_generator() is default_generator()


def test_a_fresh_state_has_pytorchs_bytes(generator):
    """A seeded and unread generator has the 5056 bytes of ``torch.get_rng_state()``."""
    state = generator.get_state()
    assert (state.dtype, state.shape) == (np.uint8, (5056,))
    assert crc(state) == 0xDEEFAC0D


def test_a_used_state_has_pytorchs_bytes(generator):
    """After 700 draws the twister has been turned over once and 76 words of it are used."""
    generator.uniform((700,))
    assert crc(generator.get_state()) == 0x61A9FCFE


def test_an_exhausted_state_is_not_a_fresh_one(generator):
    """After exactly 624 draws one word is 'left' and the next is past the end, in a fresh state it is word 0."""
    generator.uniform((624,))
    assert generator.get_state()[8:24].view(np.int32).tolist() == [1, 1, 624, 0]
    assert Generator(8).get_state()[8:24].view(np.int32).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 1000])
def test_a_state_restores_everything(generator, drawn):
    """Numbers after ``set_state`` are those after ``get_state``, the kept normal and the seed included."""
    generator.uniform((drawn,))
    generator.normal((3,))
    state = generator.get_state()
    expected = generator.normal((5,)), generator.uniform((700,))
    other = Generator(99).set_state(state)
    assert np.array_equal(other.get_state(), state)
    assert other.initial_seed() == 8
    assert np.array_equal(other.normal((5,)), expected[0])
    assert np.array_equal(other.uniform((700,)), expected[1])


def test_an_empty_draw_leaves_the_state(generator):
    """Drawing nothing moves nothing, as in PyTorch."""
    before = generator.get_state()
    for empty in (
        generator.uniform((0,)), generator.normal((3, 0)), generator.integers((0,), dtypes.int64, 0, 9),
        generator.permutation(0), generator.permutation(1), generator.bernoulli(0.5, (0,)),
        generator.exponential((0,)), generator.log_normal((0,), std=1.0), generator.cauchy((0,)),
    ):  # fmt: skip
        assert empty.size in (0, 1)
    assert np.array_equal(generator.get_state(), before)


@pytest.mark.parametrize("duplicate", [Generator.clone, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_clone_goes_on_by_itself(generator, duplicate):
    """A clone, a deep copy and a pickled one draw the same numbers and do not move the first."""
    generator.normal((3,))
    before = generator.get_state()
    other = duplicate(generator)
    drawn = other.normal((20,))
    assert np.array_equal(generator.get_state(), before)
    assert np.array_equal(generator.normal((20,)), drawn)


@pytest.mark.parametrize("size", [0, 5, 5048, 5057])
def test_a_state_of_another_size_is_refused(generator, size):
    """The message names the size wanted and the size given."""
    with pytest.raises(RandomError, match=rf"set_state: expected 5056 bytes, got {size};"):
        generator.set_state(np.zeros(size, np.uint8))


def test_a_state_that_is_no_twisters_is_refused(generator):
    """5056 zeros are not a seeded twister, and a refused state changes nothing."""
    before = generator.get_state()
    with pytest.raises(RandomError, match="set_state: expected the state of a Mersenne Twister"):
        generator.set_state(np.zeros(5056, np.uint8))
    assert np.array_equal(generator.get_state(), before)


@pytest.mark.parametrize("state", [np.zeros(5056, np.float32), [0] * 5056, None])
def test_a_state_that_is_no_byte_array_is_refused(generator, state):
    """PyTorch raises TypeError for these."""
    with pytest.raises(ArgumentTypeError, match="set_state: expected a uint8 array"):
        generator.set_state(state)


def test_threads_share_the_numbers_out(generator):
    """Calls from several threads get whole runs of the sequence, none of it twice and none lost."""
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: generator.integers((997,), dtypes.int64, 0, 2**40), range(200)))
    expected = Generator(8).integers((200, 997), dtypes.int64, 0, 2**40)
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, expected))


# Every draw


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: g.uniform((3,), dtypes.int64),
        lambda g: g.normal((3,), dtypes.bool_),
        lambda g: g.integers((3,), dtypes.complex64, 0, 2),
        lambda g: g.random((3,), dtypes.complex64),
        lambda g: g.permutation(3, dtypes.bool_),
        lambda g: g.permutation(3, dtypes.complex64),
        lambda g: g.bernoulli(0.5, (3,), dtypes.complex64),
        lambda g: g.exponential((3,), dtypes.int64),
        lambda g: g.exponential((3,), dtypes.complex64),
        lambda g: g.geometric((3,), dtypes.bool_, 0.5),
        lambda g: g.log_normal((3,), dtypes.int64),
        lambda g: g.cauchy((3,), dtypes.int64),
        lambda g: g.multinomial(np.array([1, 2]), (1,)),
    ],
)
def test_draws_refuse_dtypes(generator, draw):
    """A dtype that PyTorch has no such draw of is a RuntimeError."""
    with pytest.raises(DtypeError, match="expected"):
        draw(generator)


def test_a_negative_size_is_refused(generator):
    """PyTorch raises RuntimeError for a negative dimension."""
    with pytest.raises(ShapeError, match=r"uniform: expected sizes >= 0, got \(2, -1\)"):
        generator.uniform((2, -1))
    with pytest.raises(ShapeError, match="permutation: expected n >= 0"):
        generator.permutation(-1)


def test_shapes(generator):
    """No dimensions give a 0-d array, and more are filled in C order."""
    assert generator.uniform(()).shape == ()
    flat, cube = Generator(3).normal((24,)), Generator(3).normal((2, 3, 4))
    assert cube.flags.c_contiguous
    assert np.array_equal(cube.reshape(-1), flat)
