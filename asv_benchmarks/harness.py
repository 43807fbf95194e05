"""Times one piece of user code on two libraries, turn by turn in one process.

The code of a row is text. It is compiled once for each peer with ``torch`` bound to that library and ``device`` to the
device, so both sides run the same program and no call stands between the loop and what is timed.
"""

from __future__ import annotations

import abc
import contextlib
import importlib
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorcore

from .limits import Limit, Work

__all__ = [
    "PEERS", "Comparison", "Peer", "Row", "Setups", "Suite", "Timed", "compare", "find_peers", "in_fresh_process", "open_peer", "prepare",
    "threads", "versions",
]  # fmt: skip

LIBRARIES = ("tensorcore", "torch", "numpy", "jax")

# OpenBLAS and OpenMP threads spin for a while after their work and would take a core from the other side's turn.
# A pause of this length outlasts them; one thread has nothing that spins.
SPIN_SECONDS = 0.05
LAYOUTS = 3
LONG = 1e-3  # seconds of a body from which on one layout is enough: its arrays do not fit the first cache anyhow
PATIENCE = 3.0  # seconds for all turns of one row, about; three turns are taken at least


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ``setup`` runs once, ``body`` is timed. ``target`` is the ratio promised beside PyTorch, None where none is.
    ``numpy_setup`` binds the same names to NumPy arrays, where the body means the same to NumPy and to JAX. ``group`` is
    the heading that the row stands under. A ``large`` row is also measured with PyTorch on huge pages. ``work`` is what no
    library can do without, where that is known: the table measures how long the machine takes for it.
    """

    name: str
    setup: str
    body: str
    target: float | None = None
    numpy_setup: str | None = None
    threads: tuple[int, ...] = (1,)
    group: str = ""
    large: bool = False
    work: Work | None = None


@dataclass(frozen=True)
class Peer:
    """A library, and the device it runs on."""

    name: str
    module: ModuleType
    device: str

    def settle(self, last: Any = None) -> None:
        """Return when the device has finished what was started on it; ``last`` is what the last run gave."""
        library = self.module.__name__
        if library == "jax":
            self.module.block_until_ready(last)
        elif library == "torch" and self.device != "cpu":
            self.module.cuda.synchronize(self.device)
        elif library == "tensorcore":
            self.module.device(self.device).synchronize()


class Timed:
    """The body of a row, ready to run on one peer, with the names that its setup made."""

    def __init__(self, setup: str, body: str, peer: Peer, names: dict[str, Any] | None = None) -> None:
        self.names = made(setup, peer) if names is None else names
        # JAX computes later, and only the result can be waited for. Elsewhere none is kept: it would hold a block of memory.
        kept = "last = " if peer.module.__name__ == "jax" and _is_expression(body) else ""
        loop = f"def loop(turns):\n    last = None\n    for _ in turns:\n        {kept}{body}\n    return last\n"
        exec(compile(loop, f"<{body}>", "exec"), self.names)
        self.loop: Callable[[range], Any] = self.names["loop"]
        self.settle = peer.settle

    def run(self, loops: int) -> None:
        """Run the body and wait until the device has finished."""
        self.settle(self.loop(range(loops)))

    def seconds(self, loops: int, clock: Callable[[], float] = time.perf_counter) -> float:
        """Seconds that ``loops`` runs take; the cyclic collector stays on, as it is for users."""
        self.settle()
        start = clock()
        self.settle(self.loop(range(loops)))
        return clock() - start


@dataclass(frozen=True)
class Comparison:
    """Medians over the rounds, in seconds, bytes or counts, their ratio, and the range of the ratios of single rounds.

    ``limit`` is what the machine needs for the row's work, None where that is not known: the lower quartile, so that what slows
    the machine for a while excuses no row. ``rounds`` has what each round found: of ours, of the peer, and limits.
    """

    ours: float
    peer: float
    ratio: float
    lowest: float
    highest: float
    limit: float | None = None
    rounds: tuple[Sequence[float], ...] = field(default=((), (), ()), compare=False, repr=False)

    @classmethod
    def of(cls, ours: Sequence[float], peer: Sequence[float], limits: Sequence[float] = ()) -> Comparison:
        """From what each round found on both sides. Nothing beside nothing is a ratio of 1."""
        ratios = [_quotient(a, b) for a, b in zip(ours, peer, strict=True)]
        a, b = statistics.median(ours), statistics.median(peer)
        limit = sorted(limits)[len(limits) // 4] if limits else None
        return cls(a, b, _quotient(a, b), min(ratios), max(ratios), limit, (ours, peer, limits))

    def after(self, earlier: Sequence[Sequence[float]]) -> Comparison:
        """Over the rounds of an earlier comparison and of this one."""
        return Comparison.of(*([*a, *b] for a, b in zip(earlier, self.rounds, strict=True)))


def _quotient(a: float, b: float) -> float:
    return a / b if b else 1.0 if a == b else float("inf")


def _is_expression(body: str) -> bool:
    try:
        compile(body, "<body>", "eval")
    except SyntaxError:
        return False
    return True


class Setups:
    """The names that setups made, kept while the rows that follow have the same setup."""

    def __init__(self) -> None:
        self._setup = ""
        self._made: dict[tuple[str, int], dict[str, Any]] = {}

    def names(self, setup: str, peer: Peer, layout: int) -> dict[str, Any]:
        """What the setup made on that peer; each ``layout`` has arrays of its own."""
        if setup != self._setup:
            self._made.clear()
            self._setup = setup
        key = peer.name, layout
        if key not in self._made:
            self._made[key] = made(setup, peer)
        return self._made[key]


def made(setup: str, peer: Peer) -> dict[str, Any]:
    """The names of a setup that has run on a peer."""
    names: dict[str, Any] = {"torch": peer.module, "numpy": peer.module, "device": peer.device}
    if peer.module.__name__ == "jax":
        names["numpy"] = importlib.import_module("numpy")
    exec(setup, names)
    if peer.module.__name__ == "jax":
        array = names["numpy"].ndarray
        names.update({name: peer.module.numpy.asarray(v) for name, v in names.items() if isinstance(v, array)})
    return names


def find_peers() -> list[str]:
    """Every device of the registry that computes, and the other libraries that are installed: what asv runs a row on.

    The variable ASV_PEERS names others, such as ``tensorcore:cuda:0 torch:cuda:0``.
    """
    if asked := os.environ.get("ASV_PEERS"):
        return asked.split()
    devices = [f"tensorcore:{name}" for name in tensorcore.backends() if _computes(name)]
    return [*devices, *[name for name in LIBRARIES[1:] if importlib.util.find_spec(name)]]


def _computes(device: str) -> bool:
    try:
        return bool(tensorcore.ones(1, device=device).item() == 1)
    except (RuntimeError, NotImplementedError):  # such as "meta", which has shapes alone
        return False


PEERS = find_peers()


def open_peer(name: str) -> Peer:
    """The peer called ``library`` or ``library:device``, for example ``tensorcore:cuda:0``; imports it."""
    library, _, device = name.partition(":")
    if library not in LIBRARIES:
        raise ValueError(f"open_peer: expected one of {', '.join(LIBRARIES)}, got {name!r}; write library:device")
    return Peer(name, importlib.import_module(library), device or "cpu")


def prepare(row: Row, peer: Peer, setups: Setups | None = None, layout: int = 0) -> Timed:
    """The row's body on a peer; NotImplementedError, which asv shows as n/a, where the peer has no such row."""
    library, setup = peer.module.__name__, row.setup
    if library in ("numpy", "jax"):
        if row.numpy_setup is None:
            raise NotImplementedError(f"{row.name}: has no {'NumPy' if library == 'numpy' else 'JAX'} form")
        setup = row.numpy_setup
    timed = Timed(setup, row.body, peer, setups.names(setup, peer, layout) if setups else None)
    if library == "jax":
        try:
            timed.run(1)
        except TypeError as error:  # its arrays cannot be written to
            raise NotImplementedError(f"{row.name}: has no JAX form: {error}") from None
    return timed


def calibrate(timed: Timed, seconds: float) -> int:
    """How many runs take about ``seconds``; what is compiled, cached or grown on first use happens before, and is not counted."""
    timed.seconds(1)
    loops = 1
    while (taken := timed.seconds(loops)) < seconds / 2:
        loops *= 2 if taken > seconds / 20 else 10
    return max(1, round(loops * seconds / taken))


def compare(
    row: Row,
    ours: Peer,
    peer: Peer,
    *,
    rounds: int = 15,
    seconds: float = 0.02,
    pause: float = 0.0,
    setups: Setups | None = None,
    count: int = 1,
) -> Comparison:
    """Both sides in turns, ``rounds`` times or as often as PATIENCE allows: what slows the machine for a while slows both.

    Before each turn the machine takes one of its own, where its limit for the row on ``count`` threads can be had.

    The arrays are made anew LAYOUTS times, elsewhere in memory each time: addresses that collide in the cache may have once
    made an 8x8 product 2.7 times slower than itself.
    """
    setups = setups or Setups()
    limit, limits = limit_of(row, ours, count), []
    taken: list[list[float]] = [[], []]
    for layout in range(LAYOUTS):
        sides = [(timed := prepare(row, side, setups, layout), calibrate(timed, seconds)) for side in (ours, peer)]
        warm = [timed.seconds(1) for timed, _ in sides]
        turns = [timed.seconds(loops) for timed, loops in sides]
        long = max(turn / loops for turn, (_, loops) in zip(turns, sides, strict=True)) > LONG
        patient = max(3, min(rounds, int(PATIENCE / sum(turns + warm))))
        for _ in range(patient if long else max(1, patient // LAYOUTS)):
            for (timed, loops), results in zip(sides, taken, strict=True):
                if pause:
                    time.sleep(pause)
                if limit:
                    limits.append(limit.seconds())
                timed.seconds(1)  # what ran meanwhile left nothing of this side's in the caches
                results.append(timed.seconds(loops) / loops)
        if long:
            break
    return Comparison.of(*taken, limits)


def limit_of(row: Row, ours: Peer, count: int) -> Limit | None:
    """What measures the machine's limit for a row; None for other devices, for unknown work, and without a C compiler."""
    if not row.work or not any(row.work[:4]) or ours.device != "cpu":
        return None
    try:
        return Limit(row.work, count)
    except NotImplementedError:
        return None


class Suite(abc.ABC):
    """What asv runs of a list of rows: seconds of ``count`` runs of each on each peer, the device's work included.

    asv knows a row by its name: a text that does something else wants another name.
    """

    count = 1
    params: tuple[list[str], list[str]]
    param_names = ("row", "peer")
    timed: Timed

    def __init_subclass__(cls) -> None:
        cls.params = ([row.name for row in cls.rows], PEERS)

    @property
    @abc.abstractmethod
    def rows(self) -> list[Row]:
        """The rows, in the table's order."""

    def setup(self, row: str, peer: str) -> None:
        self.timed = prepare(next(one for one in self.rows if one.name == row), open_peer(peer))

    def time_rows(self, row: str, peer: str) -> None:
        self.timed.run(self.count)


if "asv_runner" in sys.modules:
    # asv forks a process for each row from one that has imported the suites: what is loaded here is loaded once.
    for _name in PEERS:
        open_peer(_name)


@contextlib.contextmanager
def threads(count: int) -> Iterator[float]:
    """Give every library ``count`` threads; the value is the pause that a turn needs before it."""
    from threadpoolctl import threadpool_limits

    setters = [
        (module.set_num_threads, module.get_num_threads())
        for name in ("torch", "tensorcore")
        if (module := sys.modules.get(name)) is not None and hasattr(module, "set_num_threads")
    ]
    with threadpool_limits(count):
        for set_num_threads, _ in setters:
            set_num_threads(count)
        try:
            yield SPIN_SECONDS if count > 1 else 0.0
        finally:
            for set_num_threads, before in setters:
                set_num_threads(before)


def in_fresh_process(code: str, *arguments: str, **variables: str) -> str:
    """What a new interpreter prints that runs ``code``; it imports the same tensorcore as this one, wherever it is run.

    asv measures a commit that is installed, next to a checkout of another one.
    """
    own = next(
        (path for path in sys.path if path and Path(path, "tensorcore") in Path(tensorcore.__file__).parents), ""
    )
    found = [own, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    path = os.pathsep.join(str(Path(one).absolute()) for one in found if one and not one.endswith("site-packages"))
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, **variables},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"benchmark: expected a program that ends well, got {done.stderr.strip()[-500:]}")
    return done.stdout


def versions() -> dict[str, str]:
    """What a number depends on: versions of the libraries that are loaded, the processor, its cores."""
    loaded = {
        name: str(getattr(sys.modules[name], "__version__", "of unknown version"))
        for name in LIBRARIES
        if name in sys.modules
    }
    return {
        "python": platform.python_version(),
        **loaded,
        **({"products": str(tensorcore.device("cpu").report()["blas"])} if "tensorcore" in loaded else {}),
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
