"""What is said of a name that several plugins offer, or none."""

from __future__ import annotations

from tensorcore.backend.discovery import Failure, Offer, Plugin
from tensorcore.dtypes import ALL
from tensorcore.errors import DeviceUnavailable, PluginError, UnknownDevice

__all__ = ["conflict", "unknown"]

_DTYPES = {*(one.name for one in ALL), "half", "float", "double", "short", "int", "long"}


def conflict(offers: list[Offer]) -> Failure:
    """Several plugins that offer one name."""
    claimants = [offer.plugin for offer in offers if offer.plugin]
    block = [other.identity for other in claimants]
    if len(set(block)) < len(block):  # one package's fault: only its modules tell them apart
        block = [other.module for other in claimants]
    failure = Failure(
        PluginError,
        f"expected one plugin to offer '{offers[0].name}', got {len(claimants)}: " + " and ".join(map(str, claimants)),
        f"uninstall all but one, or set TENSORCORE_BLOCK={','.join(block[1:])}",
    )
    for claimant in claimants:
        claimant.notes[offers[0].name] = (failure.reason, failure.remedy)
    return failure


def unknown(kind: str, name: str, known: list[str], plugins: list[Plugin], failures: list[Failure]) -> Failure:
    """A name that nobody offers, with what it may have meant."""
    import difflib  # 0.6 ms that only a wrong name costs

    for plugin in plugins:
        if plugin.state == "blocked" and name in plugin.names:
            return Failure(
                DeviceUnavailable, f"expected {plugin} to be allowed, got {plugin.reason}", f"{plugin.remedy}"
            )
    expected = f"one of {', '.join(map(repr, known))}" if known else f"a plugin that offers a {kind}"
    if kind == "device" and name in _DTYPES:
        advice = [f"that is a dtype's name: write torch.{name}"]
    elif kind == "device" and name == "gpu":  # near to "cpu", and never meant as that
        advice = ["a GPU goes by its plugin's name; tensorcore doctor lists those there are"]
    else:
        advice = [f"did you mean '{close}'" for close in difflib.get_close_matches(name.lower(), known, 1)]
    advice += [
        f"{plugin} has that name and offers none of it: tell its authors to register '{name}'"
        for plugin in plugins
        if plugin.state == "loaded" and name in plugin.names and name not in _registered(plugin)
    ]
    broken = [plugin for plugin in plugins if plugin.state == "broken"]
    if len(broken) > 1:  # their reasons would be a page
        names = ", ".join([f"'{plugin.names[0]}'" for plugin in broken])
        advice.append(f"it may be one of the plugins {names}, which are broken: tensorcore doctor says why")
    advice += [
        f"it may be one of {plugin}, which is broken: {plugin.reason}" + (f"; {plugin.remedy}" if plugin.remedy else "")
        for plugin in broken[: len(broken) == 1]
    ]
    failure = Failure(
        UnknownDevice,
        f"expected {expected}, got '{name}'",
        "; ".join(advice) or f"install a plugin that offers '{name}'; tensorcore doctor lists those there are",
    )
    failure.__cause__ = failures[0].__cause__ if failures else None
    return failure


def _registered(plugin: Plugin) -> set[str]:
    return {offer.name for offer in (*plugin.backends, *plugin.communicators)}
