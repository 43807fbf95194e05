"""Operators of a program's own: ``torch.library.custom_op``, with kernels by device, a shape rule and a gradient."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from types import NoneType, SimpleNamespace, UnionType
from typing import Any

from tensorcore import dtypes, ops
from tensorcore.autograd.function import Function
from tensorcore.backend.base import Backend
from tensorcore.errors import ArgumentError, ArgumentTypeError, GradientError, KernelMissing, UsageError
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor

__all__ = ["CustomOpDef", "custom_op", "infer_schema", "register_autograd", "register_fake", "register_kernel",
           "register_vmap"]  # fmt: skip

_DEFINED: dict[str, CustomOpDef] = {}
_WORDS = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtypes.dtype: "ScalarType",
          Backend: "Device", complex: "Scalar", int | float | bool: "Scalar"}  # fmt: skip


class CustomOpDef:
    """An operator that a program defined; call it as the function it was made of, or as ``torch.ops.{space}.{name}``."""

    def __init__(self, name: str, function: Callable[..., Any], mutates: Any, devices: Any, schema: str | None) -> None:
        space, _, own = name.partition("::")
        if not space.isidentifier() or not own.isidentifier():
            raise ArgumentError(
                f"custom_op: expected a name as 'namespace::name', got {name!r}; put your library's in front"
            )
        self._qualname, self._namespace, self._name = name, space, own
        self._function = function
        self._signature = inspect.signature(function)
        self._schema = own + (schema or infer_schema(function, mutates_args=mutates))
        self._mutates = () if mutates == "unknown" else tuple(mutates)
        self._fake: Callable[..., Any] | None = None
        self._kernels: dict[str | None, Callable[..., Any]] = {}
        for device in _named(devices):
            self._kernels[device] = function
        self._listed = self._schema.endswith("-> Tensor[]")
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._recorded = _recorded(self)
        _DEFINED[name] = self
        if not hasattr(ops, space):
            setattr(ops, space, SimpleNamespace())
        if isinstance(getattr(ops, space), SimpleNamespace):
            setattr(getattr(ops, space), own, self)
        self.__name__, self.__doc__ = own, function.__doc__

    @property
    def default(self) -> CustomOpDef:
        """Itself: there is one overload."""
        return self

    def register_kernel(self, device_types: str | Sequence[str] | None, func: Any = None, /) -> Any:
        """Let ``func``, or what this decorates, run on devices of these kinds; on all others where None."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self._kernels.update(dict.fromkeys(_named(device_types), function))
            return function

        return enter if func is None else enter(func)

    def register_fake(self, func: Callable[..., Any], /) -> Callable[..., Any]:
        """Let ``func`` make the result of tensors without values, as those on ``meta``: shapes and dtypes alone."""
        self._fake = func
        return func

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Give the gradients: ``backward(ctx, *grads)`` answers one for each argument that may come by position.

        Args:
            setup_context: called as ``setup_context(ctx, inputs, output)`` after each call, to keep what is needed; with
                ``keyword_only_inputs`` too where the operator has such arguments.
        """
        if self._mutates:
            raise UsageError(
                f"register_autograd: Cannot register autograd formula for non-functional operator, got {self._qualname}, which "
                f"writes to {', '.join(self._mutates)}; return a new tensor"
            )
        self._backward, self._setup = backward, setup_context
        self._recorded = _recorded(self)

    def register_vmap(self, func: Any = None, /) -> Any:
        """Let ``func``, or what this decorates, run inside ``vmap``: ``func(info, in_dims, *args)`` answers results and out_dims."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self._vmap = function
            self._recorded = _recorded(self)
            return function

        return enter if func is None else enter(func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        flat, lengths = _opened(bound.args)
        tensors = [one for one in (*flat, *bound.kwargs.values()) if isinstance(one, Tensor)]
        recorded = mode.enabled and any(one.requires_grad for one in tensors)
        if recorded and self._mutates:
            raise GradientError(
                f"{self._qualname}: writes to {', '.join(self._mutates)} and has no gradient, got a tensor that requires grad; "
                f"detach() it"
            )
        if not recorded and not (mode.levels and self._vmap):
            return self._run(tensors, bound.args, bound.kwargs)
        made = self._recorded.apply(*flat, (lengths, bound.kwargs))
        return list(made) if self._listed else made

    def _run(self, tensors: Sequence[Tensor], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        device = tensors[0].device if tensors else None
        kernel = self._kernels.get(None if device is None else device.name) or self._kernels.get(None)
        if self._fake is not None and device is not None and not device.capabilities.values:
            kernel = self._fake
        if kernel is None:
            raise KernelMissing(
                f"{self._qualname}: Could not run it with tensors on {device}, got kernels for {sorted(map(str, self._kernels))}; "
                f"register one with register_kernel"
            )
        made = kernel(*args, **keywords)
        for one in made if isinstance(made, (tuple, list)) else (made,):
            if any(one is given or _shares(one, given) for given in tensors):
                raise UsageError(
                    f"{self._qualname}: The output of this custom operator must not be an input or show the memory of one, got "
                    f"one that does; return a clone()"
                )
        return made

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def _recorded(definition: CustomOpDef) -> Any:
    """The Function of an operator. Tensors of lists are arguments of its ``apply``; the last one tells how they belong together."""
    backward, setup, mapped = definition._backward, definition._setup, definition._vmap

    def forward(ctx: Any, *values: Any) -> Any:
        *flat, (lengths, keywords) = values
        args = _closed(flat, lengths)
        # What runs sees tensors that require no grad, whatever came.
        plain = [one.detach() if isinstance(one, Tensor) else one for one in flat]
        options = {key: one.detach() if isinstance(one, Tensor) else one for key, one in keywords.items()}
        tensors = [one for one in (*plain, *options.values()) if isinstance(one, Tensor)]
        made = definition._run(tensors, _closed(plain, lengths), options)
        if setup is not None:
            more = {"keyword_only_inputs": keywords} if keywords else {}
            setup(ctx=ctx, inputs=tuple(args), output=made, **more)
        ctx._lengths = lengths
        return tuple(made) if definition._listed else made

    def gradients(ctx: Any, *grads: Any) -> Any:
        if backward is None:
            raise GradientError(
                f"{definition._qualname}: Trying to backward through it but no autograd formula was registered, got a "
                f"gradient; use register_autograd"
            )
        needs = ctx.needs_input_grad
        ctx.needs_input_grad = tuple(_closed(needs[:-1], ctx._lengths))
        try:
            found = backward(ctx, list(grads)) if definition._listed else backward(ctx, *grads)
        finally:
            ctx.needs_input_grad = needs
        each = found if isinstance(found, tuple) else (found,)
        wanted = [length for _, length in zip(each, ctx._lengths, strict=False)]
        for one, length in zip(each, wanted, strict=False):
            if length is not None and not (isinstance(one, list) and len(one) == length):
                raise GradientError(
                    f"{definition._qualname}: Expected the return from backward to be of the same structure as the inputs, got "
                    f"{one!r} for a list of {length} tensors; return a list of as many gradients or None"
                )
        opened = [two for one, n in zip(each, wanted, strict=False) for two in ((one,) if n is None else one)]
        return (*opened, *each[len(wanted) :], None)

    def vmap(info: Any, in_dims: Any, *values: Any) -> Any:
        assert mapped is not None
        *flat, (lengths, keywords) = values
        return mapped(info, tuple(_closed(in_dims[:-1], lengths)), *_closed(flat, lengths), **keywords)

    parts: dict[str, Any] = {"forward": staticmethod(forward), "backward": staticmethod(gradients)}
    if mapped is not None:
        parts["vmap"] = staticmethod(vmap)
    return type(definition._name, (Function,), parts)


def _opened(args: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """The arguments with lists of tensors laid open, and the length of each that was one, None for the others."""
    lengths = [
        len(one) if isinstance(one, (list, tuple)) and any(isinstance(each, Tensor) for each in one) else None
        for one in args
    ]
    flat = [each for one, n in zip(args, lengths, strict=True) for each in ((one,) if n is None else one)]
    return flat, lengths


def _closed(flat: Sequence[Any], lengths: Sequence[int | None]) -> list[Any]:
    """The arguments that ``_opened`` laid open, with their lists."""
    rest = iter(flat)
    return [next(rest) if n is None else [next(rest) for _ in range(n)] for n in lengths]


def _shares(one: Any, other: Tensor) -> bool:
    return isinstance(one, Tensor) and one.version is not None and one.version is other.version


def _named(devices: Any) -> tuple[str | None, ...]:
    if devices is None or devices == "default":
        return (None,)
    return (devices,) if isinstance(devices, str) else tuple(devices)


def custom_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
              device_types: Any = None, schema: str | None = None, tags: Any = None) -> Any:  # fmt: skip
    """Make an operator of a function, which no trace and no tape looks into; also as a decorator.

    Args:
        name: ``"namespace::name"``.
        mutates_args: the names of the arguments that the function writes to, ``()`` if none, or ``"unknown"``.
        device_types: the kinds of devices that the function runs on; all where None.
        schema: the arguments and results in PyTorch's notation; found from the annotations where None.
        tags: taken for the sake of PyTorch's programs.
    """

    def enter(function: Callable[..., Any]) -> CustomOpDef:
        return CustomOpDef(name, function, mutates_args, device_types, schema)

    return enter if fn is None else enter(fn)


def _definition(function: str, op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else _DEFINED.get(op)
    if found is None:
        raise ArgumentError(
            f"{function}: expected an operator that custom_op made, or its name, got {op!r}; define it first"
        )
    return found


def register_kernel(op: Any, device_types: Any, func: Any = None, /) -> Any:
    """As the operator's own ``register_kernel``; ``op`` is the operator or its name."""
    return _definition("register_kernel", op).register_kernel(device_types, func)


def register_fake(op: Any, func: Any = None, /) -> Any:
    """As the operator's own ``register_fake``, also as a decorator."""
    found = _definition("register_fake", op)
    return found.register_fake if func is None else found.register_fake(func)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
    """As the operator's own ``register_autograd``."""
    _definition("register_autograd", op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Any = None, /) -> Any:
    """As the operator's own ``register_vmap``, also as a decorator."""
    return _definition("register_vmap", op).register_vmap(func)


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """A function's annotations in PyTorch's notation, as ``"(Tensor x, SymInt n=1) -> Tensor"``."""
    hints = typing.get_type_hints(prototype_function)
    parameters = inspect.signature(prototype_function).parameters
    written = () if mutates_args == "unknown" else tuple(mutates_args)
    if unknown := set(written) - set(parameters):
        raise ArgumentError(
            f"infer_schema: expected mutates_args to name arguments, got {sorted(unknown)}; name parameters"
        )
    parts, star = [], False
    for name, one in parameters.items():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or name not in hints:
            raise ArgumentError(
                f"infer_schema: expected each parameter by name and with a type annotation, got {name!r}; give it one"
            )
        if one.kind is one.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        word, place = _word(hints[name], name), len([part for part in parts if part != "*"])
        if name in written or (mutates_args == "unknown" and word.startswith("Tensor")):
            word = f"Tensor(a{place}!){word[len('Tensor') :]}"
        default = "" if one.default is one.empty else f"={_default(one.default)}"
        parts.append(f"{word} {name}{default}")
    made = hints.get("return", NoneType)
    results = list(typing.get_args(made)) if typing.get_origin(made) is tuple else [] if made is NoneType else [made]
    names = [_word(one, "return") for one in results]
    answer = names[0] if len(names) == 1 and typing.get_origin(made) is not tuple else f"({', '.join(names)})"
    return f"{op_name or ''}({', '.join(parts)}) -> {answer}"


def _word(hint: Any, name: str) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if origin in (typing.Union, UnionType) and NoneType in inner:
        rest = [one for one in inner if one is not NoneType]
        return f"{_word(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)], name)}?"  # noqa: UP007
    if isinstance(origin, type) and issubclass(origin, Sequence) and origin is not tuple:
        return f"{_word(inner[0], name)}[]"
    raise ArgumentTypeError(
        f"infer_schema: expected a type that operators take for {name!r}, got {hint!r}; use e.g. Tensor"
    )


def _default(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
