"""The lazy device: a backend that wraps another one and whose kernels write down what they would compute.

Tensors, ops and the tape work on it as on any device. Kernels run, on the wrapped backend, when a value is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend, Capabilities, Native
from tensorcore.backend.registry import device as find_device
from tensorcore.dtypes import dtype, from_numpy_dtype, get_default_dtype
from tensorcore.lazy.arrays import LazyArray, around
from tensorcore.lazy.calls import viewed
from tensorcore.lazy.record import (
    dense_form,
    leaf,
)
from tensorcore.lazy.recording import Recorder
from tensorcore.ops.inplace import share_version
from tensorcore.ops.placement import host_device
from tensorcore.printing import format_tensor
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, bare_node
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["LazyBackend", "over"]

Shape = tuple[int, ...]


class LazyBackend(Recorder):
    """A backend that writes down what another one would compute."""

    def __init__(self, target: Backend, index: int = 0) -> None:
        super().__init__(target, "lazy", index)
        # Not the host's: nobody may look at memory that has no values yet, or write to what several values share.
        self.capabilities = Capabilities(tuple(target.capabilities.dtypes), views=True)

    # What a backend is asked for

    def allocate(self, shape: Shape, dtype: dtype) -> LazyArray:
        one = dense_form(tuple(shape), dtype.numpy)
        target = self.target
        return around(leaf(one, maker=lambda: target.allocate(one.shape, dtype)), one)

    def from_host(self, array: np.ndarray) -> LazyArray:
        return self._later(np.array(array, order="C"))

    def share_host(self, array: np.ndarray) -> LazyArray:
        return self.from_host(array)

    def _later(self, array: np.ndarray) -> LazyArray:
        """An array that takes over a host array which nobody else has."""
        one = dense_form(array.shape, array.dtype)
        target = self.target
        return around(leaf(one, maker=lambda: target.share_host(array)), one)

    def to_host(self, native: Native) -> np.ndarray:
        host = self.target.to_host(self.make(native))
        if host.flags.writeable and self.target.capabilities.host:
            host = host.view()
            host.flags.writeable = False  # other values may share it
        return host

    def copy_from(self, other: Backend, native: Native) -> LazyArray:
        return self.keep(self.target.copy_from(other, native))

    def as_strided(self, native: LazyArray, shape: Shape, strides: Shape, offset: int) -> LazyArray:
        root = self._as(native.memory, native.dtype)
        options = {"shape": tuple(shape), "strides": tuple(strides), "offset": offset}
        return viewed(root, "as_strided", options)

    def storage(self, native: LazyArray) -> LazyArray:
        root = native.memory
        size = root.form.nbytes // root.form.dtype.itemsize
        flat = viewed(root, "as_strided", {"shape": (size,), "strides": (1,), "offset": 0})
        return self._as(flat, native.dtype)

    def _as(self, array: LazyArray, kind: Any) -> LazyArray:
        if array.dtype == kind:
            return array
        return viewed(array, "reinterpret", {"dtype": from_numpy_dtype(kind)})

    def layout(self, native: LazyArray) -> tuple[Shape, int]:
        return native.form.strides, native.form.offset

    # Asked for each gradient: without a frame of Python's.
    strides = attrgetter("form.strides")  # type: ignore[assignment]
    is_contiguous = attrgetter("form.dense")  # type: ignore[assignment]

    def storage_key(self, native: LazyArray) -> Any:
        return native.address

    def data_pointer(self, native: LazyArray) -> int:
        return native.address + native.form.offset * native.itemsize

    def as_native(self, value: Any) -> LazyArray:
        return value if type(value) is LazyArray else self.keep(self.target.as_native(value))

    def is_made(self, native: LazyArray) -> bool:
        return native.memory.value.native is not None

    def random(self, kind: str, shape: Shape, dtype: dtype, generator: Any = None, **options: Any) -> LazyArray:
        """Drawn at once, so that seeds, states and the order of draws are those of the wrapped backend."""
        return self.keep(self.target.random(kind, shape, dtype, generator, **options))

    def draw(self, op: str, function: Callable[..., np.ndarray], *natives: Native) -> LazyArray:
        return self.keep(self.target.draw(op, function, *[self.make(one) for one in natives]))

    def meet(self, other: Backend) -> Backend | None:
        return self if other is self.target or other is self else None

    def lift(self, tensor: Tensor) -> Tensor:
        """A copy of a tensor of the wrapped backend, as it is now: its memory may be written before it is read."""
        if tensor.device is self:
            return tensor
        native = self.keep(self.target.kernels["clone"](tensor.native))
        made = new_tensor(native, tensor.dtype, self)
        made.version = share_version(tensor)
        if tensor.node is not None and mode.enabled:
            made.node = bare_node(_LIFTED, (tensor.node,), native.shape, tensor.dtype)
            made.node.options = {"device": tensor.device}
        return made

    def describe(self, tensor: Tensor) -> str:
        """Without a value: whoever looks at a tensor, a debugger for instance, makes nothing."""
        fn = tensor.grad_fn
        text = format_tensor(
            None,
            dtype=tensor.dtype,
            shape=tuple(tensor.native.shape),
            device=str(self),
            grad_fn=None if fn is None else fn.name().rpartition(":")[2],
            requires_grad=tensor.node is not None,
            default_dtype=get_default_dtype(),
        )
        return "Parameter containing:\n" + text if tensor.__dict__.get("_is_param") else text

    def synchronize(self) -> None:
        self.target.synchronize()

    def threads(self, count: int | None = None) -> int:
        return self.target.threads(count)

    def benchmark(self, wanted: bool | None = None) -> bool:
        return self.target.benchmark(wanted)

    def codegen(self, wanted: bool | None = None) -> bool:
        return self.target.codegen(wanted)

    def memory_stats(self) -> dict[str, int]:
        return self.target.memory_stats()

    def reset_peak_memory_stats(self) -> None:
        self.target.reset_peak_memory_stats()

    def empty_cache(self) -> int:
        return self.target.empty_cache()

    def report(self) -> dict[str, str | int | float | bool | None]:
        return {"over": str(self.target), **self.target.report()}

    # The device as programs see it

    def __repr__(self) -> str:
        return f"device(type={str(self)!r})"

    def __str__(self) -> str:
        return "lazy" if self.target is host_device() else f"lazy:{self.target}"

    def __reduce__(self) -> Any:
        return over, (str(self.target),)


class _Lifted:
    """The op of a lazy copy of a tensor: its gradient goes to the tensor's own device."""

    node_name = "ToLazyBackward"

    def backward(self, node: Node, g: Tensor) -> tuple[Any, ...]:
        return (g.to((node.options or {})["device"]),)  # type: ignore[attr-defined]

    def tangents(self, node: Node, given: list[Any]) -> Tensor:
        return given[0]  # type: ignore[no-any-return]


_LIFTED = _Lifted()
_devices: dict[int, LazyBackend] = {}


def over(target: Any) -> LazyBackend:
    """The lazy device around a device; always the same one."""
    target = find_device(target) if isinstance(target, str) else target
    if isinstance(target, LazyBackend):
        return target
    found = _devices.get(id(target))
    if found is None:
        found = _devices[id(target)] = LazyBackend(target)
    return found
