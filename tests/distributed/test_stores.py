"""Stores: PyTorch's keys and values, and the ways in which processes find one another without a launcher."""

from __future__ import annotations

import importlib.util
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import tensorcore.distributed as dist

from .conftest import HANGS
from .test_launch import HELLO, reserved_port

LONG = timedelta(seconds=HANGS)


def made(kind: str, folder: Path, library=dist):
    """A store of its own of one kind."""
    if kind == "hash":
        return library.HashStore()
    if kind == "file":
        return library.FileStore(str(folder / "store"), 1)
    if kind == "tcp":
        return library.TCPStore("127.0.0.1", 0, 1, True, LONG)
    return library.PrefixStore("part", library.HashStore())


def answers(store) -> list[object]:
    """What a store says to one command after the other, the kind of error where it refuses."""
    commands = [
        lambda: store.set("x", "1"), lambda: store.get("x"), lambda: store.add("x", 3), lambda: store.get("x"),
        lambda: store.add("y", -2), lambda: store.check(["x", "y"]), lambda: store.check(["x", "z"]),
        lambda: store.compare_set("c", "a", "b"), lambda: store.compare_set("c", "", "b"), lambda: store.get("c"),
        lambda: store.compare_set("c", "b", "d"), lambda: store.compare_set("c", "other", "e"), lambda: store.get("c"),
        lambda: store.append("x", b"z\x00\xff"), lambda: store.get("x"), lambda: store.multi_set(["m", "n"], ["1", "2"]),
        lambda: store.multi_get(["n", "m"]), lambda: store.add("c", 1), lambda: store.wait(["m", "n"]),
        lambda: store.wait(["never"], timedelta(milliseconds=5)), lambda: store.get(5), lambda: store.set("k", 5),
        lambda: store.queue_push("q", "one"), lambda: store.queue_push("q", b"two"), lambda: store.queue_len("q"),
        lambda: store.queue_pop("q"), lambda: store.queue_pop("q", False), lambda: store.queue_pop("q", False),
        lambda: store.queue_len("q"), lambda: store.has_extended_api(), lambda: store.timeout,
    ]  # fmt: skip
    found: list[object] = []
    for command in commands:
        try:
            found.append(command())
        except Exception as error:
            found.append([kind.__name__ for kind in (ValueError, TypeError, RuntimeError) if isinstance(error, kind)])
    return found


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_its_answers(kind, tmp_path) -> None:
    """All stores answer as PyTorch's HashStore does, errors by their kind."""
    torch = pytest.importorskip("torch.distributed")
    store, theirs = made(kind, tmp_path), torch.HashStore()
    store.set_timeout(timedelta(seconds=300))
    assert answers(store) == answers(theirs)


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_keys_are_counted_and_go(kind, tmp_path) -> None:
    """delete_key says whether there was one; a TCPStore and a FileStore have one key more than were set."""
    store = made(kind, tmp_path)
    store.set("a", "1")
    store.set("b", "2")
    assert sorted(store.list_keys()) == ["a", "b"]
    assert store.num_keys() == 2 + (kind in ("file", "tcp"))
    assert [store.delete_key("a"), store.delete_key("a")] == [True, False]
    assert store.list_keys() == ["b"]


@pytest.mark.parametrize("kind", ["hash", "file", "tcp"])
def test_waiting_ends(kind, tmp_path) -> None:
    """What never comes is waited for no longer than the timeout, and the error names the key."""
    store = made(kind, tmp_path)
    store.set_timeout(timedelta(milliseconds=20))
    assert store.timeout == timedelta(milliseconds=20)
    for call in (lambda: store.get("gone"), lambda: store.wait(["gone"]), lambda: store.queue_pop("gone")):
        with pytest.raises(dist.DistStoreError, match="wait timeout after 20ms, keys: gone"):
            call()
    with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
        store.queue_pop("gone", block=False)
    with pytest.raises(TypeError, match=r"datetime\.timedelta"):
        store.set_timeout(5)


@pytest.mark.parametrize("kind", ["hash", "file", "tcp"])
def test_many_at_once(kind, tmp_path) -> None:
    """Nothing that several add, append or push at the same time is lost, and who waits hears of it."""
    first = made(kind, tmp_path)
    first.set_timeout(LONG)

    def other():
        if kind == "tcp":
            return dist.TCPStore("127.0.0.1", first.port, timeout=LONG)
        return dist.FileStore(first.path) if kind == "file" else first

    def act(number: int) -> None:
        store = other()
        for _ in range(20):
            store.add("sum", number)
        store.append("text", "x")
        store.queue_push("queue", str(number))
        if store.add("done", 1) == 4:
            store.set("all", "")

    threads = [threading.Thread(target=act, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    first.wait(["all"])
    for one in threads:
        one.join()
    assert first.get("sum") == b"120"
    assert first.get("text") == b"xxxx"
    assert sorted(first.queue_pop("queue") for _ in range(4)) == [b"0", b"1", b"2", b"3"]


def test_a_half_written_line_of_a_file(tmp_path) -> None:
    """Who died while it wrote left half a line, which nobody takes for a value, nor what comes after it for a part of it."""
    store = dist.FileStore(tmp_path / "store")
    store.set("a", "1")
    with open(tmp_path / "store", "ab") as file:
        file.write(b'\n["set", ["b"], ["2')
    other = dist.FileStore(tmp_path / "store")
    other.set("c", "3")
    assert store.multi_get(["a", "c"]) == [b"1", b"3"]
    assert not store.check(["b"])


def test_a_server_that_is_not_there() -> None:
    """A TCPStore says where it looked, waits for the others no longer than asked, and names a port that is taken."""
    with reserved_port() as port, pytest.raises(RuntimeError, match=rf"trying to connect to \(127.0.0.1, {port}\)"):
        dist.TCPStore("127.0.0.1", port, timeout=timedelta(milliseconds=50))
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(milliseconds=50))
    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(RuntimeError, match=f"failed to listen on port {store.port}"):
        dist.TCPStore("127.0.0.1", store.port, 1, True)
    late = dist.TCPStore("127.0.0.1", store.port)
    del store
    with pytest.raises(dist.DistStoreError, match="expected an answer"):
        late.get("x")


def test_threads_that_share_a_store() -> None:
    """Threads that a program starts itself are ranks of one world where they share a HashStore."""
    import tensorcore as torch

    store, found = dist.HashStore(), {}

    def act(rank: int) -> None:
        dist.init_process_group("gloo", store=store, rank=rank, world_size=3, timeout=LONG)
        x = torch.tensor([rank + 1])
        dist.all_reduce(x)
        found[rank] = x.item()
        dist.destroy_process_group()

    threads = [threading.Thread(target=act, args=(rank,)) for rank in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {0: 6, 1: 6, 2: 6}


@pytest.mark.parametrize("how", ["tcp", "file", "query", "TCPStore", "FileStore", "environment", "spawn"])
def test_processes_find_one_another(how, started, tmp_path) -> None:
    """An address, a file or a store is enough for processes that anything has started, and MASTER_ADDR with rank and size."""
    if importlib.util.find_spec("mpich") is None and not Path(sys.prefix, "bin", "mpiexec").exists():
        pytest.skip("an MPI other than MPICH has another way of finding its processes")
    with reserved_port() as port:
        file = tmp_path / "meeting"
        said = {
            "tcp": f"init_method='tcp://127.0.0.1:{port}', rank=rank, world_size=2",
            "file": f"init_method='file://{file}', rank=rank, world_size=2",
            "query": f"init_method=f'tcp://127.0.0.1:{port}?rank={{rank}}&world_size=2'",
            "TCPStore": f"store=dist.TCPStore('127.0.0.1', {port}, 2, rank == 0), rank=rank, world_size=2",
            "FileStore": f"store=dist.FileStore('{file}', 2), rank=rank, world_size=2",
        }.get(how, "rank=rank, world_size=2")
        known = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1)} if how in ("environment", "spawn") else {}
        if how == "spawn":
            text = SPAWN.replace("HOW", said)
            processes = [started(text, line=[sys.executable], **known)]
        else:
            text = HELLO.replace("init_process_group()", f"init_process_group('gloo', {said})")
            text = text.replace("dist.init", "rank = int(os.environ['NUMBER'])\n    dist.init", 1)
            processes = [started(text, line=[sys.executable], NUMBER=str(rank), **known) for rank in (1, 0)]
        ended = [one.communicate(timeout=HANGS) for one in processes]
    assert sorted("".join(out for out, _ in ended).splitlines()) == [f"rank {r} of 2 sum 2" for r in range(2)], ended
    assert [one.returncode for one in processes] == [0] * len(processes), ended
    if how == "file":
        assert not file.exists()


SPAWN = """
import tensorcore as torch, tensorcore.distributed as dist, tensorcore.multiprocessing as mp

def work(rank):
    dist.init_process_group("gloo", HOW)
    x = torch.ones(1)
    dist.all_reduce(x)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} sum {x.item():g}", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({"init_method": "tcp://127.0.0.1:9999"}, ValueError, "rank parameter missing"),
        ({"init_method": "tcp://127.0.0.1:9999", "rank": 0}, ValueError, "world_size parameter missing"),
        ({"init_method": "tcp://127.0.0.1", "rank": 0, "world_size": 2}, ValueError, "port number"),
        ({"init_method": "file://", "rank": 0, "world_size": 2}, ValueError, "expected a path"),
        ({"init_method": "foo://x", "rank": 0, "world_size": 2}, RuntimeError, "No rendezvous handler for foo://"),
        (
            {"init_method": "env://", "store": True, "rank": 0, "world_size": 1},
            ValueError,
            "both init_method and store",
        ),
        ({"store": 5, "rank": 0, "world_size": 1}, TypeError, "expected a Store, got int"),
    ],
)
def test_what_is_refused(options, kind, why, monkeypatch) -> None:
    """What does not say where to meet, or who one is, is refused with PyTorch's words."""
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    if options.get("store") is True:
        options = {**options, "store": dist.HashStore()}
    with pytest.raises(kind, match=why):
        dist.init_process_group("gloo", **options)
    assert not dist.is_initialized()
