"""What a compiled function asks of generators, clocks, files and the system: no replay answers with what was before."""

from __future__ import annotations

import concurrent.futures
import datetime
import functools
import os
import random
import secrets
import threading
import time
import types
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tests.compile.changing import CALLS, by, same_in_eager_and_compiled

# Random numbers of generators


@pytest.mark.parametrize(
    "make",
    [
        lambda r=random.Random: r(0).random,
        lambda: functools.partial(random.Random(0).uniform, 1, 2),
        lambda: lambda g=np.random.default_rng(0): float(g.normal()),  # noqa: B008
        lambda: np.random.default_rng(0).random,
        lambda: np.random.RandomState(0).rand,
        lambda: lambda g=[np.random.PCG64(0)]: g[0].random_raw() % 97,  # noqa: B008
        lambda: lambda s=types.SimpleNamespace(g=np.random.default_rng(0)): int(s.g.integers(100)),  # noqa: B008
    ],
)
def test_generators_of_python_and_numpy_draw_in_each_call(make) -> None:
    """Objects that draw, wherever they are held: the call is not replayed, and says why."""

    def both() -> Any:
        draw = make()
        return by(draw, lambda i: None)

    found = same_in_eager_and_compiled(both)
    assert found.replays == 0
    assert "draws random numbers" in found.reasons[0]


def test_a_generator_of_its_own_is_replayed_where_it_is_seeded() -> None:
    """One that the call makes of a seed gives the same numbers each time; one of no seed gives others."""

    def seeded(x: Any) -> Any:
        order = [1.0, 2.0, 3.0]
        random.Random(3).shuffle(order)
        return x * order[0] * float(np.random.default_rng(1).random())

    assert same_in_eager_and_compiled(lambda: (seeded, lambda i: None)).replays == CALLS - 1
    for draw in (lambda: random.Random().random(), lambda: float(np.random.default_rng().random())):
        call = tc.compile(lambda x, draw=draw: x * draw())
        assert len({call(tc.ones(1, dtype=tc.float64)).item() for _ in range(4)}) == 4


@pytest.mark.parametrize(
    "function, replays",
    [
        (lambda g: tc.rand(2, generator=g), CALLS - 1),
        (lambda g: g.initial_seed(), 0),
        (lambda g: tc.rand(2, generator=g.clone_state()), 0),
        (lambda g: tc.rand(2, generator=tc.Generator()), 0),
        (lambda g: tc.rand(2, generator=tc.Generator().manual_seed(4)), CALLS - 1),
        (lambda g: tc.initial_seed(), 0),
    ],
)
def test_generators_of_tensors(function, replays) -> None:
    """A replay draws from the object that the call was given; its seed, copies of it and new ones are asked for each time."""

    def make() -> Any:
        generator = tc.Generator()
        return (lambda x: x * function(generator)), lambda i: generator.manual_seed(int(i))

    assert same_in_eager_and_compiled(make).replays == replays


# The system


@pytest.mark.parametrize(
    "ask",
    [
        time.time, time.perf_counter_ns, time.monotonic, lambda: datetime.datetime.now().microsecond,
        lambda: os.urandom(1)[0], lambda: secrets.randbelow(10**6), lambda: uuid.uuid1().int % 10**6,
        lambda: os.getcwd() and 1, lambda: tc.seed() % 10**6, lambda: tc.get_num_threads(),
        lambda: random.SystemRandom().random(), lambda: np.geterr()["over"] == "warn",
    ],
)  # fmt: skip
def test_a_call_that_asks_the_system_is_not_replayed(ask) -> None:
    """Clocks, bytes of the system, directories, seeds, threads and NumPy's settings are asked for each time; the account says which."""
    call = tc.compile(lambda x: x * ask())
    for _ in range(3):
        call(tc.ones(1))
    found = call.explain()
    assert (found.traces, found.replays, found.eager) == (1, 0, 2)
    assert "runs eagerly: asks" in found.reasons[0] or "runs eagerly: reads a clock" in found.reasons[0]


def _date(kind: Any = np.datetime64) -> int:
    return int(kind("now", "us").astype(np.int64)) % 1000


@pytest.mark.parametrize(
    "ask",
    [
        lambda: int(np.datetime64("now", "us").astype(np.int64)) % 1000, _date,
        lambda: int(np.array("now", dtype="datetime64[us]").astype(np.int64)) % 1000,
        lambda: int(np.array("now").astype("<M8[us]").astype(np.int64)) % 1000,
    ],
)  # fmt: skip
def test_a_date_of_numpys_is_made_in_each_call(ask) -> None:
    """NumPy's "now" is another one in each call, however the class or the dtype of dates is named; no call of it can be seen."""
    call = tc.compile(lambda x: x * ask())
    for _ in range(3):
        call(tc.ones(1))
    found = call.explain()
    assert (found.traces, found.replays, found.eager) == (1, 0, 2)
    assert "runs eagerly: reads a clock" in found.reasons[0]


def test_what_other_threads_compute_is_computed_in_each_call() -> None:
    """A call that starts a thread, or hands work to one, is not replayed."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:

        def started(x: Any) -> Any:
            found: list[Any] = []
            thread = threading.Thread(target=lambda: found.append(x * 2))
            thread.start()
            thread.join()
            return found[0] + x

        for function in (started, lambda x: pool.submit(lambda: x * 2).result() + x):
            call = tc.compile(function)
            assert [call(tc.full((1,), float(i))).item() for i in range(4)] == [0.0, 3.0, 6.0, 9.0]
            assert call.explain().replays == 0


def test_files_are_read_in_each_call(tmp_path: Path) -> None:
    """What is opened, loaded, or only asked for is what is there now."""
    place = tmp_path / "number"

    def put(i: float) -> None:
        place.write_text(str(i))
        np.save(tmp_path / "array.npy", np.float32(i))
        tc.save(tc.tensor(i), tmp_path / "tensor")

    def opened() -> float:
        with open(place) as found:
            return float(found.read())

    asks = (
        opened, lambda: float(place.read_text()), lambda: float(np.load(tmp_path / "array.npy")),
        lambda: tc.load(tmp_path / "tensor"), lambda: 1 + place.exists(), lambda: np.fromfile(place, np.uint8)[0] * 1.0,
    )  # fmt: skip
    for ask in asks:
        assert same_in_eager_and_compiled(lambda ask=ask: by(ask, put)).replays == 0


def test_the_environment_is_guarded(monkeypatch) -> None:
    """A call that reads a variable is replayed as long as none has changed."""
    monkeypatch.setenv("TESTED", "2")
    for get in (lambda: os.environ["TESTED"], lambda: os.getenv("TESTED"), lambda: os.environ.get("TESTED")):
        call = tc.compile(lambda x, get=get: x * float(get()))
        monkeypatch.setenv("TESTED", "2")
        assert [call(tc.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
        assert call.explain().replays == 1
        monkeypatch.setenv("TESTED", "3")
        assert call(tc.ones(1)).item() == 3.0
