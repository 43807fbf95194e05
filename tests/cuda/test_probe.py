"""Whether there is a device, asked without CuPy and without a context."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(program: str, **environment: str) -> str:
    """What a program prints in a process of its own, with the plugins of this checkout."""
    path = os.pathsep.join([str(ROOT / "tests" / "cuda_standin"), str(ROOT), str(ROOT / "plugins")])
    given = {
        **os.environ, "PYTHONPATH": path, "TENSORCORE_PLUGINS": "tensorcore_cpu,tensorcore_cuda", **environment,
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=given, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_heavy_is_imported(standin_driver) -> None:
    """``is_available`` and ``backends`` import no CuPy, and a child that was forked then can use the device."""
    program = """
import os, sys, tensorcore as tc
assert "cuda" in tc.backends()
assert "cupy" not in sys.modules
from tensorcore_cuda import probe
assert not probe._started
child = os.fork()
if child == 0:
    os._exit(0 if tc.ones(2, device="cuda").sum().item() == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
print("fine")
"""
    assert run(program, TENSORCORE_CUDA_DRIVER=str(standin_driver)) == "fine"


@pytest.mark.parametrize(
    "visible, count, started",
    [(None, 3, False), ("1", 1, False), ("2,0", 2, False), ("0,7,1", 1, False), ("GPU-1f", 3, True), ("0,0", 3, True)],
)
@pytest.mark.parametrize("how", ["NVML", "MIG", "WITHOUT_NVML"])
def test_the_driver_is_started_where_nothing_else_knows(
    standin_driver, monkeypatch, visible, count, started, how
) -> None:
    """Numbers are counted as the driver does, up to the first that is none; names, MIG and no NVML are asked of the driver."""
    from tensorcore_cuda import probe

    monkeypatch.setenv("TENSORCORE_STANDIN_DEVICES", "3")
    monkeypatch.setenv(f"TENSORCORE_STANDIN_{how}", "1")
    monkeypatch.setattr(probe, "_started", [])
    started = started or how != "NVML"
    assert probe._asked.__wrapped__(visible, os.getpid()) == (3 if started else count)
    assert bool(probe._started) == started


@pytest.mark.parametrize(
    "environment, words",
    [
        ({"TENSORCORE_CUDA_DRIVER": "/nowhere/libcuda.so"}, "driver is not installed (no libcuda.so.1); install it"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "hides every device; unset it"),
        ({"TENSORCORE_STANDIN_DEVICES": "0"}, "finds no device; see nvidia-smi"),
    ],
)
def test_the_reason_says_what_is_missing(standin_driver, environment: dict[str, str], words: str) -> None:
    """No driver, hidden devices and no device are told apart, with what helps there; nothing else breaks."""
    program = """
import tensorcore as tc
print(tc.cuda.is_available(), tc.cuda.device_count(), tc.ones(2).sum().item())
try:
    tc.ones(2, device="cuda")
except tc.errors.DeviceUnavailable as reason:
    print(reason)
"""
    text = run(program, **{"TENSORCORE_CUDA_DRIVER": str(standin_driver), **environment})
    assert text.startswith("False 0 2.0")
    assert words in text
    assert "pip install" not in text  # CuPy is there


def test_an_index_that_is_not_there(standin_driver) -> None:
    """The third of two devices is refused."""
    program = """
import tensorcore as tc
try:
    tc.device("cuda:2")
except tc.errors.DeviceError as reason:
    print(reason)
"""
    assert "2" in run(program, TENSORCORE_CUDA_DRIVER=str(standin_driver))
