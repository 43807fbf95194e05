"""DLPack and the array interface: memory shared with other libraries in the order of both streams."""

from __future__ import annotations

import pytest

import tensorcore as tc


def test_cupy_shares_memory() -> None:
    """A tensor becomes a CuPy array and back, over one memory."""
    import cupy

    x = tc.arange(6.0, device="cuda").reshape(2, 3)
    assert x.__dlpack_device__() == (2, 0)
    y = cupy.from_dlpack(x)
    y *= 2
    z = tc.from_dlpack(y)
    z[0, 0] = 9
    assert x.tolist() == [[9, 2, 4], [6, 8, 10]]


@pytest.mark.standin
def test_a_consumer_waits_for_the_producer() -> None:
    """The consumer's stream waits for the work that was called before the exchange."""
    from cupy._timeline import Race

    side, x = tc.cuda.Stream(), tc.ones(3, device="cuda")
    y = x + 1
    with tc.cuda.stream(side), pytest.raises(Race):
        y + 1
    y.__dlpack__(stream=side.cuda_stream)
    with tc.cuda.stream(side):
        assert (y + 1).tolist() == [3, 3, 3]
        with pytest.raises(BufferError, match="expected device"):
            x.__dlpack__(dl_device=(2, 1))


def test_array_interface() -> None:
    """``__cuda_array_interface__`` shows the address, the shape and the strides."""
    x = tc.arange(6.0, device="cuda").reshape(2, 3).T
    found = x.__cuda_array_interface__
    assert found["data"] == (x.data_ptr(), False)
    assert (found["shape"], found["strides"], found["typestr"]) == ((3, 2), (4, 12), "<f4")
    assert not hasattr(tc.ones(1), "__cuda_array_interface__")
