"""Philox: the published numbers, whatever the launch shape, and distributions."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc

# The known answers that come with Random123: counter, key, block.
ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
]


def philox(counter: int, key: int) -> list[int]:
    """One block by the paper's rounds, on Python's integers."""
    c, k = [counter & 0xFFFFFFFF, counter >> 32 & 0xFFFFFFFF, 0, 0], [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_the_published_block(place) -> None:
    """Counter 0 and key 0 give the block of the paper's known answers."""
    counter, key, block = ANSWERS[0]
    assert philox(0, 0) == block
    assert place.new_generator().manual_seed(0).words(4).get().tolist() == block
    assert not any(counter + key)


@pytest.mark.parametrize("seed", [1, 0x243F6A8885A308D3 >> 1, -1])
def test_every_block_is_philox(place, seed: int) -> None:
    """Blocks count on from call to call, and across the 32-bit border of the counter."""
    generator = place.new_generator().manual_seed(seed)
    found = [*generator.words(6).get().tolist(), *generator.words(5).get().tolist()]
    key = seed & (1 << 64) - 1
    assert found == [*(philox(0, key) + philox(1, key))[:6], *(philox(2, key) + philox(3, key))[:5]]
    generator.offset = (1 << 32) - 1
    assert generator.words(8).get().tolist() == philox((1 << 32) - 1, key) + philox(1 << 32, key)


def test_a_number_depends_on_no_launch_shape(place) -> None:
    """The first numbers of a long draw are those of a short one."""
    generator = place.new_generator()
    long = generator.manual_seed(4).words(5000).get()
    np.testing.assert_array_equal(generator.manual_seed(4).words(13).get(), long[:13])


@pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.float16], ids=str)
def test_numbers_are_made_of_words(place, dtype: tc.dtype) -> None:
    """Uniform ones of their upper bits, normal ones of two uniform ones; a longer draw begins with a shorter one."""
    words = place.new_generator().manual_seed(3).words(16).get()
    if dtype is tc.float64:
        units = (words.view(np.uint64) >> np.uint64(11)) * 2.0**-53
    else:
        units = (words >> 8) * 2.0**-24
    radius, angle = np.sqrt(-2 * np.log1p(-units[0::2])), 2 * np.pi * units[1::2]
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
    generator = tc.Generator("cuda")

    def drawn(make, count: int) -> list[float]:
        return make(count, dtype=dtype, device="cuda", generator=generator.manual_seed(3)).double().tolist()

    near = dict(rel=1e-3, abs=1e-3) if dtype is tc.float16 else dict(rel=1e-5, abs=1e-6)
    for make, expected in ((tc.rand, units), (tc.randn, normal)):
        assert drawn(make, len(expected)) == pytest.approx(expected.tolist(), **near)
        assert drawn(make, 5) == drawn(make, len(expected))[:5]
    chances = tc.full((8,), 0.5, dtype=dtype, device="cuda")
    kept = tc.bernoulli(chances, generator=generator.manual_seed(3)).tolist()
    assert kept == [float(one < 0.5) for one in (words[:8] >> 8) * 2.0**-24]


def test_seeds() -> None:
    """``manual_seed`` seeds the devices too, each draws by itself, and states go on where they were."""
    tc.manual_seed(7)
    first = tc.rand(4, device="cuda").tolist()
    tc.rand(100)
    tc.cuda.manual_seed_all(7)
    assert tc.rand(4, device="cuda").tolist() == first
    assert tc.cuda.initial_seed() == 7
    state = tc.cuda.get_rng_state()
    second = tc.rand(4, device="cuda").tolist()
    tc.cuda.set_rng_state(state)
    assert tc.rand(4, device="cuda").tolist() == second != first


def test_a_generator_of_its_own() -> None:
    """A Generator of the device draws apart from the default one."""
    generator = tc.Generator("cuda").manual_seed(5)
    first = tc.randn(6, device="cuda", generator=generator).tolist()
    other = tc.Generator("cuda")
    other.set_state(generator.get_state())
    assert (
        tc.randn(3, device="cuda", generator=generator).tolist() == tc.randn(3, device="cuda", generator=other).tolist()
    )
    assert tc.randn(6, device="cuda", generator=generator.manual_seed(5)).tolist() == first


@pytest.mark.parametrize(
    "draw, mean, std",
    [
        (lambda: tc.rand(20000, device="cuda"), 0.5, 12**-0.5),
        (lambda: tc.rand(20000, device="cuda", dtype=tc.float64), 0.5, 12**-0.5),
        (lambda: tc.randn(20000, device="cuda"), 0.0, 1.0),
        (lambda: tc.randint(-3, 4, (20000,), device="cuda").float(), 0.0, 2.0),
        (lambda: tc.empty(20000, device="cuda").exponential_(2.0), 0.5, 0.5),
        (lambda: tc.full((20000,), 0.25, device="cuda").bernoulli(), 0.25, 0.1875**0.5),
        (lambda: tc.nn.functional.dropout(tc.ones(20000, device="cuda"), 0.5), 1.0, 1.0),
    ],
)
def test_distributions(draw, mean: float, std: float) -> None:
    """Mean and deviation of many numbers are those of the distribution."""
    values = draw()
    assert str(values.device) == "cuda:0"
    assert values.mean().item() == pytest.approx(mean, abs=0.03)
    assert values.std().item() == pytest.approx(std, rel=0.05)


@pytest.mark.standin
def test_drawing_does_not_wait(clock) -> None:
    """Random numbers are made where they are needed."""
    waits = clock.waits
    chances = tc.rand(50, device="cuda")
    tc.randn(50, device="cuda") + chances.bernoulli()
    assert clock.waits == waits


def test_what_the_host_refuses_is_refused() -> None:
    """Parameters out of range raise as on the host."""
    for call in (
        lambda device: tc.empty(3, device=device).uniform_(2, 1),
        lambda device: tc.empty(3, device=device).normal_(0, -1),
        lambda device: tc.empty(3, device=device).bernoulli_(1.5),
    ):
        with pytest.raises(Exception) as expected:
            call("cpu")
        with pytest.raises(type(expected.value)) as found:
            call("cuda")
        assert str(found.value) == str(expected.value)


@pytest.mark.standin
def test_slopes_are_drawn_where_the_argument_is_negative() -> None:
    """rrelu, whose distribution has an array for a parameter, draws on the device's generator; of an empty tensor too."""
    x = tc.tensor([-2.0, 3.0, -1.0], device="cuda", dtype=tc.float64)
    slopes = (tc.rrelu(x, 0.25, 0.5, training=True) / x).tolist()
    assert slopes[1] == 1.0
    assert all(0.25 <= slopes[at] < 0.5 for at in (0, 2))
    assert slopes[0] != slopes[2]
    assert tc.rrelu(x[:0], training=True).shape == (0,)
