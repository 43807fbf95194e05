"""Optimizer: what all optimizers share, from parameter groups to the state's way to a file and back."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from tensorcore.dtypes import float32
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.nn.hooks import RemovableHandle
from tensorcore.nn.members import type_name
from tensorcore.nn.module import clear_grads
from tensorcore.parameter import Parameter
from tensorcore.tape.aside import aside
from tensorcore.tape.mode import enable_grad, set_grad_enabled
from tensorcore.tensor import Tensor

__all__ = [
    "Optimizer", "ParamsT", "closed", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required",
]  # fmt: skip

Hook = Callable[..., Any]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
# The hooks of all optimizers.
_PRE: OrderedDict[int, Hook] = OrderedDict()
_POST: OrderedDict[int, Hook] = OrderedDict()


class _Required:
    """Stands in ``defaults`` for an option that every group must name."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class Optimizer:
    """The base of all optimizers. A subclass writes ``step``.

    Args:
        params: tensors, pairs of name and tensor, or dicts with a ``params`` and options of their own.
        defaults: the options of a group that does not name them.

    Attributes:
        param_groups: dicts of ``params`` and options; an option may be changed between steps.
        state: what the optimizer remembers of each parameter, e.g. its momentum.
    """

    _stays_aside = True  # a compiled function may hand it to calls that it leaves to Python

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise ArgumentTypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type_name(params)}; {'put it into a list' if isinstance(params, Tensor) else 'pass model.parameters()'}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ArgumentError("optimizer got an empty parameter list, got []; pass model.parameters()")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in (
            "step_pre",
            "step_post",
            "state_dict_pre",
            "state_dict_post",
            "load_state_dict_pre",
            "load_state_dict_post",
        ):
            setattr(self, f"_optimizer_{name}_hooks", OrderedDict())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; ``closure`` computes the loss anew and returns it."""
        raise NotImplementedError

    @aside(
        clears=lambda self: tuple(one for group in self.param_groups for one in group["params"]),
        writes=lambda self: _gradients(self),
    )
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize further parameters: a dict with ``params``, and options where they are not the defaults."""
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(f"param_group must be a dict, but got {type(param_group)}; pass {{'params': ...}}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, set):
            raise ArgumentTypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs, got a set. Please use a list instead."
            )
        given = [given] if isinstance(given, Tensor) else list(given)
        names = [one[0] for one in given if isinstance(one, tuple)]
        params = [one[1] if isinstance(one, tuple) else one for one in given]
        if names:
            if len(names) != len(params):
                raise ArgumentError(
                    "all optimizer params should be with/without names, got both. Some param names are missing"
                )
            group["param_names"] = names
        group["params"] = params
        for one in params:
            if not isinstance(one, Tensor):
                raise ArgumentTypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type_name(one)}; pass model.parameters()"
                )
            if not self.defaults.get("differentiable") and not (one.is_leaf or one.retains_grad):
                raise ArgumentError("can't optimize a non-leaf Tensor, got the result of an op; pass the leaves")
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ArgumentError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        held = set(chain.from_iterable(other["params"] for other in self.param_groups))
        for other in self.param_groups:
            if ("param_names" in group) != ("param_names" in other):
                text = "with names" if "param_names" in group else "without names"
                raise ArgumentError(
                    f"all optimizer param groups should be with/without names. cannot add param group {text} "
                    "to the optimizer"
                )
        if not held.isdisjoint(params):
            raise ArgumentError("some parameters appear in more than one parameter group; name each once")
        # The caller's own dict is the group, as in PyTorch: changing an option there changes it here.
        param_group.update(group)
        self.param_groups.append(param_group)

    # State, to a dict and back

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups' options; parameters are numbered in the order of the groups."""
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for one in group["params"]:
                numbers.setdefault(id(one), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(one)] for one in group["params"]]
            groups.append(packed)
        state = {(numbers[id(key)] if isinstance(key, Tensor) else key): value for key, value in self.state.items()}
        made: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, made)
            made = made if changed is None else changed
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of the same groups; tensors are copied to each parameter's device and dtype."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ArgumentError(
                f"loaded state dict has a different number of parameter groups, got {len(saved)} for {len(groups)}; "
                f"make the optimizer with the same groups"
            )
        for ours, theirs in zip(groups, saved, strict=True):
            if len(ours["params"]) != len(theirs["params"]):
                raise ArgumentError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                    "group, got "
                    f"{len(theirs['params'])} parameters for {len(ours['params'])}; make the optimizer of the "
                    "same model"
                )
        params = dict(
            zip(
                chain.from_iterable(group["params"] for group in saved),
                chain.from_iterable(group["params"] for group in groups),
                strict=True,
            )
        )
        options = {one: group for group in saved for one in group["params"]}
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _loaded(params[key], value, options[key])
            else:
                state[key] = value
        for ours, theirs in zip(groups, saved, strict=True):
            theirs["params"] = ours["params"]
            if "param_names" in ours:
                theirs.setdefault("param_names", ours["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    # Hooks

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ``(args, kwargs)``."""
        return self._hook("step_pre", hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._hook("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before the state is written down."""
        return self._hook("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after it; the hook may return another dict."""
        return self._hook("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded; the hook may return another dict."""
        return self._hook("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return self._hook("load_state_dict_post", hook, prepend)

    def _hook(self, name: str, hook: Hook, prepend: bool = False) -> RemovableHandle:
        return RemovableHandle(getattr(self, f"_optimizer_{name}_hooks"), hook, prepend=prepend)

    @staticmethod
    def _group_tensors_by_device_and_dtype(lists: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
        """Lists that belong together, such as parameters, gradients and moments, as one such set for each device and dtype
        of the first, each with the positions that it has in the whole: for ``torch._foreach_...`` in optimizers of one's own."""
        found: dict[Any, Any] = {}
        for position, row in enumerate(zip(*lists, strict=True)):
            lists_here, positions = found.setdefault((row[0].device, row[0].dtype), ([[] for _ in lists], []))
            for part, one in zip(lists_here, row, strict=True):
                part.append(one)
            if with_indices:
                positions.append(position)
        return found

    def __repr__(self) -> str:
        groups = [
            f"\nParameter Group {i}\n"
            + "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            for i, group in enumerate(self.param_groups)
        ]
        return f"{type(self).__name__} ({''.join(groups)})"


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer."""
    return RemovableHandle(_PRE, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return RemovableHandle(_POST, hook)


def _gradients(optimizer: Optimizer) -> list[Any]:
    return [one.grad for group in optimizer.param_groups for one in group["params"]]


def _holds(optimizer: Optimizer) -> Any:
    """What a step of an optimizer of this package's may write to; None where it may be anything, as with hooks."""
    own = optimizer.__dict__
    hooks = _PRE, _POST, own.get("_optimizer_step_pre_hooks"), own.get("_optimizer_step_post_hooks")
    if any(hooks) or not type(optimizer).__module__.startswith("tensorcore.optim."):
        return None
    return optimizer.param_groups, list(optimizer.state.values()), _gradients(optimizer)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """``step`` with the hooks around it."""

    @aside(writes=lambda self: _holds(self))
    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not wrapped:
            # Called by the step of a subclass, around which the hooks run.
            return step(self, *args, **kwargs)
        own = self.__dict__  # one that wraps another optimizer may have left out ``__init__``, and has no hooks
        for hook in [*_PRE.values(), *own.get("_optimizer_step_pre_hooks", {}).values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise UsageError(
                        f"step: a pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        self._opt_called = True  # learning rate schedulers ask whether they come after a step
        for hook in [*own.get("_optimizer_step_post_hooks", {}).values(), *_POST.values()]:
            hook(self, args, kwargs)
        return result

    return wrapped


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """``step`` with gradients recorded where the optimizer is ``differentiable``, and not otherwise; PyTorch's own decorator."""

    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return wrapped


def _default_to_fused_or_foreach(params: list[Any], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Which ways PyTorch's optimizers take where none was asked for: fused, and ``_foreach``, which it takes on accelerators."""
    given = [one for one in params if one is not None]
    plain = not differentiable and all(type(one) in (Tensor, Parameter) for one in given)
    fused = plain and use_fused and all(one.is_floating_point() for one in given)
    return fused, plain and not fused and not any(one.device.capabilities.host for one in given)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The kinds of devices whose steps PyTorch can capture."""
    return ["cuda", "xpu", "hpu", *["xla"] * supports_xla]


def closed(closure: Callable[[], Any] | None) -> Any:
    """The loss that a step's closure computes, with recording on; None without one."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def _loaded(param: Tensor, value: Any, group: dict[str, Any], key: Any = None) -> Any:
    """A copy of one state value, its tensors on the parameter's device and in its dtype.

    A count of steps stays as it is, unless the group counts on the device.
    """
    if isinstance(value, Tensor):
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return value.detach().to(param.device, float32, copy=True)  # type: ignore[attr-defined]
            return value.clone()  # type: ignore[attr-defined]
        dtype = param.dtype if param.dtype.is_floating_point else value.dtype
        return value.detach().to(param.device, dtype, copy=True)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {name: _loaded(param, one, group, name) for name, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_loaded(param, one, group) for one in value)  # type: ignore[call-arg]
    return value
