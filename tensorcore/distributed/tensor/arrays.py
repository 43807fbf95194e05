"""The native arrays of a mesh."""

from __future__ import annotations

from typing import Any

from tensorcore.backend.arrays import Array
from tensorcore.distributed.tensor.placement_types import Placement

__all__ = ["MeshArray"]

Shape = tuple[int, ...]


class MeshArray(Array):
    """The native array of a mesh.

    Attributes:
        shape: of the whole.
        placements: for each dim of the mesh, which part a rank has.
        local: this rank's part, an array of the wrapped backend.
        copied: whether it was asked for as a view, and could only be a copy: nobody sees what is written to it.
    """

    __slots__ = ("copied", "local", "placements", "shape")

    def __init__(self, shape: Shape, placements: tuple[Placement, ...], local: Any, copied: bool = False) -> None:
        self.shape, self.placements, self.local, self.copied = shape, placements, local, copied

    @property
    def dtype(self) -> Any:
        """As the part has it."""
        return self.local.dtype

    def __repr__(self) -> str:
        return f"MeshArray(shape={self.shape}, placements={self.placements})"
