"""Collectives with one rank in the middle, and the barriers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from tensorcore.distributed.arguments import member, root_of
from tensorcore.distributed.placing import check_same, check_tensor, check_tensors, describe, empty_like, place, put
from tensorcore.distributed.work import Work
from tensorcore.errors import ArgumentError
from tensorcore.tensor import Tensor

__all__ = ["barrier", "gather", "monitored_barrier", "scatter"]


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Give rank ``dst`` the tensors of all, in a list that it alone passes."""
    pg = member("gather", group)
    check_tensor("gather", tensor)
    if pg is None:
        return None
    root = root_of("gather", pg, "dst", dst, group_dst, 0)
    source, whole = place(tensor, pg.device), None
    outs: list[Tensor] = []
    if root == pg.rank:
        if not gather_list:
            raise ArgumentError("gather: Argument ``gather_list`` must be specified on destination rank.")
        outs = check_tensors("gather", gather_list, "gather_list", pg._size)
        check_same("gather", outs, tensor)
        whole = empty_like(tensor, pg.device, pg._size)
    elif gather_list:
        raise ArgumentError("gather: Argument ``gather_list`` must NOT be specified on non-destination ranks.")

    def finish() -> None:
        if whole is not None:
            for out, block in zip(outs, whole, strict=True):  # type: ignore[call-overload]
                put(out, block)

    return pg.start(
        f"gather(to {root}, {describe(tensor)})",
        lambda one: one.gather(source.native, None if whole is None else whole.native, root), finish=finish, result=outs,
        async_op=async_op,
    )  # fmt: skip


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Rank ``i`` gets entry ``i`` of the list that rank ``src`` alone passes."""
    pg = member("scatter", group)
    check_tensor("scatter", tensor)
    if pg is None:
        return None
    root = root_of("scatter", pg, "src", src, group_src, 0)
    out, whole = place(tensor, pg.device), None
    if root == pg.rank:
        if not scatter_list:
            raise ArgumentError("scatter: Argument ``scatter_list`` must be specified on source rank.")
        parts = check_tensors("scatter", scatter_list, "scatter_list", pg._size)
        check_same("scatter", parts, tensor)
        whole = empty_like(tensor, pg.device, pg._size)
        for block, part in zip(whole, parts, strict=True):  # type: ignore[call-overload]
            put(block, part.detach())
    elif scatter_list:
        raise ArgumentError("scatter: Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return pg.start(
        f"scatter(from {root}, {describe(tensor)})",
        lambda one: one.scatter(None if whole is None else whole.native, out.native, root), finish=out.written,
        result=[tensor], async_op=async_op,
    )  # fmt: skip


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Return when every rank has called it."""
    pg = member("barrier", group)
    if pg is None:
        return None
    if async_op:
        token = pg.device.from_host(np.ones(1, np.float32))
        return pg.start("barrier()", lambda one: one.all_reduce(token), async_op=True)
    return pg.start("barrier()", lambda one: one.barrier())


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """A barrier with a timeout of its own, whose error names the ranks that did not come, as all errors here do."""
    pg = member("monitored_barrier", group)
    if pg is None:
        return
    token = pg.device.from_host(np.ones(1, np.float32))
    work = pg.start("monitored_barrier()", lambda one: one.all_reduce(token), async_op=True)
    assert work is not None
    work.wait(timeout)
