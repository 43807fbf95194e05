"""Views: tensors that show the memory of another one in a different shape, order or part."""

from __future__ import annotations

from typing import Any

from tensorcore.ops.calls import record
from tensorcore.ops.define import Op
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Version
from tensorcore.tensor import Tensor, View

__all__ = ["view_of"]

new = object.__new__


def view_of(
    op: Op, input: Tensor, options: dict[str, Any], native: Any = None, kind: str = "plain", dtype: Any = None
) -> Tensor:
    """The view of ``input`` that the kernel of ``op`` shows: same memory, same version, a history that follows the base's."""
    made = new(Tensor)
    device = input.device
    if native is None:
        native = device.kernels[op.kernel](input.native, **options)
    made.native = native
    made.dtype = dtype or input.dtype
    made.device = device
    version = input.version
    if version is None:
        version = input.version = Version()
    made.version = version
    made.node = None
    view = input.origin
    if not mode.enabled:
        kind = "unrecorded"
    if view is None:
        made.origin = View(input, ((op, options),), kind)
    else:
        made.origin = View(view.base, (*view.steps, (op, options)), view.kind if kind == "plain" else kind)
    if mode.enabled:
        if input.node is not None:
            record(op, (input,), options, made)
        if made.dtype.is_floating_point or made.dtype.is_complex:
            version.watch(made)
    return made
