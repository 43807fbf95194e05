"""Trains two readers of handwritten digits, packs their weights into eight bits, and shows what that costs and saves.

    python examples/quantise.py            an MLP, and an LSTM that reads the rows of a scan one after the other
    python examples/quantise.py --smoke    a few digits and two epochs, to see that everything works

The digits are the 1797 real scans that come with scikit-learn. Each trained net is packed in three ways: float16
weights, int8 weights alone, and int8 weights with inputs that are rounded at each call. The program writes a picture of
accuracy and size into ``out/``, and a file for each packed net.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from digits import Digits, load_digits
from stage import Way

import tensorcore as torch

nn = torch.nn
EPOCHS = 5


class Rows(nn.Module):
    """An LSTM over the eight rows of a scan: images (N, 1, 8, 8) to ten scores (N, 10)."""

    def __init__(self, hidden: int = 128) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, hidden, batch_first=True)
        self.scores = nn.Linear(hidden, 10)

    def forward(self, x: Any) -> Any:
        """The scores after the last row."""
        rows, _ = self.lstm(x.squeeze(1))
        return self.scores(rows[:, -1])


def make_mlp() -> Any:
    """The MLP: images (N, 1, 8, 8) to ten scores (N, 10)."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    )


WAYS = {
    "float32": lambda model: model,
    "float16 weights": lambda model: torch.ao.quantization.quantize_dynamic(model, dtype=torch.float16),
    "int8 weights": torch.ao.quantization.quantize_weight_only,
    "int8, inputs too": torch.ao.quantization.quantize_dynamic,
}


class Result(NamedTuple):
    """A net packed in one way: the part of the test digits read right, bytes of its file, seconds of reading them."""

    accuracy: float
    nbytes: int
    seconds: float


def train(model: Any, digits: Digits, epochs: int, seed: int, title: str, way: Way) -> list[float]:
    """Train with Adam and a progress bar; the loss of each step."""
    from tqdm import tqdm

    data = torch.utils.data.TensorDataset(
        *(torch.as_tensor(one).to(way.device) for one in (digits.train_x, digits.train_y))
    )
    order = torch.Generator().manual_seed(seed)
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True, generator=order)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()
    losses: list[float] = []

    @way.compile
    def step(x: Any, y: Any) -> Any:
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    model.train()
    with tqdm(total=epochs * len(loader), unit="step", desc=title) as bar:
        for _ in range(epochs):
            for x, y in loader:
                losses.append(step(x, y).item())
                bar.set_postfix_str(f"loss={losses[-1]:.4f}", refresh=False)
                bar.update()
    model.eval()
    return losses


def measure(model: Any, digits: Digits, path: Path) -> Result:
    """Read the test digits, and write the weights to a file."""
    x, y = torch.as_tensor(digits.test_x), torch.as_tensor(digits.test_y)
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
        times = []
        for _ in range(5):
            began = time.perf_counter()
            model(x)
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
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    Way.add_options(parser)
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
    given.out.mkdir(parents=True, exist_ok=True)
    digits = load_digits(given.smoke)
    found: dict[str, dict[str, Result]] = {}
    for title, make in (("MLP", make_mlp), ("LSTM", Rows)):
        torch.manual_seed(given.seed)
        with Way(torch, given) as run:
            model = make().to(run.device)
            train(model, digits, epochs, given.seed, title, run)
            account = run.account()
        model = model.cpu()
        found[title] = {}
        for way, pack in WAYS.items():
            name = f"quantise-{title.lower()}-{way.replace(',', '').replace(' ', '-')}.pt"
            found[title][way] = one = measure(pack(model), digits, given.out / name)
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
