"""Guards: what a trace took for granted of the arguments and of what a function reads, checked before each replay.

Of tensors that arrive as arguments that is shape, strides, dtype, device and whether they require grad; all else is met on the
walk of ``tensorcore.compiler.walk``. State, tensors that calls are known to put others in the place of, is guarded as arguments
are. After the call, functions that did not run and attributes that no code named which ran are let go (``Guards.narrow``,
``tensorcore.compiler.names``).
"""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable, Iterator
from typing import Any

from tensorcore.compiler.lines import MANY
from tensorcore.compiler.objects import compared, is_record, items_of, may_be_state
from tensorcore.compiler.walk import Walk
from tensorcore.lazy.record import is_inside
from tensorcore.tensor import Tensor

__all__ = ["Guards"]

_HELD = "held"  # how expressions name the lists and dicts of state
Place = tuple[Any, Any]


class Guards(Walk):
    """The guards of one call.

    Args:
        function: what is called; ``args`` and ``kwargs`` are what with.
        named, ran: as for ``Walk``.
        states: the places of state, as pairs of a list, a dict or a cell of a closure, and a key.

    Attributes:
        arguments: the tensors among the arguments and the state, in order, as pairs of an expression and a tensor.
        containers: the lists, dicts and dataclasses among the arguments, and what has state, as triples of an expression, the
            container and what was in it before the call, by key.
    """

    def __init__(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], named: frozenset[str] | None = None,
        states: tuple[Place, ...] = (), ran: frozenset[int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(named, ran)
        self._call = (function, args, kwargs)
        self._states = {(id(one), key): i for i, (one, key) in enumerate(states)}
        self.states = states
        self._places: list[tuple[Any, Any, Any]] = []  # where tensors and None are, and these
        self._first: list[tuple[str, str, str]] = []  # guards of state, which the call itself may change
        held = tuple([one for one, _ in states])
        self.names[_HELD] = self.literals[_HELD] = held
        self.arguments: list[tuple[str, Tensor]] = []
        self.containers: list[tuple[str, Any, dict[Any, Any]]] = []
        self.add(f"len(args) == {len(args)}", "the number of arguments", "len(args)")
        for i, one in enumerate(args):
            self._argument(one, f"args[{i}]", f"argument {i}")
        if kwargs and _sees_order(function):
            self.add(
                f"tuple(kwargs) == {self.name(tuple(kwargs))}", "the order of the names of arguments", "list(kwargs)"
            )
        else:
            self.add(f"kwargs.keys() == {self.name(frozenset(kwargs))}", "the names of arguments", "sorted(kwargs)")
        for key, one in kwargs.items():
            self._argument(one, f"kwargs[{key!r}]", f"argument {key!r}")
        self.walk(function, _called(function))
        self._walked = len(self.lines)

    def settle(self) -> None:
        """Make ``check(args, kwargs)`` of the guards."""
        self.lines = [*self._first, *self.lines]
        self._identities()
        text = " and ".join(f"({line})" for line, _, _ in self.lines)
        source = (
            f"def check(args, kwargs):\n    try:\n        return {text}\n    except Exception:\n        return False\n"
        )
        exec(compile(source, "<guards>", "exec"), self.names)
        self.check: Callable[[tuple[Any, ...], dict[str, Any]], bool] = self.names["check"]
        # The tensors of the call that was traced live no longer than its caller wants.
        self.arguments, self.tensors, self.containers, self._seen, self._call = [], [], [], {}, (None, (), {})
        self._first, self._places, self._codes, self.generators, self.plain = [], [], {}, [], []

    def narrow(self, named: frozenset[str] | None, ran: frozenset[int], needed: set[int]) -> None:
        """Let go of the guards of attributes that are not among some names, and of what code reads that did not run.

        Args:
            needed: tensors, by their ``id``, that a replay reads; where one of them would be let go, nothing is.
        """
        found = Guards(*self._call, None if self._computed else named, self.states, ran)
        held = {id(one) for _, one in (*found.arguments, *found.tensors)}
        if needed - held:
            return
        self.unfit = found.unfit
        self.lines = [*found.lines, *self.lines[self._walked :]]
        self.names.update(found.names)
        self.plain = found.plain

    def _identities(self) -> None:
        """Guard whether what equals a sentinel is that very object, where code of the program's asks ``is``."""
        names = {one for code in self._codes.values() if not is_inside(code) for one in compared(code)}
        ends = tuple([end for one in names for end in (f".{one}", repr(one))])
        for value, path, text in self.plain if ends else ():
            if type(value) in (str, int, float, complex, bytes) and text.endswith(ends):
                for other, place, about in self.plain:
                    if type(other) is type(value) and other == value and place != path:
                        line = f"({place} is {path}) is {other is value}"
                        self.add(line, f"whether {about} is {text} itself", "")

    def environment(self) -> None:
        """Guard the variables of the process."""
        held = os.environ._data  # type: ignore[attr-defined]
        self.add(f"{self.name(held)} == {self.name(dict(held))}", "a variable of the environment", "")

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
            changed = (
                "has changed" if what.startswith(("what ", "whether ", "which ", "the hooks")) else "is another one now"
            )
            yield f"{what} is {_short(now)} now" if show else f"{what} {changed}"

    # The walk

    def _argument(self, value: Any, path: str, text: str) -> None:
        if isinstance(value, Tensor):
            self._tensor_argument(value, path, text)
        elif (type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields"))) and len(
            value
        ) <= MANY:
            self.add(f"type({path}) is {self.name(type(value))} and len({path}) == {len(value)}", f"the length of {text}",
                        f"len({path})")  # fmt: skip
            if type(value) is list:
                self.containers.append((path, value, dict(enumerate(value))))
            for i, one in enumerate(value):
                self._argument(one, f"{path}[{i}]", f"{text}[{i}]")
        elif type(value) is dict and len(value) <= MANY:
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
        elif not self.members(value, path, text):
            self._visit(value, path, text)

    def _tensor_argument(self, value: Tensor, path: str, text: str) -> None:
        device, native = value.device, value.native
        self.arguments.append((path, value))
        self.add(f"type({path}) is {self.name(type(value))}", f"the type of {text}", f"type({path}).__name__")
        self.add(f"{path}.dtype is {self.name(value.dtype)}", f"the dtype of {text}", f"{path}.dtype")
        if held := value.__dict__:
            self.add(f"{path}.__dict__.keys() == {self.name(frozenset(held))}", f"the attributes of {text}", "")
            for key, one in held.items():
                if key != "_is_param" and self._looked_at(type(value), key):
                    self._argument(one, f"{path}.__dict__[{key!r}]", f"{text}.{key}")
        else:
            self.add(f"not {path}.__dict__", f"the attributes of {text}", "")
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

    def item(self, holder: Any, key: Any, value: Any, path: str, text: str) -> None:
        """Guard what a list, a dict or a cell has at a key, as far as it is no state."""
        if may_be_state(value) and type(holder) in (dict, list, types.CellType):
            self._places.append((holder, key, value))
            i = self._states.get((id(holder), key))
            if i is not None:
                self._state(i, holder, key, value, text)
                return
        super().item(holder, key, value, path, text)

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


def _sees_order(function: Any) -> bool:
    """Whether a function may see in which order it is given arguments by name."""
    found = function if isinstance(function, types.FunctionType) else getattr(function, "forward", None)
    code = getattr(found, "__code__", None)
    return code is None or bool(code.co_flags & inspect.CO_VARKEYWORDS)


def _called(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) < 60 else text[:57] + "..."
