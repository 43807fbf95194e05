"""Where a rank's part of a sharded tensor lies, for programs that write or read such parts themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore.distributed.tensor.placement_types import Placement, part_of

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's part and where it begins in the whole; of a rank outside the mesh, ``(0,)`` and nothing."""
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    shape, start = part_of(global_shape, mesh.shape, coordinate, placements)
    return shape, () if skip_offset else start
