"""Anomaly mode names the forward call whose backward failed."""

from __future__ import annotations

import pytest

import tensorcore as t


class Broken(t.autograd.Function):
    """A backward that divides zero by zero, or raises."""

    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        if ctx.how == "raise":
            raise ValueError("the backward's own words")
        return g * float("nan"), None


@pytest.fixture
def anomaly():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        context = t.autograd.detect_anomaly()
    with context:
        yield


def test_nan_names_the_function_and_the_line(anomaly: None) -> None:
    """The error shows the line of the forward call, and which gradient has the NaN."""
    y = Broken.apply(t.ones(3, requires_grad=True), "nan")  # the line that is shown
    with pytest.raises(RuntimeError, match="'BrokenBackward' returned nan values in its 0th output") as caught:
        y.sum().backward()
    assert "the line that is shown" in str(caught.value)
    assert str(caught.value).rstrip().endswith("the line that is shown")


def test_other_errors_carry_the_line_as_a_note(anomaly: None) -> None:
    """An error of the backward itself stays the error it is."""
    y = Broken.apply(t.ones(3, requires_grad=True), "raise")  # the line that is shown
    with pytest.raises(ValueError, match="own words") as caught:
        y.sum().backward()
    assert "Error detected in BrokenBackward" in caught.value.__notes__[0]
    assert "the line that is shown" in caught.value.__notes__[0]


def test_nan_of_an_ordinary_op(anomaly: None) -> None:
    """Ops of the library name their lines too."""
    x = t.zeros(2, requires_grad=True)
    y = x / x  # zero by zero
    with pytest.raises(RuntimeError, match=r"(?s)DivBackward0' returned nan.*zero by zero"):
        y.sum().backward()


def test_nan_is_not_looked_for_without_check_nan() -> None:
    """``check_nan=False`` keeps the traces and lets NaN pass."""
    x = t.zeros(2, requires_grad=True)
    with t.autograd.set_detect_anomaly(True, check_nan=False):
        Broken.apply(x, "nan").sum().backward()
    assert x.grad.isnan().all()


def test_a_forward_outside_anomaly_mode_has_no_line() -> None:
    """Then the error says what to do."""
    y = Broken.apply(t.ones(3, requires_grad=True), "nan")
    with t.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="No forward pass information"):
        y.sum().backward()


def test_a_written_saved_tensor_names_its_line(anomaly: None) -> None:
    """The error about a saved tensor that was written shows who saved it."""
    h = t.ones(3, requires_grad=True) * 1.0
    y = h * h  # saved here
    h.add_(1.0)
    with pytest.raises(RuntimeError, match=r"(?s)modified by an inplace operation.*saved here"):
        y.sum().backward()


def test_set_detect_anomaly_is_a_call_too() -> None:
    """It switches at once, and a ``with`` puts back what was."""
    switch = t.autograd.set_detect_anomaly(True)
    assert t.autograd.is_anomaly_enabled()
    with switch:
        pass
    assert not t.autograd.is_anomaly_enabled()
