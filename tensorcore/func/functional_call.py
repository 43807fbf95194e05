"""Modules as functions of their parameters: ``functional_call``, and ``stack_module_state`` for several at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError, GradientError
from tensorcore.ops.shapes.join import stack
from tensorcore.tensor import Tensor

__all__ = ["functional_call", "reparametrized", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers, which it has back afterwards.

    Args:
        module: an ``nn.Module``.
        parameter_and_buffer_dicts: tensors by their dotted names, or several such dicts; a name that is missing keeps
            the module's own.
        args: the positional arguments: a tuple of them, or the only one.
        kwargs: the keyword arguments.
        tie_weights: whether a tensor that the module has under several names is replaced under all of them.
        strict: raise where a name is missing or means nothing to the module.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = dict(parameter_and_buffer_dicts)
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        given = {}
        for one in parameter_and_buffer_dicts:
            if not isinstance(one, dict):
                raise ArgumentError(f"functional_call: Expected all elements of parameter_and_buffer_dicts to be "
                                    f"dictionaries, got {type(one)}; pass dicts of tensors")  # fmt: skip
            twice = given.keys() & one.keys()
            if twice:
                raise ArgumentError(
                    f"functional_call: {sorted(twice)} appeared in multiple dictionaries; behavior of functional call is "
                    f"ambiguous, got the same names twice"
                )
            given.update(one)
    else:
        raise ArgumentError(
            f"functional_call: Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with reparametrized(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def reparametrized(
    module: Any, given: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """The block in which a module has other tensors in the place of its parameters and buffers."""
    places = _places(module)
    chosen = _tied(module, given, places) if tie_weights else dict(given)
    if strict:
        own = {name for name, (members, key) in places.items() if members[key] is not None}
        missing, unexpected = sorted(own - chosen.keys()), sorted(given.keys() - places.keys())
        if missing or unexpected:
            raise GradientError(
                f"functional_call: Error(s) in loading state: Missing key(s): {missing}, Unexpected key(s): {unexpected}, "
                f"got those with strict=True; name every tensor of the module"
            )
    for name, one in chosen.items():
        if name not in places:
            raise AttributeError(f"functional_call: {type(module).__name__} has no parameter or buffer `{name}`")
        if one is not None and not isinstance(one, Tensor):
            raise ArgumentTypeError(f"functional_call: {one!r} is not an instance of torch.Tensor, got it for {name}")
    before = {name: places[name][0][places[name][1]] for name in chosen}
    try:
        for name, one in chosen.items():
            members, key = places[name]
            members[key] = one
        yield
    finally:
        for name, one in before.items():
            members, key = places[name]
            members[key] = one


def _places(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """Where each parameter and buffer is kept, by its dotted name."""
    found = {}
    for prefix, one in module.named_modules(remove_duplicate=False):
        for members in (one._parameters, one._buffers):
            for key in members:
                found[f"{prefix}.{key}" if prefix else key] = (members, key)
    return found


def _tied(module: Any, given: dict[str, Tensor], places: dict[str, Any]) -> dict[str, Tensor]:
    """The replacements, under every name that the module has the replaced tensor by."""
    names: dict[int, list[str]] = {}
    for name, (members, key) in places.items():
        if members[key] is not None:
            names.setdefault(id(members[key]), []).append(name)
    found = dict(given)
    for group in names.values():
        values = [given[name] for name in group if name in given]
        if len({id(one) for one in values}) > 1:
            raise ArgumentError(
                f"functional_call: functional_call got multiple values for keys {group}, which are tied. Consider using "
                f"tie_weights=False"
            )
        if values:
            found.update(dict.fromkeys(group, values[0]))
    return found


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one class, each stacked over the modules: what an ensemble is run on.

    Returns:
        Two dicts by name. The stacked parameters are leaves that require grad as the modules' own do.
    """
    models = list(models)
    if not models:
        raise GradientError("stack_module_state: Expected at least one model, got 0; pass a list of modules")
    if not (all(one.training for one in models) or all(not one.training for one in models)):
        raise GradientError(
            "stack_module_state: Expected all models to have the same training/eval mode, got both; call train() or eval()"
        )
    if any(type(one) is not type(models[0]) for one in models):
        raise GradientError("stack_module_state: Expected all models to be of the same class, got several; group them")
    params = {
        name: _stacked([dict(one.named_parameters())[name] for one in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: _stacked([dict(one.named_buffers())[name] for one in models]) for name, _ in models[0].named_buffers()
    }
    return params, buffers


def _stacked(tensors: list[Tensor]) -> Tensor:
    requires = tensors[0].requires_grad
    if any(one.requires_grad != requires for one in tensors):
        raise GradientError(
            "stack_module_state: Expected the same requires_grad for a parameter of all models, got both; make them alike"
        )
    made = stack([one.detach() for one in tensors])
    return made.requires_grad_() if requires else made  # type: ignore[no-any-return]


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch norm in ``root``, itself included, take its batch's own statistics always; answers ``root``.

    Running statistics are written in place, which ``vmap`` over models or samples cannot do.
    """
    for module in root.modules():
        # By name: modules stand on a floor above this one.
        if any(cls.__name__ == "_BatchNorm" for cls in type(module).__mro__):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
