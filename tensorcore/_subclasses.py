"""Tensors of PyTorch's own tracers, by which programs ask whether a tensor has values: ``meta`` has none, and is no such tensor."""

from __future__ import annotations

from typing import Any

from tensorcore import deeper
from tensorcore.errors import UsageError
from tensorcore.tensor import Tensor

__all__ = ["FakeTensor", "fake_tensor", "is_fake"]


class FakeTensor(Tensor):
    """A tensor without values inside PyTorch's traces, which programs ask for by ``isinstance``: there is none."""

    def __new__(cls, *given: Any, **options: Any) -> Any:
        raise UsageError(
            "FakeTensor: expected a device for tensors without values, got none; make them on device='meta'"
        )


def is_fake(x: object) -> bool:
    """Whether a tensor stands for another one in a trace: no."""
    return False


fake_tensor = deeper.module(f"{__name__}.fake_tensor", FakeTensor=FakeTensor, is_fake=is_fake)
__path__: list[str] = []
