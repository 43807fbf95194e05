"""The test devices: null computes nothing, pyref trusts nobody, sim does wrong what it is told to."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import OutOfMemoryError, PluginError
from tensorcore.testing import DeviceLost


@pytest.fixture
def sim() -> Any:
    """A device with an empty queue."""
    device = tc.device("sim", 3)
    device.synchronize()
    return device


def test_they_are_found_and_not_listed() -> None:
    """Programs find them by their names; ``backends`` names real devices."""
    assert [str(tc.device(name)) for name in ("null", "pyref", "sim:2")] == ["null", "pyref", "sim:2"]
    assert {"null", "pyref", "sim"}.isdisjoint(tc.backends())


def test_importing_tensorcore_imports_none_of_them() -> None:
    """``import tensorcore`` loads neither the test devices nor the command line nor pytest."""
    code = (
        "import sys, tensorcore; heavy = ('typer', 'rich', 'pytest', 'tensorcore.testing', 'tensorcore.cli');"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class TestNull:
    """Shapes, and zeros for values."""

    def test_a_training_loop_runs_and_computes_nothing(self) -> None:
        """Losses are looked at and are zero; shapes are those of the program."""
        net = tc.nn.Linear(3, 2).to("null")
        loss = net(tc.ones(4, 3, device="null")).square().mean()
        loss.backward()
        assert loss.item() == 0.0
        assert tuple(net.weight.grad.shape) == (2, 3)

    def test_huge_tensors_take_no_memory(self) -> None:
        """A terabyte is multiplied."""
        x = tc.empty(1 << 19, 1 << 19, device="null")
        assert tuple((x @ x).shape) == (1 << 19, 1 << 19)

    def test_what_depends_on_values_sees_zeros(self) -> None:
        """Nothing is not zero."""
        assert tuple(tc.ones(3, device="null").nonzero().shape) == (0, 1)


class TestPyref:
    """Double precision, primitives alone, and no trust."""

    def test_sums_are_rounded_once(self) -> None:
        """A float32 sum is that of double precision."""
        x = np.full(100_000, 0.1, np.float32)
        expected = np.float32(x.astype(np.float64).sum())
        assert tc.tensor(x).to("pyref").sum().item() == expected

    def test_a_foreign_array_is_a_breach(self) -> None:
        """A kernel is given arrays and numbers, never tensors."""
        device = tc.device("pyref")
        with pytest.raises(PluginError, match="add: expected native arrays and Python's numbers, got Tensor"):
            device.kernels["add"](np.ones(2), tc.ones(2))

    def test_options_by_position_are_a_breach(self) -> None:
        """``out`` must be named."""
        device, x = tc.device("pyref"), np.ones(2)
        with pytest.raises(PluginError, match="add: expected 2 positional arguments, got 3"):
            device.kernels["add"](x, x, x)

    def test_a_kernel_against_its_rule_is_a_breach(self) -> None:
        """A result of another shape than the rule says is refused."""
        device = type(tc.device("pyref"))()
        device.table["abs"] = lambda x: x[:1]
        with pytest.raises(PluginError, match=r"abs: expected shape \(2,\) by its rule, got \(1,\)"):
            device.kernels["abs"](np.ones(2))

    def test_a_kernel_that_writes_to_its_argument_is_a_breach(self) -> None:
        """Arguments stay as they were."""
        device = type(tc.device("pyref"))()

        def flawed(*natives: Any, **options: Any) -> Any:
            argument[0] = 9.0
            return argument

        argument = np.ones(2)
        device.table["exp"] = flawed
        with pytest.raises(PluginError, match="exp: expected its arguments as they were"):
            device.kernels["exp"](argument)


class TestSim:
    """Queues, memories and faults."""

    def test_kernels_wait_until_somebody_looks(self, sim) -> None:
        """A call is queued; ``synchronize`` runs it, and so does a look at values."""
        x = tc.ones(3, device=sim) + 1
        assert sim.pending() > 0
        assert x.tolist() == [2, 2, 2]
        assert sim.pending() == 0

    def test_memory_that_was_not_written_is_poison(self, sim) -> None:
        """New memory holds NaN, and freed memory comes back as NaN."""
        assert np.isnan(tc.empty(5, device=sim).tolist()).all()
        x = tc.ones(5, device=sim)
        sim.synchronize()
        del x
        assert np.isnan(tc.empty(5, device=sim).tolist()).all()

    def test_devices_share_nothing(self) -> None:
        """A tensor of one device is refused beside one of another, and copied by ``to``."""
        x, y = tc.ones(2, device="sim:0"), tc.ones(2, device="sim:1")
        with pytest.raises(RuntimeError, match="sim:0"):
            x + y
        assert (x + y.to("sim:0")).tolist() == [2, 2]

    def test_the_nth_allocation_fails(self, sim) -> None:
        """Out of memory, and afterwards the device goes on."""
        with sim.inject(out_of_memory_at=3) as faults:
            x = tc.ones(4, device=sim)
            y = x + x
            with pytest.raises(OutOfMemoryError, match="allocate: expected room for 16 bytes on 'sim:3'"):
                y + y
            assert faults.allocations >= 3
        assert (tc.ones(4, device=sim) + 1).tolist() == [2] * 4

    def test_a_small_device_fills_up(self) -> None:
        """``capacity`` counts live bytes: what is freed can be used again."""
        sim = tc.device("sim", 4)
        before = sim.memory_stats()["allocated_bytes.current"]
        with sim.inject(capacity=before + 100):
            for _ in range(5):
                tc.empty(20, device=sim)
            with pytest.raises(OutOfMemoryError):
                tc.empty(30, device=sim)

    def test_a_lost_device_stays_lost(self, sim) -> None:
        """From the kernel on at which it is lost, everything raises, until the faults are taken back."""
        with sim.inject(lost_at=2):
            x = tc.ones(2, device=sim)
            y = x + 1
            with pytest.raises(DeviceLost, match="'sim:3'"):
                y.tolist()
            with pytest.raises(DeviceLost):
                tc.ones(2, device=sim)
        assert tc.ones(2, device=sim).tolist() == [1, 1]

    def test_a_bit_flips(self, sim) -> None:
        """One element of one result is wrong."""
        with sim.inject(flip_bit_at=2):
            assert (tc.ones(3, device=sim) + 1).tolist() == [3.0, 2.0, 2.0]

    def test_a_copy_is_slow(self, sim) -> None:
        """Each copy between host and device takes the time it was given."""
        with sim.inject(slow_copy=0.05) as faults:
            started = time.perf_counter()
            tc.tensor([1.0]).to(sim).cpu()
            assert time.perf_counter() - started >= 0.1
        assert faults.copies == 2

    def test_faults_are_checked(self, sim) -> None:
        """The first kernel is number 1."""
        with pytest.raises(ValueError, match="inject: expected lost_at of 1 or more, got 0"), sim.inject(lost_at=0):
            pass
