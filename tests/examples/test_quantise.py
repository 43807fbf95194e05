"""The example of packed weights: a smoke run."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def quantise(monkeypatch):
    """The program as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "digits", raising=False)
    spec = importlib.util.spec_from_file_location("quantise", EXAMPLES / "quantise.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    monkeypatch.delitem(sys.modules, "digits", raising=False)


def test_a_smoke_run_shows_size_and_accuracy(quantise, tmp_path, capsys):
    """Int8 files are below a third of float32's, and read the digits about as well; the picture is there."""
    assert quantise.main(["--smoke", "--out", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "KiB" in line]
    right = {(one[0], " ".join(one[1:-6])): float(one[-6].rstrip("%")) for one in lines}
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("*.pt")}
    assert len(right) == 8
    assert right["MLP", "float32"] > 50
    for net in ("MLP", "LSTM"):
        assert abs(right[net, "int8, inputs too"] - right[net, "float32"]) <= 5
        assert sizes[f"quantise-{net.lower()}-int8-weights.pt"] < sizes[f"quantise-{net.lower()}-float32.pt"] / 3
    assert (tmp_path / "quantise.png").read_bytes()[:4] == b"\x89PNG"


def test_a_device_that_is_not_there_is_named(quantise, tmp_path):
    """--device says why a device cannot be used, before anything is trained."""
    with pytest.raises(SystemExit, match=r"--device: .*'nowhere'"):
        quantise.main(["--smoke", "--device", "nowhere", "--out", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.oracle
def test_losses_are_pytorchs(torch, quantise, tmp_path, capsys):
    """--compare-torch shows the first losses of both nets in both libraries, and its status is 0 where they agree."""
    assert quantise.main(["--smoke", "--compare-torch", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [sum(line.startswith(net) for line in lines) for net in ("MLP", "LSTM")] == [21, 21]
    assert "agree to 1e-04" in lines[-1]
