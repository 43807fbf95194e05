"""Trains a variational autoencoder on handwritten digits: a scan becomes two numbers, and two numbers become a scan.

    python examples/vae.py                    the 1797 scans of 8 x 8 pixels that come with scikit-learn
    python examples/vae.py --smoke            a few steps, to see that everything works
    python examples/vae.py --compare-torch    the first losses beside PyTorch's

The picture shows where the net puts each digit in the plane, and the scans that it makes of the points of a grid.

After 3000 steps held-out scans cost 24.3 nats each, and the two numbers tell 89.2 % of them (6 s on one thread).
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np
from stage import BLUE, Example, Way, batches, curve, images, perform

BATCH, HIDDEN, CODE = 64, 128, 2


def make_model(torch: Any) -> Any:
    """The net: scans (N, 64) to their likeness, and mean and log variance of their codes (N, 2)."""
    nn: Any = torch.nn

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * CODE))
            self.decoder = nn.Sequential(
                nn.Linear(CODE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 64)
            )

        def forward(self, x: Any) -> tuple[Any, Any, Any]:
            mean, log_variance = self.encoder(x).chunk(2, dim=1)
            code = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
            return self.decoder(code), mean, log_variance

    return VAE()


class Autoencoder(Example):
    """The training, and the plane of codes."""

    name = "vae"
    steps, smoke_steps = 3000, 60

    def __init__(self, torch: Any, given: Namespace, way: Way) -> None:
        from sklearn.datasets import load_digits

        super().__init__(torch, given, way)
        scans, self.labels = load_digits(return_X_y=True)
        self.scans = torch.as_tensor((scans / 16).astype(np.float32)).to(self.device)
        self.held_out = np.random.default_rng(0).permutation(len(scans))[:360]  # the same ones, whatever the seed
        self.training = np.setdiff1d(np.arange(len(scans)), self.held_out)
        self.model = make_model(torch).to(self.device)

    def loss(self, x: Any) -> Any:
        """The negative lower bound of a scan's log likelihood, in nats: what is lost, and what the code says."""
        torch, F = self.torch, self.torch.nn.functional
        made, mean, log_variance = self.model(x)
        lost = F.binary_cross_entropy_with_logits(made, x, reduction="sum")
        said = -0.5 * torch.sum(1 + log_variance - mean**2 - log_variance.exp())
        return (lost + said) / len(x)

    def run(self, steps: int) -> Iterator[float]:
        """Adam over shuffled batches."""
        torch = self.torch
        training = self.scans[torch.as_tensor(self.training).to(self.device)]
        optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)

        @self.way.compile
        def step(x: Any) -> Any:
            loss = self.loss(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        for _, chosen in zip(range(steps), batches(torch, len(training), BATCH), strict=False):
            yield step(training[chosen.to(self.device)]).item()

    def report(self) -> str:
        """The bound on scans that it was not trained on, and how well their codes tell the digits apart."""
        from sklearn.neighbors import KNeighborsClassifier

        torch = self.torch
        with torch.no_grad():
            bound = self.loss(self.scans[torch.as_tensor(self.held_out).to(self.device)]).item()
            self.codes = self.model.encoder(self.scans)[:, :CODE].cpu().numpy()
        reader = KNeighborsClassifier(10).fit(self.codes[self.training], self.labels[self.training])
        right = reader.score(self.codes[self.held_out], self.labels[self.held_out])
        return f"held-out loss {bound:.2f} nats a scan; its two numbers tell {right:.1%} of the held-out digits"

    def draw(self, figure: Any, losses: list[float]) -> None:
        """The loss, the codes of all digits, and the scans of a grid of codes."""
        torch = self.torch
        left, middle, right = figure.subplots(1, 3)
        curve(left, losses, BLUE)
        left.set(xlabel="step", ylabel="loss (nats a scan)", title="Variational autoencoder")
        middle.scatter(*self.codes.T, c=self.labels, cmap="tab10", s=5)
        for digit in range(10):
            x, y = np.median(self.codes[self.labels == digit], axis=0)
            middle.text(x, y, str(digit), weight="bold", fontsize=13, ha="center", va="center")
        middle.set(title="where the digits lie")
        side = np.linspace(-2, 2, 14, dtype=np.float32)
        grid = np.stack(np.meshgrid(side, side[::-1]), -1).reshape(-1, 2)
        with torch.no_grad():
            made = torch.sigmoid(self.model.decoder(torch.as_tensor(grid).to(self.device)))
        images(right, made.cpu().numpy().reshape(-1, 8, 8), 14)
        right.set_title("scans made of a grid of codes")


if __name__ == "__main__":
    sys.exit(perform(Autoencoder, __doc__))
