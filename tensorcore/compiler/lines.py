"""The lines of guards: expressions over named objects, and how what is compared by value is told from what it was."""

from __future__ import annotations

import array
import copy
import marshal
from collections import deque
from typing import Any

import numpy as np

from tensorcore.compiler.objects import exact, same
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor

__all__ = ["MANY", "PLAIN", "Lines"]

PLAIN = (int, float, bool, str, type(None), complex, bytes)
MANY = 1000  # items of one container that are looked at
_LARGE = 2**20  # bytes of an array that is compared in each call


class Lines:
    """Guards as they are written down.

    Attributes:
        lines: for each guard the expression, what it looks at, and an expression that shows that.
        names: what the expressions name.
        literals: those of them that are within the expressions of arguments and state.
        plain: the numbers and strings that are guarded by value, with their expressions and what these look at.
        unfit: why what was reached cannot be looked at in each call, as part of a sentence; empty where it can.
    """

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"Tensor": Tensor, "vars": vars, "is_leaf": is_leaf, "same": same, "exact": exact}
        self.literals: dict[str, Any] = {}
        self.lines: list[tuple[str, str, str]] = []
        self.plain: list[tuple[Any, str, str]] = []
        self.unfit = ""

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

    # By value

    def number(self, value: Any, path: str, text: str) -> None:
        """Guard a number, a string or a flag."""
        self.plain.append((value, path, text))
        if value is None:
            self.add(f"{path} is None", text, path)
        elif isinstance(value, np.void):  # which a program can write to
            self.add(f"{path} == {self.name(copy.copy(value))}", text, path)
        elif value != value:
            self.add(f"{path} != {path}", text, path)
        elif isinstance(value, complex | np.complexfloating) or (value == 0 and isinstance(value, float | np.floating)):
            # Zeros have a sign, which they do not compare by.
            self.add(f"type({path}) is {self.name(type(value))} and repr({path}) == {repr(value)!r}", text, path)
        elif type(value) in PLAIN or isinstance(value, np.generic):
            self.add(f"type({path}) is {self.name(type(value))} and {path} == {self.literal(value)}", text, path)
        else:
            self.add(f"{path} == {self.name(value)}", text, path)

    def numbers(self, value: Any, name: str, text: str) -> None:
        """Guard what an array of Python's or NumPy's holds."""
        size = memoryview(value).nbytes if not isinstance(value, np.ndarray) else value.nbytes
        if size > _LARGE:
            self.unfit = (
                f"may read {text}, {size / 2**20:.1f} MB outside tensors, which are too many to compare in each call,"
            )
            return
        held = (
            copy.copy(value) if isinstance(value, np.ndarray | bytearray | array.array) else memoryview(value).tobytes()
        )
        self.add(f"same({name}, {self.name(held)})", f"what {text} holds", "")

    def many(self, value: Any, name: str, text: str) -> bool:
        """Guard the items of a long list or dict of numbers and strings in one look; whether it is such."""
        if len(value) <= MANY or not isinstance(value, dict | list | tuple | deque):
            return False
        held = list(value.items()) if isinstance(value, dict) else list(value)
        if not all(type(one) in PLAIN for one in (dict.values(value) if isinstance(value, dict) else value)):
            return False
        # As bytes: -0.0, 0.0, 0 and False are alike where they are compared.
        items = f"list({name}.items())" if isinstance(value, dict) else f"list({name})"
        dumps = self.name(marshal.dumps)
        self.add(f"{dumps}({items}, 2) == {self.name(marshal.dumps(held, 2))}", f"the items of {text}", "")
        return True

    def members(self, value: Any, path: str, text: str) -> bool:
        """Guard a set of numbers and strings; whether it is such."""
        kind = type(value)
        if kind not in (set, frozenset) or len(value) > MANY or not all(type(one) in PLAIN for one in value):
            return False
        self.add(f"type({path}) is {self.name(kind)} and exact({path}) == {self.name(exact(value))}", text, path)
        return True
