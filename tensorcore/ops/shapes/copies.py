"""Views as copies: the ops that end in ``_copy``, each the op of the name before it with memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.ops.define import OPS
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.pointwise import complex
from tensorcore.ops.reductions.reduce import stored
from tensorcore.ops.rules import wrap_dim
from tensorcore.ops.samples import index as index_samples
from tensorcore.ops.samples import numeric as samples
from tensorcore.ops.shapes import order, shape, split, views_part
from tensorcore.shortcuts import placed_way
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "alias_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "permute_copy", "select_copy", "slice_copy",
    "split_copy", "split_with_sizes_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy", "unfold_copy",
    "unsqueeze_copy", "view_as_complex_copy", "view_as_real_copy", "view_copy",
]  # fmt: skip


def _copying(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    placed = placed_way(function, f"{name}_copy", store)

    def call(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if type(input) is not Tensor:
            check_tensors(f"{name}_copy", input=input)
        if out is not None and (done := placed(out, input, *args, **kwargs)) is not None:
            return done if type(done) is Tensor else None
        made = function(input, *args, **kwargs)
        if type(made) is Tensor and made.node is None and out is None:
            return new_tensor(made.device.kernels["contiguous"](made.native), made.dtype, made.device)
        if isinstance(made, tuple):
            parts, made = list(made), None
            for i in range(len(parts)):  # many views are gone before the collector of cycles has to look at them
                parts[i] = _copy(parts[i])
            copied: Any = tuple(parts)
        else:
            copied = _copy(made)
        if out is None:
            return copied
        if isinstance(copied, tuple):
            if not isinstance(out, (tuple, list)):
                raise ArgumentTypeError(
                    f"{name}_copy: argument 'out' must be tuple of Tensors, got {out!r}; pass one for each"
                )
            stored(f"{name}_copy", copied, tuple(out))
            return None
        return stored(f"{name}_copy", copied, out)

    call.__name__ = call.__qualname__ = f"{name}_copy"
    call.__doc__ = f"What ``{name}`` shows, as a copy."
    call.sees_out = True  # type: ignore[attr-defined]
    if name == "detach":  # not differentiable, and so none of the ops that the registry's suites differentiate
        return call
    return operation(method=False, samples=_SAMPLES[name] if name in _SAMPLES else OPS[name].samples)(call)


def _copy(shown: Any) -> Tensor:
    if type(shown) is Tensor and shown.node is None:
        return new_tensor(shown.device.kernels["contiguous"](shown.native), shown.dtype, shown.device)
    return shown.clone() if shown.is_contiguous() else shown.contiguous()  # type: ignore[no-any-return]


_SAMPLES = {
    "unfold": index_samples.unfold,
    "alias": samples.unary,
    "slice": samples.slices,
    "split": samples.split_size,
}


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    shape = input.native.shape
    at = wrap_dim("slice_copy", dim, len(shape))
    if shape and type(step) is int and step > 0:
        first, last, _ = slice(start, end).indices(shape[at])
        key = (slice(None),) * at + (slice(first, max(first, last), step),)
        return views_part.slice_op.view(input, {"key": key})  # type: ignore[attr-defined, no-any-return]
    return input[(*[slice(None)] * at, slice(start, end, step))]  # type: ignore[index, no-any-return]


alias_copy = _copying("alias", lambda input: input)
as_strided_copy = _copying("as_strided", views_part.as_strided)
detach_copy = _copying("detach", Tensor.detach)
diagonal_copy = _copying("diagonal", views_part.diagonal)
expand_copy = _copying("expand", shape.expand)
permute_copy = _copying("permute", order.permute)
select_copy = _copying("select", views_part.select)
slice_copy = _copying("slice", _slice)
split_copy = _copying("split", split.unsafe_split)
split_with_sizes_copy = _copying("split_with_sizes", split.split_with_sizes)
squeeze_copy = _copying("squeeze", shape.squeeze)
t_copy = _copying("t", order.t)
transpose_copy = _copying("transpose", order.transpose)
unbind_copy = _copying("unbind", split.unbind)
unfold_copy = _copying("unfold", views_part.unfold)
unsqueeze_copy = _copying("unsqueeze", shape.unsqueeze)
view_as_complex_copy = _copying("view_as_complex", complex.view_as_complex)
view_as_real_copy = _copying("view_as_real", complex.view_as_real)
view_copy = _copying("view", lambda input, *size: shape.view(input.contiguous(), *size))
