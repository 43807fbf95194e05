"""Devices and transports by name: what is asked for is found, made once, and reported."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tensorcore.backend import registry
from tensorcore.backend.communicator import Communicator
from tensorcore.backend.registry import backends, communicator, communicators, device, plugins, why_not
from tensorcore.errors import ArgumentTypeError, DeviceUnavailable, OutOfMemoryError, PluginError, UnknownDevice
from tensorcore.plugin import INTERFACE_VERSION, Backend, Capabilities, hookimpl, isolated_registry

ROOT = str(Path(__file__).parents[2])


class Toy(Backend):
    """A device of any name; its kind has two."""

    numbered = True

    def __init__(self, name: str, index: int) -> None:
        super().__init__(name, index)


class Offering:
    """A plugin that offers devices named in its construction, with the given options of register."""

    def __init__(self, *names, factory=None, transports=(), **options):
        self.names = names
        self.factory = factory
        self.transports = transports
        self.options = options
        self.made = []

    @hookimpl
    def register_backends(self, register):
        for name in self.names:
            register(name, self.factory or self.maker(name), **self.options)

    @hookimpl
    def register_communicators(self, register):
        for name in self.transports:
            register(name, self.factory, **self.options)

    def maker(self, name):
        def make(index):
            self.made.append((name, index))
            return Toy(name, index)

        return make


def message(raises, call, *arguments, **options):
    """The text of the exception that the call raises."""
    with pytest.raises(raises) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_an_index_alone_is_the_accelerators():
    """``device=1`` means the second device of the first kind whose memory is not the host's."""

    class Far(Toy):
        capabilities = Capabilities(dtypes=("bool", "int64", "float32"))

    with isolated_registry(Offering("toy", factory=lambda index: Far("toy", index))):
        assert device(1) is device("toy", 1)
        assert device(0) is device("toy")


def test_an_index_without_an_accelerator_is_refused():
    """Where every device is the host's, or there is none, an index alone means nothing."""
    with isolated_registry(Offering()):
        assert "none is available" in message(DeviceUnavailable, device, 0)


def test_a_name_gives_index_zero():
    """device("toy") is the backend of index 0."""
    with isolated_registry(Offering("toy")):
        assert str(device("toy")) == "toy:0"


def test_every_spelling_gives_the_same_object():
    """A string, a string with an index, two arguments and the device itself are one object."""
    with isolated_registry(Offering("toy")):
        first = device("toy:1")
        assert device("toy", 1) is first
        assert device(first) is first
        assert device("toy", np.int64(1)) is first
        assert device("toy:0") is device("toy")
        assert device("toy:0") is not first


def test_the_factory_runs_once_per_index():
    """A device is made on first use and never again."""
    plugin = Offering("toy")
    with isolated_registry(plugin):
        for name in ("toy", "toy:1", "toy", "toy:0", "toy:1"):
            device(name)
    assert plugin.made == [("toy", 0), ("toy", 1)]


def test_threads_get_one_object():
    """Eight threads that ask at once for a device that is slow to make get the same one."""
    start = threading.Barrier(8)
    made = []

    def slow(index):
        made.append(index)
        threading.Event().wait(0.05)
        return Toy("toy", index)

    def ask():
        start.wait()
        found.append(device("toy"))

    found: list[Backend] = []
    with isolated_registry(Offering("toy", factory=slow)):
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert made == [0]
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_a_device_pickles_by_name():
    """Unpickling a device finds the object that is there."""
    with isolated_registry(Offering("toy")):
        assert pickle.loads(pickle.dumps(device("toy:1"))) is device("toy:1")


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ("", "name a device, see backends()"),
        ("cuda:", "write 'cuda' or 'cuda:0'"),
        ("cuda:-1", "write 'cuda' or 'cuda:0'"),
        ("cpu:x", "write 'cpu' or 'cpu:0'"),
        (" CPU", "write 'cpu' or 'cpu:0'"),
        ("toy:\u0661", "write 'toy' or 'toy:0'"),
    ],
)
def test_a_bad_string_says_the_form(wrong, advice):
    """A string of another form is refused with the form and the nearest right one."""
    with isolated_registry(Offering("toy")):
        assert message(UnknownDevice, device, wrong) == (
            f"device: expected 'name' or 'name:index' with an index of digits, got {wrong!r}; {advice}"
        )


@pytest.mark.parametrize(
    ("wrong", "shown"), [(3.5, "3.5 (float)"), (None, "None (NoneType)"), (b"toy", "b'toy' (bytes)")]
)
def test_a_wrong_type_is_a_type_error(wrong, shown):
    """Anything but a string or a device is refused with a TypeError."""
    with isolated_registry(Offering("toy")):
        assert message(ArgumentTypeError, device, wrong) == (
            f"device: expected a string 'name' or 'name:index', or a device without an index, got {shown}; "
            f"pass one of these"
        )


def test_two_indexes_are_refused():
    """device("toy:0", 1) is refused, since it names two devices."""
    with isolated_registry(Offering("toy")):
        assert message(UnknownDevice, device, "toy:0", 1) == (
            "device: expected one index, got 'toy:0' and 1; write 'toy:1' or 'toy:0'"
        )


def test_a_device_with_an_index_is_refused():
    """A device has its index already."""
    with isolated_registry(Offering("toy")):
        assert message(ArgumentTypeError, device, device("toy"), 1) == (
            "device: expected a string 'name' or 'name:index', or a device without an index, "
            "got device(type='toy', index=0) (Toy) and 1 (int); pass one of these"
        )


def test_a_negative_index_is_refused():
    """device("toy", -1) is refused."""
    with isolated_registry(Offering("toy")):
        assert message(UnknownDevice, device, "toy", -1) == (
            "device: expected an index of 0 or more, got -1; write 'toy:0'"
        )


@pytest.mark.parametrize(("wrong", "shown"), [(1.0, "1.0 (float)"), (True, "True (bool)"), ("1", "'1' (str)")])
def test_an_index_of_another_type_is_a_type_error(wrong, shown):
    """An index that is no integer is refused with a TypeError."""
    with isolated_registry(Offering("toy")):
        assert message(ArgumentTypeError, device, "toy", wrong) == (
            f"device: expected the index to be an int, got {shown}; pass e.g. 0"
        )


def test_an_index_out_of_range_says_how_many_there_are():
    """count bounds the index."""
    with isolated_registry(Offering("toy", count=lambda: 2)):
        assert device("toy:1").index == 1
        assert message(DeviceUnavailable, device, "toy:5") == (
            "device: expected an index of 'toy' below 2, got 5; this machine has 2 of that kind"
        )


def test_a_backend_class_counts_its_devices():
    """Where register has no count, device_count of the Backend class bounds the index."""

    class Single(Backend):
        def __init__(self, index):
            super().__init__("single", index)

    with isolated_registry(Offering("single", factory=Single)):
        assert message(DeviceUnavailable, device, "single:1") == (
            "device: expected an index of 'single' below 1, got 1; this machine has 1 of that kind"
        )


def test_no_device_of_the_kind_gives_the_line_to_type():
    """A count of 0 is an unavailable device, with the plugin's remedy."""
    with isolated_registry(Offering("toy", count=lambda: 0, remedy="pip install 'toys[all]'")):
        assert message(DeviceUnavailable, device, "toy") == (
            "device: expected 'toy' of plugin 'Offering' (module Offering) to find a device, got 0; "
            "type: pip install 'toys[all]'"
        )


def test_the_probe_speaks_before_the_factory():
    """A probe with a reason keeps the factory from running; its reason and the remedy are in the error."""
    plugin = Offering("toy", probe=lambda: "no driver", remedy="pip install 'toys[all]'")
    with isolated_registry(plugin):
        assert message(DeviceUnavailable, device, "toy") == (
            "device: expected 'toy' of plugin 'Offering' (module Offering) to be usable here, got: no driver; "
            "type: pip install 'toys[all]'"
        )
    assert plugin.made == []


def test_a_probe_may_bring_its_own_advice():
    """What follows a semicolon in its reason stands in the place of the remedy."""
    plugin = Offering("toy", probe=lambda: "the lid is shut; open it", remedy="pip install 'toys[all]'")
    with isolated_registry(plugin), pytest.raises(DeviceUnavailable, match=r"got: the lid is shut; open it$"):
        device("toy")


def test_a_probe_may_change_its_mind():
    """What a probe said is asked again at the next request."""
    answers = ["no driver", None]
    with isolated_registry(Offering("toy", probe=lambda: answers.pop(0))):
        assert why_not("toy") == (
            "expected 'toy' of plugin 'Offering' (module Offering) to be usable here, got: no driver; "
            "see tensorcore doctor"
        )
        assert device("toy").name == "toy"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("gadgte", "did you mean 'gadget'"),
        ("gpu", "a GPU goes by its plugin's name; tensorcore doctor lists those there are"),
        ("float16", "that is a dtype's name: write torch.float16"),
        ("half", "that is a dtype's name: write torch.half"),
    ],
)
def test_an_unknown_name_is_answered_with_what_it_may_have_meant(name, advice):
    """A misspelt name, what other libraries call a GPU, and a dtype's name get the names there are and the likely one."""
    with isolated_registry(Offering("gadget", "gqu")):
        assert message(UnknownDevice, device, name) == (
            f"device: expected one of 'gadget', 'gqu', 'meta', 'null', 'pyref', 'sim', got '{name}'; {advice}"
        )


def test_no_plugin_at_all_says_what_to_do():
    """Without plugins the error says to install one."""
    with isolated_registry() as alone:
        alone._builtins.clear()
        assert message(UnknownDevice, device, "toy") == (
            "device: expected a plugin that offers a device, got 'toy'; "
            "install a plugin that offers 'toy'; tensorcore doctor lists those there are"
        )


def test_backends_lists_what_can_be_used():
    """backends() is the sorted names whose probe is silent and whose count is not 0, and makes no device."""
    good = Offering("toy", "gadget")
    with isolated_registry(good, Offering("sick", probe=lambda: "no driver"), Offering("absent", count=lambda: 0)) as r:
        r._builtins.clear()
        assert backends() == ["gadget", "toy"]
    assert good.made == []


def test_plugins_reports_without_loading():
    """plugins() names what was found; states, versions and devices appear as they become known."""
    plugin = Offering("toy", probe=lambda: "no driver", remedy="apt install toys")
    with isolated_registry(mine=plugin):
        found = plugins()[0]
        assert (found.name, found.state, found.devices) == ("mine", "found", ())
        assert backends() == ["meta"]
        loaded = plugins()[0]
    assert loaded == registry.PluginState(
        name="mine",
        module="Offering",
        distribution=None,
        version=None,
        interface=INTERFACE_VERSION,
        state="loaded",
        reason="expected 'toy' of plugin 'mine' (module Offering) to be usable here, got: no driver",
        remedy="type: apt install toys",
        devices=("toy",),
        communicators=(),
    )


def test_isolated_registries_nest():
    """Each isolated registry has its own devices, and the one around it comes back, after an exception too."""
    with isolated_registry(Offering("toy")):
        outer = device("toy")
        with pytest.raises(ZeroDivisionError), isolated_registry(Offering("toy")):  # noqa: PT012 - the with is the subject
            assert device("toy") is not outer
            raise ZeroDivisionError
        assert device("toy") is outer


def test_a_builtin_is_found_and_cannot_be_taken():
    """A device that tensorcore has itself needs no plugin, and a plugin of that name is not asked."""
    impostor = Offering("inner")
    with isolated_registry(inner=impostor) as isolated:
        isolated.register_builtin("inner", lambda index: Toy("inner", index))
        assert device("inner").name == "inner"
        assert backends()[-1] != ""
        assert "inner" in backends()
    assert impostor.made == []


def test_only_the_plugin_of_that_name_is_loaded():
    """A plugin named as the device is enough; the others are not loaded."""
    with isolated_registry(toy=Offering("toy"), other=Offering("other")):
        device("toy")
        assert {plugin.name: plugin.state for plugin in plugins()} == {"toy": "loaded", "other": "found"}


def test_a_device_of_another_name_than_its_plugin_is_found():
    """Where no plugin has the device's name, all are loaded to find it."""
    with isolated_registry(one=Offering("toy"), two=Offering("gadget")):
        assert device("gadget").name == "gadget"
        assert {plugin.state for plugin in plugins()} == {"loaded"}


def test_a_factory_may_ask_for_another_device():
    """A backend that wraps another one gets it while it is made."""

    class Wrapping(Toy):
        def __init__(self, index):
            super().__init__("wrapped", index)
            self.target = device("toy", index)

    plugin = Offering("wrapped", factory=lambda index: Wrapping(index))
    with isolated_registry(plugin, Offering("toy")):
        assert device("wrapped:1").target is device("toy:1")


def test_out_of_memory_in_a_factory_stays_itself():
    """What a factory raises on purpose reaches the program unchanged."""

    def full(index):
        raise OutOfMemoryError("toy: expected room for 1 byte, got none; free some")

    with isolated_registry(Offering("toy", factory=full)):
        assert message(OutOfMemoryError, device, "toy") == "toy: expected room for 1 byte, got none; free some"


class Wire(Communicator):
    """A transport of one process."""


def test_a_communicator_is_made_each_time():
    """communicator(name, **options) gives a new object of the transport's factory."""
    with isolated_registry(Offering("toy"), Offering(transports=["wire"], factory=Wire)):
        first = communicator("wire", backend=device("toy"), rank=0, size=1)
        assert communicators() == ["wire"]
        assert first is not communicator("wire", backend=device("toy"), rank=0, size=1)
        assert repr(first) == "Wire(rank=0, size=1, device='toy:0')"


def test_an_unknown_transport_is_named():
    """An unknown transport is answered with those there are."""
    with isolated_registry(Offering(transports=["wire"], factory=Wire)):
        assert message(UnknownDevice, communicator, "wires") == (
            "communicator: expected one of 'wire', got 'wires'; did you mean 'wire'"
        )


def test_a_transport_is_probed():
    """A transport whose probe has a reason is not made."""
    plugin = Offering(transports=["wire"], factory=Wire, probe=lambda: "no network", remedy="plug it in")
    with isolated_registry(plugin):
        assert communicators() == []
        assert message(DeviceUnavailable, communicator, "wire", backend=None, rank=0, size=1) == (
            "communicator: expected 'wire' of plugin 'Offering' (module Offering) to be usable here, "
            "got: no network; type: plug it in"
        )


def test_a_transport_that_returns_no_communicator_is_an_error():
    """What a transport's factory returns is checked."""
    with isolated_registry(Offering(transports=["wire"], factory=lambda: "rope")):
        assert message(PluginError, communicator, "wire") == (
            "communicator: expected the factory of 'wire' of plugin 'Offering' (module Offering) to return a "
            "Communicator, got 'rope' (str); this is an error in the plugin, correct it"
        )


def test_the_import_of_the_registry_is_light():
    """Neither pluggy nor the metadata reader nor logging is imported before the first device."""
    code = (
        "import sys; import numpy, ml_dtypes; before = set(sys.modules); import tensorcore.backend.registry; "
        "print(sorted({'pluggy', 'importlib.metadata', 'logging', 'email'} & (set(sys.modules) - before)))"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"


def test_hook_signatures_are_frozen():
    """The hooks' names and arguments are part of the interface: to change them is to break every plugin."""
    import inspect

    from tensorcore.backend import hookspecs

    hooks = {name: hook for name, hook in vars(hookspecs).items() if hasattr(hook, "tensorcore_spec")}
    assert {name: list(inspect.signature(hook).parameters) for name, hook in hooks.items()} == {
        "register_backends": ["register"],
        "register_communicators": ["register"],
    }
    parameters = inspect.signature(hookspecs.RegisterBackend.__call__).parameters
    assert list(parameters) == ["self", "name", "factory", "count", "probe", "interface", "remedy"]


def test_capabilities_print_what_they_say():
    """What a device can do is read at the prompt."""
    text = repr(Capabilities(("int64", "bool"), host=True))
    assert text.startswith("Capabilities(('bool', 'int64'), collectives=False, ")
    assert "host=True" in text
