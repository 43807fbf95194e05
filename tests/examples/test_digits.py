"""The demo: a smoke run, exact continuation, broken checkpoints, Ctrl-C, and PyTorch beside it."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tensorcore as tc
from tensorcore.utils import safetensors

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def digits():
    """The program as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "examples"))
        spec = importlib.util.spec_from_file_location("digits", ROOT / "examples" / "digits.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["digits"] = module
        spec.loader.exec_module(module)
        yield module
    del sys.modules["digits"]
    sys.modules.pop("stage", None)


def losses(folder, model="mlp"):
    return safetensors.load_file(folder / f"digits-{model}.safetensors")["losses"].tolist()


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_a_smoke_run_leaves_its_files(digits, model, tmp_path, capsys):
    """A short run learns, prints its accuracy, and leaves a checkpoint and a picture."""
    assert digits.main(["--smoke", "--model", model, "--out", str(tmp_path)]) == 0
    assert "test accuracy" in capsys.readouterr().out
    assert (tmp_path / f"digits-{model}.png").read_bytes()[:4] == b"\x89PNG"
    found = losses(tmp_path, model)
    assert found[-1] < found[0] / 2


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_resuming_continues_exactly(digits, model, tmp_path):
    """One epoch and then another one give the very losses of two epochs in one go."""
    run = ["--smoke", "--model", model, "--out"]
    digits.main([*run, str(tmp_path / "whole")])
    digits.main([*run, str(tmp_path / "parts"), "--epochs", "1"])
    digits.main([*run, str(tmp_path / "parts"), "--resume"])
    assert losses(tmp_path / "parts", model) == losses(tmp_path / "whole", model)


def test_a_stop_amid_an_epoch_continues_exactly(digits, tmp_path):
    """A checkpoint from the middle of an epoch goes on with the batches that were left, dropout included."""
    data = digits.load_digits(True)
    settings = {"model": "mlp", "batch_size": 64, "lr": 3e-3, "seed": 8, "smoke": True}
    whole = digits.Training(tc, data, settings, "cpu")
    expected = list(whole.run(2))
    stopped = digits.Training(tc, data, settings, "cpu")
    steps = stopped.run(2)
    for _ in range(len(stopped.loader) + 5):
        next(steps)
    stopped.save(tmp_path / "a")
    tc.manual_seed(0)
    resumed = digits.Training(tc, data, settings, "cpu")
    resumed.load(tmp_path / "a")
    list(resumed.run(2))
    assert resumed.losses == expected
    assert resumed.accuracies == whole.accuracies


@pytest.mark.parametrize("name", ["cut short", "missing", "foreign"])
def test_a_bad_checkpoint_gets_one_sentence(digits, name, tmp_path):
    """A checkpoint that is cut short, missing or another program's ends the program with one sentence."""
    path = tmp_path / "digits-mlp.safetensors"
    if name == "cut short":
        digits.main(["--smoke", "--epochs", "1", "--out", str(tmp_path)])
        path.write_bytes(path.read_bytes()[:-100])
    elif name == "foreign":
        safetensors.save_file({"a": tc.ones(1)}, path)
    with pytest.raises(SystemExit) as caught:
        digits.main(["--smoke", "--resume", "--out", str(tmp_path)])
    assert str(caught.value).startswith("--resume: ")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [["--epochs", "0"], ["--lr", "nan"], ["--seed", "-1"], ["--device", "teapot"]])
def test_bad_arguments_are_refused(digits, words, tmp_path):
    """Arguments out of range end the program before it starts."""
    with pytest.raises(SystemExit) as caught:
        digits.main([*words, "--smoke", "--out", str(tmp_path)])
    assert caught.value.code not in (0, None)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupt_leaves_a_checkpoint(tmp_path):
    """Ctrl-C finishes the step, writes the checkpoint, says how to go on, and --resume does."""
    command = [sys.executable, str(ROOT / "examples" / "digits.py"), "--smoke", "--out", str(tmp_path)]
    program = subprocess.Popen(
        [*command, "--epochs", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while not (tmp_path / "digits-mlp.safetensors").exists():
            assert program.poll() is None, program.stderr.read()
        program.send_signal(signal.SIGINT)
        out, _ = program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == 130
    assert "go on with --resume" in out
    done = len(losses(tmp_path))
    again = subprocess.run([*command, "--resume", "--epochs", "1"], capture_output=True, text=True, check=True)
    assert "test accuracy" in again.stdout
    assert len(losses(tmp_path)) == done


@pytest.mark.oracle
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_losses_agree_with_pytorchs(digits, model, torch, capsys, tmp_path):
    """The same program in PyTorch has the same losses to 1e-5 over the first 20 steps."""
    assert digits.main(["--smoke", "--compare-torch", "--model", model, "--out", str(tmp_path)]) == 0
    assert "the losses agree to 1e-05 over the first 20 steps" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("model, wanted", [("mlp", 0.97), ("cnn", 0.985)])
def test_the_accuracy_is_reached(digits, model, wanted):
    """A full run reads at least 97 % (MLP) and 98.5 % (CNN) of the test digits right."""
    settings = {"model": model, "batch_size": 64, "lr": 3e-3, "seed": 8, "smoke": False}
    training = digits.Training(tc, digits.load_digits(False), settings, "cpu")
    for _ in training.run(digits.EPOCHS[model]):
        pass
    assert training.accuracies[-1] >= wanted
