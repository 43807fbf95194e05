"""The devices of this repository against the suite: a part of it in every run, all of it with ``tensorcore check``."""

from __future__ import annotations

import pytest

from tensorcore.testing import check

# Every op in one dtype, the words of every refusal, and bronze: what a change of an op is most likely to break.
PART = "bronze or test_error or (test_op and float32) or test_in_place"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "pyref", "sim:1"])
def test_it_conforms(name: str, capfd) -> None:
    """Values, in-place forms and the texts of errors are those of the reference."""
    status = check(name, "-k", PART)
    assert status == 0, capfd.readouterr().out[-4000:]
