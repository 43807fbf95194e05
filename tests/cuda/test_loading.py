"""Batches that are on the device before they are needed."""

from __future__ import annotations

import pytest

import tensorcore as tc
from tensorcore.utils.data import DataLoader, DevicePrefetcher, TensorDataset


def loader() -> DataLoader:
    """Three batches of two rows and their numbers."""
    return DataLoader(TensorDataset(tc.arange(12.0).reshape(6, 2), tc.arange(6)), batch_size=2)


def test_batches_come_in_order_and_on_the_device() -> None:
    """Values, structures and the number of batches are the loader's."""
    found = DevicePrefetcher(loader(), "cuda", ahead=2)
    assert len(found) == 3
    for _ in range(2):
        batches = list(found)
        assert [str(x.device) for x, _ in batches] == ["cuda:0"] * 3
        assert [x.tolist() for x, _ in batches] == [x.tolist() for x, _ in loader()]
        assert [y.tolist() for _, y in batches] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.standin
def test_the_host_never_waits(clock) -> None:
    """Copies run on a stream of their own, one batch ahead, and work waits for its batch by itself."""
    total, copies, seen = tc.zeros(2, device="cuda"), clock.copies, []
    waits = clock.waits
    for x, _ in DevicePrefetcher(loader(), "cuda"):
        total += x.sum(0)
        seen.append(clock.copies - copies)
    assert clock.waits == waits
    assert seen == [4, 6, 6]
    assert total.tolist() == [30, 36]


def test_it_must_be_ahead() -> None:
    """Less than one batch ahead is refused."""
    with pytest.raises(ValueError, match="expected to be ahead by 1"):
        DevicePrefetcher(loader(), "cuda", ahead=0)
