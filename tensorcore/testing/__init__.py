"""For those who test: devices that misbehave on demand, and a conformance suite for backends.

``pytest --pyargs tensorcore.testing --backend NAME`` holds a backend against the reference, op by op.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = [
    "DeviceLost", "Faults", "NullBackend", "PyrefBackend", "SimBackend", "assert_allclose", "assert_close", "check", "isolated_registry",
    "make_tensor",
]  # fmt: skip

_FROM = {
    "DeviceLost": "testing.sim", "Faults": "testing.sim", "SimBackend": "testing.sim", "NullBackend": "testing.devices",
    "PyrefBackend": "testing.devices", "assert_allclose": "testing.close",
    "assert_close": "testing.close", "isolated_registry": "backend.registry", "make_tensor": "testing.creation",
}  # fmt: skip


def check(
    name: str,
    *arguments: str,
    level: str = "gold",
    fallback: str | None = None,
    declaration: str | Path | None = None,
    certificate: str | Path | None = None,
    page: str | Path | None = None,
) -> int:
    """Run the conformance suite on the device ``name`` in a process of its own; pytest's exit status, 0 where it passes.

    Args:
        arguments: further ones for pytest, such as ``"-k", "sort"``.
        level: ``bronze``, ``silver`` or ``gold``: the one to stop after.
        fallback: the device that missing kernels run on.
        declaration: a ``conformance.toml``; the one beside the backend's module where None.
        certificate, page: files to write the JSON and the HTML to.
    """
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--noconftest",
        "-p",
        "tensorcore_pytest",
    ]
    # Neither the settings nor the conftest.py of whatever project this is called in have a say.
    command += ["-c", str(Path(__file__).with_name("pytest.ini")), "--rootdir", str(Path(__file__).parent)]
    command += ["--pyargs", "tensorcore.testing", "--backend", name, "--level", level]
    for option, value in (
        ("--fallback-device", fallback), ("--declaration", declaration),
        ("--certificate", certificate), ("--coverage-page", page),
    ):  # fmt: skip
        if value is not None:
            command += [option, str(Path(value).absolute() if isinstance(value, Path) else value)]
    return subprocess.run([*command, *arguments], check=False).returncode


def __getattr__(name: str) -> Any:
    if name in _FROM:
        from importlib import import_module

        return getattr(import_module(f"tensorcore.{_FROM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
