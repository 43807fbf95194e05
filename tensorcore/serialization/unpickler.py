"""Unpicklers: one that builds what the allow-list names and nothing else, and one that builds whatever a file says."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from tensorcore.errors import LoadError, RefusedGlobal
from tensorcore.serialization.archive import cut_short
from tensorcore.serialization.names import BUILDERS, CLASSES, PLAIN
from tensorcore.tensor import Tensor

__all__ = ["FreeUnpickler", "SafeUnpickler", "Survey", "free_class"]

# The opcodes of data: numbers, text, bytes, containers, the memo, names, storages, and calls, which are checked below.
# The others (extension registries, buffers out of band, text that is evaluated) have no place in a file of tensors.
_OPCODES = (
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE", "BININT",
    "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINSTRING", "SHORT_BINSTRING", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "EMPTY_TUPLE",
    "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "LIST", "EMPTY_DICT", "DICT", "EMPTY_SET", "FROZENSET",
    "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GLOBAL", "STACK_GLOBAL", "BINPERSID",
)  # fmt: skip
_PURE: Any = pickle._Unpickler  # type: ignore[attr-defined]
# Never built by weights_only, whoever allows them.
_NEVER = ("os", "posix", "nt", "sys", "subprocess", "shutil", "pty", "socket", "ctypes")


class SafeUnpickler(_PURE):  # type: ignore[misc]
    """Builds tensors and plain containers, and what ``allowed`` names beside.

    In Python, because the C one lets a file set attributes of the very functions that it is allowed to call.

    Attributes:
        storages: makes the storage for a persistent id.
        allowed: by full name what the program trusts.
    """

    storages: Any
    allowed: dict[str, Any]
    dispatch: dict[int, Any] = {}  # noqa: RUF012

    def load(self) -> Any:
        """The object; unlike its base, names an opcode that it does not take."""
        try:
            return super().load()
        except KeyError as error:
            if isinstance(error.args[0], int) and error.args[0] not in self.dispatch:
                raise RefusedGlobal(
                    f"load: Weights only load failed: expected the opcodes of plain data, got {bytes(error.args)!r}; "
                    "pass weights_only=False if you trust the file"
                ) from None
            raise

    def persistent_load(self, pid: Any) -> Any:
        return self.storages.load(pid)

    def find_class(self, module: str, name: str) -> Any:
        # Files of protocol 2 use Python 2's names of modules.
        full = f"{'builtins' if module == '__builtin__' else module}.{name}"
        for table in (PLAIN, BUILDERS):
            if full in table:
                return table[full]
        if full in self.allowed and module.partition(".")[0] not in _NEVER:
            return self.allowed[full]
        raise refused(full)

    def load_reduce(self) -> None:
        arguments, function = self.stack[-1], self.stack[-2]
        if not callable(function) or not self._trusted(function):
            raise _no_target("a call", function)
        if not isinstance(arguments, tuple):
            raise _no_target("arguments", arguments)
        del self.stack[-1]
        # A parameter can be made of any tensor, a tensor of nothing but a description.
        self.stack[-1] = function(*arguments)

    def load_newobj(self) -> None:
        self._new(self.stack.pop(-2), self.stack.pop(), {})

    def load_newobj_ex(self) -> None:
        keywords, arguments, cls = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self._new(cls, arguments, keywords)

    def load_build(self) -> None:
        state, target = self.stack[-1], self.stack[-2]
        if type(target).__name__ == "OrderedDict" and type(target) in CLASSES:
            if not isinstance(state, dict) or not all([isinstance(key, str) for key in state]):
                raise _no_target("attributes", state)
            target.__dict__.update(state)
            del self.stack[-1]
            return
        if not any([type(target) is one for one in self.allowed.values()]):
            raise RefusedGlobal(
                f"load: Weights only load failed: expected no state for a {type(target).__name__}, got some; "
                "allow its class with serialization.add_safe_globals, or pass weights_only=False if you trust the file"
            )
        super().load_build()

    def load_bytearray8(self) -> None:
        # The base makes the whole array before it looks whether the file has that many bytes.
        size = int.from_bytes(self.read(8), "little")
        data = self.read(min(size, sys.maxsize))
        if len(data) < size:
            raise cut_short(size, len(data))
        self.append(bytearray(data))

    def load_append(self) -> None:
        value = self.stack.pop()
        self._container(list).append(value)

    def load_appends(self) -> None:
        values = self.pop_mark()
        self._container(list).extend(values)

    def load_additems(self) -> None:
        values = self.pop_mark()
        self._container(set).update(values)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._container(dict)[key] = value

    def load_setitems(self) -> None:
        items = self.pop_mark()
        target = self._container(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key] = value

    def _new(self, cls: Any, arguments: Any, keywords: Any) -> None:
        if not isinstance(cls, type) or not any([cls is one for one in self.allowed.values()]):
            if not (callable(cls) and self._trusted(cls)):
                raise _no_target("an allowed class", cls)
            self.append(cls(*arguments, **keywords))
            return
        self.append(cls.__new__(cls, *arguments, **keywords))

    def _trusted(self, function: Any) -> bool:
        if (
            isinstance(function, type)
            and issubclass(function, Tensor)
            and function.__module__.startswith("tensorcore.")
        ):
            return function is not Tensor  # a tensor is made of a storage alone
        return any([function is one for one in (*PLAIN.values(), *BUILDERS.values(), *self.allowed.values())])

    def _container(self, kind: type) -> Any:
        target = self.stack[-1]
        if not isinstance(target, kind) or not (
            type(target) in CLASSES or any([type(target) is one for one in self.allowed.values()])
        ):
            raise _no_target(f"a {kind.__name__}", target)
        return target


SafeUnpickler.dispatch = {getattr(pickle, name)[0]: _PURE.dispatch[getattr(pickle, name)[0]] for name in _OPCODES} | {
    getattr(pickle, name.upper())[0]: getattr(SafeUnpickler, f"load_{name}")
    for name in (
        "bytearray8",
        "reduce",
        "newobj",
        "newobj_ex",
        "build",
        "append",
        "appends",
        "additems",
        "setitem",
        "setitems",
    )
}


class FreeUnpickler(pickle.Unpickler):
    """Builds whatever the file says, tensors of PyTorch's names as those of this library."""

    storages: Any

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]  # a class with its source, which files of before PyTorch 1.6 kept
        return self.storages.load(pid)

    def find_class(self, module: str, name: str) -> Any:
        return _found(super().find_class, module, name)


def free_class(module: Any) -> Any:
    """A FreeUnpickler on top of the Unpickler of a module such as dill."""
    if module is None or module is pickle:
        return FreeUnpickler
    base = module.Unpickler

    class Unpickler(base):  # type: ignore[misc]
        persistent_load = FreeUnpickler.persistent_load

        def find_class(self, module: str, name: str) -> Any:
            return _found(super().find_class, module, name)

    return Unpickler


class Survey(SafeUnpickler):
    """Builds nothing, and collects in ``names`` what the file wants that is not allowed."""

    def load(self) -> Any:
        self.names: set[str] = set()
        self.storages = self
        return super().load()

    def persistent_load(self, pid: Any) -> Any:
        return _Anything()

    def find_class(self, module: str, name: str) -> Any:
        try:
            super().find_class(module, name)
        except RefusedGlobal:
            self.names.add(f"{module}.{name}")
        return _Anything

    def _trusted(self, function: Any) -> bool:
        return function is _Anything or type(function) is _Anything

    def _container(self, kind: type) -> Any:
        target = self.stack[-1]
        return kind() if type(target) is _Anything else super()._container(kind)

    def load_build(self) -> None:
        del self.stack[-1]

    dispatch = {**SafeUnpickler.dispatch, pickle.BUILD[0]: load_build}  # noqa: RUF012


class _Anything:
    """Stands for whatever a file wants built."""

    def __init__(self, *args: Any, **keywords: Any) -> None: ...

    def __call__(self, *args: Any, **keywords: Any) -> _Anything:
        return self


def refused(full: str) -> RefusedGlobal:
    """The error for a name that is not on the list."""
    if full.startswith("torch."):
        return RefusedGlobal(
            f"load: Weights only load failed: expected tensors and plain containers, got PyTorch's {full}, for which "
            "tensorcore has no counterpart in files; save a state_dict of dense tensors with PyTorch"
        )
    short = full.rpartition(".")[2]
    return RefusedGlobal(
        f"load: Weights only load failed: expected tensors and plain containers, got {full}, which was not an allowed "
        f"global by default; if you trust it, allow it with serialization.add_safe_globals([{short}]), or pass "
        "weights_only=False if you trust the file"
    )


def _no_target(wanted: str, got: Any) -> LoadError:
    return LoadError(f"load: expected {wanted} in the pickle, got {type(got).__name__}; the file is damaged")


def _found(find: Any, module: str, name: str) -> Any:
    full = f"{module}.{name}"
    if full in BUILDERS:
        return BUILDERS[full]
    if module == "torch" or module.startswith("torch."):
        from importlib import import_module

        # A module of PyTorch's own is found under the same name here where there is one.
        for place in ("tensorcore" + module[len("torch") :], "tensorcore.nn", "tensorcore.optim"):
            try:
                return getattr(import_module(place), name)
            except (ImportError, AttributeError):
                continue
        raise LoadError(
            f"load: expected classes that tensorcore has, got PyTorch's {full}; "
            "save the state_dict with PyTorch instead of the whole object"
        )
    return find(module, name)
