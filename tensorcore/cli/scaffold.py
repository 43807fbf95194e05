"""A distribution with a backend, as ``tensorcore new-backend`` writes it."""

from __future__ import annotations

from pathlib import Path
from string import Template

from tensorcore.backend import registry
from tensorcore.backend.base import INTERFACE_VERSION
from tensorcore.backend.discovery import NAME
from tensorcore.errors import ArgumentError

__all__ = ["contents", "write"]


def write(name: str, directory: Path) -> list[Path]:
    """Write the distribution of a device into a new or empty folder; the files written.

    ArgumentError for a name that no device can have or one of tensorcore's own has, or a folder with something in it.
    """
    files = contents(name)
    if name in registry.own_names():
        raise ArgumentError(
            f"new-backend: expected a name of your own, got {name!r}, which tensorcore has; choose another"
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ArgumentError(f"new-backend: expected {directory} to be new or empty, got one in use; name another")
    written = []
    for relative, text in files.items():
        path = directory / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        written.append(path)
    return written


def contents(name: str) -> dict[str, str]:
    """The files of the distribution by their paths."""
    if not NAME.fullmatch(name):
        raise ArgumentError(
            f"new-backend: expected a name of lower-case letters, digits and underscores, got {name!r}; choose another"
        )
    major, minor = INTERFACE_VERSION
    words = {
        "name": name, "package": f"tensorcore_{name}", "distribution": f"tensorcore-{name.replace('_', '-')}",
        "major": str(major), "minor": str(minor), "Class": "".join(part.capitalize() for part in name.split("_")) + "Backend",
    }  # fmt: skip
    return {
        Template(path).substitute(words): Template(text.lstrip("\n")).substitute(words) for path, text in _FILES.items()
    }


_FILES = {
    "pyproject.toml": '''
# The distribution of the device "$name": the package, and the entry point through which tensorcore finds it.

[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "0.1.0"
description = "The device $name for tensorcore"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["tensorcore"]

[project.optional-dependencies]
test = ["tensorcore[testing]"]

# The device's name, so that a program that uses another device never imports this package.
[project.entry-points.tensorcore]
$name = "$package"

[tool.setuptools]
packages = ["$package"]

[tool.setuptools.package-data]
$package = ["conformance.toml"]
''',
    "$package/__init__.py": '''
"""The device ``$name``: NumPy's functions to begin with."""

import numpy

from tensorcore.plugin import XPBackend, hookimpl

INTERFACE = ($major, $minor)  # the interface that this was written for


class $Class(XPBackend):
    """Every kernel comes from the namespace; a method ``kernel_{name}`` replaces one."""

    def __init__(self, index=0):
        super().__init__(numpy, "$name", index)

    def kernel_square(self, x, out=None):
        return numpy.multiply(x, x, out=out)


@hookimpl
def register_backends(register):
    register("$name", $Class, remedy="pip install $distribution")
''',
    "$package/conformance.toml": '''
# Cases of the conformance suite that do not pass, each with the reason. Both may stay empty.

[unsupported]  # never will: refused with an error
# "op/*/complex*" = "the hardware has no complex numbers"

[xfail]  # not yet: wrong today
# "op/erfinv/float16" = "rounded twice"
''',
    "tests/test_conformance.py": '''
"""The device holds bronze."""

import subprocess
import sys


def test_bronze():
    command = [sys.executable, "-m", "tensorcore", "check", "$name", "--level", "bronze"]
    assert subprocess.run(command).returncode == 0
''',
    "benchmarks/asv.conf.json": '''
{
    "version": 1,
    "project": "$distribution",
    "repo": "..",
    "branches": ["HEAD"],
    "environment_type": "virtualenv",
    "matrix": {"env": {"OMP_NUM_THREADS": ["1"], "OPENBLAS_NUM_THREADS": ["1"]}},
    "benchmark_dir": "suite"
}
''',
    "benchmarks/suite/ops.py": '''
"""Ops on the device, beside the same on the CPU: run with ``asv run`` in the folder above."""

import tensorcore as tc


class Ops:
    params = (["$name", "cpu"], [8, 1000, 1000000])
    param_names = ("device", "elements")

    def setup(self, device, elements):
        self.device = tc.device(device)
        self.x = tc.ones(elements, device=self.device)

    def time_add(self, device, elements):
        self.x + self.x
        self.device.synchronize()

    def time_sum(self, device, elements):
        self.x.sum()
        self.device.synchronize()
''',
    ".github/workflows/test.yml": '''
# The package is built, installed beside tensorcore into a fresh environment, and held against the suite.
name: test
on: [push, pull_request]
jobs:
  conformance:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.13"}
      - run: pip install '.[test]'
      - run: tensorcore doctor --device $name
      - run: pytest
      - run: tensorcore check $name --json certificate.json --html coverage.html
      - uses: actions/upload-artifact@v4
        if: always()
        with: {name: conformance, path: "certificate.json\\ncoverage.html"}
''',
    "README.md": '''
# $distribution

The device `$name` for tensorcore: after `pip install $distribution`,
`tc.zeros(3, device="$name")` finds it.

| file | what is in it |
| --- | --- |
| `$package/__init__.py` | the device: start here, and write a method `kernel_{name}` for what it does better than NumPy |
| `$package/conformance.toml` | what it does not do, with reasons |
| `tests/` | holds it against the conformance suite's first level |
| `benchmarks/` | times it beside the CPU with asv |

```bash
pip install -e '.[test]'
tensorcore doctor                      # is it found, and can it be used?
tensorcore check $name                 # bronze, silver, gold; --html coverage.html draws the page
tensorcore bench tensorcore:$name      # in a checkout of tensorcore: beside NumPy, or --peer torch
```
''',
}  # fmt: skip
