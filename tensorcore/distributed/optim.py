"""ZeroRedundancyOptimizer: each rank keeps the state of some parameters, steps those, and sends them (ZeRO 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorcore.distributed as dist
from tensorcore.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorcore.distributed.group import resolve
from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.optim.optimizer import Optimizer
from tensorcore.tape.mode import no_grad

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is shared out over the ranks of a group.

    Args:
        params: the same on all ranks.
        optimizer_class: of the optimizer that each rank has for its parameters; ``defaults`` are its options.
        process_group: the world where None.
    """

    def __init__(
        self, params: Iterable[Any], optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise ArgumentTypeError(f"ZeroRedundancyOptimizer: expected a class of optimizers, got {optimizer_class!r}")
        self.process_group = resolve("ZeroRedundancyOptimizer", process_group)
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        rank, size = dist.get_rank(self.process_group), dist.get_world_size(self.process_group)
        self.owners: dict[Any, int] = {}
        loads = [0] * size
        everything = [one for group in self.param_groups for one in group["params"]]
        # The largest first, each to the rank that has least so far.
        for one in sorted(everything, key=lambda one: -one.numel()):
            owner = loads.index(min(loads))
            self.owners[one] = owner
            loads[owner] += one.numel()
        mine = [
            {**group, "params": [one for one in group["params"] if self.owners[one] == rank]}
            for group in self.param_groups
        ]
        self._some = any(group["params"] for group in mine)
        self.optim: Any = (
            optimizer_class([group for group in mine if group["params"]], **defaults) if self._some else None
        )
        self._groups = [i for i, group in enumerate(mine) if group["params"]]
        if self.optim is not None:
            for i, own in zip(self._groups, self.optim.param_groups, strict=True):
                for key, one in own.items():
                    self.param_groups[i].setdefault(key, one)
            self.state = self.optim.state
        self._gathered: list[Any] | None = None

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this rank's parameters, and exchange all."""
        Join.notify_join_context(self)
        loss = None
        if self.optim is not None:
            for i, own in zip(self._groups, self.optim.param_groups, strict=True):
                own.update({key: one for key, one in self.param_groups[i].items() if key != "params"})
            loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        elif closure is not None:
            loss = closure()
        with no_grad():
            works = [
                dist.broadcast(one.detach(), group=self.process_group, group_src=owner, async_op=True)
                for one, owner in self.owners.items()
            ]
            for work in works:
                if work is not None:
                    work.wait()
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """A hook that steps this rank's parameters for the others; in a ``Join`` the model that sets gradients comes first."""
        return _Stepping(self)

    @property
    def join_device(self) -> Any:
        """The device of the messages by which ranks say that they make another step: the group's."""
        return self.process_group.device

    @property
    def join_process_group(self) -> Any:
        """The group that shares the state out."""
        return self.process_group

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to one, for its ``state_dict``; all ranks call it."""
        mine = {} if self.optim is None else self._numbered(self.optim.state)
        size = dist.get_world_size(self.process_group)
        found: list[Any] | None = [None] * size if dist.get_rank(self.process_group) == to else None
        dist.gather_object(mine, found, group=self.process_group, group_dst=to)
        self._gathered = found

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, on the rank that it was brought to."""
        if self._gathered is None:
            raise UsageError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=...)` on all "
                "ranks beforehand if you meant to save the global state."
            )
        made = super().state_dict()
        made["state"] = {number: state for one in self._gathered for number, state in one.items()}
        self._gathered = None
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the states of this rank's parameters from those of all."""
        super().load_state_dict(state_dict)
        rank = dist.get_rank(self.process_group)
        if self.optim is not None:
            self.optim.state.clear()
            self.optim.state.update({key: one for key, one in self.state.items() if self.owners[key] == rank})
            self.state = self.optim.state

    def _numbered(self, state: Any) -> dict[int, Any]:
        everything = [one for group in self.param_groups for one in group["params"]]
        numbers = {id(one): i for i, one in enumerate(everything)}
        return {numbers[id(key)]: dict(one) for key, one in state.items()}


class _Stepping(JoinHook):
    """The hook of one ``Join``."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()
