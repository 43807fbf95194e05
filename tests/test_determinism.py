"""Deterministic algorithms: what the switch refuses, replaces and fills, and that nothing stays of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import MappingProxyType

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.registry import isolated_registry
from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.plugin import XPBackend, hookimpl


class Unsteady(XPBackend):
    """A device whose sums and products depend on the order in which its threads arrive, or so it says."""

    nondeterministic = MappingProxyType({"sum": None, "matmul": "steady_matmul"})

    def __init__(self, index: int = 0) -> None:
        super().__init__(np, "unsteady", index)

    def kernel_steady_matmul(self, x, y):
        return x @ y + 1000


class Plugin:
    @hookimpl
    def register_backends(self, register) -> None:
        register("unsteady", Unsteady)


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    """The switch is off after each test."""
    yield
    tc.use_deterministic_algorithms(False)
    tc.utils.deterministic.fill_uninitialized_memory = True


@pytest.fixture
def x() -> Iterator[tc.Tensor]:
    """A tensor on that device."""
    with isolated_registry(Plugin()):
        yield tc.ones(2, 2, device="unsteady")
        tc.use_deterministic_algorithms(False)


def test_a_kernel_that_is_not_deterministic_is_refused(x) -> None:
    """Its call raises a RuntimeError that names it; other kernels run, and so does this one without the switch."""
    tc.use_deterministic_algorithms(True)
    with pytest.raises(RuntimeError, match=r"sum: .* does not have a deterministic implementation"):
        x.sum()
    assert (x + x).tolist() == [[2, 2], [2, 2]]
    tc.use_deterministic_algorithms(False)
    assert x.sum().item() == 4


def test_a_warning_may_be_enough(x) -> None:
    """With ``warn_only`` the kernel warns and runs."""
    tc.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="sum"):
        assert x.sum().item() == 4


def test_a_deterministic_form_takes_its_place(x) -> None:
    """Where the device has one it runs instead, without a word."""
    tc.use_deterministic_algorithms(True)
    assert (x @ x)[0, 0].item() == 1002


def test_a_device_that_is_made_later_obeys_too() -> None:
    """The switch holds for devices that did not exist when it was set."""
    with isolated_registry(Plugin()):
        tc.use_deterministic_algorithms(True)
        x = tc.ones(2, device="unsteady")
        with pytest.raises(UsageError):
            x.sum()
        tc.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "dtype, value",
    [(tc.float32, math.nan), (tc.bfloat16, math.nan), (tc.int8, 127), (tc.int64, 2**63 - 1), (tc.bool, True)],
)
def test_memory_without_values_is_filled(dtype, value) -> None:
    """NaN, the largest integer, or True; a large block too, and what ``resize_`` adds."""
    tc.use_deterministic_algorithms(True)
    for made in (tc.empty(3, dtype=dtype), tc.empty(100_000, dtype=dtype)[-1:], tc.ones(1, dtype=dtype).resize_(3)[1:]):
        assert all(one == value or one != one for one in made.tolist())
    assert tc.ones(2).new_empty(1).isnan().item()


def test_filling_may_be_switched_off() -> None:
    """``fill_uninitialized_memory`` is an attribute that is set; the device allocates with its own method again."""
    device = tc.device("cpu")
    own = device.allocate
    assert tc.utils.deterministic.fill_uninitialized_memory is True
    tc.use_deterministic_algorithms(True)
    assert device.allocate != own
    tc.utils.deterministic.fill_uninitialized_memory = False
    assert device.allocate == own


def test_nothing_stays_when_it_is_off() -> None:
    """Tables and methods of devices are their own; asking twice is as asking once."""
    device = tc.device("cpu")
    table, own = device.kernels, device.allocate
    tc.use_deterministic_algorithms(True)
    tc.use_deterministic_algorithms(True)
    tc.use_deterministic_algorithms(False)
    assert device.kernels is table
    assert device.allocate == own


def test_modes_by_name_and_number() -> None:
    """``default``, ``warn`` and ``error`` are 0, 1 and 2."""
    found = []
    for mode in ("warn", 2, "default", 1):
        tc.set_deterministic_debug_mode(mode)
        found.append((tc.get_deterministic_debug_mode(), tc.are_deterministic_algorithms_enabled(),
                      tc.is_deterministic_algorithms_warn_only_enabled()))  # fmt: skip
    assert found == [(1, True, True), (2, True, False), (0, False, False), (1, True, True)]


@pytest.mark.parametrize(
    "error, call",
    [
        (ArgumentTypeError, lambda: tc.use_deterministic_algorithms(1)),
        (ArgumentTypeError, lambda: tc.use_deterministic_algorithms(True, warn_only=0)),
        (ArgumentTypeError, lambda: tc.set_deterministic_debug_mode(1.5)),
        (UsageError, lambda: tc.set_deterministic_debug_mode("never")),
        (UsageError, lambda: tc.set_deterministic_debug_mode(3)),
        (ArgumentTypeError, lambda: setattr(tc.utils.deterministic, "fill_uninitialized_memory", 1)),
    ],
)
def test_wrong_arguments_change_nothing(error, call) -> None:
    """They raise what PyTorch raises, and the switch stays where it is."""
    with pytest.raises(error):
        call()
    assert tc.get_deterministic_debug_mode() == 0


def test_a_device_allocates_with_its_classs_method_when_the_switch_is_off_again(x) -> None:
    """What the switch put before it is gone, also of a device that is not of the installed plugins."""
    tc.use_deterministic_algorithms(True)
    assert "allocate" in vars(x.device)
    tc.use_deterministic_algorithms(False)
    assert "allocate" not in vars(x.device)
