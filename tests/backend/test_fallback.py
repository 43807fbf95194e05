"""Kernels that a device lacks: refused by default, and run elsewhere, counted, where a scope allows it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.fallback import LEDGER, FallbackWarning
from tensorcore.backend.xp import XPBackend
from tensorcore.errors import ArgumentError, KernelMissing, UnknownDevice

LACKING = {"exp", "cat", "index_put", "fill", "max_dim", "matmul", "reciprocal"}


class Poor(XPBackend):
    """NumPy without a few primitives."""

    def __init__(self) -> None:
        super().__init__(np, "poor")

    def find_kernel(self, name: str) -> Any:
        return None if name in LACKING else super().find_kernel(name)


@pytest.fixture
def poor() -> Poor:
    """The device."""
    return Poor()


def test_a_missing_kernel_is_refused_by_default(poor) -> None:
    """The error names the kernel, the device, and the scope that would allow it."""
    with pytest.raises(KernelMissing, match=r"exp: expected a kernel on device 'poor', got none; .*fallback\('cpu'\)"):
        tc.ones(2, device=poor).exp()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_number_takes_the_dtype_of_the_array_beside_it(poor, dtype: str) -> None:
    """Also where NumPy would make float32 of bfloat16 and a number: ``neg`` is a product with -1 where it is missing."""
    poor.find_kernel = lambda name: None if name in ("mul", "neg") else XPBackend.find_kernel(poor, name)
    with tc.fallback("cpu") as ledger:
        y = -tc.tensor([1.5, -2.0], dtype=getattr(tc, dtype), device=poor)
    assert poor.dtype_of(y.native) is y.dtype is getattr(tc, dtype)
    assert y.tolist() == [-1.5, 2.0]
    assert [key for key, _ in ledger] == [("poor", "mul")]


def test_an_allowed_kernel_runs_elsewhere_and_is_counted(poor) -> None:
    """The result is on the device, and the ledger has the call and the bytes of both ways."""
    x = tc.tensor([0.0, 1.0], device=poor)
    with tc.fallback("cpu") as ledger:
        y = x.exp() + x.exp()
    assert y.device is poor
    assert y.tolist() == pytest.approx([2.0, 2 * np.e])
    assert list(ledger.entries) == [("poor", "exp")]
    assert (ledger.calls, ledger.bytes, len(ledger)) == (2, 32, 1)
    assert ledger.seconds > 0
    assert "poor         exp                             2 calls" in str(ledger)
    assert repr(ledger) == "<Ledger of 1 kernels, 2 calls, 32 bytes>"


def test_results_of_several_kinds_come_back(poor) -> None:
    """Lists of arrays, several results, and arrays of other dtypes cross over."""
    x = tc.tensor([[3.0, 1.0], [2.0, 5.0]], device=poor)
    with tc.fallback("cpu"):
        assert tc.cat([x, x]).shape == (4, 2)
        values, places = x.max(1)
        assert (values.tolist(), places.tolist(), places.device) == ([3.0, 5.0], [0, 1], poor)
        assert (x @ x).tolist() == [[11.0, 8.0], [16.0, 27.0]]


def test_writes_reach_the_memory_of_the_device(poor) -> None:
    """In-place forms and ``out=`` write into the tensor they are given, a view too."""
    x = tc.zeros(2, 3, device=poor)
    with tc.fallback("cpu") as ledger:
        poor.kernels["fill"](x[0].native, 4)  # made of the device's own copy: nothing falls back
        x.t()[tc.tensor([2], device=poor), tc.tensor([1], device=poor)] = 7.0
        out = tc.empty(2, 3, device=poor)
        tc.exp(x * 0, out=out)
    assert x.tolist() == [[4, 4, 4], [0, 0, 7]]
    assert out.tolist() == [[1] * 3] * 2
    assert {op for _, op in ledger.entries} == {"index_put", "exp"}


def test_gradients_fall_back_too(poor) -> None:
    """A backward walk within the scope finds the kernels that the forward call found."""
    x = tc.tensor([1.0, 2.0], device=poor, requires_grad=True)
    with tc.fallback("cpu"):
        (x.exp() @ x).backward()
    assert x.grad.tolist() == pytest.approx([2 * np.e, 3 * np.e**2], rel=1e-6)


def test_a_warning_for_each_kernel_once(poor) -> None:
    """The policy ``warn`` names the kernel and both devices, at the caller's line."""
    x = tc.ones(2, device=poor)
    with warnings.catch_warnings(record=True) as caught, tc.fallback("cpu", policy="warn"):
        warnings.simplefilter("always")
        x.exp()
        x.exp()
    assert [one.category for one in caught] == [FallbackWarning]
    assert "exp: device 'poor' has no kernel, so it runs on 'cpu'" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_inner_scope_decides_and_the_outer_one_counts(poor) -> None:
    """``fallback(None)`` forbids within a scope that allows; ledgers of outer scopes hold what inner ones allowed."""
    x = tc.ones(2, device=poor)
    before = LEDGER.calls
    with tc.fallback("cpu") as outer:
        with tc.fallback(None), pytest.raises(KernelMissing):
            x.exp()
        with tc.fallback("cpu") as inner:
            x.exp()
        x.exp()
    assert (inner.calls, outer.calls, LEDGER.calls - before) == (1, 2, 2)
    with pytest.raises(KernelMissing):
        x.exp()


def test_a_scope_holds_in_its_thread_alone(poor) -> None:
    """Another thread keeps the default policy."""
    raised = []

    def other() -> None:
        try:
            tc.ones(2, device=poor).exp()
        except KernelMissing as error:
            raised.append(error)

    with tc.fallback("cpu"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(raised) == 1


def test_a_function_can_be_the_scope(poor) -> None:
    """As a decorator it allows what the function calls, each time."""

    @tc.fallback("cpu")
    def double(x: Any) -> Any:
        return x.exp() * 2

    assert [double(tc.zeros(1, device=poor)).item() for _ in range(2)] == [2.0, 2.0]


def test_wrong_policies_and_devices_are_refused() -> None:
    """A policy that is none, and a device that nobody offers, raise at the scope and change nothing."""
    with pytest.raises(ArgumentError, match="policy 'error', 'warn' or 'allow', got 'maybe'"):
        tc.fallback("cpu", policy="maybe")  # type: ignore[arg-type]
    with pytest.raises(UnknownDevice), tc.fallback("nowhere"):
        pass


def test_decomposed_kernels_never_fall_back(poor) -> None:
    """What is made of other kernels of the device stays there."""
    with tc.fallback("cpu") as ledger:
        assert tc.full((1,), 4.0, device=poor).reciprocal().item() == 0.25
    assert len(ledger) == 0


def test_the_environment_sets_the_outermost_policy() -> None:
    """TENSORCORE_FALLBACK allows in a whole process."""
    code = (
        "import tensorcore as tc, tests.backend.test_fallback as t; print(tc.zeros(1, device=t.Poor()).exp().item());"
        "from tensorcore.backend.fallback import LEDGER; print(LEDGER.calls)"
    )
    environment = {**os.environ, "TENSORCORE_FALLBACK": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["1.0", "1"]
