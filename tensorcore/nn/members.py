"""What a module consists of, by name: parameters, buffers, submodules, and how they are registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.nn.hooks import EVERY
from tensorcore.nn.parameter import Parameter
from tensorcore.tensor import Tensor

__all__ = ["Members", "type_name"]

_TENSOR_TYPES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip


class Members:
    """The part of a Module that registers, finds and lists its tensors and submodules."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep ``tensor`` as an attribute that moves with the module and is not trained.

        Args:
            persistent: whether ``state_dict`` lists it.
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"register_buffer: cannot assign '{type_name(tensor)}' object to buffer '{name}' "
                f"(torch Tensor or None required), got {tensor!r}; wrap it in torch.tensor(...)"
            )
        for hook in EVERY.buffer_registration.values():
            changed = hook(self, name, tensor)
            tensor = tensor if changed is None else changed
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Keep ``param`` as an attribute that optimizers find; None keeps the name for one that is left out."""
        self._check_name("parameter", name, "_parameters")
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise ArgumentTypeError(
                f"register_parameter: cannot assign '{type_name(param)}' object to parameter '{name}' "
                f"(torch.nn.Parameter or None required), got {param!r}; wrap it in torch.nn.Parameter(...)"
            )
        if param.grad_fn is not None:
            raise ArgumentError(
                f"register_parameter: Cannot assign non-leaf Tensor to parameter '{name}', got the result of "
                "an op; compute it "
                f"in forward() from parameters instead"
            )
        for hook in EVERY.parameter_registration.values():
            changed = hook(self, name, param)
            param = param if changed is None else changed
        self._parameters[name] = param

    def register_module(self, name: str, module: Any) -> None:
        """Keep a submodule under ``name``, as assigning it to an attribute does."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Any) -> None:
        """Keep a submodule under ``name``, as assigning it to an attribute does."""
        if module is not None and not isinstance(module, Members):
            raise ArgumentTypeError(
                f"add_module: expected a Module, got {type_name(module)} is not a Module subclass; derive it"
            )
        self._check_name("module", name, "_modules")
        for hook in EVERY.module_registration.values():
            changed = hook(self, name, module)
            module = module if changed is None else changed
        self._modules[name] = module

    def _check_name(self, what: str, name: Any, members: str) -> None:
        if members not in self.__dict__:
            raise AttributeError(
                f"cannot assign {what} before Module.__init__() call, got one; call super().__init__() first"
            )
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{what} name should be a string. Got {type_name(name)}; pass a str")
        if name in self.__dict__[members]:
            return
        if hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')

    # One member by its dotted name

    def get_submodule(self, target: str) -> Any:
        """The submodule of the dotted name ``target``; the module itself for an empty one."""
        module: Any = self
        for name in target.split(".") if target else []:
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put ``module`` in the place of the dotted name ``target``.

        Args:
            strict: raise where there is no submodule of that name yet.
        """
        if not target:
            raise ArgumentError(
                "set_submodule: expected a name, got ''; Cannot set the submodule without a target name!"
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Members):
            raise AttributeError(f"`{name}` is not an nn.Module")
        if not isinstance(module, Members):
            raise ArgumentError(f"set_submodule: `module` is not an nn.Module, got {type(module)}; pass a Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of the dotted name ``target``."""
        return self._get(target, lambda one: isinstance(one, Parameter), "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of the dotted name ``target``."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        return self._get(target, lambda one: name in owner._buffers, "a buffer")

    def _get(self, target: str, fits: Callable[[Any], bool], what: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        found = getattr(owner, name)
        if not fits(found):
            raise AttributeError(f"`{name}` is not {what}")
        return found

    # All members

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Each parameter once, those of submodules too unless ``recurse`` is False."""
        for _, one in self.named_parameters(recurse=recurse):
            yield one

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Pairs of dotted name and parameter; a shared one once, unless ``remove_duplicate`` is False."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Each buffer once, those of submodules too unless ``recurse`` is False."""
        for _, one in self.named_buffers(recurse=recurse):
            yield one

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Pairs of dotted name and buffer."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def _named_members(
        self, members: Callable[[Any], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, one in members(module):
                if one is None or id(one) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(one))
                yield (f"{path}.{name}" if path else name), one

    def children(self) -> Iterator[Any]:
        """Each immediate submodule once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Pairs of name and immediate submodule."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """The module itself and every one below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Pairs of dotted name and module, this one first; names start with ``prefix``."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)


def type_name(value: Any) -> str:
    """The type of ``value`` as error messages write it: tensors as PyTorch names theirs, builtins without module."""
    if isinstance(value, Tensor):
        where = "" if value.device.capabilities.host else f"{value.device.type}."
        return f"torch.{where}{_TENSOR_TYPES[value.dtype.name]}Tensor"
    kind = type(value)
    return kind.__name__ if kind.__module__ in ("builtins", None) else f"{kind.__module__}.{kind.__name__}"
