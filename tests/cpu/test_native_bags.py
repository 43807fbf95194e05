"""Rows of a table, bag by bag, in C beside NumPy's: modes, empty bags, ends, numbers that rows are times, and their gradients."""

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.nn.functional as F

from .native import isa, kernel, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

OFFSETS = {"some empty": [0, 0, 3, 4, 4, 40, 40], "one": [0], "of one": list(range(40)), "behind the end": [0, 7, 40]}


def table(dtype, width):
    made = np.random.default_rng(8).standard_normal((11, width)).astype(dtype)
    made[3, :2], made[4, 0], made[5, 0] = np.inf, -np.inf, np.nan
    return made


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", OFFSETS)
def test_bags_are_numpys(mode, offsets, dtype):
    """Each bag in its mode, NaN within, nothing for an empty one; padding and what is behind the last end count for nothing."""
    native, numpys = kernel("bag")
    index, starts = np.arange(40) * 7 % 11, np.array(OFFSETS[offsets])
    for width in (1, 5, 67):
        rows = table(dtype, width)
        scales = np.random.default_rng(9).standard_normal(40).astype(dtype)
        for last in (False, True) if len(starts) > 1 else (False,):
            for given in (
                (rows, index, starts),
                (np.asfortranarray(rows), index, starts),
                (rows, index, starts, scales),
            ):
                if len(given) == 4 and mode != "sum":
                    continue
                for options in ({}, {"padding": 5}, {"padding": 0}, {"padding": None}):
                    options = {"mode": mode, "last": last} | options
                    with np.errstate(all="ignore"):
                        expected = numpys(*given, **options)
                    found = native(*given, **options)
                    assert (found.dtype, found.shape) == (expected.dtype, (len(starts) - last, width))
                    np.testing.assert_allclose(
                        found, expected, rtol=4 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps
                    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [1, -1])
def test_padding_is_that_of_recorded_calls(mode, padding):
    """A call that is not recorded leaves out the same row, of bags in a matrix too, and refuses one that is not there."""
    index, rows = torch.tensor([1, 2, 1, 4, 0, 4]), torch.tensor(table("float32", 5)[:5, 2:])
    weight = rows.clone().requires_grad_()
    for given in ((index, torch.tensor([0, 1, 1, 5])), (index.reshape(3, 2), None)):
        found, recorded = [
            F.embedding_bag(given[0], one, given[1], mode=mode, padding_idx=padding) for one in (rows, weight)
        ]
        torch.testing.assert_close(found, recorded.detach())
    with pytest.raises(RuntimeError, match="padding_idx must be within the number of embeddings"):
        F.embedding_bag(index, rows, torch.tensor([0]), padding_idx=5)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags(mode, last):
    """Each row gets the gradients of the bags that hold it, times its number and over their length; so do the numbers, and seconds."""
    index, offsets = torch.tensor([1, 2, 1, 4, 0, 3]), torch.tensor([0, 2, 2, 5])
    weight = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    scales = torch.randn(6, dtype=torch.float64, requires_grad=True) if mode == "sum" else None

    def bags(weight, *scales):
        return F.embedding_bag(index, weight, offsets, mode=mode, include_last_offset=last,
                               per_sample_weights=scales[0] if scales else None)  # fmt: skip

    given = (weight,) if scales is None else (weight, scales)
    assert torch.autograd.gradcheck(bags, given)
    assert torch.autograd.gradgradcheck(bags, given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_one_length_are_bags_with_offsets(mode, dtype):
    """Values are the same recorded and not, gradients too: of equal ones the first is the largest, NaN is larger than all."""
    index, starts = torch.tensor(np.arange(12) * 5 % 7), torch.tensor([0, 4, 8])
    rows = torch.tensor(np.round(table("float64", 19)[:7])).to(dtype)
    sent = torch.tensor(np.random.default_rng(9).standard_normal((3, 19))).to(dtype)
    made = []
    for given in ((index.reshape(3, 4), None), (index, starts)):
        weight = rows.clone().requires_grad_()
        bags = F.embedding_bag(given[0], weight, given[1], mode=mode)
        bags.backward(sent)
        made.append((F.embedding_bag(given[0], rows, given[1], mode=mode), bags.detach(), weight.grad))
    for one, other in zip(*made, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
    torch.testing.assert_close(made[0][0], made[0][1], equal_nan=True)


def test_offsets_out_of_order_read_nothing_outside():
    """They are left to NumPy, whose bags begin at the last offset that is not behind."""
    native, numpys = kernel("bag")
    given = (table("float32", 3)[:3], np.arange(9) % 3, np.array([0, 5, 2]))
    np.testing.assert_array_equal(native(*given, mode="sum", last=False), numpys(*given, mode="sum", last=False))


def test_threads_change_nothing():
    """One thread and two give the same bits."""
    from tensorcore_cpu import native as library

    before, found = library.threads(), []
    given = (
        np.random.default_rng(8).standard_normal((300, 70)).astype(np.float32),
        np.arange(9000) * 7 % 300,
        np.arange(0, 9000, 9),
    )
    try:
        for count in (1, 2):
            library.threads(count)
            found.append(kernel("bag")[0](*given, mode="mean", last=False))
    finally:
        library.threads(before)
    np.testing.assert_array_equal(found[0], found[1])
