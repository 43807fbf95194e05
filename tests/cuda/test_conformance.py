"""The conformance suite on the device; ``make gpu`` runs all of it, the test a part that takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.standin
@pytest.mark.parametrize(
    "part", ["views or train or copy", "test_op and float32 and (add or matmul or softmax or conv2d)"]
)
def test_a_part_of_the_suite(standin_driver, tmp_path, part: str) -> None:
    """Nothing fails, and nothing is excused."""
    path = os.pathsep.join([str(ROOT / "tests" / "cuda_standin"), str(ROOT), str(ROOT / "plugins")])
    environment = {
        **os.environ, "PYTHONPATH": path, "TENSORCORE_PLUGINS": "tensorcore_cpu,tensorcore_cuda",
        "TENSORCORE_CUDA_DRIVER": str(standin_driver), "TENSORCORE_STANDIN_DEVICES": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tensorcore_pytest"]
    command += ["--pyargs", "tensorcore.testing", "--backend", "cuda", "-k", part, "--certificate", "found.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert found["failures"] == {}
    assert sum([one["cases"]["passed"] for one in found["levels"].values() if "cases" in one]) > 10
