"""What every test can ask for: a seed, each device, and PyTorch as oracle.

Tests marked ``oracle``, and tests that use the fixture ``torch``, run only with ``--oracle``. With it, a missing
PyTorch ends the run at once: a comparison that was asked for is never skipped.
"""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import hypothesis
import numpy as np
import pytest

ORACLE_VERSION = "2.13.0"
SEED = 8

# A slow machine is no failure. In CI every run draws the same examples, so a red build can be run again.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--oracle", action="store_true", help="also run every comparison with PyTorch")
    parser.addoption("--device", action="append", help="run the device tests on this device only, for example cuda:0")


def pytest_configure(config: pytest.Config) -> None:
    from tensorcore.ops import late

    late.import_all()  # the suites that run every op find them in the registry
    if not config.getoption("--oracle"):
        return
    if importlib.util.find_spec("torch") is None:
        raise pytest.UsageError(f"tests: expected PyTorch {ORACLE_VERSION}, got none; `make test ORACLE=1` installs it")
    version = importlib.metadata.version("torch")
    if version.split("+")[0] != ORACLE_VERSION:
        raise pytest.UsageError(
            f"tests: expected PyTorch {ORACLE_VERSION}, got {version}; `make test ORACLE=1` installs it"
        )
    if config.getoption("dist", "no") != "no":
        return  # this process starts those that run the tests
    import torch

    # Two test processes share two cores, and one thread sums in one order.
    torch.set_num_threads(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("oracle")
    if not config.getoption("--oracle"):
        comparisons = [item for item in items if item.get_closest_marker("oracle")]
        config.hook.pytest_deselected(items=comparisons)
        items[:] = [item for item in items if not item.get_closest_marker("oracle")]
    if hasattr(config, "workerinput"):
        # A test of half a minute that begins last leaves the other processes without work. A file's tests stay together, and
        # what they share is made once.
        long = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    """A subclass of Tensor gives all functions of its process another body, so it belongs into the tests that are about it."""
    report = yield
    for one in subclasses(sys.modules["tensorcore"].Tensor) if isinstance(collector, pytest.Module) else ():
        if one.__module__.partition(".")[0] != "tensorcore" and one not in _found:
            _found.add(one)
            file = getattr(sys.modules.get(one.__module__), "__file__", None) or collector.path
            report.outcome = "failed"
            report.longrepr = (
                f"collection: expected no subclass of Tensor outside of tests, whose functions would all listen to it, "
                f"got {one.__qualname__} in {file}; define it in a test that runs in a process of its own"
            )
    return report


_found: set[type] = set()


def subclasses(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def pytest_collection_finish() -> None:
    """Forty thousand tests are no garbage: a collection, which some of them ask for, does not look at them again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)  # behind the end of the file's fixtures
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor at what a file's tests leave for good, as caches and PyTorch: two thousand tests took 27 seconds of a core, and take 18."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        names = metafunc.config.getoption("--device") or registered_devices()
        metafunc.parametrize("device", names, indirect=True)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Any:
    """One device after the other that can hold values; skipped, with the plugin's reason, where it cannot run."""
    import tensorcore

    if request.config.getoption("--device"):
        return tensorcore.device(request.param)  # asked for by name: what is missing must show
    try:
        found = tensorcore.device(request.param)
    except tensorcore.errors.DeviceUnavailable as reason:
        pytest.skip(str(reason))
    if not found.capabilities.values:
        pytest.skip(f"{request.param} keeps shapes and no values")
    return found


@pytest.fixture
def torch() -> ModuleType:
    """PyTorch, whose results are the expected ones."""
    import torch

    torch.backends.opt_einsum.enabled = False  # where it is installed, its errors take the place of PyTorch's own
    return torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test draws the same random numbers, alone or after others."""
    random.seed(SEED)
    np.random.seed(SEED)
    for name in ("tensorcore", "torch"):
        generator = getattr(sys.modules.get(name), "default_generator", None)
        if generator is not None:
            generator.manual_seed(
                SEED
            )  # PyTorch's function keeps a trace of each call for devices that are not there yet


def registered_devices() -> list[str]:
    """The names that plugins and tensorcore registered, in one order in every test process."""
    import tensorcore

    return sorted(tensorcore.backends())
