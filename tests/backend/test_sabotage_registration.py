"""Plugins with wrong hooks, registrations, names and interface versions: refused whole, and no other with them."""

from __future__ import annotations

import pytest

from tensorcore.backend.registry import Registry, backends, isolated_registry
from tensorcore.errors import DeviceUnavailable, PluginError, UnknownDevice
from tensorcore.plugin import hookimpl
from tests.backend.sabotage import GOOD, failure


@pytest.mark.parametrize(
    ("source", "entries", "got"),
    [
        ("", "bad = bad", "<module 'bad' from '{path}'> (module)"),
        ("thing = 42", "bad = bad:thing", "42 (int)"),
        ("thing = None", "bad = bad:thing", "None (NoneType)"),
        ("thing = 'text'", "bad = bad:thing", "'text' (str)"),
    ],
)
def test_a_target_without_hooks_is_refused(site, source, entries, got):
    """An entry point that leads to something without hooks is an error in the plugin."""
    site.install("bad", source, entries=entries)
    shown = got.format(path=site.path / "bad.py")
    assert str(failure(PluginError, Registry().device, "bad")) == (
        f"device: expected plugin 'bad' (package bad 1.0) to hold register_backends or register_communicators, "
        f"got {shown} with neither; mark its hooks with tensorcore.plugin.hookimpl"
    )


@pytest.mark.parametrize("target", ["bad:missing", "no_such_module", "not a module", "bad:"])
def test_an_entry_point_that_leads_nowhere_is_refused(site, target):
    """An entry point with a wrong module or attribute makes that device unavailable and no other."""
    site.install("bad", "", entries=f"bad = {target}")
    site.install("good", GOOD.format(name="good"))
    registry = Registry()
    failure((DeviceUnavailable, PluginError), registry.device, "bad")
    assert registry.backends() == ["good"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("register(3, print)", "a name of lower-case letters, digits and underscores, got 3 (int)"),
        ("register('Bad:0', print)", "a name of lower-case letters, digits and underscores, got 'Bad:0' (str)"),
        ("register('bad', None)", "a callable factory for 'bad', got None (NoneType)"),
        ("register('bad', print, count=2)", "a callable count for 'bad', got 2 (int)"),
        ("register('bad', print, probe='no')", "a callable probe for 'bad', got 'no' (str)"),
        ("register('bad', print, remedy=1)", "a line of text as the remedy for 'bad', got 1 (int)"),
        ("register('bad', print); register('bad', print)", "each name once, got 'bad' twice"),
    ],
)
def test_a_wrong_registration_is_refused(site, call, expected):
    """What is registered is checked: names, factories, counts, probes, remedies."""
    site.install("bad", f"from tensorcore.plugin import hookimpl\n@hookimpl\ndef register_backends(register): {call}")
    assert str(failure(PluginError, Registry().device, "bad")) == (
        f"device: expected plugin 'bad' (package bad 1.0) to register {expected}; "
        f"this is an error in the plugin, type: pip install --upgrade bad, or tell its authors"
    )


def test_a_hook_of_an_unknown_name_is_refused(site):
    """A misspelt hook would never run, so it is an error."""
    site.install("bad", "from tensorcore.plugin import hookimpl\n@hookimpl\ndef register_backend(register): pass")
    raised = failure(PluginError, Registry().device, "bad")
    assert "PluginValidationError: unknown hook 'register_backend'" in str(raised)


def test_a_hook_with_other_arguments_is_refused(site):
    """A hook that asks for an argument that it is not given is an error."""
    site.install("bad", "from tensorcore.plugin import hookimpl\n@hookimpl\ndef register_backends(registry): pass")
    raised = failure(PluginError, Registry().device, "bad")
    assert "PluginValidationError" in str(raised)
    assert "registry" in str(raised)


def test_a_half_registration_is_rolled_back(site):
    """A hook that raises after its first registration leaves nothing behind."""
    source = GOOD.format(name="torn") + "    raise RuntimeError('half-way')\n"
    site.install("bad", source)
    registry = Registry()
    assert registry.backends() == []
    assert registry.plugins()[0].devices == ()
    assert str(failure(UnknownDevice, registry.device, "torn")) == (
        "device: expected a plugin that offers a device, got 'torn'; it may be one of plugin 'bad' (package bad 1.0), "
        "which is broken: expected the hooks of plugin 'bad' (package bad 1.0) to return, "
        "got RuntimeError: half-way; this is an error in the plugin, type: pip install --upgrade bad, or tell its authors"
    )


def test_several_broken_plugins_make_one_sentence(site):
    """An unknown name lists them without their reasons, which the doctor has."""
    for name in ("one", "two"):
        site.install(name, "1 / 0")
    assert str(failure(UnknownDevice, Registry().device, "far")) == (
        "device: expected a plugin that offers a device, got 'far'; "
        "it may be one of the plugins 'one', 'two', which are broken: tensorcore doctor says why"
    )


def test_a_plugin_that_offers_another_name_is_named(site):
    """An entry point whose module registers a device of another name says whose mistake it is."""
    site.install("near", GOOD.format(name="good"))
    said = str(failure(UnknownDevice, Registry().device, "near"))
    assert said.endswith(
        "plugin 'near' (package near 1.0) has that name and offers none of it: tell its authors to register 'near'"
    )


def test_a_broken_transport_takes_its_plugin_along(site):
    """Backends that were registered are rolled back where the second hook raises."""
    site.install("bad", GOOD.format(name="bad") + "@hookimpl\ndef register_communicators(register): 1 / 0\n")
    raised = failure(PluginError, Registry().device, "bad")
    assert isinstance(raised.__cause__, ZeroDivisionError)


def test_a_registration_after_the_hook_is_refused():
    """register is of no use once the hook has returned."""
    kept = []

    class Late:
        @hookimpl
        def register_backends(self, register):
            kept.append(register)

    with isolated_registry(Late()):
        assert backends() == ["meta"]
        assert str(failure(PluginError, kept[0], "late", print)) == (
            "register: expected a call within the hook, got one for 'late' (str) later; make it there"
        )


def test_two_packages_of_one_entry_point_name_are_both_named(site):
    """Two packages that claim a device are an error that names both, only when that device is asked for."""
    site.install("one", GOOD.format(name="dup"), entries="dup = one")
    site.install("two", GOOD.format(name="dup"), entries="dup = two", version="2.0")
    site.install("good", GOOD.format(name="good"))
    registry = Registry()
    assert registry.device("good").name == "good"
    assert str(failure(PluginError, registry.device, "dup")) == (
        "device: expected one plugin to offer 'dup', got 2: plugin 'dup' (package one 1.0) and "
        "plugin 'dup' (package two 2.0); uninstall all but one, or set TENSORCORE_BLOCK=two"
    )
    assert registry.backends() == ["good"]


def test_a_block_by_package_settles_a_duplicate(site, monkeypatch):
    """TENSORCORE_BLOCK takes a package's name, so one of two claimants can be chosen."""
    site.install("one", GOOD.format(name="dup"), entries="dup = one")
    site.install("package-two", GOOD.format(name="dup"), entries="dup = package_two")
    monkeypatch.setenv("TENSORCORE_BLOCK", "package-two")
    registry = Registry()
    assert type(registry.device("dup")).__module__ == "one"


def test_two_plugins_with_other_names_that_offer_one_device_are_both_named(site):
    """The same where neither plugin has the device's name."""
    site.install("one", GOOD.format(name="dup"))
    site.install("two", GOOD.format(name="dup"))
    assert str(failure(PluginError, Registry().device, "dup")) == (
        "device: expected one plugin to offer 'dup', got 2: plugin 'one' (package one 1.0) and "
        "plugin 'two' (package two 1.0); uninstall all but one, or set TENSORCORE_BLOCK=two"
    )


def test_a_squatter_does_not_take_a_device_from_the_plugin_of_that_name(site):
    """The plugin whose entry point has the device's name owns it, whoever else registers it and is loaded first."""
    site.install("asquatter", GOOD.format(name="owned") + "    register('asquatter', print)\n")
    site.install("owned", GOOD.format(name="owned"))
    registry = Registry()
    registry.backends()
    assert type(registry.device("owned")).__module__ == "owned"


def test_a_broken_claimant_leaves_the_device_to_the_other(site):
    """Of two packages of one name, the one that works is used."""
    site.install("one", "1 / 0", entries="dup = one")
    site.install("two", GOOD.format(name="dup"), entries="dup = two")
    assert type(Registry().device("dup")).__module__ == "two"


def test_one_distribution_may_name_its_devices_one_by_one(site):
    """Several entry points with one module are one plugin, no duplicate."""
    source = """
    from tensorcore.plugin import Backend, hookimpl
    @hookimpl
    def register_backends(register):
        register("left", lambda index: Backend("left", index))
        register("right", lambda index: Backend("right", index))
    """
    site.install("both", source, entries="left = both\nright = both")
    registry = Registry()
    assert registry.device("right").name == "right"
    assert registry.device("left").name == "left"
    assert [(state.name, state.devices) for state in registry.plugins()] == [("left, right", ("left", "right"))]


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        (
            "(1, 3)",
            "device: expected plugin 'bad' (package bad 1.0) to be written for backend interface 1.1, got 1.3; "
            "the plugin is newer than tensorcore, type: pip install --upgrade tensorcore",
        ),
        (
            "(2, 0)",
            "device: expected plugin 'bad' (package bad 1.0) to be written for backend interface 1.1, got 2.0; "
            "the plugin is newer than tensorcore, type: pip install --upgrade tensorcore",
        ),
        (
            "(0, 9)",
            "device: expected plugin 'bad' (package bad 1.0) to be written for backend interface 1.1, got 0.9; "
            "the plugin is older than tensorcore, type: pip install --upgrade bad",
        ),
        (
            "'1.0'",
            "device: expected plugin 'bad' (package bad 1.0) to state its interface as two integers (major, minor), "
            "got '1.0' (str); this is an error in the plugin, type: pip install --upgrade bad, or tell its authors",
        ),
    ],
)
@pytest.mark.parametrize("where", ["module", "register"])
def test_the_interface_version_is_negotiated(site, stated, text, where):
    """A plugin of another major or a newer minor version is refused with the side to upgrade."""
    source = GOOD.format(name="bad")
    if where == "module":
        source += f"INTERFACE = {stated}\n"
    else:
        source = source.replace('register("bad", Good)', f'register("bad", Good, interface={stated})')
    site.install("bad", source)
    assert str(failure(PluginError, Registry().device, "bad")) == text


def test_an_older_minor_version_is_taken(site, monkeypatch):
    """A host of 1.4 takes a plugin of 1.2."""
    monkeypatch.setattr("tensorcore.backend.discovery.INTERFACE_VERSION", (1, 4))
    site.install("good", GOOD.format(name="good") + "INTERFACE = (1, 2)\n")
    registry = Registry()
    assert registry.device("good").name == "good"
    assert registry.plugins()[0].interface == (1, 2)


def test_a_plugin_without_our_marker_counts_as_the_first_version(site, monkeypatch):
    """Hooks marked with pluggy's own marker and no INTERFACE are taken for 1.0, so a host of 2.0 refuses them."""
    source = GOOD.format(name="old").replace("Backend, hookimpl", "Backend")
    site.install("old", "import pluggy\nhookimpl = pluggy.HookimplMarker('tensorcore')\n" + source)
    assert Registry().device("old").name == "old"
    monkeypatch.setattr("tensorcore.backend.discovery.INTERFACE_VERSION", (2, 0))
    assert str(failure(PluginError, Registry().device, "old")) == (
        "device: expected plugin 'old' (package old 1.0) to be written for backend interface 2.0, got 1.0; "
        "the plugin is older than tensorcore, type: pip install --upgrade old"
    )
