"""Trains a character-level GPT on the source text of Python's own standard library, which every machine has.

    python examples/char_gpt.py                    some 4 million characters, a net of 350,000 weights
    python examples/char_gpt.py --smoke            a few steps, to see that everything works
    python examples/char_gpt.py --compare-torch    the first losses beside PyTorch's

The net reads 64 characters and says which one comes next, at each of them. The picture shows the loss, and what the
net writes by itself after the training.

After 1000 steps the loss on held-out text is 1.59 nats, 2.3 bits a character (215 s on one thread of a busy machine).
"""

from __future__ import annotations

import math
import sys
import sysconfig
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from stage import BLUE, ORANGE, Example, Way, curve, perform

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 96, 4, 3, 24


def read_library(smoke: bool) -> np.ndarray:
    """The modules of the standard library one after the other, as numbers of characters in ``ALPHABET``."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if smoke:
        paths = paths[:12]
    text = "".join(path.read_text(encoding="utf-8", errors="ignore") for path in paths).replace("\t", "    ")
    place = np.full(128, -1)
    place[[ord(one) for one in ALPHABET]] = np.arange(len(ALPHABET))
    codes = np.frombuffer(text.encode("ascii", "ignore"), np.uint8)
    numbers = place[codes]
    return numbers[numbers >= 0].astype(np.int64)


def make_model(torch: Any) -> Any:
    """The net: numbers of characters (N, T) to scores of the next one (N, T, characters)."""
    nn: Any = torch.nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.three = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            count, length, _ = x.shape
            heads = self.three(self.before_attention(x)).view(count, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(count, length, WIDTH))
            return x + self.mlp(self.before_mlp(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.character = nn.Embedding(len(ALPHABET), WIDTH)
            self.position = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.scores = nn.Linear(WIDTH, len(ALPHABET), bias=False)
            self.apply(self.start)
            self.scores.weight = self.character.weight  # one table for reading and writing

        @staticmethod
        def start(module: Any) -> None:
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.05)

        def forward(self, x: Any) -> Any:
            places = torch.arange(x.shape[1], device=x.device)
            return self.scores(self.norm(self.blocks(self.character(x) + self.position(places))))

    return GPT()


def loss_of(torch: Any, scores: Any, y: Any) -> Any:
    """Cross entropy of the next character, in nats."""
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())


class CharGPT(Example):
    """The training, and the text that comes of it."""

    name = "char_gpt"
    steps, smoke_steps = 1000, 24

    def __init__(self, torch: Any, given: Namespace, way: Way) -> None:
        super().__init__(torch, given, way)
        numbers = read_library(given.smoke)
        cut = len(numbers) * 9 // 10
        self.training, self.held_out = numbers[:cut], numbers[cut:]
        self.model = make_model(torch).to(self.device)
        self.seen: list[tuple[int, float]] = []

    def batch(self, numbers: np.ndarray, starts: Any) -> tuple[Any, Any]:
        """The ``CONTEXT`` characters from each start, and those that follow each of them."""
        windows = numbers[np.asarray(starts)[:, None] + np.arange(CONTEXT + 1)]
        both = self.torch.as_tensor(windows).to(self.device)
        return both[:, :-1], both[:, 1:]

    def run(self, steps: int) -> Iterator[float]:
        """AdamW with a warm-up and a cosine; one batch of random places a step."""
        torch, model = self.torch, self.model
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)
        warm = max(1, steps // 20)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda i: min((i + 1) / warm, 0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * i / steps)))
        )

        @self.way.compile
        def step(x: Any, y: Any) -> Any:
            loss = loss_of(torch, model(x), y)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        for done in range(1, steps + 1):
            starts = torch.randint(len(self.training) - CONTEXT - 1, (BATCH,)).numpy()
            loss = step(*self.batch(self.training, starts))
            schedule.step()
            if done % max(1, steps // 5) == 0:
                self.seen.append((done, self.held_out_loss()))
            yield loss.item()

    def held_out_loss(self) -> float:
        """The loss on text that it was not trained on."""
        starts = np.linspace(0, len(self.held_out) - CONTEXT - 1, 128).astype(np.int64)
        with self.torch.no_grad():
            x, y = self.batch(self.held_out, starts)
            return loss_of(self.torch, self.model(x), y).item()

    def write(self, start: str, count: int) -> str:
        """Go on after ``start``, a character at a time, each drawn by its score."""
        torch, numbers = self.torch, [ALPHABET.index(one) for one in start]
        with torch.no_grad():
            for _ in range(count):
                x = torch.tensor([numbers[-CONTEXT:]], device=self.device)
                chances = torch.softmax(self.model(x)[0, -1] / 0.7, -1)
                numbers.append(int(torch.multinomial(chances, 1)))
        return "".join(ALPHABET[one] for one in numbers)

    def report(self) -> str:
        """The loss on held-out text, also in bits for a character."""
        loss = self.held_out_loss()
        self.text = self.write("def ", 60 if self.smoke else 500)
        return f"held-out loss {loss:.3f} ({loss / math.log(2):.2f} bits a character)"

    def draw(self, figure: Any, losses: list[float]) -> None:
        """The loss, and what it writes."""
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
        curve(left, losses, BLUE, "training text")
        if self.seen:
            left.plot(*zip(*self.seen, strict=True), "o-", color=ORANGE, label="held-out text")
        left.set(xlabel="step", ylabel="loss (nats a character)", title="A GPT that reads Python's standard library")
        left.legend(frameon=False)
        lines = [line[:66] for line in self.text.splitlines()][:24]
        right.text(0, 1, "\n".join(lines), family="monospace", fontsize=8, va="top", parse_math=False)
        right.set_title("what it writes after “def ”")
        right.axis("off")


if __name__ == "__main__":
    sys.exit(perform(CharGPT, __doc__))
