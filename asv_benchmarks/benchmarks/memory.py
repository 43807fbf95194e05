"""The memory of a training step: the most that it holds, and how often the system must fetch a page once it runs smoothly."""

from __future__ import annotations

import functools
import sys

from ..harness import PEERS, Comparison, in_fresh_process
from .model import MODELS

__all__ = ["TARGET", "PeakMemory", "compare_faults", "compare_peaks", "measured", "peak_once"]

TARGET = 1.0  # of PyTorch's
WARM, STEPS = 5, 10

# The peak counts from where the library is imported and the model and its optimizer are made: gradients, the optimizer's
# buffers, what is saved for the way back, and what the allocator keeps. Both libraries are asked the same way, by the
# system, each in a process of its own: PyTorch has no statistics of its memory on the CPU. Writing 5 to clear_refs
# starts the peak anew, for an import may have held more than it keeps.
CODE = """
import resource, sys
import {library} as torch

def resident(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

torch.set_num_threads(1)
device = "cpu"
exec(sys.argv[2])
exec(sys.argv[1])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = resident("VmRSS:")
for _ in range({warm}):
    step()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({steps}):
    step()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
print(resident("VmHWM:") - before, faults // {steps})
"""


@functools.cache
def measured(library: str, setup: str, warm: str = "", turn: int = 0) -> tuple[int, int]:
    """Of a process that takes steps: bytes that its peak lies above its size before the first, and page faults of a step.

    ``warm`` runs before the setup. Linux alone counts these. Each ``turn`` is a process of its own, which is asked once.
    """
    if not sys.platform.startswith("linux"):
        raise NotImplementedError("peak memory: the system does not say")
    peak, faults = in_fresh_process(CODE.format(library=library, warm=WARM, steps=STEPS), setup, warm).split()
    return int(peak), int(faults)


def peak_once(library: str, setup: str, warm: str = "") -> int:
    """Bytes that the peak of a process that takes steps lies above its size before the first."""
    return measured(library, setup, warm)[0]


def compare_peaks(ours: str, peer: str, setup: str, rounds: int = 3, warm: str = "") -> Comparison:
    """The peaks of both libraries, in turns."""
    return _in_turns(ours, peer, setup, rounds, warm, 0)


def compare_faults(ours: str, peer: str, setup: str, rounds: int = 3, warm: str = "") -> Comparison:
    """The page faults of a step of both libraries, of the same processes as the peaks."""
    return _in_turns(ours, peer, setup, rounds, warm, 1)


def _in_turns(ours: str, peer: str, setup: str, rounds: int, warm: str, which: int) -> Comparison:
    taken: list[list[float]] = [[], []]
    for turn in range(rounds):
        for library, found in zip((ours, peer), taken, strict=True):
            found.append(float(measured(library, setup, warm, turn)[which]))
    return Comparison.of(*taken)


class PeakMemory:
    """The memory of a process that trains each model."""

    params = (list(MODELS), sorted({peer.partition(":")[0] for peer in PEERS} & {"tensorcore", "torch"}))
    param_names = ("model", "library")
    timeout = 300

    def track_peak(self, model: str, library: str) -> int:
        return peak_once(library, MODELS[model])

    def track_faults(self, model: str, library: str) -> int:
        return measured(library, MODELS[model])[1]

    track_peak.unit = "bytes"  # type: ignore[attr-defined]
    track_faults.unit = "page faults"  # type: ignore[attr-defined]
