"""What is written from the registry is current: stubs that type checkers read, and the pages of ops and of missing names."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs import document, kernels
from tensorcore import plugin
from tensorcore.backend.kernels import KERNELS
from tensorcore.ops.define import OPS
from tests import missing

ROOT = Path(__file__).parent.parent
PROGRAM = """
import tensorcore as torch
from tensorcore import nn
from tensorcore.nn import functional as F


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(4, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.inner(x)) @ torch.ones(8, 2).T.mT


def train(device: torch.device) -> float:
    net = Net(8).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x: torch.Tensor = torch.randn(16, 4, dtype=torch.float32)
    with torch.no_grad():
        x.add_(1.0).clamp_(min=0.0)
    loss = F.cross_entropy(net(x), (1.0 - x.sum(dim=1) > 0).long())
    loss.backward()
    optimizer.step()
    return float(loss)


train(torch.device("cpu"))
"""
WRONG = {
    "torch.nonsense(3)": 'Module has no attribute "nonsense"',
    "torch.ones(3).nonsense()": '"Tensor" has no attribute "nonsense"',
    "torch.add(torch.ones(3))": 'Missing positional argument "other"',
    "number: int = torch.ones(3) + 1": "Incompatible types in assignment",
}


@functools.cache
def written() -> dict[str, str]:
    """What a process of its own writes: in this one, tests before may have left classes that exchange Tensor's methods."""
    code = "import json; from docs import document; print(json.dumps(document.files()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(found.stdout)


@pytest.mark.parametrize("place", list(document.files()))
def test_written_files_are_current(place: str) -> None:
    """Each committed file is what ``python -m docs.document`` writes."""
    assert (ROOT / place).read_text(encoding="utf-8") == written()[place], "run python -m docs.document"


def test_type_checkers_know_the_vocabulary(tmp_path: Path) -> None:
    """mypy accepts an ordinary program, and finds each of four mistakes."""
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "\n".join(WRONG) + "\n", encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--config-file", os.devnull,
         "--follow-imports", "silent", "--disallow-untyped-calls", str(program)],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    errors = [line for line in found.stdout.splitlines() if ": error: " in line]
    first = PROGRAM.count("\n") + 1
    for number, (line, text) in enumerate(WRONG.items()):
        assert [one for one in errors if f"program.py:{first + number}:" in one and text in one], (line, found.stdout)
    assert len(errors) == len(WRONG), found.stdout


@pytest.mark.oracle
def test_missing_names_have_reasons(torch: Any) -> None:
    """Each of PyTorch's names that is not here has a reason."""
    found = missing.missing_names(torch)
    unexplained = [
        (room, name)
        for room, names in found.items()
        for name in names
        if name != missing.WHOLE and missing.reason_of(room, name) is None
    ]
    assert unexplained == []


@pytest.mark.oracle
def test_page_of_missing_names_is_current(torch: Any) -> None:
    """The committed page is what ``python -m tests.missing`` writes."""
    assert missing.PAGE.read_text(encoding="utf-8") == missing.page(torch), "run python -m tests.missing"


def test_every_kernel_is_described() -> None:
    """Each row of the page of kernels says what the kernel gives, and names no kernel or op that there is not."""
    rows = re.findall(r"^\| `(\w+)\(.*?\)` \| (.*) \|$", kernels.page(), re.MULTILINE)
    assert len(rows) > 300
    assert [name for name, text in rows if not text.strip()] == []
    named = re.compile(r"The gradients of the arrays that `(\w+)` takes")
    assert [name for name, text in rows if (found := named.match(text)) and found[1] not in KERNELS | OPS.keys()] == []


def test_the_page_of_the_plugin_interface_is_whole() -> None:
    """Each public name of ``tensorcore.plugin`` stands on it."""
    text = (ROOT / "docs" / "api-plugin.md").read_text("utf-8")
    assert [name for name in plugin.__all__ if not re.search(rf"\b{name}\b", text)] == []
