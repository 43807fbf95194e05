"""Broken plugins in a whole program: the variables that choose, block and trace them, and what an import touches."""

from __future__ import annotations

import importlib
import subprocess
import sys

from tensorcore.backend.registry import Registry
from tensorcore.errors import DeviceUnavailable, PluginError
from tests.backend.sabotage import GOOD, failure


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
        print("bad" in sys.modules, tensorcore.backend.registry._process._plugins._found)
        """,
        TENSORCORE_STRICT="1",
    )
    assert done.stderr == ""
    assert done.stdout == "False None\n"


def test_an_isolated_registry_leaves_no_default_behind() -> None:
    """Tensors made after the block are on the process's own device, even where the first of all was made within it."""
    program = """
import tensorcore as tc
from tensorcore.plugin import isolated_registry
with isolated_registry(cpu="tensorcore_cpu"):
    assert tc.ones(2).device is tc.device("cpu")
assert tc.ones(2).device is tc.device("cpu")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
