"""Plugins that fail, hang or ask for themselves while they are imported: each fails alone, with a reason."""

from __future__ import annotations

import importlib
import sys
import threading
import time

import pytest

from tensorcore.backend.discovery import Plugin
from tensorcore.backend.registry import Registry, communicator, device, isolated_registry, plugins
from tensorcore.errors import DeviceUnavailable, PluginError
from tensorcore.plugin import INTERFACE_VERSION, Backend, hookimpl
from tests.backend.sabotage import GOOD, failure, offering


def test_an_installed_plugin_is_found(site):
    """An entry point is all it takes; the report has the package, its version and the interface."""
    site.install("good", GOOD.format(name="good"), version="2.5")
    registry = Registry()
    assert registry.device("good").name == "good"
    state = registry.plugins()[0]
    assert (state.distribution, state.version, state.module, state.interface) == (
        "good",
        "2.5",
        "good",
        INTERFACE_VERSION,
    )


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


def test_metadata_is_read_once():
    """However often a program asks for a device in vain, the metadata that the error names is read once."""
    read = []

    class Installed:
        @property
        def metadata(self):
            read.append(self)
            return {"Name": "bad", "Version": "1.0"}

    plugin = Plugin("bad", "bad", Installed())
    assert {str(plugin) for _ in range(3)} == {"plugin 'bad' (package bad 1.0)"}
    assert len(read) == 1


def test_a_broken_transport_plugin_is_isolated_like_a_device(site):
    """A transport whose plugin cannot be imported is unavailable with the reason."""
    site.install("wire", "import no_such_library")
    with isolated_registry("wire"):
        assert str(failure(DeviceUnavailable, communicator, "wire")) == (
            "communicator: expected plugin 'wire' (module wire) to import, got ModuleNotFoundError: "
            "No module named 'no_such_library'; see that 'import wire' works"
        )
        assert plugins()[0].state == "broken"
