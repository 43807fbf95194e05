"""What is known of a plugin, as programs see it."""

from __future__ import annotations

from typing import NamedTuple

from tensorcore.backend.discovery import Plugin

__all__ = ["PluginState", "state_of"]


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
