"""The walk from a function to what it may read, which guards look at in each call.

It follows closure cells, defaults, the globals that code names, attributes of a program's own modules, classes and objects,
and what containers, references, views and caches of Python's own hold. It guards numbers, strings and flags by value, all
else by identity; of tensors their memory. Optimizers and schedulers are asked in each replay, so what no
code of the program's names of theirs is not guarded.
"""

from __future__ import annotations

import contextvars
import enum
import functools
import io
import operator
import sys
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from tensorcore.amp.grad_scaler import GradScaler
from tensorcore.backend.base import Backend
from tensorcore.compiler.holders import NUMBERS, VIEWS, is_open, parts
from tensorcore.compiler.lines import PLAIN, Lines
from tensorcore.compiler.objects import codes, globals_of, imported, is_library, named, slots
from tensorcore.dtypes import dtype
from tensorcore.nn.module import Module
from tensorcore.nn.uninitialized import UninitializedTensorMixin
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import LRScheduler
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor

__all__ = ["Walk"]

_IN_CLASSES = (property, staticmethod, classmethod, functools.cached_property, functools.partialmethod)
_LIMIT = 100000  # objects in all
_CONTAINERS = ("_parameters", "_buffers", "_modules")


class Walk(Lines):
    """Guards of what is met on the way.

    Args:
        named: the names that attributes have to be among to be looked at; None for all.
        ran: the code, by ``id``, that has to have run for a function to be looked into; None for all.

    Attributes:
        tensors: those that were met, with how to name them.
        generators: what draws random numbers, with how to name it.
    """

    def __init__(self, named: frozenset[str] | None = None, ran: frozenset[int] | None = None) -> None:
        super().__init__()
        self._attributes, self._ran = named, ran
        self.tensors: list[tuple[str, Tensor]] = []
        self.generators: list[tuple[str, Any]] = []
        self._computed = False  # whether an object that is reached reads attributes by names that no code has
        self._seen: dict[Any, Any] = {}
        self._codes: dict[int, Any] = {}  # of the functions that are reached, and of those inside them
        self._words: set[str] = set()  # what these name
        self._tuned: list[tuple[Any, str, str]] = []  # optimizers and schedulers
        self._foreign: list[tuple[dict[str, Any], str, str]] = []  # attributes of objects of libraries
        self._modules: list[types.ModuleType] = []  # those that objects and closures have
        # How to look at what was met, and the guards that this adds to: in turn and not nested, as chains of objects may be long.
        self._met: deque[tuple[Callable[[], None], list[tuple[str, str, str]]]] = deque()
        self._looking = False

    def walk(self, value: Any, text: str) -> None:
        """Guard ``value`` and all that can be reached from it."""
        self._visit(value, self.name(value), text)
        while self._modules or self._foreign:
            if self._modules:
                self._members(self._modules.pop(), self._words)
            else:
                held, name, about = self._foreign.pop()
                for key in self._words & held.keys():
                    self._visit(held[key], f"{name}.__dict__.get({key!r})", f"{about}.{key}")
        for tuned in self._tuned:
            self._tuning(*tuned)

    def reaches(self, value: Any) -> bool:
        """Whether the walk met an object, while the call is traced."""
        return id(value) in self._seen

    def met(self, code: types.CodeType, space: dict[str, Any]) -> None:
        """Look at the globals of code that runs and that the walk did not reach, as far as it names them."""
        if id(code) not in self._codes:
            self._codes.update({id(one): one for one in codes(code)})
            self._later(lambda: self._globals(code, space))

    # Objects

    def _visit(self, value: Any, path: str, text: str, weak: bool = False) -> None:
        """Guard a value that ``path`` leads to, and what can be reached from it; ``weak``: without keeping it alive."""
        self._later(lambda: self._look(value, path, text, weak))

    def _later(self, look: Callable[[], None]) -> None:
        self._met.append((look, self.lines))
        if self._looking:
            return
        self._looking, lines = True, self.lines
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that something is deprecated, which being looked at is no use of
            try:
                while self._met:
                    look, self.lines = self._met.popleft()
                    look()
            except Exception as error:  # of what stands for an object that is not there, for example
                self.unfit = f"reaches what cannot be looked at ({type(error).__name__}: {error}),"
                self._met.clear()
        self._looking, self.lines = False, lines

    def _look(self, value: Any, path: str, text: str, weak: bool) -> None:
        """Guard a value that was met."""
        if isinstance(value, (*PLAIN, np.generic)):
            self.number(value, path, text)
            if type(value) in PLAIN or not hasattr(value, "__dict__"):
                return
        name = path if weak else self.name(value)
        self.add(f"id({path}) == {id(value)}" if weak else f"{path} is {name}", text, "")
        if isinstance(value, type):
            self._class(value)
            return
        if id(value) in self._seen:
            return
        if len(self._seen) > _LIMIT:
            self.unfit = f"reaches more than {_LIMIT} objects, which are too many to look at in each call,"
            return
        self._seen[id(value)] = value
        if isinstance(value, types.ModuleType):
            self._modules.append(value)
        elif isinstance(value, Tensor):
            if isinstance(value, UninitializedTensorMixin):  # which the call gives a shape
                self.add(f"type({name}) is {self.name(type(value))}", f"the shape of {text}", "")
                return
            self.tensors.append((text, value))
            for key, one in value.__dict__.items():
                if key != "_is_param" and self._looked_at(type(value), key):
                    self._visit(one, f"{name}.__dict__[{key!r}]", f"{text}.{key}")
            self.add(f"{name}.native is {self.name(value.native)}", f"the memory of {text}", "")
            self._requires(value, name, text)
        elif isinstance(value, Optimizer):
            self._parameters_of(value, name, text)
        elif isinstance(value, GradScaler):
            for key in ("_enabled", "_scale", "_growth_tracker"):
                self._visit(value.__dict__.get(key), f"{name}.__dict__.get({key!r})", f"{text}.{key}")
        elif isinstance(value, LRScheduler):
            self._tuned.append((value, name, text))
        elif isinstance(value, dtype | Backend):
            return
        elif isinstance(value, Module):
            self._module(value, name, text)
        elif isinstance(value, types.FunctionType):
            self._function(value, name, text)
        elif isinstance(value, weakref.ref):
            self._visit(value(), f"{name}()", text, weak=True)
        else:
            self._held(value, name, text)
            self._own(value, name, text)

    def _held(self, value: Any, name: str, text: str) -> None:
        """Guard what something of Python's or NumPy's own holds."""
        if isinstance(value, dict):
            self.add(f"tuple({name}) == {self.name(tuple(value))}", f"the keys of {text}", f"list({name})")
            self._items(value, dict.items(value), name, text)
            self._each(value, text)
        elif isinstance(value, list | tuple | deque):
            self._items(value, enumerate(value), name, text)
        elif isinstance(value, set | frozenset):
            if not self.members(
                value, name, text
            ):  # in the order in which a program sees them, which equal sets may not share
                self.add(f"tuple({name}) == {self.name(tuple(value))}", text, name)
            self._each(value, text)
        elif isinstance(value, NUMBERS):
            self.numbers(value, name, text)
            if isinstance(value, np.ndarray) and value.dtype == object and not self.unfit:
                for i, one in enumerate(value.flat):
                    self._visit(one, f"{name}.flat[{i}]", f"{text}.flat[{i}]")
        elif isinstance(value, VIEWS):
            inner, mapping = (
                (name, value) if isinstance(value, types.MappingProxyType) else (f"{name}.mapping", value.mapping)
            )
            self.add(f"tuple({inner}) == {self.name(tuple(mapping))}", f"the keys of {text}", f"list({inner})")
            self._items(mapping, mapping.items(), inner, text)
        elif isinstance(value, contextvars.ContextVar):
            self._visit(value.get(None), f"{name}.get(None)", text)
        elif isinstance(value, operator.attrgetter | operator.methodcaller):
            self._computed = True
        elif isinstance(value, io.IOBase):
            with suppress(Exception):  # of a stream that cannot be asked, or is closed
                if value.readable():
                    self.add(f"{name}.tell() == {value.tell()}", f"where {text} is read", f"{name}.tell()")
        else:
            found = parts(value)
            if self._ran is not None and isinstance(value, functools._lru_cache_wrapper):
                self._ran |= {id(getattr(value.__wrapped__, "__code__", None))}  # what it answers with was read before
            if found.draws:
                self.generators.append((text, value))
            for suffix, one in found.held:
                self._visit(one, name + suffix, f"{text}{suffix}")
            if not found and is_library(type(value).__module__) and isinstance(value, Iterator):
                self.unfit = f"may take from {text}, an iterator that has something else to give in each call,"

    def _each(self, values: Iterable[Any], text: str) -> None:
        """Guard what the members of a set and the keys of a dict hold, by which these are not compared."""
        for one in values:
            if type(one) not in PLAIN and not isinstance(one, type):
                self._visit(one, self.name(one), f"an item of {text}")

    def _own(self, value: Any, name: str, text: str) -> None:
        """Guard the attributes of an object of the program's own, and what its class reaches."""
        if not is_open(value) and is_library(type(value).__module__):
            if type(held := getattr(value, "__dict__", None)) is dict:
                self._foreign.append((held, name, text))
            return
        self.add(f"type({name}) is {self.name(type(value))}", f"the type of {text}", f"type({name}).__name__")
        held = getattr(value, "__dict__", None)
        if held is not None:
            items = [(key, one) for key, one in held.items() if self._looked_at(type(value), key)]
            self._items(held, items, f"{name}.__dict__", text, dot=True)
        for key in slots(type(value)):
            if self._looked_at(type(value), key) and hasattr(value, key):
                self._visit(getattr(value, key), f"{name}.{key}", f"{text}.{key}")
        self._class(type(value))

    def _requires(self, value: Tensor, path: str, text: str) -> None:
        found = value.node is not None
        self.add(f"({path}.node is not None) is {found}", f"requires_grad of {text}", f"{path}.requires_grad")
        if found:
            self.add(f"is_leaf({path}.node) is {is_leaf(value.node)}", f"whether {text} is a leaf", f"{path}.is_leaf")

    def _parameters_of(self, optimizer: Optimizer, name: str, text: str) -> None:
        self.add(f"len({name}.param_groups) == {len(optimizer.param_groups)}", f"the groups of {text}",
                    f"len({name}.param_groups)")  # fmt: skip
        for i, group in enumerate(optimizer.param_groups):
            for k, one in enumerate(group["params"]):
                self._visit(one, f"{name}.param_groups[{i}]['params'][{k}]", f"parameter {k} of group {i} of {text}")
        self._tuned.append((optimizer, name, text))

    def _tuning(self, value: Any, name: str, text: str) -> None:
        """Guard the numbers of an optimizer or a scheduler, where code names what holds them: else these alone read them."""
        if isinstance(value, Optimizer) and "param_groups" in self._words:
            for i, group in enumerate(value.param_groups):
                for key, one in group.items():
                    if key != "params":
                        self._visit(one, f"{name}.param_groups[{i}].get({key!r})", f"{text}.param_groups[{i}][{key!r}]")
        if isinstance(value, Optimizer) and "state" in self._words:
            self.add(f"len({name}.state) == {len(value.state)}", f"the state of {text}", f"len({name}.state)")
        if isinstance(value, LRScheduler):
            for key, one in vars(value).items():
                if key in self._words or (key == "_last_lr" and "get_last_lr" in self._words):
                    self._visit(one, f"{name}.__dict__.get({key!r})", f"{text}.{key}")

    def _looked_at(self, kind: type, key: Any) -> bool:
        """Whether something may read the attribute ``key`` of an object of this class."""
        names = self._attributes
        return names is None or key in names or key in getattr(kind, "__match_args__", ())

    def _module(self, module: Module, name: str, text: str) -> None:
        held = module.__dict__
        self.add(f"len({name}.__dict__) == {len(held)}", f"the number of attributes of {text}", "")
        self.add(f"type({name}) is {self.name(type(module))}", f"the type of {text}", f"type({name}).__name__")
        for key, value in held.items():
            if key not in _CONTAINERS and not self._looked_at(type(module), key):
                continue
            path = f"{name}.__dict__[{key!r}]"
            hooks = isinstance(value, dict) and (key.endswith("_hooks") or key.startswith("_forward_"))
            if key in _CONTAINERS or (hooks and key.endswith("_hooks") and value):
                every = key != "_buffers" or self._looked_at(type(module), key)
                items = [pair for pair in value.items() if every or self._looked_at(type(module), pair[0])]
                self._items(value, items, self.name(value), text, dot=True)
            elif hooks:
                size = f"len({self.name(value)})"
                # Most have none, which is asked without a call.
                line = f"{size} == {len(value)}" if value else f"not {self.name(value)}"
                self.add(line, f"the hooks of {text}", size)
            elif key != "_non_persistent_buffers_set":
                self.item(held, key, value, path, f"{text}.{key}")
        self._class(type(module))

    def _items(self, value: Any, items: Any, name: str, text: str, dot: bool = False) -> None:
        self.add(f"len({name}) == {len(value)}", f"the number of items in {text}", f"len({name})")
        if self.many(value, name, text):
            return
        # A dict of a program's own class may make things as it is read: guards look at what it holds.
        own = isinstance(value, dict) and type(value).__getitem__ is not dict.__getitem__
        reads = self.name(dict.__getitem__) if own else None
        for key, one in items:
            path = f"{reads}({name}, {self.literal(key)})" if reads else f"{name}[{self.literal(key)}]"
            self.item(value, key, one, path, f"{text}.{key}" if dot else f"{text}[{key!r}]")

    def item(self, holder: Any, key: Any, value: Any, path: str, text: str) -> None:
        """Guard what a list, a dict or a cell has at a key."""
        self._visit(value, path, text)

    # Classes, functions and modules

    def _class(self, kind: type) -> None:
        """What a class of the program's own has, and what its methods reach."""
        for one in kind.__mro__:
            if one is object or is_library(one.__module__) or id(one) in self._seen:
                continue
            self._seen[id(one)] = one
            name = self.name(one)
            self.add(f"len(vars({name})) == {len(vars(one))}", f"the number of attributes of {one.__qualname__}", "")
            for key, value in list(vars(one).items()):
                path, text = f"vars({name}).get({key!r})", f"{one.__qualname__}.{key}"
                if isinstance(value, types.FunctionType):
                    if key.startswith("__") or self._looked_at(one, key):
                        self._visit(value, path, value.__qualname__)
                elif (not key.startswith("__") and self._looked_at(one, key)) or isinstance(value, _IN_CLASSES):
                    if isinstance(value, (*PLAIN, Tensor)):
                        self._visit(value, f"{name}.{key}", text)
                    else:
                        self.item(vars(one), key, value, path, text)
            if issubclass(one, enum.Enum):
                for member in one:
                    self._own(member, self.name(member), f"{one.__qualname__}.{member.name}")
        if type(kind) is not type:
            self._class(type(kind))

    def _function(self, function: types.FunctionType, name: str, text: str) -> None:
        code = function.__code__
        self._codes.update({id(one): one for one in codes(code)})
        if self._ran is not None and id(code) not in self._ran:
            return
        for cell_name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.item(cell, "cell_contents", value, f"{self.name(cell)}.cell_contents", f"{cell_name!r}")
        for i, one in enumerate(function.__defaults__ or ()):
            self._visit(one, f"{name}.__defaults__[{i}]", f"default {i} of {text}")
        for key, one in (function.__kwdefaults__ or {}).items():
            self._visit(one, f"{name}.__kwdefaults__[{key!r}]", f"default {key!r} of {text}")
        space = function.__globals__
        own = not is_library(str(space.get("__name__", "")))
        if own:
            self.add(f"{name}.__code__ is {self.name(code)}", f"the code of {text}", "")
        if own or function.__dict__:
            self.add(f"len({name}.__dict__) == {len(function.__dict__)}", f"the attributes of {text}", "")
        for key, one in function.__dict__.items():
            if not key.startswith("_"):
                self._visit(one, f"{name}.__dict__[{key!r}]", f"{text}.{key}")
        self._words |= named(code)
        if own:
            self._globals(code, space)

    def _globals(self, code: types.CodeType, space: dict[str, Any]) -> None:
        """What code may find among its globals, and in the modules that it imports."""
        names, found = named(code), globals_of(code) & space.keys()
        for key in found:
            self._global(space[key], space, key, names)
        for key in imported(code) - found:
            around = f"{space.get('__package__')}.{key}"  # as in ``from .key import ...``
            for module in (sys.modules.get(key), sys.modules.get(around)):
                if module is not None:
                    self._members(module, names)

    def _global(self, value: Any, space: dict[str, Any], key: str, names: set[str]) -> None:
        path, text = f"{self.name(space)}[{key!r}]", f"the global {key!r}"
        if isinstance(value, types.ModuleType) or (
            isinstance(value, types.FunctionType) and is_library(value.__module__ or "")
        ):
            self.add(f"{path} is {self.name(value)}", text, "")
            if isinstance(value, types.ModuleType):
                self._members(value, names)
        else:
            self.item(space, key, value, path, text)

    def _members(self, module: types.ModuleType, names: set[str]) -> None:
        """What code that has these names may read of a module; those that are not the program's own are not looked into."""
        self._later(lambda: self._look_into(module, names))

    def _look_into(self, module: types.ModuleType, names: set[str]) -> None:
        space = getattr(module, "__dict__", {})
        library = is_library(str(space.get("__name__", "")))
        for key in names & space.keys():
            value, place = space[key], (id(space), key)
            if place in self._seen or key.startswith("__"):
                continue
            self._seen[place] = space
            if library and type(value) is not list:  # which a program may put something else in the place of
                self.add(f"{self.name(space)}[{key!r}] is {self.name(value)}", f"{module.__name__}.{key}", "")
            else:
                self._global(value, space, key, names)
