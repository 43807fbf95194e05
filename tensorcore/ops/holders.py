"""Who holds a device's memory: each storage with the names that the program has for it, and the line that made it."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from tensorcore.backend.base import Backend, Kernel
from tensorcore.backend.watch import unwatch, watch
from tensorcore.tape.node import Node
from tensorcore.tensor import Tensor

__all__ = ["History", "Holder", "history", "holders"]

_PACKAGE = __file__.rpartition("ops")[0]


class Holder(NamedTuple):
    """One storage.

    Attributes:
        nbytes: of the storage.
        names: what holds it: paths of parameters, buffers and gradients in modules, states of optimizers, variables with
            the line that their function is at, and the nodes that keep it for the backward walk.
        shape, dtype: of the largest tensor in it.
        line: where it was made, if a history was kept; else empty.
    """

    nbytes: int
    names: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    line: str

    def __str__(self) -> str:
        who = ", ".join(self.names[:3]) or "nobody with a name"
        more = f" and {len(self.names) - 3} more" if len(self.names) > 3 else ""
        made = f"; made at {self.line}" if self.line else ""
        size = self.nbytes / 2**20
        return f"{size:.2f} MiB: {who}{more} ({self.dtype} of shape {list(self.shape)}{made})"


class History:
    """While it is on, every result is noted with the line of the program and the module that made it.

    ``watch`` and ``unwatch`` come from the kernel table, so it costs nothing while it is off.
    """

    def __init__(self) -> None:
        self.on = False
        self.lines: dict[int, tuple[Any, str]] = {}
        self.module: Callable[[], str | None] = lambda: None  # the module that runs; set by whoever knows modules

    def start(self) -> None:
        """Begin to note."""
        if not self.on:
            self.on = True
            watch(self._around)

    def stop(self) -> None:
        """Note no longer, and forget."""
        if self.on:
            self.on = False
            unwatch(self._around)
            self.lines.clear()

    def line_of(self, native: Any) -> str:
        """Where a native array was made; empty where that was not noted."""
        return self.lines.get(id(native), (None, ""))[1]

    def _around(self, device: Backend, name: str, kernel: Kernel) -> Kernel:
        def noting(*natives: Any, **options: Any) -> Any:
            result = kernel(*natives, **options)
            for one in result if type(result) in (tuple, list) else (result,):
                self._note(one)
            return result

        return noting

    def _note(self, native: Any) -> None:
        key, lines = id(native), self.lines
        if key in lines:
            return
        try:
            reference = weakref.ref(native, lambda _: lines.pop(key, None))
        except TypeError:  # a number, or an array that takes no weak references
            return
        module = self.module()
        line = _line_of(sys._getframe(2))
        lines[key] = reference, f"{line}, by {module}" if module else line


history = History()


def holders(device: Backend, limit: int | None = 10, given: Mapping[int, str] | None = None) -> list[Holder]:
    """The storages on a device that live tensors and the tape hold, the largest first.

    Walks over every object of the process: tens of milliseconds. Memory that no tensor holds is not listed.

    Args:
        limit: how many at most, None for all.
        given: further names, by the ids of native arrays.
    """
    found: dict[Any, _Storage] = {}
    everything = gc.get_objects()
    named = _names(everything)
    for one in everything:
        if _is(one, Tensor):
            native = getattr(one, "native", None) if type(one) is Tensor else _native_of(one)
            if native is not None and one.device is device:
                names = named.get(id(one), []) + ([given[id(native)]] if given and id(native) in given else [])
                _enter(found, device, native, str(one.dtype), names)
        elif type(one) is Node:
            kept = [native for native in _kept(one) if type(native) is device.array]
            for native in kept:
                _enter(found, device, native, str(native.dtype), [f"kept for {one.name()}"])
    del everything
    largest = sorted(found.values(), key=lambda one: -one.nbytes)[:limit]
    return [Holder(one.nbytes, tuple(dict.fromkeys(one.names)), one.shape, one.dtype, one.line) for one in largest]


class _Storage:
    def __init__(self, nbytes: int) -> None:
        self.nbytes, self.names, self.line = nbytes, list[str](), ""
        self.shape: tuple[int, ...] = ()
        self.dtype, self.elements = "", -1


def _enter(found: dict[Any, _Storage], device: Backend, native: Any, dtype: str, names: Any) -> None:
    key = device.storage_key(native)
    one = found.get(key)
    if one is None:
        flat = device.storage(native)
        one = found[key] = _Storage(flat.shape[0] * native.dtype.itemsize)
    one.names.extend(names)
    one.line = one.line or history.line_of(native)
    count = 1
    for size in native.shape:
        count *= size
    if count > one.elements:
        one.shape, one.dtype, one.elements = tuple(native.shape), dtype, count


def _is(value: Any, kind: Any) -> bool:
    """As isinstance, which also asks the object for its class: among all objects of a process some warn or fail then."""
    return issubclass(type(value), kind)


def _native_of(tensor: Any) -> Any:
    try:
        return tensor.native
    except Exception:  # a parameter that has no shape yet
        return None


def _kept(node: Node) -> Iterator[Any]:
    """The native arrays that a node keeps: of the tensors that it saved, and of its result."""
    if type(node.saved) is tuple:
        for one in node.saved:
            if _is(one, Tensor):
                yield one.native
    out = node.out
    yield from out if type(out) is tuple else [out]


def _names(everything: list[Any]) -> dict[int, list[str]]:
    """What the program calls its tensors, by their ids. Modules and optimizers are known by what they have."""
    found: dict[int, list[str]] = {}

    def name(value: Any, text: str, where: str = "", deep: bool = True) -> None:
        if _is(value, Tensor):
            found.setdefault(id(value), []).append(text + where)
            grad = value.grad if value.is_leaf else None
            if grad is not None:
                found.setdefault(id(grad), []).append(f"gradient of {text}{where}")
        elif deep and type(value) in (list, tuple) and len(value) < 10_000:
            for i, one in enumerate(value):
                name(one, f"{text}[{i}]", where, False)
        elif deep and type(value) is dict and len(value) < 10_000:
            for key, one in list(value.items()):
                name(one, f"{text}[{key!r}]", where, False)

    modules = [one for one in everything if _has(one, "_parameters", "_buffers", "_modules")]
    below = {id(child) for one in modules for child in one._modules.values()}
    for root in modules:
        if id(root) not in below:
            title = type(root).__name__
            for path, one in root.named_modules():
                # What a module keeps beside its parameters, such as the keys and values of the words before, counts too.
                own = {key: value for key, value in vars(one).items() if key[:1] != "_"}
                for members in (one._parameters, one._buffers, own):
                    for key, value in members.items():
                        name(value, ".".join(filter(None, (title, path, key))))
    for optimizer in everything:
        if _has(optimizer, "state", "param_groups"):
            for parameter, state in list(optimizer.state.items()):
                whose = found.get(id(parameter), ["a parameter"])[0]
                for key, value in state.items() if _is(state, dict) else ():
                    name(value, f"{type(optimizer).__name__} {key} of {whose}")
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if not frame.f_code.co_filename.startswith(_PACKAGE):
                where = f" at {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
                for key, value in list(frame.f_locals.items()):
                    name(value, f"'{key}'", where)
            frame = frame.f_back
    # This frame is among them: with it in a name of its own, all that the frames hold would stay until the next collection.
    del top, frame
    return found


def _has(one: Any, *names: str) -> bool:
    """Whether an object has these attributes of its own; asking others than plain ones could run their code."""
    if not getattr(type(one), "__dictoffset__", 0):
        return False
    try:
        attributes = object.__getattribute__(one, "__dict__")
    except AttributeError:  # one of the interpreter's own that hides it: TypeVar since Python 3.12
        return False
    return _is(attributes, dict) and all([name in attributes for name in names])


def _line_of(frame: FrameType | None) -> str:
    """The innermost line that is not the library's own."""
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((_PACKAGE, "<")):
            return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
        frame = frame.f_back
    return ""
