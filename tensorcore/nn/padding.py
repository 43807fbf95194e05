"""Padding layers: the input with something around its last dims."""

from __future__ import annotations

from typing import Any

from tensorcore.nn import functional as F
from tensorcore.nn.module import Module
from tensorcore.tensor import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    """What all padding layers share.

    Args:
        padding: how much on all sides, or pairs of before and behind, of the last dim first.
    """

    dims: int
    kind = "constant"
    value: float = 0.0

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.kind, self.value if self.kind == "constant" else None)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Padding with ``value``."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPad(_Pad):
    """Padding with the input mirrored at its edge, whose own elements are not repeated."""

    kind = "reflect"


class _ReplicationPad(_Pad):
    """Padding with the elements at the input's edge."""

    kind = "replicate"


class _CircularPad(_Pad):
    """Padding with the elements from the input's other end."""

    kind = "circular"


class ConstantPad1d(_ConstantPad):
    """(N, C, L) padded with a constant."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """(N, C, H, W) padded with a constant."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """(N, C, D, H, W) padded with a constant."""

    dims = 3


class ZeroPad1d(_Pad):
    """(N, C, L) padded with zeros."""

    dims = 1


class ZeroPad2d(_Pad):
    """(N, C, H, W) padded with zeros."""

    dims = 2


class ZeroPad3d(_Pad):
    """(N, C, D, H, W) padded with zeros."""

    dims = 3


class ReflectionPad1d(_ReflectionPad):
    """(N, C, L) padded with its mirror image."""

    dims = 1


class ReflectionPad2d(_ReflectionPad):
    """(N, C, H, W) padded with its mirror image."""

    dims = 2


class ReflectionPad3d(_ReflectionPad):
    """(N, C, D, H, W) padded with its mirror image."""

    dims = 3


class ReplicationPad1d(_ReplicationPad):
    """(N, C, L) padded with its edge."""

    dims = 1


class ReplicationPad2d(_ReplicationPad):
    """(N, C, H, W) padded with its edge."""

    dims = 2


class ReplicationPad3d(_ReplicationPad):
    """(N, C, D, H, W) padded with its edge."""

    dims = 3


class CircularPad1d(_CircularPad):
    """(N, C, L) padded with its other end."""

    dims = 1


class CircularPad2d(_CircularPad):
    """(N, C, H, W) padded with its other end."""

    dims = 2


class CircularPad3d(_CircularPad):
    """(N, C, D, H, W) padded with its other end."""

    dims = 3
