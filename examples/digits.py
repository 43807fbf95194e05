"""Trains a classifier of handwritten digits: the 1797 real scans of 8 x 8 pixels that come with scikit-learn.

    python examples/digits.py                      an MLP, about 98 % right on digits it has not seen
    python examples/digits.py --model cnn          a small convolutional net, about 99 %
    python examples/digits.py --resume             go on where Ctrl-C, a crash or the last epoch left off
    python examples/digits.py --compare-torch      the same program in PyTorch beside it

The program writes two files into ``out/``: a checkpoint in safetensors after each epoch, and a picture of the loss
and of the predictions. Nothing here is particular to tensorcore but the import: the functions take the library that
they run in as ``torch``, which is what lets ``--compare-torch`` run the very same lines in PyTorch.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stage import Way

import tensorcore
from tensorcore.errors import LoadError
from tensorcore.utils import safetensors

EPOCHS = {"mlp": 8, "cnn": 6}
COMPARED_STEPS = 20
AGREEMENT = 1e-5


class Digits(NamedTuple):
    """Images (count, 1, 8, 8), normalised, and their labels; the scans themselves for the picture."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    test_scans: np.ndarray


def load_digits(smoke: bool) -> Digits:
    """The scans, 360 of them kept for testing; each other one is shown in seven ways.

    As it is, moved by a pixel in each direction, and turned by 12 degrees to either side: hands differ in that.
    """
    from scipy import ndimage
    from sklearn.datasets import load_digits as load

    scans, labels = load(return_X_y=True)
    scans, labels = scans.reshape(-1, 8, 8).astype(np.float32), labels.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(scans))  # the same digits for testing, whatever the seed
    testing, training = order[:360], order[360:]
    if smoke:
        testing, training = testing[:64], training[:180]
    seen = scans[training]
    wide = np.pad(seen, ((0, 0), (1, 1), (1, 1)))
    ways = [wide[:, i : i + 8, j : j + 8] for i, j in ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))]
    ways += [ndimage.rotate(seen, angle, (1, 2), reshape=False, order=1) for angle in (-12, 12)]
    train_x = np.concatenate(ways)
    mean, std = train_x.mean(), train_x.std()
    return Digits(
        ((train_x - mean) / std)[:, None].astype(np.float32),
        np.tile(labels[training], len(ways)),
        ((scans[testing] - mean) / std)[:, None].astype(np.float32),
        labels[testing],
        scans[testing],
    )


def make_model(torch: Any, name: str) -> Any:
    """The net: images (N, 1, 8, 8) to ten scores (N, 10)."""
    nn: Any = torch.nn
    if name == "mlp":
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(128, 10),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(64, 10),
    )  # fmt: skip


def make_step(torch: Any, model: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    """A function of images and labels that takes a step and gives the loss."""
    loss_of = torch.nn.CrossEntropyLoss()

    def take(x: Any, y: Any) -> Any:
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return take


class Training:
    """A model on its way: everything that a checkpoint has to hold.

    Attributes:
        epoch, step: how far it is; ``step`` counts the batches of this epoch that are done.
        losses: of each step so far.
        accuracies: on the test digits, after each epoch.
    """

    def __init__(
        self,
        torch: Any,
        digits: Digits,
        settings: dict[str, Any],
        device: Any,
        compile: Callable[[Any], Any] = lambda step: step,
    ) -> None:
        self.torch, self.settings = torch, settings
        self.device = torch.device(device)
        torch.manual_seed(settings["seed"])
        self.model = make_model(torch, settings["model"]).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings["lr"], weight_decay=0.01)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.7)
        self.take = compile(make_step(torch, self.model, self.optimizer))
        self.test_x, self.test_y = (torch.as_tensor(one).to(self.device) for one in (digits.test_x, digits.test_y))
        train = (torch.as_tensor(one).to(self.device) for one in (digits.train_x, digits.train_y))
        self.order = torch.Generator().manual_seed(settings["seed"])
        self.loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(*train),
            batch_size=settings["batch_size"],
            shuffle=True,
            generator=self.order,
        )
        self.epoch = self.step = 0
        self.losses: list[float] = []
        self.accuracies: list[float] = []
        self.epoch_began = self.order.get_state()

    def run(self, epochs: int) -> Iterator[float]:
        """Train up to that many epochs in all; yields after each step, with its loss. It may be left at any of them."""
        while self.epoch < epochs:
            if not self.step:
                self.epoch_began = self.order.get_state()
            self.model.train()
            for i, (x, y) in enumerate(self.loader):
                if i < self.step:
                    continue  # a batch from before the checkpoint
                self.losses.append(self.take(x, y).item())
                self.step += 1
                if self.step == len(self.loader):
                    self.scheduler.step()
                    self.epoch, self.step = self.epoch + 1, 0
                    self.accuracies.append(self.accuracy())
                yield self.losses[-1]
                self.model.train()

    def scores(self) -> Any:
        """The model's scores for the test digits (count, 10)."""
        self.model.eval()
        with self.torch.no_grad():
            return self.model(self.test_x)

    def accuracy(self) -> float:
        """The part of the test digits that it reads right."""
        return (self.scores().argmax(1) == self.test_y).float().mean().item()

    # To a file and back

    def save(self, path: Path) -> None:
        """Write all of it; the file is replaced at once, so there is a whole one at any time."""
        torch = self.torch
        tensors = {f"model.{name}": one for name, one in self.model.state_dict().items()}
        optimizer = self.optimizer.state_dict()
        for i, state in optimizer["state"].items():
            tensors.update({f"optimizer.{i}.{name}": one for name, one in state.items()})
        tensors["random.default"] = torch.get_rng_state()
        tensors["random.order"] = self.epoch_began if self.step else self.order.get_state()
        tensors["losses"] = torch.tensor(self.losses, dtype=torch.float64)
        tensors["accuracies"] = torch.tensor(self.accuracies, dtype=torch.float64)
        rest = {
            "settings": self.settings,
            "epoch": self.epoch,
            "step": self.step,
            "groups": optimizer["param_groups"],
            "scheduler": self.scheduler.state_dict(),
        }
        safetensors.save_file(tensors, path, {"training": json.dumps(rest)})

    def load(self, path: Path) -> None:
        """Take over what ``save`` wrote."""
        tensors = safetensors.load_file(path)
        rest = json.loads(safetensors.read_metadata(path)["training"])
        self.model.load_state_dict(_under("model.", tensors))
        state: dict[int, dict[str, Any]] = {}
        for key, one in _under("optimizer.", tensors).items():
            i, _, name = key.partition(".")
            state.setdefault(int(i), {})[name] = one
        self.optimizer.load_state_dict({"state": state, "param_groups": rest["groups"]})
        self.scheduler.load_state_dict(rest["scheduler"])
        self.epoch, self.step = rest["epoch"], rest["step"]
        self.losses, self.accuracies = tensors["losses"].tolist(), tensors["accuracies"].tolist()
        self.epoch_began = tensors["random.order"]
        self.order.set_state(self.epoch_began)
        self.torch.set_rng_state(tensors["random.default"])


def _under(prefix: str, tensors: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


class Interrupt:
    """Notes the first Ctrl-C, so that a step is finished before the program stops; the second one is Python's own."""

    def __enter__(self) -> Interrupt:
        self.wanted = False
        self.before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: Any) -> None:
        self.wanted = True
        signal.signal(signal.SIGINT, self.before)

    def __exit__(self, *_: Any) -> None:
        signal.signal(signal.SIGINT, self.before)


def train(training: Training, epochs: int, checkpoint: Path) -> bool:
    """Train with a progress bar and a checkpoint after each epoch; False if Ctrl-C ended it."""
    from tqdm import tqdm

    steps = len(training.loader)
    total = epochs * steps
    with (
        Interrupt() as interrupt,
        tqdm(total=total, initial=training.epoch * steps + training.step, unit="step") as bar,
    ):
        for loss in training.run(epochs):
            bar.set_description_str(f"epoch {min(training.epoch + 1, epochs)}/{epochs}", refresh=False)
            accuracy = f"{training.accuracies[-1]:.2%}" if training.accuracies else "..."
            bar.set_postfix_str(f"loss={loss:.4f}, accuracy={accuracy}", refresh=False)
            bar.update()
            if not training.step or interrupt.wanted:
                training.save(checkpoint)
            if interrupt.wanted:
                return training.epoch == epochs
    return True


def draw(training: Training, digits: Digits, path: Path) -> None:
    """A picture of the loss, the accuracy, and what the model makes of forty test digits."""
    import matplotlib

    matplotlib.use("Agg")  # to a file; there may be no screen
    from matplotlib import pyplot as plt

    ink, blue, orange, red = "#22313f", "#2f6f9f", "#e08e2b", "#c0392b"
    plt.rcParams.update({"font.size": 10, "axes.edgecolor": ink, "text.color": ink, "axes.labelcolor": ink})
    scores = training.scores().cpu().double().numpy()
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    guesses = scores.argmax(1)
    wrong = np.flatnonzero(guesses != digits.test_y)
    shown = np.concatenate([wrong, np.flatnonzero(guesses == digits.test_y)])[:40]

    figure = plt.figure(figsize=(13, 5.8), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1, 1.15))[0]
    above, below = left.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    left.suptitle(f"{training.settings['model'].upper()} on handwritten digits")
    percent = 100 * np.array(training.accuracies)
    above.plot(np.arange(1, len(percent) + 1), percent, "o-", color=orange, markersize=4, linewidth=1.5)
    above.annotate(f"{percent[-1]:.2f} %", (len(percent), percent[-1]), (0, 7), textcoords="offset points",
                   ha="center", color=orange, weight="bold")  # fmt: skip
    above.set(ylabel="test accuracy (%)", ylim=(min(percent.min() - 0.5, 97), 100.3))
    losses = np.maximum(training.losses, 1e-8)
    per_epoch = len(training.loader)
    epochs = np.arange(1, len(losses) + 1) / per_epoch
    window = max(1, min(len(losses), per_epoch // 4))
    smooth = np.exp(np.convolve(np.log(losses), np.ones(window) / window, "valid"))
    below.semilogy(epochs, losses, color=blue, alpha=0.25, linewidth=0.8, label="each step")
    below.semilogy(epochs[window - 1 :], smooth, color=blue, linewidth=1.8, label=f"mean of {window} steps")
    below.set(xlabel="epoch", ylabel="loss (cross entropy)")
    below.legend(loc="upper right", frameon=False)
    for axes in (above, below):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)

    right.suptitle(
        f"{len(wrong)} of {len(guesses)} test digits misread"
        + (", shown first (truth in brackets)" if len(wrong) else "")
    )
    for cell, i in zip(right.subplots(5, 8).flat, [*shown, *[-1] * (40 - len(shown))], strict=True):
        cell.axis("off")
        if i < 0:
            continue
        cell.imshow(digits.test_scans[i], cmap="gray_r", vmin=0, vmax=16, interpolation="nearest")
        missed = guesses[i] != digits.test_y[i]
        text = f"{guesses[i]} ({digits.test_y[i]})" if missed else f"{guesses[i]}"
        cell.set_title(f"{text}  {chances[i, guesses[i]]:.0%}", fontsize=8, pad=2, color=red if missed else ink)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def compare(digits: Digits, settings: dict[str, Any], epochs: int, given: argparse.Namespace) -> bool:
    """Run the same program in tensorcore and in PyTorch; True if the losses of the first steps agree."""
    try:
        import torch
    except ModuleNotFoundError:
        sys.exit("--compare-torch: expected PyTorch beside tensorcore, got none; pip install torch==2.13.0")
    found = {}
    for name, library in (("tensorcore", tensorcore), ("PyTorch", torch)):
        with Way(library, given) as way:
            training = Training(library, digits, settings, way.device, way.compile)
            began = time.perf_counter()
            for _ in training.run(epochs):
                pass
            found[name] = training, time.perf_counter() - began
    (ours, our_time), (theirs, their_time) = found.values()
    print(f"step   {'tensorcore':>12}   {'PyTorch':>12}   difference")
    count = min(COMPARED_STEPS, len(ours.losses))
    differences = [abs(a - b) for a, b in zip(ours.losses[:count], theirs.losses[:count], strict=True)]
    for i, difference in enumerate(differences):
        print(f"{i + 1:4}   {ours.losses[i]:12.8f}   {theirs.losses[i]:12.8f}   {difference:.1e}")
    agree = max(differences) <= AGREEMENT
    verdict = "agree" if agree else "DO NOT agree"
    print(
        f"the losses {verdict} to {AGREEMENT:.0e} over the first {count} steps (largest difference "
        f"{max(differences):.1e})"
    )
    print(f"test accuracy after {epochs} epochs   {ours.accuracies[-1]:.2%}   {theirs.accuracies[-1]:.2%}")
    ratio = our_time / their_time
    print(f"time for {epochs} epochs   {our_time:.2f} s   {their_time:.2f} s   ({ratio:.2f} of PyTorch's, "
          f"which used {torch.get_num_threads()} threads)")  # fmt: skip
    return agree


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Train a classifier of handwritten digits.")
    parser.add_argument("--model", choices=sorted(EPOCHS), default="mlp", help="the net (default: mlp)")
    parser.add_argument("--epochs", type=int, help=f"passes over the training digits in all (default: {EPOCHS})")
    parser.add_argument("--batch-size", type=int, default=64, help="digits in a step (default: 64)")
    parser.add_argument("--lr", type=float, default=3e-3, help="the first learning rate (default: 0.003)")
    parser.add_argument("--seed", type=int, default=8, help="of all random numbers (default: 8)")
    parser.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    Way.add_options(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for the checkpoint and the picture (default: out)"
    )
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint in that folder")
    parser.add_argument(
        "--smoke", action="store_true", help="a few digits and two epochs, to see that everything works"
    )
    parser.add_argument("--compare-torch", action="store_true", help="run the same program in PyTorch beside it")
    given = parser.parse_args(argv)
    for name, value in (("--epochs", given.epochs), ("--batch-size", given.batch_size)):
        if value is not None and value < 1:
            parser.error(f"argument {name}: expected at least 1, got {value}")
    if not (math.isfinite(given.lr) and given.lr > 0):
        parser.error(f"argument --lr: expected a number over 0, got {given.lr}")
    if not 0 <= given.seed < 2**64:
        parser.error(f"argument --seed: expected 0 to 2**64 - 1, got {given.seed}")
    return given


def main(argv: list[str] | None = None) -> int:
    """Run the program; returns its exit status."""
    given = arguments(argv)
    epochs = given.epochs or (2 if given.smoke else EPOCHS[given.model])
    settings = {name: getattr(given, name) for name in ("model", "batch_size", "lr", "seed", "smoke")}
    given.out.mkdir(parents=True, exist_ok=True)
    checkpoint = given.out / f"digits-{given.model}.safetensors"
    if given.resume:
        try:
            settings = json.loads(safetensors.read_metadata(checkpoint)["training"])["settings"]
        except FileNotFoundError:
            sys.exit(f"--resume: expected a checkpoint at {checkpoint}, got none; run once without --resume")
        except KeyError:
            sys.exit(f"--resume: expected a checkpoint of this program, got {checkpoint}; run once without --resume")
        except LoadError as error:
            sys.exit(f"--resume: {error}")
    digits = load_digits(settings["smoke"])
    try:
        tensorcore.empty(0, device=given.device)
    except tensorcore.errors.DeviceError as error:
        sys.exit(f"--device: {error}")
    if given.compare_torch:
        return 0 if compare(digits, settings, epochs, given) else 1
    with Way(tensorcore, given) as way:
        training = Training(tensorcore, digits, settings, way.device, way.compile)
        if given.resume:
            try:
                training.load(checkpoint)
            except LoadError as error:
                sys.exit(f"--resume: {error}")
        began = time.perf_counter()
        if not train(training, epochs, checkpoint):
            print(f"stopped in epoch {training.epoch + 1} after {training.step} of {len(training.loader)} steps; "
                  f"go on with --resume (checkpoint: {checkpoint})")  # fmt: skip
            return 130
        took = time.perf_counter() - began
        account = way.account()
        picture = given.out / f"digits-{given.model}.png"
        draw(training, digits, picture)
    count = len(digits.test_y)
    right = round(training.accuracies[-1] * count)
    print(f"test accuracy {training.accuracies[-1]:.2%} ({right} of {count} digits) after {training.epoch} epochs, "
          f"trained in {took:.1f} s on {training.device}")  # fmt: skip
    print(f"checkpoint {checkpoint}, picture {picture}")
    if account:
        print(account)
    return 0


if __name__ == "__main__":
    sys.exit(main())
