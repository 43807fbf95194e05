"""What an MPI launcher tells its processes (PMI 1), for those that something else started: torchrun, srun, a script.

MPICH asks whoever started it, over a socket, for its rank, the size, and the addresses that the others left. Here
rank 0 starts a process that answers at an address that all know; the protocol is lines of ``key=value``. It is a process
because ``MPI_Init`` holds the interpreter's lock: a thread of rank 0 would answer nobody while rank 0 waits for it.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["Rendezvous", "meet_at", "serve"]

_GRACE = 10.0  # seconds that ranks have to finalize MPI in, once rank 0 has ended
_answerers: list[subprocess.Popen[bytes]] = []


def meet_at(rank: int, size: int, address: str, port: int, timeout: float) -> None:
    """Set this process's environment so that MPI, which must not have been imported yet, finds ``size`` processes.

    Raises TimeoutError where rank 0 does not answer within ``timeout`` seconds.
    """
    if rank == 0:
        # The end of its standard input tells it that this process has ended. Nothing closes this one before that:
        # MPI is finalized after the interpreter's own end, and crashes where nobody answers.
        theirs, _ = os.pipe()
        _answerers.append(subprocess.Popen([sys.executable, "-I", "-S", __file__, str(size), str(port)], stdin=theirs))
        os.close(theirs)
    end = time.monotonic() + timeout
    while True:
        try:
            line = socket.create_connection((address, port), 2)
            break
        except OSError as error:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"init_process_group: expected rank 0 to answer at {address}:{port} within {timeout:g} s, got {error}; "
                    f"check MASTER_ADDR and MASTER_PORT, or init_method"
                ) from error
            time.sleep(0.05)
    line.settimeout(None)
    line.sendall(f"cmd=here rank={rank} host={socket.gethostname()}\n".encode())
    # MPICH writes to it until MPI is finalized, which is after the interpreter's own end.
    os.environ.update(PMI_FD=str(line.detach()), PMI_RANK=str(rank), PMI_SIZE=str(size))


def serve(size: int, port: int) -> None:
    """Answer ``size`` processes at a port of this host, until whoever started this process has gone."""
    server = Rendezvous(("", port), size)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    sys.stdin.read()
    with server.changed:
        server.changed.wait_for(lambda: not server.talking, _GRACE)


class Rendezvous(socketserver.ThreadingTCPServer):
    """The answering side: the addresses that were left, and who stands at the barrier."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 4096

    def __init__(self, address: tuple[str, int], size: int) -> None:
        super().__init__(address, _Conversation)
        self.size = size
        # MPICH names its shared memory after it, so no two worlds may have the same.
        self.name = f"tensorcore_{os.getpid()}_{secrets.token_hex(6)}"
        self.left: dict[str, str] = {}
        self.barrier = threading.Barrier(size)
        self.hosts: dict[int, str] = {}
        self.talking = 0  # processes that have not finalized MPI
        self.changed = threading.Condition()

    def mapping(self) -> str:
        """Which ranks share a host, once all are here: without it MPICH takes each to have one of its own."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.hosts) == self.size)
        names = [self.hosts[rank] for rank in range(self.size)]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        runs = [(numbers[name], len(list(ranks))) for name, ranks in itertools.groupby(names)]
        return f"(vector,{','.join(f'({number},1,{count})' for number, count in runs)})"


class _Conversation(socketserver.StreamRequestHandler):
    """One process's questions, in their order."""

    server: Rendezvous

    def handle(self) -> None:
        self._talk(1)
        try:
            self._answer()
        finally:
            self._talk(-1)

    def _talk(self, more: int) -> None:
        with self.server.changed:
            self.server.talking += more
            self.server.changed.notify_all()

    def _answer(self) -> None:
        for line in self.rfile:
            words = dict(part.partition("=")[::2] for part in line.decode().split())
            for answer in self._answers(words):
                self.wfile.write(f"{answer}\n".encode())
            if words.get("cmd") == "finalize":
                return

    def _answers(self, words: Mapping[str, str]) -> list[str]:
        command, server = words.get("cmd", ""), self.server
        known: dict[str, Any] = {
            "here": lambda: self._here(words),
            "init": lambda: ["cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"],
            "get_maxes": lambda: ["cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096"],
            "get_appnum": lambda: ["cmd=appnum appnum=0"],
            "get_universe_size": lambda: [f"cmd=universe_size size={server.size}"],
            "get_my_kvsname": lambda: [f"cmd=my_kvsname kvsname={server.name}"],
            "put": lambda: self._put(words),
            "get": lambda: self._get(words.get("key", "")),
            "barrier_in": self._wait,
            "finalize": lambda: ["cmd=finalize_ack"],
        }  # fmt: skip
        return known[command]() if command in known else []

    def _here(self, words: Mapping[str, str]) -> list[str]:
        with self.server.changed:
            self.server.hosts[int(words["rank"])] = words["host"]
            self.server.changed.notify_all()
        return []

    def _put(self, words: Mapping[str, str]) -> list[str]:
        self.server.left[words["key"]] = words.get("value", "")
        return ["cmd=put_result rc=0 msg=success"]

    def _get(self, key: str) -> list[str]:
        found = self.server.mapping() if key == "PMI_process_mapping" else self.server.left.get(key)
        if found is None:
            return ["cmd=get_result rc=-1 msg=key_not_found value=unknown"]
        return [f"cmd=get_result rc=0 msg=success value={found}"]

    def _wait(self) -> list[str]:
        self.server.barrier.wait()
        return ["cmd=barrier_out"]


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
