"""Every example trains lazily and compiled with eager's losses, and nothing is made or compiled that is not accounted for."""

from __future__ import annotations

import importlib.util
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import tensorcore as tc

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = 5
SPARSE = "return torch.sparse_coo_tensor(*edges, joined.shape, check_invariants=True).coalesce(), ends"


class Wanted(NamedTuple):
    """What a training of an example comes to.

    Attributes:
        made: how often the lazy run makes values, by the cause and the line that needs them.
        compiled: of each compiled function how often it is traced, replayed, and run as it is.
        tolerance: by how much a loss may differ from eager's, relative to it; by no bit where 0.
    """

    made: dict[tuple[str, str], int]
    compiled: list[tuple[int, int, int]]
    tolerance: float = 0.0


WANTED = {
    "cart_pole": Wanted(
        {
            ("sample", "action = policy.sample()"): 64 * STEPS,
            ("cpu", "values = self.critic(self.torch.cat([x, last[None]])).squeeze(-1).cpu().numpy()"): STEPS,
            ("item", "yield loss.item()"): STEPS,
        },
        [(1, 16 * STEPS - 1, 0)],
        1e-5,  # the means over an update are fused with what they are taken of, and added up in another order
    ),
    "char_gpt": Wanted(
        {
            # Rows of two tables are checked when they are asked for, in training and on the held-out text.
            ("Embedding", "return self.scores(self.norm(self.blocks(self.character(x) + self.position(places))))"): 4 * STEPS,
            # The held-out loss, looked at after each step where there are so few, makes the step before it too.
            ("item", "return loss_of(self.torch, self.model(x), y).item()"): STEPS,
        },
        [(1, STEPS - 1, 0)],
    ),
    "dcgan": Wanted({("item", "self.judged.append(judging.item())"): STEPS}, [(1, STEPS - 1, 0)]),
    "digits-cnn": Wanted(
        {
            ("item", "self.losses.append(self.take(x, y).item())"): 20,
            ("item", "return (self.scores().argmax(1) == self.test_y).float().mean().item()"): 1,
        },
        [(2, 18, 0)],  # the last batch is smaller
    ),
    "digits-mlp": Wanted(
        {
            ("item", "self.losses.append(self.take(x, y).item())"): 20,
            ("item", "return (self.scores().argmax(1) == self.test_y).float().mean().item()"): 1,
        },
        [(2, 18, 0)],
    ),
    "graph_digits": Wanted(
        {
            # The indices are checked and sorted.
            ("sparse_coo_tensor", SPARSE): 1,
            ("coalesce", SPARSE): 1,
            ("item", "losses.append(step().item())"): 2 * STEPS,
            ("cpu", "return model(self.x, graph).argmax(1).cpu().numpy()"): 2 * STEPS,
        },
        [(1, 0, STEPS - 1), (1, STEPS - 1, 0)],  # a step on sparse tensors cannot be compiled
    ),
    "lstm_words": Wanted(
        {
            # The text is brought when a row of the table is first asked for.
            ("Embedding", "made, state = self.lstm(self.drop(self.word(x)), state)"): 1,
            ("item", "yield loss.item()"): STEPS,
        },
        [(2, STEPS - 2, 0)],  # the first step has no state
    ),
    "quantise-lstm": Wanted({("item", "yield step(x.to(self.device), y.to(self.device)).item()"): 20}, [(2, 18, 0)]),
    "quantise-mlp": Wanted({("item", "yield step(x.to(self.device), y.to(self.device)).item()"): 20}, [(2, 18, 0)]),
    "transfer": Wanted(
        {
            ("item", "losses.append(lesson().item())"): 2 * STEPS,
            ("cpu", "return model(self.test_x).argmax(1).cpu().numpy()"): 2 * STEPS + 2,
        },
        [(1, STEPS - 1, 0)] * 2,
    ),
    "vae": Wanted(
        {("item", "yield step(training[chosen.to(self.device)]).item()"): STEPS},
        [(1, STEPS - 1, 0)],
    ),
}  # fmt: skip


class Run(NamedTuple):
    """The losses of a training, and what came of running it in its way."""

    losses: list[float]
    made: Counter[tuple[str, str]]
    compiled: list[tuple[int, int, int]]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that gives a module of the examples."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in ("stage", "digits"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = set(sys.modules)

    def find(name: str) -> ModuleType:
        if name == "cart_pole":
            pytest.importorskip("gymnasium")
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield find
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == EXAMPLES:
            del sys.modules[name]


def trained(load: Any, name: str, flag: str | None) -> Run:
    """Train an example for a few steps, with ``--lazy``, ``--compile`` or neither."""
    name, _, kind = name.partition("-")
    stage, module = load("stage"), load(name)
    # What other tests put off, and may still hold, would count in the budget.
    device: Any = tc.device("lazy")
    device.log.clear()
    device.pending = 0
    words = ["--smoke", *([flag] if flag else [])]
    if name in ("digits", "quantise"):
        given = module.arguments(words)
    else:
        (example,) = (one for one in vars(module).values() if isinstance(one, type) and stage.Example in one.__bases__)
        given = stage.arguments(example, "", words)
    with stage.Way(tc, given) as way:
        if name == "digits":
            losses = digits_losses(module, kind, given, way)
        elif name == "quantise":
            losses = quantise_losses(module, kind, given, way)
        else:
            losses = list(example(tc, given, way).run(STEPS))
        made: Counter[tuple[str, str]] = Counter()
        for one in tc.lazy.report().splitlines()[1:] if way.lazy else ():
            times, cause, line = one.split()[:3]
            path, _, number = line.rpartition(":")
            assert path == str(EXAMPLES / f"{name}.py")
            made[cause, Path(path).read_text().splitlines()[int(number) - 1].strip()] += int(times)
        explained = [one.explain() for one in way.compiled]
        return Run(losses, made, [(one.traces, one.replays, one.eager) for one in explained])


def digits_losses(module: ModuleType, kind: str, given: Namespace, way: Any) -> list[float]:
    settings = {"model": kind, "batch_size": 64, "lr": 3e-3, "seed": 8, "smoke": True}
    training = module.Training(tc, module.load_digits(True), settings, way.device, way.compile)
    return list(training.run(1))


def quantise_losses(module: ModuleType, kind: str, given: Namespace, way: Any) -> list[float]:
    title = {"mlp": "MLP", "lstm": "LSTM"}[kind]
    return list(module.Training(tc, title, module.load_digits(True), given, way).run(1))


def agree(got: list[float], wanted: list[float], tolerance: float) -> None:
    assert got == (pytest.approx(wanted, rel=tolerance) if tolerance else wanted)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WANTED)
def test_an_example_trains_in_every_way_with_the_same_losses(load: Any, name: str) -> None:
    """Lazily and compiled the losses are eager's; values are made where the program reads them, steps traced once."""
    wanted = WANTED[name]
    eager, lazy, compiled = (trained(load, name, flag) for flag in (None, "--lazy", "--compile"))
    assert len(eager.losses) >= STEPS
    agree(lazy.losses, eager.losses, wanted.tolerance)
    agree(compiled.losses, eager.losses, wanted.tolerance)
    assert (eager.made, eager.compiled) == ({}, [])
    assert (lazy.made, lazy.compiled) == (wanted.made, [])
    assert (compiled.made, compiled.compiled) == ({}, wanted.compiled)


def test_every_training_example_is_here() -> None:
    """An example that is added has to be named."""
    programs = {path.stem for path in EXAMPLES.glob("*.py")} - {"stage"}
    assert {name.partition("-")[0] for name in WANTED} == programs


@pytest.mark.parametrize(
    "flag, text", [("--lazy", "times  cause  line"), ("--compile", "1 traces, 4 replays, 0 calls run eagerly")]
)
def test_a_run_ends_with_its_account(load: Any, flag: str, text: str, tmp_path: Path, capsys: Any) -> None:
    """``--lazy`` prints what was made and where, ``--compile`` what was traced and replayed."""
    module, stage = load("vae"), load("stage")
    words = ["--smoke", "--steps", "5", "--out", str(tmp_path), flag]
    assert stage.perform(module.Autoencoder, module.__doc__, words) == 0
    assert text in capsys.readouterr().out


def test_lazy_and_compiled_exclude_each_other(load: Any, tmp_path: Path) -> None:
    """A run is in one way or the other."""
    with pytest.raises(SystemExit):
        load("stage").perform(load("vae").Autoencoder, "", ["--lazy", "--compile", "--out", str(tmp_path)])
