"""Sequences of several lengths: padded and packed as PyTorch does it, and the errors of what does not fit."""

import copy
import pickle

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.nn.utils import rnn
from tests.nn.layers import numbers

SEQUENCES = [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]


def test_sequences_are_padded_to_the_longest():
    """Shorter ones get the value behind or before them, batch first or not."""
    given = [tc.tensor(one) for one in SEQUENCES]
    assert rnn.pad_sequence(given, batch_first=True).tolist() == [[1, 2, 0], [3, 0, 0], [4, 5, 6]]
    assert rnn.pad_sequence(given, padding_value=9).tolist() == [[1, 3, 4], [2, 9, 5], [9, 9, 6]]
    assert rnn.pad_sequence(given, True, padding_side="left").tolist() == [[0, 1, 2], [0, 0, 3], [4, 5, 6]]
    back = rnn.unpad_sequence(rnn.pad_sequence(given), tc.tensor([2, 1, 3]))
    assert [one.tolist() for one in back] == SEQUENCES


def test_packing_drops_the_padding_and_comes_back():
    """A packed batch has the rows step by step, the longest sequence first, and remembers the order."""
    packed = rnn.pack_sequence([tc.tensor(one) for one in SEQUENCES], enforce_sorted=False)
    assert packed.data.tolist() == [4, 1, 3, 5, 2, 6]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [2, 0, 1]
    assert packed.unsorted_indices.tolist() == [1, 2, 0]
    assert [one.tolist() for one in rnn.unpack_sequence(packed)] == SEQUENCES
    padded, lengths = rnn.pad_packed_sequence(packed, True, padding_value=-1, total_length=4)
    assert padded.tolist() == [[1, 2, -1, -1], [3, -1, -1, -1], [4, 5, 6, -1]]
    assert lengths.tolist() == [2, 1, 3]


@pytest.mark.oracle
@pytest.mark.parametrize("lengths", [[4, 4, 4], [4, 2, 1], [1, 1, 1]])
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_equals_pytorchs(lengths, batch_first, torch):
    """Data, sizes and gradients of packing and of padding again are PyTorch's."""
    x = numbers(3, 4, 2) if batch_first else numbers(4, 3, 2)
    made = []
    for lib in (tc, torch):
        given = lib.tensor(x, requires_grad=True)
        utils = lib.nn.utils.rnn
        packed = utils.pack_padded_sequence(given, lib.tensor(lengths), batch_first)
        padded, found = utils.pad_packed_sequence(packed, batch_first)
        (padded**2).sum().backward()
        made.append([packed.data, packed.batch_sizes, padded, found, given.grad])
    for ours, theirs in zip(*made, strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)


def test_lazy_sequences_are_packed_by_lazy_lengths():
    """In a block of lazy tensors the lengths are lazy too; those of the host are read, and the results are eager's."""

    def packed():
        tc.manual_seed(4)
        layer, x = tc.nn.GRU(2, 3, batch_first=True), tc.randn(3, 4, 2)
        given = rnn.pack_padded_sequence(x, tc.tensor([2, 4, 1]), batch_first=True, enforce_sorted=False)
        made, _ = layer(given)
        padded, lengths = rnn.pad_packed_sequence(made, batch_first=True)
        padded.sum().backward()
        return [padded.tolist(), lengths.tolist(), layer.weight_ih_l0.grad.tolist(), given.is_cuda]

    expected = packed()
    with tc.lazy():
        assert packed() == expected


def test_a_packed_sequence_converts_copies_and_pickles():
    """``to`` and its kin change the data alone; copies are packed sequences of the same values."""
    packed = rnn.pack_sequence([tc.tensor(one) for one in SEQUENCES], enforce_sorted=False)
    assert packed.double().data.dtype is tc.float64
    assert packed.to(tc.float32) is packed
    for twin in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert isinstance(twin, rnn.PackedSequence)
        assert twin.data.tolist() == packed.data.tolist()


@pytest.mark.parametrize(
    "act, error, text",
    [
        (lambda: rnn.pack_padded_sequence(tc.ones(3, 2), [1, 2]), RuntimeError, "sorted in decreasing order"),
        (lambda: rnn.pack_padded_sequence(tc.ones(3, 2), [3, 0]), RuntimeError, "greater than 0"),
        (lambda: rnn.pack_padded_sequence(tc.ones(3, 2), [3]), RuntimeError, "equal to batch_size"),
        (lambda: rnn.pack_padded_sequence(tc.ones(3, 2), [4, 1]), RuntimeError, "the 3 steps"),
        (lambda: rnn.pad_sequence([]), RuntimeError, "empty list"),
        (lambda: rnn.pad_sequence([tc.ones(1)], padding_side="up"), RuntimeError, "padding_side"),
        (
            lambda: rnn.pad_packed_sequence(rnn.pack_sequence([tc.ones(3)]), total_length=2),
            ValueError,
            "Expected total_length",
        ),
        (lambda: tc.nn.LSTM(3, 4)(tc.ones(2, 2, 5)), RuntimeError, "Expected 3, got 5"),
        (lambda: tc.nn.LSTM(3, 4)(tc.ones(3)), ValueError, "Expected input to be 2D or 3D"),
        (lambda: tc.nn.GRU(3, 4)(tc.ones(2, 2, 3), tc.ones(1, 2, 5)), RuntimeError, "Expected hidden size (1, 2, 4)"),
        (lambda: tc.nn.GRU(3, 4)(tc.ones(2, 2, 3), tc.ones(2, 4)), RuntimeError, "hx should also be 3-D"),
        (lambda: tc.nn.LSTM(3, 4)(tc.ones(2, 2, 3, dtype=tc.float64)), ValueError, "input must have the type"),
        (lambda: tc.nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
        (lambda: tc.nn.LSTM(3, 4, proj_size=4), ValueError, "smaller than hidden_size"),
        (lambda: tc.nn.RNN(3, 4, nonlinearity="gelu"), ValueError, "Unknown nonlinearity"),
        (lambda: tc.nn.RNN(3, 4, dropout=True), ValueError, "dropout should be a number"),
        (lambda: tc.nn.RNN(3, 0), ValueError, "hidden_size must be greater"),
        (lambda: tc.nn.LSTM(3, 4)(tc.ones(0, 2, 3)), RuntimeError, "larger than 0"),
    ],
)
def test_what_does_not_fit_is_refused(act, error, text):
    """Each misuse raises PyTorch's exception with its words."""
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


def test_dropout_on_a_single_layer_warns():
    """Dropout lies between layers: of one layer it is a mistake that is said."""
    with pytest.warns(UserWarning, match="non-zero dropout expects"):
        tc.nn.LSTM(3, 4, dropout=0.5)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_have_second_derivatives(kind):
    """A penalty on the gradient of the input is itself differentiated, as the finite difference says."""
    layer = getattr(tc.nn, kind)(2, 3).double()

    def penalty(x):
        made = layer(x)[0]
        (g,) = tc.autograd.grad(made.sum(), x, create_graph=True)
        return (g * g).sum()

    x = tc.tensor(numbers(3, 2, 2), dtype=tc.float64, requires_grad=True)
    (slope,) = tc.autograd.grad(penalty(x), x)
    step = 1e-6 * tc.ones_like(x)
    up, down = penalty((x + step).detach().requires_grad_()), penalty((x - step).detach().requires_grad_())
    assert slope.sum().item() == pytest.approx((up - down).item() / 2e-6, rel=1e-5)


def test_writing_to_a_result_leaves_the_gradient_right():
    """The states that a backward needs are not those that the caller may write to."""
    layer = tc.nn.LSTM(2, 3)
    x = tc.tensor(numbers(4, 1, 2))
    made, _ = layer(x)
    made.sum().backward()
    wanted = layer.weight_hh_l0.grad.clone()
    layer.zero_grad()
    made, _ = layer(x)
    total = made.sum()
    made.detach().zero_()
    total.backward()
    assert layer.weight_hh_l0.grad.tolist() == wanted.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_a_padded_batch_lies_in_memory_as_pytorchs(batch_first, enforce_sorted, torch):
    """Dropout draws in the order of memory, so that a batch which was put back in order is row-major, as there."""
    found = []
    for library in (tc, torch):
        utils = library.nn.utils.rnn
        x = library.arange(24.0).reshape(3, 4, 2) if batch_first else library.arange(24.0).reshape(4, 3, 2)
        packed = utils.pack_padded_sequence(x, [4, 3, 1], batch_first, enforce_sorted)
        padded, _ = utils.pad_packed_sequence(packed, batch_first)
        found.append((padded.stride(), padded.tolist()))
    assert found[0] == found[1]
