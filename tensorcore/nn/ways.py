"""The ways of computing attention that PyTorch lets programs choose among: ``torch.nn.attention``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from tensorcore.errors import ArgumentTypeError

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's ways of computing ``scaled_dot_product_attention``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Compute attention in one of these ways inside ``with``. A device has one way of its own, so this only checks them."""
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, SDPBackend) for one in given):
        raise ArgumentTypeError(
            f"sdpa_kernel: Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {backends!r}"
        )
    yield
