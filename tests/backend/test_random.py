"""The host's random generator against PyTorch 2.13: its numbers as literals, and live behind the ``oracle`` marker."""

import copy
import math
import pickle
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorcore.dtypes as dtypes
from tensorcore.backend import distributions
from tensorcore.backend import random as random_module
from tensorcore.backend.random import DEFAULT_SEED, Generator, RandomError, default_generator
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError

FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = ("uint8", "int8", "int16", "int32", "int64")
SIZES = (1, 15, 16, 17, 33, 1000)

# CRC-32 of the bytes that PyTorch draws after manual_seed(8), for each of SIZES.
UNIFORM = {
    "float16": (0x73E3C666, 0x37985AF8, 0x4FFACFFB, 0x54791A16, 0x23040CB7, 0xB7CC6429),
    "bfloat16": (0x6CBF96DA, 0xF930C3A9, 0x929DCDBA, 0x62BA37EB, 0xF78DB72E, 0x864B0DCA),
    "float32": (0x753ED396, 0x3A7ED0F4, 0xE117D20A, 0xD2D4A3BD, 0xF78F2DAF, 0xC82236AF),
    "float64": (0xA9AB6102, 0x1144E35B, 0x39C6B93D, 0x8DE5E305, 0xFB6FBABC, 0x606EF19C),
    "complex64": (0x997D1F9C, 0x4DF24BBB, 0xA1FBE238, 0x8BFD49FA, 0x3E05881C, 0x92B03489),
    "complex128": (0xF0B90B97, 0x6A7A0B8F, 0x1929A398, 0x9A110384, 0x637612CE, 0xA9162204),
}
NORMAL = {
    "float16": (0x95972DD9, 0x1DEFD0F1, 0xE835C5E7, 0xD205AAD9, 0xDAD37687, 0x2F63E22),
    "bfloat16": (0x58CF4ED4, 0x51E43CCC, 0x74571926, 0x5F411ED7, 0x9FC17363, 0x2425CACE),
    "float32": (0x41534369, 0x66DB602B, 0xE2448106, 0xD8B88F9B, 0x5C69E1F9, 0x328628E7),
    "complex64": (0x4F540526, 0x98322217, 0x6EE34F79, 0xDE1D5D86, 0x16C33709, 0x149E6881),
}
# float64 functions come from the C library, so another one may differ in the last place.
NORMAL_FLOAT64_17 = [
    -1.6169353158353055, -0.5241633190399102, 0.6655926511748026, -0.1591351069977307, -1.7277479522760137,
    0.2369287959754555, 1.0742052783534235, -0.003534131938536471, 0.2373417185451156, 0.9701245177789963,
    1.1141951243020656, 0.4422510817767449, -0.058436590589598374, -2.228749420393554, -1.6187637473845764,
    1.604289049594508, 0.7945518663680966,
]  # fmt: skip
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


def named(name):
    return getattr(dtypes, "bool_" if name == "bool" else name)


def crc(array):
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


@pytest.fixture
def generator():
    return Generator(8)


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


# Uniforms


def test_uniform_starts_with_the_known_numbers(generator):
    """``torch.manual_seed(8); torch.rand(3, 4)``."""
    assert generator.uniform((3, 4)).tolist() == [
        [0.5979272723197937, 0.8452961444854736, 0.9464102387428284, 0.2965303063392639],
        [0.5138018727302551, 0.6443458795547485, 0.8990559577941895, 0.014088809490203857],
        [0.5784516334533691, 0.1218070387840271, 0.9180936813354492, 0.680533230304718],
    ]


@pytest.mark.parametrize("name", FLOATING + COMPLEX)
def test_uniform_bytes(name):
    """Every dtype and size gives PyTorch's bytes."""
    arrays = [Generator(8).uniform((size,), named(name)) for size in SIZES]
    assert {array.dtype for array in arrays} == {named(name).numpy}
    assert tuple(map(crc, arrays)) == UNIFORM[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float32", [0.29792726039886475, 0.5452961325645447, 0.6464102268218994, -0.003469705581665039]),
        ("float64", [0.4834181838581267, 0.2712820241163118, -0.18958483814383692, -0.10755194832740572]),
    ],
)
def test_uniform_between_bounds(generator, name, expected):
    """``tensor.uniform_(-0.3, 0.7)`` scales and shifts with one rounding."""
    assert generator.uniform((4,), named(name), -0.3, 0.7).tolist() == expected


def test_uniform_never_reaches_the_upper_bound(generator):
    """A 16-bit number that would round up to the bound becomes the lower one."""
    values = generator.uniform((5000,), dtypes.bfloat16)
    assert float(values.max()) < 1.0
    assert float(values.min()) == 0.0


def test_uniform_of_one_value(generator):
    """Equal bounds give that value."""
    assert generator.uniform((2,), dtypes.float32, 1.0, 1.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [(2.0, 1.0, "float32"), (np.nan, 1.0, "float32"), (-3e38, 3e38, "float32"), (0.0, 1e6, "float16")],
)
def test_uniform_refuses_bounds(generator, low, high, name):
    """Bounds in the wrong order, outside the dtype, or too far apart, even for no elements."""
    with pytest.raises(RandomError, match="uniform: expected low <= high"):
        generator.uniform((0,), named(name), low, high)


# Normals


@pytest.mark.parametrize("name", sorted(NORMAL))
def test_normal_bytes(name):
    """Every dtype gives PyTorch's bytes below, at and above 16 elements."""
    arrays = [Generator(8).normal((size,), named(name)) for size in SIZES]
    assert {array.dtype for array in arrays} == {named(name).numpy}
    assert tuple(map(crc, arrays)) == NORMAL[name]


def test_normal_float64(generator):
    """17 float64 normals: one block of 16, of which the last 15 are drawn anew with the 17th."""
    np.testing.assert_allclose(generator.normal((17,), dtypes.float64), NORMAL_FLOAT64_17, rtol=1e-14)


def test_normal_float64_below_16(generator):
    """Below 16 elements float64 normals are made one by one."""
    np.testing.assert_allclose(
        generator.normal((4,), dtypes.float64),
        [0.27127651184610563, -1.272918302302497, 0.50269705357053, 0.4180806855771066],
        rtol=1e-14,
    )


def test_normal_complex128(generator):
    """The two parts are neighbouring normals of half the variance."""
    np.testing.assert_allclose(
        generator.normal((8,), dtypes.complex128)[:2],
        [-1.1433459265671564 - 0.02087375585231649j, -0.23424632479542526 + 0.2823551761208775j],
        rtol=1e-13,
    )


def test_normal_with_mean_and_deviation(generator):
    """``tensor.normal_(2, 0.5)`` of four float32 elements."""
    expected = [2.1356382369995117, 1.3635408878326416, 2.2513484954833984, 2.209040403366089]
    assert generator.normal((4,), dtypes.float32, 2.0, 0.5).tolist() == expected


def test_normal_takes_turns_with_the_other_draws(generator):
    """An odd number of single normals keeps one back, which uniforms and larger normals leave alone."""
    assert generator.normal((3,)).tolist() == [0.2712765038013458, -1.2729183435440063, 0.5026970505714417]
    assert generator.uniform((2,)).tolist() == [0.5784516334533691, 0.1218070387840271]
    assert generator.normal((1,)).tolist() == [0.4180806875228882]
    assert generator.normal((17,))[-2:].tolist() == [-1.0194613933563232, -0.5657243132591248]
    expected = [-1.4752881556446844, -0.12252634169854104]
    np.testing.assert_allclose(generator.normal((2,), dtypes.float64), expected, rtol=1e-14)


def test_normal_without_deviation(generator):
    """A deviation of 0 gives the mean, and draws all the same."""
    assert generator.normal((20,), dtypes.float32, 3.0, 0.0).tolist() == [3.0] * 20
    assert not np.array_equal(generator.get_state(), Generator(8).get_state())


def test_normal_of_a_uniform_zero_is_plus_zero():
    """The radius of a uniform 0 is -0.0, which the last addition makes 0.0."""
    uniforms = np.zeros(16, np.float32)
    distributions.box_muller_float32(uniforms)
    values = distributions.fma_float32(uniforms, np.float32(1.0), np.float32(0.0))
    assert values.view(np.uint32).tolist() == [0] * 16


@pytest.mark.parametrize("std", [-1.0, np.nan])
def test_normal_refuses_a_deviation(generator, std):
    """A negative deviation, or none."""
    with pytest.raises(RandomError, match="normal: expected std >= 0"):
        generator.normal((3,), dtypes.float32, 0.0, std)


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


# The other families


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda g, d: g.exponential((4,), d, 2.0),
         [0.7648934496347908, 0.42347798755401533, 0.05850019954224057, 0.10687394683027891]),
        (lambda g, d: g.log_normal((4,), d, 0.5, 0.25),
         [1.7644148893278266, 1.1993388233711624, 1.8695060720665961, 1.830373732467568]),
        (lambda g, d: g.cauchy((4,), d, 1.0, 2.0),
         [3.4711408981210132, 1.455518298264626, -4.532562079404342, -1.8947690585221104]),
    ],
)  # fmt: skip
def test_continuous_families(draw, expected):
    """Exponential, log-normal and Cauchy numbers are made in float64 and then narrowed."""
    np.testing.assert_allclose(draw(Generator(8), dtypes.float64), expected, rtol=1e-14)
    for name in ("float16", "bfloat16", "float32"):
        narrow = np.array(expected, np.float32).astype(named(name).numpy)
        assert draw(Generator(8), named(name)).tolist() == narrow.tolist()


@pytest.mark.parametrize("name", ["int8", "int64", "float32"])
def test_geometric(generator, name):
    """``tensor.geometric_(0.2)``."""
    values = generator.geometric((8,), named(name), 0.2)
    assert values.dtype == named(name).numpy
    assert values.tolist() == [2, 3, 10, 8, 3, 5, 3, 19]


def test_log_normal_of_a_huge_mean_is_infinite(generator):
    """An exponential beyond float64 is infinite and no error."""
    assert generator.log_normal((3,), dtypes.float64, 1000.0, 1.0).tolist() == [np.inf] * 3


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: g.exponential((3,), dtypes.float32, 0.0),
        lambda g: g.exponential((3,), dtypes.float32, np.nan),
        lambda g: g.geometric((3,), dtypes.int64, 0.0),
        lambda g: g.geometric((3,), dtypes.int64, 1.0),
        lambda g: g.log_normal((3,), dtypes.float32, 0.0, 0.0),
        lambda g: g.cauchy((0,), dtypes.float32, 0.0, -1.0),
    ],
)
def test_families_refuse_parameters(generator, draw):
    """Rates, widths and probabilities out of range are refused before anything is drawn."""
    before = generator.get_state()
    with pytest.raises(RandomError, match="expected"):
        draw(generator)
    assert np.array_equal(generator.get_state(), before)


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
        lambda g: g.multinomial(np.array([1, 2]), 1),
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


# Categories


def test_multinomial_without_replacement(generator):
    """``torch.multinomial(tensor([1., 2., 3., 4.]), 3)``."""
    assert generator.multinomial(np.array([1, 2, 3, 4], np.float32), 3).tolist() == [2, 3, 1]
    assert Generator(8).multinomial(np.array([1.0, 2.0, 3.0, 4.0]), 4).tolist() == [2, 3, 1, 0]


def test_multinomial_with_replacement(generator):
    """Each row of weights gives a row of indices."""
    weights = np.array([[1, 2, 3, 4], [4, 0, 0, 1]], np.float32)
    drawn = generator.multinomial(weights, 6, replacement=True)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == [[3, 2, 1, 1, 3, 2], [0, 0, 0, 0, 0, 3]]


def test_one_sample_is_drawn_without_replacement(generator):
    """One sample takes the way of draws without replacement whatever is asked, as in PyTorch."""
    weights = np.array([1, 2, 3, 4], np.float32)
    drawn = generator.multinomial(weights, 1, replacement=True)
    assert drawn.tolist() == [2]
    assert np.array_equal(drawn, Generator(8).multinomial(weights, 1))


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
        generator.multinomial(np.array(weights, np.float32), samples, replacement)


def test_multinomial_refuses_more_samples_than_categories(generator):
    """Without replacement there are only so many."""
    with pytest.raises(RandomError, match="multinomial: expected num_samples up to the 2 categories, got 3"):
        generator.multinomial(np.array([1.0, 2.0]), 3)


# Arithmetic


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        # 2**-24 + 2**-60 more than 1: float64 drops 2**-60, and the tie that is left would go down to 1.
        (1 + 2**-12, 2**-24 * (1 - 2**-12 + 2**-24), 1.0, 1 + 2**-23),
        # 2**-24 - 2**-70 more than 1 + 2**-23: the tie that is left would go up to 1 + 2**-22.
        (1 + 2**-23, 2**-24 * (1 - 2**-23), 1 + 2**-23, 1 + 2**-23),
    ],
)
def test_fused_steps_round_once(a, b, c, expected):
    """A sum that float64 would put half-way between two float32 numbers follows what float64 lost."""
    fused = distributions.fma_float32(np.array([a], np.float32), np.float32(b), np.float32(c))
    assert fused.dtype == np.float32
    assert fused.tolist() == [expected]


def test_fused_steps_round_once_in_float64():
    """The exact rest of the product counts: (1 + 2**-30)**2 - 1 - 2**-29 is 2**-60."""
    a = np.array([1 + 2.0**-30])
    assert distributions.fma_float64(a, 1 + 2.0**-30, -1 - 2.0**-29)[0] == 2.0**-60


@pytest.mark.parametrize("name", ["log", "log1p", "sin", "cos", "exp", "tan"])
def test_libm_gives_the_c_librarys_bits(name):
    """Each function agrees with ``math``, element by element, wherever its values come from."""
    x = np.random.default_rng(0).random(1000) * 0.9 + 0.05
    assert distributions.libm(name)(x).tolist() == [getattr(math, name)(value) for value in x.tolist()]


def test_libm_answers_poles_with_infinities():
    """log(0) is -inf and exp(1000) is inf, where ``math`` raises."""
    assert distributions.libm("log")(np.array([0.0, 1.0])).tolist() == [-np.inf, 0.0]
    assert distributions.libm("exp")(np.array([1000.0, 0.0])).tolist() == [np.inf, 1.0]


# PyTorch itself


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    state = torch.get_rng_state()
    yield torch
    torch.set_rng_state(state)


@pytest.fixture
def vector_torch(torch):
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
        pair.compare(torch.multinomial(tensor, 20, True), pair.generator.multinomial(weights, 20, True))
        pair.compare(torch.multinomial(tensor[0], 5, True), pair.generator.multinomial(weights[0], 5, True))
        pair.compare(torch.multinomial(tensor, 1), pair.generator.multinomial(weights, 1))
        if name in ("float32", "float64"):
            pair.compare(torch.multinomial(tensor, n), pair.generator.multinomial(weights, n))


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
