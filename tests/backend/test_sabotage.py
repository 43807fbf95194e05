"""Plugins that do everything wrong: each fails alone, loudly where it was asked for, silently elsewhere."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tensorcore.backend.registry import Registry, backends, communicator, device, isolated_registry, plugins, why_not
from tensorcore.errors import DeviceUnavailable, PluginError, UnknownDevice
from tensorcore.plugin import Backend, hookimpl

ROOT = str(Path(__file__).parents[2])

GOOD = """
from tensorcore.plugin import Backend, hookimpl

class Good(Backend):
    def __init__(self, index):
        super().__init__("{name}", index)

@hookimpl
def register_backends(register):
    register("{name}", Good)
"""


class Site:
    """A folder on sys.path with installed distributions, the only ones that discovery sees."""

    def __init__(self, path):
        self.path = path
        self.modules = []

    def install(self, name, source, *, version="1.0", entries=None):
        """Install distribution ``name`` with one module, which its entry points name."""
        module = name.replace("-", "_")
        self.modules.append(module)
        (self.path / f"{module}.py").write_text(textwrap.dedent(source))
        metadata = self.path / f"{module}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = (entries or "{name} = {module}").format(name=name, module=module)
        (metadata / "entry_points.txt").write_text(f"[tensorcore]\n{lines}\n")

    def run(self, code, **environment):
        """The finished process of a program that sees this folder."""
        variables = {key: value for key, value in os.environ.items() if not key.startswith("TENSORCORE_")}
        variables |= {"PYTHONPATH": os.pathsep.join([str(self.path), ROOT]), **environment}
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env=variables, cwd=self.path, capture_output=True, text=True
        )


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A Site of its own for each test; its modules are forgotten afterwards."""
    for variable in ("PLUGINS", "BLOCK", "STRICT", "TRACE"):
        monkeypatch.delenv(f"TENSORCORE_{variable}", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    distributions = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: distributions(path=[str(tmp_path)]))
    found = Site(tmp_path)
    yield found
    for module in found.modules:
        sys.modules.pop(module, None)


def failure(raises, call, *arguments):
    """The exception that the call raises."""
    with pytest.raises(raises) as caught:
        call(*arguments)
    return caught.value


def test_an_installed_plugin_is_found(site):
    """An entry point is all it takes; the report has the package, its version and the interface."""
    site.install("good", GOOD.format(name="good"), version="2.5")
    registry = Registry()
    assert registry.device("good").name == "good"
    state = registry.plugins()[0]
    assert (state.distribution, state.version, state.module, state.interface) == ("good", "2.5", "good", (1, 0))


def test_a_missing_dependency_is_named_with_the_line_to_type(site):
    """ImportError: the error names the package and the extra to install, and keeps the cause."""
    site.install("bad", "import no_such_library", entries="{name} = {module} [cuda13]")
    raised = failure(DeviceUnavailable, Registry().device, "bad")
    assert str(raised) == (
        "device: expected plugin 'bad' (package bad 1.0) to import, got ModuleNotFoundError: "
        "No module named 'no_such_library'; type: pip install 'bad[cuda13]'"
    )
    assert isinstance(raised.__cause__, ModuleNotFoundError)
    assert raised.__cause__.__traceback__ is not None


@pytest.mark.parametrize(
    ("source", "got"),
    [
        ("raise ImportError('broken wheel')", "ImportError: broken wheel"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import sys; sys.exit()", "SystemExit"),
        ("class Odd(BaseException): pass\nraise Odd('odd')", "Odd: odd"),
        ("def broken(:", "SyntaxError: invalid syntax (bad.py, line 1)"),
        ("class Mute(Exception):\n    def __str__(self): 1 / 0\nraise Mute", "Mute: no message"),
    ],
)
def test_whatever_an_import_raises_is_reported(site, source, got):
    """Any exception at import makes the device unavailable, with the exception in the message."""
    site.install("bad", source)
    assert str(failure(DeviceUnavailable, Registry().device, "bad")) == (
        f"device: expected plugin 'bad' (package bad 1.0) to import, got {got}; type: pip install --upgrade bad"
    )


@pytest.mark.parametrize("source", ["raise SystemExit(3)", "1 / 0", "import no_such_library"])
def test_a_broken_plugin_touches_no_other(site, source):
    """A good device beside a broken plugin works, is listed alone, and the reason is kept for the report."""
    site.install("abad", source)
    site.install("good", GOOD.format(name="good"))
    registry = Registry()
    assert registry.backends() == ["good"]
    assert registry.device("good").name == "good"
    assert [state.state for state in registry.plugins()] == ["broken", "loaded"]
    assert registry.plugins()[0].reason.startswith("expected plugin 'abad' (package abad 1.0) to import, got ")


def test_keyboard_interrupt_passes_through(site):
    """Ctrl-C while a plugin is imported interrupts the program and leaves the plugin to be tried again."""
    site.install("slow", "raise KeyboardInterrupt")
    registry = Registry()
    failure(KeyboardInterrupt, registry.device, "slow")
    assert registry.plugins()[0].state == "found"
    (site.path / "slow.py").write_text(GOOD.format(name="slow") + "\n# now complete")
    importlib.invalidate_caches()
    assert registry.device("slow").name == "slow"


def test_a_plugin_that_was_mended_works_without_a_restart(site):
    """A broken plugin that is asked for is tried again."""
    site.install("bad", "import no_such_library")
    registry = Registry()
    failure(DeviceUnavailable, registry.device, "bad")
    (site.path / "bad.py").write_text(GOOD.format(name="bad"))
    importlib.invalidate_caches()
    assert registry.device("bad").name == "bad"
    assert registry.plugins()[0].reason is None


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
    assert "PluginValidationError" in str(raised) and "registry" in str(raised)


def test_a_half_registration_is_rolled_back(site):
    """A hook that raises after its first registration leaves nothing behind."""
    source = GOOD.format(name="half") + "    raise RuntimeError('half-way')\n"
    site.install("bad", source)
    registry = Registry()
    assert registry.backends() == []
    assert registry.plugins()[0].devices == ()
    assert str(failure(UnknownDevice, registry.device, "half")) == (
        "device: expected a plugin that offers a device, got 'half'; it may be one of plugin 'bad' (package bad 1.0), "
        "which is broken: expected the hooks of plugin 'bad' (package bad 1.0) to return, "
        "got RuntimeError: half-way"
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
            "device: expected plugin 'bad' (package bad 1.0) to be written for backend interface 1.0, got 1.3; "
            "the plugin is newer than tensorcore, type: pip install --upgrade tensorcore",
        ),
        (
            "(2, 0)",
            "device: expected plugin 'bad' (package bad 1.0) to be written for backend interface 1.0, got 2.0; "
            "the plugin is newer than tensorcore, type: pip install --upgrade tensorcore",
        ),
        (
            "(0, 9)",
            "device: expected plugin 'bad' (package bad 1.0) to be written for backend interface 1.0, got 0.9; "
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


@pytest.mark.parametrize(
    ("factory", "text"),
    [
        (lambda index: 42, "return a Backend, got 42 (int)"),
        (lambda index: None, "return a Backend, got None (NoneType)"),
        (lambda index: Backend("other", index), "return the device 'bad:0', got 'other:0'"),
        (lambda index: Backend("bad", 7), "return the device 'bad:0', got 'bad:7'"),
    ],
)
def test_garbage_from_a_factory_is_refused(factory, text):
    """A factory has to return the backend that it was asked for."""
    with isolated_registry(bad=offering("bad", factory)):
        assert str(failure(PluginError, device, "bad")) == (
            f"device: expected the factory of 'bad' of plugin 'bad' (module Offering) to {text}; "
            f"this is an error in the plugin, correct it"
        )


def test_a_backend_that_forgot_its_base_is_refused():
    """A Backend without the base's __init__ has no name."""

    class Forgetful(Backend):
        def __init__(self, index):
            pass

    with isolated_registry(bad=offering("bad", Forgetful)):
        assert str(failure(DeviceUnavailable, device, "bad")) == (
            "device: expected the factory of 'bad' of plugin 'bad' (module Offering) to work here, "
            "got AttributeError: 'Forgetful' object has no attribute 'name'; type: tensorcore doctor"
        )


def test_a_factory_that_fails_once_is_asked_again():
    """A factory's exception is not remembered."""
    answers = [RuntimeError("device busy"), None]

    def factory(index):
        answer = answers.pop(0)
        if answer:
            raise answer
        return Backend("moody", index)

    with isolated_registry(moody=offering("moody", factory)):
        raised = failure(DeviceUnavailable, device, "moody")
        assert str(raised) == (
            "device: expected the factory of 'moody' of plugin 'moody' (module Offering) to work here, "
            "got RuntimeError: device busy; type: tensorcore doctor"
        )
        assert str(raised.__cause__) == "device busy"
        assert device("moody").name == "moody"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"probe": lambda: 1 / 0},
            "expected the probe of 'bad' of plugin 'bad' (module Offering) to work here, "
            "got ZeroDivisionError: division by zero; type: tensorcore doctor",
        ),
        (
            {"probe": lambda: sys.exit(1)},
            "expected the probe of 'bad' of plugin 'bad' (module Offering) to work here, "
            "got SystemExit: 1; type: tensorcore doctor",
        ),
        (
            {"probe": lambda: True},
            "expected the probe of 'bad' of plugin 'bad' (module Offering) to return None or a reason, "
            "got True (bool); this is an error in the plugin, correct it",
        ),
        (
            {"count": lambda: "two"},
            "expected the count of 'bad' of plugin 'bad' (module Offering) to return an integer of 0 or more, "
            "got 'two' (str); this is an error in the plugin, correct it",
        ),
        (
            {"count": lambda: -1},
            "expected the count of 'bad' of plugin 'bad' (module Offering) to return an integer of 0 or more, "
            "got -1 (int); this is an error in the plugin, correct it",
        ),
    ],
)
def test_a_broken_probe_or_count_makes_the_device_unusable(options, text):
    """Probes and counts that raise or return garbage are reported, and other devices are listed."""
    good = offering("good", lambda index: Backend("good", index))
    with isolated_registry(bad=offering("bad", print, **options), good=good):
        assert why_not("bad") == text
        assert "good" in backends()
        assert "bad" not in backends()


def test_an_unavailable_device_in_a_probe_does_not_break_the_list():
    """A probe that raises our own exception is a broken probe too."""

    def probe():
        raise DeviceUnavailable("bad: expected a driver, got none; install it")

    good = offering("good", lambda index: Backend("good", index))
    with isolated_registry(bad=offering("bad", print, probe=probe), good=good):
        assert "good" in backends()


def test_a_plugin_that_asks_for_its_own_device_at_import_is_told(site):
    """A circular import is an error, not a deadlock, and the plugin can be tried again."""
    site.install("loop", "import tensorcore.backend.registry as r\nr.device('loop')\n" + GOOD.format(name="loop"))
    with isolated_registry("loop"):
        assert str(failure(DeviceUnavailable, device, "loop")) == (
            "device: expected plugin 'loop' (module loop) to import, got PluginError: device: expected 'loop:0' to be "
            "made without itself, got a request for it from within its own plugin; ask for it on first use instead; "
            "see that 'import loop' works"
        )


def test_a_module_that_asks_for_its_device_while_a_program_imports_it_is_told(site):
    """The same where the program imported the plugin's module itself."""
    source = "import tensorcore.backend.registry as r\nwhy = r.why_not('loop')\n" + GOOD.format(name="loop")
    site.install("loop", source)
    with isolated_registry("loop"):
        import loop

        assert "expected module loop to ask for no device of its own while it is being imported" in loop.why
        assert device("loop").name == "loop"


def test_a_plugin_may_import_tensorcore_and_use_other_devices_at_import(site):
    """Only a circle is refused."""
    site.install("good", GOOD.format(name="good"))
    site.install("user", "from tensorcore.backend.registry import device\ndevice('good')\n" + GOOD.format(name="user"))
    with isolated_registry("user", "good"):
        assert device("user").name == "user"


def test_a_plugin_may_look_for_devices_that_nobody_has(site):
    """A search through all plugins that starts within one of them passes over that one."""
    source = "from tensorcore.backend.registry import backends\nseen = backends()\n" + GOOD.format(name="curious")
    site.install("curious", source)
    site.install("good", GOOD.format(name="good"))
    with isolated_registry("curious", "good"):
        assert device("curious").name == "curious"
        assert "good" in sys.modules["curious"].seen


def test_two_plugins_that_need_each_other_do_not_hang():
    """Two threads that load plugins which ask for each other's devices: one is told, none hangs."""
    both = threading.Barrier(2, timeout=10)

    class Needy:
        def __init__(self, mine, other):
            self.mine, self.other, self.first = mine, other, True

        @hookimpl
        def register_backends(self, register):
            register(self.mine, lambda index: Backend(self.mine, index))
            if self.first:
                self.first = False
                both.wait()
                device(self.other)

    def ask(name):
        try:
            results.append(device(name).name)
        except (PluginError, DeviceUnavailable) as raised:
            results.append(type(raised).__name__)

    results: list[str] = []
    with isolated_registry(a=Needy("a", "b"), b=Needy("b", "a")):
        threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert len(results) == 2
    assert "PluginError" in results


def test_a_slow_plugin_slows_only_those_who_ask_for_it():
    """While one thread loads a slow plugin another gets its own device."""
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        @hookimpl
        def register_backends(self, register):
            entered.set()
            leave.wait(10)
            register("slow", lambda index: Backend("slow", index))

    good = offering("good", lambda index: Backend("good", index))
    with isolated_registry(slow=Slow(), good=good):
        thread = threading.Thread(target=device, args=("slow",))
        thread.start()
        assert entered.wait(10)
        assert device("good").name == "good"
        assert thread.is_alive()
        leave.set()
        thread.join(10)
        assert device("slow").name == "slow"


def test_a_plugin_that_takes_three_seconds_is_not_imported_for_another_device(site):
    """Only the plugin that was asked for is imported."""
    site.install("aslow", "import time\ntime.sleep(3)\n" + GOOD.format(name="aslow"))
    site.install("good", GOOD.format(name="good"))
    start = time.perf_counter()
    Registry().device("good")
    assert time.perf_counter() - start < 1.5
    assert "aslow" not in sys.modules


def test_damaged_metadata_of_one_package_touches_no_other(site):
    """An entry_points.txt that cannot be read is reported, and the other packages are found."""
    site.install("bad", "")
    (site.path / "bad-1.0.dist-info" / "entry_points.txt").write_bytes(b"[tensorcore]\n\xff\xfe = bad\n")
    site.install("good", GOOD.format(name="good"))
    registry = Registry()
    assert registry.device("good").name == "good"
    states = {state.name: state for state in registry.plugins()}
    assert states["bad"].state == "broken"
    assert states["bad"].reason.startswith("expected readable metadata, got UnicodeDecodeError: ")
    assert states["bad"].remedy == "pip install --force-reinstall bad"


def test_a_package_without_metadata_still_loads(site):
    """A half-removed installation without METADATA is named by its module."""
    site.install("bad", "1 / 0")
    (site.path / "bad-1.0.dist-info" / "METADATA").unlink()
    assert str(failure(DeviceUnavailable, Registry().device, "bad")) == (
        "device: expected plugin 'bad' (module bad) to import, got ZeroDivisionError: division by zero; "
        "see that 'import bad' works"
    )


def test_plugins_variable_replaces_discovery(site, monkeypatch):
    """TENSORCORE_PLUGINS names modules, with the device's name before an equals sign if wanted."""
    site.install("installed", GOOD.format(name="installed"))
    site.install("extra", GOOD.format(name="extra"))
    monkeypatch.setenv("TENSORCORE_PLUGINS", "extra, other=no_such_module")
    registry = Registry()
    assert registry.device("extra").name == "extra"
    assert [(state.name, state.module) for state in registry.plugins()] == [
        ("extra", "extra"),
        ("other", "no_such_module"),
    ]
    assert str(failure(DeviceUnavailable, registry.device, "other")) == (
        "device: expected plugin 'other' (module no_such_module) to import, got ModuleNotFoundError: "
        "No module named 'no_such_module'; see that 'import no_such_module' works"
    )


def test_a_blocked_plugin_is_not_imported(site, monkeypatch):
    """TENSORCORE_BLOCK keeps a plugin out, and says so to who asks for it."""
    site.install("bad", "raise SystemExit")
    monkeypatch.setenv("TENSORCORE_BLOCK", "other,bad")
    registry = Registry()
    assert str(failure(DeviceUnavailable, registry.device, "bad")) == (
        "device: expected plugin 'bad' (package bad 1.0) to be allowed, got TENSORCORE_BLOCK names 'bad'; "
        "take 'bad' out of TENSORCORE_BLOCK"
    )
    assert registry.plugins()[0].state == "blocked"
    assert "bad" not in sys.modules


def test_strict_raises_for_any_broken_plugin(site, monkeypatch):
    """TENSORCORE_STRICT=1 makes the first device fail where any plugin is broken, each time until it is mended."""
    site.install("bad", "1 / 0")
    site.install("good", GOOD.format(name="good"))
    monkeypatch.setenv("TENSORCORE_STRICT", "1")
    registry = Registry()
    for _ in range(2):
        raised = failure(PluginError, registry.device, "good")
        assert str(raised) == (
            "TENSORCORE_STRICT: expected every plugin to load, got 1 broken: expected plugin 'bad' (package bad 1.0) "
            "to import, got ZeroDivisionError: division by zero; type: pip install --upgrade bad"
        )
        assert isinstance(raised.__cause__, ZeroDivisionError)
    (site.path / "bad.py").write_text(GOOD.format(name="bad"))
    importlib.invalidate_caches()
    assert registry.device("good").name == "good"


def test_trace_logs_each_step_to_stderr(site):
    """TENSORCORE_TRACE=1 writes what was found, imported, registered and made; without it stderr stays empty."""
    site.install("good", GOOD.format(name="good"))
    code = "from tensorcore.backend.registry import device; device('good')"
    done = site.run(code, TENSORCORE_TRACE="1")
    assert done.returncode == 0, done.stderr
    for step in (
        "found: plugin 'good' (package good 1.0)",
        "importing plugin 'good' (package good 1.0)",
        "plugin 'good' (package good 1.0) registers 'good'",
        "making good:0",
    ):
        assert f"tensorcore.plugins: {step}\n" in done.stderr
    assert site.run(code).stderr == ""


def test_ten_broken_plugins_leave_the_good_one_alone(site):
    """With ten broken plugins installed the good one works, none of them is imported, and nothing is printed."""
    broken = [
        "raise SystemExit(1)",
        "import no_such_library",
        "1 / 0",
        "x = (",
        "raise BaseException('odd')",
        "",
        "INTERFACE = (9, 0)\n" + GOOD.format(name="nine"),
        "INTERFACE = 'old'\n" + GOOD.format(name="old"),
        "from tensorcore.backend.registry import device\ndevice('bad8')",
        GOOD.format(name="good") + "    raise RuntimeError('half')",
    ]
    for number, source in enumerate(broken):
        site.install(f"bad{number}", source)
    site.install("good", GOOD.format(name="good"))
    done = site.run(
        """
        import sys
        from tensorcore.backend.registry import backends, device, plugins
        print(device("good"), sorted(name for name in sys.modules if name.startswith("bad")))
        print("good" in backends(), "nine" in backends())
        print(sorted(state.name for state in plugins() if state.name.startswith("bad") and state.state == "broken"))
        """
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "good []",
        "True False",
        "['bad0', 'bad1', 'bad2', 'bad3', 'bad4', 'bad5', 'bad6', 'bad7', 'bad8', 'bad9']",
    ]


def test_importing_tensorcore_does_not_discover(site):
    """The import of the registry and of the plugin kit reads no metadata and imports no plugin."""
    site.install("bad", "raise SystemExit(1)")
    done = site.run(
        """
        import sys
        import tensorcore.backend.registry
        import tensorcore.plugin
        print("bad" in sys.modules, tensorcore.backend.registry._process._plugins)
        """,
        TENSORCORE_STRICT="1",
    )
    assert done.stderr == ""
    assert done.stdout == "False None\n"


def test_a_broken_transport_plugin_is_isolated_like_a_device(site):
    """A transport whose plugin cannot be imported is unavailable with the reason."""
    site.install("wire", "import no_such_library")
    with isolated_registry("wire"):
        assert str(failure(DeviceUnavailable, communicator, "wire")) == (
            "communicator: expected plugin 'wire' (module wire) to import, got ModuleNotFoundError: "
            "No module named 'no_such_library'; see that 'import wire' works"
        )
        assert plugins()[0].state == "broken"


def offering(name, factory, **options):
    """A plugin object that registers one device."""

    class Offering:
        @hookimpl
        def register_backends(self, register):
            register(name, factory, **options)

    return Offering()
