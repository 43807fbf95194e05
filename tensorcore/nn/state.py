"""The state of a module as a flat dict of tensors, and the way back."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.nn.hooks import RemovableHandle
from tensorcore.nn.parameter import Parameter, is_lazy
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["IncompatibleKeys", "Stateful"]

Hook = Callable[..., Any]
_EXTRA = "_extra_state"


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` did not find, and what it did not need."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"

    __str__ = __repr__


class Stateful:
    """The part of a Module that writes its state down and reads it back."""

    _version = 1  # of the layout of this class's state; noted in ``state_dict()._metadata``

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Hook]
    _state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_post_hooks: OrderedDict[int, Hook]

    def get_extra_state(self) -> Any:
        """What else belongs to this module's state; override together with ``set_extra_state``."""
        raise RuntimeError(
            "get_extra_state: expected an override, got a module without one; Reached a code path in "
            "Module.get_extra_state() that should never be called"
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what ``get_extra_state`` gave."""
        raise RuntimeError(
            "set_extra_state: expected an override, got a module without one; Reached a code path in "
            "Module.set_extra_state() that should never be called"
        )

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers by their dotted names, sharing memory with the module.

        Args:
            destination: a dict to write into, instead of a new one.
            prefix: put before each name.
            keep_vars: give the tensors themselves, on the tape, instead of detached ones.
        """
        for name, value in zip(("destination", "prefix", "keep_vars"), args, strict=False):
            destination = value if name == "destination" and destination is None else destination
            prefix = value if name == "prefix" and prefix == "" else prefix
            keep_vars = value if name == "keep_vars" and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                if changed is not None:
                    destination = changed
            elif changed is not None:
                raise RuntimeError(
                    f"state_dict: state_dict post-hook must return None, got {changed!r}; change the dict in place"
                )
        return destination

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the state is written down."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after it; the hook may change the dict in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return RemovableHandle(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "_register_state_dict_hook: cannot register the same function as the state dict post hook "
                "that was previously "
                "registered via register_state_dict_post_hook, got one; pass another function"
            )
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before this module reads its part."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_pre_hooks, _PreHook(hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the two lists in place."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy a state into this module's tensors. Everything that does not fit is listed in one error.

        Nothing is written where that error is raised (unless a post hook has to see the loaded state first).

        Args:
            strict: raise where a name is missing or is not needed, instead of only returning them.
            assign: take the tensors of ``state_dict`` themselves, instead of copying their values.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentTypeError(
                f"load_state_dict: Expected state_dict to be dict-like, got {type(state_dict)}; pass "
                "module.state_dict()"
            )
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata  # type: ignore[attr-defined]
        writes: list[Callable[[], None]] = []
        loaded: list[Any] = []

        def load(module: Any, local_state: Any, prefix: str) -> None:
            local_metadata = dict((metadata or {}).get(prefix[:-1], {}))
            # The default ``_load_from_state_dict`` writes through this list: first everything is checked.
            local_metadata.update(assign_to_params_buffers=assign, deferred_writes=writes)
            module._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    inner = f"{prefix}{name}."
                    load(child, {k: v for k, v in local_state.items() if k.startswith(inner)}, inner)
            loaded.append(module)

        load(self, state, "")
        hooked = [(one, hook) for one in loaded for hook in one._load_state_dict_post_hooks.values()]
        if hooked or not (errors or (strict and (missing or unexpected))):
            for write in writes:
                write()
        found = IncompatibleKeys(missing, unexpected)
        for one, hook in hooked:
            if hook(one, found) is not None:
                raise RuntimeError(
                    "load_state_dict: Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return "
                    "new values, got one; change incompatible_keys in place"
                )
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise UsageError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return found

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, one in self._parameters.items():
            if one is not None:
                destination[prefix + name] = one if keep_vars else one.detach()
        for name, one in self._buffers.items():
            if one is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = one if keep_vars else one.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Read this module's own part, without its children's; subclasses override it to read older layouts."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        buffers = {name: one for name, one in self._buffers.items() if name not in self._non_persistent_buffers_set}
        mine = {name: one for name, one in (*self._parameters.items(), *buffers.items()) if one is not None}
        writes = local_metadata.get("deferred_writes")
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, one in mine.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            given = state_dict[key]
            if not isinstance(given, Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                    "from checkpoint "
                    f"but received {type(given)}"
                )
                continue
            if is_lazy(one) or is_lazy(given):
                if is_lazy(given) and not is_lazy(one):
                    error_msgs.append(
                        f'While copying the parameter named "{key}", expected one with a shape from checkpoint but '
                        f"received an uninitialized one"
                    )
                    continue
                if is_lazy(given):
                    continue
            elif not one.shape and given.shape == (1,):
                given = given[0]  # how 0-d buffers were once saved
            if not is_lazy(one) and given.shape != one.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the "
                    "shape in current "
                    f"model is {one.shape}."
                )
                continue
            if one.is_meta and not given.is_meta and not assign:
                warnings.warn(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                    f"module, which is a no-op. (Did you mean to pass `assign=True`?)",
                    stacklevel=4,
                )
            write = _Write(self, name, one, given, assign)
            if writes is None:
                write()
            else:
                writes.append(write)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if extra in state_dict:
                writes.append(lambda: self.set_extra_state(state_dict[extra])) if writes is not None else (
                    self.set_extra_state(state_dict[extra])
                )
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if first not in (self._modules if dot else mine):
                        unexpected_keys.append(key)


class _PreHook:
    """A hook before loading; an object, so that a module with one can be pickled and copied."""

    def __init__(self, hook: Hook, with_module: bool) -> None:
        self.hook = hook
        self.with_module = with_module

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(module, *args) if self.with_module else self.hook(*args)


class _Write:
    """One tensor of the module and the values that it gets."""

    def __init__(self, module: Any, name: str, target: Tensor, source: Tensor, assign: bool) -> None:
        self.module = module
        self.name = name
        self.target = target
        self.source = source
        self.assign = assign

    def __call__(self) -> None:
        if not self.assign and type(self.target) is Tensor is type(self.source) and not self.target.is_inference():
            # The same memory off the tape: a copy asks least about that.
            self.target.detach().copy_(self.source.detach())  # type: ignore[attr-defined]
            return
        with no_grad():
            if not self.assign:
                if is_lazy(self.target):
                    self.target.materialize(self.source.shape)  # type: ignore[attr-defined]
                self.target.copy_(self.source)  # type: ignore[attr-defined]
                return
            source = self.source
            if isinstance(self.target, Parameter) and not isinstance(source, Parameter):
                source = Parameter(source, requires_grad=self.target.requires_grad)
            elif isinstance(self.target, Parameter):
                source.requires_grad_(self.target.requires_grad)
            setattr(self.module, self.name, source)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
