"""Parametrizations: tensors of a module that are computed, at each access, from others that are trained."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tensorcore.errors import ArgumentError, UsageError
from tensorcore.nn.containers import ModuleDict, ModuleList
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    """What was computed inside ``cached()``.

    Attributes:
        depth: how many of these contexts are open.
    """

    depth = 0
    values: dict[tuple[int, str], Any] = {}  # noqa: RUF012


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once, at its first access."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors that it is computed from.

    Those are ``original``, or ``original0``, ``original1``, ... where ``right_inverse`` gives several.

    Attributes:
        unsafe: whether the parametrizations may change the tensor's dtype and shape.
    """

    original: Any

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ArgumentError("ParametrizationList requires one or more modules, got none")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = tuple(original.shape), original.dtype
        new = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ArgumentError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            if new.dtype is not dtype or new.device is not original.device:
                raise ArgumentError(
                    f"When `right_inverse` outputs one tensor, it may not change the dtype or the device.\n"
                    f"original: {dtype} on {original.device}\nright_inverse(original): {new.dtype} on {new.device}"
                )
            _point(original, new)
            _register(self, "original", original)
        else:
            for i, one in enumerate(new):
                if not isinstance(one, Tensor):
                    raise ArgumentError(
                        f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(one).__name__}."
                    )
                if isinstance(original, Parameter):
                    one = Parameter(one, original.requires_grad)
                _register(self, f"original{i}", one.requires_grad_(original.requires_grad))
        if not unsafe:
            _check_like(self(), "A parametrization", shape, dtype)

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parametrized tensor becomes ``value``."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor and not isinstance(value, Tensor):
                raise ArgumentError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
            if not self.is_tensor and (not isinstance(value, Sequence) or len(value) != self.ntensors):
                raise ArgumentError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got {value!r}."
                )
            found = list(self._originals())
            values = [value] if self.is_tensor else list(value)
            for target, one in zip(found, values, strict=True):
                if not isinstance(one, Tensor) or one.dtype is not target.dtype:
                    got = one.dtype if isinstance(one, Tensor) else type(one).__name__
                    raise ArgumentError(
                        f"The tensor returned by `right_inverse` has dtype {got} while `original` has dtype {target.dtype}"
                    )
            for target, one in zip(found, values, strict=True):
                _point(target, one)

    def _originals(self) -> Iterator[Any]:
        if self.is_tensor:
            yield self.original
        else:
            for i in range(self.ntensors):
                yield getattr(self, f"original{i}")

    def forward(self) -> Any:
        """The parametrized tensor."""
        first, *others = self
        made = first(*self._originals())
        for one in others:
            made = one(made)
        return made

    # A list would count the originals' names as its own.
    def __len__(self) -> int:
        return len(self._modules)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute ``module.<tensor_name>`` by ``parametrization`` from now on; several ones chain.

    The trained tensor moves to ``module.parametrizations.<tensor_name>.original``. Where the parametrization has
    ``right_inverse(value)``, it gives the first original (a tensor, or several), and lets programs assign to
    ``module.<tensor_name>``.

    Args:
        unsafe: allow another shape or dtype than the tensor's, unchecked.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            now = getattr(module, tensor_name)
            changed = parametrization(now)
            _check_like(changed, "A parametrization", tuple(now.shape), now.dtype)
            if hasattr(parametrization, "right_inverse"):
                try:
                    back = parametrization.right_inverse(changed)
                except NotImplementedError:
                    pass
                else:
                    _check_like(back, "parametrization.right_inverse", tuple(now.shape), now.dtype)
        found: Any = module.parametrizations
        found[tensor_name].append(parametrization)
        found[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _computed(tensor_name))
        module.parametrizations[tensor_name] = made  # type: ignore[operator]
    else:
        raise ArgumentError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module, or any one, is parametrized."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor an ordinary one again.

    Args:
        leave_parametrized: of the parametrized value; else of the original, which must be one tensor.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"Module {module} does not have a parametrization on {tensor_name}")
    found: Any = module.parametrizations
    parametrized = found[tensor_name]
    if parametrized.is_tensor:
        original = parametrized.original
        if leave_parametrized:
            with no_grad():
                _point(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ArgumentError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
            f"of tensors, got {parametrized.ntensors} of them"
        )
    delattr(type(module), tensor_name)
    del found[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Register the parametrizations of one module, or of one tensor of it, on another, with the same originals."""
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module.parametrizations
    for name in list(source) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for one in source[name]:
            register_parametrization(to_module, name, one)
        target: Any = to_module.parametrizations[name]  # type: ignore[operator]
        for which, one in (*source[name]._parameters.items(), *source[name]._buffers.items()):
            setattr(target, which, one)
    return to_module


def _point(target: Any, source: Any) -> None:
    """Make ``target`` show the values of ``source``; it stays the same object."""
    if target is not source:
        target.data = source.detach()


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_like(made: Any, who: str, shape: tuple[int, ...], dtype: Any) -> None:
    if not isinstance(made, Tensor):
        raise ArgumentError(f"{who} must return a tensor. Got {type(made).__name__}.")
    if made.dtype is not dtype or tuple(made.shape) != shape:
        raise ArgumentError(
            f"{who} may not change the dtype or the shape of the tensor, unless the `unsafe` flag is enabled.\n"
            f"tensor: {dtype} of {list(shape)}\ngot: {made.dtype} of {list(made.shape)}"
        )


def _give_own_class(module: Module) -> None:
    """A class of this one module, derived from the one it had, that can carry properties."""

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = memo[id(self)] = self.__new__(type(self))
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def getstate(self: Any) -> Any:
        raise UsageError(
            "Serialization of parametrized modules is only supported through state_dict(), got a module to pickle"
        )

    cls = type(module)
    members: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _computed(name: str) -> property:
    def get(self: Any) -> Any:
        parametrization = self._modules["parametrizations"][name]
        if not _Cache.depth:
            return parametrization()
        key = id(self), name
        if key not in _Cache.values:
            _Cache.values[key] = parametrization()
        return _Cache.values[key]

    def assign(self: Any, value: Any) -> None:
        self._modules["parametrizations"][name].right_inverse(value)

    return property(get, assign)
