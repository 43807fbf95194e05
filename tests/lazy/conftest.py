"""Each test starts with an empty account, and leaves the limits as they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorcore as tc


@pytest.fixture(autouse=True)
def fresh_account() -> Iterator[None]:
    before = tc.lazy.budget()
    tc.lazy.clear()
    yield
    tc.lazy.budget(before[0], steps=before[1])
