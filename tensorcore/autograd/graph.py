"""The tape as programs may touch it: hooks on saved tensors, on several gradients at once, and edges."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.autograd.edges import GradientEdge, get_gradient_edge
from tensorcore.errors import ArgumentError, GradientError
from tensorcore.ops.output import written
from tensorcore.ops.placement import host_device
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Handle, Node, is_leaf
from tensorcore.tensor import Tensor

__all__ = [
    "GradientEdge", "Node", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class saved_tensors_hooks:
    """Within it, what ops save for backward goes through ``pack_hook``, and through ``unpack_hook`` when it is needed.

    Args:
        pack_hook: takes a tensor, which it must not write to, and returns anything.
        unpack_hook: takes what ``pack_hook`` returned, and returns a tensor of the same values.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if mode.packing_disabled is not None:
            raise GradientError(mode.packing_disabled)
        mode.packers = (*mode.packers, (self.pack_hook, self.unpack_hook))
        mode.settle()

    def __exit__(self, *exc: object) -> None:
        mode.packers = mode.packers[:-1]
        mode.settle()


class save_on_cpu(saved_tensors_hooks):
    """Within it, what ops save for backward waits in host memory, and comes back to its device for the backward.

    Args:
        pin_memory: keep it in page-locked memory, from which transfers are fast.
        device_type: which kind of device pins it; the saved tensor's own does here.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack_hook(tensor: Tensor) -> tuple[Any, Tensor]:
            host: Tensor = tensor.to(host_device())
            if pin_memory and host is not tensor:
                host = host.pin_memory(tensor.device)
            return tensor.device, host

        def unpack_hook(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_hook, unpack_hook)


class disable_saved_tensors_hooks:
    """Within it, entering ``saved_tensors_hooks`` raises a RuntimeError with ``error_message``. A decorator too."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        if mode.packers:
            raise GradientError(self.error_message)
        self.before = mode.packing_disabled
        mode.packing_disabled = self.error_message

    def __exit__(self, *exc: object) -> None:
        mode.packing_disabled = self.before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with disable_saved_tensors_hooks(self.error_message):
                return function(*args, **kwargs)

        wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
        return wrapped


class _Handles:
    """Takes several hooks out at once."""

    def __init__(self, handles: list[Handle]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> _Handles:
    """Call ``fn`` once in each backward: with all gradients of ``tensors``, or with the first one.

    Args:
        tensors: those that require grad.
        fn: with ``mode="all"`` it takes a list of gradients, None for a tensor that the backward does not reach;
            with ``mode="any"`` the first gradient.
        mode: ``all`` waits until every gradient that this backward computes is there.
    """
    if mode not in ("all", "any"):
        raise ArgumentError(
            f"register_multi_grad_hook: expects mode to be 'any' or 'all', got {mode!r}; pass one of them"
        )
    tensors = tuple(tensors)
    lock = threading.Lock()
    if mode == "any":
        fired: list[Any] = [None]

        def first(g: Tensor) -> None:
            with lock:
                if fired[0] is _current():
                    return
                fired[0] = _current()
            fn(g)

        return _Handles([one.register_hook(first) for one in tensors])

    seen: dict[Any, list[Any]] = {}

    def hook_of(i: int) -> Callable[[Tensor], None]:
        def hook(g: Tensor) -> None:
            walk = _current()
            with lock:
                if walk not in seen:
                    seen.clear()  # what an earlier walk left when it ended in an error
                    seen[walk] = [_expected(walk, tensors), [None] * len(tensors)]
                held = seen[walk]
                held[1][i] = g
                held[0] -= 1
                complete = held[0] == 0
                if complete:
                    del seen[walk]
            if complete:
                fn(held[1])

        return hook

    return _Handles([one.register_hook(hook_of(i)) for i, one in enumerate(tensors)])


def _current() -> Any:
    """The walk that runs on this thread."""
    return mode.walks[-1]


def _expected(walk: Any, tensors: tuple[Tensor, ...]) -> int:
    """How many of the tensors a walk will reach."""
    reached = walk.reachable()
    return sum((one.node if is_leaf(one.node) else one.grad_fn) in reached for one in tensors)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Note a write to the memory of a tensor, or of several, that was made behind autograd's back."""
    for one in [tensor] if isinstance(tensor, Tensor) else tensor:
        written(one)
