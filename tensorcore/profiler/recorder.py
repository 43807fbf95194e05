"""The recording of calls: ops, kernels, nodes of the tape, modules and the user's own spans, while a profiler is on.

Nothing of this costs anything while no profiler is on: kernels are recorded by another table in the place of the
device's own, ops by other bodies of their functions, modules by hooks, and nodes by the walk's switch.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from math import prod
from time import perf_counter_ns
from types import FunctionType
from typing import Any

from tensorcore.amp.bodies import cover, uncover
from tensorcore.backend.base import Backend, Kernel
from tensorcore.backend.kernels import WRITES
from tensorcore.backend.shapes import VIEWS
from tensorcore.backend.watch import unwatch, watch
from tensorcore.errors import UsageError
from tensorcore.ops import late
from tensorcore.ops.creation import create, random
from tensorcore.ops.define import OPS
from tensorcore.shortcuts import in_python
from tensorcore.tape.mode import Mode
from tensorcore.tape.node import Node, Output
from tensorcore.tensor import Tensor
from tensorcore.utils.flop_counter import kernel_flops
from tensorcore.utils.module_tracker import ModuleTracker

__all__ = ["Recorder", "current"]

# Methods that do work and stand in no list of ops.
_METHODS = frozenset(["contiguous", "copy_", "cpu", "cuda", "item", "numpy", "to", "tolist"])


class Raw:
    """One call as it is noted while the program runs."""

    __slots__ = (
        "device", "device_ns", "end", "flops", "host", "kind", "module", "name", "nbytes", "parent", "shapes", "stack",
        "start", "thread",
    )  # fmt: skip


class _Local(threading.local):
    top: Raw | None = None
    inside_module: list[Raw]

    def __init__(self) -> None:
        self.inside_module = []
        self.thread = threading.get_native_id()


class Recorder:
    """Records from ``start`` to ``stop``; one at a time in a process.

    Args:
        shapes, stack, flops: whether these are noted with each call.
        memory: whether the bytes of new results are.
        devices: whether kernels of devices other than the host are timed to their end, which waits for each of them.

    Attributes:
        raw: the calls that have ended, in the order of their ends; ``modules`` those of modules.
        origin: the time of ``start`` in nanoseconds.
    """

    def __init__(self, *, shapes: bool, stack: bool, flops: bool, memory: bool, devices: bool) -> None:
        self.shapes, self.stack, self.flops, self.memory, self.devices = shapes, stack, flops, memory, devices
        self.raw: list[Raw] = []
        self.modules: list[Raw] = []
        self.origin = perf_counter_ns()
        self._local = _Local()
        self._tracker = ModuleTracker(self._enter_module, self._leave_module)
        self._makers: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()

    def start(self) -> None:
        """Begin to record. Raises UsageError where another recorder is on."""
        global _current
        with _starting:
            if _current is not None:
                raise UsageError("profiler: expected none to be on, got a second one; stop the first")
            _current = self
        late.import_all()
        cover({function: self._op(name) for function, name in _functions().items()})
        watch(self._kernel)
        Mode.around = staticmethod(self._node)  # type: ignore[assignment]
        self._tracker.__enter__()
        self.clear()

    def stop(self) -> None:
        """End it; what was recorded stays."""
        global _current
        self._tracker.__exit__()
        Mode.around = None
        unwatch(self._kernel)
        uncover()
        _current = None

    def clear(self) -> None:
        """Forget what was recorded so far, and count time from here."""
        self.raw.clear()
        self.modules.clear()
        self.origin = perf_counter_ns()

    def begin(self, name: str, kind: str) -> Raw:
        """Note that a call begins on this thread."""
        local = self._local
        made = Raw()
        made.name, made.kind, made.thread, made.parent = name, kind, local.thread, local.top
        made.module = self._tracker.path or ""
        made.device, made.host = "", True
        made.device_ns = made.nbytes = made.flops = 0
        made.shapes = None
        made.stack = list(_user_lines()) if self.stack else None
        local.top = made
        made.start = perf_counter_ns()
        return made

    def end(self, made: Raw) -> None:
        """Note that it ends."""
        made.end = perf_counter_ns()
        self._local.top = made.parent
        self.raw.append(made)

    def span(self, name: str, kind: str, start: int, track: int, parent: Raw | None = None) -> None:
        """Note something that went on beside the calls of this thread, from ``start`` (perf_counter_ns) until now."""
        made = Raw()
        made.name, made.kind, made.thread, made.parent = name, kind, track, parent
        made.module, made.device, made.host = "", "", True
        made.device_ns = made.nbytes = made.flops = 0
        made.shapes = made.stack = None
        made.start, made.end = start, perf_counter_ns()
        self.raw.append(made)

    # What stands in the place of functions, kernels and nodes

    def _op(self, name: str) -> Callable[[FunctionType], Callable[..., Any]]:
        title = f"aten::{name}"

        def make(own: FunctionType) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                made = self.begin(title, "op")
                if self.shapes:
                    made.shapes = _shapes(args)
                try:
                    result = own(*args, **options)
                finally:
                    self.end(made)
                if made.module:
                    self._note_maker(result, made.module)
                return result

            return call

        return make

    def _kernel(self, device: Backend, name: str, kernel: Kernel) -> Kernel:
        place, host = str(device), device.capabilities.host or not device.capabilities.values
        waits = self.devices and not host
        makes = name not in VIEWS and name not in WRITES

        def call(*natives: Any, **options: Any) -> Any:
            made = self.begin(f"kernel::{name}", "kernel")
            made.device, made.host = place, host
            try:
                result = kernel(*natives, **options)
                if waits:
                    device.synchronize()
                    made.device_ns = perf_counter_ns() - made.start
            finally:
                self.end(made)
            if self.shapes:
                made.shapes = _shapes(natives)
            if self.memory and makes and options.get("out") is None:
                made.nbytes = _nbytes(result, natives)
            if self.flops:
                made.flops = kernel_flops(name, natives, options, result)
            return result

        return call

    def _node(self, node: Node, g: Any, edges: Any) -> Any:
        made = self.begin(node.name(), "backward")
        made.module = self._makers.get(node, "")
        try:
            return node.op.backward(node, g) if edges is None else node.op.backward(node, g, edges)
        finally:
            self.end(made)

    def _enter_module(self, path: str, module: Any) -> None:
        made = Raw()
        stack = self._local.inside_module
        made.name = made.module = path
        made.kind, made.thread, made.parent = "module", self._local.thread, stack[-1] if stack else None
        made.device, made.host, made.shapes, made.stack = "", True, None, None
        made.device_ns = made.nbytes = made.flops = 0
        stack.append(made)
        made.start = perf_counter_ns()

    def _leave_module(self, path: str, module: Any) -> None:
        if self._local.inside_module:
            made = self._local.inside_module.pop()
            made.end = perf_counter_ns()
            self.modules.append(made)

    def _note_maker(self, result: Any, path: str) -> None:
        """Remember which module put a node on the tape, for when its gradient is computed."""
        for one in result if type(result) in (tuple, list) else (result,):
            if isinstance(one, Tensor):
                edge = one.node
                node = edge.node if type(edge) is Output else edge
                if node is not None and node.edges:
                    self._makers.setdefault(node, path)


_starting = threading.Lock()
_current: Recorder | None = None


def current() -> Recorder | None:
    """The recorder that is on, None where none is."""
    return _current


def _functions() -> dict[FunctionType, str]:
    """The functions and methods by which ops are called, with the ops' names."""
    found: dict[FunctionType, str] = {}
    for family in (create, random):
        for name in family.__all__:
            function = getattr(family, name)
            if type(function) is FunctionType and not name.startswith(("get_", "set_", "is_", "manual_", "initial_")):
                found[function] = name
    for name, value in list(vars(Tensor).items()):
        function = in_python(value)
        if type(function) is not FunctionType:
            continue
        if name.startswith("__"):
            names = function.__code__.co_freevars
            if function.__closure__ is not None and "op" in names:
                found[function] = function.__closure__[names.index("op")].cell_contents.name
            elif function.__closure__ is not None and "written" in names:
                found[function] = function.__closure__[names.index("written")].cell_contents.__name__
            elif name in ("__getitem__", "__setitem__"):
                found[function] = {"__getitem__": "index", "__setitem__": "index_put_"}[name]
        elif name in _METHODS or (name.endswith("_") and not name.startswith(("_", "requires_grad"))):
            found.setdefault(function, name)
    for name, op in OPS.items():
        if type(function := in_python(op.function)) is FunctionType:
            found[function] = name
    return found


def _user_lines() -> Iterator[str]:
    """The lines of the program that led here, the innermost first; this package's own are left out."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if _PACKAGE not in code.co_filename and not code.co_filename.startswith("<"):
            yield f"{code.co_filename}({frame.f_lineno}): {code.co_name}"
        frame = frame.f_back


_PACKAGE = __file__.rpartition("profiler")[0]


def _shapes(values: Any) -> list[list[int]]:
    """The shapes of the tensors (or native arrays) among the arguments; an empty one for whatever is none."""
    found = []
    for one in values:
        native = one.native if isinstance(one, Tensor) else one
        shape = getattr(native, "shape", None)
        found.append(list(shape) if type(shape) is tuple else [])
    return found


def _nbytes(result: Any, natives: Any) -> int:
    """Bytes of what a kernel made, without what it was given and answered with."""
    total = 0
    for one in result if type(result) in (tuple, list) else (result,):
        if hasattr(one, "dtype") and not any([one is given for given in natives]):
            total += prod(one.shape) * int(one.dtype.itemsize)
    return total
