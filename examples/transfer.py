"""Takes over a reader of digits that PyTorch trained and wrote, without PyTorch, and teaches it a camera it never saw.

    python examples/transfer.py                    reads examples/digits.pt, learns from five blurred scans of each digit
    python examples/transfer.py --smoke            a few steps, to see that everything works
    python examples/transfer.py --compare-torch    the same file and the same lessons in PyTorch beside it
    python examples/transfer.py --write            train the reader again, in PyTorch, and write the file

The file is what ``torch.save(model.state_dict(), path)`` wrote. The new camera is out of focus and a pixel off. A net that
starts from nothing learns the same lessons beside the one that was taken over.

After 100 steps it reads 92.2 % of 850 new scans, up from 60.9 %; the other one 87.5 % (23 s on one thread of a busy
machine).
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from stage import BLUE, ORANGE, Example, Way, images, perform

FILE = Path(__file__).with_name("digits.pt")
LESSONS = 5
KEPT = 900  # scans that the reader in the file was not trained on


def make_model(torch: Any) -> Any:
    """The net: scans (N, 1, 8, 8) to ten scores (N, 10)."""
    nn: Any = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


def load_scans() -> tuple[np.ndarray, np.ndarray]:
    """All scans (N, 1, 8, 8) and their labels, in one random order; the first ``KEPT`` are for the new camera."""
    from sklearn.datasets import load_digits

    scans, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return (scans[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8), labels[order]


def through_the_new_camera(scans: np.ndarray) -> np.ndarray:
    """Out of focus, and a pixel to the right."""
    from scipy import ndimage

    return np.roll(ndimage.gaussian_filter(scans, (0, 0, 0.7, 0.7)), 1, 3)


def write(path: Path = FILE) -> None:
    """Train the reader in PyTorch, and write its weights as PyTorch's users do."""
    import torch

    torch.manual_seed(8)
    x, y = (torch.as_tensor(one[KEPT:]) for one in load_scans())
    model = make_model(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(300):
        chosen = torch.randperm(len(x))[:64]
        loss = torch.nn.functional.cross_entropy(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), path)
    print(f"{path}: PyTorch {torch.__version__}, last loss {loss.item():.4f}")


class Transfer(Example):
    """The lessons of a net that has read digits before, and of one that has not."""

    name = "transfer"
    steps, smoke_steps = 100, 24

    def __init__(self, torch: Any, given: Namespace, way: Way) -> None:
        super().__init__(torch, given, way)
        scans, labels = (one[:KEPT] for one in load_scans())
        scans = through_the_new_camera(scans)
        lessons = np.concatenate([np.flatnonzero(labels == digit)[:LESSONS] for digit in range(10)])
        rest = np.setdiff1d(np.arange(KEPT), lessons)
        self.scans, self.labels = scans[rest], labels[rest]
        self.x, self.y = (torch.as_tensor(one[lessons]).to(self.device) for one in (scans, labels))
        self.test_x = torch.as_tensor(self.scans).to(self.device)
        self.taken_over, self.fresh = (make_model(torch).to(self.device) for _ in range(2))
        self.taken_over.load_state_dict(torch.load(FILE, map_location=self.device))
        self.seen = [self.right()]

    def run(self, steps: int) -> Iterator[float]:
        """A step of each net on all lessons; the loss is that of the one taken over."""
        torch, x, y = self.torch, self.x, self.y

        def lessons_of(model: Any) -> Callable[[], Any]:
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

            @self.way.compile
            def lesson() -> Any:
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                return loss

            return lesson

        pairs = [(model, lessons_of(model)) for model in (self.taken_over, self.fresh)]
        for _ in range(steps):
            losses = []
            for model, lesson in pairs:
                model.train()
                losses.append(lesson().item())
            self.seen.append(self.right())
            yield losses[0]

    def guesses(self, model: Any) -> np.ndarray:
        """What it takes each test scan for."""
        model.eval()
        with self.torch.no_grad():
            return model(self.test_x).argmax(1).cpu().numpy()

    def right(self) -> list[float]:
        """The part of the test scans that each of the two reads right."""
        return [float((self.guesses(model) == self.labels).mean()) for model in (self.taken_over, self.fresh)]

    def report(self) -> str:
        """How much each of them reads right, before and after the lessons."""
        taken_over, fresh = self.seen[-1]
        return (
            f"reads {taken_over:.1%} of {len(self.labels)} scans of the new camera, {self.seen[0][0]:.1%} before its "
            f"lessons; a net that starts from nothing {fresh:.1%}"
        )

    def draw(self, figure: Any, losses: list[float]) -> None:
        """The accuracy of both over the lessons, what the camera sees, and what is misread."""
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.4, 1, 1))
        labels = "taken over from PyTorch", "from nothing"
        for values, colour, label in zip(zip(*self.seen, strict=True), (BLUE, ORANGE), labels, strict=True):
            left.plot(100 * np.array(values), color=colour, label=label)
        left.set(xlabel="step", ylabel="test scans read right (%)", title=f"{LESSONS} lessons of each digit")
        left.grid(alpha=0.25)
        left.legend(frameon=False)
        images(middle, self.scans[:49, 0], 7)
        middle.set_title("what the new camera sees")
        wrong = self.guesses(self.taken_over) != self.labels
        images(right, self.scans[wrong][:49, 0], 7)
        right.set_title(f"misread after the lessons: {wrong.sum()}")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
        sys.exit()
    sys.exit(perform(Transfer, __doc__))
