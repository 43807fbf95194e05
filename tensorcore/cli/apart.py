"""The doctor's examination in a process of its own, so that a plugin which ends or stops that process is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tensorcore.cli.doctor import as_json, examine, switches
from tensorcore.errors import PluginError

__all__ = ["examine_apart"]

_CHILD = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tensorcore.cli.apart import child; child()"
_STEP, _FOUND = "step", "found.json"  # files: the plugin that is at work, and what was found at last


def examine_apart(asked: str | None, patience: float) -> dict[str, Any]:
    """What ``examine`` finds, without the plugins that end its process, or stop it for ``patience`` seconds or more.

    Those are broken, with what they did as the reason.
    """
    lost: dict[str, str] = {}
    while True:
        with TemporaryDirectory() as folder:
            fate = _run(Path(folder), asked, [*lost], patience)
            if fate is None:
                found: dict[str, Any] = json.loads(Path(folder, _FOUND).read_text("utf-8"))
                break
            name = _read(Path(folder, _STEP))
        if not name or name in lost:
            raise PluginError(f"doctor: expected the examination to end, got {fate}; see the lines above")
        lost[name] = fate
    for one in found["plugins"]:
        if one["name"] in lost:
            where = " ".join(filter(None, [one["distribution"] or one["module"], one["version"]]))
            one["state"] = "broken"
            one["reason"] = f"expected plugin '{one['name']}' ({where}) to load, got {lost[one['name']]}"
            one["remedy"] = f"uninstall it, or set TENSORCORE_BLOCK={one['module']}"
    return found | {"environment": switches()}


def child() -> None:
    """Examine, and leave step and findings in the folder that the arguments name."""
    folder, asked = Path(sys.argv[2]), sys.argv[3] or None
    found = examine(asked, lambda name: Path(folder, _STEP).write_text(name, "utf-8"))
    # In place as a whole or not at all: a plugin's thread may end the process at any time.
    Path(folder, "part").write_text(as_json(found), "utf-8")
    os.replace(folder / "part", folder / _FOUND)


def _run(folder: Path, asked: str | None, without: list[str], patience: float) -> str | None:
    """How the process ended, as a part of a sentence; None where it left its findings."""
    blocked = [os.environ.get("TENSORCORE_BLOCK", ""), *[name for one in without for name in one.split(", ")]]
    # Under TENSORCORE_STRICT the first broken plugin would be all there is to read.
    environment = os.environ | {"TENSORCORE_BLOCK": ",".join(filter(None, blocked)), "TENSORCORE_STRICT": ""}
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path), str(folder), asked or ""]
    # What plugins print is no part of the report.
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, env=environment) as process:
        seen: Any = object()
        while True:
            try:
                status = process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                step = _read(folder / _STEP)
                if step != seen:
                    seen = step
                    continue
                process.kill()
                return f"no answer for {patience:g} seconds"
    if (folder / _FOUND).exists():  # what comes after, at the interpreter's end, is no concern of the report
        return None
    if status >= 0:
        return f"the process ended with status {status}"
    return f"the process ended by signal {-status} ({signal.strsignal(-status)})"


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None
