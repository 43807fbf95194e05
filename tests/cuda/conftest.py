"""The device ``cuda`` for the tests of this folder: a real one where there is one, else the stand-in."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorcore.ops.placement import Default
from tensorcore.plugin import isolated_registry
from tests.cuda_standin.emulation.compile import compiler

STANDIN = Path(__file__).parent.parent / "cuda_standin"
PLUGINS = Path(__file__).parents[2] / "plugins"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # As text: the parents of eighty thousand paths take two seconds of each test process.
    here = [item for item in items if os.path.dirname(item.path) == os.path.dirname(__file__)]
    if compiler() is None and not real():
        for item in here:
            item.add_marker(pytest.mark.skip(reason="neither a GPU nor a C++ compiler for the stand-in"))
    for item in here:
        if item.get_closest_marker("standin") and real():
            item.add_marker(pytest.mark.skip(reason="asks the stand-in, and this is a GPU"))


def real() -> bool:
    """Whether there is a device behind CuPy."""
    return shutil.which("nvidia-smi") is not None and importlib.util.find_spec("cupy") is not None


@pytest.fixture(scope="session")
def standin_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver library that says how many devices there are."""
    library = tmp_path_factory.mktemp("driver") / "libcuda.so"
    subprocess.run(
        [compiler(), "-x", "c", "-shared", "-fPIC", str(STANDIN / "driver.c"), "-o", str(library)], check=True
    )
    return library


@pytest.fixture(scope="module", autouse=True)
def registry(standin_driver: Path) -> Iterator[Any]:
    """For each file of tests a registry in which only the CPU and CUDA are; two devices on the stand-in."""
    patch = pytest.MonkeyPatch()
    if str(PLUGINS) not in sys.path:
        patch.syspath_prepend(str(PLUGINS))
    if not real():
        patch.setitem(os.environ, "TENSORCORE_CUDA_DRIVER", str(standin_driver))
        patch.setitem(os.environ, "TENSORCORE_STANDIN_DEVICES", "2")
        if "cupy" not in sys.modules:
            sys.path.insert(0, str(STANDIN))
            import cupy  # noqa: F401

            sys.path.remove(str(STANDIN))
        assert "standin" in sys.modules["cupy"].__version__, "another test of this process imported the real CuPy"
        from tensorcore_cuda import probe

        probe._asked.cache_clear()
    # What is the default is kept once it was asked for: each registry's devices are its own.
    patch.setattr(Default, "device", None)
    patch.setattr(Default, "host", "cpu")
    with isolated_registry(cpu="tensorcore_cpu", cuda="tensorcore_cuda") as found:
        yield found
    patch.undo()
    if not real():
        probe._asked.cache_clear()


@pytest.fixture
def place() -> Any:
    """The backend of ``cuda:0``."""
    import tensorcore

    return tensorcore.device("cuda", 0)


@pytest.fixture
def clock() -> Any:
    """The stand-in's counts of waits, launches and copies."""
    from cupy import _timeline

    return _timeline.counts
