"""Checkpointing: forget what a part of the program saved, and compute it again in the backward."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensorcore import ops
from tensorcore.accelerator import get_device_module
from tensorcore.autograd import backward
from tensorcore.autograd.function import Function
from tensorcore.autograd.graph import saved_tensors_hooks
from tensorcore.errors import ArgumentError, GradientError, TensorcoreError
from tensorcore.func.trees import tree_leaves
from tensorcore.ops.record import pack
from tensorcore.tape.mode import enable_grad, mode
from tensorcore.tape.node import Packed
from tensorcore.tensor import Tensor

__all__ = [
    "CheckpointError", "CheckpointFunction", "checkpoint", "checkpoint_sequential", "get_device_states", "noop_context_fn",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class CheckpointError(TensorcoreError, RuntimeError):
    """A function that did not do the same when it was computed again."""


def noop_context_fn() -> tuple[Any, Any]:
    """No context around the forward, and none around the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call ``function`` and save only its arguments; what its backward needs is computed again then.

    Args:
        function: must do the same in both runs; random numbers are the same by themselves.
        use_reentrant: False (recommended) recomputes as soon as the backward asks for a saved tensor. True runs the
            function off the tape and differentiates it inside the backward; no ``grad()``, no keywords then.
        context_fn: returns two context managers, for the forward and for the recomputation.
        determinism_check: ``default`` compares shape, dtype and device of what both runs save, ``none`` does not.
        debug: accepted; the error names the tensors by their order in any case.
        early_stop: end the recomputation once every tensor that was saved is there.
        kwargs: those of ``function``, and ``preserve_rng_state`` (True).

    Raises:
        CheckpointError: in the backward, if the function saved other tensors the second time.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly; use_reentrant=False is "
            "recommended, True is what happens now",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in ("default", "none"):
        raise ArgumentError(
            f"checkpoint: determinism_check should be one of ['default', 'none'], got {determinism_check!r}; pass one "
            "of them"
        )
    if use_reentrant:
        if kwargs:
            raise ArgumentError(
                f"checkpoint: Unexpected keyword arguments: {', '.join(kwargs)}, got them with use_reentrant=True; "
                f"pass use_reentrant=False"
            )
        if context_fn is not noop_context_fn or debug:
            raise ArgumentError(
                "checkpoint: Passing `context_fn` or `debug` is only supported when use_reentrant=False, got "
                "use_reentrant=True; pass use_reentrant=False"
            )
        if not any(isinstance(one, Tensor) and one.requires_grad for one in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
        return CheckpointFunction.apply(function, preserve, *args)
    forward_context, recompute_context = context_fn()
    if not mode.enabled:
        with forward_context:
            return function(*args, **kwargs)
    early_stop = early_stop if _settings.early_stop is None else _settings.early_stop
    frame = _Frame(function, args, kwargs, recompute_context, preserve, determinism_check != "none", early_stop)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call the functions one after the other, checkpointed in ``segments`` parts; the last part is not checkpointed.

    Args:
        functions: a Sequential, or a list of functions or modules of one argument.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly; "
            "use_reentrant=False is recommended, True is what happens now",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ArgumentError(f"checkpoint_sequential: Unexpected keyword arguments: {', '.join(kwargs)}; leave them out")
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def chain(some: list[Any]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for function in some:
                value = function(value)
            return value

        return run

    size = len(parts) // segments
    last = size * (segments - 1)
    for start in range(0, last, max(size, 1)):
        input = checkpoint(
            chain(parts[start : start + size]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return chain(parts[last:])(input)


class _Settings(threading.local):
    early_stop: bool | None = None


_settings = _Settings()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Within it, every checkpoint stops its recomputation early, or none does, whatever its own argument says."""
    before = _settings.early_stop
    _settings.early_stop = enable
    try:
        yield
    finally:
        _settings.early_stop = before


class _Complete(BaseException):
    """Ends a recomputation; no Exception, so that the function's own ``except Exception`` lets it pass."""


class _Frame:
    """One checkpointed call: how to run it again, and what it saved by its number."""

    def __init__(
        self, function: Any, args: Any, kwargs: Any, context: Any, preserve: bool, check: bool, early_stop: bool
    ) -> None:
        self.function, self.context, self.check, self.early_stop = function, context, check, early_stop
        # A checkpoint around this one, or save_on_cpu, takes care of the arguments as of any saved tensor.
        pair = mode.packers[-1] if mode.packers else None
        self.args = [_Kept(one, pair) for one in args]
        self.kwargs = {key: _Kept(one, pair) for key, one in kwargs.items()}
        self.random = _random_state() if preserve else None
        self.regions = _regions()
        self.saved: list[tuple[Any, ...]] = []  # shape, dtype and device of each saved tensor
        self.values: dict[int, Tensor] = {}  # recomputed, and not asked for yet
        self.walk: Any = None  # the backward that they were computed for

    def pack(self, tensor: Tensor) -> int:
        """Forget the tensor but for its number."""
        self.saved.append(_traits(tensor))
        return len(self.saved) - 1

    def unpack(self, number: int) -> Tensor:
        """The tensor of that number, computed again if need be."""
        walk = mode.walks[-1] if mode.walks else None
        if self.walk is None or self.walk() is not walk:
            self.values.clear()
        self.walk = None if walk is None else weakref.ref(walk)
        if number not in self.values:
            self.recompute()
        return self.values.pop(number)

    def recompute(self) -> None:
        """Run the function again, and keep what it saves."""
        values: dict[int, Tensor] = {}

        def keep(tensor: Tensor) -> Tensor:
            number = len(values)
            if number < len(self.saved) and self.check and _traits(tensor) != self.saved[number]:
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have different metadata than during the "
                    "forward "
                    f"pass, got for saved tensor {number} {_text(_traits(tensor))}, before "
                    f"{_text(self.saved[number])}; make "
                    f"the function do the same in both runs"
                )
            values[number] = tensor.detach()
            if self.early_stop and len(values) == len(self.saved):
                raise _Complete
            return tensor

        args = [one.get() for one in self.args]
        kwargs = {key: one.get() for key, one in self.kwargs.items()}
        # Unpacked here only by a function that differentiates inside.
        hooks = saved_tensors_hooks(keep, lambda tensor: tensor)
        with (
            _random_again(self.random),
            _again(self.regions),
            self.context,
            enable_grad(),
            contextlib.suppress(_Complete),
            hooks,
        ):
            self.function(*args, **kwargs)
        if len(values) != len(self.saved):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward and recomputation, "
                "got "
                f"{len(self.saved)} in the forward and {len(values)} in the recomputation; make the function do the "
                "same in "
                f"both runs"
            )
        self.values.update(values)


class _Kept:
    """An argument for the recomputation, and a check that nobody wrote to it in between."""

    def __init__(self, value: Any, pair: Any) -> None:
        self.packed: Any = None
        if isinstance(value, Tensor) and pair is not None:
            self.value, self.packed = pack(value, pair), Packed((), pair[1])
        else:
            self.value = value
        self.count = value._version if isinstance(value, Tensor) else 0

    def get(self) -> Any:
        if self.packed is not None:
            return self.packed.get(self.value)
        if isinstance(self.value, Tensor) and self.value._version != self.count:
            raise GradientError(
                "checkpoint: expected the arguments as they were in the forward, got one of the variables needed for "
                "gradient "
                f"computation modified by an inplace operation (it is at version {self.value._version}, expected "
                "version "
                f"{self.count}); write it out of place, or after the backward"
            )
        return self.value


class CheckpointFunction(Function):
    """Runs off the tape; its backward runs again on the tape, and differentiates that."""

    @staticmethod
    def forward(ctx: Any, function: Any, preserve: bool, *args: Any) -> Any:
        ctx.function = function
        ctx.random = _random_state() if preserve else None
        ctx.regions = _regions()
        ctx.args = [None if isinstance(one, Tensor) else one for one in args]
        ctx.places = [i for i, one in enumerate(args) if isinstance(one, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if mode.walks[-1].targets is not None:
            raise GradientError(
                "checkpoint: expected a backward() without inputs=, got another: When use_reentrant=True, "
                "torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward(); "
                "pass use_reentrant=False"
            )
        args = list(ctx.args)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = tensor.detach()
            if tensor.requires_grad:
                args[i].requires_grad_()
        with _random_again(ctx.random), _again(ctx.regions), enable_grad():
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (one, g)
            for one, g in zip(outputs, grads, strict=True)
            if isinstance(one, Tensor) and one.requires_grad and g is not None
        ]
        if not pairs:
            raise GradientError(
                "checkpoint: none of output has requires_grad=True, got constants; this checkpoint() is not necessary"
            )
        backward([one for one, _ in pairs], [g for _, g in pairs])
        return None, None, *[one.grad if isinstance(one, Tensor) and one.requires_grad else None for one in args]


def _traits(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.native.shape), tensor.dtype, tensor.device


def _text(traits: Iterable[Any]) -> str:
    shape, dtype, device = traits
    return f"shape {list(shape)}, {dtype} on {device}"


def _regions() -> Any:
    """The autocast regions around a forward; None where the program has not met autocast."""
    amp = sys.modules.get("tensorcore.amp.state")
    return None if amp is None else amp.regions()


def _again(regions: Any) -> Any:
    return contextlib.nullcontext() if regions is None else sys.modules["tensorcore.amp.state"].again(regions)


def _random_family() -> Any:
    """The ops that know the state of the random numbers, None where the library has none."""
    return next((family for family in ops.FAMILIES if hasattr(family, "get_rng_state")), None)


def _random_state() -> Any:
    """The state of the random numbers, and for a trace how many times it has drawn some."""
    family = _random_family()
    if family is None:
        return None
    with _unseen():
        return family.get_rng_state(), None if mode.tracer is None else len(mode.tracer.draws)


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """A replay need not touch the states of generators: it draws once, and computes again with what was drawn."""
    tracer = mode.tracer
    if tracer is not None:
        tracer.pause(True)
    try:
        yield
    finally:
        if tracer is not None:
            tracer.pause(False)


@contextlib.contextmanager
def _random_again(state: Any) -> Iterator[None]:
    """The random numbers as they were at ``state``; they go on from where they are after it."""
    family = _random_family()
    if state is None or family is None:
        yield
        return
    state, drawn = state
    tracer = mode.tracer if drawn is not None else None
    with _unseen():
        before = family.get_rng_state()
        family.set_rng_state(state)
    try:
        with contextlib.nullcontext() if tracer is None else tracer.drawing_again(drawn):
            yield
    finally:
        with _unseen():
            family.set_rng_state(before)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The accelerators that the tensors among ``args`` lie on, by index, and the state of each one's random numbers."""
    devices = [one.device for one in tree_leaves(args) if isinstance(one, Tensor) and not one.device.capabilities.host]
    return [one.index for one in devices], [get_device_module(one).get_rng_state(one) for one in devices]


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None) -> None:
    """Put back what ``get_device_states`` gave, on devices of the kind of the accelerator or of ``device_type``."""
    for index, state in zip(devices, states, strict=False):
        get_device_module(device_type).set_rng_state(state, index)
