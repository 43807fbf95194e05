"""The stand-in itself: as strict as CuPy, and never wider than it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.standin
STANDIN = Path(__file__).parent.parent / "cuda_standin"


def test_the_recorded_surface_is_that_of_cupy() -> None:
    """Names, parameters and dtypes of ufuncs are those of the CuPy that is installed."""
    versions = [one.version for one in importlib.metadata.distributions() if (one.name or "").startswith("cupy-cuda")]
    if "14.2.0" not in versions:
        pytest.skip(f"the surface is that of CuPy 14.2.0, installed: {versions or 'none'}")
    program = "import json, runpy, sys; found = runpy.run_path(sys.argv[1]); print(json.dumps(found['found']()))"
    environment = {key: one for key, one in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", program, str(STANDIN / "surface.py")],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == json.loads((STANDIN / "surface.json").read_text("utf-8"))


def test_nothing_is_stood_in_for_that_cupy_lacks() -> None:
    """Every public name of the stand-in is one of the recorded surface."""
    import cupy

    surface = json.loads((STANDIN / "surface.json").read_text("utf-8"))
    own = {"annotations", "Any", "numpy", "cuda", "fft", "linalg"}
    assert {name for name in vars(cupy) if not name.startswith("_")} - surface["cupy"].keys() - own == set()
    members = {name for name in vars(cupy.ndarray) if not name.startswith("_")}
    assert members - surface["cupy.ndarray"].keys() == set()
    for kind in ("Stream", "Event", "Device", "MemoryPool"):
        members = {name for name in vars(getattr(cupy.cuda, kind)) if not name.startswith("_")}
        assert members - surface[f"cupy.cuda.{kind}"].keys() == set()
    members = {name for name in vars(cupy.cuda.runtime) if not name.startswith("_")}
    assert members - surface["cupy.cuda.runtime"].keys() - {"annotations", "Any", "timeline"} == set()


@pytest.mark.parametrize(
    "call",
    [
        lambda cupy, x: x + np.ones(3, np.float32),
        lambda cupy, x: np.ones(3, np.float32) * x,
        lambda cupy, x: cupy.where(np.ones(3, bool), x, x),
        lambda cupy, x: np.asarray(x),
        lambda cupy, x: cupy.exp(x, order="C"),
        lambda cupy, x: x.max(initial=0),
        lambda cupy, x: cupy.add.at(x.astype(np.int8), x.astype(np.int64), x.astype(np.int8)),
        lambda cupy, x: cupy.sum(x.astype("bfloat16")),
    ],
)
def test_what_cupy_refuses_is_refused(call) -> None:
    """Host arrays beside device arrays, parameters that CuPy lacks, and dtypes without a kernel raise TypeError."""
    import cupy

    with pytest.raises(TypeError):
        call(cupy, cupy.arange(3, dtype=np.float32))


def test_another_device_is_refused() -> None:
    """Work on a device takes no memory of another."""
    import cupy

    x = cupy.ones(3)
    with cupy.cuda.Device(1), pytest.raises(ValueError, match="Array device must be same"):
        x + 1


def test_results_are_arrays() -> None:
    """Reductions give 0-d arrays, and indices outside wrap around, as on a GPU."""
    import cupy

    x = cupy.arange(3, dtype=np.float32)
    assert type(x.sum()) is cupy.ndarray
    assert x[cupy.array([4])].tolist() == [1]


def test_a_block_may_come_back_while_another_is_looked_for(monkeypatch) -> None:
    """The garbage collector gives blocks back in the middle of a look, which goes on with what there is then."""
    import cupy
    from cupy import _memory

    given = [cupy.zeros(4) for _ in range(3)]
    address, lost = given[0].data.ptr, given[1].data.ptr
    find = _memory._live.get

    def collecting(start: int) -> object:
        if len(given) == 3:
            block = _memory._root(given.pop().data.mem)
            _memory._live.pop(block.ptr)
            block.register()
        return find(start)

    monkeypatch.setattr(_memory._live, "get", collecting)
    assert _memory.block_at(address) is _memory._root(given[0].data.mem)
    assert _memory.block_at(lost) is _memory._root(given[1].data.mem)
    assert len(given) == 2


def test_a_capture_takes_what_cupy_lets_into_one() -> None:
    """CuPy refuses products and copies between host and device there, and goes on; events of it never come."""
    import cupy

    stream, x = cupy.cuda.Stream(non_blocking=True), cupy.ones((2, 2), np.float32)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        for call in (x.get, lambda: x.set(np.zeros((2, 2), np.float32)), lambda: float(x[0, 0])):
            with pytest.raises(RuntimeError, match="stream is capturing"):
                call()
        with pytest.raises(NotImplementedError, match="stream capture"):
            cupy.cuda.cublas.gemmEx(1, 0, 0, 2, 2, 2, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 2, 68, -1)
        event = stream.record()
        assert not event.done
        assert not event.done
        stream.end_capture()


def test_events_and_streams_are_of_a_device() -> None:
    """An event goes into streams of its own device, a stream is used on its own, and the legacy one is the current device's."""
    import cupy

    stream, event = cupy.cuda.Stream(), cupy.cuda.Event()
    with cupy.cuda.Device(1):
        for call in (lambda: event.record(cupy.cuda.Stream.null), stream.use, stream.__enter__):
            with pytest.raises(RuntimeError, match=r"InvalidResourceHandle|does not match"):
                call()
    event.record(cupy.cuda.Stream.null)
