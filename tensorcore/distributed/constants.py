"""How long a collective waits for the other ranks, unless its group says otherwise."""

from __future__ import annotations

from datetime import timedelta

from tensorcore.distributed.group import TIMEOUT

__all__ = ["default_pg_timeout"]

default_pg_timeout = timedelta(seconds=TIMEOUT)
