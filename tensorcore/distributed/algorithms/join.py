"""Uneven inputs: ranks that are done take part in what the others still call, until all are done."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorcore.distributed as dist
from tensorcore.distributed.work import Work
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.ops.creation.create import tensor as make_tensor

__all__ = ["Join", "JoinHook", "Joinable"]

_SKEW = 1000  # steps of others after which a rank that waits for them warns


class JoinHook:
    """What a rank that is done does for one of its joinables."""

    def main_hook(self) -> None:
        """Make the calls that a rank with data makes in one step; called until all ranks are done."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when all ranks are done. ``is_last_joiner``: whether this one was among the last."""


class _Settings(NamedTuple):
    """What a joinable knows of the context that it is in."""

    enable: bool = False
    throw: bool = False
    first: bool = False


class Joinable(ABC):
    """What may take part in a ``Join``; its ``__init__`` has to be called.

    It calls ``Join.notify_join_context(self)`` in each step, before its own collectives.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _Settings()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of one context, which all keyword arguments of ``Join`` are for."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of its collectives."""


class Join:
    """Within it the ranks may make different numbers of steps.

    Args:
        joinables: of one group; their hooks run in this order.
        enable: False switches it off.
        throw_on_early_termination: raise on all ranks as soon as one is done.
        kwargs: for the joinables' hooks.

    Raises ArgumentError, a ValueError, for no joinables and for those of several groups. At the end of the context,
    UsageError, a RuntimeError, where a rank is done early and ``throw_on_early_termination`` is set.
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ArgumentError(
                "Join: The join context manager requires at least one joinable, got none; pass those that take part"
            )
        for one in joinables:
            _check(one)
        groups = {id(one.join_process_group): one.join_process_group for one in joinables}
        if len(groups) > 1:
            raise ArgumentError(
                f"Join: expected joinables of one group, got those of {len(groups)}: Using join context manager with multiple "
                f"process groups; use one context for each"
            )
        [self._group] = groups.values()
        self._device = joinables[0].join_device
        self._joinables, self._enable, self._throw = list(joinables), enable, throw_on_early_termination
        self._hooks = [one.join_hook(**kwargs) for one in joinables]

    def __enter__(self) -> Join:
        for one in self._joinables:
            one._join_config = _Settings(self._enable, self._throw, one is self._joinables[0])
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        try:
            if self._enable and kind is None:
                self._shadow()
        finally:
            for one in self._joinables:
                one._join_config = _Settings()

    def _shadow(self) -> None:
        """Do what those with data do, until there are none."""
        steps = 0
        while self._active():
            if self._throw:
                _count(1, self._device, self._group)
                rank = dist.get_rank(self._group)
                raise UsageError(f"Rank {rank} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            steps += 1
            if steps == _SKEW:
                warnings.warn(
                    f"Join: Detected uneven input skew of greater than {_SKEW}: rank {dist.get_rank(self._group)} has at least "
                    f"{_SKEW} fewer inputs than others; share the inputs out more evenly",
                    stacklevel=3,
                )
        for hook in self._hooks:
            hook.post_hook(steps == 0)

    def _active(self) -> int:
        """How many ranks still have data."""
        return _count(0, self._device, self._group)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the ranks that are done that this one makes another step, before the collectives of the step.

        Returns the Work of that message, None where another joinable of the context has sent it. Raises UsageError, a
        RuntimeError, where a rank is done and ``throw_on_early_termination`` is set.
        """
        _check(joinable)
        settings = joinable._join_config
        if not (settings.enable and settings.first):
            return None
        one: Any = make_tensor([1], device=joinable.join_device)
        work = dist.all_reduce(one, group=joinable.join_process_group, async_op=True)
        if settings.throw and _count(0, joinable.join_device, joinable.join_process_group):
            raise UsageError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _count(mine: int, device: Any, group: Any) -> int:
    """The sum over the ranks."""
    total: Any = make_tensor([mine], device=device)
    dist.all_reduce(total, group=group)
    return int(total.item())


def _check(one: Any) -> None:
    if not isinstance(getattr(one, "_join_config", None), _Settings):
        raise ArgumentTypeError(
            f"Join: expected a Joinable, got {type(one).__name__}; check that its constructor calls the ``Joinable`` "
            f"constructor"
        )
