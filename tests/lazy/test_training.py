"""Training on the lazy device: losses and parameters of eager, and one program for each step."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn

ROOT = Path(__file__).parents[2]
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "nesterov": True}, "Adam": {}, "AdamW": {"amsgrad": True}, "RMSprop": {"momentum": 0.5},
    "Adagrad": {}, "NAdam": {}, "Rprop": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def digits() -> Iterator[ModuleType]:
    """The example as a module."""
    for name in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(name)
    spec = importlib.util.spec_from_file_location("lazy_digits", ROOT / "examples" / "digits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lazy_digits"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["lazy_digits"]


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_the_digits_example_trains_with_the_same_losses(digits: ModuleType, model: str) -> None:
    """Every loss and accuracy is eager's, bit for bit; a value is made once for each of them, and nowhere else."""
    data = digits.load_digits(True)
    settings = {"model": model, "batch_size": 64, "lr": 3e-3, "seed": 8, "smoke": True}
    seen = []
    for device in ("cpu", "lazy"):
        training = digits.Training(tc, data, settings, device)
        steps = len(list(training.run(2)))
        seen.append((training.losses, training.accuracies))
    assert seen[0] == seen[1]
    made = tc.lazy.realisations()
    assert [one.cause for one in made] == ["item"] * (steps + 2)
    lines = {one.line for one in made}
    source = (ROOT / "examples" / "digits.py").read_text().splitlines()
    assert {source[int(one.rpartition(":")[2]) - 1].strip() for one in lines} == {
        "self.losses.append(loss.item())",
        "return (self.scores().argmax(1) == self.test_y).float().mean().item()",
    }
    # Two layouts of a last and a full batch, each written down twice before it is replayed, for training and testing.
    assert sum(one.replayed for one in made) >= steps - 8


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_takes_the_same_steps(name: str) -> None:
    """Parameters, buffers of batch norm and the state of the generator after ten steps with dropout."""
    ends = []
    for device in ("cpu", "lazy"):
        tc.manual_seed(2)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)).to(
            device
        )
        optimizer = getattr(tc.optim, name)(model.parameters(), lr=0.05, **OPTIMIZERS[name])
        x, y = tc.randn(16, 6, device=device), tc.randint(0, 3, (16,), device=device)
        for _ in range(10):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        ends.append(({key: one.tolist() for key, one in model.state_dict().items()}, tc.get_rng_state().tolist()))
    assert ends[0] == ends[1]


def test_a_step_that_nobody_looks_at_makes_nothing() -> None:
    """Ten steps are one program, made when the last loss is read."""
    model = nn.Linear(4, 1).to("lazy")
    optimizer = tc.optim.SGD(model.parameters(), lr=0.1)
    x = tc.randn(8, 4, device="lazy")
    with tc.lazy.forbid():
        for _ in range(10):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    loss.item()
    (entry,) = tc.lazy.realisations()
    assert entry.steps > 60
    assert model.weight.is_initialized()


def test_a_context_makes_a_whole_program_lazy() -> None:
    """A model, its data and its training inside ``with tc.lazy():`` name no device."""
    with tc.lazy():
        model = nn.Linear(2, 1)
        x = tc.ones(3, 2)
        with tc.lazy.forbid():
            model(x).sum().backward()
    assert model.weight.grad.tolist() == [[3.0, 3.0]]
    assert [one.cause for one in tc.lazy.realisations()] == ["tolist"]


MODELS: dict[str, Any] = {
    "lstm": lambda: nn.LSTM(4, 3), "gru": lambda: nn.GRU(4, 3), "rnn": lambda: nn.RNN(4, 3),
    "transformer": lambda: nn.TransformerEncoderLayer(4, 2, 8), "conv": lambda: nn.Conv1d(5, 5, 3, padding=1),
    "norms": lambda: nn.Sequential(nn.LayerNorm(4), nn.GroupNorm(1, 2), nn.InstanceNorm1d(2, affine=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_layers_train_with_the_same_bits(name: str) -> None:
    """Kernels that keep values for their gradients, or answer with gradients that nobody asked for, replayed too."""
    ends = []
    for device in ("cpu", "lazy"):
        tc.manual_seed(5)
        model = MODELS[name]().to(device)
        optimizer = tc.optim.SGD(model.parameters(), lr=0.1)
        x = tc.randn(2, 5, 4) if name == "conv" else tc.randn(5, 2, 4)
        x, losses = x.to(device), []
        for _ in range(4):
            made = model(x)
            loss = (made[0] if isinstance(made, tuple) else made).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        ends.append((losses, [one.tolist() for one in model.parameters()]))
    assert ends[0] == ends[1]
    assert [one.replayed for one in tc.lazy.realisations() if one.cause == "item"][-1]
