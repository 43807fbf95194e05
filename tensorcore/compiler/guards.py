"""Guards: what a trace took for granted of the arguments and of what a function reads, checked before each replay.

The walk follows the arguments, closure cells, globals that the code names, modules, and attributes of objects of the
program's own classes. It guards numbers, strings, flags and the identity of objects; of tensors that arrive as arguments
shape, strides, dtype, device and whether they require grad; of tensors that are reached otherwise their identity and
memory. State, tensors that calls are known to put others in the place of, is guarded as arguments are. Optimizers and
schedulers are asked in each replay, so nothing of theirs is guarded. After the call, the attributes that no code named
which ran in it are let go (``Guards.narrow``, ``tensorcore.compiler.names``).
"""

from __future__ import annotations

import argparse
import array
import contextvars
import copy
import functools
import io
import operator
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorcore.amp.grad_scaler import GradScaler
from tensorcore.backend.base import Backend
from tensorcore.compiler.objects import is_library, is_record, items_of, may_be_state, named, same, slots
from tensorcore.dtypes import dtype
from tensorcore.nn.module import Module
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import LRScheduler
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor

__all__ = ["Guards"]

_PLAIN = (int, float, bool, str, type(None), complex, bytes)
_MANY = 1000  # items of one container that are looked at
_LIMIT = 20000  # objects in all
_LARGE = 2**20  # bytes of an array that is compared in each call
_CONTAINERS = ("_parameters", "_buffers", "_modules")
_HELD = "held"  # how expressions name the lists and dicts of state
_OPEN = (types.SimpleNamespace, argparse.Namespace, threading.local)  # of libraries, but the program's to fill
Place = tuple[Any, Any]


class Guards:
    """The guards of one call.

    Args:
        function: what is called; ``args`` and ``kwargs`` are what with.
        named: the names that attributes have to be among to be looked at; None for all.
        states: the places of state, as pairs of a list, a dict or a cell of a closure, and a key.

    Attributes:
        arguments: the tensors among the arguments and the state, in order, as pairs of an expression and a tensor.
        tensors: those that were reached otherwise, with how to name them.
        containers: the lists, dicts and dataclasses among the arguments, and what has state, as triples of an expression, the
            container and what was in it before the call, by key.
        unfit: why what was reached cannot be looked at in each call, as part of a sentence; empty where it can.
        lines: for each guard the expression, what it looks at, and an expression that shows that.
    """

    def __init__(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], named: frozenset[str] | None = None,
        states: tuple[Place, ...] = (),
    ) -> None:  # fmt: skip
        self._call, self._attributes = (function, args, kwargs), named
        self._states = {(id(one), key): i for i, (one, key) in enumerate(states)}
        self._state_places = states
        self._places: list[tuple[Any, Any, Any]] = []  # where tensors and None are, and these
        self._first: list[tuple[str, str, str]] = []  # guards of state, which the call itself may change
        self._computed = False  # whether an object that is reached reads attributes by names that no code has
        held = tuple([one for one, _ in states])
        self.names: dict[str, Any] = {"Tensor": Tensor, _HELD: held}
        self.lines: list[tuple[str, str, str]] = []
        self.arguments: list[tuple[str, Tensor]] = []
        self.tensors: list[tuple[str, Tensor]] = []
        self.containers: list[tuple[str, Any, dict[Any, Any]]] = []
        self.literals: dict[str, Any] = {_HELD: held}  # the names within the expressions of arguments and state
        self._seen: dict[int, Any] = {}
        self.unfit = ""
        self.add(f"len(args) == {len(args)}", "the number of arguments", "len(args)")
        for i, one in enumerate(args):
            self._argument(one, f"args[{i}]", f"argument {i}")
        self.add(f"kwargs.keys() == {self.name(frozenset(kwargs))}", "the names of arguments", "sorted(kwargs)")
        for key, one in kwargs.items():
            self._argument(one, f"kwargs[{key!r}]", f"argument {key!r}")
        self._visit(function, self.name(function), _called(function))
        self._walked = len(self.lines)

    def settle(self) -> None:
        """Make ``check(args, kwargs)`` of the guards."""
        self.lines = [*self._first, *self.lines]
        text = " and ".join(f"({line})" for line, _, _ in self.lines)
        source = (
            f"def check(args, kwargs):\n    try:\n        return {text}\n    except Exception:\n        return False\n"
        )
        exec(compile(source, "<guards>", "exec"), self.names)
        self.check: Callable[[tuple[Any, ...], dict[str, Any]], bool] = self.names["check"]
        # The tensors of the call that was traced live no longer than its caller wants.
        self.arguments, self.tensors, self.containers, self._seen, self._call = [], [], [], {}, (None, (), {})
        self._first, self._places = [], []

    def narrow(self, named: frozenset[str], needed: set[int]) -> None:
        """Let go of the guards of attributes that are not among some names, while all guards still hold.

        Args:
            needed: tensors, by their ``id``, that a replay reads; where one of them would be let go, nothing is.
        """
        if self._computed:
            return
        found = Guards(*self._call, named, self._state_places)
        held = {id(one) for _, one in (*found.arguments, *found.tensors)}
        if needed - held:
            return
        self.unfit = found.unfit
        self.lines = [*found.lines, *self.lines[self._walked :]]
        self.names.update(found.names)

    def replaced(self) -> list[Place]:
        """Where the call put tensors, or None, in the place of others: the state of what it calls."""
        found = []
        for one, key, before in self._places:
            now = items_of(one).get(key, before)
            if now is not before and may_be_state(now):
                found.append((one, key))
        return found

    def failing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[str]:
        """What each guard that does not hold is about, with the value it has now."""
        names = {**self.names, "args": args, "kwargs": kwargs}
        for line, what, show in self.lines:
            try:
                if eval(line, names):
                    continue
                now = eval(show, names) if show else None
            except Exception:
                yield f"{what} is gone"
                continue
            yield f"{what} is {_short(now)} now" if show else f"{what} is another one now"

    # The walk

    def _argument(self, value: Any, path: str, text: str) -> None:
        if isinstance(value, Tensor):
            self._tensor_argument(value, path, text)
        elif (type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields"))) and len(
            value
        ) <= _MANY:
            self.add(f"type({path}) is {self.name(type(value))} and len({path}) == {len(value)}", f"the length of {text}",
                        f"len({path})")  # fmt: skip
            if type(value) is list:
                self.containers.append((path, value, dict(enumerate(value))))
            for i, one in enumerate(value):
                self._argument(one, f"{path}[{i}]", f"{text}[{i}]")
        elif type(value) is dict and len(value) <= _MANY:
            self.add(f"type({path}) is dict and tuple({path}) == {self.name(tuple(value))}", f"the keys of {text}",
                        f"list({path})")  # fmt: skip
            self.containers.append((path, value, dict(value)))
            for key, one in value.items():
                self._argument(one, f"{path}[{self.literal(key)}]", f"{text}[{key!r}]")
        elif is_record(value):
            kept = vars(value)
            self.add(f"type({path}) is {self.name(type(value))} and {path}.__dict__.keys() == {self.name(frozenset(kept))}",
                     f"the type of {text}", f"type({path}).__name__")  # fmt: skip
            self.containers.append((path, value, dict(kept)))
            for key, one in kept.items():
                self._argument(one, f"{path}.{key}", f"{text}.{key}")
            self._class(type(value))
        else:
            self._visit(value, path, text)

    def _tensor_argument(self, value: Tensor, path: str, text: str) -> None:
        device, native = value.device, value.native
        self.arguments.append((path, value))
        self.add(f"type({path}) is {self.name(type(value))}", f"the type of {text}", f"type({path}).__name__")
        self.add(f"{path}.dtype is {self.name(value.dtype)}", f"the dtype of {text}", f"{path}.dtype")
        self.add(f"{path}.device is {self.name(device)}", f"the device of {text}", f"{path}.device")
        if type(native) is not device.array:
            return
        self.add(f"{path}.native.shape == {tuple(native.shape)}", f"the shape of {text}", f"list({path}.native.shape)")
        place = self.name(device)
        if device.is_contiguous(native):
            self.add(f"{place}.is_contiguous({path}.native)", f"the strides of {text}", f"{path}.stride()")
        else:
            self.add(f"{place}.strides({path}.native) == {device.strides(native)}", f"the strides of {text}",
                        f"{path}.stride()")  # fmt: skip
        self._requires(value, path, text)

    def _requires(self, value: Tensor, path: str, text: str) -> None:
        found = value.node is not None
        self.add(f"({path}.node is not None) is {found}", f"requires_grad of {text}", f"{path}.requires_grad")
        if found:
            self.add(f"is_leaf({path}.node) is {is_leaf(value.node)}", f"whether {text} is a leaf", f"{path}.is_leaf")
            self.names["is_leaf"] = is_leaf

    def _item(self, holder: Any, key: Any, value: Any, path: str, text: str) -> None:
        """Guard what a list, a dict or a cell has at a key, as far as it is no state."""
        if may_be_state(value) and type(holder) in (dict, list, types.CellType):
            self._places.append((holder, key, value))
            i = self._states.get((id(holder), key))
            if i is not None:
                self._state(i, holder, key, value, text)
                return
        self._visit(value, path, text)

    def _state(self, i: int, holder: Any, key: Any, value: Any, text: str) -> None:
        """Guard a state before a call alone: what the call leaves there is of the call after it."""
        place = f"{_HELD}[{i}]"
        if any(one == place for one, _, _ in self.containers):
            return
        self.containers.append((place, holder, {key: value}))
        lines, self.lines = self.lines, self._first
        self._argument(value, self.place(place, holder, key), text)
        self.lines = lines

    def place(self, path: str, holder: Any, key: Any) -> str:
        """An expression for what a container, which ``path`` leads to, has at a key."""
        dotted = is_record(holder) or type(holder) is types.CellType
        return f"{path}.{key}" if dotted else f"{path}[{self.literal(key)}]"

    def _visit(self, value: Any, path: str, text: str) -> None:
        """Guard a value that ``path`` leads to, and what can be reached from it."""
        if isinstance(value, (*_PLAIN, np.generic)):
            if value != value:
                self.add(f"{path} != {path}", text, path)
            elif type(value) in _PLAIN or isinstance(value, np.generic):
                kind = "None" if value is None else None
                test = (
                    f"{path} is None"
                    if kind
                    else f"type({path}) is {self.name(type(value))} and {path} == {self.literal(value)}"
                )
                self.add(test, text, path)
            else:
                self.add(f"{path} == {self.name(value)}", text, path)
            return
        if isinstance(value, types.ModuleType):
            return
        if isinstance(value, np.ndarray | bytearray | array.array):
            if (size := memoryview(value).nbytes if type(value) is not np.ndarray else value.nbytes) > _LARGE:
                self.unfit = f"may read {text}, {size / 2**20:.1f} MB outside tensors, which are too many to compare in each call,"
                return
            self.names["same"] = same
            self.add(f"same({path}, {self.name(copy.copy(value))})", f"what {text} holds", "")
            return
        self.add(f"{path} is {self.name(value)}", text, "")
        if isinstance(value, type):
            self._class(value)
            return
        if id(value) in self._seen or len(self._seen) > _LIMIT:
            return
        self._seen[id(value)] = value
        name = self.name(value)
        if isinstance(value, Tensor):
            self.tensors.append((text, value))
            self.add(f"{name}.native is {self.name(value.native)}", f"the memory of {text}", "")
            self._requires(value, name, text)
        elif isinstance(value, Optimizer):
            self._parameters_of(value, text)
        elif isinstance(value, GradScaler):
            for key in ("_enabled", "_scale", "_growth_tracker"):
                self._visit(value.__dict__.get(key), f"{name}.__dict__.get({key!r})", f"{text}.{key}")
        elif isinstance(value, LRScheduler | dtype | Backend):
            return
        elif isinstance(value, Module):
            self._module(value, name, text)
        elif isinstance(value, dict):
            self.add(f"tuple({name}) == {self.name(tuple(value))}", f"the keys of {text}", f"list({name})")
            self._items(value, dict.items(value), name, text)
        elif isinstance(value, list | tuple | deque):
            self._items(value, enumerate(value), name, text)
        elif isinstance(value, set | frozenset):
            self.add(f"{name} == {self.name(frozenset(value))}", text, name)
        elif isinstance(value, weakref.ref):
            self._visit(value(), f"{name}()", text)
        elif isinstance(value, contextvars.ContextVar):
            self._visit(value.get(None), f"{name}.get(None)", text)
        elif isinstance(value, operator.attrgetter):
            self._computed = True
        elif isinstance(value, types.MethodType):
            self._visit(value.__self__, f"{name}.__self__", f"{text}.__self__")
            self._visit(value.__func__, f"{name}.__func__", text)
        elif isinstance(value, types.FunctionType):
            self._function(value, name, text)
        elif isinstance(value, functools.partial):
            self._visit(value.func, f"{name}.func", text)
            self._visit(value.args, f"{name}.args", f"the arguments of {text}")
            self._visit(value.keywords, f"{name}.keywords", f"the arguments of {text}")
        elif is_library(type(value).__module__) and isinstance(value, Iterator) and not isinstance(value, io.IOBase):
            self.unfit = f"may take from {text}, an iterator that has something else to give in each call,"
        elif isinstance(value, _OPEN) or not is_library(type(value).__module__):
            if hasattr(value, "__dict__"):
                items = [(key, one) for key, one in value.__dict__.items() if self._looked_at(type(value), key)]
                self._items(value.__dict__, items, f"{name}.__dict__", text, dot=True)
            for key in slots(type(value)):
                if self._looked_at(type(value), key) and hasattr(value, key):
                    self._visit(getattr(value, key), f"{name}.{key}", f"{text}.{key}")
            self._class(type(value))

    def _parameters_of(self, optimizer: Optimizer, text: str) -> None:
        name = self.name(optimizer)
        self.add(f"len({name}.param_groups) == {len(optimizer.param_groups)}", f"the groups of {text}",
                    f"len({name}.param_groups)")  # fmt: skip
        for i, group in enumerate(optimizer.param_groups):
            for k, one in enumerate(group["params"]):
                self._visit(one, f"{name}.param_groups[{i}]['params'][{k}]", f"parameter {k} of group {i} of {text}")

    def _looked_at(self, kind: type, key: Any) -> bool:
        """Whether something may read the attribute ``key`` of an object of this class."""
        names = self._attributes
        return names is None or key in names or key in getattr(kind, "__match_args__", ())

    def _module(self, module: Module, name: str, text: str) -> None:
        for key, value in module.__dict__.items():
            if key not in _CONTAINERS and not self._looked_at(type(module), key):
                continue
            path = f"{name}.__dict__[{key!r}]"
            hooks = isinstance(value, dict) and (key.endswith("_hooks") or key.startswith("_forward_"))
            if key in _CONTAINERS or (hooks and key.endswith("_hooks") and value):
                self._items(value, value.items(), self.name(value), text, dot=True)
            elif hooks:
                self.add(f"len({self.name(value)}) == {len(value)}", f"the hooks of {text}", f"len({self.name(value)})")
            elif key != "_non_persistent_buffers_set":
                self._item(module.__dict__, key, value, path, f"{text}.{key}")
        if "forward" not in module.__dict__:
            self.add(f"'forward' not in {name}.__dict__", f"{text}.forward", "")
        self._class(type(module))

    def _items(self, value: Any, items: Any, name: str, text: str, dot: bool = False) -> None:
        self.add(f"len({name}) == {len(value)}", f"the number of items in {text}", f"len({name})")
        pairs = list(items)
        if len(pairs) > _MANY and all(type(one) in _PLAIN for _, one in pairs):
            self.add(f"{name} == {self.name(copy.copy(value))}", f"the items of {text}", "")
            return
        # A dict of a program's own class may make things as it is read: guards look at what it holds.
        own = isinstance(value, dict) and type(value).__getitem__ is not dict.__getitem__
        reads = self.name(dict.__getitem__) if own else None
        for key, one in pairs:
            path = f"{reads}({name}, {self.literal(key)})" if reads else f"{name}[{self.literal(key)}]"
            self._item(value, key, one, path, f"{text}.{key}" if dot else f"{text}[{key!r}]")

    def _class(self, kind: type) -> None:
        """What the methods of a class of the program's own reach."""
        for one in kind.__mro__:
            if one is object or is_library(one.__module__) or id(one) in self._seen or len(self._seen) > _LIMIT:
                continue
            self._seen[id(one)] = one
            for key, value in list(vars(one).items()):
                if not (key.startswith("__") or self._looked_at(one, key)):
                    continue
                if isinstance(value, types.FunctionType):
                    method = value.__qualname__
                    self.add(f"vars({self.name(one)}).get({key!r}) is {self.name(value)}", method, "")
                    self._function(value, self.name(value), method)
                elif isinstance(value, (*_PLAIN, Tensor)) and not key.startswith("__"):
                    self._visit(value, f"{self.name(one)}.{key}", f"{one.__qualname__}.{key}")

    def _function(self, function: types.FunctionType, name: str, text: str) -> None:
        for cell_name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self._item(cell, "cell_contents", value, f"{self.name(cell)}.cell_contents", f"{cell_name!r}")
        for i, one in enumerate(function.__defaults__ or ()):
            self._visit(one, f"{name}.__defaults__[{i}]", f"default {i} of {text}")
        for key, one in (function.__kwdefaults__ or {}).items():
            self._visit(one, f"{name}.__kwdefaults__[{key!r}]", f"default {key!r} of {text}")
        for key, one in function.__dict__.items():
            if not key.startswith("_"):
                self._visit(one, f"{name}.__dict__[{key!r}]", f"{text}.{key}")
        space = function.__globals__
        if is_library(str(space.get("__name__", ""))):
            return
        for key in named(function.__code__):
            if key in space:
                self._global(space[key], space, key)

    def _global(self, value: Any, space: dict[str, Any], key: str) -> None:
        if isinstance(value, types.ModuleType):
            return
        if isinstance(value, type):
            self._class(value)
            return
        if isinstance(value, types.FunctionType) and is_library(value.__module__ or ""):
            return
        self._item(space, key, value, f"{self.name(space)}[{key!r}]", f"the global {key!r}")

    def reaches(self, value: Any) -> bool:
        """Whether the walk met an object, while the call is traced."""
        return id(value) in self._seen

    # Text

    def add(self, line: str, what: str, show: str) -> None:
        """Guard that an expression holds; ``what`` it looks at, and ``show``, an expression for what that is now."""
        self.lines.append((line, what, show))

    def name(self, value: Any) -> str:
        """A name for an object, within the expressions."""
        name = f"o{id(value)}"
        self.names[name] = value
        return name

    def literal(self, value: Any) -> str:
        """A key as part of an expression."""
        if type(value) in (int, str, bool):
            return repr(value)
        name = self.name(value)
        self.literals[name] = value
        return name


def _called(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) < 60 else text[:57] + "..."
