"""torch.testing.assert_close: what agrees, what does not, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc

INF, NAN = float("inf"), float("nan")

# Calls, each as a function of the library.
CALLS = [
    lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 2.1])),
    lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 2.0 + 1e-6])),
    lambda t: (t.tensor(1.0), t.tensor(1.1)),
    lambda t: (t.tensor([1, 2]), t.tensor([1, 3])),
    lambda t: (t.tensor([2**62]), t.tensor([2**62 + 1])),
    lambda t: (t.tensor([1.0]), t.tensor([1.0], dtype=t.float64)),
    lambda t: (t.tensor([1.0]), t.tensor([1.0], dtype=t.float64), {"check_dtype": False}),
    lambda t: (t.ones(2), t.ones(1)),
    lambda t: (t.tensor([NAN]), t.tensor([NAN])),
    lambda t: (t.tensor([NAN]), t.tensor([NAN]), {"equal_nan": True}),
    lambda t: (t.tensor([INF, -INF]), t.tensor([INF, -INF])),
    lambda t: (t.tensor([INF]), t.tensor([1.0])),
    lambda t: (t.tensor([1.0]), t.tensor([INF])),
    lambda t: ([t.ones(1), t.ones(2)], [t.ones(1), t.zeros(2)]),
    lambda t: ({"a": 1.0}, {"a": 1.1}),
    lambda t: ({"a": 1.0}, {"b": 1.0}),
    lambda t: ([1], [1, 2]),
    lambda t: ([[1.0, (2, 3)]], [[1.0, (2, 4)]]),
    lambda t: (1, 1.0),
    lambda t: (1, 2),
    lambda t: (True, False),
    lambda t: (None, None),
    lambda t: (None, 1),
    lambda t: ("a", "a"),
    lambda t: (t.ones(1), 1.0),
    lambda t: (t.ones(1), t.ones(1), {"rtol": 1.0}),
    lambda t: (t.ones(1), t.ones(1) + 1, {"rtol": 0.0, "atol": 1.0}),
    lambda t: (t.ones(1), t.ones(1) * 1.5, {"rtol": 0.0, "atol": 0.0}),
    lambda t: (t.ones(1), t.ones(1) * 1.5, {"msg": "other words"}),
    lambda t: (t.ones(2, 3).t(), t.ones(3, 2), {"check_stride": True}),
    lambda t: (t.ones(2, device="meta"), t.ones(2)),
    lambda t: (t.tensor([True]), t.tensor([False])),
    lambda t: (t.ones(1, dtype=t.bfloat16), t.ones(1, dtype=t.bfloat16) * 1.01),
    lambda t: (t.ones(1, dtype=t.float16), t.ones(1, dtype=t.float16) * 1.01),
    lambda t: (t.tensor([1 + 1j]), t.tensor([1 + 2j])),
    lambda t: (t.empty(0), t.empty(0)),
    lambda t: (np.ones(2), np.ones(2)),
    lambda t: (np.ones(2), np.ones(2) * 1.5),
    lambda t: (np.ones(2), np.ones(2, np.float32)),
    lambda t: (np.ones(2), t.ones(2)),
    lambda t: (np.array("x"), np.array("x")),
]


def outcome(library, testing, call):
    """The builtin type of the error, and what an AssertionError says, figures aside."""
    actual, expected, *options = call(library)
    try:
        testing.assert_close(actual, expected, **(options[0] if options else {}))
    except AssertionError as error:
        return AssertionError, [line.split("difference")[0] for line in str(error).splitlines()]
    except (TypeError, ValueError) as error:
        return next(kind for kind in type(error).__mro__ if kind in (TypeError, ValueError)), None
    return None, None


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_it_judges_and_speaks_as_pytorchs(call, torch):
    """The same pairs agree, the same errors are raised, and they say the same."""
    assert outcome(tc, tc.testing, call) == outcome(torch, torch.testing, call)


def test_what_is_said():
    """The report counts the elements and gives the greatest differences with their place and the limit."""
    with pytest.raises(AssertionError) as caught:
        tc.testing.assert_close(tc.tensor([[1.0, 2.0], [3.0, 4.0]]), tc.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 4 (25.0%)\n"
        "Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.2 at index (1, 1) (up to 1.3e-06 allowed)"
    )
    with pytest.raises(AssertionError, match=r"^seen: Scalars are not equal"):
        tc.testing.assert_close(1, 2, msg=lambda text: f"seen: {text}")


def test_assert_allclose_takes_numbers():
    """The older name compares values alone: lists count as tensors, dtypes and NaN do not part them."""
    tc.testing.assert_allclose(tc.tensor([1.0, float("nan")], dtype=tc.float64), [1.0, float("nan")])
    with pytest.raises(AssertionError):
        tc.testing.assert_allclose(tc.ones(2), [1.0, 1.1])
