"""The conformance suite on the device: each test run has all refusals and a seventh of the rest, another each weekday.

``make gpu`` runs all of it at once.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorcore.dtypes import ALL
from tensorcore.testing.conformance import test_silver

ROOT = Path(__file__).parents[2]
# By weekday, Monday first: the dtypes of ``test_op``, and what else.
WEEK = (
    ("float32 complex64", "test_bronze"),
    ("float64 uint16", "test_edges"),
    ("float16 uint32", "test_error or test_special or test_model"),
    ("bfloat16 uint64", "test_out or test_in_place"),
    ("int64 int32", "test_layout"),
    ("int16 int8 complex128", "test_gradient"),
    ("uint8 bool", "test_gold"),
)


def keywords(day: int) -> str:
    """What pytest's ``-k`` takes for a weekday's part."""
    dtypes, others = WEEK[day]
    return f"test_op and ({' or '.join([f'[{one}-' for one in dtypes.split()])}) or {others}"


def suite(part: str, driver: Path, folder: Path) -> dict[str, int]:
    """Run a part on the stand-in; the counts of cases by their outcome. Fails where one fails or is excused."""
    path = os.pathsep.join([str(ROOT / "tests" / "cuda_standin"), str(ROOT), str(ROOT / "plugins")])
    environment = {
        **os.environ, "PYTHONPATH": path, "TENSORCORE_PLUGINS": "tensorcore_cpu,tensorcore_cuda",
        "TENSORCORE_CUDA_DRIVER": str(driver), "TENSORCORE_STANDIN_DEVICES": "1",
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-p",
        "tensorcore_pytest",
    ]
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
def test_what_is_refused(standin_driver, tmp_path) -> None:
    """Each op refuses on the device what it refuses on the host, in every dtype and with the same words."""
    assert suite("test_refusal", standin_driver, tmp_path)["passed"] > 7000


@pytest.mark.slow
@pytest.mark.standin
def test_todays_part_of_the_suite(standin_driver, tmp_path) -> None:
    """Nothing fails, and nothing is excused."""
    day = datetime.date.today().weekday()
    assert suite(keywords(day), standin_driver, tmp_path)["passed"] > 500, WEEK[day]


def test_a_week_has_the_whole_suite() -> None:
    """Every level, every test of silver and every dtype has its day."""
    others = {name for _, text in WEEK for name in text.split(" or ")}
    held = [test_silver, *[one for name, one in vars(test_silver).items() if name.startswith("Test")]]
    silver = {name for one in held for name in vars(one) if name.startswith("test_")}
    assert others == {*silver - {"test_op", "test_refusal"}, "test_bronze", "test_gold"}
    dtypes = [name for text, _ in WEEK for name in text.split()]
    assert sorted(dtypes) == sorted([one.name for one in ALL])
