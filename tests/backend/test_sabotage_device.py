"""Plugins whose factories, probes and counts raise or answer with garbage."""

from __future__ import annotations

import sys

import pytest

from tensorcore.backend.registry import backends, device, isolated_registry, why_not
from tensorcore.errors import ArgumentError, DeviceUnavailable, PluginError
from tensorcore.plugin import Backend, Capabilities
from tests.backend.sabotage import failure, offering


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
            "got AttributeError: 'Forgetful' object has no attribute 'name'; this is an error in the plugin, correct it"
        )


def test_a_method_that_was_not_written_is_named():
    """A bare Backend says which method it lacks, whose class it is, and what to derive from."""
    with isolated_registry(bare=offering("bare", lambda index: Backend("bare", index))):
        for method, call in (
            ("allocate", lambda one: one.allocate((2,), None)),
            ("to_host", lambda one: one.to_host(None)),
        ):
            text = str(failure(NotImplementedError, call, device("bare")))
            assert text.startswith(f"{method}: expected Backend to have a method of this name, got none; write it, or ")


def test_a_misspelt_dtype_is_refused():
    """Capabilities name the first dtype that there is not, and those that there are."""
    text = str(failure(ArgumentError, Capabilities, ("float32", "flot64")))
    assert text.startswith("Capabilities: expected names of dtypes, got 'flot64'; pass some of bfloat16, bool, ")


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
            "got RuntimeError: device busy; see tensorcore doctor"
        )
        assert str(raised.__cause__) == "device busy"
        assert device("moody").name == "moody"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"probe": lambda: 1 / 0},
            "expected the probe of 'bad' of plugin 'bad' (module Offering) to work here, "
            "got ZeroDivisionError: division by zero; see tensorcore doctor",
        ),
        (
            {"probe": lambda: sys.exit(1)},
            "expected the probe of 'bad' of plugin 'bad' (module Offering) to work here, "
            "got SystemExit: 1; see tensorcore doctor",
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
