"""The state of models and optimizers under names that do not depend on how many ranks there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.nn.module import Module
from tensorcore.ops.creation.create import zeros_like
from tensorcore.tape.mode import no_grad

__all__ = [
    "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict", "set_optimizer_state_dict",
    "set_state_dict",
]  # fmt: skip


def get_model_state_dict(model: Module) -> dict[str, Any]:
    """Parameters and buffers by the names that they have without DistributedDataParallel."""
    return {_plain(name): one for name, one in model.state_dict().items()}


def get_optimizer_state_dict(model: Module, optimizers: Any) -> dict[str, Any]:
    """State and options of each parameter, by its name; made anew where the optimizer has made no step yet."""
    names = {id(one): _plain(name) for name, one in model.named_parameters()}
    made: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _several(optimizers):
        _prepare(optimizer)
        for param, state in optimizer.state.items():
            made["state"][names[id(param)]] = dict(state)
        for group in optimizer.param_groups:
            options = {key: one for key, one in group.items() if key not in ("params", "param_names")}
            made["param_groups"].append({**options, "params": [names[id(one)] for one in group["params"]]})
    return made


def get_state_dict(model: Module, optimizers: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both."""
    return get_model_state_dict(model), get_optimizer_state_dict(model, optimizers)


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any]) -> Any:
    """Take over what ``get_model_state_dict`` gave."""
    names = {_plain(name): name for name in model.state_dict()}
    return model.load_state_dict({names.get(key, key): one for key, one in model_state_dict.items()})


def set_optimizer_state_dict(model: Module, optimizers: Any, optim_state_dict: dict[str, Any]) -> None:
    """Take over what ``get_optimizer_state_dict`` gave."""
    params = {_plain(name): one for name, one in model.named_parameters()}
    groups = list(optim_state_dict["param_groups"])
    for optimizer in _several(optimizers):
        for group in optimizer.param_groups:
            for key, one in groups.pop(0).items():
                if key != "params":
                    group[key] = one
            for param in group["params"]:
                name = next(key for key, one in params.items() if one is param)
                if name in optim_state_dict["state"]:
                    optimizer.state[param] = dict(optim_state_dict["state"][name])


def set_state_dict(
    model: Module, optimizers: Any, *, model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any]
) -> Any:
    """Both."""
    found = set_model_state_dict(model, model_state_dict)
    set_optimizer_state_dict(model, optimizers, optim_state_dict)
    return found


def _prepare(optimizer: Any) -> None:
    """Have the optimizer make its state, by a step of length 0 along no gradient."""
    if optimizer.state:
        return
    params = [one for group in optimizer.param_groups for one in group["params"] if one.requires_grad]
    lengths = [group["lr"] for group in optimizer.param_groups]
    held = [one.grad for one in params]
    with no_grad():
        for one in params:
            one.grad = zeros_like(one)
        for group in optimizer.param_groups:
            group["lr"] = 0.0
        optimizer.step()
        for group, length in zip(optimizer.param_groups, lengths, strict=True):
            group["lr"] = length
        for one, grad in zip(params, held, strict=True):
            one.grad = grad


def _several(optimizers: Any) -> Iterable[Any]:
    return optimizers if isinstance(optimizers, (list, tuple)) else (optimizers,)


def _plain(name: str) -> str:
    return name.removeprefix("module.")
