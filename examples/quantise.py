"""Trains two readers of handwritten digits, packs their weights into eight bits, and shows what that costs and saves.

    python examples/quantise.py                    an MLP, and an LSTM that reads the rows of a scan one after the other
    python examples/quantise.py --compare-torch    the first losses of both beside PyTorch's
    python examples/quantise.py --smoke            a few digits and two epochs, to see that everything works

The digits are the 1797 real scans that come with scikit-learn. Each trained net is packed in three ways: float16
weights, int8 weights alone, and int8 weights with inputs that are rounded at each call. The program writes a picture of
accuracy and size into ``out/``, and a file for each packed net.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from digits import Digits, load_digits
from stage import Way

import tensorcore

EPOCHS = 5
COMPARED_STEPS = 20
AGREEMENT = 1e-4  # relative


def make_lstm(torch: Any) -> Any:
    """An LSTM over the eight rows of a scan: images (N, 1, 8, 8) to ten scores (N, 10)."""
    nn: Any = torch.nn

    class Rows(nn.Module):
        def __init__(self, hidden: int = 128) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, hidden, batch_first=True)
            self.scores = nn.Linear(hidden, 10)

        def forward(self, x: Any) -> Any:
            """The scores after the last row."""
            rows, _ = self.lstm(x.squeeze(1))
            return self.scores(rows[:, -1])

    return Rows()


def make_mlp(torch: Any) -> Any:
    """The MLP: images (N, 1, 8, 8) to ten scores (N, 10)."""
    nn = torch.nn
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    )


NETS = {"MLP": make_mlp, "LSTM": make_lstm}
WAYS = {
    "float32": lambda model: model,
    "float16 weights": lambda model: tensorcore.ao.quantization.quantize_dynamic(model, dtype=tensorcore.float16),
    "int8 weights": tensorcore.ao.quantization.quantize_weight_only,
    "int8, inputs too": tensorcore.ao.quantization.quantize_dynamic,
}


class Result(NamedTuple):
    """A net packed in one way: the part of the test digits read right, bytes of its file, seconds of reading them."""

    accuracy: float
    nbytes: int
    seconds: float


class Training:
    """One net, its data and the way to train it, in the library that it is given.

    Attributes:
        model: the net, on the device.
        steps: how many batches an epoch has.
    """

    def __init__(self, torch: Any, title: str, digits: Digits, given: argparse.Namespace, way: Way) -> None:
        self.torch, self.way, self.device = torch, way, way.device
        torch.manual_seed(given.seed)
        self.model = NETS[title](torch).to(self.device)
        data = torch.utils.data.TensorDataset(torch.as_tensor(digits.train_x), torch.as_tensor(digits.train_y))
        order = torch.Generator().manual_seed(given.seed)
        self.loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True, generator=order)
        self.steps = len(self.loader)

    def run(self, epochs: int) -> Iterator[float]:
        """Train with Adam; yields the loss of each step."""
        optimizer = self.torch.optim.Adam(self.model.parameters(), lr=2e-3)
        loss_of = self.torch.nn.CrossEntropyLoss()
        model = self.model

        @self.way.compile
        def step(x: Any, y: Any) -> Any:
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        model.train()
        for _ in range(epochs):
            for x, y in self.loader:
                yield step(x.to(self.device), y.to(self.device)).item()
        self.model.eval()


def watch(training: Training, epochs: int, title: str) -> Any:
    """Train with a progress bar; returns the model."""
    from tqdm import tqdm

    with tqdm(total=epochs * training.steps, unit="step", desc=title) as bar:
        for loss in training.run(epochs):
            bar.set_postfix_str(f"loss={loss:.4f}", refresh=False)
            bar.update()
    return training.model


def compare(digits: Digits, given: argparse.Namespace, epochs: int) -> bool:
    """Train the first steps of each net in both libraries from the same seed; whether the losses agree."""
    try:
        import torch
    except ModuleNotFoundError:
        sys.exit("--compare-torch: expected PyTorch beside tensorcore, got none; pip install torch==2.13.0")
    agree = True
    for title in NETS:
        runs = [
            Training(library, title, digits, given, Way(library, given)).run(epochs) for library in (tensorcore, torch)
        ]
        differences = []
        print(f"{title:4} step {'tensorcore':>12}   {'PyTorch':>12}   relative difference")
        # One library after the other: each shuffles with a generator of its own.
        ours, theirs = [[loss for loss, _ in zip(run, range(COMPARED_STEPS), strict=False)] for run in runs]
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            differences.append(abs(a - b) / max(abs(b), 1e-6))
            print(f"{title:4} {i + 1:4} {a:12.8f}   {b:12.8f}   {differences[-1]:.1e}")
        agree = agree and max(differences) <= AGREEMENT
    print(f"the losses {'agree' if agree else 'DO NOT agree'} to {AGREEMENT:.0e} over the first {COMPARED_STEPS} steps")
    return agree


def measure(model: Any, digits: Digits, path: Path, device: str) -> Result:
    """Read the test digits, and write the weights to a file."""
    torch = tensorcore
    x, y = (torch.as_tensor(one).to(device) for one in (digits.test_x, digits.test_y))
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
        times = []
        for _ in range(5):
            began = time.perf_counter()
            model(x).sum().item()  # a result that is read has been made, on any device
            times.append(time.perf_counter() - began)
    torch.save(model.state_dict(), path)
    return Result(right, path.stat().st_size, min(times))


def draw(found: dict[str, dict[str, Result]], path: Path) -> None:
    """Sizes and accuracies side by side, a colour for each net."""
    import matplotlib

    matplotlib.use("Agg")  # to a file; there may be no screen
    from matplotlib import pyplot as plt

    ink, colours = "#22313f", ("#2f6f9f", "#e08e2b")
    plt.rcParams.update({"font.size": 10, "axes.edgecolor": ink, "text.color": ink, "axes.labelcolor": ink})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    places = np.arange(len(WAYS))
    for i, (title, results) in enumerate(found.items()):
        sizes = [results[way].nbytes / 1024 for way in WAYS]
        percent = [100 * results[way].accuracy for way in WAYS]
        bars = left.bar(places + 0.38 * (i - 0.5), sizes, 0.36, color=colours[i], label=title)
        left.bar_label(bars, [f"{size:.0f}" for size in sizes], padding=2, fontsize=8)
        bars = right.bar(places + 0.38 * (i - 0.5), percent, 0.36, color=colours[i], label=title)
        right.bar_label(bars, [f"{one:.1f}" for one in percent], padding=2, fontsize=8)
    lowest = min(100 * one.accuracy for results in found.values() for one in results.values())
    left.set(title="file with the weights (KiB)")
    right.set(title="test digits read right (%)", ylim=(max(0, lowest - 5), 101))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.set_xticks(places, list(WAYS), fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Pack trained readers of digits into eight bits.")
    parser.add_argument("--epochs", type=int, help=f"passes over the training digits (default: {EPOCHS})")
    parser.add_argument("--seed", type=int, default=8, help="of all random numbers (default: 8)")
    parser.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    Way.add_options(parser)
    parser.add_argument("--compare-torch", action="store_true", help="the first losses of each net beside PyTorch's")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the files (default: out)")
    parser.add_argument("--smoke", action="store_true", help="a few digits and two epochs")
    given = parser.parse_args(argv)
    if given.epochs is not None and given.epochs < 1:
        parser.error(f"argument --epochs: expected at least 1, got {given.epochs}")
    return given


def main(argv: list[str] | None = None) -> int:
    """Run the program; returns its exit status."""
    given = arguments(argv)
    epochs = given.epochs or (2 if given.smoke else EPOCHS)
    digits = load_digits(given.smoke)
    try:
        tensorcore.empty(0, device=given.device)
    except tensorcore.errors.DeviceError as error:
        sys.exit(f"--device: {error}")
    if given.compare_torch:
        return 0 if compare(digits, given, epochs) else 1
    given.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Result]] = {}
    for title in NETS:
        with Way(tensorcore, given) as run:
            model = watch(Training(tensorcore, title, digits, given, run), epochs, title)
            account = run.account()
        model = model.to(given.device)
        found[title] = {}
        for way, pack in WAYS.items():
            name = f"quantise-{title.lower()}-{way.replace(',', '').replace(' ', '-')}.pt"
            found[title][way] = one = measure(pack(model), digits, given.out / name, given.device)
            print(
                f"{title:4}  {way:16}  {one.accuracy:7.2%} right  {one.nbytes / 1024:8.1f} KiB  {one.seconds * 1e3:7.2f} ms"
            )
        if account:
            print(account)
    picture = given.out / "quantise.png"
    draw(found, picture)
    print(f"picture {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
