"""Places in sorted sequences: searchsorted and bucketize."""

import pytest

import tensorcore as tc


def test_a_number_between_integers_is_not_rounded() -> None:
    """A number is looked for in the dtype that it and the sequence meet in: 2.5 comes behind 2, and 300 behind every uint8."""
    whole, short = tc.tensor([1, 2, 3]), tc.tensor([0.1, 0.2])
    assert [tc.searchsorted(whole, 2.5).item(), tc.bucketize(2.5, whole).item()] == [2, 2]
    assert tc.searchsorted(whole.to(tc.uint8), 300).item() == 3
    assert [tc.searchsorted(short, 0.1, right=right).item() for right in (False, True)] == [0, 1]


def test_what_has_no_order_has_no_place() -> None:
    """Complex numbers and sequences of bools are refused, as by PyTorch, where a place among their real parts was found before."""
    for sequence, value in (
        (tc.tensor([1.0]), tc.tensor(1j)),
        (tc.tensor([1.0]), 1j),
        (tc.tensor([True]), tc.tensor(True)),
    ):
        with pytest.raises(NotImplementedError, match="searchsorted"):
            tc.searchsorted(sequence, value)


def test_bucketize_counts_the_boundaries_below() -> None:
    """A value on a boundary belongs to the bucket before it, with ``right`` to the one after."""
    boundaries = tc.tensor([1.0, 3.0, 5.0])
    assert tc.bucketize(tc.tensor([0.0, 3.0, 9.0]), boundaries).tolist() == [0, 1, 3]
    assert tc.bucketize(tc.tensor([0.0, 3.0, 9.0]), boundaries, right=True).tolist() == [0, 2, 3]
