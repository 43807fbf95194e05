"""Random numbers in C beside those of the host's generator: the same bits, and the same state afterwards."""

import numpy as np
import pytest

import tensorcore
from tensorcore import dtypes
from tensorcore.backend.random import Generator
from tensorcore.backend.twister import RandomError

from .native import needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

SIZES = [(), (0,), (1,), (15,), (16,), (17,), (624,), (3, 5, 7), (1000,), (1024,), (1040,), (5003,), (20_011,)]
DRAWS = {
    "rand": ("uniform", {}, ("float32", "float64", "float16", "bfloat16", "complex64")),
    "uniform": ("uniform", {"low": -2.5, "high": 0.7}, ("float32", "float64", "float16", "complex128")),
    "uniform below zero": ("uniform", {"low": -2.5, "high": 0.0}, ("float16", "bfloat16")),
    "uniform between neighbours": ("uniform", {"low": 1.0, "high": 1.0078125}, ("float16", "bfloat16")),
    "narrow uniform": ("uniform", {"low": 1.0, "high": 1.0000001}, ("float32",)),
    "randn": ("normal", {}, ("float32", "float64", "float16", "bfloat16", "complex128")),
    "normal": ("normal", {"mean": 3.3, "std": 0.1}, ("float32", "float64", "complex64", "complex128")),
    "bernoulli": ("bernoulli", {"probability": 0.3}, ("float32", "float64", "float16", "bfloat16")),
    "dropout": ("bernoulli", {"probability": 0.9, "one": 1 / 0.9}, ("float32", "float64")),
    "certain": ("bernoulli", {"probability": 1.0}, ("float32",)),
    "exponential": ("exponential", {}, ("float32", "float64", "float16", "bfloat16")),
    "faster": ("exponential", {"rate": 2.5}, ("float32", "float64")),
    "randint": ("integers", {"low": -5, "high": 95}, ("int64", "int32", "float32", "float16", "bfloat16")),
    "wide randint": ("integers", {"low": 0, "high": 1 << 40}, ("int64",)),
    "randint of whole floats": ("integers", {"low": -(1 << 24), "high": 1 << 24}, ("float32",)),
    "random": ("random", {}, ("float32", "float64", "int64", "int32", "float16", "bfloat16", "bool_")),
    "cauchy": ("cauchy", {}, ("float32", "float64", "float16", "bfloat16")),
    "wide cauchy": ("cauchy", {"median": -3.3, "sigma": 0.7}, ("float32", "float64")),
    "geometric": ("geometric", {"probability": 0.3}, ("float32", "float64", "int64", "float16", "bfloat16")),
    "log_normal": ("log_normal", {}, ("float32", "float64", "float16", "bfloat16")),
    "huge log_normal": ("log_normal", {"mean": 80.0, "std": 9.0}, ("float32", "float64", "float16")),
    "serial normal": ("serial_normal", {"mean": 0.3, "std": 1.7}, ("float32", "float64", "complex64")),
}

NOT_OVER = {("wide randint", "int64"), ("geometric", "int64")}


@pytest.mark.parametrize("name, dtype", [(name, one) for name, (_, _, dtypes_) in DRAWS.items() for one in dtypes_])
def test_the_same_bits_and_the_same_state(name, dtype):
    """Draw after draw, of any size, with whatever is left over from the draw before."""
    kind, options, _ = DRAWS[name]
    device = tensorcore.device("cpu")
    ours, host = Generator(7), Generator(7)
    for size in SIZES:
        made = device.random(kind, size, getattr(dtypes, dtype), ours, **options)
        expected = getattr(host, kind)(shape=size, dtype=getattr(dtypes, dtype), **options)
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        assert made.tobytes() == expected.tobytes()
        assert ours.get_state().tobytes() == host.get_state().tobytes()


@pytest.mark.parametrize("name, dtype", [(name, one) for name, (_, _, dtypes_) in DRAWS.items() for one in dtypes_])
def test_the_same_bits_over_an_array(name, dtype):
    """Draw after draw over arrays in one piece; what is not drawn there leaves the array and the state as they were."""
    kind, options, _ = DRAWS[name]
    device, number = tensorcore.device("cpu"), getattr(dtypes, dtype)
    ours, host = Generator(7), Generator(7)
    for size in SIZES:
        target = np.ones(size, number.numpy)
        if device.draw_over(target, kind, ours, **options):
            assert target.tobytes() == getattr(host, kind)(shape=size, dtype=number, **options).tobytes()
        else:
            assert not target.size or (name, dtype) in NOT_OVER or dtype not in ("float32", "float64", "int64")
            assert (target == 1).all()
        assert ours.get_state().tobytes() == host.get_state().tobytes()
    fixed, apart = np.ones(20, number.numpy), np.ones(40, number.numpy)[::2]
    fixed.flags.writeable = False
    for target in (fixed, apart, [1.0]):
        assert not device.draw_over(target, kind, ours, **options)
    assert ours.get_state().tobytes() == host.get_state().tobytes()
    assert (fixed == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("low, high", [(0.125, 1 / 3), (-2.0, 0.5), (0.3, 0.3)])
def test_slopes_are_drawn_where_elements_are_not_over_zero(dtype, low, high):
    """As the generator draws them: ones for what is over 0 and for NaN, else one draw each, of arrays that lie anyhow too."""
    device, number = tensorcore.device("cpu"), getattr(dtypes, dtype)
    ours, host = Generator(7), Generator(7)
    for size in SIZES:
        x = np.random.default_rng(8).standard_normal(size).astype(number.numpy)
        x = np.where(np.abs(x) < 0.1, np.array(-0.0, x.dtype), x)
        x.reshape(-1)[3::7] = np.nan
        for one in (x, np.repeat(x.reshape(-1), 2)[::2].reshape(x.shape), np.asfortranarray(x).reshape(x.shape)):
            made = device.random("slopes", size, number, ours, input=one, low=low, high=high)
            expected = host.slopes(size, number, one, low, high)
            assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
            assert made.tobytes() == expected.tobytes()
            assert (made[~(one <= 0)] == 1).all()
            assert ours.get_state().tobytes() == host.get_state().tobytes()
    assert not device.draw_over(np.ones(3, number.numpy), "slopes", ours, input=np.ones(3), low=low, high=high)


@pytest.mark.parametrize("kind", ["normal", "serial_normal", "log_normal"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normals_one_by_one_keep_the_second_of_a_pair(dtype, kind):
    """Odd and even numbers of them, more than are made at a time too, whatever was left over before."""
    device = tensorcore.device("cpu")
    ours, host = Generator(7), Generator(7)
    for size in (1, 1, 3, 2, 3, 15, 15, 16, 1, 4, 40, 1, 5, 511, 1, 512, 513, 1, 1025):
        made = device.random(kind, (size,), getattr(dtypes, dtype), ours, mean=0.3, std=1.7)
        assert made.tobytes() == getattr(host, kind)((size,), getattr(dtypes, dtype), 0.3, 1.7).tobytes()
        assert ours.get_state().tobytes() == host.get_state().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_a_probability_each(dtype):
    """The same bits and the same state; probabilities outside are refused before anything is drawn."""
    device, kind = tensorcore.device("cpu"), getattr(dtypes, dtype)
    ours, host = Generator(7), Generator(7)
    for size in SIZES:
        each = np.asarray(np.random.default_rng(8).random(size), kind.numpy)
        for given in (each, each.T.copy().T):
            made = device.random("bernoulli", size, kind, ours, probability=given)
            expected = host.bernoulli(given, size, kind)
            assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
            assert made.tobytes() == expected.tobytes()
            assert ours.get_state().tobytes() == host.get_state().tobytes()
    with pytest.raises(RuntimeError, match="from 0 to 1"):
        device.random("bernoulli", (2,), kind, ours, probability=np.array([0.5, np.nan], kind.numpy))
    assert not device.draw_over(np.ones(2, kind.numpy), "bernoulli", ours, probability=np.ones(2, kind.numpy))
    assert ours.get_state().tobytes() == host.get_state().tobytes()


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_a_permutation_has_the_same_order_and_the_same_state(dtype):
    """Of no number, of one, and of up to several pieces of words; a negative number of them is refused."""
    device, kind = tensorcore.device("cpu"), getattr(dtypes, dtype)
    ours, host = Generator(7), Generator(7)
    for n in (0, 1, 2, 3, 10, 511, 512, 513, 624, 1025, 5003, 100_003):
        made, expected = device.random("permutation", (n,), kind, ours), host.permutation(n, kind)
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        assert made.tobytes() == expected.tobytes()
        assert ours.get_state().tobytes() == host.get_state().tobytes()
    with pytest.raises(RuntimeError, match="n >= 0"):
        tensorcore.randperm(-1)


WRONG = [("uniform", {"low": 2.0, "high": 1.0}), ("uniform", {"low": float("nan")}), ("normal", {"std": -1.0}),
         ("bernoulli", {"probability": 1.5}), ("exponential", {"rate": 0.0}), ("integers", {"low": 3, "high": 3}),
         ("integers", {"low": 0.5, "high": 3}), ("uniform", {"low": "a"}), ("cauchy", {"sigma": 0.0}),
         ("log_normal", {"std": 0.0}), ("geometric", {"probability": 1.0}), ("geometric", {}),
         ("serial_normal", {"std": -1.0})]  # fmt: skip


@pytest.mark.parametrize("kind, options", WRONG)
def test_what_is_not_drawn_here_is_left_to_the_generator(kind, options):
    """Parameters that are refused, and kinds that have no kernel, are answered as by the generator, state and words included."""
    ours, host = Generator(7), Generator(7)

    def outcome(draw):
        try:
            return draw().tobytes()
        except Exception as error:
            return type(error), str(error)

    made = outcome(lambda: tensorcore.device("cpu").random(kind, (3,), dtypes.float32, ours, **options))
    assert made == outcome(lambda: getattr(host, kind)(shape=(3,), dtype=dtypes.float32, **options))
    assert ours.get_state().tobytes() == host.get_state().tobytes()


def test_nothing_drawn_leaves_the_state():
    """A fresh generator stays one where there was nothing to draw."""
    ours, host = Generator(7), Generator(7)
    tensorcore.device("cpu").random("uniform", (0, 3), dtypes.float32, ours)
    host.uniform((0, 3))
    assert ours.get_state().tobytes() == host.get_state().tobytes()


@pytest.mark.parametrize(
    "kind, options",
    [
        ("uniform", {"low": 2.0, "high": 1.0}), ("normal", {"std": -1.0}), ("bernoulli", {"probability": 1.5}),
        ("integers", {"low": 3, "high": 3}), ("uniform", {"low": float("nan")}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_the_generators_to_say(kind, options):
    """The same errors, and nothing is drawn."""
    generator = Generator(7)
    dtype = dtypes.int64 if kind == "integers" else dtypes.float32
    with pytest.raises(RuntimeError, match=f"{kind}: expected"):
        tensorcore.device("cpu").random(kind, (20,), dtype, generator, **options)
    assert generator.get_state().tobytes() == Generator(7).get_state().tobytes()


def test_infinite_shapes_are_refused():
    """More elements than memory addresses is NumPy's error."""
    with pytest.raises((ValueError, MemoryError)):
        tensorcore.device("cpu").random("uniform", (1 << 40, 1 << 40), dtypes.float32, Generator(7))


def test_normals_are_normal():
    """A million have mean 0, deviation 1 and the tails of the distribution."""
    values = tensorcore.device("cpu").random("normal", (1_000_000,), dtypes.float32, Generator(7))
    assert abs(values.mean()) < 0.004
    assert abs(values.std() - 1) < 0.004
    assert abs(np.mean(np.abs(values) > 2) - 0.0455) < 0.001


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("shape", [(1,), (7,), (40,), (1, 1), (700, 2), (300, 10), (50, 33), (3, 2000)])
def test_places_by_weight(shape, replacement, dtype):
    """Rows of weights, zeros of both signs among them, give the places and leave the state that the host's generator does."""
    device = tensorcore.device("cpu")
    ours, host = Generator(7), Generator(7)
    weights = np.random.default_rng(8).random(shape, dtype=np.float32)
    weights[..., :-1][weights[..., :-1] < 0.4] = -0.0
    weights[..., :-1][weights[..., :-1] < 0.5] = 0.0
    weights = weights.astype(getattr(dtypes, dtype).numpy)
    for count in (1, 2, 5, 1500):
        if replacement or count <= shape[-1]:
            made = device.random("multinomial", (count,), dtypes.int64, ours, weights=weights, replacement=replacement)
            expected = host.multinomial(weights, (count,), replacement=replacement)
            np.testing.assert_array_equal(made, expected)
            assert ours.get_state().tobytes() == host.get_state().tobytes()


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, 0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_are_none(bad, dtype):
    """A weight below 0, NaN or infinite, or a row of nothing but zeros, raises what the host's generator raises."""
    weights = np.ones((3, 4), dtype)
    weights[1] = [bad, 0, 0, 0]
    for replacement in (False, True):
        with pytest.raises(RandomError, match="multinomial: expected"):
            tensorcore.device("cpu").random(
                "multinomial", (2,), dtypes.int64, Generator(7), weights=weights, replacement=replacement
            )


@pytest.mark.parametrize("weight", [np.float32(3e38), np.float64(1.5e308)])
def test_weights_whose_sum_is_infinite(weight):
    """Finite weights of which their type does not hold the sum give the places of the host's generator."""
    weights, device = np.full((2, 5), weight), tensorcore.device("cpu")
    with np.errstate(all="ignore"):
        made = device.random("multinomial", (3,), dtypes.int64, Generator(7), weights=weights, replacement=True)
        expected = Generator(7).multinomial(weights, (3,), replacement=True)
    np.testing.assert_array_equal(made, expected)
