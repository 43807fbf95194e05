"""What a run of the conformance suite says: a certificate as JSON, and a page of ops and dtypes as HTML."""

from __future__ import annotations

import html
import json
import platform
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from tensorcore._version import __version__
from tensorcore.backend.base import INTERFACE_VERSION, Backend
from tensorcore.backend.fallback import Ledger
from tensorcore.backend.registry import plugins
from tensorcore.testing.declaration import Declaration

__all__ = ["Case", "Certificate"]

_FORMAT = 2  # of the JSON


class Case(NamedTuple):
    """One case: its level, its key, ``passed``, ``failed``, ``skipped``, ``unsupported`` or ``xfail``, and why."""

    level: str
    key: str
    result: str
    why: str
    ran: str
    seconds: float


class Certificate:
    """The results of one backend.

    A level is ``held`` where all its cases pass or are unsupported and the level below is held, ``provisional`` where
    some are declared xfail, ``failed`` where one fails, ``not run`` where some were left out.
    """

    def __init__(self, device: Backend, reference: Backend) -> None:
        self.device = device
        self.reference = reference
        self.cases: list[Case] = []
        self.stale: list[str] = []
        self.declaration = Declaration({}, {})
        self.ledger = Ledger()
        self.seconds = 0.0
        self.whole = True

    def add(self, case: Case) -> None:
        """Note one case."""
        self.cases.append(case)

    def finish(self, declaration: Declaration, stale: list[str], ledger: Ledger, seconds: float, whole: bool) -> None:
        """The run is over; ``whole`` says that no case was left out of a level that was run."""
        self.declaration, self.stale, self.ledger, self.seconds, self.whole = declaration, stale, ledger, seconds, whole

    def level(self, name: str) -> str:
        """``held``, ``provisional``, ``failed`` or ``not run``."""
        below = {"silver": "bronze", "gold": "silver"}.get(name)
        under = self.level(below) if below else "held"
        found = Counter([case.result for case in self.cases if case.level == name])
        if not found["passed"]:
            return "not run"
        if found["failed"] or under in ("failed", "not run"):
            return "failed" if found["failed"] or under == "failed" else "not run"
        return "provisional" if found["xfail"] or under == "provisional" else "held"

    def summary(self, name: str) -> str:
        """One line about a level."""
        found = Counter([case.result for case in self.cases if case.level == name])
        counts = ", ".join([f"{found[kind]} {kind}" for kind in _RESULTS if found[kind]])
        verdict = self.level(name) + ("" if self.whole else " (of the cases that were run)")
        return f"{verdict}: {counts}" if counts else "not run"

    def matrix(self) -> dict[str, dict[str, dict[str, str]]]:
        """For each op and dtype: the result, what ran (``native``, ``decomposed``, ``fallback``), and why it failed."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        for case in self.cases:
            kind, _, rest = case.key.partition("/")
            op, _, dtype = rest.partition("/")
            if kind == "op":
                cell = {"result": case.result, "ran": case.ran}
                if case.why:
                    cell["why"] = case.why.splitlines()[0][:300]
                found.setdefault(op, {})[dtype] = cell
        return found

    def as_json(self) -> str:
        """The certificate."""
        package = self._package()
        content = {
            "format": _FORMAT,
            "backend": {
                "device": str(self.device),
                "class": f"{type(self.device).__module__}.{type(self.device).__qualname__}",
                "distribution": package[0] if package else None,
                "version": package[1] if package else None,
                "dtypes": sorted(self.device.capabilities.dtypes),
                "report": self.device.report(),
            },
            "tensorcore": __version__,
            "interface": list(INTERFACE_VERSION),
            "reference": str(self.reference),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "machine": platform.machine(),
            "seconds": round(self.seconds, 1),
            "whole": self.whole,
            "levels": {name: {"verdict": self.level(name), "cases": self._counts(name)} for name in _LEVELS},
            "fallback": [
                {"kernel": op, "calls": one.calls, "bytes": one.bytes, "seconds": round(one.seconds, 4)}
                for (_, op), one in self.ledger
            ],
            "unsupported": self.declaration.unsupported,
            "xfail": self.declaration.xfail,
            "stale": self.stale,
            "failures": {case.key: case.why for case in self.cases if case.result == "failed"},
        }
        # A line for each op, so that a certificate can be kept beside the plugin and its changes read.
        ops = ",\n".join([f"  {json.dumps(op)}: {json.dumps(_gathered(cells))}" for op, cells in self.matrix().items()])
        return f'{json.dumps(content, indent=1)[:-2]},\n "ops": {{\n{ops}\n }}\n}}\n'

    def as_html(self) -> str:
        """The coverage page: one file, without anything from elsewhere."""
        matrix = self.matrix()
        dtypes = sorted({dtype for cells in matrix.values() for dtype in cells})
        rows = []
        for op, cells in sorted(matrix.items()):
            line = [f"<th>{html.escape(op)}</th>"]
            for dtype in dtypes:
                cell = cells.get(dtype)
                if cell is None:
                    line.append("<td></td>")
                    continue
                shown = _shown(cell)
                why = html.escape(cell.get("why", ""), quote=True)
                line.append(f'<td class="{shown}" title="{why}">{shown}</td>')
            rows.append(f"<tr>{''.join(line)}</tr>")
        levels = "".join([f"<li><b>{name}</b> {html.escape(self.summary(name))}</li>" for name in _LEVELS])
        package = self._package()
        what = f"{package[0]} {package[1]}, " if package else ""
        return _PAGE.format(
            device=html.escape(str(self.device)),
            what=html.escape(f"{what}tensorcore {__version__}, against {self.reference}, {self.seconds:.0f} s"),
            levels=levels,
            heads="".join([f"<th>{one}</th>" for one in dtypes]),
            rows="\n".join(rows),
        )

    def _counts(self, name: str) -> dict[str, int]:
        found = Counter([case.result for case in self.cases if case.level == name])
        return {kind: found[kind] for kind in _RESULTS}

    def _package(self) -> tuple[str, str] | None:
        for state in plugins():
            if self.device.name in state.devices:
                known: Any = (state.distribution, state.version)
                return known if state.distribution else None
        return None


def _gathered(cells: dict[str, dict[str, str]]) -> dict[str, str]:
    """The dtypes of an op by what ran, or by the result where none did."""
    found: dict[str, list[str]] = {}
    for dtype, cell in cells.items():
        found.setdefault(_shown(cell), []).append(dtype)
    return {key: " ".join(dtypes) for key, dtypes in found.items()}


def _shown(cell: dict[str, str]) -> str:
    return cell["ran"] if cell["result"] == "passed" else cell["result"]


_LEVELS = ("bronze", "silver", "gold")
_RESULTS = ("passed", "failed", "unsupported", "xfail", "skipped")
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Conformance of {device}</title>
<style>
body {{ font: 14px/1.5 system-ui, sans-serif; margin: 1rem; color: #1c1e21; background: #fff; overflow-wrap: break-word }}
.wide {{ overflow: auto; max-height: 90vh }}
table {{ border-collapse: collapse; font-size: 12px }}
th {{ text-align: left; font-weight: 500; padding: 1px 8px; background: #fff }}
thead th {{ position: sticky; top: 0; z-index: 1 }}
tbody th, thead th:first-child {{ position: sticky; left: 0; max-width: 9rem }}
thead th:first-child {{ z-index: 2 }}
td {{ padding: 1px 8px; border: 1px solid #fff }}
.native {{ background: #b7e4c7 }} .decomposed {{ background: #d8f3dc }} .fallback {{ background: #ffe8a3 }}
.unsupported, .skipped {{ background: #e5e7eb }} .xfail {{ background: #ffd6a5 }} .failed {{ background: #ffadad }}
</style></head><body>
<h1>Conformance of {device}</h1>
<p>{what}</p>
<ul>{levels}</ul>
<p>A cell says what ran: a kernel of the device, a decomposition into others, or a fallback to another device.</p>
<div class="wide"><table><thead><tr><th>op</th>{heads}</tr></thead><tbody>
{rows}
</tbody></table></div></body></html>
"""
