"""What ``tensorcore.backends.cudnn`` says of the library."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import tensorcore as tc


@pytest.mark.standin
@pytest.mark.parametrize("there", [True, False])
def test_the_library_is_reported(there, place, monkeypatch) -> None:
    """Its version where it starts, and which tensors it takes; None and none where it does not."""

    def start():
        if not there:
            raise RuntimeError("Unable to find symbol")
        return "handle"

    library = SimpleNamespace(create_handle=start, backend_version=lambda: 91300)
    monkeypatch.setitem(sys.modules, "cudnn", library)
    monkeypatch.setattr(place.driver, "cudnn", ...)
    x, cudnn = tc.ones(2, device="cuda"), tc.backends.cudnn
    assert cudnn.version() == (91300 if there else None)
    assert cudnn.is_available() is there
    assert cudnn.is_acceptable(x) is there
    assert not cudnn.is_acceptable(x.cpu())
    assert not cudnn.is_acceptable(x.int())
    with cudnn.flags(enabled=False):
        assert not cudnn.is_acceptable(x)
