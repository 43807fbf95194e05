"""What the examples share: the command line, the progress bar, the loss curve, and the comparison with PyTorch.

An example is a subclass of ``Example``, and ``perform`` is its ``main``. It gets its library as ``self.torch``, so that
``--compare-torch`` can run the very same lines in tensorcore and in PyTorch.
"""

from __future__ import annotations

import argparse
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tensorcore

COMPARED_STEPS = 20
AGREEMENT = 1e-4  # relative
INK, BLUE, ORANGE, RED = "#22313f", "#2f6f9f", "#e08e2b", "#c0392b"


class Way:
    """How a program is run: call by call, with ``--lazy`` a step at a time, or with ``--compile`` replayed.

    Within ``with`` tensors that name no device are lazy, where they are to be. PyTorch runs call by call.

    Attributes:
        device: where to compute.
        compiled: the functions that ``compile`` compiled.
    """

    def __init__(self, torch: Any, given: argparse.Namespace) -> None:
        ours = torch is tensorcore
        self.torch, self.lazy, self.compiles = torch, given.lazy and ours, given.compile and ours
        self.device = tensorcore.lazy(given.device) if self.lazy else torch.device(given.device)
        self.compiled: list[Any] = []

    def __enter__(self) -> Way:
        if self.lazy:
            tensorcore.lazy.clear()
            self.device.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.lazy:
            self.device.__exit__(*error)

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, compiled if it is to be."""
        if not self.compiles:
            return function
        self.compiled.append(self.torch.compile(function))
        return self.compiled[-1]

    def account(self) -> str:
        """What was made and where, or what was compiled and why; nothing of a program that runs call by call."""
        return tensorcore.lazy.report() if self.lazy else "\n".join([str(one.explain()) for one in self.compiled])

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        """``--lazy`` and ``--compile``."""
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument("--lazy", action="store_true", help="write calls down, and run them when a value is needed")
        ways.add_argument("--compile", action="store_true", help="trace a step, and replay it after that")


class Example(ABC):
    """A training that can be run and looked at.

    Attributes:
        name: of the files that it writes.
        steps, smoke_steps: how long it trains, in full and with ``--smoke``.
        unit: what one loss stands for.
        size: of the picture in inches.
    """

    name: str
    steps: int
    smoke_steps: int
    unit = "step"
    size = (12.0, 4.6)

    def __init__(self, torch: Any, given: argparse.Namespace, way: Way) -> None:
        self.torch, self.given, self.smoke, self.way = torch, given, given.smoke, way
        self.device = way.device
        torch.manual_seed(given.seed)

    @abstractmethod
    def run(self, steps: int) -> Iterator[float]:
        """Train; yields the loss of each step."""

    @abstractmethod
    def report(self) -> str:
        """One line that says what came of it; called once, after the training."""

    @abstractmethod
    def draw(self, figure: Any, losses: list[float]) -> None:
        """Fill the picture; called after ``report``."""


def perform(kind: type[Example], doc: str | None, argv: list[str] | None = None) -> int:
    """Run an example as its command line says; returns the exit status."""
    given = arguments(kind, doc, argv)
    steps = given.steps or (kind.smoke_steps if given.smoke else kind.steps)
    try:
        tensorcore.empty(0, device=given.device)
    except tensorcore.errors.DeviceError as error:
        sys.exit(f"--device: {error}")
    if given.compare_torch:
        return compare(kind, given, steps)
    with Way(tensorcore, given) as way:
        example = kind(tensorcore, given, way)
        began = time.perf_counter()
        losses = watch(example, steps)
        if len(losses) < steps and not losses:
            return 130
        seconds = time.perf_counter() - began
        account = way.account()
        print(f"{example.report()}; {len(losses)} {kind.unit}s in {seconds:.1f} s on {example.device}")
        print(f"picture {picture(example, losses)}")
    if account:
        print(account)
    return 0


def arguments(kind: type[Example], doc: str | None, argv: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, help=f"how many {kind.unit}s to train (default: {kind.steps})")
    parser.add_argument("--seed", type=int, default=8, help="of all random numbers (default: 8)")
    parser.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    Way.add_options(parser)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    parser.add_argument("--smoke", action="store_true", help="a few steps, to see that everything works")
    parser.add_argument(
        "--compare-torch", action="store_true", help=f"the first {COMPARED_STEPS} losses beside PyTorch's"
    )
    given = parser.parse_args(argv)
    if given.steps is not None and given.steps < 1:
        parser.error(f"argument --steps: expected at least 1, got {given.steps}")
    if not 0 <= given.seed < 2**64:
        parser.error(f"argument --seed: expected 0 to 2**64 - 1, got {given.seed}")
    return given


def watch(example: Example, steps: int) -> list[float]:
    """Train with a progress bar; Ctrl-C ends it after what it has."""
    from tqdm import tqdm

    losses: list[float] = []
    with tqdm(total=steps, unit=example.unit, desc=example.name) as bar:
        try:
            for loss in example.run(steps):
                losses.append(loss)
                bar.set_postfix_str(f"loss={loss:.4f}", refresh=False)
                bar.update()
        except KeyboardInterrupt:
            bar.write(f"stopped after {len(losses)} of {steps} {example.unit}s")
    return losses


def compare(kind: type[Example], given: argparse.Namespace, steps: int) -> int:
    """Run the first steps in both libraries from the same seed; 0 if the losses agree, else 1."""
    try:
        import torch
    except ModuleNotFoundError:
        sys.exit("--compare-torch: expected PyTorch beside tensorcore, got none; pip install torch==2.13.0")
    found = []
    for library in (tensorcore, torch):
        with Way(library, given) as way:
            run = kind(library, given, way).run(steps)
            found.append([loss for loss, _ in zip(run, range(COMPARED_STEPS), strict=False)])
    ours, theirs = found
    print(f"{kind.unit:7} {'tensorcore':>12}   {'PyTorch':>12}   relative difference")
    differences = [abs(a - b) / max(abs(b), 1e-6) for a, b in zip(ours, theirs, strict=True)]
    for i, difference in enumerate(differences):
        print(f"{i + 1:7} {ours[i]:12.8f}   {theirs[i]:12.8f}   {difference:.1e}")
    agree = max(differences) <= AGREEMENT
    print(
        f"the losses {'agree' if agree else 'DO NOT agree'} to {AGREEMENT:.0e} over the first {len(ours)} {kind.unit}s "
        f"(largest difference {max(differences):.1e})"
    )
    return 0 if agree else 1


def picture(example: Example, losses: list[float]) -> Path:
    """Draw it into the folder that was asked for; returns the file."""
    import matplotlib

    matplotlib.use("Agg")  # to a file; there may be no screen
    from matplotlib import pyplot as plt

    plt.rcParams.update({
        "font.size": 10, "axes.edgecolor": INK, "text.color": INK, "axes.labelcolor": INK,
        "axes.spines.top": False, "axes.spines.right": False,
    })  # fmt: skip
    figure = plt.figure(figsize=example.size, layout="constrained")
    example.draw(figure, losses)
    example.given.out.mkdir(parents=True, exist_ok=True)
    path = example.given.out / f"{example.name}.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def curve(axes: Any, values: list[float], colour: str = BLUE, label: str = "loss") -> None:
    """Each value faint, and their running mean over it."""
    axes.plot(np.arange(1, len(values) + 1), values, color=colour, alpha=0.25, linewidth=0.8)
    window = max(1, len(values) // 25)
    smooth = np.convolve(values, np.ones(window) / window, "valid")
    axes.plot(np.arange(window, len(values) + 1), smooth, color=colour, linewidth=1.8, label=label)
    axes.grid(alpha=0.25)


def images(axes: Any, scans: np.ndarray, columns: int) -> None:
    """Scans (count, 8, 8) of 0 to 1, side by side in one field."""
    rows = -(-len(scans) // columns)
    sheet = np.ones((rows * 9 + 1, columns * 9 + 1))
    for i, scan in enumerate(scans):
        y, x = divmod(i, columns)
        sheet[y * 9 + 1 : y * 9 + 9, x * 9 + 1 : x * 9 + 9] = 1 - np.clip(scan, 0, 1)
    axes.imshow(sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.axis("off")


def batches(torch: Any, count: int, size: int) -> Iterator[Any]:
    """Indices of shuffled batches, pass after pass, without end; what does not fill a batch waits for the next pass."""
    while True:
        order = torch.randperm(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]
