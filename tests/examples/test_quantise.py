"""The example of packed weights: a smoke run."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_smoke_run_shows_size_and_accuracy(tmp_path, capsys, monkeypatch):
    """Int8 files are below a third of float32's, and read the digits about as well; the picture is there."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "digits", raising=False)
    spec = importlib.util.spec_from_file_location("quantise", EXAMPLES / "quantise.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(["--smoke", "--out", str(tmp_path)]) == 0
    monkeypatch.delitem(sys.modules, "digits", raising=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "KiB" in line]
    right = {(one[0], " ".join(one[1:-6])): float(one[-6].rstrip("%")) for one in lines}
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("*.pt")}
    assert len(right) == 8
    assert right["MLP", "float32"] > 50
    for net in ("MLP", "LSTM"):
        assert abs(right[net, "int8, inputs too"] - right[net, "float32"]) <= 5
        assert sizes[f"quantise-{net.lower()}-int8-weights.pt"] < sizes[f"quantise-{net.lower()}-float32.pt"] / 3
    assert (tmp_path / "quantise.png").read_bytes()[:4] == b"\x89PNG"
