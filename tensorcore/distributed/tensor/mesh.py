"""The mesh as a backend: it wraps a device, and its arrays are whole tensors of which each rank has a part.

The tape, the formulas and every op work on such a tensor as on any other. Kernels run on the parts, and what has to
be sent is sent in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend, Capabilities, Kernel, KernelTable
from tensorcore.distributed.tensor.arrays import MeshArray
from tensorcore.distributed.tensor.kernels import mesh_kernel
from tensorcore.distributed.tensor.moving import moved
from tensorcore.distributed.tensor.placement_types import Placement, Replicate, part_of
from tensorcore.dtypes import dtype, from_numpy_dtype
from tensorcore.errors import DeviceError
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["MeshBackend", "backend_of"]

Shape = tuple[int, ...]


class MeshBackend(Backend):
    """One mesh over one device.

    Args:
        mesh: a DeviceMesh that this rank is in.
        inner: the device of the parts.
    """

    array = MeshArray

    def __init__(self, mesh: Any, inner: Backend) -> None:
        self.mesh = mesh
        self.inner = self.wraps = inner
        self.numbered = False
        known = inner.capabilities
        # Not the host's: whoever looks at values directly would see a part.
        self.capabilities = Capabilities(tuple(known.dtypes), values=known.values, views=known.views)
        self.name, self.index = f"{inner.name} mesh{list(mesh.shape)}", inner.index
        self.everywhere: tuple[Placement, ...] = (Replicate(),) * mesh.ndim
        self.kernels = KernelTable(self)

    # Parts and wholes

    def make(self, local: Any, shape: Shape | None = None, placements: Sequence[Placement] | None = None) -> MeshArray:
        """An array of this rank's part; the same on all ranks where nothing else is said."""
        return MeshArray(
            tuple(local.shape) if shape is None else tuple(shape),
            self.everywhere if placements is None else tuple(placements),
            local,
        )

    def take(self, native: Any) -> MeshArray:
        """An argument of a kernel as an array of this backend: a number that is a tensor is the same on all ranks."""
        if type(native) is MeshArray:
            return native
        if prod(native.shape) != 1:
            raise DeviceError(
                f"expected tensors on one mesh, got mixed torch.Tensor and DTensor: one of shape {list(native.shape)} is "
                f"on no mesh; need to convert all torch.Tensor to DTensor, with distribute_tensor"
            )
        return self.make(native)

    def local_shape(self, shape: Shape, placements: Sequence[Placement]) -> Shape:
        """The shape of this rank's part."""
        return part_of(shape, self.mesh.shape, self.mesh.get_coordinate(), placements)[0]

    def move(self, native: MeshArray, placements: Sequence[Placement]) -> MeshArray:
        """The array with other placements; itself where it has them."""
        if native.placements == tuple(placements):
            return native
        part = new_tensor(native.local, from_numpy_dtype(native.local.dtype), self.inner)
        made = moved(part, native.shape, self.mesh, native.placements, placements)
        return MeshArray(native.shape, tuple(placements), made.native)

    def whole(self, native: Any) -> Any:
        """All of an array, on this rank."""
        return self.move(self.take(native), self.everywhere).local

    def meet(self, other: Backend) -> Backend | None:
        return self if other is self.inner else None

    def lift(self, tensor: Tensor) -> Tensor:
        from tensorcore.distributed.tensor.api import from_local

        if tensor.device is self:
            return tensor
        self.take(tensor.native)
        return from_local(tensor, self.mesh, self.everywhere)

    def describe(self, tensor: Tensor) -> str:
        local = new_tensor(tensor.native.local, tensor.dtype, self.inner)
        text = f"DTensor(local_tensor={local!r}, device_mesh={self.mesh!r}, placements={tensor.native.placements})"
        return "Parameter containing:\n" + text if tensor.__dict__.get("_is_param") else text

    # What a backend is asked for

    def allocate(self, shape: Shape, dtype: dtype) -> MeshArray:
        return self.make(self.inner.allocate(shape, dtype))

    def from_host(self, array: np.ndarray) -> MeshArray:
        return self.make(self.inner.from_host(array))

    def share_host(self, array: np.ndarray) -> MeshArray:
        return self.make(self.inner.share_host(array))

    def to_host(self, native: Any) -> np.ndarray:
        return self.inner.to_host(self.whole(native))

    def as_native(self, value: Any) -> MeshArray:
        if type(value) is MeshArray:
            return value
        return self.make(self.inner.as_native(value) if type(value) is not self.inner.array else value)

    def as_strided(self, native: Any, shape: Shape, strides: Shape, offset: int) -> MeshArray:
        whole = self._dense(native)
        made = self.make(self.inner.as_strided(whole, shape, strides, offset))
        made.copied = whole is not native.local
        return made

    def layout(self, native: Any) -> tuple[Shape, int]:
        if native.placements == self.everywhere:
            return self.inner.layout(native.local)
        return self.strides(native), 0

    def strides(self, native: Any) -> Shape:
        steps = self.inner.strides(native.local)
        if native.placements == self.everywhere:
            return steps
        # Those of the whole, had it one memory with its dims in the order of the part's.
        made, step = [0] * len(steps), 1
        for dim in sorted(range(len(steps)), key=lambda i: (steps[i], -i)):
            if steps[dim] or native.local.shape[dim] < 2:
                made[dim] = step
                step *= max(native.shape[dim], 1)
        return tuple(made)

    def storage(self, native: Any) -> MeshArray:
        return self.make(self.inner.storage(self._dense(native)))

    def storage_key(self, native: Any) -> Any:
        return self.inner.storage_key(native.local)

    def data_pointer(self, native: Any) -> int:
        return self.inner.data_pointer(native.local)

    def random(self, kind: str, shape: Shape, dtype: dtype, generator: Any = None, **options: Any) -> MeshArray:
        """The same numbers on all ranks, which have seeded their generators alike."""
        return self.make(self.inner.random(kind, shape, dtype, generator, **options))

    def synchronize(self) -> None:
        self.inner.synchronize()

    def find_kernel(self, name: str) -> Kernel | None:
        return mesh_kernel(self, name)

    def _dense(self, native: Any) -> Any:
        """All elements on this rank in the memory that ``layout`` tells of."""
        if native.placements == self.everywhere:
            return native.local
        steps = self.strides(native)
        whole = self.whole(native)
        order = sorted(range(len(steps)), key=lambda i: -steps[i])
        kernels = self.inner.kernels
        turned = kernels["contiguous"](kernels["permute"](whole, dims=tuple(order)))
        return kernels["permute"](turned, dims=tuple(order.index(i) for i in range(len(order))))

    @property
    def type(self) -> str:
        return self.inner.type

    def __reduce__(self) -> Any:
        return backend_of, (self.mesh, self.inner)


def backend_of(mesh: Any, inner: Backend | None = None) -> MeshBackend:
    """The backend of a mesh over a device, its own where None."""
    inner = mesh.device if inner is None else inner
    found: MeshBackend | None = mesh._backends.get(id(inner))
    if found is None:
        found = mesh._backends[id(inner)] = MeshBackend(mesh, inner)
    return found
