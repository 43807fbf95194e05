"""Where the storages of a file go when it is read."""

from __future__ import annotations

import io

import pytest

import tensorcore as tc
from tensorcore import serialization


def test_packages_name_and_restore_storages(monkeypatch) -> None:
    """A registered package gives the storages it knows their name in the file, and makes them when they are read."""
    monkeypatch.setattr(serialization.Options, "packages", [])
    seen = []

    def restore(storage, name):
        seen.append(name)
        return storage if name == "elsewhere:1" else None

    file = io.BytesIO()
    serialization.register_package(5, lambda storage: "elsewhere:1", restore)
    tc.save([tc.arange(3), tc.ones(2)], file)
    file.seek(0)
    assert [one.tolist() for one in tc.load(file)] == [[0, 1, 2], [1, 1]]
    assert seen == ["elsewhere:1"] * 2

    serialization.Options.packages = []
    file.seek(0)
    with pytest.raises(RuntimeError, match="elsewhere"):
        tc.load(file)
    serialization.register_package(30, lambda storage: "never", restore)  # after the devices that are here
    file.seek(0)
    assert tc.load(file)[1].tolist() == [1, 1]
    assert serialization.location_tag(tc.ones(1).untyped_storage()) == "cpu"
