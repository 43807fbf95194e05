"""Devices and transports by name: who offers them, one object per device, and why one cannot be used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tensorcore.backend.base import Backend
from tensorcore.backend.communicator import Communicator
from tensorcore.backend.discovery import Failure, Offer, Plugin, garbage, given, guarded_part, show, trace
from tensorcore.backend.lookup import conflict, unknown
from tensorcore.backend.plugins import Kind, Plugins, PluginState, state_of
from tensorcore.backend.spelling import parse_device
from tensorcore.backend.turns import Circle, Turns
from tensorcore.backend.watch import arrived
from tensorcore.errors import (
    ArgumentTypeError,
    DeviceUnavailable,
    OutOfMemoryError,
    PluginError,
    TensorcoreError,
)

__all__ = [
    "PluginState", "Registry", "accelerator", "attempt", "backends", "communicator", "communicators", "device",
    "isolated_registry", "kept", "made_devices", "make_current", "own_names", "plugins", "register_builtin",
    "register_wrapper", "why_not",
]  # fmt: skip


class Registry:
    """The plugins, what they offer, and the devices made so far.

    Plugins are those that ``discover`` finds, which it is asked for at the first device, or the given ones.
    A plugin is imported when a device is asked for that has the plugin's name; where no plugin has that name, all
    are. A plugin that is broken stays so silently until a device of its name is asked for, and is then tried again.

    Any thread may ask. Each plugin is loaded by one thread and each device made by one thread at a time, while
    threads that ask for others go on.
    """

    def __init__(self, plugins: list[Plugin] | None = None) -> None:
        self.spellings: dict[str, Backend] = {}  # every string that device() has answered, for its next call
        self.chosen = threading.local()  # by bare name, what it means in this thread, where the thread has said so
        self._turns = Turns()
        self._plugins = Plugins(plugins, self._turns)
        self._builtins: dict[str, Offer] = {}
        self._unlisted: set[str] = set()
        self._devices: dict[tuple[str, int], Backend] = {}
        self._by_thread: set[str] = set()  # bare names that some thread has given a meaning

    def device(self, type: str | Backend, index: int | None = None) -> Backend:
        """The device of that name and index, made on first use; see the function ``device``."""
        if isinstance(type, Backend) and index is None:
            return type
        if isinstance(type, str) and index is None and (wrapper := _wrappers.get(type.partition(":")[0])):
            return wrapper(type.partition(":")[2])
        if index is None and isinstance(type, str) and (chosen := self.chosen.__dict__.get(type)):
            return chosen  # type: ignore[no-any-return]
        key = parse_device(type, index)
        made = self._devices.get(key)
        if made is None:
            with _public("device", f"{key[0]}:{key[1]}"):
                offer = self._find("device", key[0])
                with self._turns.take(key):
                    made = self._devices.get(key)
                    if made is None:
                        made = self._devices[key] = self._make(offer, *key)
                        arrived(made)
        if index is None and isinstance(type, str) and type not in self._by_thread:
            self.spellings[type] = made
        return made

    def make_current(self, made: Backend) -> None:
        """Let the bare name mean this device in this thread; see the function ``make_current``."""
        self._by_thread.add(made.name)
        self.spellings.pop(made.name, None)
        setattr(self.chosen, made.name, made)

    def communicator(self, name: str, **options: Any) -> Communicator:
        """A new communicator of that transport; see the function ``communicator``."""
        if not isinstance(name, str):
            raise ArgumentTypeError(f"communicator: expected a name, got {show(name)}; see communicators()")
        with _public("communicator", name):
            offer = self._find("communicator", name)
            self._check(offer)
            made = self._run_factory(offer, lambda: offer.factory(**options))
            if not isinstance(made, Communicator):
                raise garbage(offer, "factory", "return a Communicator", show(made))
        return made

    def register_builtin(self, name: str, factory: Callable[[int], Backend], listed: bool = True) -> None:
        """Offer a device that tensorcore itself has; see the function ``register_builtin``."""
        self._builtins[name] = Offer(None, name, factory, None, None, None)
        if not listed:
            self._unlisted.add(name)

    def backends(self) -> list[str]:
        """The names of devices that can be used now; see the function ``backends``."""
        self._plugins.load_all()
        names = [name for name in self._names("device") if name not in self._unlisted]
        return [name for name in names if self.why_not(name) is None]

    def communicators(self) -> list[str]:
        """The names of transports that can be used now."""
        self._plugins.load_all()
        return [name for name in self._names("communicator") if self._reason("communicator", name) is None]

    def why_not(self, name: str, kind: Kind = "device") -> str | None:
        """Why what is offered under that name cannot be used, or None where it can; makes no device."""
        return self._reason(kind, name)

    def plugins(self) -> list[PluginState]:
        """What is known of each plugin; imports none."""
        return [state_of(plugin) for plugin in self._plugins.found()]

    def attempt(self, name: str) -> PluginState:
        """Load one plugin; see the function ``attempt``."""
        plugin = next(one for one in self._plugins.found() if state_of(one).name == name)
        self._plugins.load(plugin)
        return state_of(plugin)

    def isolated(self, plugins: list[Plugin]) -> Registry:
        """A registry of these plugins alone, with the builtin devices of this one."""
        other = Registry(plugins)
        other._builtins.update(self._builtins)
        other._unlisted.update(self._unlisted)
        return other

    # Finding who offers a name

    def _find(self, kind: Kind, name: str) -> Offer:
        if kind == "device" and name in self._builtins:
            return self._builtins[name]
        offers, failures = self._plugins.offers(kind, name)
        if len(offers) == 1:
            return offers[0]
        raise conflict(offers) if offers else unknown(kind, name, self._names(kind), self._plugins.found(), failures)

    def _names(self, kind: Kind) -> list[str]:
        names = self._plugins.names(kind)
        return sorted(names | set(self._builtins) if kind == "device" else names)

    # Using what is offered

    def _check(self, offer: Offer) -> int | None:
        """How many devices there are, if known. Raises Failure where the offer cannot be used, and notes why."""
        try:
            self._probe(offer)
            count = self._count(offer)
        except Failure as failure:
            trace("%s: %s", offer, failure.reason)
            if offer.plugin:
                offer.plugin.notes[offer.name] = (failure.reason, failure.remedy)
            raise
        if offer.plugin:
            offer.plugin.notes.pop(offer.name, None)
        return count

    def _probe(self, offer: Offer) -> None:
        if offer.probe is None:
            return
        reason = guarded_part(offer, "probe", offer.probe)
        if isinstance(reason, str):
            reason, _, advice = reason.partition("; ")
            raise Failure(
                DeviceUnavailable, f"expected {offer} to be usable here, got: {reason or 'no reason'}",
                advice or offer.advice,
            )  # fmt: skip
        if reason is not None:
            raise garbage(offer, "probe", "return None or a reason", show(reason))

    def _count(self, offer: Offer) -> int | None:
        count = offer.count
        if count is None and isinstance(offer.factory, type) and issubclass(offer.factory, Backend):
            count = offer.factory.device_count
        if count is None:
            return None
        number = guarded_part(offer, "count", count)
        if type(number) is not int or number < 0:
            raise garbage(offer, "count", "return an integer of 0 or more", show(number))
        if number == 0:
            raise Failure(DeviceUnavailable, f"expected {offer} to find a device, got 0", offer.advice)
        return number

    def _make(self, offer: Offer, name: str, index: int) -> Backend:
        count = self._check(offer)
        if count is not None and index >= count:
            raise Failure(
                DeviceUnavailable,
                f"expected an index of '{name}' below {count}, got {index}",
                f"this machine has {count} of that kind",
            )
        trace("making %s:%d", name, index)
        made = self._run_factory(offer, lambda: offer.factory(index))
        if not isinstance(made, Backend):
            raise garbage(offer, "factory", "return a Backend", show(made))
        # A Backend whose __init__ does not call that of its base has neither.
        named = guarded_part(offer, "factory", lambda: (str(made.name), int(made.index)))
        if named != (name, index):
            raise garbage(offer, "factory", f"return the device '{name}:{index}'", f"'{named[0]}:{named[1]}'")
        return made

    def _run_factory(self, offer: Offer, function: Callable[[], Any]) -> Any:
        def run() -> tuple[Any, TensorcoreError | None]:
            try:
                return function(), None
            except (DeviceUnavailable, OutOfMemoryError) as raised:
                return None, raised

        # What the plugin's author says in so many words, programs may catch: it goes through as it is.
        made, raised = guarded_part(offer, "factory", run)
        if raised is not None:
            raise raised
        return made

    def _reason(self, kind: Kind, name: str) -> str | None:
        try:
            self._check(self._find(kind, name))
        except Failure as failure:
            return f"{failure.reason}; {failure.remedy}"
        except Circle:
            return f"expected '{name}' to be loaded, got a request for it from within its own plugin; ask later"
        return None


# Who remembers devices elsewhere: called at the start of an isolated registry, each answers with what to call at its end.
kept: list[Callable[[], Callable[[], None]]] = []
_wrappers: dict[str, Callable[[str], Backend]] = {}
_process = _current = Registry()


def device(type: str | int | Backend, index: int | None = None) -> Backend:
    """The device ``"name"``, ``"name:index"`` or ``("name", index)``: the backend object itself, always the same one.

    The index is 0 where none is given; a backend object is returned as it is, and an index alone is one of the
    accelerator's. The first call looks for plugins.

    Raises UnknownDevice for a name that no plugin offers or a string of another form, DeviceUnavailable where a
    plugin offers it and it cannot be used here, PluginError for a plugin that breaks the rules, and
    ArgumentTypeError for anything but a string or a backend. What the plugin raised is the ``__cause__``.
    """
    if index is None and type.__class__ is str and (found := _current.spellings.get(type)) is not None:
        return found
    if type.__class__ is int and index is None:
        if (chosen := accelerator()) is None:
            raise DeviceUnavailable(
                f"device: Cannot access accelerator device when none is available, got {type}; name one"
            )
        return _current.device(chosen.name, type)
    return _current.device(type, index)  # type: ignore[arg-type]


def accelerator() -> Backend | None:
    """The first device that plugins offer whose memory is not the host's; None where there is none."""
    for made in map(device, backends()):
        if made.wraps is None and made.capabilities.values and not made.capabilities.host:
            return made
    return None


def make_current(made: Backend) -> None:
    """Let the bare name of a device's kind (``"name"`` without an index) mean this device, in this thread.

    In a thread that never called this it means the device with index 0.
    """
    _current.make_current(made)


def communicator(name: str, **options: Any) -> Communicator:
    """A new communicator of the transport ``name``, which its factory makes from the options. Close it after use.

    Raises as ``device`` does.
    """
    return _current.communicator(name, **options)


def backends() -> list[str]:
    """The names of the devices that can be used now, sorted.

    Imports every plugin that is not blocked, which by their contract brings in their hooks alone, and asks their
    probes and counts; makes no device. What is broken is left out: ``why_not`` and ``plugins`` say why.
    """
    return _current.backends()


def made_devices() -> list[Backend]:
    """The devices that have been asked for in this process so far."""
    return list(_current._devices.values())


def communicators() -> list[str]:
    """The names of the transports that can be used now, sorted; loads and probes as ``backends`` does."""
    return _current.communicators()


def why_not(name: str, kind: Kind = "device") -> str | None:
    """Why the devices of that name cannot be used here and what to do about it, or None where they can.

    Loads the plugin and asks its probe and count; makes no device. ``kind="communicator"`` asks for a transport.
    """
    return _current.why_not(name, kind)


def plugins() -> list[PluginState]:
    """What is known of every plugin. Imports none: call ``backends`` before to have them all tried."""
    return _current.plugins()


def attempt(name: str) -> PluginState:
    """Load the plugin of that name, as ``plugins`` gives it, and no other; what is known of it then."""
    return _current.attempt(name)


def own_names() -> set[str]:
    """The names of devices that come with tensorcore: builtin ones, those that wrap others, and its own plugins'."""
    own = [plugin for plugin in _process._plugins.found() if plugin.package and plugin.package[0] == "tensorcore"]
    return {*_process._builtins, *_wrappers, *[name for plugin in own for name in plugin.names]}


def register_builtin(name: str, factory: Callable[[int], Backend], listed: bool = True) -> None:
    """Offer a device that tensorcore itself has; no plugin can take its name.

    One that is not ``listed`` is found by its name and left out of ``backends``: it is there for tests.
    """
    _process.register_builtin(name, factory, listed)


def register_wrapper(name: str, factory: Callable[[str], Backend]) -> None:
    """Offer devices that wrap others: ``factory`` gets what follows the colon in ``"name:other"``, or nothing."""
    _wrappers[name] = factory


@contextmanager
def isolated_registry(*plugins: object, **named: object) -> Iterator[Registry]:
    """For tests: within the ``with`` block these plugins are the only ones, and no device has been made.

    A plugin is a module, an object with hooks, or a string: ``"module"``, ``"module:attribute"`` or
    ``"name=module"``. A keyword is the plugin's name, as that of its entry point would be. Neither installed plugins
    nor the environment play a part; tensorcore's builtin devices are there. The registry of the process, in
    every thread, is replaced and comes back at the end.
    """
    global _current
    chosen = [given(plugin) for plugin in plugins]
    for name, target in named.items():
        plugin = given(target)
        plugin.names = (name,)
        chosen.append(plugin)
    before, _current = _current, _process.isolated(chosen)
    restores = [keep() for keep in kept]
    try:
        yield _current
    finally:
        _current = before
        for restore in restores:
            restore()


register_builtin("meta", lambda index: import_module("tensorcore.backend.meta").MetaBackend(index))


@contextmanager
def _public(op: str, name: str) -> Iterator[None]:
    """Turn what goes wrong inside the registry into the errors that callers know."""
    try:
        yield
    except Failure as failure:
        failure.raise_for(op)
    except Circle:
        raise PluginError(
            f"{op}: expected '{name}' to be made without itself, got a request for it from within its own plugin; "
            f"ask for it on first use instead"
        ) from None
