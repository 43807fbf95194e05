"""What the tests of broken plugins share: a folder to install them in, a good plugin, and the error of a call."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tensorcore.plugin import hookimpl

ROOT = str(Path(__file__).parents[2])

GOOD = """
from tensorcore.plugin import Backend, hookimpl

class Good(Backend):
    def __init__(self, index):
        super().__init__("{name}", index)

@hookimpl
def register_backends(register):
    register("{name}", Good)
"""


class Site:
    """A folder on sys.path with installed distributions, the only ones that discovery sees."""

    def __init__(self, path):
        self.path = path
        self.modules = []

    def install(self, name, source, *, version="1.0", entries=None):
        """Install distribution ``name`` with one module, which its entry points name."""
        module = name.replace("-", "_")
        self.modules.append(module)
        (self.path / f"{module}.py").write_text(textwrap.dedent(source))
        metadata = self.path / f"{module}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = (entries or "{name} = {module}").format(name=name, module=module)
        (metadata / "entry_points.txt").write_text(f"[tensorcore]\n{lines}\n")

    def run(self, code, **environment):
        """The finished process of a program that sees this folder."""
        variables = {key: value for key, value in os.environ.items() if not key.startswith("TENSORCORE_")}
        variables |= {"PYTHONPATH": os.pathsep.join([str(self.path), ROOT]), **environment}
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env=variables, cwd=self.path, capture_output=True, text=True
        )


def failure(raises, call, *arguments):
    """The exception that the call raises."""
    with pytest.raises(raises) as caught:
        call(*arguments)
    return caught.value


def offering(name, factory, **options):
    """A plugin object that registers one device."""

    class Offering:
        @hookimpl
        def register_backends(self, register):
            register(name, factory, **options)

    return Offering()
