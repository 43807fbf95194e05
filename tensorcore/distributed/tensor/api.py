"""DTensor: a tensor of which each rank of a mesh has a part. How tensors get onto a mesh, off it, and lie on it otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorcore.distributed as dist
from tensorcore.autograd.function import Function
from tensorcore.distributed.tensor.arrays import MeshArray
from tensorcore.distributed.tensor.mesh import MeshBackend, backend_of
from tensorcore.distributed.tensor.moving import moved
from tensorcore.distributed.tensor.placement_types import Placement, Replicate, part_of, placed
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.nn.module import Module
from tensorcore.parameter import Parameter
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "DTensor", "distribute_module", "distribute_tensor", "empty", "from_local", "full", "ones", "rand", "randn", "zeros",
]  # fmt: skip


class _DTensorType(type(Tensor)):  # type: ignore[misc]
    """``isinstance(x, DTensor)`` looks at the device."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and isinstance(instance.device, MeshBackend)


class DTensor(Tensor, metaclass=_DTensorType):
    """A tensor on a mesh: an ordinary one whose device is the mesh. Its shape is that of the whole."""

    __slots__ = ()

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: Any = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Any = None, stride: Any = None,
    ) -> Any:  # fmt: skip
        """The tensor of which the ranks' tensors are the parts.

        Args:
            placements: how; all ranks have the same values where None.
            run_check: give all ranks the first one's values where they are said to have the same.
            shape: of the whole, where the parts are not of one size.
        """
        made = local_tensor
        if run_check:
            made = local_tensor.clone()  # type: ignore[attr-defined]
            where = placed("from_local", placements, device_mesh, local_tensor.ndim)
            for dim, one in enumerate(where):
                if one.is_replicate():
                    dist.broadcast(made, group=device_mesh.get_group(dim), group_src=0)
        return from_local(made, device_mesh, placements, shape)


def from_local(
    local: Tensor, mesh: Any, placements: Sequence[Placement] | None = None, shape: Sequence[int] | None = None
) -> Any:
    """The tensor of which the ranks' tensors are the parts."""
    return _FromLocal.apply(local, mesh, placed("from_local", placements, mesh, local.ndim), shape)


def distribute_tensor(
    tensor: Tensor, device_mesh: Any, placements: Sequence[Placement] | None = None, *, src_data_rank: int | None = 0
) -> Any:
    """A leaf on a mesh with the values of rank ``src_data_rank`` of each of its groups, or of each rank's own if None."""
    if isinstance(tensor, DTensor):
        return tensor.redistribute(device_mesh, placements)  # type: ignore[attr-defined]
    if not tensor.is_leaf:
        raise ArgumentError(
            "distribute_tensor: `distribute_tensor` should be used to distribute leaf tensors! got a result"
        )
    where = placed("distribute_tensor", placements, device_mesh, tensor.ndim)
    with no_grad():
        whole = tensor.detach().to(device_mesh.device)  # type: ignore[attr-defined]
        if src_data_rank is not None:
            whole = whole.clone().contiguous()
            for dim in range(device_mesh.ndim):
                dist.broadcast(whole, group=device_mesh.get_group(dim), group_src=src_data_rank)
        start = (Replicate(),) * device_mesh.ndim
        local = moved(whole, tuple(tensor.shape), device_mesh, start, where)
        made = _wrapped(local, device_mesh, where, tuple(tensor.shape))
    if tensor.__dict__.get("_is_param"):
        return Parameter(made, tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)


def distribute_module(
    module: Module,
    device_mesh: Any = None,
    partition_fn: Callable[[str, Module, Any], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Put the parameters and buffers of a module onto a mesh, in place.

    Args:
        partition_fn: called with the name of each module within, itself and the mesh; places what it likes. The rest is
            the same on all ranks.
        input_fn, output_fn: called with the module, its inputs or outputs and the mesh, around each forward.
    """
    for name, one in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, one, device_mesh)
        place_parameters(one, device_mesh, {})
    if input_fn is not None:
        module.register_forward_pre_hook(lambda layer, inputs: input_fn(layer, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda layer, inputs, made: output_fn(layer, made, device_mesh))
    return module


def place_parameters(module: Module, mesh: Any, placements: dict[str, Sequence[Placement]]) -> None:
    """Put the module's own parameters and buffers onto a mesh: those named with these placements, the others whole."""
    for kind in (module._parameters, module._buffers):
        for name, one in kind.items():
            if one is None or isinstance(one, DTensor):
                continue
            made = distribute_tensor(one, mesh, placements.get(name))
            if made.requires_grad:
                # What is left of a sum is finished where the gradient is known, and only a part of it is kept.
                where = made.native.placements
                made.register_hook(lambda g, where=where: g.redistribute(placements=where))
            kind[name] = made


def _wrapped(local: Tensor, mesh: Any, placements: tuple[Placement, ...], shape: tuple[int, ...]) -> Any:
    backend = backend_of(mesh, local.device)
    return new_tensor(MeshArray(shape, placements, local.native), local.dtype, backend)


def _whole_shape(local: Tensor, mesh: Any, placements: Sequence[Placement], shape: Any) -> tuple[int, ...]:
    if shape is None:
        sizes = list(local.shape)
        for dim, one in enumerate(placements):
            if one.is_shard():
                sizes[one.dim] *= mesh.size(dim)  # type: ignore[attr-defined]
        return tuple(sizes)
    expected = part_of(shape, mesh.shape, mesh.get_coordinate(), placements)[0]
    if expected != tuple(local.shape):
        raise ArgumentError(
            f"from_local: expected a part of shape {list(expected)} of a whole of shape {list(shape)}, got "
            f"{list(local.shape)}; parts are what chunk gives"
        )
    return tuple(shape)


def _settled(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """How gradients lie: those of parts of a sum are the same on all ranks."""
    return tuple([Replicate() if one.is_partial() else one for one in placements])


class _FromLocal(Function):
    @staticmethod
    def forward(ctx: Any, local: Any, mesh: Any, placements: Any, shape: Any) -> Any:
        ctx.placements = placements
        return _wrapped(local, mesh, placements, _whole_shape(local, mesh, placements, shape))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.redistribute(placements=_settled(ctx.placements)).to_local(), None, None, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, grad_placements: Any) -> Any:
        native = tensor.native
        ctx.mesh, ctx.shape = tensor.device.mesh, native.shape
        ctx.placements = _settled(native.placements) if grad_placements is None else tuple(grad_placements)
        return new_tensor(native.local, tensor.dtype, tensor.device.inner)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return from_local(g.contiguous(), ctx.mesh, ctx.placements, ctx.shape), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, placements: Any) -> Any:
        ctx.before = _settled(tensor.native.placements)
        return new_tensor(tensor.device.move(tensor.native, placements), tensor.dtype, tensor.device)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.redistribute(placements=ctx.before), None


class _OfMesh:
    """An attribute that tensors on a mesh have and others do not."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self.find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        if not isinstance(instance.device, MeshBackend):
            raise AttributeError(
                f"'Tensor' object has no attribute {self.find.__name__.strip('_')!r}: it is on no mesh"
            )
        return self.find(instance)


def device_mesh(tensor: Any) -> Any:
    """The mesh that it is on."""
    return tensor.device.mesh


def placements(tensor: Any) -> tuple[Placement, ...]:
    """For each dim of the mesh, which part a rank has."""
    found: tuple[Placement, ...] = tensor.native.placements
    return found


def _local_tensor(tensor: Any) -> Any:
    """This rank's part, off the tape."""
    return new_tensor(tensor.native.local, tensor.dtype, tensor.device.inner)


def redistribute(tensor: Any) -> Callable[..., Any]:
    """The tensor with other placements on its mesh: ``x.redistribute(mesh, [Shard(0)])``."""

    def call(device_mesh: Any = None, placements: Any = None, *, async_op: bool = False) -> Any:
        if device_mesh is not None and device_mesh != tensor.device.mesh:
            raise ArgumentError(f"redistribute: expected the tensor's own mesh {tensor.device.mesh}, got {device_mesh}")
        if placements is None:
            raise ArgumentTypeError("redistribute: placements is needed for redistribute! got None")
        where = placed("redistribute", placements, tensor.device.mesh, tensor.ndim)
        if any(one.is_partial() and one != have for one, have in zip(where, tensor.native.placements, strict=True)):
            raise ArgumentError(
                "redistribute: Can not redistribute to Partial, redistributing to Partial is internal only!"
            )
        return tensor if where == tensor.native.placements else _Redistribute.apply(tensor, where)

    return call


def to_local(tensor: Any) -> Callable[..., Any]:
    """This rank's part. ``grad_placements`` says how its gradient lies, as the tensor does where None."""
    return lambda *, grad_placements=None: _ToLocal.apply(tensor, grad_placements)


def full_tensor(tensor: Any) -> Callable[..., Any]:
    """All of it, on every rank."""

    def call(*, grad_placements: Any = None) -> Any:
        where = [Replicate()] * tensor.device.mesh.ndim
        return tensor.redistribute(placements=where).to_local(grad_placements=grad_placements)

    return call


for _one in (device_mesh, placements, _local_tensor, redistribute, to_local, full_tensor):
    setattr(Tensor, _one.__name__, _OfMesh(_one))


def _factory(name: str) -> Callable[..., Any]:
    def make(
        *size: Any, requires_grad: bool = False, dtype: Any = None, device_mesh: Any = None, placements: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        from tensorcore.ops.creation import create, random

        maker = getattr(create, name, None) or getattr(random, name)
        whole = maker(*size, dtype=dtype, device=device_mesh.device, **options)
        return distribute_tensor(whole, device_mesh, placements, src_data_rank=None).requires_grad_(requires_grad)

    make.__name__ = name
    make.__doc__ = f"``{name}`` on a mesh; ranks that draw numbers have seeded their generators alike."
    return make


empty, full, ones, rand, randn, zeros = map(_factory, ("empty", "full", "ones", "rand", "randn", "zeros"))
