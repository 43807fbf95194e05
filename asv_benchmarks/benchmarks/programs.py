"""Small programs whole: a step of each kind of work that people do."""

from __future__ import annotations

from ..harness import Row, Suite
from ..programs import PROGRAMS

__all__ = ["ROWS", "Programs"]

PROGRAM = """
from asv_benchmarks.programs import PROGRAMS
torch.manual_seed(8)
with torch.device(device):
    step = PROGRAMS["{name}"](torch)
"""
ROWS = [
    Row(f"program, {name}", PROGRAM.format(name=name), "step()", 1.0, None, (1, 2), "programs") for name in PROGRAMS
]


class Programs(Suite):
    """Seconds of one step of each program."""

    rows = ROWS
