"""Loaders are tested as in a process of their own, whatever devices earlier tests of this process have made."""

from __future__ import annotations

from typing import Any

import pytest

from tensorcore.backend.registry import accelerator, backends, made_devices
from tensorcore.utils.data import crew, iterators


@pytest.fixture(autouse=True)
def only_devices_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices that were made before, and those of other plugins than the CPU's, are not seen."""
    earlier = {id(one) for one in made_devices() if not one.capabilities.host}
    monkeypatch.setattr(crew, "made_devices", lambda: [one for one in made_devices() if id(one) not in earlier])
    others = set(backends())

    def found() -> Any:
        made = accelerator()
        return None if made is None or made.name in others else made

    monkeypatch.setattr(iterators, "accelerator", found)
