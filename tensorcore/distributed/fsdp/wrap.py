"""Which parts of a model are sharded by themselves: the questions that PyTorch's programs ask of each module.

``[fully_shard(one) for one in model.modules() if transformer_auto_wrap_policy(one, False, 0, {Block})]``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore.nn.module import Module

__all__ = ["lambda_auto_wrap_policy", "transformer_auto_wrap_policy"]


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Whether to look into a module, which is always so, or else what the function says of it."""
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type[Module]]
) -> bool:
    """Whether to look into a module, which is always so, or else whether it is of one of the classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., Any]]) -> bool:
    """Whether one of several says so."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)
