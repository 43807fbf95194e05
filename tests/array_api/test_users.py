"""Libraries that speak the array API run on tensors, and give NumPy's results: scikit-learn, SciPy and einops."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for library in ("einops", "scipy", "sklearn"):
    pytest.importorskip(library)

ROOT = Path(__file__).parents[2]
SOURCE = ast.parse((Path(__file__).parent / "programs.py").read_text(encoding="utf-8"))


def names() -> list[str]:
    """The names of the programs, which are read and not imported: SciPy must not be imported before its setting is made."""
    tables = [one.value for one in SOURCE.body if isinstance(one, ast.AnnAssign) and isinstance(one.value, ast.Dict)]
    return [ast.literal_eval(key) for key in tables[0].keys if key is not None]


@pytest.fixture(scope="module")
def found() -> Any:
    """What each program gave."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.array_api.programs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", names())
def test_programs_run_on_tensors(name: str, found: Any) -> None:
    """The result is a tensor, with the values that NumPy's arrays give."""
    kind, away = found[name]
    assert kind == "tensorcore.tensor.Tensor", away
    assert away < 1e-9
