"""The devices of examples/backends: what their certificates say holds, and all of them live in one process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tensorcore as tc
from tensorcore.plugin import isolated_registry

ROOT = Path(__file__).parent.parent.parent
LIBRARIES = {"torch": "torch", "jax": "jax", "opencl": "pyopencl"}  # the device, and the library it needs
LEVELS = {"torch": "silver", "jax": "silver", "opencl": "silver"}  # what the certificates of each promise


def folder(name: str) -> Path:
    """Where a device's distribution is."""
    return ROOT / "examples" / "backends" / f"{name}_device"


@contextmanager
def offered(*names: str) -> Iterator[Any]:
    """Within the block the devices exist, beside the CPU; the test is skipped where one cannot be used.

    Gives the device of the first name.
    """
    examples = [name.partition(":")[0] for name in names if name in LIBRARIES]
    for name in examples:
        pytest.importorskip(LIBRARIES[name])
    if not examples:
        yield tc.device(names[0])
        return
    path = [*sys.path]
    sys.path[:0] = [str(folder(name)) for name in examples]
    try:
        with isolated_registry(cpu="tensorcore_cpu", **{name: f"tensorcore_{name}" for name in examples}):
            try:
                devices = [tc.backend.registry.device(name) for name in names]
            except tc.errors.DeviceUnavailable as reason:  # OpenCL's compilers do not know every processor
                pytest.skip(str(reason))
            yield devices[0]
    finally:
        sys.path[:] = path


def check(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``tensorcore check`` of one of the devices, in a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins"), str(folder(name))]),
        "TENSORCORE_PLUGINS": f"tensorcore_cpu,{name}=tensorcore_{name}",
    }
    command = [sys.executable, "-m", "tensorcore", "check", name, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def certificate(name: str) -> dict[str, Any]:
    """What ``make certificates`` wrote beside a device."""
    return json.loads((folder(name) / "certificate.json").read_text("utf-8"))


@pytest.mark.parametrize("name", LIBRARIES)
def test_its_certificate_says_what_it_promises(name: str) -> None:
    """A whole run held the level, with nothing that passes undeclared, and is of the interface and the ops of today."""
    found = certificate(name)
    levels = ("bronze", "silver")[: ("bronze", "silver").index(LEVELS[name]) + 1]
    assert found["whole"]
    assert found["failures"] == {}
    assert {level: found["levels"][level]["verdict"] for level in levels} == dict.fromkeys(levels, "held")
    assert found["interface"] == list(tc.plugin.INTERFACE_VERSION)
    assert found["xfail"] == {}


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_readme_says_the_same(name: str) -> None:
    """Its table of devices names the level that the certificate says."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert re.search(rf"^\| `{name}` \| [^|]*; holds {LEVELS[name]} \|", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_it_holds_bronze(name: str) -> None:
    """The suite's first level passes today, with the kernels that are missing on the CPU."""
    with offered(name):
        pass  # or the test is skipped
    done = check(name, "--level", "bronze")
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_part_of_silver_passes_today(name: str) -> None:
    """Every op of some families in one dtype, with derivatives and refusals; ``make certificates`` runs all of them."""
    with offered(name):
        pass  # or the test is skipped
    done = check(name, "-k", "(float32 or gradient or error or in_place) and (norm or index or scatter or pool)")
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_where_the_library_is_missing_the_probe_says_what_to_type(monkeypatch) -> None:
    """The device is offered, and refused with the line that installs its library."""
    monkeypatch.syspath_prepend(folder("jax"))
    monkeypatch.setattr("tensorcore_jax.find_spec", lambda name: None)
    with (
        isolated_registry(jax="tensorcore_jax"),
        pytest.raises(tc.errors.DeviceUnavailable, match="type: pip install jax"),
    ):
        tc.device("jax")


def test_tensors_move_among_all_of_them() -> None:
    """In one process, from device to device and back, the values stay."""
    found = [name for name, library in LIBRARIES.items() if find_spec(library)]
    if not found:
        pytest.skip("none of the libraries is installed")
    with offered(*found):
        x = start = tc.arange(6, dtype=tc.float32).reshape(2, 3).t()
        for name in ["cpu", *found, "sim:0", "pyref", *reversed(found), "sim:1"]:
            x = x.to(name)
            assert x.device is tc.device(name)
            assert x.tolist() == start.tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize(
    "source, target", [("torch", "jax"), ("jax", "torch"), ("cpu", "jax"), ("torch", "cpu"), ("cpu", "torch")]
)
def test_memory_is_exchanged_through_dlpack(source: str, target: str, dtype: str) -> None:
    """A transposed view arrives on the device that was asked for, from the library's own array too."""
    with offered(*[name for name in (source, target) if name in LIBRARIES]):
        x = tc.arange(6).reshape(2, 3).to(getattr(tc, dtype)).to(source).t()
        found = tc.from_dlpack(x, device=target)
        assert found.device is tc.device(target)
        assert (found.dtype, found.tolist()) == (x.dtype, x.tolist())


def test_devices_of_one_memory_share_it() -> None:
    """What is written on the one is seen on the other, and PyTorch sees it too; JAX, whose arrays never change, copies."""
    with offered("torch", "jax"):
        import torch

        x = tc.zeros(3, device="torch")
        shared = tc.from_dlpack(x, device="cpu")
        shared += 1
        assert x.tolist() == [1, 1, 1]
        assert torch.from_dlpack(x).tolist() == [1, 1, 1]
        copied = tc.from_dlpack(x, device="jax")
        x += 1
        assert copied.tolist() == [1, 1, 1]
        with pytest.raises(BufferError, match="permission to copy"):
            tc.from_dlpack(x, device="jax", copy=False)
