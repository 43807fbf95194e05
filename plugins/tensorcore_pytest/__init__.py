"""The options of the conformance suite for pytest; nothing else is imported before somebody names a backend.

A package of its own, because pytest imports the plugins of all installed distributions at every start.
"""

from __future__ import annotations

from typing import Any

__all__ = ["pytest_addoption", "pytest_configure", "pytest_ignore_collect"]


def pytest_addoption(parser: Any) -> None:
    """``--backend`` and what goes with it."""
    group = parser.getgroup("tensorcore", "conformance of a tensorcore backend")
    group.addoption(
        "--backend", metavar="NAME", help="the device to hold against the reference, such as mine or mine:1"
    )
    group.addoption("--reference", metavar="NAME", help="the device it must agree with (cpu; pyref for cpu itself)")
    group.addoption(
        "--level", choices=("bronze", "silver", "gold"), default="gold", help="the level to stop after (gold)"
    )
    group.addoption("--fallback-device", metavar="NAME", help="run kernels that the backend lacks on this device")
    group.addoption(
        "--declaration", metavar="FILE", help="a conformance.toml (the one beside the module of the backend's class)"
    )
    group.addoption(
        "--case-limit", metavar="SECONDS", type=float, default=120,
        help="end the run where a case takes longer; 0 waits for ever (120)",
    )  # fmt: skip
    group.addoption("--certificate", metavar="FILE", help="write the results as JSON")
    group.addoption("--coverage-page", metavar="FILE", help="write the page of ops and dtypes as HTML")


def pytest_configure(config: Any) -> None:
    """The suite joins in only where a backend is named."""
    if config.getoption("--backend"):
        config.pluginmanager.import_plugin("tensorcore.testing.suite")


def pytest_ignore_collect(collection_path: Any, config: Any) -> bool | None:
    """Without a backend the suite's files are no tests."""
    parts = collection_path.parts
    inside = parts[-3:-1] == ("testing", "conformance") or parts[-2:] == ("testing", "conformance")
    return True if inside and "tensorcore" in parts and not config.getoption("--backend") else None
