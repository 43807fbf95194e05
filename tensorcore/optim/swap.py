"""Other parameters and another state for an optimizer, for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorcore.errors import UsageError
from tensorcore.optim.optimizer import Optimizer
from tensorcore.tensor import Tensor

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within a ``with``, let an optimizer work on other tensors; its own come back at the end.

    Args:
        optimizer: one that has taken a step, so that its state is there.
        swapin_parameters: tensors in the order of the optimizer's groups; the names are not asked.
        swapin_optim_state: what ``optimizer.state_dict()`` gave. Its tensors are written to, the dicts are not.
    """
    groups = _checked(optimizer, swapin_parameters, swapin_optim_state)
    held, before = optimizer.state, [dict(group) for group in optimizer.param_groups]
    others, values = iter(swapin_parameters.values()), swapin_optim_state["state"]
    try:
        state: defaultdict[Any, Any] = defaultdict(dict)
        for ours, theirs in zip(optimizer.param_groups, groups, strict=True):
            params = [next(others) for _ in theirs["params"]]
            ours.update({**theirs, "params": params})
            state.update({one: dict(values.get(i, {})) for i, one in zip(theirs["params"], params, strict=True)})
        optimizer.state = state
        yield
    finally:
        for group, own in zip(optimizer.param_groups, before, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = held


def _checked(optimizer: Optimizer, parameters: dict[str, Tensor], given: Any) -> list[dict[str, Any]]:
    """The groups of a state that fits the optimizer."""
    if not optimizer.state:
        raise UsageError(f"{_NAME} requires initialized optimizer state, got none; take a step first")
    if not isinstance(given, dict):
        raise UsageError(f"{_NAME} requires what optimizer.state_dict() gives, got {type(given).__name__}")
    state, groups = given.get("state"), given.get("param_groups")
    if not isinstance(state, dict) or any(
        isinstance(key, Tensor) or (isinstance(key, int) and not isinstance(value, dict))
        for key, value in state.items()
    ):
        raise UsageError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict of dicts by the numbers of parameters, got "
            f"{type(state).__name__}; pass what optimizer.state_dict() gives"
        )
    if not isinstance(groups, list) or len(groups) != len(optimizer.param_groups):
        raise UsageError(
            f"swapin_optim_state has a different number of parameter groups than the live optimizer, got {groups!r} for "
            f"{len(optimizer.param_groups)}"
        )
    known: set[int] = set()
    for i, (ours, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        numbers = theirs.get("params") if isinstance(theirs, dict) else None
        if not isinstance(numbers, list) or not all(isinstance(one, int) for one in numbers):
            raise UsageError(f"{_NAME} requires groups with 'params' as numbers, got {theirs!r} as group {i}")
        if len(numbers) != len(ours["params"]):
            raise UsageError(
                f"swapin_optim_state param group {i} has a different number of params than the live optimizer param "
                f"group, got {len(numbers)} for {len(ours['params'])}"
            )
        if set(theirs) != set(ours):
            raise UsageError(
                f"{_NAME} requires param group keys to exactly match the live optimizer group keys for group {i}, got "
                f"{sorted(set(theirs) ^ set(ours))} in one of them"
            )
        known.update(numbers)
    count = sum(len(group["params"]) for group in groups)
    if len(parameters) < count:
        raise UsageError(
            f"{_NAME} requires a tensor for each parameter of the groups, got {len(parameters)} for {count}"
        )
    if not known.issuperset(state):
        raise UsageError(f"{_NAME}: got extra keys {sorted(set(state) - known)!r} in swapin_optim_state['state']")
    return groups
