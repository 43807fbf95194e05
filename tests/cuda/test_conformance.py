"""The conformance suite on the device: each test run has all refusals and one of the other parts, another each day.

All of it takes five to eleven minutes of one core, more than a run of all tests can spare; ``TENSORCORE_CONFORMANCE=all`` asks for it.
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
# In parts that take one to four minutes, as the test processes run side by side.
_FLOATS = "([float32- or [float64- or [int64- or [bool-)"
_HALVES = "([float16- or [bfloat16- or [int32- or [uint8-)"
PARTS = {
    "refusals": "test_refusal",
    "ops of float32 and others": f"test_op and {_FLOATS}",
    "ops of float16 and others": f"test_op and {_HALVES}",
    "ops of the other dtypes": f"test_op and not ({_FLOATS} or {_HALVES})",
    "all but ops": "not (test_refusal or test_op)",
}
TODAYS = "the part of the day"
ASKED = list(PARTS) if os.environ.get("TENSORCORE_CONFORMANCE") == "all" else ["refusals", TODAYS]


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
        _, *others = PARTS
        part = others[datetime.datetime.now(datetime.UTC).toordinal() % len(others)]
    assert suite(PARTS[part], standin_driver, tmp_path)["passed"] > 1000
