"""Containers: modules in a row, in a list or in a dict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Self, overload

from tensorcore.errors import ArgumentError, ArgumentTypeError, DimensionError
from tensorcore.nn.module import Module, indented

__all__ = ["ModuleDict", "ModuleList", "Sequential", "pairs_of", "position"]


def position(owner: str, index: Any, length: int) -> int:
    """An index counted from the front."""
    at = operator.index(index)
    if not -length <= at < length:
        raise DimensionError(f"{owner}: index {at} is out of range, got {length} entries; use one of them")
    return at % length


class _Row(Module):
    """Modules under the names "0", "1", ...: what Sequential and ModuleList have in common."""

    _modules: dict[str, Any]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self._modules.items())[index])
        return list(self._modules.values())[position(self._get_name(), index, len(self))]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, list(self._modules)[position(self._get_name(), index, len(self))], module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        if isinstance(index, slice):
            for key in keys[index]:
                delattr(self, key)
        else:
            delattr(self, keys[position(self._get_name(), index, len(self))])
        # The names stay 0, 1, 2, ... without a gap.
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def _of(self, items: list[tuple[str, Module]]) -> Any:
        raise NotImplementedError

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before the one at ``index``."""
        if not isinstance(module, Module):
            raise ArgumentTypeError(f"insert: expected a Module, got {type(module)}; module should be of type Module")
        length = len(self)
        if not -length <= index <= length:
            raise DimensionError(f"insert: Index out of range, got {index} among {length} modules; use append")
        row = list(self._modules.values())
        row.insert(index, module)
        self._modules = {str(i): one for i, one in enumerate(row)}
        return self

    def pop(self, key: Any) -> Module:
        """Take out the module at an index and return it."""
        found = self[key]
        del self[key]
        return found

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Row):
    """Modules called one after the other, each with the result of the one before.

    Args:
        args: the modules, or one OrderedDict of them by name.
    """

    @overload
    def __init__(self, *args: Module) -> None: ...

    @overload
    def __init__(self, arg: OrderedDict[str, Module]) -> None: ...

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def _of(self, items: list[tuple[str, Module]]) -> Any:
        return type(self)(OrderedDict(items))

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at ``index``."""
        super().insert(index, module)
        return self

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *self._other("add", other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(self._other("iadd", other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._times("mul", other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (self._times("imul", other) - 1))

    @staticmethod
    def _other(op: str, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ArgumentError(
                f"{op}: {op} operator supports only objects of Sequential class, got {type(other)}; wrap it "
                "in Sequential(...)"
            )
        return other

    @staticmethod
    def _times(op: str, other: Any) -> int:
        if not isinstance(other, int):
            raise ArgumentTypeError(
                f"{op}: expected an int, got {type(other)}; Sequential repeats a whole number of times"
            )
        if other <= 0:
            raise ArgumentError(f"{op}: expected a positive int, got {other}; Non-positive multiplication factor")
        return other


class ModuleList(_Row):
    """A list of modules, all of them registered.

    Args:
        modules: what it starts with.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _of(self, items: list[tuple[str, Module]]) -> Any:
        return type(self)(module for _, module in items)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at ``index``."""
        row = list(self._modules.values())
        row.insert(index, module)
        self._modules = {str(i): one for i, one in enumerate(row)}

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        if not isinstance(modules, Iterable):
            raise ArgumentTypeError(
                "extend: ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}; pass a list"
            )
        return super().extend(modules)

    def __repr__(self) -> str:
        texts = [repr(one) for one in self]
        if not texts:
            return f"{self._get_name()}()"
        runs: list[list[Any]] = []  # [first, last, text]: equal neighbours share a line
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [
            indented(f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}")
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules, all of them registered, in the order they were put in.

    Args:
        modules: a mapping, or pairs of name and module.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take out all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take out one module and return it."""
        found = self[key]
        del self[key]
        return found

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Put in all modules of a mapping, or of pairs of name and module."""
        for name, module in pairs_of("ModuleDict", modules):
            self[name] = module


def pairs_of(owner: str, given: Any) -> list[tuple[str, Any]]:
    """What ``update`` takes as a list of pairs; a plain mapping of parameters is sorted, as PyTorch sorts it."""
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(
            f"update: {owner}.update should be called with an iterable of key/value pairs, but got "
            f"{type(given).__name__}; "
            f"pass a dict"
        )
    if isinstance(given, (Mapping, Module)):
        items = list(given.items())
        return sorted(items) if owner == "ParameterDict" and not isinstance(given, (OrderedDict, Module)) else items
    pairs = []
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable) or len(pair := list(pair)) != 2:
            raise ArgumentError(
                f"update: {owner} update sequence element #{i} should be a pair of key and value, got "
                f"{pair!r}; 2 is required"
            )
        pairs.append((pair[0], pair[1]))
    return pairs
