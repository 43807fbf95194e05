"""What the tests of the backends can ask for: a folder of plugins, and a random generator."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from tensorcore.backend.random import Generator
from tests.backend.sabotage import Site


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A Site of its own for each test; its modules are forgotten afterwards."""
    for variable in ("PLUGINS", "BLOCK", "STRICT", "TRACE"):
        monkeypatch.delenv(f"TENSORCORE_{variable}", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    distributions = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: distributions(path=[str(tmp_path)]))
    found = Site(tmp_path)
    yield found
    for module in found.modules:
        sys.modules.pop(module, None)


@pytest.fixture
def generator():
    """The host's random generator, started with seed 8."""
    return Generator(8)
