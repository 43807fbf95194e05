"""PyTorch's own table of operators, in parts: what differs is excused with a reason, and what is excused differs."""

from __future__ import annotations

import datetime
import re
import warnings
from pathlib import Path

import pytest

from tests import opdb

PARTS = 24  # each takes some seconds; the table is only imported where comparisons run
DAYS = 4
REPORT = Path(__file__).parent.parent / "docs" / "opdb.md"


@pytest.mark.oracle
@pytest.mark.parametrize("group", range(PARTS // DAYS))
def test_operators_agree(group: int) -> None:
    """Operators, another quarter each day, give PyTorch's values and gradients, but for those in the table of reasons, which do not.

    ``make opdb`` asks all of them.
    """
    pytest.importorskip("expecttest", reason="PyTorch's table needs it")
    part = DAYS * group + datetime.datetime.now(datetime.UTC).toordinal() % DAYS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts = [opdb.examine(one) for one in opdb.operators()[part::PARTS]]
    different = {one.name: (one.forward, one.gradient) for one in verdicts if not one.agrees}
    assert {name: found for name, found in different.items() if name not in opdb.REASONS} == {}
    assert [one.name for one in verdicts if one.agrees and one.name in opdb.REASONS] == []


def test_report_is_current() -> None:
    """The committed report excuses what the table of reasons does, and at least 97% and 95% agree."""
    text = REPORT.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE)) == set(opdb.REASONS)
    forward, gradient = (float(one) for one in re.findall(r"agree \(([\d.]+)%\)", text))
    assert forward >= 97
    assert gradient >= 95
