"""Hooks of modules: functions called around ``forward`` and around the module's part of a backward walk."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.errors import GradientError, UsageError
from tensorcore.ops.define import Op
from tensorcore.ops.record import record
from tensorcore.tape.memory import Version, View
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Handle
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "EVERY", "Hooked", "RemovableHandle", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

Hook = Callable[..., Any]


class RemovableHandle(Handle):
    """Takes a hook out of its dict again, and what was noted about it beside that dict.

    Args:
        hooks_dict: the hooks by the ids of their handles. A program that keeps hooks of its own writes there itself:
            ``handle = RemovableHandle(hooks); hooks[handle.id] = hook``.
        extra_dict: a dict, or a list of dicts, out of which the id is taken too.
    """

    def __init__(
        self,
        hooks_dict: dict[int, Any],
        hook: Hook | None = None,
        *,
        extra_dict: dict[int, Any] | list[dict[int, Any]] | None = None,
        prepend: bool = False,
        notes: Sequence[dict[int, Any]] = (),
    ) -> None:
        if hook is None:
            self.id, self.hooks = next(self._ids), hooks_dict
        else:
            super().__init__(hooks_dict, hook)
        self.notes = [*notes, *([extra_dict] if isinstance(extra_dict, dict) else extra_dict or ())]
        for note in notes:
            note[self.id] = True
        if prepend:
            hooks_dict.move_to_end(self.id, last=False)  # type: ignore[attr-defined]

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        super().remove()
        for note in self.notes:
            note.pop(self.id, None)


class _Every:
    """The hooks of every module in the process."""

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.forward: OrderedDict[int, Hook] = OrderedDict()
        self.with_kwargs: dict[int, bool] = {}
        self.always: dict[int, bool] = {}
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()
        self.parameter_registration: OrderedDict[int, Hook] = OrderedDict()
        self.buffer_registration: OrderedDict[int, Hook] = OrderedDict()
        self.module_registration: OrderedDict[int, Hook] = OrderedDict()


EVERY = _Every()


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module; see ``Module.register_forward_pre_hook``."""
    return RemovableHandle(EVERY.forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of every module; see ``Module.register_forward_hook``."""
    return RemovableHandle(EVERY.forward, hook, notes=_notes(EVERY.with_kwargs, with_kwargs, EVERY.always, always_call))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` when gradients arrive at any module."""
    return RemovableHandle(EVERY.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when gradients leave any module."""
    return RemovableHandle(EVERY.backward, hook)


register_module_backward_hook = register_module_full_backward_hook


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when a parameter is registered; what it returns is registered instead."""
    return RemovableHandle(EVERY.parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when a buffer is registered; what it returns is registered instead."""
    return RemovableHandle(EVERY.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when a module is registered; what it returns is registered instead."""
    return RemovableHandle(EVERY.module_registration, hook)


class Hooked:
    """The part of a Module that keeps hooks and calls them around ``forward``."""

    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _forward_hooks: OrderedDict[int, Hook]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _backward_hooks: OrderedDict[int, Hook]
    forward: Callable[..., Any]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward; what it returns replaces the positional arguments.

        Args:
            prepend: before the hooks that are there already, instead of after them.
            with_kwargs: call ``hook(module, args, kwargs)``, which may return new ``(args, kwargs)``.
        """
        notes = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return RemovableHandle(self._forward_pre_hooks, hook, prepend=prepend, notes=notes)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward; what it returns replaces the output.

        Args:
            prepend: before the hooks that are there already, instead of after them.
            with_kwargs: call ``hook(module, args, kwargs, output)``.
            always_call: also when the forward raised.
        """
        notes = _notes(self._forward_hooks_with_kwargs, with_kwargs, self._forward_hooks_always_called, always_call)
        return RemovableHandle(self._forward_hooks, hook, prepend=prepend, notes=notes)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may return new ones."""
        return RemovableHandle(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        It may return a new ``grad_input``. Positions of arguments without a gradient hold None.
        """
        return RemovableHandle(self._backward_hooks, hook, prepend=prepend)

    # The older name; the gradients are those of the whole module here, not of its last op.
    register_backward_hook = register_full_backward_hook

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        result = None
        try:
            for key, hook in (*EVERY.forward_pre.items(), *self._forward_pre_hooks.items()):
                if key in self._forward_pre_hooks_with_kwargs:
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        if not (isinstance(changed, tuple) and len(changed) == 2):
                            raise UsageError(
                                f"forward: forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                f"got {changed!r}; return both"
                            )
                        args, kwargs = changed
                else:
                    changed = hook(self, args)
                    if changed is not None:
                        args = changed if isinstance(changed, tuple) else (changed,)
            backward = None
            if self._backward_hooks or self._backward_pre_hooks or EVERY.backward or EVERY.backward_pre:
                backward = _Backward(self)
                args = backward.watch_inputs(args)
            result = self.forward(*args, **kwargs)
            for key, hook in (*EVERY.forward.items(), *self._forward_hooks.items()):
                called.add(key)
                changed = self._forward_hooked(key, hook, args, kwargs, result)
                if changed is not None:
                    result = changed
            return result if backward is None else backward.watch_outputs(result)
        except Exception:
            for key, hook in (*EVERY.forward.items(), *self._forward_hooks.items()):
                if key in called or not (key in EVERY.always or key in self._forward_hooks_always_called):
                    continue
                try:
                    changed = self._forward_hooked(key, hook, args, kwargs, result)
                    if changed is not None:
                        result = changed
                except Exception as error:
                    warnings.warn(
                        "forward: a forward hook with ``always_call=True`` raised an exception that was "
                        "silenced as another "
                        f"error was raised in forward: {error}",
                        stacklevel=3,
                    )
            raise

    def _forward_hooked(self, key: int, hook: Hook, args: Any, kwargs: Any, result: Any) -> Any:
        if key in EVERY.with_kwargs or key in self._forward_hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)


def _notes(
    kwargs: dict[int, bool], with_kwargs: bool, always: dict[int, bool], always_call: bool
) -> list[dict[int, bool]]:
    return [note for note, wanted in ((kwargs, with_kwargs), (always, always_call)) if wanted]


# One node for all arguments: it fires once, when the gradients of all of them are complete.
_pass_through = Op("pass_through", "inputs", "Tensors as they are.", variadic=True, register=False,
                   grads={"inputs": lambda g: tuple(g)}, backward_name="BackwardHookFunctionBackward")  # fmt: skip


class _Backward:
    """One call of a module whose backward hooks wait for gradients."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.pre = [*EVERY.backward_pre.values(), *module._backward_pre_hooks.values()]
        self.hooks = [*EVERY.backward.values(), *module._backward_hooks.values()]
        self.positions: list[int] | None = None
        self.count = 0
        self.grad_output: tuple[Any, ...] | None = None

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, passed through a node whose gradients are the module's ``grad_input``."""
        self.count = len(args)
        args, self.positions, node = _watched(args)
        if node is not None:
            node.register_hook(self._leave)
        return args

    def watch_outputs(self, result: Any) -> Any:
        """The result, passed through a node whose gradients are the module's ``grad_output``."""
        results, positions, node = _watched(result if isinstance(result, tuple) else (result,))
        if node is not None:
            count = len(results)
            node.register_prehook(lambda g: self._enter(g, positions, count))
        return results if isinstance(result, tuple) else results[0]

    def _enter(self, g: tuple[Any, ...], positions: list[int], count: int) -> tuple[Any, ...] | None:
        grads = _spread(g, positions, count)
        for hook in self.pre:
            changed = hook(self.module, grads)
            if changed is not None:
                grads = _checked("grad_output", changed, count)
        self.grad_output = grads
        if self.positions is None:
            # No argument asks for a gradient, so there is nothing further to wait for.
            for hook in self.hooks:
                if hook(self.module, (None,) * self.count, grads) is not None:
                    raise GradientError(
                        "backward hook: expected None, got a new grad_input; Backward hook for a module with "
                        "no input that "
                        "requires gradient should always return None"
                    )
        return tuple(grads[i] for i in positions)

    def _leave(self, grads: tuple[Any, ...], g: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_output is None:
            raise GradientError(
                "backward hook: expected the gradients of the outputs first, got those of the inputs; "
                "Module backward hook for grad_input is called before the grad_output one"
            )
        found = _spread(grads, self.positions or [], self.count)
        for hook in self.hooks:
            changed = hook(self.module, found, self.grad_output)
            if changed is not None:
                found = _checked("grad_input", changed, self.count)
        self.grad_output = None
        return tuple(found[i] for i in self.positions or [])


def _watched(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int] | None, Any]:
    """The values with those on the tape passed through one node, their positions, and the node."""
    positions = [i for i, one in enumerate(values) if isinstance(one, Tensor) and one.node is not None]
    if not positions or not mode.enabled:
        return values, None, None
    inputs = [values[i] for i in positions]
    made = []
    for one in inputs:
        passed = new_tensor(one.native, one.dtype, one.device)
        if one.version is None:
            one.version = Version()
        passed.version = one.version
        passed.trail = View(one, (), "several")
        made.append(passed)
    record(_pass_through, inputs, None, made)
    result = list(values)
    for i, one in zip(positions, made, strict=True):
        result[i] = one
    return tuple(result), positions, made[0].grad_fn


def _spread(grads: Sequence[Any], positions: list[int], count: int) -> tuple[Any, ...]:
    found = [None] * count
    for i, one in zip(positions, grads, strict=True):
        found[i] = one
    return tuple(found)


def _checked(what: str, changed: Any, count: int) -> tuple[Any, ...]:
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != count:
        raise GradientError(
            f"backward hook: expected {count} gradients, got {len(changed)}; Backward hook returned an "
            "invalid number of "
            f"{what}, got {len(changed)}, but expected {count}"
        )
    return changed
