"""Classes that have a say in what functions do with them: ``__torch_function__`` of tensors' subclasses, and modes.

An ordinary call asks nobody. The first subclass of Tensor that a program defines (or the first mode it enters) gives every
public function a body that looks at the arguments first (``amp.bodies``); the function itself stays the same object, so a table
that is keyed by functions, or a name that was imported before, goes on working.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any

from tensorcore import ops
from tensorcore.amp.bodies import innermost, interpose
from tensorcore.errors import ArgumentTypeError
from tensorcore.shortcuts import in_python
from tensorcore.tensor import Tensor

__all__ = [
    "DisableTorchFunctionSubclass", "TorchFunctionMode", "enable_reentrant_dispatch", "get_overridable_functions",
    "get_testing_overrides", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip

_OPERATORS = frozenset(f"__{name}__" for name in [
    "getitem", "setitem", "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv",
    "itruediv", "rdiv", "floordiv", "rfloordiv", "ifloordiv", "mod", "rmod", "imod", "pow", "rpow", "ipow", "neg",
    "abs", "pos", "matmul", "rmatmul", "eq", "ne", "lt", "le", "gt", "ge", "and", "rand", "iand", "or", "ror", "ior",
    "xor", "rxor", "ixor", "lshift", "rlshift", "ilshift", "rshift", "rrshift", "irshift", "invert", "contains", "bool",
    "float", "int", "complex", "index", "len",
])  # fmt: skip
# What classes hear of in the place of an operator, as in PyTorch: ``Tensor.add`` where a program writes ``+``.
_STAND_FOR = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "pow", "neg", "abs", "lt", "le", "gt", "ge", "ne")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "pow")},
    "__truediv__": "div", "__rtruediv__": "__rdiv__", "__itruediv__": "div_", "__mod__": "remainder", "__imod__": "remainder_",
    "__ifloordiv__": "floor_divide_", "__pos__": "positive",
}  # fmt: skip
# Names that make tensors of values: as in PyTorch, modes hear of them and the classes of their arguments do not.
_MAKERS = frozenset([
    "arange", "as_tensor", "asarray", "empty", "eye", "from_numpy", "frombuffer", "full", "linspace", "logspace", "ones",
    "rand", "randint", "randn", "randperm", "tensor", "zeros",
])  # fmt: skip
_NEVER = frozenset(["as_subclass", "is_tensor", "requires_grad_", "result_type"])
_ROOMS = ("nn.functional", "linalg", "fft", "special")
_PROPERTIES = ("T", "mT", "H", "mH", "real", "imag")


class _State(threading.local):
    def __init__(self) -> None:
        self.disabled = False
        self.modes: list[TorchFunctionMode] = []


_state = _State()
_listening: dict[str, dict[FunctionType, str]] = {}  # by room, once the functions look at their arguments
_asks: dict[type, bool] = {Tensor: False, int: False, float: False, bool: False, str: False, type(None): False}


class DisableTorchFunctionSubclass:
    """While it is entered, subclasses are not asked: functions do with them what they do with tensors."""

    def __enter__(self) -> None:
        self.before, _state.disabled = _state.disabled, True

    def __exit__(self, *_: object) -> None:
        _state.disabled = self.before


class enable_reentrant_dispatch:
    """Ask subclasses again inside of :class:`DisableTorchFunctionSubclass`."""

    def __enter__(self) -> None:
        self.before, _state.disabled = _state.disabled, False

    def __exit__(self, *_: object) -> None:
        _state.disabled = self.before


class TorchFunctionMode:
    """While it is entered, every call of a public function in this thread comes to its ``__torch_function__`` first.

    The method itself runs without the mode, so it may call the function.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected a __torch_function__, got none; write one")

    def __enter__(self) -> TorchFunctionMode:
        listen()
        _state.modes.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _state.modes.remove(self)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """A mode of these arguments, to be entered."""
        return cls(*args, **kwargs)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments has a say in what a function does with them, or a mode has."""
    return bool(_state.modes) or (not _state.disabled and any(_asked(type(one)) for one in relevant_args))


def has_torch_function_unary(relevant_arg: Any, /) -> bool:
    """``has_torch_function`` of one argument."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """``has_torch_function`` of arguments that come one by one."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Ask the innermost mode, then each class among the arguments, subclasses first, until one does the call."""
    askers = _askers(relevant_args)
    types = tuple(type(one) for one in askers)
    if _state.modes:
        mode = _state.modes.pop()
        try:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        finally:
            _state.modes.append(mode)
        if result is not NotImplemented:
            return result
    for one in askers:
        result = one.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    who = [type(one) for one in askers] or [type(mode) for mode in _state.modes[-1:]]
    raise ArgumentTypeError(
        f"{resolve_name(public_api)}: no implementation found on types that implement __torch_function__, got {who}; "
        "return a result from one of them"
    )


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """A decorator for a function of one's own: ``dispatcher(*args)`` gives the arguments that are asked first."""

    def wrap(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return wrap


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor or of a class with ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that ask their arguments, by the module or class that they are public in."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for room, functions in _public().items():
        owner = Tensor if room == "Tensor" else import_module(f"tensorcore{room and '.'}{room}")
        found[owner] = [one for one, name in functions.items() if name not in _MAKERS]
    return found


def get_testing_overrides() -> dict[Any, Callable[..., Any]]:
    """For each function that asks, one of the same parameters that returns -1."""
    return {one: _stub(one) for functions in get_overridable_functions().values() for one in functions}


def _stub(function: Any) -> Callable[..., Any]:
    def stub(*args: Any, **kwargs: Any) -> int:
        return -1

    stub.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return stub


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor, or reads one of its properties."""
    return func in _public()["Tensor"] or func in [getattr(Tensor, name).__get__ for name in _PROPERTIES]


def resolve_name(f: Any) -> str | None:
    """The name under which a function is public, such as ``torch.Tensor.add``; None where it is not."""
    for room, functions in _public().items():
        if f in functions:
            return ".".join(filter(None, ("torch", room, functions[f])))
    return getattr(f, "__qualname__", None)


def listen() -> None:
    """From now on the public functions look at their arguments."""
    if _listening:
        return
    _listening.update(_public())
    for function, name in {one: name for functions in _listening.values() for one, name in functions.items()}.items():
        _intercept(in_python(function), name, getattr(Tensor, _STAND_FOR[name]) if name in _STAND_FOR else function)
    for function, name in _listening["Tensor"].items():
        if name in _OPERATORS or function.__name__[0] == "_":
            in_python(function).__name__ = _STAND_FOR.get(name, name)
    for name in _PROPERTIES:
        read = getattr(Tensor, name)
        plain = innermost(read.fget)  # torch.real looks by itself already
        getter = FunctionType(plain.__code__, plain.__globals__, name, plain.__defaults__, plain.__closure__)
        getter.__kwdefaults__ = plain.__kwdefaults__
        asking = property(getter, read.fset, read.fdel, read.__doc__)
        _intercept(getter, name, asking.__get__)
        setattr(Tensor, name, asking)


def ask(name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a class that is no Tensor makes of a call that came to it before any function listened; None if it has no say."""
    if not has_torch_function(inputs):
        return None
    listen()
    import tensorcore

    return handle_torch_function(getattr(tensorcore, name), inputs, *inputs, **options)


def _public() -> dict[str, dict[FunctionType, str]]:
    """The functions of each room, with their names there."""
    if _listening:
        return _listening
    import tensorcore

    for name in ops.METHODS:
        ops.late.settle(name)
    names = {name for family in ops.FAMILIES for name in family.__all__} | {*ops.METHODS, *ops.late.FUNCTIONS}
    rooms: dict[str, dict[FunctionType, str]] = {"Tensor": {}, "": {}}
    for name, value in list(vars(Tensor).items()):
        if type(in_python(value)) is FunctionType and (name in _OPERATORS or name[0] != "_") and name not in _NEVER:
            rooms["Tensor"].setdefault(value, name)
    for name in sorted(names):
        value = getattr(tensorcore, name, None)
        if type(in_python(value)) is FunctionType and name[0] != "_" and name not in _NEVER:
            rooms[""].setdefault(value, name)
    for room in _ROOMS:
        module = import_module(f"tensorcore.{room}")
        rooms[room] = {
            value: name
            for name in module.__all__
            if type(in_python(value := getattr(module, name))) is FunctionType
        }  # fmt: skip
    return rooms


def _intercept(function: FunctionType, name: str, public: Any) -> None:
    """Let ``function`` look at its arguments before it runs; ``public`` is what classes hear of."""
    maker = name in _MAKERS

    def make(plain: Any) -> Any:
        def looking(*args: Any, **kwargs: Any) -> Any:
            found = _ask(public, maker, args, kwargs)
            return plain(*args, **kwargs) if found is None else found[0]

        looking.__code__ = looking.__code__.replace(co_name=name)  # accounts of lazy tensors say what was called
        return looking

    interpose(function, make)


def _ask(public: Any, maker: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """What the classes of the arguments, or a mode, make of a call, in a tuple; None if they have no say."""
    if not _state.modes and (maker or _state.disabled):
        return None
    relevant: list[Any] = []
    for one in (*args, *kwargs.values()) if kwargs else args:
        if type(one) is list or type(one) is tuple:
            relevant.extend(one)
        else:
            relevant.append(one)
    if not _state.modes and not _askers(relevant):
        return None
    return (handle_torch_function(public, () if maker else relevant, *args, **kwargs),)


def _asked(kind: type) -> bool:
    """Whether objects of this class are asked."""
    found = _asks.get(kind)
    if found is None:
        method = getattr(kind, "__torch_function__", None)
        own = issubclass(kind, Tensor) and kind.__module__.partition(".")[0] == "tensorcore"
        found = method is not None and method is not disabled and not own and not issubclass(kind, type)
        _asks[kind] = found
    return found


def _askers(relevant: Iterable[Any]) -> list[Any]:
    """One argument of each class that is asked, subclasses before their bases, else in order."""
    found: list[Any] = []
    if _state.disabled:
        return found
    for one in relevant:
        kind = type(one)
        if _asked(kind) and not any(type(other) is kind for other in found):
            place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
            found.insert(place, one)
    return found


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """For ``__torch_function__ = torch._C._disabled_torch_function_impl``: such a class is not asked."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def default(cls: type, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None) -> Any:
    """What a subclass does that says nothing else: the function's results, as tensors of the class."""
    if not all(issubclass(cls, one) for one in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        return _as(func(*args, **(kwargs or {})), cls)


def _as(result: Any, cls: type) -> Any:
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return as_subclass(result, cls)
    if type(result) is tuple or type(result) is list:
        return type(result)(_as(one, cls) for one in result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_as(one, cls) for one in result])
    return result


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same values, memory and history as a tensor of a subclass of Tensor."""
    with DisableTorchFunctionSubclass():
        made = self.view_as(self)  # type: ignore[attr-defined]
    made.__class__ = cls
    return made


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """The same memory, off the tape, as a tensor of a subclass of Tensor."""
    made = data.detach()
    made.__class__ = cls
    return made.requires_grad_(require_grad)
