"""The documentation site: it builds without a warning, asks nothing of the network, and fits a desktop and a phone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tensorcore as tc
from docs import pictures
from tensorcore.ops.define import OPS
from tensorcore.testing.certificate import Case, Certificate
from tests.browser import SIZES, looked_at, opened

ROOT = Path(__file__).parent.parent
LOOKED_AT = ["index.html", "tutorial/index.html", "writing-a-backend/index.html", "ops/index.html",
             "performance/index.html", "api-plugin/index.html"]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: Any) -> Path:
    """The built site."""
    if not all(map(find_spec, ("mkdocs", "material", "mkdocstrings"))):
        pytest.skip("no mkdocs-material and mkdocstrings; `make docs` installs both")
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False,
                          env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_it_asks_nothing_of_the_network(site: Path) -> None:
    """No page loads a script, a style, a font or a picture from elsewhere."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        text = page.read_text("utf-8")
        loaded = re.findall(
            r'<(?:script|img|iframe)[^>]*\ssrc="([^"]*)"|<link[^>]*rel="(?:stylesheet|preconnect)"[^>]*href="([^"]*)"',
            text,
        )
        assert [one for pair in loaded for one in pair if "//" in one] == [], page


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_it_fits_the_screen(site: Path, size: str) -> None:
    """In a browser no script fails, nothing is loaded from elsewhere, all pictures show, and no page is too wide."""
    with opened(size) as page:
        for name in LOOKED_AT:
            found = looked_at(page, site / name)
            assert (found["errors"], found["broken"]) == ([], []), name
            assert found["wider"] <= 0, name
            assert "tensorcore" in found["title"]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_coverage_page_fits_the_screen(tmp_path: Path, size: str) -> None:
    """The table of ops and dtypes scrolls within the page, with the op's name and the dtype in sight."""
    found = Certificate(tc.device("pyref"), tc.device("cpu"))
    for op in sorted(OPS)[:80]:
        for dtype in sorted(tc.device("pyref").capabilities.dtypes):
            found.add(Case("silver", f"op/{op}/{dtype}", "passed", "", "native", 0.1))
    (tmp_path / "coverage.html").write_text(found.as_html(), "utf-8")
    with opened(size) as page:
        seen = looked_at(page, tmp_path / "coverage.html")
        assert (seen["errors"], seen["wider"] <= 0, seen["title"]) == ([], True, "Conformance of pyref")
        page.evaluate("document.querySelector('.wide').scrollTo(200, 400)")
        name = page.locator("tbody th").nth(30).bounding_box()
        head = page.locator("thead th").nth(5).bounding_box()
        assert 0 <= name["x"] < 40
        assert head["y"] >= page.locator(".wide").bounding_box()["y"] - 1


@pytest.mark.slow
def test_pictures_are_drawn_from_the_results(tmp_path: Path) -> None:
    """Each committed picture is small, and can be drawn again from the files of results."""
    pytest.importorskip("matplotlib")
    for path in pictures.draw(tmp_path):
        assert path.read_text("utf-8").startswith("<?xml")
        committed = pictures.PICTURES / path.name
        assert 5_000 < committed.stat().st_size < 150_000


def test_the_bars_are_those_of_the_table() -> None:
    """Every group of rows is a bar, with the median and the largest ratio that stand in the summary."""
    text = (pictures.DOCS / "performance.md").read_text("utf-8")
    groups = pictures.table()
    assert [name.capitalize() for name, _, _ in groups] == re.findall(r"^### (.+)$", text, re.MULTILINE)
    for name, middle, largest in groups:
        assert re.search(rf"^\| {re.escape(name)} \| \d+ \| {middle:.2f} \| .* \| {largest:.2f} \|", text, re.MULTILINE)
