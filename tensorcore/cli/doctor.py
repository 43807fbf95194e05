"""What ``tensorcore doctor`` finds: plugins, devices, transports, libraries, switches; as data, and as tables."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from ctypes.util import find_library
from importlib import metadata
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import tensorcore as tc
from tensorcore import shortcuts
from tensorcore.backend import registry
from tensorcore.backend.base import INTERFACE_VERSION
from tensorcore.errors import DeviceUnavailable

__all__ = ["as_json", "examine", "exit_status", "show", "switches"]

# Distributions that decide what the plugins can do.
_LIBRARIES = (
    "numpy", "ml_dtypes", "pluggy", "mpi4py", "mpich", "openmpi", "cupy-cuda12x", "cupy-cuda13x", "nvidia-nccl-cu12",
    "nvidia-nccl-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cudnn-frontend", "torch", "jax", "pyopencl",
    "numba", "scipy", "mkl", "safetensors", "pytest", "asv",
)  # fmt: skip
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")


def examine(asked: str | None = None, note: Callable[[str], object] = str) -> dict[str, Any]:
    """Everything, as plain data; imports every plugin and makes each device that can be used.

    Args:
        asked: a device that somebody wants, such as ``cuda:1``; why it cannot be used is noted under ``asked``.
        note: called with the name of each plugin before anything of it is run.
    """
    owners = {}
    for one in registry.plugins():
        note(one.name)
        loaded = registry.attempt(one.name)
        owners |= dict.fromkeys([*loaded.devices, *loaded.communicators], one.name)
    devices, transports = [], []
    for name in sorted({name for one in registry.plugins() for name in one.devices} | {"meta"}):
        note(owners.get(name, name))
        devices.append(_device(name))
    for name in sorted({name for one in registry.plugins() for name in one.communicators}):
        note(owners[name])
        transports.append(_transport(name))
    return {
        "tensorcore": tc.__version__,
        "interface": list(INTERFACE_VERSION),
        "python": f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores",
        "plugins": [
            one._asdict() | {"interface": list(one.interface) if one.interface else None} for one in registry.plugins()
        ],
        "devices": devices,
        "communicators": transports,
        "asked": asked and {"device": asked, "reason": _why_not(asked)},
        "libraries": {name: version for name in _LIBRARIES if (version := _version(name))},
        "blas": _blas(),
        "shortcuts": {"usable": not shortcuts.reason, "reason": shortcuts.reason or None},
        "tools": {
            "compiler": _compiler(),
            "mpi": _first(_packages("mpi4py", "mpich", "openmpi", "impi-rt"), shutil.which("mpiexec")),
            "nccl": _first(_packages("nvidia-nccl-cu13", "nvidia-nccl-cu12"), find_library("nccl")),
            "cudnn": _first(
                _packages("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-frontend"), find_library("cudnn")
            ),
        },
        "environment": switches(),
    }


def switches() -> dict[str, str]:
    """The variables of the environment that have a say."""
    named = sorted(name for name in os.environ if name.startswith("TENSORCORE_") or name in _THREADS)
    return {name: os.environ[name] for name in named}


def exit_status(found: dict[str, Any]) -> int:
    """0 where all is well; 1 for a broken plugin, or for a device that was asked for; 2 without any device."""
    if found["asked"]:
        return int(found["asked"]["reason"] is not None)
    if not any(one["usable"] and one.get("values") for one in found["devices"]):
        return 2
    broken = [one for one in found["plugins"] if one["state"] == "broken"]
    return int(bool(broken) or any(one.get("broken") for one in found["devices"]))


def as_json(found: dict[str, Any]) -> str:
    """The findings as JSON."""
    return json.dumps(found, indent=1, default=str)


def show(found: dict[str, Any], console: Console) -> None:
    """The findings as tables; the last line is about the device that was asked for, if any."""
    interface = ".".join(map(str, found["interface"]))
    console.print(f"[bold]tensorcore {found['tensorcore']}[/], plugin interface {interface}", highlight=False)
    console.print(f"{found['python']}\n{found['system']}\nBLAS: {found['blas']}", highlight=False, markup=False)
    ways = found["shortcuts"]
    state = "yes" if ways["usable"] else f"no: {ways['reason']}"
    console.print(f"Short ways in C through the frontend: {state}\n", highlight=False, markup=False, soft_wrap=True)

    table = _table("Plugins", "plugin", "package", "interface", "state")
    for one in found["plugins"]:
        package = f"{one['distribution']} {one['version']}" if one["distribution"] else f"module {one['module']}"
        version = ".".join(map(str, one["interface"])) if one["interface"] else ""
        table.add_row(escape(one["name"]), escape(package), version, _coloured(one["state"]))
    console.print(table)

    table = _table("Devices", "device", "usable", "report")
    for one in found["devices"]:
        facts = [f"{key}: {_readable(key, value)}" for key, value in one.get("report", {}).items() if value is not None]
        facts += [f"{len(one['dtypes'])} dtypes", *one["capabilities"]] if one["usable"] else [one["reason"]]
        table.add_row(escape(one["name"]), _coloured("yes" if one["usable"] else "no"), escape(", ".join(facts)))
    console.print(table)

    if found["communicators"]:
        table = _table("Transports between ranks", "transport", "usable", "reason")
        for one in found["communicators"]:
            table.add_row(escape(one["name"]), _coloured("yes" if one["usable"] else "no"), escape(one["reason"] or ""))
        console.print(table)

    tools = {name: one or "none found" for name, one in found["tools"].items()}
    for title, entries, between in (
        ("Tools", tools, ": "), ("Libraries", found["libraries"], " "), ("Switches in force", found["environment"], "="),
    ):  # fmt: skip
        text = ", ".join([f"{key}{between}{value}" for key, value in entries.items()]) or "none"
        console.print(f"[bold]{title}[/]: {escape(text)}", highlight=False)
    for one in found["plugins"]:
        if one["state"] in ("broken", "blocked"):
            advice = "; ".join(filter(None, [one["reason"], one["remedy"]]))
            console.print(
                f"{_coloured(one['state'])} {escape(one['name'])}: {escape(advice)}", highlight=False, soft_wrap=True
            )
    if found["asked"]:
        device, reason = escape(found["asked"]["device"]), found["asked"]["reason"]
        said = (
            f"[green]{device} can be used[/]"
            if reason is None
            else f"[red]{device} cannot be used[/]: {escape(reason)}"
        )
        console.print(said, highlight=False, soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)


def _coloured(state: str) -> str:
    colour = {"loaded": "green", "yes": "green", "broken": "red", "no": "yellow", "blocked": "yellow"}.get(
        state, "default"
    )
    return f"[{colour}]{state}[/]"


def _transport(name: str) -> dict[str, Any]:
    reason = registry.why_not(name, "communicator")
    return {"name": name, "usable": reason is None, "reason": reason}


def _device(name: str) -> dict[str, Any]:
    reason = registry.why_not(name)
    if reason is not None:
        return {"name": name, "usable": False, "reason": reason}
    try:
        made = registry.device(name)
        report = made.report()
    except Exception as error:  # a plugin's own; the doctor goes on to the next
        reason = f"{type(error).__name__}: {error}"
        return {"name": name, "usable": False, "reason": reason, "broken": not isinstance(error, DeviceUnavailable)}
    can = made.capabilities
    claims = [one for one in ("host", "views", "pinned", "streams", "graphs", "collectives") if getattr(can, one)]
    return {
        "name": name, "usable": True, "values": can.values, "class": f"{type(made).__module__}.{type(made).__qualname__}",
        "dtypes": sorted(can.dtypes), "capabilities": claims, "report": report,
    }  # fmt: skip


def _why_not(name: str) -> str | None:
    try:
        registry.device(name)
    except Exception as error:
        return str(error).removeprefix("device: ")
    return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except Exception:  # not installed, or with damaged metadata
        return None


def _packages(*names: str) -> str | None:
    """Those that are installed, with their versions."""
    return " and ".join([f"{name} {version}" for name in names if (version := _version(name))]) or None


def _first(*found: str | None) -> str | None:
    return next((one for one in found if one), None)


def _compiler() -> str | None:
    """The C compiler that ``pip install`` would build the CPU's kernels with, as it names itself."""
    words = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    program = shutil.which(words[0])
    if program is None:
        return None
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return program
    return next(iter(said.splitlines()), program)


def _blas() -> str:
    built: Any = np.show_config(mode="dicts")
    known = (built or {}).get("Build Dependencies", {}).get("blas", {})
    return f"{known.get('name', 'unknown')} {known.get('version', '')}".strip()


def _readable(key: str, value: Any) -> str:
    return f"{value / (1 << 30):.1f} GiB" if key == "memory" and isinstance(value, int) else str(value)
