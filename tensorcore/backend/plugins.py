"""The plugins of a registry: found once, each imported when it is first needed, by one thread, and what is known of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tensorcore.backend.discovery import Failure, Offer, Plugin, discover, load, switched_on, trace
from tensorcore.backend.turns import Circle, Turns
from tensorcore.errors import PluginError

__all__ = ["Kind", "PluginState", "Plugins", "state_of"]

Kind = Literal["device", "communicator"]


class Plugins:
    """Those that ``discover`` finds, which it is asked for at the first question, or the given ones.

    ``turns`` are shared with whoever calls factories, so that a plugin that waits for itself is told.
    """

    def __init__(self, given: list[Plugin] | None, turns: Turns) -> None:
        self._found = given
        self._strict = False
        self._turns = turns

    def found(self) -> list[Plugin]:
        """All of them; imports none, unless TENSORCORE_STRICT asks for it."""
        if self._found is None:
            with self._turns.take("discovery"):
                if self._found is None:
                    self._strict = switched_on("TENSORCORE_STRICT")
                    self._found = discover()
        if self._strict:
            try:
                with self._turns.take("strict"):
                    if self._strict:
                        self._load_strictly(self._found)
                        self._strict = False
            except Circle:  # a plugin asks for a device while it is being loaded here
                pass
        return self._found

    def names(self, kind: Kind) -> set[str]:
        """What those that are loaded offer."""
        return {offer.name for plugin in self.found() for offer in _offered(plugin, kind)}

    def offers(self, kind: Kind, name: str) -> tuple[list[Offer], list[Failure]]:
        """What is offered under that name, and what failed on the way there.

        Loads the plugin of that name, a broken one again; where none of that name offers it, all. Raises the Failure of
        the one that is broken where nothing else has its name.
        """
        plugins = self.found()
        named = [plugin for plugin in plugins if name in plugin.names]
        failures = [failure for plugin in named if (failure := self.load(plugin, again=True))]
        offers = _offers(named, kind, name)
        if not offers and failures:
            raise failures[0]
        if not offers and not (offers := _offers(plugins, kind, name)):
            failures = self.load_all()
            offers = _offers(plugins, kind, name)
        return offers, failures

    def load_all(self) -> list[Failure]:
        """Load all that were not tried yet; what failed."""
        failures = []
        for plugin in self.found():
            try:
                failure = self.load(plugin)
            except Circle:
                continue
            if failure:
                failures.append(failure)
        return failures

    def load(self, plugin: Plugin, again: bool = False) -> Failure | None:
        """Load a plugin unless that is done; its failure, if it was tried now. ``again`` tries a broken one."""
        tried = ("loaded", "blocked") if again else ("loaded", "blocked", "broken")
        if plugin.state in tried:
            return None
        with self._turns.take(plugin):
            if plugin.state in tried:
                return None
            try:
                backends, communicators, plugin.interface = load(plugin)
            except Failure as failure:
                plugin.state, plugin.reason, plugin.remedy = "broken", failure.reason, failure.remedy
                trace("broken: %s", failure.reason)
                return failure
            plugin.backends = tuple(backends)
            plugin.communicators = tuple(communicators)
            plugin.state, plugin.reason, plugin.remedy = "loaded", None, None
            trace("loaded: %s", plugin)
            return None

    def _load_strictly(self, plugins: list[Plugin]) -> None:
        failures = [failure for plugin in plugins if (failure := self.load(plugin, again=True))]
        broken = [f"{plugin.reason}; {plugin.remedy}" for plugin in plugins if plugin.state == "broken"]
        if broken:
            raise PluginError(
                f"TENSORCORE_STRICT: expected every plugin to load, got {len(broken)} broken: {'; '.join(broken)}"
            ) from failures[0].__cause__


class PluginState(NamedTuple):
    """What is known of one plugin.

    ``state`` is ``found`` (not asked for yet, so not imported), ``loaded``, ``broken`` or ``blocked``.
    ``reason`` says why it, or one of its devices, could not be used when last asked for, and ``remedy`` what to do.
    """

    name: str
    module: str
    distribution: str | None
    version: str | None
    interface: tuple[int, int] | None
    state: str
    reason: str | None
    remedy: str | None
    devices: tuple[str, ...]
    communicators: tuple[str, ...]


def state_of(plugin: Plugin) -> PluginState:
    """The record of one plugin as it is now."""
    package = plugin.package or (None, None)
    return PluginState(
        name=", ".join(plugin.names),
        module=plugin.module,
        distribution=package[0],
        version=package[1],
        interface=plugin.interface,
        state=plugin.state,
        reason="; ".join(reason for reason, _ in plugin.notes.values()) or plugin.reason,
        remedy="; ".join(remedy for _, remedy in plugin.notes.values()) or plugin.remedy,
        devices=tuple(offer.name for offer in plugin.backends),
        communicators=tuple(offer.name for offer in plugin.communicators),
    )


def _offers(plugins: list[Plugin], kind: Kind, name: str) -> list[Offer]:
    return [offer for plugin in plugins for offer in _offered(plugin, kind) if offer.name == name]


def _offered(plugin: Plugin, kind: Kind) -> tuple[Offer, ...]:
    return plugin.backends if kind == "device" else plugin.communicators
