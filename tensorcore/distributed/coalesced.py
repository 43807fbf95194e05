"""Several collectives started one after the other and waited for together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tensorcore.distributed.arguments import member
from tensorcore.distributed.collectives import all_gather, all_reduce
from tensorcore.distributed.reductions import ReduceOp
from tensorcore.distributed.work import Work
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.tensor import Tensor

__all__ = ["Coalesced", "_coalescing_manager", "all_gather_coalesced", "all_reduce_coalesced"]


class Coalesced:
    """Several collectives under way."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None) -> None:
        """Wait for this one too."""
        if work is not None:
            self.works.append(work)

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Return True once the results of all are there. Raises as ``Work.wait`` does."""
        return all([one.wait(timeout) for one in self.works])

    def is_completed(self) -> bool:
        """Whether the results of all are there."""
        return all([one.is_completed() for one in self.works])

    def result(self) -> list[Any]:
        """The tensors with the results, in the order of the calls."""
        return [each for one in self.works for each in one.result()]


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[Coalesced]:
    """Within it, collectives on the group return at once; all are waited for at its end.

    Args:
        group: the world where None.
        device: accepted.
        async_ops: leave the waiting to ``wait()`` of what the context gives.
    """
    made = Coalesced()
    pg = member("_coalescing_manager", group)
    if pg is None:
        yield made
        return
    if pg.coalesced is not None:
        raise UsageError(
            "_coalescing_manager: expected a group whose calls nobody collects, got one within such a context; leave that one"
        )
    pg.coalesced = made
    try:
        yield made
    finally:
        pg.coalesced = None
    if not async_ops:
        made.wait()


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Coalesced | None:
    """``all_reduce`` of several tensors, in place, which are waited for together."""
    given = [tensors] if isinstance(tensors, Tensor) else _listed("all_reduce_coalesced", "tensors", tensors)
    return _together(lambda: [all_reduce(one, op, group, True) for one in given], async_op)


def all_gather_coalesced(
    output_tensor_lists: Sequence[list[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Coalesced | None:
    """``all_gather`` of several tensors, each into its list, which are waited for together."""
    given = _listed("all_gather_coalesced", "input_tensor_list", input_tensor_list)
    outs = list(output_tensor_lists)
    if len(outs) != len(given):
        raise ArgumentError(
            f"all_gather_coalesced: expected a list of outputs for each of {len(given)} inputs, got {len(outs)}"
        )
    pairs = list(zip(outs, given, strict=True))
    return _together(lambda: [all_gather(out, one, group, True) for out, one in pairs], async_op)


def _together(begin: Any, async_op: bool) -> Coalesced | None:
    made = Coalesced()
    for work in begin():
        made.append(work)
    if not made.works:
        return None  # this rank is not in the group
    if async_op:
        return made
    made.wait()
    return None


def _listed(op: str, name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    found = list(tensors)
    if not found:
        raise ArgumentError(f"{op}: expected at least one tensor in {name}, got none")
    for one in found:
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"{op}: expected tensors in {name}, got {type(one).__name__}")
    return found
