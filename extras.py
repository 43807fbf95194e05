"""Prints what an extra of pyproject.toml asks for, a line each, other extras of the project spelt out: ``python extras.py test``.

The Makefile installs that without building the package again.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def requirements(extra: str) -> list[str]:
    """What an extra asks for, and what it names. Raises SystemExit for an extra that is not there."""
    project = tomllib.loads((Path(__file__).parent / "pyproject.toml").read_text("utf-8"))["project"]
    if extra not in project["optional-dependencies"]:
        raise SystemExit(f"extras: expected one of {', '.join(project['optional-dependencies'])}, got '{extra}'")
    found: list[str] = []
    for one in project["optional-dependencies"][extra]:
        own = re.fullmatch(rf"{project['name']}\[(.*)\]", one)
        found += [each for name in own[1].split(",") for each in requirements(name.strip())] if own else [one]
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1])))
