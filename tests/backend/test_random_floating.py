"""Uniform, normal and other floating draws of the host's random generator: PyTorch's numbers as literals."""

import math

import numpy as np
import pytest

import tensorcore.dtypes as dtypes
from tensorcore.backend import distributions
from tensorcore.backend.random import Generator, RandomError
from tests.backend.randomness import COMPLEX, FLOATING, SIZES, crc, named

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
