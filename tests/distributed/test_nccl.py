"""NCCL's communicator against a stand-in of CuPy's module, whose pointers lead to host memory and whose ranks are threads."""

from __future__ import annotations

import ctypes
import re
import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import tensorcore_distributed as plugin
from tensorcore.plugin import Capabilities, CommunicatorError, CommunicatorTimeout, XPBackend
from tensorcore_distributed.communicators.nccl import NcclCommunicator
from tensorcore_distributed.communicators.threads import World


class Card(XPBackend):
    """A device whose memory is not the host's, as far as it says."""

    capabilities = Capabilities(("float32", "float16", "bfloat16", "int64", "bool", "complex64"), host=False)

    def __init__(self) -> None:
        super().__init__(np, "card")


class Control:
    """What mpi4py's communicators are asked for, for ranks that are threads."""

    def __init__(self, size: int) -> None:
        self.size, self.turn, self.local = size, threading.Barrier(size, timeout=120), threading.local()
        self.rows: list = [None] * size
        self.made: dict = {}

    def Get_rank(self) -> int:
        return self.local.rank

    def Get_size(self) -> int:
        return self.size

    def allgather(self, one):
        self.rows[self.local.rank] = one
        self.turn.wait()
        found = list(self.rows)
        self.turn.wait()
        return found

    def bcast(self, one, root):
        return self.allgather(one)[root]

    def Split(self, color, key):
        found = self.allgather((color, key, self.local.rank))
        members = sorted((k, rank) for c, k, rank in found if c == color)
        if self.local.rank == members[0][1]:
            self.made[color] = Control(len(members))
        self.turn.wait()
        made = self.made[color]
        made.local.rank = [rank for _, rank in members].index(self.local.rank)
        return made


TYPES = ["INT8", "CHAR", "UINT8", "INT32", "UINT32", "INT64", "UINT64", "FLOAT16", "FLOAT32", "FLOAT64"]
NUMPY = (np.int8, np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64)
REDUCE = {0: np.add, 1: np.multiply, 2: np.maximum, 3: np.minimum}


class Comm:
    """CuPy's NcclCommunicator: each call is done when all ranks have made it."""

    worlds: dict = {}  # noqa: RUF012

    def __init__(self, size, unique, rank) -> None:
        self.size, self.rank, self.world = size, rank, self.worlds.setdefault(unique, World(size))
        self.number = 0
        self.mail = self.world.mail
        self.aborted = False

    def at(self, pointer, count, kind):
        dtype = np.dtype(NUMPY[kind])
        return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(pointer), dtype)

    def together(self, what, part, act):
        self.number += 1
        pending.append(self.world.meet(self.number, self.rank, what, *part, act).event)

    def allReduce(self, source, target, count, kind, op, stream):
        def act(parts):
            total = REDUCE[op].reduce([a for a, _ in parts])
            for _, out in parts:
                out[...] = total

        self.together(f"allReduce {op}", (self.at(source, count, kind), self.at(target, count, kind)), act)

    def reduceScatter(self, source, target, count, kind, op, stream):
        def act(parts):
            total = REDUCE[op].reduce([a for a, _ in parts]).reshape(self.size, -1)
            for rank, (_, out) in enumerate(parts):
                out[...] = total[rank]

        self.together("reduceScatter", (self.at(source, count * self.size, kind), self.at(target, count, kind)), act)

    def allGather(self, source, target, count, kind, stream):
        def act(parts):
            whole = np.concatenate([a for a, _ in parts])
            for _, out in parts:
                out[...] = whole

        self.together("allGather", (self.at(source, count, kind), self.at(target, count * self.size, kind)), act)

    def broadcast(self, source, target, count, kind, root, stream):
        def act(parts):
            for _, out in parts:
                out[...] = parts[root][0]

        self.together(f"broadcast {root}", (self.at(source, count, kind), self.at(target, count, kind)), act)

    def send(self, source, count, kind, peer, stream):
        self.world.deliver((self.rank, peer, 0), self.at(source, count, kind).copy())

    def recv(self, target, count, kind, peer, stream):
        from tensorcore_distributed.communicators.threads import Slip

        slip = Slip(self.at(target, count, kind))
        self.world.expect((peer, self.rank, 0), slip)
        pending.append(slip.event)

    def check_async_error(self):
        if self.aborted:
            raise RuntimeError("NCCL_ERROR_REMOTE_ERROR")

    def abort(self):
        self.aborted = True

    def destroy(self):
        self.aborted = True


class Pending(threading.local):
    """What a thread's stream waits for."""

    def __init__(self) -> None:
        self.events: list = []

    def append(self, event) -> None:
        self.events.append(event)


pending = Pending()


class Event:
    """Done when all that was in the stream is."""

    def record(self) -> None:
        self.events = list(pending.events)

    @property
    def done(self) -> bool:
        return all(one.is_set() for one in self.events)


NCCL = SimpleNamespace(
    get_unique_id=lambda: ("id", time.time_ns()), NcclCommunicator=Comm, groupStart=lambda: None, groupEnd=lambda: None,
    NCCL_SUM=0, NCCL_PROD=1, NCCL_MAX=2, NCCL_MIN=3, **{f"NCCL_{name}": i for i, name in enumerate(TYPES)},
)  # fmt: skip
CUPY = SimpleNamespace(
    cuda=SimpleNamespace(
        nccl=NCCL, Event=Event, get_current_stream=lambda: SimpleNamespace(ptr=0), Device=lambda index: nullcontext()
    )
)


def ranks(size, act, timeout: float = 120.0):
    """What ``act(communicator)`` returns on each rank."""
    control, results, errors = Control(size), [None] * size, []

    def run(rank):
        control.local.rank = rank
        try:
            results[rank] = act(NcclCommunicator(Card(), control=control, cupy=CUPY, timeout=timeout))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    if errors:
        raise errors[0]
    return results


def test_collectives() -> None:
    """Every collective of the interface, those that the base class makes of messages among them."""

    def act(one):
        r, n = one.rank, one.size
        x = np.full((2, 3), float(r + 1), np.float32)
        one.all_reduce(x).wait()
        out = np.empty(2, np.float32)
        one.reduce_scatter(np.arange(2.0 * n, dtype=np.float32).reshape(n, 2), out).wait()
        whole = np.empty((n, 1), np.int64)
        one.all_gather(np.array([r]), whole).wait()
        y = np.array([r + 5])
        one.broadcast(y, 1).wait()
        z = np.empty((n, 1), np.int64)
        one.all_to_all(np.arange(n)[:, None] + 10 * r, z).wait()
        one.barrier()
        got = np.zeros(1)
        with one.group():
            handles = [one.recv(got, (r - 1) % n), one.send(np.array([float(r)]), (r + 1) % n)]
        for handle in handles:
            handle.wait()
        one.close()
        return x[0, 0], out.tolist(), whole[:, 0].tolist(), y[0], z[:, 0].tolist(), got[0]

    for r, found in enumerate(ranks(3, act)):
        assert found == (6.0, [6.0 * r, 6.0 * r + 3], [0, 1, 2], 6, [r, 10 + r, 20 + r], (r - 1) % 3)


def test_dtypes() -> None:
    """Half types are added up in float32, bools combined as bytes, complex numbers as pairs."""

    def act(one):
        half = np.array([256.0 if one.rank == 0 else 0.75], ml_dtypes.bfloat16)
        one.all_reduce(half).wait()
        flags = np.array([one.rank == 0, True])
        one.all_reduce(flags, "product").wait()
        z = np.array([1 + 1j * one.rank], np.complex64)
        one.all_reduce(z).wait()
        out = np.empty(1, np.float16)
        one.reduce_scatter(np.full((3, 1), 0.1, np.float16), out).wait()
        with pytest.raises(ValueError, match="expected the sum of complex arrays, got max"):
            one.all_reduce(z, "max")
        return float(half[0]), flags.tolist(), complex(z[0]), float(out[0])

    wanted = float(np.float32(257.5).astype(ml_dtypes.bfloat16))
    third = float(np.float16(3 * np.float32(np.float16(0.1))))
    assert ranks(3, act) == [(wanted, [False, True], 3 + 3j, third)] * 3


def test_groups_and_ends() -> None:
    """A group splits over MPI; one that was given up or closed refuses later calls with the reason."""

    def act(one):
        part = one.split(one.rank % 2, -one.rank)
        x = np.array([float(one.rank)])
        part.all_reduce(x).wait()
        part.close()
        with pytest.raises(CommunicatorError, match="expected an open communicator"):
            part.all_reduce(x)
        one.abort("somebody left")
        with pytest.raises(CommunicatorError, match="somebody left"):
            one.barrier()
        return part.rank, part.size, x[0]

    assert ranks(4, act) == [(1, 2, 2.0), (1, 2, 4.0), (0, 2, 2.0), (0, 2, 4.0)]


def test_a_rank_that_does_not_come() -> None:
    """The deadline ends the wait."""

    def act(one):
        if one.rank == 0:
            with pytest.raises(CommunicatorTimeout, match=r"all_reduce: expected the other ranks within 0.2 s"):
                one.all_reduce(np.ones(1, np.float32)).wait()

    ranks(2, act, timeout=0.2)


def test_the_host_is_refused() -> None:
    """Without a GPU there is mpi."""

    class Host(Card):
        capabilities = Capabilities(("bool", "int64", "float32"), host=True)

    with pytest.raises(ValueError, match="nccl: expected a GPU, got card"):
        NcclCommunicator(Host(), 0, 1, control=Control(1), cupy=CUPY)


def test_one_process_needs_no_mpi(monkeypatch) -> None:
    """On one card alone mpi4py is not asked for; with more processes the error says what they need it for."""
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    one = NcclCommunicator(Card(), cupy=CUPY)
    x = np.full(3, 2.0, np.float32)
    one.all_reduce(x).wait()
    part = one.split(0)
    assert (one.rank, one.size, part.size, x.tolist()) == (0, 1, 1, [2.0] * 3)
    with pytest.raises(ValueError, match="expected mpi4py, by which 2 processes find one another, got none"):
        NcclCommunicator(Card(), 0, 2, cupy=CUPY)


@pytest.mark.parametrize(
    ("installed", "devices", "reason"),
    [
        (False, 1, "cupy is not installed"),
        (True, None, r"no GPU: NVIDIA's driver is not installed \(no libcuda.so.1\); install it, or use mpi"),
        (True, 0, "finds no GPU; see nvidia-smi"),
        (True, 1, None),
    ],
)
def test_where_it_cannot_be_used(installed, devices, reason, monkeypatch) -> None:
    """The doctor hears why there is no NCCL, with what to do: no CuPy, no driver, or no GPU."""

    def count(place) -> int:
        place._obj.value = devices
        return 0

    def load(name):
        if devices is None:
            raise OSError(name)
        return SimpleNamespace(cuInit=lambda flags: 0, cuDeviceGetCount=count)

    monkeypatch.setattr(plugin, "find_spec", lambda name: installed or None)
    monkeypatch.setattr(ctypes, "CDLL", load)
    found = plugin.probe_nccl()
    assert found is None if reason is None else re.search(reason, found)


def test_a_cupy_without_nccl() -> None:
    """A GPU whose CuPy finds no NCCL is refused with the line that installs it."""
    cupy = SimpleNamespace(cuda=SimpleNamespace(nccl=SimpleNamespace(available=False)))
    with pytest.raises(CommunicatorError, match="pip install nvidia-nccl-cu13"):
        NcclCommunicator(Card(), 0, 1, control=Control(1), cupy=cupy)
