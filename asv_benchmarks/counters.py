"""Counts that no noise touches: modules imported, frames of a call, kernels and bytes of a training step.

``python -m asv_benchmarks.counters`` prints them beside the committed ones; ``--write`` commits to new ones. A test fails
where one has grown.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tensorcore as tc
from tensorcore.backend.base import Kernel, KernelTable

__all__ = ["COMMITTED", "Counts", "counted", "grown", "main", "ran"]

COMMITTED = Path(__file__).with_name("counters.json")
_MODULES = "import sys, tensorcore as tc; {then}; print(sum(name.startswith('tensorcore') for name in sys.modules))"

Counts = dict[str, int]


def main(arguments: list[str]) -> int:
    """Print the counts; with ``--write`` keep them, else answer with 1 where one has grown."""
    found, before = counted(), json.loads(COMMITTED.read_text("utf-8")) if COMMITTED.exists() else {}
    for name, count in found.items():
        print(f"{name:<45} {before.get(name, '-'):>9} {count:>9}")
    if "--write" in arguments:
        COMMITTED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        return 0
    return int(bool(grown(found, before)))


def counted() -> Counts:
    """All counts. Those of steps are of ``pyref``, whose kernels are the same on every machine."""
    found = {
        "tensorcore modules of import": _modules("0"),
        "tensorcore modules of a first addition": _modules("tc.ones(2) + 1"),
    }
    x, y = tc.ones(8), tc.ones(8)
    recorded = tc.ones(8, requires_grad=True)
    layer, rows = tc.nn.Linear(8, 8), tc.ones(8, 8, requires_grad=True)
    calls: dict[str, Callable[[], Any]] = {
        "x + y": lambda: x + y, "x + 1.5": lambda: x + 1.5, "x.relu()": x.relu, "x.sum()": x.sum, "x[1]": lambda: x[1],
        "recorded + y": lambda: recorded + y, "x.view(8)": lambda: x.view(8), "x.add_(y)": lambda: x.add_(y),
        "x.copy_(y)": lambda: x.copy_(y), "x.clone()": x.clone, "cat([x, y])": lambda: tc.cat([x, y]),
        "zeros_like(x)": lambda: tc.zeros_like(x), "x.unbind()": x.unbind,
        "a layer, forward and backward": lambda: layer(rows).sum().backward(),
    }  # fmt: skip
    for name, call in calls.items():
        found[f"frames of {name}"] = _frames(call)
    for name in _STEPS:
        kernels, nbytes = ran(name)
        found[f"kernels of {name}"] = kernels
        found[f"bytes of {name}"] = nbytes
    return found


def grown(found: Counts, before: Counts) -> dict[str, tuple[int, int]]:
    """The counts that are larger than before, or new, each beside what it was."""
    return {name: (before.get(name, 0), count) for name, count in found.items() if count > before.get(name, 0)}


def _modules(then: str) -> int:
    command = [sys.executable, "-c", _MODULES.format(then=then)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _frames(call: Callable[[], Any]) -> int:
    """How many Python functions a call enters, besides the kernel's own."""
    for _ in range(3):
        call()
    frames: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        parts = Path(frame.f_code.co_filename).parts
        if event == "call" and "tensorcore" in parts[:-1] and "xp" not in parts:
            frames.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return len(frames)


class _Counting(KernelTable):
    """The kernels of a device, each of which counts its calls and the bytes of its results."""

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self.calls = self.bytes = 0

    def __missing__(self, name: str) -> Kernel:
        kernel = super().__missing__(name)
        if not kernel:
            return kernel

        def call(*natives: Any, **options: Any) -> Any:
            result = kernel(*natives, **options)
            self.calls += 1
            for one in result if isinstance(result, tuple) else (result,):
                if isinstance(one, np.ndarray) and one.base is None:
                    self.bytes += one.nbytes
            return result

        self[name] = call
        return call


def ran(step: str) -> tuple[int, int]:
    """The kernels that a step calls, and the bytes of what they give: ``a perceptron's step``, for example."""
    device = tc.device("pyref")
    tc.manual_seed(0)
    run = _STEPS[step](device)
    run()
    before, table = device.kernels, _Counting(device)
    device.kernels = table
    try:
        run()
    finally:
        device.kernels = before
    return table.calls, table.bytes


def _training(net: Any, x: Any, y: Any, optimizer: type) -> Callable[[], Any]:
    steps = optimizer(net.parameters(), lr=0.01)

    def run() -> None:
        steps.zero_grad()
        tc.nn.functional.cross_entropy(net(x), y).backward()
        steps.step()

    return run


def _perceptron(device: Any) -> Callable[[], Any]:
    nn = tc.nn
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(device)
    return _training(net, tc.rand(8, 16).to(device), (tc.arange(8) % 4).to(device), tc.optim.SGD)


def _convolution(device: Any) -> Callable[[], Any]:
    nn = tc.nn
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 4)).to(device)
    return _training(net, tc.rand(4, 1, 8, 8).to(device), (tc.arange(4) % 4).to(device), tc.optim.Adam)


def _attention(device: Any) -> Callable[[], Any]:
    net = tc.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(device)
    x = tc.rand(2, 5, 8).to(device)
    return lambda: net(x).square().mean().backward()


_STEPS = {
    "a perceptron's step": _perceptron,
    "a convolution's step": _convolution,
    "an encoder layer's walk": _attention,
}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
