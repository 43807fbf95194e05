"""The version, and what the library was built for, under the names of ``torch.version``."""

from __future__ import annotations

from tensorcore._version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

# Devices come from plugins, so the library itself is built for none.
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version: str | None = None
debug = False
