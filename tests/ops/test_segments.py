"""segment_reduce against PyTorch: every reduction, empty segments, gaps, leading dims, gradients, refusals."""

import math

import numpy as np
import pytest

import tensorcore as tc

REDUCTIONS = ["sum", "mean", "prod", "max", "min"]
CASES = [
    ([1.0, 3.0, 3.0, 0.0, 5.0, 0.0], {"lengths": [3, 0, 1, 2]}, 0),
    ([1.0, 3.0, 3.0, 0.0, 5.0, 0.0], {"offsets": [1, 2, 2, 5]}, 0),
    ([], {"lengths": [0, 0]}, 0),
    ([], {"offsets": [0]}, 0),
    (np.arange(24.0).reshape(2, 6, 2), {"lengths": [[2, 4, 0], [0, 3, 3]]}, 1),
    (np.arange(12.0).reshape(2, 6), {"offsets": [[0, 2, 6], [1, 1, 4]]}, -1),
    (np.arange(12.0).reshape(6, 2), {"lengths": [2, 1], "unsafe": True}, 0),
]


def reduced(library, device, case, reduce, initial, dtype):
    """The result and the gradient of the data, as lists."""
    values, options, axis = case
    options = {name: library.tensor(one, device=device) if type(one) is list else one for name, one in options.items()}
    data = library.tensor(np.asarray(values), dtype=getattr(library, dtype), device=device, requires_grad=True)
    made = library.segment_reduce(data, reduce, axis=axis, initial=initial, **options)
    made.backward(library.ones_like(made) * 2)
    return str(made.dtype), made.float().tolist(), data.grad.float().tolist()


@pytest.mark.parametrize("place", ["cpu", "lazy"])
@pytest.mark.parametrize("initial", [None, 2, 0.0])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_segments_are_pytorchs(case, reduce, initial, place, torch):
    """Values, dtypes and gradients, in kernels of the device's own and in other ops, to 1e-6 of a float32."""
    for dtype in ("float32", "float64", "bfloat16"):
        made = reduced(tc, place, case, reduce, initial, dtype)
        wanted = reduced(torch, "cpu", case, reduce, initial, dtype)
        assert made[0].split(".")[1] == wanted[0].split(".")[1]
        for one, other in zip(made[1:], wanted[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6 if dtype != "bfloat16" else 1e-2)


def test_no_number_wins_extremes_and_its_gradient_goes_there(torch):
    """A segment with NaN has NaN as its extreme, and all of the gradient goes to the NaN."""
    for library in (tc, torch):
        data = library.tensor([1.0, math.nan, 3.0, 4.0], requires_grad=True)
        made = library.segment_reduce(data, "max", lengths=library.tensor([3, 1]))
        made.sum().backward()
        assert math.isnan(made[0].item())
        assert data.grad.tolist() == [0, 1, 0, 1]


def test_second_derivatives_of_segments():
    """Sums of squares of sums: twice the number of their elements, twice."""
    x = tc.tensor([1.0, 2.0, 3.0], requires_grad=True)
    made = tc.segment_reduce(x, "sum", lengths=tc.tensor([2, 1]))
    (g,) = tc.autograd.grad((made * made).sum(), x, create_graph=True)
    assert g.tolist() == [6, 6, 6]
    assert tc.autograd.grad(g.sum(), x)[0].tolist() == [4, 4, 2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda m, x: m.segment_reduce(x, "sum"), RuntimeError),
        (lambda m, x: m.segment_reduce(x, "median", lengths=m.tensor([6])), RuntimeError),
        (lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor([2, 3])), RuntimeError),
        (lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor([-2, 8])), RuntimeError),
        (lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor([2.0, 4.0])), NotImplementedError),
        (lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor([2, 4]), axis=1), IndexError),
        (lambda m, x: m.segment_reduce(x, "sum", offsets=m.tensor([0, 4, 2])), RuntimeError),
        (lambda m, x: m.segment_reduce(x, "sum", offsets=m.tensor([], dtype=m.int64)), RuntimeError),
        (lambda m, x: m.segment_reduce(x.long(), "sum", lengths=m.tensor([6])), NotImplementedError),
        (lambda m, x: m.segment_reduce(x, "sum", indices=m.tensor([0, 0, 0, 1, 1, 1])), RuntimeError),
        (lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor(6)), RuntimeError),
        (lambda m, x: m.segment_reduce(x.reshape(2, 3), "sum", lengths=m.tensor([3]), axis=1), RuntimeError),
    ],
)
def test_segments_refuse(call, error, torch):
    """What PyTorch refuses, with its class of error."""
    for library in (tc, torch):
        with pytest.raises(error):
            call(library, library.arange(6.0))


@pytest.mark.parametrize(
    "given",
    [
        {"lengths": [2**62, 2**62, 6 - 2**63]},
        {"lengths": [2**63 - 1, 7], "unsafe": True},
        {"offsets": [-(2**63), 2, 6]},
        {"offsets": [0, 7]},
        {"offsets": [3, 2**63 - 1]},
        {"offsets": [5, -(2**63)]},
    ],
    ids=str,
)
def test_segments_whose_bounds_do_not_fit_a_number_are_refused(given):
    """Lengths whose sum wraps around, and offsets at the ends of the numbers, are no segments of six elements."""
    options = {name: tc.tensor(one) if type(one) is list else one for name, one in given.items()}
    with pytest.raises(RuntimeError, match="segment_reduce: "):
        tc.segment_reduce(tc.ones(6), "sum", **options)


def test_lengths_of_any_layout_and_of_32_bits():
    """Every second column, and lengths backwards, count as they are read."""
    data = tc.arange(12.0).reshape(2, 6)
    lengths = tc.tensor([[1, 9, 5], [6, 9, 0]])[:, ::2]
    assert tc.segment_reduce(data, "sum", lengths=lengths, axis=1).tolist() == [[0, 15], [51, 0]]
    assert tc.segment_reduce(data, "sum", lengths=lengths.int(), axis=1).tolist() == [[0, 15], [51, 0]]
    assert tc.segment_reduce(data[0], "max", lengths=tc.tensor([4, 2]).flip(0)).tolist() == [1, 5]
