"""Stores: keys and values that the processes of a program share, to find one another and to tell one another little things."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tensorcore.backend.communicator import CommunicatorError
from tensorcore.distributed import table
from tensorcore.distributed.table import CHANGING, Table
from tensorcore.errors import ArgumentError, ArgumentTypeError

__all__ = ["DistStoreError", "FileStore", "HashStore", "PrefixStore", "QueueEmptyError", "Store", "TCPStore"]

_TIMEOUT = 300.0  # seconds
_PAUSES = (0.001, 0.05)  # seconds between two looks for a key: of the first, and at most
_JOINED = "init/"  # a key that each process of a TCPStore or FileStore adds one to


class DistStoreError(CommunicatorError):
    """A store did not answer, or a key did not appear, in time."""


class QueueEmptyError(DistStoreError):
    """A queue had nothing, and nobody wanted to wait."""


class Store:
    """Values, which are bytes, by key. What waits for a key waits at most ``timeout``.

    ``set``, ``append`` and the queues take strings too. One who implements another store writes ``_run``.
    """

    def __init__(self, timeout: timedelta = timedelta(seconds=_TIMEOUT)) -> None:
        self._seconds = _seconds(timeout)

    def _run(self, command: str, *arguments: Any) -> Any:
        """The answer of the store's ``Table``, which nobody else changes meanwhile."""
        raise NotImplementedError(f"{type(self).__name__}: expected a store that keeps values; use TCPStore, for one")

    @property
    def timeout(self) -> timedelta:
        """How long ``get`` and ``wait`` wait for a key."""
        return timedelta(seconds=self._seconds)

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait so long from now on."""
        self._seconds = _seconds(timeout)

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key its value."""
        self.multi_set([key], [value])

    def get(self, key: str) -> bytes:
        """The value of a key, once there is one. Raises DistStoreError where none comes in time."""
        return self.multi_get([key])[0]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Give several keys their values at once."""
        if len(keys) != len(values):
            raise ArgumentError(
                f"multi_set: expected a value for each key, got {len(keys)} keys and {len(values)} values"
            )
        self._run("set", [_key("set", key) for key in keys], [_text("set", value) for value in values])

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, once all have one."""
        asked = [_key("get", key) for key in keys]
        found = self._until("get", asked, lambda: self._run("get", asked), self._seconds)
        return [one.encode("latin-1") for one in found]

    def add(self, key: str, amount: int) -> int:
        """Add to the number that a key has as its value, 0 where it has none; the sum."""
        total = self._run("add", _key("add", key), int(amount))
        if total is None:
            raise ArgumentError(f"add: expected a number at key {key!r}, got other bytes; use another key")
        return int(total)

    def append(self, key: str, value: str | bytes) -> None:
        """Put bytes behind the value of a key."""
        self._run("append", _key("append", key), _text("append", value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key where it has the expected value, or none and an empty one is expected; the value that it has then.

        Of a key that has none, the expected value.
        """
        op = "compare_set"
        found = self._run(op, _key(op, key), _text(op, expected_value), _text(op, desired_value))
        return bytes(found, "latin-1")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values. Raises DistStoreError where they do not get them in time."""
        asked = [_key("wait", key) for key in keys]
        seconds = self._seconds if timeout is None else _seconds(timeout)
        self._until("wait", asked, lambda: self._run("check", asked) or None, seconds)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys have values now."""
        return bool(self._run("check", [_key("check", key) for key in keys]))

    def delete_key(self, key: str) -> bool:
        """Take a key away; whether there was one."""
        return bool(self._run("delete", _key("delete_key", key)))

    def num_keys(self) -> int:
        """How many keys there are: of a TCPStore and a FileStore one more, by which the processes count one another."""
        return len(self._run("keys"))

    def list_keys(self) -> list[str]:
        """The keys that were set."""
        return [key for key in self._run("keys") if key != _JOINED]

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        self._run("push", _key("queue_push", key), _text("queue_push", value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value out of a queue, once there is one. Raises QueueEmptyError where it is empty and not ``block``."""
        asked = _key("queue_pop", key)
        found = self._run("pop", asked)
        if found is None and not block:
            raise QueueEmptyError(f"queue_pop: expected a value in queue {key!r}, got none: queue is empty; push one")
        if found is None:
            found = self._until("queue_pop", [asked], lambda: self._run("pop", asked), self._seconds)
        return bytes(found, "latin-1")

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        return int(self._run("length", _key("queue_len", key)))

    def has_extended_api(self) -> bool:
        """Whether it has ``append``, ``multi_get`` and ``multi_set``: each store has."""
        return True

    def _until(self, op: str, keys: list[str], ask: Callable[[], Any], seconds: float) -> Any:
        """The first answer that is not None."""
        end, pause = time.monotonic() + seconds, _PAUSES[0]
        while (found := ask()) is None:
            left = end - time.monotonic()
            if left <= 0:
                raise DistStoreError(
                    f"{op}: wait timeout after {1e3 * seconds:.0f}ms, keys: {', '.join(keys)}; see whether the process that "
                    f"sets them still runs"
                )
            time.sleep(min(pause, left))
            pause = min(2 * pause, _PAUSES[1])
        return found


class HashStore(Store):
    """A store of one process, whose threads share it."""

    def __init__(self) -> None:
        super().__init__()
        self._table, self._lock = Table(), threading.Lock()

    def _run(self, command: str, *arguments: Any) -> Any:
        with self._lock:
            return self._table.run(command, *arguments)


class FileStore(Store):
    """A store in a file, for processes that see one file system whose locks work.

    Args:
        file_name: made where there is none. It holds the commands that changed the store, a line each, so that who dies while
            it writes leaves half a line, which nobody reads.
        world_size: accepted.
    """

    def __init__(self, file_name: str | os.PathLike[str], world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self._table, self._read = Table(), 0
        self._lock = threading.Lock()
        self._run("add", _JOINED, 1)

    def _run(self, command: str, *arguments: Any) -> Any:
        with self._lock, open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
            file.seek(self._read)
            for line in file.read().splitlines():
                try:
                    told = json.loads(line)
                except ValueError:
                    continue
                self._table.run(*told)
            answer = self._table.run(command, *arguments)
            if command in CHANGING:
                file.write(b"\n" + json.dumps([command, *arguments]).encode() + b"\n")
                file.flush()
            self._read = file.seek(0, os.SEEK_END)
            return answer


class TCPStore(Store):
    """A store that one process starts and others reach over the network.

    Args:
        host_name, port: where it is; port 0 takes one that is free, and ``port`` says which.
        world_size: how many processes will use it; None where that is not known.
        is_master: whether this process starts it. It is there as long as this object.
        timeout: for connecting, and of ``get`` and ``wait``.
        wait_for_workers: the process that starts it waits until all have come.
        multi_tenant, master_listen_fd, use_libuv: accepted.

    Raises DistStoreError, which is what DistNetworkError means here too, where nobody answers or not all come in time.
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=_TIMEOUT), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(timeout)
        self.host = host_name
        self.port = self._serve(port) if is_master else port
        self._lock = threading.Lock()
        self._line: tuple[int, Any] | None = None
        count = self.add(_JOINED, 1)
        end = time.monotonic() + self._seconds
        while is_master and wait_for_workers and world_size is not None and count < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"TCPStore: Timed out after {self._seconds:g} seconds waiting for clients. {count}/{world_size} clients "
                    f"joined; see whether the others started"
                )
            time.sleep(_PAUSES[0])
            count = self.add(_JOINED, 0)

    def _serve(self, port: int) -> int:
        """Start what answers, at all addresses of this host; the port."""
        command = [sys.executable, "-I", "-S", str(table.__file__), "", str(port)]
        answering = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert answering.stdout is not None
        with answering.stdout as said:
            told = said.readline().strip()
        # The end of its input ends it, which comes with this process's end too.
        self._end = weakref.finalize(self, _finish, answering)
        if not told.isdecimal():
            raise DistStoreError(
                f"TCPStore: The server socket has failed to listen on port {port}: {told or 'no answer'}; take another port"
            )
        return int(told)

    def _run(self, command: str, *arguments: Any) -> Any:
        with self._lock:
            if self._line is None or self._line[0] != os.getpid():  # a fork must not read its parent's answers
                self._line = (os.getpid(), self._connect())
            file = self._line[1]
            try:
                file.write(json.dumps([command, *arguments]).encode() + b"\n")
                file.flush()
                answer = file.readline()
            except OSError as error:
                self._line = None
                raise self._gone(error) from error
            if not answer:
                self._line = None
                raise self._gone("the end of the connection")
            return json.loads(answer)

    def _connect(self) -> Any:
        end, pause = time.monotonic() + self._seconds, _PAUSES[0]
        while True:
            try:
                line = socket.create_connection((self.host, self.port), max(0.1, end - time.monotonic()))
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise DistStoreError(
                        f"TCPStore: The client socket has timed out after {1e3 * self._seconds:.0f}ms while trying to connect "
                        f"to ({self.host}, {self.port}): {error}; see that one process has is_master=True"
                    ) from error
                time.sleep(pause)
                pause = min(2 * pause, _PAUSES[1])
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.settimeout(max(1.0, self._seconds))
        file = line.makefile("rwb")
        line.close()  # once the file is
        return file

    def _gone(self, why: object) -> DistStoreError:
        return DistStoreError(
            f"TCPStore: expected an answer from ({self.host}, {self.port}), got {why}; see whether the process that "
            f"started the store still runs"
        )


class PrefixStore(Store):
    """A part of another store: its keys begin with a prefix there."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self._prefix, self.underlying_store = prefix, store

    def _run(self, command: str, *arguments: Any) -> Any:
        run = self.underlying_store._run
        if command == "keys":
            start = self._named("")
            return [key.removeprefix(start) for key in run("keys") if key.startswith(start)]
        keys, *rest = arguments
        return run(command, [self._named(key) for key in keys] if isinstance(keys, list) else self._named(keys), *rest)

    def _named(self, key: str) -> str:
        return f"{self._prefix}/{key}"


def _finish(answering: subprocess.Popen[str]) -> None:
    assert answering.stdin is not None
    answering.stdin.close()
    answering.wait()


def _seconds(timeout: timedelta) -> float:
    if not isinstance(timeout, timedelta):
        raise ArgumentTypeError(f"Store: expected timeout argument to be of type datetime.timedelta, got {timeout!r}")
    return timeout.total_seconds()


def _key(op: str, key: str) -> str:
    if not isinstance(key, str):
        raise ArgumentTypeError(f"{op}: expected keys that are strings, got {key!r}")
    return key


def _text(op: str, value: str | bytes) -> str:
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes | bytearray):
        raise ArgumentTypeError(f"{op}: expected a value of str or bytes, got {value!r}; encode it")
    return value.decode("latin-1")
