"""Gamma, Poisson and binomial numbers in C: the same bits as the generator's own methods, which are PyTorch's, and the same state."""

import numpy as np
import pytest

import tensorcore
from tensorcore import dtypes
from tensorcore.backend.random import Generator
from tensorcore.backend.twister import RandomError

from .native import isa, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

COUNT = 701
DRAWS = {
    "gamma": ("gamma", {"alpha": np.linspace(0.0, 20.0, COUNT)}),
    "one gamma": ("gamma", {"alpha": np.array(0.3)}),
    "gamma of a block": ("gamma", {"alpha": np.full((4, 8), 2.5)[::-1].T}),
    "tiny gamma": ("gamma", {"alpha": np.full(40, 1e-3)}),
    "poisson": ("poisson", {"rate": np.linspace(0.0, 60.0, COUNT)}),
    "poisson of large rates": ("poisson", {"rate": np.full(COUNT, 3e5)}),
    "binomial": (
        "binomial",
        {"count": np.floor(np.linspace(0.0, 200.0, COUNT)), "probability": np.linspace(0.0, 1.0, COUNT)},
    ),
    "binomial of many": ("binomial", {"count": np.full(COUNT, 1e6), "probability": np.linspace(0.001, 0.999, COUNT)}),
    "nothing": ("poisson", {"rate": np.zeros(5)}),
    "no failure": ("binomial", {"count": np.full(3, 4.0), "probability": np.ones(3)}),
    "of no size": ("gamma", {"alpha": np.zeros((0, 3))}),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", DRAWS)
def test_the_same_bits_and_the_same_state(name, dtype):
    """Draw after draw, with a normal that another draw left and without; what takes no word leaves the state as it was."""
    kind, parameters = DRAWS[name]
    device, wide = tensorcore.device("cpu"), getattr(dtypes, dtype)
    options = {key: one.astype(dtype) for key, one in parameters.items()}
    if not all(np.isfinite(one).all() for one in options.values()):
        pytest.skip("more than the largest float16")
    shape = next(iter(options.values())).shape
    for seed in range(3):
        ours, host = Generator(seed), Generator(seed)
        for left_over in (False, True, True):
            if left_over:
                assert ours.serial_normals(3, 0.0, 1.0).tobytes() == host.serial_normals(3, 0.0, 1.0).tobytes()
            made = device.random(kind, shape, wide, ours, **options)
            expected = getattr(host, kind)(shape=shape, dtype=wide, **options)
            assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
            assert made.tobytes() == expected.tobytes()
            assert ours.get_state().tobytes() == host.get_state().tobytes()


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_what_is_wrong_is_said_by_the_generator(wrong):
    """A rate that is none raises, and nothing was drawn."""
    source = Generator(8)
    before = source.get_state()
    with pytest.raises(RandomError, match="invalid Poisson rate"):
        tensorcore.device("cpu").random(
            "poisson", (2,), dtypes.float32, source, rate=np.array([1.0, wrong], np.float32)
        )
    assert source.get_state().tobytes() == before.tobytes()
