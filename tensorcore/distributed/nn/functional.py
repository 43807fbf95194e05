"""Collectives as differentiable functions: the backward of each is the transposed collective.

All ranks call them, and all ranks go backward through them, in one order. Gradients are those of the sum over the
ranks of what each differentiates.
"""

from __future__ import annotations

from typing import Any

import tensorcore.distributed as dist
from tensorcore.autograd.function import Function
from tensorcore.distributed.reductions import ReduceOp
from tensorcore.errors import ArgumentError
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tensor import Tensor

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all ranks combined, on every rank. SUM, AVG, MIN and MAX have gradients."""
    return _AllReduce.apply(tensor, _differentiable("all_reduce", op), group)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank ``src`` on every rank."""
    return _Broadcast.apply(tensor, src, group)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all ranks summed on rank ``dst``; the others get their own back."""
    if op is not ReduceOp.SUM:
        raise ArgumentError(f"reduce: expected SUM, the one that has a gradient here, got {op!r}; use all_reduce")
    return _Reduce.apply(tensor, dst, group)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, by rank."""
    return tuple(_AllGather.apply(tensor, group).unbind(0))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank ``dst``; the others get zeros."""
    return tuple(_Gather.apply(tensor, dst, group).unbind(0))


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Entry ``i`` of rank ``src``'s list on rank ``i``; all ranks pass tensors of these shapes."""
    return _Scatter.apply(stack(list(tensors)), src, group)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Entry ``i`` of the summed lists on rank ``i``. ``output`` names the shape and is not written."""
    if op is not ReduceOp.SUM:
        raise ArgumentError(
            f"reduce_scatter: expected SUM, the one that has a gradient here, got {op!r}; divide after it"
        )
    return _ReduceScatter.apply(stack(list(input_list)), group).reshape(output.shape)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Entry ``i`` of every rank's list on rank ``i``. The outputs name the shapes and are not written."""
    ins, outs = [one.numel() for one in input_tensor_list], [one.numel() for one in output_tensor_list]
    flat = cat([one.reshape(-1) for one in input_tensor_list])  # type: ignore[attr-defined]
    parts = _AllToAll.apply(flat, outs, ins, group).split(outs)
    return tuple(part.reshape(one.shape) for part, one in zip(parts, output_tensor_list, strict=True))


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Tensor:
    """Part ``i``, along the first dim, of every rank's input on rank ``i``. ``output`` names the shape alone."""
    size = dist.get_world_size(group)
    outs = list(output_split_sizes or [output.shape[0] // size] * size)
    ins = list(input_split_sizes or [input.shape[0] // size] * size)
    return _AllToAll.apply(input, outs, ins, group).reshape(output.shape)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, op: ReduceOp, group: Any) -> Any:
        ctx.op, ctx.group = op, group
        out = tensor.clone()
        dist.all_reduce(out, op, group)
        if op in (ReduceOp.MIN, ReduceOp.MAX):
            ctx.save_for_backward(tensor, out)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.op not in (ReduceOp.MIN, ReduceOp.MAX):
            return all_reduce(g, ctx.op, ctx.group), None, None
        tensor, out = ctx.saved_tensors
        chosen = (tensor == out).to(g.dtype)
        return all_reduce(g, ReduceOp.SUM, ctx.group) * chosen / all_reduce(chosen, ReduceOp.SUM, ctx.group), None, None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, src: int, group: Any) -> Any:
        ctx.src, ctx.group = src, group
        out = tensor.clone()
        dist.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        total = reduce(g, ctx.src, ReduceOp.SUM, ctx.group)
        return (total if dist.get_rank() == ctx.src else total * 0), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, dst: int, group: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        out = tensor.clone()
        dist.reduce(out, dst, ReduceOp.SUM, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return broadcast(g, ctx.dst, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, group: Any) -> Any:
        ctx.group = group
        out = tensor.new_empty((dist.get_world_size(group), *tensor.shape))
        dist.all_gather_into_tensor(out, tensor, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _ReduceScatter.apply(g, ctx.group), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, blocks: Any, group: Any) -> Any:
        ctx.group = group
        out = blocks.new_empty(tuple(blocks.shape[1:]))
        dist.reduce_scatter_tensor(out, blocks, ReduceOp.SUM, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _AllGather.apply(g, ctx.group), None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, dst: int, group: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        out = tensor.new_zeros((dist.get_world_size(group), *tensor.shape))
        dist.gather(tensor, list(out) if dist.get_rank() == dst else None, dst, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Scatter.apply(g, ctx.dst, ctx.group), None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, blocks: Any, src: int, group: Any) -> Any:
        ctx.src, ctx.group = src, group
        out = blocks.new_empty(tuple(blocks.shape[1:]))
        dist.scatter(out, list(blocks) if dist.get_rank() == src else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Gather.apply(g, ctx.src, ctx.group), None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, outs: list[int], ins: list[int], group: Any) -> Any:
        ctx.outs, ctx.ins, ctx.group = outs, ins, group
        out = tensor.new_empty((sum(outs), *tensor.shape[1:]))
        dist.all_to_all_single(out, tensor, outs, ins, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _AllToAll.apply(g, ctx.ins, ctx.outs, ctx.group), None, None, None


def _differentiable(op_name: str, op: ReduceOp) -> ReduceOp:
    if op not in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MIN, ReduceOp.MAX):
        raise ArgumentError(f"{op_name}: expected SUM, AVG, MIN or MAX, which have gradients, got {op!r}")
    return op
