"""The examples that share ``stage``: each runs, learns, draws, and has PyTorch's losses."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).parents[2] / "examples"
# What the last line of a run starts with.
REPORTS = {
    "cart_pole": "balances for",
    "char_gpt": "held-out loss",
    "dcgan": "a nearest neighbour tells",
    "graph_digits": "reads",
    "lstm_words": "held-out perplexity",
    "transfer": "reads",
    "vae": "held-out loss",
}


@pytest.fixture
def load(monkeypatch):
    """A function that gives an example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def find(name):
        if name == "cart_pole":
            pytest.importorskip("gymnasium")
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield find
    sys.modules.pop("stage", None)


def perform(module, *words):
    stage = sys.modules["stage"]
    (kind,) = (one for one in vars(module).values() if isinstance(one, type) and stage.Example in one.__bases__)
    return stage.perform(kind, module.__doc__, list(words))


@pytest.mark.parametrize("name", REPORTS)
def test_a_smoke_run_learns_reports_and_draws(load, name, tmp_path, capsys, monkeypatch):
    """A short run says what came of it in one line, and leaves a picture; where the loss measures progress, it falls."""
    module, found = load(name), []
    stage = sys.modules["stage"]
    watch = stage.watch
    monkeypatch.setattr(stage, "watch", lambda *words: found.extend(watch(*words)) or found)
    assert perform(module, "--smoke", "--out", str(tmp_path)) == 0
    if name not in ("cart_pole", "dcgan"):
        assert sum(found[-5:]) < 0.9 * sum(found[:5])
    out, progress = capsys.readouterr()
    assert out.startswith(REPORTS[name])
    assert "100%" in progress
    assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTS)
def test_losses_agree_with_pytorchs(load, name, torch, capsys, tmp_path):
    """The same lines in PyTorch have the same losses to 1e-4 over the first 20 steps."""
    assert perform(load(name), "--smoke", "--compare-torch", "--out", str(tmp_path)) == 0
    assert "the losses agree to 1e-04 over the first 20" in capsys.readouterr().out


def test_losses_that_differ_are_told(load, torch, capsys, monkeypatch, tmp_path):
    """A comparison that fails says so and ends with 1."""
    module = load("vae")
    monkeypatch.setattr(sys.modules["stage"], "AGREEMENT", -1.0)
    assert perform(module, "--smoke", "--compare-torch", "--out", str(tmp_path)) == 1
    assert "DO NOT agree" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--steps", "0"], ["--seed", "-1"], ["--device", "teapot"]])
def test_bad_arguments_are_refused(load, words, tmp_path):
    """Arguments out of range end the program before it starts."""
    with pytest.raises(SystemExit) as caught:
        perform(load("vae"), *words, "--smoke", "--out", str(tmp_path))
    assert caught.value.code not in (0, None)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupt_draws_what_there_is(tmp_path):
    """Ctrl-C ends the training, and the picture of what was trained is drawn."""
    command = [sys.executable, str(EXAMPLES / "vae.py"), "--steps", "1000000", "--out", str(tmp_path)]
    program = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what runs in the background ignores it
    )
    try:
        while "loss=" not in program.stderr.read(40):
            assert program.poll() is None
        program.send_signal(signal.SIGINT)
        out, progress = program.communicate(timeout=60)
    finally:
        program.kill()
    assert "stopped after" in out + progress
    assert (tmp_path / "vae.png").exists()


def test_the_file_that_pytorch_wrote_is_read_whole(load, torch):
    """The bundled file holds what PyTorch reads from it, tensor for tensor."""
    import tensorcore as tc

    file = load("transfer").FILE
    ours, theirs = tc.load(file), torch.load(file)
    assert list(ours) == list(theirs)
    assert all(torch.equal(torch.from_numpy(ours[k].numpy()), theirs[k]) for k in theirs)
