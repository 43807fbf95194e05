"""A headless browser for tests of pages, where one is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

__all__ = ["SIZES", "looked_at", "opened"]

SIZES = {"desktop": (1280, 800), "phone": (390, 844)}


@contextmanager
def opened(size: str, scheme: str = "light") -> Iterator[Any]:
    """A page of Chromium in the size of a desktop or a phone; the test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if find_spec("playwright") is None or program is None:
        pytest.skip("no playwright, or no Chromium: neither is downloaded by the tests")
    from playwright.sync_api import sync_playwright

    width, height = SIZES[size]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        try:
            yield page
        finally:
            browser.close()


def looked_at(page: Any, path: Path, picture: Path | None = None) -> dict[str, Any]:
    """What a page looks like: errors and requests to elsewhere, and how far it is wider than the screen."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: errors.append(request.url) if not _own(request.url) else None)
    page.on("requestfailed", lambda request: errors.append(f"failed: {request.url}"))
    page.goto(path.absolute().as_uri())
    if picture is not None:
        page.screenshot(path=str(picture))
    return {
        "errors": errors,
        "wider": page.evaluate("document.documentElement.scrollWidth - window.innerWidth"),
        "broken": page.evaluate("[...document.images].filter(one => !one.naturalWidth).map(one => one.src)"),
        "title": page.title(),
    }


def _own(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))
