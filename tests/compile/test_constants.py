"""What compiled functions may look at and are replayed all the same: what Python's data make, and what gradients ask of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc
from tensorcore.nn import functional as F
from tests.compile.stepwise import stepwise
from tests.compile.test_functions import counted, same

CALLS = 5


def grads_are_eagers(function: Callable[..., Any], make: Callable[[int], tuple[Any, ...]], exact: bool = False) -> Any:
    """Results and gradients of replays are those of the function; what was traced and replayed."""
    compiled = counted(function)
    for i in range(CALLS):
        tc.manual_seed(i)
        ones = [x.requires_grad_(x.is_floating_point() or x.is_complex()) for x in make(i)]
        others = [x.detach().clone().requires_grad_(x.requires_grad) for x in ones]
        expected, found = function(*ones), compiled(*others)
        tc.testing.assert_close(found, expected, equal_nan=True)
        weights = tc.rand(expected.shape, dtype=expected.dtype) + 0.5
        expected.backward(weights)
        found.backward(weights)
        for one, other in zip(ones, others, strict=True):
            if one.requires_grad:
                tc.testing.assert_close(other.grad, one.grad, equal_nan=True)
                assert not exact or tc.equal(other.grad, one.grad)
    return compiled.explain()


PRODUCTS = [
    lambda x: x.prod(), lambda x: x.prod(1), lambda x: x.prod(0, keepdim=True), lambda x: x.cumprod(0),
    lambda x: x.cumprod(-1),
]  # fmt: skip


@pytest.mark.parametrize("function", PRODUCTS)
@pytest.mark.parametrize("dtype", [tc.float32, tc.complex128])
def test_gradients_of_products_hold_with_zeros_and_without(function, dtype) -> None:
    """One trace serves all: no zero, one, two in a row, and zeros in several rows."""
    places = [(), ((0, 1),), ((0, 1), (0, 3)), ((2, 0), (1, 0), (0, 0)), ((2, 4),)]

    def make(i: int) -> Any:
        x = tc.randn(3, 5, dtype=dtype)
        for at in places[i]:
            x[at] = 0
        return (x,)

    found = grads_are_eagers(function, make)
    assert (found.traces, found.replays) == (1, CALLS - 1)


@pytest.mark.parametrize("function", PRODUCTS)
def test_gradients_of_products_without_zeros_have_eagers_bits(function) -> None:
    """The formula that holds for any values is the usual one where there is no zero."""
    grads_are_eagers(function, lambda i: (tc.rand(3, 5) + 0.5,), exact=True)


def matrix(i: int, singular: bool) -> tc.Tensor:
    made = tc.randn(3, 3, dtype=tc.float64)
    if singular and i % 2:
        made[2] = made[1]
    return made


@pytest.mark.parametrize(
    "function, traces",
    [
        (tc.linalg.det, 2),
        (lambda x: tc.linalg.det(x).exp() * x, 2),
        (lambda x: tc.linalg.lstsq(x, x[:, :1]).solution, 1),
    ],
)
def test_what_a_gradient_asks_is_asked_by_the_forward_pass(function, traces) -> None:
    """Whether a matrix is singular is found out before anything runs: both kinds have a trace of their own."""
    found = grads_are_eagers(function, lambda i: (matrix(i, traces == 2),))
    assert (found.traces, found.replays, found.eager) == (traces, CALLS - traces, 0)


def test_a_gradient_that_asks_for_what_arrives_is_none_to_replay() -> None:
    """That of a matrix exponential scales by the gradient that arrives; the account names it."""
    found = grads_are_eagers(tc.matrix_exp, lambda i: (matrix(i, False),))
    assert found.replays == 0
    assert "in the gradient of linalg_matrix_exp" in found.reasons[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * tc.tensor([2.0]).item(),
        lambda x: x[tc.tensor([True, False, True])],
        lambda x: x[(tc.arange(3) > 0).nonzero().squeeze(1)],
        lambda x: x * len(tc.tensor([1, 1, 2]).unique().tolist()),
        lambda x: F.embedding_bag(tc.tensor([0, 2, 1]), x.reshape(3, 1), tc.tensor([0, 2])),
    ],
)
def test_values_of_what_python_made_are_known(function) -> None:
    """Reading them, or indexing by them, is the same in each replay."""
    found = grads_are_eagers(function, lambda i: (tc.randn(3),))
    assert (found.traces, found.replays) == (1, CALLS - 1)


def test_a_number_that_python_made_is_guarded() -> None:
    """Another list is another trace."""
    lengths = [2, 1]
    compiled = counted(lambda x: x * max(tc.tensor(lengths).tolist()))
    x = tc.ones(2)
    assert [compiled(x).tolist(), compiled(x).tolist()] == [[2, 2]] * 2
    lengths[0] = 5
    assert compiled(x).tolist() == [5, 5]
    assert (compiled.explain().traces, compiled.explain().replays) == (2, 1)


def test_what_is_written_to_a_tensor_by_way_of_numpy_is_seen() -> None:
    """A call that writes to an array that shares a tensor's memory runs as it is; a drawn number is read each time."""

    def shared(x: Any) -> Any:
        made = tc.zeros(3)
        made.numpy()[0] = 5
        return x * made

    def later(x: Any) -> Any:
        made = tc.tensor([1.0, 2.0, 3.0])
        first = made.tolist()[0]
        made.add_(x)
        return made + first

    for function, replays in ((shared, 0), (later, 2), (lambda x: x * tc.rand(1).item(), 0)):
        compiled = counted(function)
        for i in range(3):
            tc.manual_seed(i)
            found = compiled(tc.full((3,), float(i)))
            tc.manual_seed(i)
            assert same(found, function(tc.full((3,), float(i))))
        assert compiled.explain().replays == replays


@pytest.mark.parametrize(
    "options", [{}, {"reduction": "none", "zero_infinity": True}, {"blank": 2, "reduction": "sum"}]
)
@pytest.mark.parametrize(
    "row, frames, counts", [(False, (6, 5, 4), (2, 1, 3)), (True, (6, 6, 6), (2, 1, 3)), (True, (6, 3, 6), (1, 1, 1))]
)
def test_alignments_of_labels_are_replayed(options, row, frames, counts) -> None:
    """``ctc_loss`` with lengths as ints: labels are others in each call, of one trace; wrong ones are eager's error."""

    def loss(x: Any, labels: Any) -> Any:
        return F.ctc_loss(x.log_softmax(2), labels, frames, counts, **options)

    def make(i: int) -> Any:
        first = 3 if "blank" in options else 1
        return tc.randn(6, 3, 5, dtype=tc.float64), tc.randint(first, 5, (sum(counts),) if row else (3, 4))

    found = grads_are_eagers(loss, make)
    assert (found.traces, found.replays, found.eager) == (1, CALLS - 1, 0)
    with pytest.raises(RuntimeError, match="expected labels from 0 to 4"):
        counted(loss)(make(0)[0], make(0)[1] + 9)


def test_packed_sequences_with_lengths_as_ints_are_replayed() -> None:
    """The sizes of batches are those of a list; lengths in a tensor are values, and the account says where they are read."""
    lstm = tc.nn.LSTM(3, 4)

    def run(x: Any, lengths: Any) -> Any:
        packed = tc.nn.utils.rnn.pack_padded_sequence(x, lengths)
        return tc.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0])[0]

    compiled = counted(run)
    for _ in range(3):
        x = tc.randn(5, 2, 3)
        tc.testing.assert_close(compiled(x, [5, 3]), run(x, [5, 3]))
    assert (compiled.explain().traces, compiled.explain().replays) == (1, 2)
    other = counted(run)
    other(tc.randn(5, 2, 3), tc.tensor([5, 3]))
    assert "in pack_padded_sequence()" in other.explain().reasons[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
        lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"),
        lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"),
        lambda x: F.pad(x, (1, 2, 0, 1), mode="circular"),
        lambda x: F.pdist(x.flatten(0, 2)),
        lambda x: tc.stft(x.flatten(), 8, window=tc.ones(8), return_complex=True).abs(),
    ],
)
def test_places_that_follow_from_sizes_are_replayed(function) -> None:
    """Resized images, mirrored borders and distances read places that the frontend finds on the host."""
    compiled = tc.compile(function, backend=stepwise)
    for i in range(3):
        tc.manual_seed(i)
        one = tc.randn(1, 2, 4, 4, requires_grad=True)
        other = one.detach().clone().requires_grad_()
        expected, made = function(one), compiled(other)
        expected.sum().backward()
        made.sum().backward()
        tc.testing.assert_close(made, expected, rtol=0, atol=0)
        tc.testing.assert_close(other.grad, one.grad, rtol=0, atol=0)
    assert (compiled.explain().traces, compiled.explain().replays) == (1, 2)
