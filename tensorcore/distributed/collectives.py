"""The collectives on tensors, which all ranks of a group call together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.distributed.arguments import member, root_of
from tensorcore.distributed.group import ProcessGroup
from tensorcore.distributed.placing import (
    Placed,
    check_same,
    check_tensor,
    check_tensors,
    describe,
    empty_like,
    place,
    put,
)
from tensorcore.distributed.reductions import ReduceOp, check_op, fold
from tensorcore.distributed.work import Work
from tensorcore.errors import ArgumentError, ShapeError
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = [
    "all_gather", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_to_all", "all_to_all_single", "broadcast",
    "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor",
]  # fmt: skip

_UNEVEN_TAG = 32766


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combine the tensors of all ranks, element by element, in place on every rank.

    Args:
        tensor: of one shape and dtype on all ranks, which it may be strided in.
        op: bitwise ones of integers and bools. AVG divides the sum by the number of ranks, in float32 for half types.
        group: the world where None.
        async_op: return a Work at once.
    """
    pg = member("all_reduce", group)
    check_tensor("all_reduce", tensor)
    op = check_op("all_reduce", op, tensor)
    if pg is None:
        return None
    text = f"all_reduce({op.name}, {describe(tensor)})"
    if op.transport is None:
        parts = empty_like(tensor, pg.device, pg._size)
        source = place(tensor, pg.device)
        return pg.start(
            text, lambda one: one.all_gather(source.native, parts.native), finish=lambda: put(tensor, fold(op, parts)),
            result=[tensor], async_op=async_op,
        )  # fmt: skip
    if op is ReduceOp.AVG and not has_means(tensor, pg):
        total = _sums(tensor, pg)
        return pg.start(
            text, lambda one: one.all_reduce(total.native, "sum"),
            finish=lambda: put(tensor, _divided(total, pg._size, tensor.dtype)), result=[tensor], async_op=async_op,
        )  # fmt: skip
    whole = place(tensor, pg.device)
    return pg.start(
        text, lambda one: one.all_reduce(whole.native, "mean" if op is ReduceOp.AVG else op.transport),
        finish=whole.written, result=[tensor],
        async_op=async_op,
    )  # fmt: skip


def has_means(tensor: Tensor, pg: ProcessGroup) -> bool:
    """Whether the group's transport divides a sum of such tensors by itself."""
    return pg.communicator.means and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def start_mean(tensor: Tensor, out: Tensor, pg: ProcessGroup) -> Work:
    """Start to put the mean of all ranks' tensors into ``out``, which may be the tensor.

    Both are dense, of one shape, on the group's device, and ``has_means`` holds.
    """
    work = pg.start(
        f"all_reduce(AVG, {describe(out)})", lambda one: one.all_reduce(tensor.native, "mean", out=out.native),
        result=[out], async_op=True,
    )  # fmt: skip
    assert work is not None
    return work


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Give every rank the values of rank ``src`` of the world (``group_src`` of the group), in place."""
    pg = member("broadcast", group)
    check_tensor("broadcast", tensor)
    if pg is None:
        return None
    root = root_of("broadcast", pg, "src", src, group_src)
    whole = place(tensor, pg.device)
    finish = None if root == pg.rank else whole.written
    return pg.start(
        f"broadcast(from {root}, {describe(tensor)})", lambda one: one.broadcast(whole.native, root), finish=finish,
        result=[tensor], async_op=async_op,
    )  # fmt: skip


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine the tensors of all ranks in place on rank ``dst``; the others keep theirs."""
    pg = member("reduce", group)
    check_tensor("reduce", tensor)
    op = check_op("reduce", op, tensor)
    if pg is None:
        return None
    root = root_of("reduce", pg, "dst", dst, group_dst)
    mine = root == pg.rank
    text = f"reduce(to {root}, {op.name}, {describe(tensor)})"
    if op.transport is None:
        parts = empty_like(tensor, pg.device, pg._size) if mine else None
        source = place(tensor, pg.device)
        return pg.start(
            text, lambda one: one.gather(source.native, None if parts is None else parts.native, root),
            finish=None if parts is None else lambda: put(tensor, fold(op, parts)), result=[tensor], async_op=async_op,
        )  # fmt: skip
    if op is ReduceOp.AVG:
        total = _sums(tensor, pg)
        return pg.start(
            text, lambda one: one.reduce(total.native, root, "sum"),
            finish=(lambda: put(tensor, _divided(total, pg._size, tensor.dtype))) if mine else None,
            result=[tensor], async_op=async_op,
        )  # fmt: skip
    whole = place(tensor, pg.device, copy=not mine)
    return pg.start(
        text, lambda one: one.reduce(whole.native, root, op.transport), finish=whole.written if mine else None,
        result=[tensor], async_op=async_op,
    )  # fmt: skip


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Give every rank the tensors of all, in a list by rank, which may be of several shapes."""
    pg = member("all_gather", group)
    check_tensor("all_gather", tensor)
    if pg is None:
        return None
    outs = check_tensors("all_gather", tensor_list, "tensor_list", pg._size)
    check_same("all_gather", [outs[pg.rank]], tensor)
    if len({one.numel() for one in outs}) > 1:
        put(outs[pg.rank], tensor.detach())
        placed = [place(one, pg.device) for one in outs]
        return pg.start(
            f"all_gather({tensor.dtype.name} {[list(one.shape) for one in outs]})",
            lambda one: [one.broadcast(each.native, root) for root, each in enumerate(placed)],
            finish=lambda: [each.written() for each in placed] and None, result=outs, async_op=async_op,
        )  # fmt: skip
    check_same("all_gather", outs, tensor)
    whole, source = empty_like(tensor, pg.device, pg._size), place(tensor, pg.device)

    def finish() -> None:
        for out, block in zip(outs, whole, strict=True):  # type: ignore[call-overload]
            put(out, block)

    return pg.start(
        f"all_gather({describe(tensor)})", lambda one: one.all_gather(source.native, whole.native), finish=finish,
        result=outs, async_op=async_op,
    )  # fmt: skip


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give every rank the tensors of all in one, stacked or joined along the first dim."""
    pg = member("all_gather_into_tensor", group)
    check_tensor("all_gather_into_tensor", input_tensor, "input_tensor")
    check_tensor("all_gather_into_tensor", output_tensor, "output_tensor")
    if pg is None:
        return None
    _check_whole("all_gather_into_tensor", output_tensor, input_tensor, pg)
    whole, source = place(output_tensor, pg.device), place(input_tensor, pg.device)
    return pg.start(
        f"all_gather_into_tensor({describe(input_tensor)})",
        lambda one: one.all_gather(source.blocks(), whole.blocks(pg._size)), finish=whole.written,
        result=[output_tensor], async_op=async_op,
    )  # fmt: skip


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine the lists of all ranks, element by element; rank ``i`` gets entry ``i`` of the result."""
    pg = member("reduce_scatter", group)
    check_tensor("reduce_scatter", output, "output")
    if pg is None:
        return None
    parts = check_tensors("reduce_scatter", input_list, "input_list", pg._size)
    check_same("reduce_scatter", parts, output)
    with no_grad():
        whole = empty_like(_flat(output), pg.device, pg._size)
        for block, part in zip(whole, parts, strict=True):  # type: ignore[call-overload]
            put(block, part.detach())
    return _reduce_scatter("reduce_scatter", output, place(whole, pg.device), op, pg, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all ranks; rank ``i`` gets part ``i``, along the first dim, of the result."""
    pg = member("reduce_scatter_tensor", group)
    check_tensor("reduce_scatter_tensor", output, "output")
    check_tensor("reduce_scatter_tensor", input, "input")
    if pg is None:
        return None
    _check_whole("reduce_scatter_tensor", input, output, pg)
    return _reduce_scatter("reduce_scatter_tensor", output, place(input, pg.device), op, pg, async_op)


# PyTorch's newer names of the two.
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Rank ``i`` gets entry ``i`` of every rank's list; the shapes may all differ."""
    pg = member("all_to_all", group)
    if pg is None:
        return None
    outs = check_tensors("all_to_all", output_tensor_list, "output_tensor_list", pg._size)
    ins = check_tensors("all_to_all", input_tensor_list, "input_tensor_list", pg._size)
    placed = [place(one, pg.device) for one in outs]
    sources = [place(one, pg.device) for one in ins]
    return _exchange(f"all_to_all({ins[0].dtype.name})", sources, placed, outs, pg, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Rank ``i`` gets part ``i``, along the first dim, of every rank's input; equal parts unless sizes are given."""
    pg = member("all_to_all_single", group)
    check_tensor("all_to_all_single", output, "output")
    check_tensor("all_to_all_single", input, "input")
    if pg is None:
        return None
    if not output_split_sizes and not input_split_sizes:
        for one in (output, input):
            if not one.shape or one.shape[0] % pg._size:
                raise ShapeError(
                    f"all_to_all_single: Tensor's dim 0 does not divide equally across group size {pg._size}, got shape "
                    f"{list(one.shape)}; pass split sizes"
                )
    # One rank may have even parts and another not, so all of them exchange the same messages.
    whole, source = place(output, pg.device), place(input, pg.device)
    ins = _split("all_to_all_single", source.tensor, input_split_sizes, pg)
    outs = _split("all_to_all_single", whole.tensor, output_split_sizes, pg)
    placed = [place(one, pg.device) for one in outs]
    text = f"all_to_all_single({input.dtype.name})"
    sources = [place(one, pg.device) for one in ins]
    return _exchange(text, sources, placed, [output], pg, async_op, whole.written)


def _sums(tensor: Tensor, pg: ProcessGroup) -> Any:
    """What an average is summed in: the half types in float32, whose sum does not overflow."""
    wide = tensor.dtype.is_floating_point and tensor.dtype.itemsize == 2
    with no_grad():
        found = tensor.detach().to(pg.device, dtypes.float32 if wide else tensor.dtype)  # type: ignore[attr-defined]
        return place(found, pg.device, copy=True).tensor


def _divided(total: Any, size: int, dtype: Any) -> Any:
    exact = dtype.is_floating_point or dtype.is_complex
    with no_grad():
        return (total / size if exact else total.div(size, rounding_mode="trunc")).to(dtype)


def _reduce_scatter(op_name: str, output: Tensor, given: Placed, op: Any, pg: ProcessGroup, async_op: bool) -> Any:
    op = check_op(op_name, op, output)
    text = f"{op_name}({op.name}, {describe(output)})"
    if op.transport is None:
        whole = _blocks(given.tensor, pg)
        parts = empty_like(whole, pg.device, pg._size)
        return pg.start(
            text, lambda one: one.all_gather(whole.native, parts.native),
            finish=lambda: put(output, fold(op, parts)[pg.rank]), result=[output], async_op=async_op,
        )  # fmt: skip
    if op is ReduceOp.AVG:
        sums = _sums(_blocks(given.tensor, pg), pg)
        mine = sums[0].clone()
        return pg.start(
            text, lambda one: one.reduce_scatter(sums.native, mine.native, "sum"),
            finish=lambda: put(output, _divided(mine, pg._size, output.dtype)), result=[output], async_op=async_op,
        )  # fmt: skip
    out = place(output, pg.device)
    return pg.start(
        text, lambda one: one.reduce_scatter(given.blocks(pg._size), out.blocks(), op.transport),
        finish=out.written, result=[output], async_op=async_op,
    )  # fmt: skip


def _exchange(
    text: str, sources: list[Any], placed: list[Any], results: list[Tensor], pg: ProcessGroup, async_op: bool,
    last: Any = None,
) -> Work | None:  # fmt: skip
    """Send each rank its source and receive each rank's into its place."""

    def begin(one: Any) -> list[Any]:
        with one.group():
            handles = [one.recv(each.native, peer, tag=_UNEVEN_TAG) for peer, each in enumerate(placed)]
            for step in range(1, pg._size + 1):
                peer = (pg.rank + step) % pg._size
                handles.append(one.send(sources[peer].native, peer, tag=_UNEVEN_TAG))
        return handles

    def finish() -> None:
        for each in placed:
            each.written()
        if last is not None:
            last()

    return pg.start(text, begin, finish=finish, result=results, async_op=async_op)


def _check_whole(op: str, whole: Tensor, block: Tensor, pg: ProcessGroup) -> None:
    if whole.dtype is not block.dtype:
        raise ArgumentError(f"{op}: expected tensors of one dtype, got {whole.dtype} and {block.dtype}")
    if whole.numel() != block.numel() * pg._size:
        raise ShapeError(
            f"{op}: expected one tensor to have {pg._size} times the elements of the other, got shapes {list(whole.shape)} "
            f"and {list(block.shape)}: output tensor size must be equal to world_size times input tensor size"
        )


def _flat(tensor: Tensor) -> Any:
    with no_grad():
        return tensor.detach().reshape(-1)  # type: ignore[attr-defined]


def _blocks(tensor: Tensor, pg: ProcessGroup) -> Any:
    with no_grad():
        return tensor.detach().reshape(pg._size, -1 if tensor.numel() else 0)  # type: ignore[attr-defined]


def _split(op: str, tensor: Tensor, sizes: Sequence[int] | None, pg: ProcessGroup) -> list[Any]:
    length = tensor.shape[0] if tensor.shape else 0
    sizes = list(sizes) if sizes else [length // pg._size] * pg._size
    if len(sizes) != pg._size or sum(sizes) != length:
        raise ShapeError(
            f"{op}: Split sizes doesn't match total dim 0 size, expected {pg._size} sizes with the sum {length}, got {sizes}"
        )
    with no_grad():
        return list(tensor.detach().split(sizes))  # type: ignore[attr-defined]
