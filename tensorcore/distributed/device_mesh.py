"""DeviceMesh: the ranks of the world as an array of several dims, with a process group along each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tensorcore.distributed as dist
from tensorcore.backend.registry import device as find_device
from tensorcore.distributed.group import resolve
from tensorcore.errors import ArgumentError

__all__ = ["DeviceMesh", "init_device_mesh"]


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """A mesh of all ranks of the world, in their order. Every rank calls it.

    Args:
        device_type: of the devices that hold the shards, ``"cpu"`` for instance.
        mesh_shape: how many ranks there are along each dim.
        mesh_dim_names: a name for each dim, for ``mesh["tp"]``.
    """
    shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise ArgumentError(
            f"init_device_mesh: Each mesh_dim_name must be unique, got {tuple(mesh_dim_names)}; name each dim differently"
        )
    if mesh_dim_names is not None and len(mesh_dim_names) != len(shape):
        raise ArgumentError(
            f"init_device_mesh: mesh_shape and mesh_dim_names should have same length, got {len(shape)} and "
            f"{len(mesh_dim_names)}; name each dim"
        )
    if not dist.is_initialized():
        dist.init_process_group()
    size = dist.get_world_size()
    if math.prod(shape) > size:
        raise ArgumentError(
            f"init_device_mesh: expected a mesh of at most {size} ranks, the world's, got shape {shape}"
        )
    return DeviceMesh(device_type, np.arange(math.prod(shape)).reshape(shape), mesh_dim_names=mesh_dim_names)


class DeviceMesh:
    """Ranks of the world in an array. Every rank of the world makes it, in the same way.

    Attributes:
        ranks: the array.
        device_type, device: what the shards are on.
        mesh_dim_names: a name for each dim, or None.
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, _groups: Any = None
    ) -> None:
        array = np.asarray(mesh.tolist() if hasattr(mesh, "tolist") and not isinstance(mesh, np.ndarray) else mesh)
        self.ranks: np.ndarray = array.astype(np.int64)
        self.device_type, self.device = device_type, find_device(device_type)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        found = np.argwhere(self.ranks == dist.get_rank())
        self._coordinate: tuple[int, ...] | None = tuple(int(i) for i in found[0]) if len(found) else None
        self._groups: list[Any] = self._make_groups() if _groups is None else _groups
        self._backends: dict[int, Any] = {}

    def _make_groups(self) -> list[Any]:
        """The group along each dim that this rank is in; all ranks make all of them."""
        groups = []
        for dim in range(self.ndim):
            mine: Any = None
            for line in np.moveaxis(self.ranks, dim, -1).reshape(-1, self.ranks.shape[dim]).tolist():
                made = None if line == list(range(dist.get_world_size())) else dist.new_group(line)
                if dist.get_rank() in line:
                    mine = made
            groups.append(mine)
        return groups

    @property
    def mesh(self) -> Any:
        """The ranks, as a tensor."""
        from tensorcore.ops.creation.create import tensor

        return tensor(self.ranks.tolist())

    @property
    def ndim(self) -> int:
        """How many dims there are."""
        return self.ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks there are along each dim."""
        return tuple(self.ranks.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along one dim."""
        return int(self.ranks.size) if mesh_dim is None else int(self.ranks.shape[mesh_dim])

    def get_rank(self) -> int:
        """This process's rank in the world."""
        return dist.get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process stands along each dim, None where it is not in the mesh."""
        return None if self._coordinate is None else list(self._coordinate)

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands along one dim."""
        if mesh_dim is None and self.ndim > 1:
            raise ArgumentError(f"get_local_rank: expected mesh_dim for a mesh of {self.ndim} dims, got None; name one")
        if self._coordinate is None:
            raise ArgumentError(f"get_local_rank: expected a rank of the mesh, got rank {dist.get_rank()}; see {self}")
        return self._coordinate[self._dim(0 if mesh_dim is None else mesh_dim)]

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The process group along one dim that this process is in."""
        if mesh_dim is None and self.ndim > 1:
            raise ArgumentError(f"get_group: expected mesh_dim for a mesh of {self.ndim} dims, got None; name one")
        found = self._groups[self._dim(0 if mesh_dim is None else mesh_dim)]
        return resolve("get_group", None) if found is None else found

    def __getitem__(self, names: str | Sequence[str]) -> DeviceMesh:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        dims = [self._dim(name) for name in wanted]
        if self._coordinate is None:
            raise ArgumentError(f"DeviceMesh: expected a rank of the mesh, got rank {dist.get_rank()}; see {self}")
        place = tuple(slice(None) if i in dims else self._coordinate[i] for i in range(self.ndim))
        rest = sorted(dims)
        part = np.transpose(self.ranks[place], [rest.index(dim) for dim in dims])
        return DeviceMesh(self.device_type, part, mesh_dim_names=wanted, _groups=[self._groups[dim] for dim in dims])

    def _dim(self, given: int | str) -> int:
        if isinstance(given, int):
            return given
        if self.mesh_dim_names is None or given not in self.mesh_dim_names:
            raise KeyError(
                f"Invalid mesh_dim_name {given!r} specified. Valid mesh_dim_names are {self.mesh_dim_names}."
            )
        return self.mesh_dim_names.index(given)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh)
            and self.device_type == other.device_type
            and self.mesh_dim_names == other.mesh_dim_names
            and np.array_equal(self.ranks, other.ranks)
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self.shape, self.ranks.tobytes()))

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh('{self.device_type}', {self.ranks.tolist()}{names})"
