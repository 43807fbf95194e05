"""fully_shard: a model of which each rank keeps a part, and that is whole only where it computes (ZeRO 2 and 3).

The parameters of a sharded module are tensors on a mesh, of which the optimizer sees this rank's part. They are brought
together before the module's forward and before its backward, let go of after each, and their gradients are averaged
and shared out as they come.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import tensorcore.distributed as dist
from tensorcore.distributed.device_mesh import DeviceMesh, init_device_mesh
from tensorcore.distributed.fsdp.fully_sharded_data_parallel import (
    CPUOffload,
    FullyShardedDataParallel,
    ShardingStrategy,
)
from tensorcore.distributed.nested import cast, tensors
from tensorcore.distributed.tensor.api import DTensor, _wrapped, distribute_tensor
from tensorcore.distributed.tensor.placement_types import Shard, shard_size
from tensorcore.errors import ArgumentError
from tensorcore.nn.module import Module
from tensorcore.ops.creation.create import zeros
from tensorcore.ops.shapes.join import cat
from tensorcore.parameter import Parameter
from tensorcore.tape.mode import mode, no_grad
from tensorcore.tensor import Tensor

__all__ = [
    "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "OffloadPolicy",
    "ShardingStrategy", "fully_shard",
]  # fmt: skip


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a sharded module; None for that of its parameters.

    Attributes:
        param_dtype: in which parameters are brought together, and the module computes.
        reduce_dtype: in which gradients are averaged.
        output_dtype: to which floating outputs are cast.
        cast_forward_inputs: whether floating inputs are cast to ``param_dtype``.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay on the mesh's device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts are kept in host memory, where those of a mesh over the host are anyway; no other mesh takes it.

    Attributes:
        pin_memory: for copies to another device, of which there are none.
    """

    pin_memory: bool = True


class FSDPModule:
    """What a module can do once it is sharded."""

    _unit: Unit

    def unshard(self, async_op: bool = False) -> None:
        """Bring the parameters together now."""
        self._unit.gather()

    def reshard(self) -> None:
        """Let go of the whole parameters."""
        self._unit.release()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward averages gradients; without it whole ones add up on each rank."""
        for one in _units(self, recurse):
            one.syncing = requires_gradient_sync

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether backward lets go of the whole parameters."""
        for one in _units(self, recurse):
            one.after_backward = reshard_after_backward


def fully_shard(
    module: Module,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Any] | None = None,
) -> Any:
    """Share the parameters of a module out over a mesh, in place, but for those of modules within that are already.

    Shard the parts first and the model last; each is then brought together by itself. All ranks start with the same
    values, from one seed or one file. The optimizer is made afterwards, of what ``parameters()`` gives then.

    Args:
        mesh: of one dim; all ranks where None.
        reshard_after_forward: let go of the parameters between forward and backward (ZeRO 3), or keep them (ZeRO 2).
            None lets go, but not of the outermost module's, which backward needs at once.
        mp_policy: dtypes other than the parameters' own.
        offload_policy: ``CPUOffloadPolicy()`` for a mesh over the host alone.
        ignored_params: parameters that stay as they are.
    """
    mesh = init_device_mesh("cpu", (dist.get_world_size(),)) if mesh is None else mesh
    if mesh.ndim != 1:
        raise ArgumentError(f"fully_shard: expected a mesh of one dim, got {mesh.ndim}; take one of its dims")
    if isinstance(module, FSDPModule):
        raise ArgumentError(
            "fully_shard: expected a module that is not sharded, got one that is; call it once for each"
        )
    if isinstance(offload_policy, CPUOffloadPolicy) and mesh.device.type != "cpu":
        raise ArgumentError(
            f"fully_shard: expected a mesh over the host for CPUOffloadPolicy, got one over {mesh.device}; leave the policy out"
        )
    unit = Unit(module, mesh, reshard_after_forward, mp_policy or MixedPrecisionPolicy(), ignored_params or set())
    kind = type(module)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})  # type: ignore[assignment]
    module.__dict__["_unit"] = unit
    module.register_forward_pre_hook(unit.before_forward, with_kwargs=True)
    module.register_forward_hook(unit.after_forward)
    return module


def _units(module: Any, recurse: bool = True) -> Iterator[Unit]:
    for one in module.modules() if recurse else [module]:
        if isinstance(one, FSDPModule):
            yield one._unit


class Slot:
    """One parameter: its part, which is there for good, and the whole, which comes and goes."""

    def __init__(self, owners: list[tuple[Module, str]], name: str, given: Any, unit: Unit) -> None:
        self.owners, self.name = owners, name
        mesh = unit.mesh
        if not given.shape:
            raise ArgumentError(
                f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel 1."
            )
        self.part = distribute_tensor(given, mesh, [Shard(0)], src_data_rank=None)
        if not self.part.__dict__.get("_is_param"):
            self.part = Parameter(self.part, given.requires_grad)
        self.shape, self.dtype = tuple(given.shape), unit.policy.param_dtype or given.dtype
        self.rows = shard_size(self.shape[0], mesh.size(), 0)[1]  # of each rank, with what is padded
        self.count = self.rows * prod(self.shape[1:])
        self.whole: Any = Parameter(self._nothing(given), given.requires_grad)
        self.show(self.part)

    def show(self, tensor: Any) -> None:
        """Let the modules have the part, or the whole."""
        for module, name in self.owners:
            module._parameters[name] = tensor

    def _nothing(self, like: Tensor) -> Any:
        one = zeros((), dtype=self.dtype, device=like.device)
        return one.expand(self.shape)  # type: ignore[attr-defined]

    def padded(self) -> Any:
        """This rank's part in one dim, as long as all ranks'."""
        flat = self.part._local_tensor.detach().to(self.dtype).reshape(-1)
        return _lengthened(flat, self.count)

    def fill(self, blocks: Any) -> None:
        """Take all ranks' parts, one block for each."""
        made = blocks.reshape(-1, *self.shape[1:])[: self.shape[0]]
        self.whole.native = made.contiguous().native

    def empty(self) -> None:
        """Forget the whole; what the tape keeps of it goes too."""
        self.whole.native = self._nothing(self.whole).native


class Unit:
    """The parameters of one sharded module, which come and go together."""

    def __init__(
        self,
        module: Module,
        mesh: DeviceMesh,
        after_forward: bool | None,
        policy: MixedPrecisionPolicy,
        ignored: set[Any],
    ) -> None:
        self.module, self.mesh, self.policy = module, mesh, policy
        self.asked, self.syncing, self.after_backward = after_forward, True, True
        self.outermost = True
        self.gathered = False
        self.walk: Any = None
        self.expected: set[int] = set()
        self.sent: tuple[Any, ...] | None = None
        for one in _units(module):
            one.outermost = False
        owners: dict[int, tuple[Any, str, list[tuple[Module, str]]]] = {}
        for path, inner in module.named_modules():
            for name, one in inner._parameters.items():
                if one is None or isinstance(one, DTensor) or any(one is other for other in ignored):
                    continue
                entry = owners.setdefault(id(one), (one, f"{path}.{name}".lstrip("."), []))
                entry[2].append((inner, name))
        self.slots = [Slot(where, name, one, self) for one, name, where in owners.values()]
        self.trained = [one for one in self.slots if one.whole.requires_grad]
        _leaves.update(one.whole.node for one in self.trained)
        for number, one in enumerate(self.trained):
            one.whole.register_post_accumulate_grad_hook(lambda _, number=number: self._arrived(number))

    # Parameters

    def gather(self) -> None:
        """Bring the parameters together, and let the modules see them."""
        if not self.gathered:
            with no_grad():
                for some in _alike(self.slots):
                    mine = cat([one.padded() for one in some])
                    rows = mine.new_empty((self.mesh.size(), mine.shape[0]))  # type: ignore[attr-defined]
                    dist.all_gather_into_tensor(rows, mine, self.mesh.get_group())
                    start = 0
                    for one in some:
                        one.fill(rows[:, start : start + one.count])
                        start += one.count
            self.gathered = True
        for one in self.slots:
            one.show(one.whole)

    def release(self) -> None:
        """Let go of the whole parameters; the modules see the parts again."""
        for one in self.slots:
            one.show(one.part)
            if self.gathered:
                one.empty()
        self.gathered = False

    def hide(self) -> None:
        """The modules see the parts, and the whole parameters stay for backward."""
        for one in self.slots:
            one.show(one.part)

    # Forward

    def before_forward(self, module: Any, inputs: Any, kwargs: Any) -> Any:
        self.gather()
        dtype = self.policy.param_dtype
        if dtype is None or not self.policy.cast_forward_inputs:
            return None
        return cast(inputs, dtype), cast(kwargs, dtype)

    def after_forward(self, module: Any, inputs: Any, made: Any) -> Any:
        if self.policy.output_dtype is not None:
            made = cast(made, self.policy.output_dtype)
        away = not self.outermost if self.asked is None else self.asked
        if mode.enabled:
            for one in tensors(made):
                if one.requires_grad:
                    one.register_hook(self._before_backward)
        if away or not mode.enabled:
            self.release()
        else:
            self.hide()
        return made

    # Backward

    def _before_backward(self, _: Any = None) -> None:
        walk = mode.walks[-1]
        if self.walk is walk:
            return
        self.walk = walk
        self.gather()
        self.hide()
        waiting = _Backward.of(walk).waiting
        self.expected = {i for i, one in enumerate(self.trained) if one.whole.node in waiting}

    def _arrived(self, number: int) -> None:
        walk = mode.walks[-1]
        if self.walk is not walk:
            self._before_backward()  # its outputs had no hooks: they are not tensors, or in what nobody looks into
        backward = _Backward.of(walk)
        backward.waiting.discard(self.trained[number].whole.node)
        self.expected.discard(number)
        if self.expected:
            return
        self.walk = None
        if self.after_backward:
            self.release()
        if self.syncing:
            # The one before has been on its way while this one was computed.
            self._send()
            backward.sent.append(self)
            if len(backward.sent) > 1:
                backward.sent.pop(0).finish()
        if not backward.waiting:
            for one in backward.sent:
                one.finish()
            backward.sent.clear()

    def _send(self) -> None:
        with no_grad():
            self.sent = tuple(self._scatter(some) for some in _alike(self.trained))

    def _scatter(self, some: list[Slot]) -> Any:
        size = self.mesh.size()
        kind = self.policy.reduce_dtype or some[0].dtype
        columns = []
        for one in some:
            if one.whole.grad is None:
                flat = zeros(prod(one.shape), dtype=kind, device=self.mesh.device)
            else:
                flat = one.whole.grad.to(kind).reshape(-1)
            one.whole.grad = None
            columns.append(_lengthened(flat, size * one.count).reshape(size, one.count))
        blocks: Any = cat(columns, 1)
        out = blocks.new_empty((blocks.shape[1],))
        return (
            out,
            dist.reduce_scatter_tensor(out, blocks, dist.ReduceOp.AVG, self.mesh.get_group(), async_op=True),
            some,
        )

    def finish(self) -> None:
        """Wait for the averaged gradients, and add them to those of the parts."""
        sent, self.sent = self.sent, None
        with no_grad():
            for out, work, some in sent or ():
                work.wait()
                start = 0
                for one in some:
                    local = one.part._local_tensor
                    mine = out[start : start + local.numel()].reshape(local.shape).to(one.part.dtype).clone()
                    start += one.count
                    made = _wrapped(mine, self.mesh, (Shard(0),), one.shape)
                    one.part.grad = made if one.part.grad is None else one.part.grad + made


_leaves: weakref.WeakSet[Any] = weakref.WeakSet()  # of the tape, one for each whole parameter


class _Backward:
    """One backward: which whole parameters will still get a gradient, and whose gradients are on their way."""

    known: ClassVar[dict[int, tuple[Any, _Backward]]] = {}

    def __init__(self, walk: Any) -> None:
        self.waiting = {one for one in walk.reachable() if one in _leaves}
        self.sent: list[Unit] = []

    @classmethod
    def of(cls, walk: Any) -> _Backward:
        """The one that belongs to a walk."""
        key = id(walk)
        if key not in cls.known:
            cls.known[key] = (weakref.ref(walk, lambda _: cls.known.pop(key, None)), cls(walk))
        return cls.known[key][1]


def _alike(slots: Sequence[Slot]) -> list[list[Slot]]:
    """The parameters of each dtype."""
    groups: dict[Any, list[Slot]] = {}
    for one in slots:
        groups.setdefault(one.dtype, []).append(one)
    return list(groups.values())


def _lengthened(flat: Any, count: int) -> Any:
    return flat if flat.numel() == count else cat([flat, flat.new_zeros((count - flat.numel(),))])
