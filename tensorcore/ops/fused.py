"""Ops that a backend may run as one fused kernel, forward and backward, and that otherwise decompose into others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.ops.define import Op, same
from tensorcore.ops.operands import common_device, lifted
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import fused_way
from tensorcore.tape.engine import key_of, walk
from tensorcore.tape.memory import next_order
from tensorcore.tape.mode import enable_grad, makers, mode
from tensorcore.tape.node import Node, Output, adding, arrived, leaf, stale, unpack
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Fused", "differentiate"]

new = object.__new__
makers.append(globals())

_alias = Op(
    "alias", "input", "The same tensor under another node.", grads=dict(input=same), kernel="alias", register=False
)


class Fused(Op):
    """One node whose gradient is the backend's backward kernel, or else that of its decomposition.

    The kernel ``{name}`` gets the inputs by position (None where there is none) and the options by
    keyword; it answers the result, or a tuple of it and of whatever its backward wants back. The kernel
    ``{name}_backward`` gets ``(g, *inputs, *rest)``, the options, and ``needs``, which says for
    each input whether its gradient is asked for; it answers a gradient or None for each input. One in the
    backend's ``adds_into`` may get ``into`` too, an array that it may add the first input's gradient to, and
    then gives in its place. While
    the walk is recorded (``create_graph``), or where there is no such kernel, the decomposition is
    run and differentiated instead.

    Args:
        decomposition: the op written in other ops: takes the inputs by position, the options by keyword.
        results: how many tensors it answers. Where that is more than one, the kernel answers so many before
            what its backward wants back, and its backward gets a list of gradients, None where there is none.
    """

    def __init__(self, name: str, inputs: str, doc: str, decomposition: Callable[..., Any], *,
                 kernel: str | None = None, backward_name: str | None = None, results: int = 1) -> None:  # fmt: skip
        super().__init__(name, inputs, doc, kernel=kernel, backward_name=backward_name, register=False)
        self.decomposition = decomposition
        self.results = results
        self.usual = fused_way(self.kernel, again) if results == 1 else None
        self.grads = dict.fromkeys(self.inputs, same)  # it is differentiable; ``backward`` is written below
        self.keeps_inputs = True
        everyone = tuple(range(len(self.inputs)))
        self.needed_for = tuple(everyone for _ in everyone)
        self.backward = self._run_backward

    def __call__(self, inputs: Sequence[Tensor | None], options: dict[str, Any], dtype: Any = None) -> Any:
        """Run and record; shapes and dtypes are checked already."""
        if self.usual is not None and (done := self.usual(inputs, options, dtype)) is not None:
            return done
        device = inputs[0].device if isinstance(inputs[0], Tensor) else None
        natives, taped = [], False
        for one in inputs:
            if one is None:
                natives.append(None)
            elif isinstance(one, Tensor) and one.device is device:
                natives.append(one.native)
                if one.node is not None:
                    taped = True
            else:
                device = common_device(self.name, inputs)
                inputs = lifted(self.name, *inputs)
                natives, taped = [None if one is None else one.native for one in inputs], True
                break
        kernel = device.kernels[self.kernel]  # type: ignore[union-attr]
        if not kernel:
            return self.decomposition(*inputs, **options)
        try:
            native = kernel(*natives, **options)
        except MemoryError as error:
            native = again(device, self.kernel, natives, options, error)  # type: ignore[arg-type]
        rest: tuple[Any, ...] = ()
        if self.results > 1:
            dtype = dtype or inputs[0].dtype  # type: ignore[union-attr]
            several = [new_tensor(one, dtype, device) for one in native[: self.results]]
            return tuple(self._recorded(several, inputs, options, native[self.results :]))
        if type(native) is tuple:
            native, *more = native
            rest = tuple(more)
        made = new(Tensor)
        made.native = native
        made.dtype = dtype or inputs[0].dtype  # type: ignore[union-attr]
        made.device = device
        made.node = made.version = made.trail = None
        return self._recorded(made, inputs, options, rest) if taped else made

    def with_rest(
        self, inputs: Sequence[Tensor | None], options: dict[str, Any]
    ) -> tuple[Tensor, tuple[Any, ...] | None]:
        """The result, and the natives that the kernel keeps for its backward; None of them without a kernel."""
        device = common_device(self.name, inputs)
        inputs = lifted(self.name, *inputs)
        kernel = device.kernels[self.kernel]
        if not kernel:
            return self.decomposition(*inputs, **options), None
        native, *rest = _run(device, self.kernel, [None if one is None else one.native for one in inputs], options)
        made = new_tensor(native, inputs[0].dtype, device)  # type: ignore[union-attr]
        return self._recorded(made, inputs, options, tuple(rest)), tuple(rest)

    def _recorded(self, made: Any, inputs: Any, options: dict[str, Any], rest: tuple[Any, ...]) -> Any:
        if mode.enabled:
            for one in inputs:
                if one is not None and one.node is not None:
                    several = self.results > 1
                    first = made[0] if several else made
                    if mode.plain and first.dtype.is_floating_point and not (several and first.device.wraps):
                        node = new(Node)
                        node.op = self
                        node.edges = tuple([None if one is None else one.node for one in inputs])
                        node.saved = tuple(inputs)
                        node.options = options
                        node.extra = node.version = None
                        node.out = rest
                        node.shape = [one.native.shape for one in made] if several else first.native.shape
                        node.dtype = [first.dtype] * self.results if several else first.dtype
                        node.order = next_order()
                        if several:
                            for i, one in enumerate(made):
                                one.node = Output(node, i)
                        else:
                            made.node = node
                        return made
                    record(self, inputs, options, made)
                    (first.node.node if several else made.node).out = rest
                    break
        return made

    def _run_backward(self, node: Node, g: Any, edges: Any = None) -> tuple[Any, ...]:
        inputs = node.saved if type(node.saved) is tuple else unpack(node)
        for name, one in zip(self.inputs, inputs, strict=True):
            if one is not None and one.version is not None and one.version.stamp < node.order:
                raise stale(node, name, one.version)
        needs = tuple([edge is not None for edge in edges or node.edges])
        several = type(g) is list
        device = next(one.device for one in g if one is not None) if several else g.device
        kernel = None if mode.enabled else device.kernels[f"{self.kernel}_backward"]
        options = node.options or {}
        if not kernel:
            return differentiate(lambda *twins: self.decomposition(*twins, **options), inputs, g, needs)
        sent = [None if one is None else one.native for one in g] if several else g.native
        natives = [sent, *[None if one is None else one.native for one in inputs], *node.out]
        total = None
        if self.kernel in device.adds_into and needs[0] and g.dtype.itemsize >= 4 and mode.tracer is None:
            total = arrived(node, node.edges[0], g)
        if total is None:
            grads = _run(device, f"{self.kernel}_backward", natives, {"needs": needs, **options})
        else:
            with adding(total):  # and without another try where memory runs out: a part may have been added
                grads = kernel(*natives, needs=needs, into=total.native, **options)
        if grads is None:  # a combination that the kernel leaves to the decomposition
            return differentiate(lambda *twins: self.decomposition(*twins, **options), inputs, g, needs)
        return tuple(
            [
                new_tensor(one, inputs[i].dtype, device)
                if one is not None and needs[i] and (total is None or one is not total.native)
                else None
                for i, one in enumerate(grads)
            ]
        )


def _run(device: Any, name: str, natives: Sequence[Any], options: dict[str, Any]) -> Any:
    try:
        return device.kernels[name](*natives, **options)
    except MemoryError as error:
        return again(device, name, natives, options, error)


def differentiate(
    function: Callable[..., Any], inputs: Sequence[Tensor | None], g: Any, needs: Sequence[bool] | None = None
) -> tuple[Any, ...]:
    """The gradients of ``function(*inputs)`` for the incoming gradient ``g``, recorded if this thread records.

    Of a function with several results ``g`` is a list, with None for those that no gradient came to.

    Args:
        needs: which inputs' gradients are asked for; those that require grad where None.
    """
    create = mode.enabled
    if needs is None:
        needs = [one is not None and (one.node is not None or not create) for one in inputs]
    twins: list[Tensor | None] = []
    for one, needed in zip(inputs, needs, strict=True):
        if one is None or not needed:
            twins.append(one)
        elif create and one.node is not None:
            twins.append(_twin(one))
        else:
            twin = new_tensor(one.native, one.dtype, one.device)
            twin.node = leaf(twin)
            twins.append(twin)
    with enable_grad():
        made = function(*twins)
    pairs = zip(made, g, strict=True) if type(g) is list else [(made, g)]
    roots = [(one.node, mine) for one, mine in pairs if mine is not None and one.node is not None]
    if not roots:
        return tuple([None for _ in inputs])
    keys = [
        key_of(twin.node) if needed and twin is not None else None for twin, needed in zip(twins, needs, strict=True)
    ]
    found = walk(roots, retain=create, create=create, targets={key for key in keys if key is not None})
    return tuple([None if key is None else found.get(key) for key in keys])


def _twin(tensor: Tensor) -> Tensor:
    """The tensor behind a node of its own, where a walk that asks for its gradient stops."""
    twin = new_tensor(tensor.native, tensor.dtype, tensor.device)
    record(_alias, (tensor,), None, twin)
    return twin
