"""Module: a part of a model, with its parameters, buffers and submodules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Self

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, ValuesMissing
from tensorcore.nn.hooks import EVERY, Hooked
from tensorcore.nn.members import Members, type_name
from tensorcore.nn.parameter import Buffer, Parameter, is_lazy
from tensorcore.nn.state import Stateful
from tensorcore.ops.placement import as_device, destination
from tensorcore.tape.mode import no_grad
from tensorcore.tape.node import ACCUMULATE, Node
from tensorcore.tensor import Tensor

__all__ = ["Module"]

_DICTS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


class Module(Members, Hooked, Stateful):
    """The base of every layer and model.

    Parameters, buffers and modules that are assigned to its attributes are registered under the
    attribute's name; calling the module runs ``forward`` with the hooks around it.

    Attributes:
        training: whether the module is in training mode; dropout and batch norm ask.
    """

    training: bool
    call_super_init = False  # whether ``__init__`` goes on to the next class, which gets its arguments
    dump_patches = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Of a wrong argument Python says ``Conv2d.__init__()``, which was called, and not the name of a private base.

        And an op in the body, as in ``act = torch.tanh``, is no method: PyTorch's are functions of C, which Python does not bind.
        """
        super().__init_subclass__(**options)
        for name, value in [*vars(cls).items()]:
            room = getattr(value, "__module__", None) or ""
            if callable(value) and (room == "tensorcore" or room.startswith("tensorcore.ops.")):
                setattr(cls, name, staticmethod(value))
        init: Any = cls.__init__
        if init.__qualname__.startswith("_") and not cls.__name__.startswith("_"):
            own = FunctionType(init.__code__, init.__globals__, "__init__", init.__defaults__, init.__closure__)
            own.__kwdefaults__, own.__annotations__, own.__doc__ = (
                init.__kwdefaults__,
                init.__annotations__,
                init.__doc__,
            )
            own.__module__, own.__qualname__ = init.__module__, f"{cls.__qualname__}.__init__"
            cls.__init__ = own  # type: ignore[method-assign]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise ArgumentTypeError(
                f"{type(self).__name__}.__init__() got an unexpected argument: {args or list(kwargs)}; "
                f"set call_super_init = True to pass it on"
            )
        # Past __setattr__, which would ask each time what kind of member this is.
        found = self.__dict__
        found["training"] = True
        found["_parameters"] = {}
        found["_buffers"] = {}
        found["_non_persistent_buffers_set"] = set()
        for name in _DICTS:
            found[name] = OrderedDict()
        found["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass writes its own."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or EVERY.forward_pre
            or EVERY.forward
            or EVERY.backward_pre
            or EVERY.backward
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    # Attributes

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = found.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        found = self.__dict__
        parameters, modules, buffers = found.get("_parameters"), found.get("_modules"), found.get("_buffers")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._remove(name, found, buffers, modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise _refused(value, "parameter", name, "torch.nn.Parameter")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._remove(name, found, parameters, buffers)
            self._set_module(name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise _refused(value, "child module", name, "torch.nn.Module")
            self._set_module(name, None)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise _refused(value, "buffer", name, "torch.nn.Buffer, torch.Tensor")
            found.pop(name, None)
            persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
            self.register_buffer(name, value, persistent)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[:1].isdigit())

    def _remove(self, name: str, *members: dict[str, Any]) -> None:
        for one in members:
            one.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_module(self, name: str, module: Module | None) -> None:
        for hook in EVERY.module_registration.values():
            changed = hook(self, name, module)
            module = module if changed is None else changed
        self._modules[name] = module

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Set training mode, here and below; ``mode=False`` is ``eval()``."""
        if not isinstance(mode, bool):
            raise ArgumentError(f"train: training mode is expected to be boolean, got {mode!r}; pass True or False")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode, here and below."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Ask for gradients of all parameters, or no longer."""
        for one in self.parameters():
            one.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        clear_grads(self.parameters(), set_to_none)

    # All tensors at once

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` on every module below, then on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Put ``fn`` of each tensor in its place; parameters stay the same objects, as optimizers need."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for one in self._parameters.values():
            if one is None:
                continue
            with no_grad():
                one.data = fn(one)
                if one.grad is not None:
                    one.grad.data = fn(one.grad)
        for name, one in self._buffers.items():
            if one is not None:
                with no_grad():
                    self._buffers[name] = fn(one)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move all tensors to a device, and those of floating or complex dtype to a dtype, in place.

        Takes ``to(device=..., dtype=..., non_blocking=...)``, ``to(dtype)`` or ``to(tensor)``.
        """
        device, dtype = destination(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise ArgumentTypeError(
                f"to: nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}; "
                f"convert single tensors with .to(...)"
            )
        return self._moved(device, dtype)

    def _moved(self, device: Any, dtype: dtypes.dtype | None = None) -> Self:
        # Not through ``to``, which a module may define in terms of ``cpu`` and ``cuda``.
        target = None if device is None else as_device(device)

        def convert(tensor: Tensor) -> Tensor:
            fits = tensor.dtype.is_floating_point or tensor.dtype.is_complex
            if tensor.is_meta and not is_lazy(tensor) and target is not None and target.capabilities.values:
                raise ValuesMissing(
                    f"to: Cannot copy out of meta tensor; no data! expected values to move to {target}, got shapes alone; "
                    f"use torch.nn.Module.to_empty(device=...)"
                )
            return tensor.to(target, dtype if fits else None)  # type: ignore[attr-defined]

        return self._apply(convert)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """``torch.compile`` in place: calls replay what ``forward`` did, with the hooks around it as ever."""
        from tensorcore.compiler import compile

        self.__dict__.pop("forward", None)
        self.forward = compile(self.forward, *args, **kwargs)  # type: ignore[method-assign]

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give all tensors memory on ``device`` without copying their values."""
        target = as_device(device)
        return self._apply(lambda one: one.new_empty(tuple(one.shape), device=target), recurse)  # type: ignore[attr-defined]

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype, in place."""
        wanted = dtypes.as_dtype(dst_type, "type")
        return self._apply(lambda one: one.to(wanted))  # type: ignore[attr-defined]

    def float(self) -> Self:
        """Convert all floating parameters and buffers to float32, in place."""
        return self._floating(dtypes.float32)

    def double(self) -> Self:
        """Convert all floating parameters and buffers to float64, in place."""
        return self._floating(dtypes.float64)

    def half(self) -> Self:
        """Convert all floating parameters and buffers to float16, in place."""
        return self._floating(dtypes.float16)

    def bfloat16(self) -> Self:
        """Convert all floating parameters and buffers to bfloat16, in place."""
        return self._floating(dtypes.bfloat16)

    def _floating(self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda one: one.to(dtype) if one.dtype.is_floating_point else one)  # type: ignore[attr-defined]

    def cpu(self) -> Self:
        """Move all parameters and buffers to the host."""
        return self._moved("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Move all parameters and buffers to a GPU: the first one, or that of an index or a name."""
        return self._moved("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def share_memory(self) -> Self:
        """Move all parameters and buffers to memory that processes share, as ``Tensor.share_memory_`` does."""
        return self._apply(lambda one: one.share_memory_())  # type: ignore[attr-defined]

    # Text and copies

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """What a subclass shows between its brackets."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        below = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(own) == 1 and not below:
            return f"{self._get_name()}({own[0]})"
        lines = own + below
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({inside})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Modules pickled by an older version lack the dicts that came later.
        for name in _DICTS:
            self.__dict__.setdefault(name, OrderedDict())


def clear_grads(tensors: Iterable[Tensor], set_to_none: bool) -> None:
    """Forget the gradients of some tensors, or fill them with zeros."""
    for one in tensors:
        if set_to_none:
            node = one.node
            if type(node) is Node and node.op is ACCUMULATE:  # one frame fewer
                node.grad = None
            else:
                one.grad = None
        elif (grad := one.grad) is not None:
            one.grad = grad = grad.detach() if grad.requires_grad else grad
            grad.zero_()  # type: ignore[attr-defined]


def indented(text: str) -> str:
    """The text with every line but the first moved in by two."""
    return text.replace("\n", "\n  ")


def _refused(value: Any, what: str, name: str, wanted: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"cannot assign '{type_name(value)}' as {what} '{name}' ({wanted} or None expected), got {value!r}; "
        f"delete the attribute first to make it an ordinary one"
    )
