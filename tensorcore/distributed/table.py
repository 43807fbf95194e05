"""What a store holds, and the process that answers for it: no imports but Python's own, since it runs on its own as well.

``python table.py HOST PORT`` prints the port that it listens at, 0 taking any, and answers until its standard input ends. It is
a process because ``MPI_Init`` holds the interpreter's lock: a thread would answer nobody meanwhile.
"""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from typing import Any

__all__ = ["CHANGING", "Table"]

# The commands that change a table.
CHANGING = {"set", "add", "append", "compare_set", "delete", "push", "pop"}


class Table:
    """Values and queues by key. Commands and their answers are what JSON can say: values are text of one character a byte."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.queues: dict[str, list[str]] = {}

    def run(self, command: str, *arguments: Any) -> Any:
        """The answer to a command, which is the name of a method below."""
        return getattr(self, f"run_{command}")(*arguments)

    def run_set(self, keys: list[str], values: list[str]) -> None:
        self.values.update(zip(keys, values, strict=True))

    def run_get(self, keys: list[str]) -> list[str] | None:
        found = [self.values[key] for key in keys if key in self.values]
        return found if len(found) == len(keys) else None

    def run_check(self, keys: list[str]) -> bool:
        return all(key in self.values or key in self.queues for key in keys)

    def run_add(self, key: str, amount: int) -> int | None:
        try:
            total = int(self.values.get(key, "0")) + amount
        except ValueError:
            return None
        self.values[key] = str(total)
        return total

    def run_append(self, key: str, value: str) -> None:
        self.values[key] = self.values.get(key, "") + value

    def run_compare_set(self, key: str, expected: str, desired: str) -> str:
        if self.values.get(key, "") != expected:
            return self.values.get(key, expected)
        self.values[key] = desired
        return desired

    def run_delete(self, key: str) -> bool:
        queued = self.queues.pop(key, None) is not None
        return self.values.pop(key, None) is not None or queued

    def run_keys(self) -> list[str]:
        return [*self.values, *self.queues]

    def run_push(self, key: str, value: str) -> None:
        self.queues.setdefault(key, []).append(value)

    def run_pop(self, key: str) -> str | None:
        queue = self.queues.get(key, [])
        found = queue.pop(0) if queue else None
        if not queue:
            self.queues.pop(key, None)
        return found

    def run_length(self, key: str) -> int:
        return len(self.queues.get(key, ()))


class _Answering(socketserver.ThreadingTCPServer):
    """The table, and a thread for each process that asks."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 4096

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, _Conversation)
        self.table, self.lock = Table(), threading.Lock()


class _Conversation(socketserver.StreamRequestHandler):
    """One process's commands: a line of JSON each, and so the answers."""

    disable_nagle_algorithm = True
    server: _Answering

    def handle(self) -> None:
        for line in self.rfile:
            command = json.loads(line)
            with self.server.lock:
                answer = self.server.table.run(*command)
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _answer(host: str, port: int) -> None:
    try:
        server = _Answering((host, port))
    except OSError as error:
        _say(error.strerror or error)
        return
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    _say(server.server_address[1])
    sys.stdin.read()


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _answer(sys.argv[1], int(sys.argv[2]))
