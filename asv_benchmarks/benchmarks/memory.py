"""The most memory that a program holds while it trains: a fresh process for each model and library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..harness import PEERS, Comparison
from .model import MODELS

__all__ = ["TARGET", "PeakMemory", "compare_peaks", "peak_once"]

TARGET = 1.0  # of PyTorch's
ROOT = Path(__file__).parents[2]

# The peak counts from the import on: what the library itself takes is another row's matter.
CODE = """
import sys
import {library} as torch

def resident(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

torch.set_num_threads(1)
exec(sys.argv[2])
device, before = "cpu", resident("VmRSS:")
exec(sys.argv[1])
for _ in range(3):
    step()
print(resident("VmHWM:") - before)
"""


def peak_once(library: str, setup: str, warm: str = "") -> int:
    """Bytes by which a process grows that makes the model and takes three steps, ``warm`` run before. Linux alone counts them."""
    if not sys.platform.startswith("linux"):
        raise NotImplementedError("peak memory: the system does not say")
    command = [sys.executable, "-c", CODE.format(library=library), setup, warm]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def compare_peaks(ours: str, peer: str, setup: str, rounds: int = 3, warm: str = "") -> Comparison:
    """Both libraries in turns."""
    taken: list[list[float]] = [[], []]
    for _ in range(rounds):
        for library, results in zip((ours, peer), taken, strict=True):
            results.append(float(peak_once(library, setup, warm)))
    return Comparison.of(*taken)


class PeakMemory:
    """The growth of a process that trains each model."""

    params = (sorted(MODELS), sorted({peer.partition(":")[0] for peer in PEERS} - {"numpy"}))
    param_names = ("model", "library")
    timeout = 300
    unit = "bytes"

    def track_peak(self, model: str, library: str) -> int:
        return peak_once(library, MODELS[model])
