"""``fully_shard`` where PyTorch had it at first, and programs import it from."""

from __future__ import annotations
