"""How the ranks of a program find one another: which transport fits how it was started, and the board they share."""

from __future__ import annotations

import itertools
import os
import re
import socket
import zlib
from collections.abc import MutableMapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np

from tensorcore.backend.communicator import Communicator, CommunicatorError
from tensorcore.backend.registry import communicator, device
from tensorcore.distributed.board import Board, open_file, shared_file
from tensorcore.distributed.stores import FileStore, HashStore, PrefixStore, Store
from tensorcore.errors import ArgumentError, ArgumentTypeError

__all__ = ["MPI_VARIABLES", "Launch", "board_for", "first_host", "meet", "read_slurm"]

# What MPI launchers leave in the environment, the first that is set.
MPI_VARIABLES = {
    "rank": ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"),
    "size": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"),
    "local": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"),
}
_alone = itertools.count()
_PATH = 512  # bytes


class Launch(NamedTuple):
    """How a thread that is a rank was started."""

    rank: int
    size: int
    world: str
    failed: list[str]  # why ranks of this world have ended; all of them share the list

    def look(self) -> None:
        """Raise CommunicatorError once a rank has failed."""
        if self.failed:
            raise CommunicatorError(self.failed[0])


def meet(
    backend: str | None,
    init_method: str | None,
    rank: int,
    size: int,
    world: str,
    timeout: float,
    launch: Launch | None,
    host: str,
    store: Any = None,
) -> tuple[str, Communicator]:
    """The name of the transport, and the communicator of all ranks."""
    by_mpi = any(name in os.environ for name in MPI_VARIABLES["rank"])
    if not by_mpi:
        read_slurm(os.environ)
    if backend is not None and backend.lower() in ("gloo", "cpu:gloo", "cpu:gloo,cuda:nccl", "undefined"):
        backend = None
    found_by = None if by_mpi or launch is not None or backend == "threads" else _found_by(init_method, store)
    if launch is not None:
        rank, size = _agree("rank", rank, launch.rank), _agree("world_size", size, launch.size)
        world = launch.world
        backend = backend or "threads"
    elif found_by is not None:
        rank, size = _given(found_by, "rank", rank), _given(found_by, "world_size", size)
        if isinstance(store, HashStore) and backend is None:  # only threads see it
            backend, world = "threads", f"store {id(store)}"
    elif init_method in (None, "env://") and not (by_mpi and backend != "threads"):
        rank, size = _variable("RANK", rank), _variable("WORLD_SIZE", size)
    by_address = found_by is not None or (launch is None and not by_mpi and size > 1 and "MASTER_ADDR" in os.environ)
    if backend is None:
        backend = "mpi" if by_mpi or (by_address and size > 1) else "threads"
        if not by_mpi and not by_address and launch is None and size > 1:
            raise ArgumentError(
                f"init_process_group: expected processes that an MPI launcher started, got rank {rank} of {size} without "
                f"one; start the program with python -m tensorcore.distributed.launch -n {size}, or set MASTER_ADDR and "
                f"MASTER_PORT"
            )
    if backend == "threads":
        if rank < 0 or size < 1:
            raise ArgumentError(
                f"init_process_group: expected rank and world_size for threads, got {rank} of {size}; pass both"
            )
        if launch is None and size == 1:
            world = f"alone {next(_alone)}"
        name = world or (init_method if init_method not in (None, "env://") else None) or "default"
        options: dict[str, object] = {"world": name}
    elif by_address and size > 1:
        options = {"address": _address(found_by, store, rank, timeout)}
    else:
        options = {}
    if backend == "nccl" and host == "cpu":
        host = _own_card()
    made = communicator(
        backend,
        backend=device(host),
        rank=None if rank < 0 else rank,
        size=None if size < 0 else size,
        timeout=timeout,
        **options,
    )
    made.watch = None if launch is None else launch.look
    if found_by is not None and found_by.scheme == "file" and rank == 0:
        Path(found_by.path).unlink(missing_ok=True)  # all are here, and the next program begins with a new one
    return backend, made


class _FoundBy(NamedTuple):
    """What a program says of where its processes meet: a scheme, and what belongs to it."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    query: dict[str, list[str]] = {}  # noqa: RUF012 - never changed


def _found_by(init_method: str | None, store: Any) -> _FoundBy | None:
    """What ``init_method`` or ``store`` says, None where the environment does."""
    if store is not None:
        if init_method is not None:
            raise ArgumentError("init_process_group: Cannot specify both init_method and store.")
        if not isinstance(store, Store):
            raise ArgumentTypeError(
                f"init_process_group: expected a Store, got {type(store).__name__}; make a TCPStore"
            )
        return _FoundBy("store")
    if init_method in (None, "env://"):
        return None
    url = urlsplit(init_method)
    if url.scheme == "tcp":
        if not url.hostname or url.port is None:
            raise ArgumentError(
                f"init_process_group: expected a host and port number in tcp:// rendezvous, got {init_method!r}; write "
                f"tcp://host:port"
            )
        return _FoundBy("tcp", url.hostname, url.port, "", parse_qs(url.query))
    if url.scheme == "file":
        if not url.path:
            raise ArgumentError(
                "init_process_group: expected a path in file:// rendezvous, got none; write file:///path"
            )
        return _FoundBy("file", path=f"{url.netloc}{url.path}", query=parse_qs(url.query))
    raise CommunicatorError(
        f"init_process_group: No rendezvous handler for {url.scheme or init_method}://, got {init_method!r}; use env://, "
        f"tcp:// or file://"
    )


def _given(found_by: _FoundBy, name: str, given: int) -> int:
    """The rank or the size, from the arguments or the query of the address."""
    if given >= 0:
        return given
    if name in found_by.query:
        return int(found_by.query[name][0])
    raise ArgumentError(
        f"init_process_group: Error initializing torch.distributed using {found_by.scheme}:// rendezvous: {name} parameter "
        f"missing; pass rank and world_size"
    )


def _address(found_by: _FoundBy | None, store: Any, rank: int, timeout: float) -> tuple[str, int]:
    """The host and port at which rank 0 answers."""
    if found_by is None:
        if "MASTER_PORT" not in os.environ:
            raise ArgumentError(
                "init_process_group: Error initializing torch.distributed using env:// rendezvous: environment variable "
                "MASTER_PORT expected, but not set; set it beside MASTER_ADDR"
            )
        return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1  # torchrun itself listens at MASTER_PORT
    if found_by.scheme == "tcp":
        return found_by.host, found_by.port
    if store is None:
        store = FileStore(found_by.path)
        store.set_timeout(timedelta(seconds=timeout))
    # Of each group that a rank joins by the store, the same number on all ranks.
    shared = PrefixStore(f"init_process_group {store.add(f'rank {rank} joins', 1)}", store)
    here = socket.gethostname()
    if rank == 0:
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        shared.set("address", f"{here} {port}")
        return "127.0.0.1", port
    host, port = shared.get("address").decode().rsplit(" ", 1)
    return "127.0.0.1" if host == here else host, int(port)


def _own_card() -> str:
    """What this rank works on where nobody said so: the thread's current device, else that of its number on the host."""
    cards = device("cuda")
    return f"cuda:{cards.index or int(os.environ.get('LOCAL_RANK', '0')) % type(cards).device_count()}"


def read_slurm(environment: MutableMapping[str, str]) -> None:
    """Say in torchrun's variables what srun says in its own, where nobody has set them."""
    if "SLURM_STEP_ID" not in environment or "RANK" in environment or "SLURM_PROCID" not in environment:
        return
    hosts = environment.get("SLURM_STEP_NODELIST", environment.get("SLURM_JOB_NODELIST", "localhost"))
    environment["RANK"] = environment["SLURM_PROCID"]
    environment["WORLD_SIZE"] = environment.get("SLURM_STEP_NUM_TASKS", environment.get("SLURM_NTASKS", "1"))
    environment.setdefault("LOCAL_RANK", environment.get("SLURM_LOCALID", "0"))
    environment.setdefault("MASTER_ADDR", first_host(hosts))
    # Two steps on one host must not meet: ports 15000 to 44999 by the job's and the step's numbers.
    step = int(environment["SLURM_STEP_ID"])
    environment.setdefault("MASTER_PORT", str(15000 + (int(environment.get("SLURM_JOB_ID", "0")) * 10 + step) % 30000))


def first_host(names: str) -> str:
    """The first of Slurm's list of hosts, such as ``node[03-05,9],other``."""
    found = re.match(r"([^,\[]*)(?:\[([^,\]-]*)[^\]]*\]([^,\[]*))?", names)
    assert found is not None
    return "".join(part or "" for part in found.groups())


def board_for(group: Communicator) -> Board:
    """The board of a world, shared by the ranks on one host; its file is gone from the file system when all have it."""
    size = Board.size_of(group.size)
    if group.size == 1:
        return Board(bytearray(size), 1, 0)
    hosts = np.zeros((group.size, 1), np.int64)
    hosts[group.rank] = zlib.crc32(socket.gethostname().encode())
    hosts = _gathered(group, hosts)
    leader = int(np.flatnonzero(hosts[:, 0] == hosts[group.rank, 0])[0])
    path, memory = shared_file(size) if leader == group.rank else (None, None)
    try:
        paths = np.zeros((group.size, _PATH), np.uint8)
        if path is not None:
            paths[group.rank, : len(os.fsencode(path))] = np.frombuffer(os.fsencode(path), np.uint8)
        paths = _gathered(group, paths)
        if memory is None:
            try:
                memory = open_file(Path(os.fsdecode(paths[leader].tobytes().rstrip(b"\0"))))
            except OSError:  # hosts of one name, or containers that share no memory
                memory = bytearray(size)  # type: ignore[assignment]
        board = Board(memory, group.size, group.rank)
        group.barrier()
    finally:
        if path is not None:
            path.unlink(missing_ok=True)
    board.answer()
    return board


def _gathered(group: Communicator, rows: np.ndarray) -> np.ndarray:
    host = group.backend
    out = host.from_host(rows)
    return host.to_host(group.all_gather(host.from_host(rows[group.rank]), out).wait())


def _agree(what: str, given: int, known: int) -> int:
    if given not in (-1, known):
        raise ArgumentError(
            f"init_process_group: expected {what} {known}, which is that of this thread, got {given}; leave it out"
        )
    return known


def _variable(name: str, given: int) -> int:
    if given >= 0:
        return given
    if name not in os.environ:
        raise ArgumentError(
            f"init_process_group: Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set; start the program with python -m tensorcore.distributed.launch, or pass rank "
            f"and world_size"
        )
    return int(os.environ[name])
