"""Custom functions: a forward and a backward written by the user, recorded as one node."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from tensorcore.autograd.recording import Results, plain, saved
from tensorcore.errors import ArgumentTypeError, GradientError
from tensorcore.ops.operands import lifted
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, bare_node
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What the forward of a Function leaves for its backward; attributes of your own are kept too.

    Attributes:
        needs_input_grad: for each argument of ``apply``, whether it is a tensor that requires grad.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _saving: tuple[Any, ...] = ()
    _for_forward: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _constant: frozenset[int] | tuple[Any, ...] = ()
    _materialize = True
    _keeps = False
    _places: tuple[Any, ...] = ()
    _forwarding = False
    _node: Any = None  # a weak reference: the node holds this object

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for ``saved_tensors``; writes to them in between are found out there."""
        _check_saved("save_for_backward", tensors)
        self._saving = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for ``jvp``."""
        _check_saved("save_for_forward", tensors)
        self._for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Tell which inputs the forward wrote to; each of them must be returned."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Tell which results have no gradient."""
        self._constant = args

    def set_materialize_grads(self, value: bool) -> None:
        """With False, the backward gets None instead of zeros for a result that was not used."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to ``save_for_backward``."""
        if self._node is None or (self._forwarding and self._for_forward):
            return self._for_forward or self._saving
        node = self._node()
        return () if node is None else saved(node)

    def name(self) -> str:
        """The name of the node, e.g. ``MyFunctionBackward``."""
        return str(self._node().name())

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """Where the gradients go next."""
        found: tuple[Any, ...] = self._node().next_functions
        return found

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's own notes."""
        found: dict[Any, Any] = self._node().metadata
        return found


class Function:
    """A differentiable function of your own; call it with ``apply``.

    A subclass defines ``forward(ctx, *args)``, or ``forward(*args)`` together with
    ``setup_context(ctx, inputs, output)``, and ``backward(ctx, *grads)``, which returns a gradient (or None)
    for each argument; all of them static. The backward is written in tensor operations, so it can be
    differentiated again.
    """

    _op: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._op = _FunctionOp(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke "
            f"them on the class itself: {type(self).__name__}.apply(...)",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise GradientError(
            f"{type(self).__name__}: expected a call of apply, got one of an instance: Legacy autograd function with "
            f"non-static forward method is deprecated; use {type(self).__name__}.apply(...) with static methods"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; with a first argument ``ctx`` unless ``setup_context`` is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note on ``ctx`` what the backward needs, where ``forward`` has no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradient of each argument of the forward, from that of each result."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangent of each result, from that of each argument."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The results for many examples at once, and the dims that count these.

        Without it the forward runs on all examples as it is. ``info`` has ``batch_size`` and ``randomness``.
        """
        raise NotImplementedError("You must implement the vmap staticmethod, or leave it to the forward.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the forward, off the tape, and record it as one node if an argument requires grad."""
        op = cls._op
        ctx = FunctionCtx()
        if op.split:
            args = op.bind(args, kwargs)
        elif kwargs:
            raise ArgumentTypeError(
                f"{cls.__name__}.apply: apply() takes no keyword arguments, got {sorted(kwargs)}; pass them by "
                "position, or "
                f"define setup_context"
            )
        if mode.levels:
            from tensorcore.func.vmapping import call_mapped

            # What is no tensor, such as a string, is passed on.
            tensors: Any = [one for one in args if isinstance(one, Tensor)]
            tensors = iter(lifted(cls.__name__, *tensors) if tensors else ())
            args = tuple([next(tensors) if isinstance(one, Tensor) else one for one in args])
            if op.maps:
                return call_mapped(cls, args)
        ctx.needs_input_grad = needs = tuple([isinstance(one, Tensor) and one.node is not None for one in args])
        before = mode.enabled
        mode.enabled = False
        mode.settle()
        try:
            if op.split:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
            recording = before and True in needs
            if recording and op.forwards:
                ctx._places = tuple([_place_of(one) for one in args])
            usual = recording and plain(op, ctx, args, output)
            results = None if usual else Results(op, ctx, args, output, recording)
        finally:
            mode.enabled = before
            mode.settle()
        return output if results is None else results.recorded()


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that cannot be differentiated itself: a second derivative through it raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        recording = mode.enabled
        mode.enabled = False
        mode.settle()
        try:
            grads = fn(ctx, *args)
        finally:
            mode.enabled = recording
            mode.settle()
        edges = tuple([one.node for one in args if isinstance(one, Tensor) and one.node is not None])
        if not recording or not edges:
            return grads
        several = grads if isinstance(grads, tuple) else (grads,)
        made = []
        for g in several:
            if isinstance(g, Tensor):
                g = g.detach()
                g.node = bare_node(_ONCE, edges, tuple(g.native.shape), g.dtype)
            made.append(g)
        return tuple(made)

    return wrapper


class _Once:
    """The op of gradients that came out of a ``once_differentiable`` backward."""

    node_name = "DelayedErrorBackward"

    def backward(self, node: Node, g: Any, edges: Any = None) -> tuple[Any, ...]:
        raise GradientError(
            "backward: expected one derivative, got a second one: trying to differentiate twice a function that was "
            "marked "
            "with @once_differentiable; write its backward in tensor operations and leave the mark out"
        )


_ONCE = _Once()


class _FunctionOp:
    """What a node of one Function class knows: its name, and how to call the user's backward."""

    def __init__(self, cls: type[Function]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.node_name = f"{cls.__name__}Backward"
        self.split = cls.setup_context is not Function.setup_context
        self.forwards = cls.jvp is not Function.jvp
        self.maps = cls.vmap is not Function.vmap
        self._signature: inspect.Signature | None = None

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in, as ``setup_context`` gets them."""
        if self._signature is None:
            self._signature = inspect.signature(self.cls.forward)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args

    def saved_value(self, node: Node, name: str) -> Any:
        raise AttributeError(f"{node.name()} has no attribute {name!r}; what its forward saved is in saved_tensors")

    def backward(self, node: Node, g: Any, edges: Any = None) -> tuple[Any, ...]:
        """Call the user's backward with a gradient for each result, and check what it returns.

        As in PyTorch, ``needs_input_grad`` says what the forward call saw, whichever gradients a walk asks for.
        """
        ctx = node.options["ctx"]  # type: ignore[index]
        traits = ctx._traits
        if type(g) is not list and len(traits) == 1:
            returned = self._call()(ctx, g)
            if type(returned) is Tensor and ctx._tensors == [True]:
                return (returned,)
            return self._checked(returned if isinstance(returned, tuple) else (returned,), node, ctx)
        given: list[Any] = g if isinstance(g, list) else [g if i == ctx._only else None for i in range(len(traits))]
        grads = []
        for one, trait in zip(given, traits, strict=True):
            if one is None and ctx._materialize and trait is not None:
                shape, dtype, device = trait
                one = new_tensor(device.kernels["full"](shape, 0, dtype=dtype), dtype, device)
            grads.append(one)
        returned = self._call()(ctx, *grads)
        return self._checked(returned if isinstance(returned, tuple) else (returned,), node, ctx)

    def tangents(self, node: Node, given: list[Any]) -> Any:
        """Call the user's jvp with a tangent for each argument, and check what it returns."""
        ctx: Any = node.options["ctx"]  # type: ignore[index]
        left = iter(given)
        arguments = []
        for i, there in enumerate(ctx._tensors):
            one = next(left) if there else None
            place = ctx._places[i] if ctx._places else None
            if one is None and place is not None and ctx._materialize:
                shape, dtype, device = place
                one = new_tensor(device.kernels["full"](shape, 0, dtype=dtype), dtype, device)
            arguments.append(one)
        ctx._forwarding = True
        try:
            returned = self.cls.jvp(ctx, *arguments)
        finally:
            ctx._forwarding = False
        several = type(node.shape) is list
        found = returned if isinstance(returned, tuple) else (returned,)
        if len(found) != len(ctx._traits):
            raise GradientError(
                f"{self.name}: Function's jvp returned an invalid number of forward gradients (expected "
                f"{len(ctx._traits)} but got {len(found)}); return one, or None, for each result"
            )
        for one in found:
            if one is not None and not isinstance(one, Tensor):
                raise GradientError(
                    f"{self.name}: expected Variable or None (got {type(one).__name__}) from jvp; return a tensor"
                )
        return {i: one for i, one in enumerate(found) if one is not None} if several else found[0]

    def _call(self) -> Callable[..., Any]:
        cls = self.cls
        call = cls.backward
        if cls.vjp is not Function.vjp:
            if call is not Function.backward:
                raise GradientError(
                    f"{self.node_name}: Implementing both 'backward' and 'vjp' for a custom Function is not allowed, "
                    "got both; "
                    f"leave one out"
                )
            call = cls.vjp
        return call

    def _checked(self, returned: tuple[Any, ...], node: Node, ctx: FunctionCtx) -> tuple[Any, ...]:
        expected = len(ctx._tensors)  # type: ignore[attr-defined]
        if len(returned) > expected and all(one is None for one in returned[expected:]):
            returned = returned[:expected]
        if len(returned) != expected:
            raise GradientError(
                f"{self.node_name}: expected a gradient (or None) for each of {expected} arguments, got "
                f"{len(returned)}: the "
                f"function returned an incorrect number of gradients (expected {expected}, got {len(returned)})"
            )
        for i, one in enumerate(returned):
            if one is None:
                continue
            if not isinstance(one, Tensor):
                raise GradientError(
                    f"{self.node_name}: expected Variable or None (got {type(one).__name__}) as gradient {i + 1}; "
                    f"return a tensor of the argument's shape"
                )
            if not ctx._tensors[i]:  # type: ignore[attr-defined]
                raise GradientError(
                    f"{self.node_name}: the function returned a gradient different than None at position {i + 1}, but "
                    "the "
                    f"corresponding forward input was not a Variable; return None there"
                )
        return tuple([one for one, there in zip(returned, ctx._tensors, strict=True) if there])  # type: ignore[attr-defined]


def _place_of(one: Any) -> Any:
    """What zeros in the place of an argument would be like, None for one that has no tangent."""
    if not isinstance(one, Tensor) or one.dtype.kind not in ("floating", "complex"):
        return None
    return tuple(one.native.shape), one.dtype, one.device


def _check_saved(op: str, tensors: tuple[Any, ...]) -> None:
    for i, one in enumerate(tensors):
        if one is not None and not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op}: {op} can only save variables, but argument {i} is of type {type(one).__name__}; "
                f"keep it as an attribute of ctx"
            )
