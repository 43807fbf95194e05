"""Whole numbers, permutations, yes and no, and categories of the host's random generator: PyTorch's as literals."""

import numpy as np
import pytest

import tensorcore.dtypes as dtypes
from tensorcore.backend import random as random_module
from tensorcore.backend.random import Generator, RandomError
from tensorcore.backend.registry import device as device_of
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError
from tests.backend.randomness import crc, named

RANDINT = (
    ("bool", 0, 2, [True, False, True, True]),
    ("uint8", 0, 256, [195, 84, 241, 105]),
    ("int8", -128, 128, [67, -44, 113, -23]),
    ("int16", -300, 300, [-177, -152, -219, -171]),
    ("int32", -(2**31), 2**31 - 1, [1651603223, -1254215333, -1087865760, -655768612]),
    ("int64", 0, 10, [3, 8, 1, 9]),
    ("int64", 0, 2**28 - 1, [261689808, 47736148, 133318656, 223078764]),
    ("int64", 0, 2**28, [47736148, 223078761, 10810330, 17013587]),
    ("int64", -5, 2**40, [837493090298, 1036034256385, 572779160109, 587577695366]),
    ("int64", -(2**63), 2**63 - 1,
     [6888556634303915348, 8643049736318478697, 6810437167947772890, 569186970996284243]),
    ("int64", -(2**63), None,
     [-2334815402550860460, -580322300536297111, -2412934868907002918, -8654185065858491565]),
    ("int8", 100, None, [115, 112, 117, 109]),
    ("float16", -2000, 2000, [723.0, -1852.0, 481.0, -871.0]),
    ("bfloat16", 0, 200, [123.0, 148.0, 81.0, 129.0]),
    ("float32", 0, 10, [3.0, 8.0, 1.0, 9.0]),
    ("float32", 2**24 - 5, None, [16777214.0, 16777215.0, 16777214.0, 16777214.0]),
    ("float64", 0, 2**50, [301004240741716.0, 642051394496873.0, 994531363582938.0, 607518040759123.0]),
)  # fmt: skip
RANDOM = (
    ("bool", [True, False, True, True]),
    ("uint8", [195, 84, 241, 105]),
    ("int8", [67, 84, 113, 105]),
    ("int16", [4547, 25940, 18417, 26985]),
    ("int32", [1603867075, 47736148, 2012366833, 1028385129]),
    ("int64", [6888556634303915348, 8643049736318478697, 6810437167947772890, 569186970996284243]),
    ("float16", [543.0, 595.0, 1416.0, 225.0]),
    ("bfloat16", [108.0, 197.0, 165.0, 143.0]),
    ("float32", [10031332.0, 14181714.0, 15877882.0, 4974892.0]),
    ("float64", [7056403681795672.0, 5145651021865386.0, 994531363581158.0, 1733417947600660.0]),
)


# Whole numbers


@pytest.mark.parametrize(("name", "low", "high", "expected"), RANDINT)
def test_integers(generator, name, low, high, expected):
    """Ranges below 2**28 take one word a number, wider ones two."""
    values = generator.integers((4,), named(name), low, high)
    assert values.dtype == named(name).numpy
    assert values.tolist() == expected


def test_integers_stay_below_the_bound_of_a_floating_dtype(generator):
    """2051 is no float16, and 2050 + 1 rounds to 2052, so the range ends below it."""
    assert generator.integers((4,), dtypes.float16, 2040, 2047).max() < 2047
    with pytest.warns(UserWarning, match="skips whole numbers"):
        values = Generator(8).integers((4,), dtypes.float16, 2047, 2051)
    assert values.tolist() == [2050.0, 2047.0, 2048.0, 2048.0]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("int64", 5, 5), ("int64", 6, 5), ("bool", 0, 3), ("uint8", -1, 5), ("int8", 0, 129), ("int64", 0, 2**63),
     ("int64", -(2**63) - 1, 0), ("float16", 0, 10**6)],
)  # fmt: skip
def test_integers_refuse_a_range(generator, name, low, high):
    """An empty range, or bounds that the dtype or 64 bits cannot hold."""
    with pytest.raises(RandomError, match="integers: expected"):
        generator.integers((3,), named(name), low, high)


def test_integers_refuse_bounds_that_are_no_ints(generator):
    """A float bound is a TypeError, as in PyTorch."""
    with pytest.raises(ArgumentTypeError, match="integers: expected high to be an int, got float"):
        generator.integers((3,), dtypes.int64, 0, 2.5)


@pytest.mark.parametrize(("name", "expected"), RANDOM)
def test_random(generator, name, expected):
    """``tensor.random_()`` spans the dtype's non-negative whole numbers."""
    values = generator.random((4,), named(name))
    assert values.dtype == named(name).numpy
    assert values.tolist() == expected


@pytest.mark.parametrize("name", ["int8", "int64", "float32"])
def test_geometric(generator, name):
    """``tensor.geometric_(0.2)``."""
    values = generator.geometric((8,), named(name), 0.2)
    assert values.dtype == named(name).numpy
    assert values.tolist() == [2, 3, 10, 8, 3, 5, 3, 19]


# Permutations


def test_permutation(generator):
    """``torch.randperm(10)``."""
    assert generator.permutation(10).tolist() == [3, 5, 0, 1, 2, 6, 4, 7, 8, 9]


@pytest.mark.parametrize(
    ("n", "expected"), [(511, 0xAFCE4A03), (512, 0xFA9BEA4D), (1000, 0xF722C1E4), (20000, 0x5893C641)]
)
def test_permutation_bytes(generator, n, expected):
    """Swaps one by one below 512 and all at once from there on give PyTorch's order."""
    assert crc(generator.permutation(n)) == expected


@pytest.mark.parametrize("name", ["uint8", "int8", "int32", "float16", "bfloat16", "float64"])
def test_permutation_dtypes(generator, name):
    """The same order in every dtype."""
    values = generator.permutation(10, named(name))
    assert values.dtype == named(name).numpy
    assert values.astype(np.int64).tolist() == [3, 5, 0, 1, 2, 6, 4, 7, 8, 9]


def test_large_permutations_insert_instead(generator, monkeypatch):
    """From 2**32 / 20 on each step inserts i at a 64-bit draw modulo i + 1."""
    words = generator.clone().draw64(6)
    monkeypatch.setattr(random_module, "_LARGE_SHUFFLE", 6)
    expected: list[int] = []
    for i, word in enumerate(words.tolist()):
        z = word % (i + 1)
        expected.append(i)
        expected[i], expected[z] = expected[z], i
    assert generator.permutation(6).tolist() == expected


@pytest.mark.parametrize(("n", "name"), [(128, "int8"), (256, "uint8"), (2050, "float16"), (2**24 + 2, "float32")])
def test_permutation_refuses_what_the_dtype_cannot_count(generator, n, name):
    """The number itself has to fit, though the largest element is one less."""
    with pytest.raises(RandomError, match="permutation: expected n that"):
        generator.permutation(n, named(name))


# Yes and no


def test_bernoulli_of_a_number(generator):
    """``tensor.bernoulli_(0.3)`` compares 53-bit uniforms."""
    expected = [0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    for name in ("float32", "bool", "int8", "bfloat16"):
        values = Generator(8).bernoulli(0.3, (16,), named(name))
        assert values.dtype == named(name).numpy
        assert values.astype(int).tolist() == expected


def test_bernoulli_of_an_array(generator):
    """``torch.bernoulli(p)`` compares 24-bit uniforms, with float64 probabilities 53-bit ones."""
    narrow = generator.bernoulli(np.full(16, 0.3, np.float32))
    assert narrow.dtype == np.float32
    assert narrow.tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0]
    wide = Generator(8).bernoulli(np.full(16, 0.3))
    assert wide.dtype == np.float64
    assert wide.tolist() == [0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0]


def test_bernoulli_broadcasts_probabilities(generator):
    """A column of certainties fills its rows."""
    values = generator.bernoulli(np.array([[0.0], [1.0]]), (2, 3), dtypes.int64)
    assert values.tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("p", [1.5, -0.1, np.nan, np.array([0.5, 1.5]), np.array([0.5, np.nan])])
def test_bernoulli_refuses_what_is_no_probability(generator, p):
    """Outside 0 to 1, as a number or in an array, and nothing is drawn."""
    before = generator.get_state()
    with pytest.raises(RandomError, match="bernoulli: expected"):
        generator.bernoulli(p, (2,))
    assert np.array_equal(generator.get_state(), before)


def test_bernoulli_refuses_shapes_and_dtypes_of_probabilities(generator):
    """Probabilities have to be floating and to broadcast."""
    with pytest.raises(ShapeError, match="bernoulli: expected probabilities that broadcast"):
        generator.bernoulli(np.array([0.5, 0.5]), (3,))
    with pytest.raises(DtypeError, match="bernoulli: expected floating probabilities"):
        generator.bernoulli(np.array([1, 0]))


# Categories


def test_multinomial_without_replacement(generator):
    """``torch.multinomial(tensor([1., 2., 3., 4.]), 3)``."""
    assert generator.multinomial(np.array([1, 2, 3, 4], np.float32), (3,)).tolist() == [2, 3, 1]
    assert Generator(8).multinomial(np.array([1.0, 2.0, 3.0, 4.0]), (4,)).tolist() == [2, 3, 1, 0]


def test_multinomial_with_replacement(generator):
    """Each row of weights gives a row of indices."""
    weights = np.array([[1, 2, 3, 4], [4, 0, 0, 1]], np.float32)
    drawn = generator.multinomial(weights, (6,), replacement=True)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == [[3, 2, 1, 1, 3, 2], [0, 0, 0, 0, 0, 3]]


def test_one_sample_is_drawn_without_replacement(generator):
    """One sample takes the way of draws without replacement whatever is asked, as in PyTorch."""
    weights = np.array([1, 2, 3, 4], np.float32)
    drawn = generator.multinomial(weights, (1,), replacement=True)
    assert drawn.tolist() == [2]
    assert np.array_equal(drawn, Generator(8).multinomial(weights, (1,)))


@pytest.mark.parametrize(
    ("weights", "samples"),
    [
        ([-1.0, 2.0], 2), ([0.0, 0.0], 2), ([np.nan, 1.0], 2), ([np.inf, 1.0], 2), ([[1.0, 1.0], [0.0, 0.0]], 2),
        ([[[1.0]]], 1), (1.0, 1), ([], 1), ([1.0, 2.0], 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_refuses_weights(generator, weights, samples, replacement):
    """Negative, endless, missing or all-zero weights, other than 1 or 2 dims, and no samples."""
    with pytest.raises(RandomError, match="multinomial: expected"):
        generator.multinomial(np.array(weights, np.float32), (samples,), replacement)


def test_multinomial_refuses_more_samples_than_categories(generator):
    """Without replacement there are only so many."""
    with pytest.raises(RandomError, match="multinomial: expected num_samples up to the 2 categories, got 3"):
        generator.multinomial(np.array([1.0, 2.0]), (3,))


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 400), (1, 1)])
@pytest.mark.parametrize("count", [1, 2, 5, 70])
def test_the_devices_draws_by_weight_are_the_generators(shape, count):
    """Indices that a CPU kernel draws by float32 weights, zeros among them, are those that the generator draws, and leave it
    where it would be."""
    count = min(count, shape[-1])
    weights = np.random.default_rng(3).uniform(0, 2, shape).astype(np.float32)
    weights[..., ::3] *= weights[..., ::3] > 1
    weights[..., -1] = 0.5
    one, other = Generator(5), Generator(5)
    options = {"weights": weights, "replacement": False}
    drawn = device_of("cpu").random("multinomial", (count,), dtypes.int64, one, **options)
    assert np.array_equal(drawn, other.multinomial(weights, (count,)))
    assert one.get_state().tolist() == other.get_state().tolist()
