"""Views: tensors that show the memory of another one in a different shape, order or part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from tensorcore.ops.define import Op
from tensorcore.ops.inplace import share_version
from tensorcore.ops.record import record
from tensorcore.shortcuts import before
from tensorcore.tape.memory import Version, next_order, own_trail
from tensorcore.tape.mode import mode, unusual
from tensorcore.tape.node import Node
from tensorcore.tensor import Tensor

__all__ = ["several_views", "viewing"]

new = object.__new__


def viewing(op: Op, dtype_of: Callable[[Any], Any] | None = None) -> Callable[..., Tensor]:
    """The call of a view op: ``show(input, options)`` gives a tensor over the memory of ``input``.

    It shares the version of ``input``, and its history follows the base's. Written out in one frame:
    half of what ``x.t()`` costs is bookkeeping that separate functions would double.

    ``show`` takes the kernel's answer too, where the caller has asked with the keywords written out: half the time of
    ``**options``. Only of a tensor that is exactly a Tensor, for one of another class may be sparse.

    Args:
        dtype_of: the view's dtype from that of ``input``, where it is another one.
    """
    kernel = op.kernel
    needs_shape = [key for key, _, _ in op.traits] == ["input_shape"]
    if op.keeps_inputs or op.keeps_out or (op.traits and not needs_shape):
        raise AssertionError(f"{op.name}: the formula of a view names g, options and input_shape at most")

    def show(input: Tensor, options: dict[str, Any], native: Any = None) -> Tensor:
        device = input.device
        if native is None:
            try:
                native = device.kernels[kernel](input.native, **options)
            except Exception:
                if hasattr(input, "instead"):  # a sparse tensor, which has no native array
                    return input.instead(op.name, (input,), options)  # type: ignore[no-any-return]
                raise
        made = new(Tensor)
        made.native = native
        made.dtype = dtype = input.dtype if dtype_of is None else dtype_of(input.dtype)
        made.device = device
        version = input.version
        if version is None:
            version = input.version = Version()
        made.version = version
        made.node = None
        trail = input.trail
        if trail is None:
            made.trail = (input, None, op, options, "plain")
        elif type(trail) is tuple:
            made.trail = (trail[0], own_trail(trail, input.native), op, options, trail[4])
        else:
            made.trail = (trail.base, trail, op, options, trail.kind)
        if unusual.threads and not mode.plain:
            if not mode.enabled:
                made.trail = (*made.trail[:4], "unrecorded")
            else:
                if input.node is not None:
                    record(op, (input,), options, made)
                version.watch(made)
            return made
        edge = input.node
        if edge is not None:
            made.node = node = new(Node)
            node.op = op
            node.edges = (edge,)
            node.saved = ()
            node.options = {**options, "input_shape": input.native.shape} if needs_shape else options
            node.extra = None
            node.shape = native.shape
            node.dtype = dtype
            node.order = next_order()
        elif not (dtype.is_floating_point or dtype.is_complex):
            return made
        # The good path of version.watch(made).
        views = version.views
        if views is None:
            version.views = [ref(made)]
            return made
        if views:
            # Most views are gone before the next one is taken: the last place is free then.
            last = views.pop()
            if last() is not None:
                views.append(last)
                if len(views) >= version.limit:
                    version.watch(made)
                    return made
        views.append(ref(made))
        return made

    return before("show", op, kernel, needs_shape, dtype_of)(show)


@before("several_views", record)
def several_views(
    op: Op, input: Tensor, options: dict[str, Any], step: Op, keys: Sequence[dict[str, Any]]
) -> tuple[Tensor, ...]:
    """Views as the results of one node of ``op``, whose formula gets the gradients of all of them.

    Args:
        step: the view op that makes each of them alone, once an in-place write changed the base.
        keys: the options of ``step`` for each.
    """
    made: list[Tensor] = []
    if type(input) is not Tensor:
        node, input.node = input.node, None
        try:
            made = [step.view(input, key) for key in keys]  # type: ignore[attr-defined]
        finally:
            input.node = node
        for one in made if mode.enabled else ():
            one.origin.kind = "several"
    else:
        device, native = input.device, input.native
        version = input.version or share_version(input)
        kernel = device.kernels[step.kernel]
        parent = input.trail
        if type(parent) is tuple:
            parent = own_trail(parent, native)
        base = input if parent is None else parent[0] if type(parent) is tuple else parent.base
        kind = "several" if mode.enabled else "unrecorded"
        for key in keys:
            one = new(Tensor)
            one.native = kernel(native, **key)
            one.dtype, one.device, one.node, one.version = input.dtype, device, None, version
            one.trail = (base, parent, step, key, kind)
            made.append(one)
        if mode.enabled and (input.dtype.is_floating_point or input.dtype.is_complex):
            version.watch(*made)
    if mode.enabled and input.node is not None and made:
        record(op, (input,), options, made)
    return tuple(made)
