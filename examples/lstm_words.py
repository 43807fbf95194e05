"""Trains an LSTM language model, word by word, on the Python manual: the English text that ``help()`` shows.

    python examples/lstm_words.py                    some 85,000 words, which come with every Python
    python examples/lstm_words.py --smoke            a few steps, to see that everything works
    python examples/lstm_words.py --compare-torch    the first losses beside PyTorch's

The text is read in 20 places at once, 24 words a step, and the state goes on from step to step. Perplexity is the number of
words that the net wavers between; one that only counts how often each word occurs is measured beside it.

After 1000 steps the perplexity on held-out text is 142, against 297 for counting (72 s on one thread of a busy
machine).
"""

from __future__ import annotations

import math
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from stage import BLUE, ORANGE, RED, Example, Way, curve, perform

WORDS, WIDTH, LAYERS, PLACES, LENGTH = 3000, 128, 2, 20, 24
STEPS_A_PASS = 100


def read_manual(smoke: bool) -> tuple[np.ndarray, list[str]]:
    """The manual as numbers of words, and the words, the most frequent first; rare ones are all ``<rare>``."""
    from pydoc_data.topics import topics

    text = " ".join(topics[name] for name in sorted(topics)[: 10 if smoke else None])
    found = re.findall(r"[a-z]+(?:'[a-z]+)?|[0-9]+|[.,:;()\[\]=]", text.lower())
    words = ["<rare>", *(word for word, _ in Counter(found).most_common(WORDS - 1))]
    number = {word: i for i, word in enumerate(words)}
    return np.array([number.get(word, 0) for word in found]), words


def make_model(torch: Any, words: int) -> Any:
    """The net: numbers of words (T, N) and a state to scores of the next word (T, N, words) and the state after it."""
    nn: Any = torch.nn

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.35)
            self.word = nn.Embedding(words, WIDTH)
            self.lstm = nn.LSTM(WIDTH, WIDTH, LAYERS, dropout=0.35)
            self.scores = nn.Linear(WIDTH, words)
            nn.init.uniform_(self.word.weight, -0.1, 0.1)
            nn.init.zeros_(self.scores.bias)
            self.scores.weight = self.word.weight  # one table for reading and writing

        def forward(self, x: Any, state: Any) -> tuple[Any, Any]:
            made, state = self.lstm(self.drop(self.word(x)), state)
            return self.scores(self.drop(made)), state

    return Reader()


def read(torch: Any, model: Any, x: Any, following: Any, state: Any) -> tuple[Any, Any]:
    """The loss of a stretch of text, in nats a word, and the state to go on with."""
    scores, state = model(x, state)
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
    return loss, tuple(one.detach() for one in state)


class Words(Example):
    """The training, and the text that comes of it."""

    name = "lstm_words"
    steps, smoke_steps = 1000, 24

    def __init__(self, torch: Any, given: Namespace, way: Way) -> None:
        super().__init__(torch, given, way)
        numbers, self.words = read_manual(given.smoke)
        cut = len(numbers) * 9 // 10
        self.training, self.held_out = (self.side_by_side(one) for one in (numbers[:cut], numbers[cut:]))
        frequency = np.bincount(numbers[:cut], minlength=len(self.words)) + 1.0
        self.counted = math.exp(-np.log(frequency / frequency.sum())[numbers[cut:]].mean())
        self.model = make_model(torch, len(self.words)).to(self.device)
        self.seen: list[tuple[int, float]] = []

    def side_by_side(self, numbers: np.ndarray) -> Any:
        """The text in ``PLACES`` columns."""
        rows = len(numbers) // PLACES
        return self.torch.as_tensor(numbers[: rows * PLACES].reshape(PLACES, rows).T.copy()).to(self.device)

    @staticmethod
    def stretches(text: Any) -> Iterator[tuple[Any, Any]]:
        """``LENGTH`` rows of the text after the other, each with the words that follow its own."""
        for start in range(0, len(text) - LENGTH, LENGTH):
            yield text[start : start + LENGTH], text[start + 1 : start + LENGTH + 1]

    def run(self, steps: int) -> Iterator[float]:
        """Adam, pass after pass over the text, with a rate that ends at a tenth."""
        torch, model = self.torch, self.model
        optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, steps)

        @self.way.compile
        def step(x: Any, following: Any, state: Any) -> tuple[Any, Any]:
            loss, state = read(torch, model, x, following, state)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss, state

        done = 0
        while True:
            self.model.train()
            state = None
            for x, following in self.stretches(self.training):
                loss, state = step(x, following, state)
                schedule.step()
                done += 1
                if done % STEPS_A_PASS == 0:
                    self.seen.append((done, self.held_out_loss()))
                yield loss.item()
                if done == steps:
                    return

    def held_out_loss(self) -> float:
        """The loss on text that it was not trained on."""
        self.model.eval()
        with self.torch.no_grad():
            losses, state = [], None
            for x, following in self.stretches(self.held_out):
                loss, state = read(self.torch, self.model, x, following, state)
                losses.append(loss.item())
        self.model.train()
        return float(np.mean(losses))

    def write(self, start: str, count: int) -> str:
        """Go on after some words, one at a time, each drawn by its score; never the rare one."""
        torch = self.torch
        self.model.eval()
        numbers, state = [self.words.index(word) for word in start.split()], None
        with torch.no_grad():
            while len(numbers) < count:
                x = torch.tensor(numbers[-1:] if state else numbers, device=self.device)[:, None]
                scores, state = self.model(x, state)
                scores[-1, 0, 0] = -math.inf
                numbers.append(int(torch.multinomial(torch.softmax(scores[-1, 0] / 0.8, -1), 1)))
        text = " ".join(self.words[one] for one in numbers)
        return re.sub(r"([(\[]) | (?=[.,:;)\]])", r"\1", text)

    def report(self) -> str:
        """Perplexity on held-out text, and what counting words alone gives."""
        found = math.exp(self.held_out_loss())
        self.text = self.write("the value of", 20 if self.smoke else 150)
        return f"held-out perplexity {found:.0f} (counting words: {self.counted:.0f})"

    def draw(self, figure: Any, losses: list[float]) -> None:
        """Perplexity over the steps, and what it writes."""
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
        curve(left, [math.exp(loss) for loss in losses], BLUE, "training text")
        if self.seen:
            steps, found = zip(*self.seen, strict=True)
            left.plot(steps, np.exp(found), "o-", color=ORANGE, label="held-out text")
        left.axhline(self.counted, color=RED, linestyle="--", linewidth=1, label="counting words")
        left.set(xlabel="step", ylabel="perplexity", yscale="log", title="An LSTM that reads the Python manual")
        left.legend(frameon=False)
        import textwrap

        right.text(0, 1, textwrap.fill(self.text, 62), family="monospace", fontsize=8.5, va="top", parse_math=False)
        right.set_title("what it writes after “the value of”")
        right.axis("off")


if __name__ == "__main__":
    sys.exit(perform(Words, __doc__))
