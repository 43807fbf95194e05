"""Which module of a model is running: the dotted path of each, from the class of the outermost one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tensorcore.errors import UsageError
from tensorcore.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]

Listener = Callable[[str, Any], None]


class _Running(threading.local):
    def __init__(self) -> None:
        self.stack: list[tuple[str, Any]] = []


class ModuleTracker:
    """Within a ``with``, knows the modules whose ``forward`` is under way on each thread.

    Args:
        enter, leave: called with the path and the module when a ``forward`` begins and ends.
    """

    def __init__(self, enter: Listener | None = None, leave: Listener | None = None) -> None:
        self._enter, self._leave = enter, leave
        self._running = _Running()
        # By root: the paths of all modules below, so that a module is looked for once per model and not per call.
        self._paths: dict[int, tuple[Any, dict[int, str]]] = {}
        self._handles: tuple[Any, ...] = ()

    @property
    def parents(self) -> set[str]:
        """The paths of the modules that are running on this thread, and ``Global``."""
        return {"Global", *[path for path, _ in self._running.stack]}

    @property
    def path(self) -> str | None:
        """The path of the innermost one on this thread, None outside of all modules."""
        stack = self._running.stack
        return stack[-1][0] if stack else None

    def __enter__(self) -> ModuleTracker:
        if self._handles:
            raise UsageError(
                "ModuleTracker: expected a tracker that is not running, got one that is; make a second one"
            )
        self._handles = (
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        )
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = ()
        self._paths.clear()
        self._running = _Running()

    def _before(self, module: Any, args: Any) -> None:
        path = self._path_of(module)
        self._running.stack.append((path, module))
        if self._enter is not None:
            self._enter(path, module)

    def _after(self, module: Any, args: Any, output: Any) -> None:
        stack = self._running.stack
        # A KeyboardInterrupt leaves modules behind that nobody ended.
        while stack:
            path, running = stack.pop()
            if self._leave is not None:
                self._leave(path, running)
            if running is module:
                break

    def _path_of(self, module: Any) -> str:
        stack = self._running.stack
        root = stack[0][1] if stack else module
        for _ in range(2):
            if id(root) not in self._paths:
                title = type(root).__name__
                found = {id(one): f"{title}.{name}" if name else title for name, one in root.named_modules()}
                self._paths[id(root)] = root, found
            path = self._paths[id(root)][1].get(id(module))
            if path is not None:
                return path
            del self._paths[id(root)]  # the model may have grown since
        # A module that is no member of the one that calls it.
        return f"{stack[-1][0]}.{type(module).__name__}"
