"""The conformance suite on the device: each test run has one of its parts, another each day.

All of it takes five to eleven minutes of one core, more than a run of all tests can spare; ``TENSORCORE_CONFORMANCE=all`` asks for it,
as ``.ci/nightly`` does.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_GRADIENTS = "test_gradient or test_edges or test_special"
PARTS = {
    "refusals": "test_refusal",
    "ops of floats": "test_op and ([float32- or [float64-)",
    "ops of half types": "test_op and ([float16- or [bfloat16-)",
    "ops of signed integers": "test_op and ([int64- or [int32- or [int16- or [int8-)",
    "ops of unsigned integers": "test_op and ([uint or [bool-)",
    "ops of complex numbers": "test_op and [complex",
    "gradients and edges": _GRADIENTS,
    "fused ones": "test_fused",
    "layouts, errors and models": f"not (test_refusal or test_op or test_fused or {_GRADIENTS})",
}
TODAYS = "the part of the day"
ASKED = list(PARTS) if os.environ.get("TENSORCORE_CONFORMANCE") == "all" else [TODAYS]


def suite(part: str, driver: Path, folder: Path) -> dict[str, int]:
    """Run a part on the stand-in; the counts of cases by their outcome. Fails where one fails or is excused."""
    path = os.pathsep.join([str(ROOT / "tests" / "cuda_standin"), str(ROOT), str(ROOT / "plugins")])
    environment = {
        **os.environ, "PYTHONPATH": path, "TENSORCORE_PLUGINS": "tensorcore_cpu,tensorcore_cuda",
        "TENSORCORE_CUDA_DRIVER": str(driver), "TENSORCORE_STANDIN_DEVICES": "1",
    }  # fmt: skip
    plugins = ["no:xdist", "no:cacheprovider", "tensorcore_pytest", "tests.cuda_standin.emulation.listing"]
    command = [sys.executable, "-m", "pytest", "-q", *[word for one in plugins for word in ("-p", one)]]
    command += ["--pyargs", "tensorcore.testing", "--backend", "cuda", "-k", part, "--certificate", "found.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    found = json.loads((folder / "found.json").read_text("utf-8"))
    assert found["failures"] == {}
    counts: dict[str, int] = {}
    for level in found["levels"].values():
        for outcome, count in level.get("cases", {}).items():
            counts[outcome] = counts.get(outcome, 0) + count
    return counts


@pytest.mark.slow
@pytest.mark.standin
@pytest.mark.parametrize("part", ASKED)
def test_the_conformance_suite(part, standin_driver, tmp_path) -> None:
    """Nothing fails, and nothing is excused."""
    if part == TODAYS:
        part = list(PARTS)[datetime.datetime.now(datetime.UTC).toordinal() % len(PARTS)]
    assert suite(PARTS[part], standin_driver, tmp_path)["passed"] > 500
