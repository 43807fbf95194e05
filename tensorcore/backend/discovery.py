"""Finding plugins by their metadata, and loading one of them without trusting it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from tensorcore.backend.base import INTERFACE_VERSION
from tensorcore.errors import DeviceUnavailable, PluginError, TensorcoreError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

    from tensorcore.backend.hookspecs import RegisterBackend, RegisterCommunicator

__all__ = [
    "Failure", "Offer", "Plugin", "author_advice", "discover", "guarded", "load", "parse", "show", "switched_on",
    "trace",
]  # fmt: skip

GROUP = "tensorcore"
NAME = re.compile(r"[a-z][a-z0-9_]*")


class Failure(Exception):
    """Why something of a plugin cannot be used: the public error, its reason, and the line to type."""

    def __init__(self, error: type[TensorcoreError], reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.error = error
        self.reason = reason
        self.remedy = remedy

    def raise_for(self, op: str) -> NoReturn:
        """Raise the public error with what the plugin raised, if anything, as its cause."""
        raise self.error(f"{op}: {self.reason}; {self.remedy}") from self.__cause__


class Offer:
    """What a plugin registered under one name."""

    __slots__ = ("count", "factory", "name", "plugin", "probe", "remedy")

    def __init__(
        self,
        plugin: Plugin | None,
        name: str,
        factory: Callable[..., Any],
        count: Callable[[], int] | None,
        probe: Callable[[], str | None] | None,
        remedy: str | None,
    ) -> None:
        self.plugin = plugin
        self.name = name
        self.factory = factory
        self.count = count
        self.probe = probe
        self.remedy = remedy

    def __str__(self) -> str:
        return f"'{self.name}' of {self.plugin}" if self.plugin else f"'{self.name}'"

    @property
    def advice(self) -> str:
        """What to do where it cannot be used."""
        return f"type: {self.remedy}" if self.remedy else "see tensorcore doctor"


class Plugin:
    """One plugin: where it was found, and what has become of it.

    ``target`` is ``module``, ``module:attribute``, the object itself that holds the hooks, or the error that
    reading its metadata ended in.
    ``state`` is one of ``found``, ``loaded``, ``broken`` and ``blocked``.
    """

    def __init__(
        self,
        name: str,
        target: object,
        distribution: Distribution | None = None,
        extras: Iterable[str] = (),
    ) -> None:
        self.names: tuple[str, ...] = (name,)
        self.target = target
        self.distribution = distribution
        self.extras = tuple(extras)
        self.state = "found"
        self.reason: str | None = None
        self.remedy: str | None = None
        self.interface: tuple[int, int] | None = None
        self.backends: tuple[Offer, ...] = ()
        self.communicators: tuple[Offer, ...] = ()
        self.notes: dict[str, tuple[str, str]] = {}  # for each name it offers in vain: the reason and the remedy

    @property
    def module(self) -> str:
        """The module that it lives in."""
        if isinstance(self.target, str):
            return self.target.partition(":")[0]
        return str(getattr(self.target, "__name__", type(self.target).__name__))

    @cached_property
    def package(self) -> tuple[str, str] | None:
        """Name and version of its distribution. Reads a file, once: programs ask for absent devices again and again."""
        if self.distribution is None:
            return None
        try:
            metadata = self.distribution.metadata
            known = {key: metadata[key] for key in ("Name", "Version") if key in metadata}
        except Exception:
            return None
        # A half-removed installation has no METADATA, and so no name.
        return (known["Name"], known.get("Version", "unknown")) if "Name" in known else None

    @property
    def identity(self) -> str:
        """The name that tells it from another plugin of the same name: its package's, else its module's."""
        package = self.package
        return package[0] if package else self.module

    def __str__(self) -> str:
        package = self.package
        where = f"package {' '.join(package)}" if package else f"module {self.module}"
        return f"plugin '{self.names[0]}' ({where})"


def parse(item: str) -> Plugin:
    """The plugin that ``module``, ``module:attribute`` or ``name=module`` stands for."""
    name, _, target = (part.strip() for part in item.rpartition("="))
    return Plugin(name or target.partition(":")[0], target)


def discover() -> list[Plugin]:
    """Every plugin there is, imported by nobody: those of TENSORCORE_PLUGINS, else the installed ones.

    Entry points of one distribution with one target are one plugin with several names.
    """
    listed = os.environ.get("TENSORCORE_PLUGINS", "")
    if listed.strip():
        trace("TENSORCORE_PLUGINS replaces discovery: %s", listed)
        found = [parse(item) for item in listed.split(",") if item.strip()]
    else:
        # In an order that does not depend on how the file system lists its folders.
        found = sorted(_installed(), key=lambda plugin: (plugin.names, str(plugin.target)))
    merged: dict[object, Plugin] = {}
    for plugin in found:
        same = merged.setdefault((plugin.target, id(plugin.distribution), plugin.state), plugin)
        if same is not plugin:
            same.names += plugin.names
    blocked = {item.strip() for item in os.environ.get("TENSORCORE_BLOCK", "").split(",") if item.strip()}
    for plugin in merged.values():
        matched = blocked and blocked.intersection((*plugin.names, plugin.module, plugin.identity))
        if matched:
            plugin.state = "blocked"
            plugin.reason = f"TENSORCORE_BLOCK names '{min(matched)}'"
            plugin.remedy = f"take '{min(matched)}' out of TENSORCORE_BLOCK"
        trace("%s: %s", plugin.state, plugin)
    return list(merged.values())


def load(plugin: Plugin) -> tuple[list[Offer], list[Offer], tuple[int, int]]:
    """Import a plugin and collect what it registers: backends, communicators, and its interface version.

    Nothing is kept of a plugin that fails half-way. Raises Failure, and lets KeyboardInterrupt through.
    """
    trace("importing %s", plugin)
    where = f"expected {plugin} to import"
    target = guarded(DeviceUnavailable, where, _import_remedy(plugin), lambda: _resolve(plugin))
    stated = guarded(PluginError, where, author_advice(plugin), lambda: getattr(target, "INTERFACE", None))
    if stated is not None:
        _negotiate(plugin, stated)

    backends: list[Offer] = []
    communicators: list[Offer] = []
    versions: list[tuple[int, int]] = [] if stated is None else [stated]
    sealed: list[bool] = []
    register_backend, register_communicator = _collectors(plugin, backends, communicators, versions, sealed)

    def call_hooks() -> None:
        import pluggy

        from tensorcore.backend import hookspecs

        # A manager of its own for each plugin: one that fails leaves nothing behind in the others' manager.
        manager = pluggy.PluginManager(GROUP)
        manager.add_hookspecs(hookspecs)
        manager.register(target)
        manager.check_pending()
        implementations = [
            implementation
            for hook in (manager.hook.register_backends, manager.hook.register_communicators)
            for implementation in hook.get_hookimpls()
        ]
        if not implementations:
            raise Failure(
                PluginError,
                f"expected {plugin} to hold register_backends or register_communicators, "
                f"got {show(target)} with neither",
                "mark its hooks with tensorcore.plugin.hookimpl",
            )
        if not versions:
            stamp = getattr(implementations[0].function, "tensorcore_interface", (1, 0))
            _negotiate(plugin, stamp)
            versions.append(stamp)
        manager.hook.register_backends(register=register_backend)
        manager.hook.register_communicators(register=register_communicator)

    try:
        guarded(PluginError, f"expected the hooks of {plugin} to return", author_advice(plugin), call_hooks)
    finally:
        sealed.append(True)
    return backends, communicators, versions[0]


def guarded(error: type[TensorcoreError], expected: str, remedy: str, function: Callable[[], Any]) -> Any:
    """What ``function`` returns; whatever it raises, SystemExit too, becomes a Failure, but for KeyboardInterrupt."""
    try:
        return function()
    except (KeyboardInterrupt, Failure):
        raise
    except BaseException as raised:
        raise Failure(error, f"{expected}, got {_describe(raised)}", remedy) from raised


def show(value: object) -> str:
    """A value for an error message, short, whatever its ``repr`` does."""
    try:
        text = repr(value)
    except Exception:
        text = "an object without repr"
    return f"{_short(text)} ({type(value).__name__})"


def switched_on(variable: str) -> bool:
    """Whether an environment variable is set to anything but nothing or 0."""
    return os.environ.get(variable, "").strip() not in ("", "0")


def trace(message: str, *values: object) -> None:
    """Log one step to stderr where TENSORCORE_TRACE asks for it."""
    if not switched_on("TENSORCORE_TRACE"):
        return
    import logging

    logger = logging.getLogger("tensorcore.plugins")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(relativeCreated)7.0f ms  %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    logger.debug(message, *values)


def _installed() -> list[Plugin]:
    from importlib import metadata

    try:
        return [_from_entry_point(entry) for entry in metadata.entry_points(group=GROUP)]
    except Exception as raised:
        trace("one distribution's metadata is damaged, reading them one by one: %s", _describe(raised))
    found: dict[str, list[Plugin]] = {}
    for distribution in metadata.distributions():
        label = "unknown"
        try:
            label = str(getattr(distribution, "_path", label))
            label = distribution.metadata["Name"] or label
            entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
            found.setdefault(label, [_from_entry_point(entry) for entry in entries])
        except Exception as raised:
            damaged = Plugin(os.path.basename(label), raised, distribution)
            damaged.state = "broken"
            damaged.reason = f"expected readable metadata, got {_describe(raised)}"
            damaged.remedy = f"pip install --force-reinstall {damaged.names[0]}"
            found.setdefault(label, [damaged])
    return [plugin for plugins in found.values() for plugin in plugins]


def _from_entry_point(entry: EntryPoint) -> Plugin:
    distribution = getattr(entry, "dist", None)
    try:
        target = f"{entry.module}:{entry.attr}" if entry.attr else entry.module
        return Plugin(entry.name, target, distribution, entry.extras)
    except AttributeError:  # not of the form module:attribute; the import will say so
        return Plugin(entry.name, entry.value, distribution)


def _resolve(plugin: Plugin) -> object:
    if isinstance(plugin.target, Exception):  # its metadata could not be read
        raise plugin.target
    if not isinstance(plugin.target, str):
        return plugin.target
    from importlib import import_module

    module_name, _, attributes = plugin.target.partition(":")
    module: Any = import_module(module_name)
    # The import system hands out a module that is still running when it is asked from within that module.
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        raise PluginError(
            f"plugin: expected module {module_name} to ask for no device of its own while it is being imported, "
            f"got such a request; ask on first use instead"
        )
    for attribute in filter(None, attributes.split(".")):
        module = getattr(module, attribute)
    return module


def _collectors(
    plugin: Plugin,
    backends: list[Offer],
    communicators: list[Offer],
    versions: list[tuple[int, int]],
    sealed: list[bool],
) -> tuple[RegisterBackend, RegisterCommunicator]:
    def refuse(expected: str, got: str) -> NoReturn:
        raise Failure(PluginError, f"expected {plugin} to register {expected}, got {got}", author_advice(plugin))

    def add(
        offers: list[Offer],
        name: str,
        factory: Callable[..., Any],
        count: Callable[[], int] | None,
        probe: Callable[[], str | None] | None,
        interface: tuple[int, int] | None,
        remedy: str | None,
    ) -> None:
        if sealed:
            raise PluginError(
                f"register: expected a call within the hook, got one for {show(name)} later; make it there"
            )
        if not isinstance(name, str) or not NAME.fullmatch(name):
            refuse("a name of lower-case letters, digits and underscores", show(name))
        if not callable(factory):
            refuse(f"a callable factory for '{name}'", show(factory))
        for what, function in (("count", count), ("probe", probe)):
            if function is not None and not callable(function):
                refuse(f"a callable {what} for '{name}'", show(function))
        if remedy is not None and not isinstance(remedy, str):
            refuse(f"a line of text as the remedy for '{name}'", show(remedy))
        if any(offer.name == name for offer in offers):
            refuse("each name once", f"'{name}' twice")
        if interface is not None:
            _negotiate(plugin, interface)
            versions.append(interface)
        offers.append(Offer(plugin, name, factory, count, probe, remedy))
        trace("%s registers '%s'", plugin, name)

    def register_backend(
        name: str,
        factory: Callable[..., Any],
        *,
        count: Callable[[], int] | None = None,
        probe: Callable[[], str | None] | None = None,
        interface: tuple[int, int] | None = None,
        remedy: str | None = None,
    ) -> None:
        add(backends, name, factory, count, probe, interface, remedy)

    def register_communicator(
        name: str,
        factory: Callable[..., Any],
        *,
        probe: Callable[[], str | None] | None = None,
        interface: tuple[int, int] | None = None,
        remedy: str | None = None,
    ) -> None:
        add(communicators, name, factory, None, probe, interface, remedy)

    return register_backend, register_communicator


def _negotiate(plugin: Plugin, stated: object) -> None:
    if not (isinstance(stated, tuple) and len(stated) == 2 and all(type(part) is int and part >= 0 for part in stated)):
        raise Failure(
            PluginError,
            f"expected {plugin} to state its interface as two integers (major, minor), got {show(stated)}",
            author_advice(plugin),
        )
    if stated[0] == INTERFACE_VERSION[0] and stated[1] <= INTERFACE_VERSION[1]:
        return
    ours, theirs = (".".join(map(str, version)) for version in (INTERFACE_VERSION, stated))
    package = plugin.package
    if stated > INTERFACE_VERSION:
        remedy = "the plugin is newer than tensorcore, type: pip install --upgrade tensorcore"
    elif package:
        remedy = f"the plugin is older than tensorcore, type: pip install --upgrade {package[0]}"
    else:
        remedy = f"the plugin is older than tensorcore, upgrade module {plugin.module}"
    raise Failure(PluginError, f"expected {plugin} to be written for backend interface {ours}, got {theirs}", remedy)


def author_advice(plugin: Plugin | None) -> str:
    """What to do about a plugin that breaks the rules."""
    package = plugin.package if plugin else None
    if package:
        return f"this is an error in the plugin, type: pip install --upgrade {package[0]}, or tell its authors"
    return "this is an error in the plugin, correct it"


def _import_remedy(plugin: Plugin) -> str:
    package = plugin.package
    if package and plugin.extras:
        return f"type: pip install '{package[0]}[{','.join(plugin.extras)}]'"
    if package:
        return f"type: pip install --upgrade {package[0]}"
    return f"see that 'import {plugin.module}' works"


def _describe(raised: BaseException) -> str:
    try:
        text = str(raised)
    except Exception:
        text = "no message"
    return _short(f"{type(raised).__name__}: {text}" if text else type(raised).__name__)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:297]}..."


def given(target: object) -> Plugin:
    """A plugin from what a test names: a module, an object with hooks, or a string."""
    if isinstance(target, str):
        return parse(target)
    return Plugin(str(getattr(target, "__name__", type(target).__name__)), target)


def guarded_part(offer: Offer, part: str, function: Callable[[], Any]) -> Any:
    """One part of an offer (probe, count, factory), run so that whatever it raises names the part."""
    try:
        return guarded(DeviceUnavailable, f"expected the {part} of {offer} to work here", offer.advice, function)
    except Failure as failure:
        if isinstance(
            failure.__cause__, (AttributeError, NameError, TypeError)
        ):  # no library that is missing mends that
            failure.remedy = author_advice(offer.plugin)
        raise


def garbage(offer: Offer, part: str, expected: str, got: str) -> Failure:
    """The failure of a part that answered with something else than it must."""
    return Failure(PluginError, f"expected the {part} of {offer} to {expected}, got {got}", author_advice(offer.plugin))
