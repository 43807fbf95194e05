"""Levels of vmap: a backend that wraps another one and shows its arrays without the dim that is mapped over.

A tensor on such a backend has the shape of one example; its kernels run on all examples at once. The tape, the
formulas and every op work on it as on any tensor. Tensors enter a level, leave it, and are lifted to it (the same
value for every example) by ops whose gradients are each other: what enters leaves, what is lifted is summed up.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend, Capabilities, Kernel, KernelTable
from tensorcore.dtypes import dtype
from tensorcore.errors import GradientError, ValuesMissing
from tensorcore.func.arrays import BatchedArray
from tensorcore.func.kernels import batched_kernel
from tensorcore.ops.inplace import share_version
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, bare_node
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["BatchedBackend", "Level", "enter", "leave", "lift", "to_active"]

Shape = tuple[int, ...]
_ids = itertools.count()


class Level:
    """One vmap under way.

    Attributes:
        id: its place among all levels; later ones lie around earlier ones.
        size: how many examples there are.
        randomness: ``error``, ``same`` (one draw for all examples) or ``different``.
    """

    def __init__(self, size: int, randomness: str) -> None:
        self.id = next(_ids)
        self.size = size
        self.randomness = randomness
        self._backends: dict[int, BatchedBackend] = {}

    def over(self, device: Any) -> BatchedBackend:
        """The backend of this level around ``device``; beneath the later levels that are around it already."""
        if isinstance(device, BatchedBackend) and device.level.id >= self.id:
            return device if device.level is self else device.level.over(self.over(device.inner))
        found = self._backends.get(id(device))
        if found is None:
            found = self._backends[id(device)] = BatchedBackend(self, device)
        return found

    def drawn(self, op: str, device: Any) -> Any:
        """Where a random tensor is made that a program asks for on ``device``."""
        if self.randomness == "error":
            raise GradientError(
                f"{op}: vmap: called random operation while in randomness error mode, got one; please either use the "
                f"'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
        return device if self.randomness == "same" else self.over(device)

    def written(self, op: str, device: Any) -> None:
        """Raise where random numbers cannot be written over a tensor on ``device``."""
        if self.drawn(op, device) is not device and self not in levels(device):
            raise GradientError(
                f"{op}: vmap: Cannot ask for different inplace randomness on an unbatched tensor, got one. This will "
                f"appear like same randomness. If this is necessary for your usage, please file an issue with functorch; "
                f"draw into a new tensor"
            )


class BatchedBackend(Backend):
    """One level around one backend."""

    array = BatchedArray
    many = True

    def __init__(self, level: Level, inner: Backend) -> None:
        self.level = level
        self.inner = self.wraps = inner
        self.numbered = inner.numbered
        known = inner.capabilities
        # Not the host's: whoever looks at values directly would see all examples.
        self.capabilities = Capabilities(tuple(known.dtypes), values=known.values, views=known.views)
        self.name, self.index = inner.name, inner.index
        self.kernels = KernelTable(self)

    # Arrays of this level, and of what lies beneath it

    def take(self, native: Any) -> tuple[Any, bool]:
        """The wrapped array, and whether its first dim counts the examples."""
        if type(native) is BatchedArray and native.level is self.level:
            return native.inner, native.batched
        return native, False

    def make(self, inner: Any, batched: bool) -> BatchedArray:
        """An array of this level."""
        return BatchedArray(self.level, inner, batched)

    def as_native(self, value: Any) -> BatchedArray:
        if type(value) is BatchedArray and value.level is self.level:
            return value
        return self.make(self.inner.as_native(value) if type(value) is not self.inner.array else value, False)

    def meet(self, other: Backend) -> Backend | None:
        if base(other) is not base(self):
            return None
        found = other
        for level in levels(self):
            found = level.over(found)
        return found

    def home(self, native: Any) -> Backend:
        """The device of a native array: this one, or one that it is made of."""
        device: Any = self
        while type(device) is type(self) and not (type(native) is BatchedArray and native.level is device.level):
            device = device.inner
        return device  # type: ignore[no-any-return]

    def lift(self, tensor: Tensor) -> Tensor:
        return lift(tensor, self)

    def describe(self, tensor: Tensor) -> str:
        value = repr(leave(tensor.detach(), self.level, 0)).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={len(levels(self))}, bdim=0, value=\n    {value}\n)"

    # What a backend is asked for

    def allocate(self, shape: Shape, dtype: dtype) -> BatchedArray:
        return self.make(self.inner.allocate((self.level.size, *shape), dtype), True)

    def from_host(self, array: np.ndarray) -> BatchedArray:
        return self.make(self.inner.from_host(array), False)

    def share_host(self, array: np.ndarray) -> BatchedArray:
        return self.make(self.inner.share_host(array), False)

    def to_host(self, native: Any) -> np.ndarray:
        inner, batched = self.take(native)
        if batched:
            raise _Unseen(
                "vmap: It looks like you're calling .item() on a Tensor, or attempting to use a Tensor in some "
                "data-dependent control flow, got one with a value for each example. We don't support vmap over that; "
                "use torch.where, or compute it outside of vmap"
            )
        return self.inner.to_host(inner)

    def all_values(self, native: Any) -> np.ndarray:
        return self.inner.all_values(self.take(native)[0])

    def as_strided(self, native: Any, shape: Shape, strides: Shape, offset: int) -> BatchedArray:
        inner, batched = self.take(native)
        if batched:
            step = self.inner.strides(inner)[0]
            shape, strides = (self.level.size, *shape), (step, *strides)
        made = self.make(self.inner.as_strided(inner, shape, strides, offset), batched)
        made.viewed = True
        return made

    def layout(self, native: Any) -> tuple[Shape, int]:
        inner, batched = self.take(native)
        strides, offset = self.inner.layout(inner)
        return strides[batched:], offset

    def strides(self, native: Any) -> Shape:
        inner, batched = self.take(native)
        return self.inner.strides(inner)[batched:]

    def storage(self, native: Any) -> BatchedArray:
        return self.make(self.inner.storage(self.take(native)[0]), False)

    def storage_key(self, native: Any) -> Any:
        return self.inner.storage_key(self.take(native)[0])

    def data_pointer(self, native: Any) -> int:
        return self.inner.data_pointer(self.take(native)[0])

    def random(self, kind: str, shape: Shape, dtype: dtype, generator: Any = None, **options: Any) -> BatchedArray:
        different = self.level.drawn(kind, self.inner) is not self.inner
        shape = (self.level.size, *shape) if different else shape
        return self.make(self.inner.random(kind, shape, dtype, generator, **options), different)

    def draw(self, op: str, function: Any, *natives: Any) -> BatchedArray:
        different = self.level.drawn(op, self.inner) is not self.inner
        inner = [self.take(one) for one in natives]
        if not different:
            if any(batched for _, batched in inner):
                raise GradientError(
                    f"{op}: Vmap does not currently support same randomness with a batched tensor input, got one; please use "
                    f"the 'different' randomness flag"
                )
            return self.make(self.inner.draw(op, function, *[one for one, _ in inner]), False)
        index = self.inner.kernels["index"]
        drawn = [
            self.inner.draw(op, function, *[index(one, key=(i,)) if batched else one for one, batched in inner])
            for i in range(self.level.size)
        ]
        return self.make(self.inner.kernels["stack"](drawn, dim=0), True)

    def find_kernel(self, name: str) -> Kernel | None:
        return batched_kernel(self, name)

    # The device as programs see it: the wrapped one

    @property
    def type(self) -> str:
        return self.inner.type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and base(other) is base(self)

    def __hash__(self) -> int:
        return hash(base(self))

    def __reduce__(self) -> Any:
        return self.inner.__reduce__()


class _Unseen(ValuesMissing, GradientError):
    """The values of a batched tensor were asked for."""


def base(device: Any) -> Any:
    """The backend that no level is around."""
    while isinstance(device, BatchedBackend):
        device = device.inner
    return device


def levels(device: Any) -> list[Level]:
    """The levels around a backend, the outermost first."""
    found = []
    while isinstance(device, BatchedBackend):
        found.append(device.level)
        device = device.inner
    return found


# Into a level, out of it, up to it


class _Enter:
    """The op of a tensor whose one dim becomes the examples of a level."""

    node_name = "AddBatchDimBackward"

    def backward(self, node: Node, g: Tensor) -> tuple[Any, ...]:
        return (leave(g, **node.options or {}),)

    def tangents(self, node: Node, given: list[Any]) -> Tensor:
        return enter(given[0], **node.options or {})


class _Leave:
    """The op of a tensor whose examples become a dim again."""

    node_name = "RemoveBatchDimBackward"

    def backward(self, node: Node, g: Tensor) -> tuple[Any, ...]:
        return (enter(g, **node.options or {}),)

    def tangents(self, node: Node, given: list[Any]) -> Tensor:
        return leave(given[0], **node.options or {})


class _Lift:
    """The op of a tensor that all examples of some levels share: its gradient is the sum over all of them."""

    node_name = "ExpandBatchDimBackward"

    def backward(self, node: Node, g: Tensor) -> tuple[Any, ...]:
        options = node.options or {}
        for level in levels(options["target"]):
            if level not in levels(options["source"]):
                g = leave(g, level, 0).sum(0)  # type: ignore[attr-defined]
        return (g,)

    def tangents(self, node: Node, given: list[Any]) -> Tensor:
        return lift(given[0], (node.options or {})["target"])


_ENTER, _LEAVE, _LIFT = _Enter(), _Leave(), _Lift()


def enter(tensor: Tensor, level: Level, dim: int) -> Tensor:
    """The tensor as one of the level: ``dim`` counts the examples and is no dim any more."""
    made = new_tensor(_entered(tensor.native, tensor.device, level, dim), tensor.dtype, level.over(tensor.device))
    return _recorded(_ENTER, tensor, made, {"level": level, "dim": dim})


def leave(tensor: Tensor, level: Level, dim: int) -> Tensor:
    """The tensor outside the level, with the examples along ``dim``."""
    device = _without(tensor.device, level)
    made = new_tensor(_left(tensor.native, tensor.device, level, dim), tensor.dtype, device)
    return _recorded(_LEAVE, tensor, made, {"level": level, "dim": dim})


def lift(tensor: Tensor, device: Backend) -> Tensor:
    """The tensor on a backend of more levels, the same for every example of these."""
    target = tensor.device.meet(device) or device.meet(tensor.device)
    if target is None or target is tensor.device:
        return tensor
    native = tensor.native
    if not (type(native) is BatchedArray and native.level is target.level):  # type: ignore[attr-defined]
        native = BatchedArray(target.level, native, False)  # type: ignore[attr-defined]
        native.viewed = True
    options = {"target": target, "source": tensor.device}
    return _recorded(_LIFT, tensor, new_tensor(native, tensor.dtype, target), options)


def to_active(tensor: Tensor) -> Tensor:
    """The tensor on the levels that are under way on this thread."""
    for level in mode.levels:
        tensor = lift(tensor, level.over(tensor.device))
    return tensor


def _recorded(op: Any, tensor: Tensor, made: Tensor, options: dict[str, Any]) -> Tensor:
    made.version = share_version(tensor)
    if tensor.node is not None and mode.enabled:
        made.node = bare_node(op, (tensor.node,), tuple(made.native.shape), made.dtype)
        made.node.options = options
    return made


def _without(device: Any, level: Level) -> Any:
    if not isinstance(device, BatchedBackend) or device.level.id < level.id:
        return device
    return device.inner if device.level is level else device.level.over(_without(device.inner, level))


def _entered(native: Any, device: Any, level: Level, dim: int) -> BatchedArray:
    if isinstance(device, BatchedBackend) and device.level.id > level.id:
        inner, batched = device.take(native)
        made = device.make(_entered(inner, device.inner, level, dim + batched), batched)
    else:
        made = BatchedArray(level, _moved(native, device, dim, 0), True)
    made.viewed = True
    return made


def _left(native: Any, device: Any, level: Level, dim: int) -> Any:
    if isinstance(device, BatchedBackend) and device.level.id > level.id:
        inner, batched = device.take(native)
        made = device.make(_left(inner, device.inner, level, dim + batched), batched)
        made.viewed = True
        return made
    inner, batched = native, False
    if isinstance(device, BatchedBackend) and device.level is level:
        inner, batched = device.take(native)
        device = device.inner
    if not batched:
        inner = device.kernels["expand"](inner, shape=(level.size, *inner.shape))
    return _moved(inner, device, 0, dim)


def _moved(native: Any, device: Any, source: int, target: int) -> Any:
    if source == target:
        return native
    dims = [i for i in range(len(native.shape)) if i != source]
    dims.insert(target, source)
    return device.kernels["permute"](native, dims=tuple(dims))
