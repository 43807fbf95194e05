"""Custom functions: a forward and a backward written by the user, recorded as one node."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from tensorcore.errors import ArgumentTypeError, GradientError
from tensorcore.ops.calls import pack, user_trace, written
from tensorcore.ops.inplace import attach, bare_node
from tensorcore.tape.mode import mode, no_grad
from tensorcore.tape.node import Node, Output, Packed, Version, freed, is_leaf, stale
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
        if self._node is None:
            return self._for_forward or self._saving
        node = self._node()
        return () if node is None else _saved(node)

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
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
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

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the forward, off the tape, and record it as one node if an argument requires grad."""
        op = cls._op
        ctx = FunctionCtx()
        if op.split:
            args = op.bind(args, kwargs)
        elif kwargs:
            raise ArgumentTypeError(
                f"{cls.__name__}.apply: apply() takes no keyword arguments, got {sorted(kwargs)}; pass them by position, or "
                f"define setup_context"
            )
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
            made = _Results(op, ctx, args, output, before and any(needs))
        finally:
            mode.enabled = before
            mode.settle()
        return made.recorded()


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

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        raise GradientError(
            "backward: expected one derivative, got a second one: trying to differentiate twice a function that was marked "
            "with @once_differentiable; write its backward in tensor operations and leave the mark out"
        )


_ONCE = _Once()


class _Own:
    """A saved tensor that is a result of the node itself: kept without its place on the tape, which would be a cycle."""

    __slots__ = ("device", "dtype", "index", "native", "version")

    def __init__(self, tensor: Tensor, index: int | None) -> None:
        self.native, self.dtype, self.device = tensor.native, tensor.dtype, tensor.device
        if tensor.version is None:
            tensor.version = Version()
        self.version, self.index = tensor.version, index

    def tensor(self, node: Node) -> Tensor:
        made = new_tensor(self.native, self.dtype, self.device)
        made.version = self.version
        made.node = node if self.index is None else Output(node, self.index)
        return made  # type: ignore[no-any-return]


class _FunctionOp:
    """What a node of one Function class knows: its name, and how to call the user's backward."""

    def __init__(self, cls: type[Function]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.node_name = f"{cls.__name__}Backward"
        self.split = cls.setup_context is not Function.setup_context
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

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        """Call the user's backward with a gradient for each result, and check what it returns."""
        ctx = node.options["ctx"]  # type: ignore[index]
        traits = ctx._traits
        given: list[Any] = g if isinstance(g, list) else [g if i == ctx._only else None for i in range(len(traits))]
        grads = []
        for one, trait in zip(given, traits, strict=True):
            if one is None and ctx._materialize and trait is not None:
                shape, dtype, device = trait
                one = new_tensor(device.kernels["full"](shape, 0, dtype=dtype), dtype, device)
            grads.append(one)
        cls = self.cls
        call = cls.backward
        if cls.vjp is not Function.vjp:
            if call is not Function.backward:
                raise GradientError(
                    f"{self.node_name}: Implementing both 'backward' and 'vjp' for a custom Function is not allowed, got both; "
                    f"leave one out"
                )
            call = cls.vjp
        returned = call(ctx, *grads)
        return self._checked(returned if isinstance(returned, tuple) else (returned,), node, ctx)

    def _checked(self, returned: tuple[Any, ...], node: Node, ctx: FunctionCtx) -> tuple[Any, ...]:
        expected = len(ctx._tensors)  # type: ignore[attr-defined]
        if len(returned) > expected and all(one is None for one in returned[expected:]):
            returned = returned[:expected]
        if len(returned) != expected:
            raise GradientError(
                f"{self.node_name}: expected a gradient (or None) for each of {expected} arguments, got {len(returned)}: the "
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
                    f"{self.node_name}: the function returned a gradient different than None at position {i + 1}, but the "
                    f"corresponding forward input was not a Variable; return None there"
                )
        return tuple([one for one, there in zip(returned, ctx._tensors, strict=True) if there])  # type: ignore[attr-defined]


class _Results:
    """The results of one call, and how they go on the tape."""

    def __init__(self, op: _FunctionOp, ctx: FunctionCtx, args: tuple[Any, ...], output: Any, recording: bool) -> None:
        self.op, self.ctx, self.args, self.output, self.recording = op, ctx, args, output, recording
        self.several = isinstance(output, tuple)
        self.outputs = list(output) if self.several else [output]
        self.inputs = {id(one): i for i, one in enumerate(args) if isinstance(one, Tensor)}
        self.dirty = {id(one) for one in ctx._dirty}
        self.constant = {id(one) for one in ctx._constant}
        tensors = [one for one in self.outputs if isinstance(one, Tensor)]
        if not self.dirty <= {id(one) for one in tensors}:
            raise GradientError(
                f"{op.name}: expected every tensor given to mark_dirty to be returned, got others: Some elements marked as "
                f"dirty during the forward method were not returned as output; return them"
            )
        for one in ctx._dirty:
            written(one)
            if id(one) not in self.inputs:
                warnings.warn(
                    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
                    "should be passed to ctx.mark_dirty()",
                    UserWarning,
                    stacklevel=4,
                )
            elif recording and is_leaf(one.node):
                raise GradientError(
                    f"{op.name}: a leaf Variable that requires grad has been used in an in-place operation, got one; "
                    f"give the function a clone() of it"
                )
            elif recording and one.origin is not None and len(tensors) > 1:
                raise GradientError(
                    f"{op.name}: expected one result, got {len(tensors)}: If your Function modifies inplace an input that is a "
                    f"view of another Tensor, your Function cannot return more than one Tensor; give it a clone()"
                )

    def recorded(self) -> Any:
        """The results as the caller gets them."""
        node = self._node() if self.recording else None
        made = [self._placed(one, i, node) for i, one in enumerate(self.outputs)]
        ctx = self.ctx
        if node is None:
            ctx._saving = ctx._for_forward = ()
        else:
            self._save(node, made)
        ctx._dirty = ctx._constant = ()
        return tuple(made) if self.several else made[0]

    def _node(self) -> Node:
        edges = tuple([one.node for one in self.args if isinstance(one, Tensor)])
        node = bare_node(self.op, edges, None, None)
        shapes = [tuple(one.native.shape) if isinstance(one, Tensor) else None for one in self.outputs]
        kinds = [one.dtype if isinstance(one, Tensor) else None for one in self.outputs]
        node.shape, node.dtype = (shapes, kinds) if self.several else (shapes[0], kinds[0])
        ctx: Any = self.ctx
        node.options = {"ctx": ctx}
        ctx._node = weakref.ref(node)
        ctx._tensors = tuple([isinstance(one, Tensor) for one in self.args])
        ctx._traits = [
            (tuple(one.native.shape), one.dtype, one.device) if isinstance(one, Tensor) else None for one in self.outputs
        ]
        ctx._only = next((i for i, one in enumerate(self.outputs) if isinstance(one, Tensor)), 0)
        return node

    def _placed(self, one: Any, i: int, node: Node | None) -> Any:
        """One result with its history."""
        if not isinstance(one, Tensor):
            return one
        is_input, is_dirty = id(one) in self.inputs, id(one) in self.dirty
        if node is None or id(one) in self.constant or one.dtype.kind not in ("floating", "complex"):
            if is_input and is_dirty and node is None:
                return one
            if is_input:
                return _alias(one)
            if one.node is not None:
                one = one.detach()
            return one
        edge = Output(node, i) if self.several else node
        if is_dirty and is_input:
            attach(one, edge, sum(isinstance(each, Tensor) for each in self.args[: self.inputs[id(one)]]))
            return one
        if is_input or is_leaf(one.node):
            one = _alias(one)
        elif one.origin is not None:
            one.origin.kind = "custom"
            one.version.watch(one)  # type: ignore[union-attr]
        one.node = edge
        return one

    def _save(self, node: Node, made: list[Any]) -> None:
        """Put what ``save_for_backward`` was given on the node."""
        ctx = self.ctx
        own = {id(one): i for i, one in enumerate(made) if isinstance(one, Tensor) and one.node is not None}
        kept: list[Any] = []
        for one in ctx._saving:
            if one is not None and id(one) in own:
                kept.append(_Own(one, own[id(one)] if self.several else None))
            else:
                kept.append(one)
        ctx._saving = ()
        ctx._keeps = bool(kept)
        if mode.anomaly:
            node.extra = {"trace": user_trace()}
        if mode.packers and kept:
            pair = mode.packers[-1]
            node.saved = Packed(tuple([_packed(one, pair) for one in kept]), pair[1])
        else:
            node.saved = tuple(kept)


def _packed(one: Any, pair: Any) -> Any:
    if one is None:
        return None
    if type(one) is _Own:
        detached = new_tensor(one.native, one.dtype, one.device)
        return pack(detached, pair)[0], one
    return pack(one, pair)


def _saved(node: Node) -> tuple[Any, ...]:
    """What the node saved as tensors in their places on the tape, unless one was written since."""
    saved = node.saved
    if saved is None:
        if not node.options["ctx"]._keeps:  # type: ignore[index]
            return ()
        raise freed(node)
    found: list[Any] = []
    packed = type(saved) is Packed
    for i, item in enumerate(saved.items if packed else saved):
        one = saved.get(item) if packed else item
        if packed and one is not None and type(one.node) is _Own:
            one.node = node if one.node.index is None else Output(node, one.node.index)
        elif type(one) is _Own:
            one = one.tensor(node)
        if one is not None and one.version is not None and one.version.stamp < node.order:
            raise stale(node, f"saved tensor {i}", one.version)
        found.append(one)
    return tuple(found)


def _alias(tensor: Tensor) -> Tensor:
    """A view of the whole tensor with a history of its own."""
    with no_grad():
        made: Tensor = tensor.expand(tensor.native.shape)  # type: ignore[attr-defined]
    made.origin.kind = "custom"
    made.version.watch(made)  # type: ignore[union-attr]
    return made


def _check_saved(op: str, tensors: tuple[Any, ...]) -> None:
    for i, one in enumerate(tensors):
        if one is not None and not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op}: {op} can only save variables, but argument {i} is of type {type(one).__name__}; "
                f"keep it as an attribute of ctx"
            )
