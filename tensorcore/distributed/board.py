"""The board: where each rank writes what it is doing, for the others to read without its help."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import threading
import time
import traceback
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["KILLED", "Board", "Entry", "open_file", "shared_file"]

KILLED = "its process was killed"
RING = 64  # of the last collectives of each rank
LEFT, FAILED = 2, 3
_ENTRY = np.dtype([("key", "u8"), ("digest", "u8"), ("count", "u8"), ("ended", "u1"), ("text", "S167")])
_HEAD = np.dtype(
    [
        ("pid", "i8"),
        ("thread", "i8"),
        ("count", "u8"),
        ("phase", "u1"),
        ("ask", "u1"),
        ("note", "S400"),
        ("place", "S600"),
    ]
)
_ROW = np.dtype([("head", _HEAD), ("ring", _ENTRY, (RING,))])


class Entry(NamedTuple):
    """One collective of a rank: of which group, its number there, what it is, and whether it has ended."""

    group: int
    number: int
    text: str
    ended: bool


class Board:
    """One row for each rank of the world, in memory that the ranks on this host share.

    A rank's row holds its last RING collectives. An entry's place follows from its group and number alone, so that
    comparing it with the others' is one column of one array.

    Args:
        memory: a writable buffer of ``Board.size_of(world)`` bytes, zeros to begin with.
        rank: of the writer.
    """

    def __init__(self, memory: Any, world: int, rank: int) -> None:
        self.memory = memory
        self.rows = np.frombuffer(memory, _ROW, world)
        self.rank = rank
        self.head, self.ring = self.rows[rank]["head"], self.rows[rank]["ring"]
        self.keys, self.digests = self.rows["ring"]["key"], self.rows["ring"]["digest"]
        self.my_keys, self.my_digests = self.keys[rank], self.digests[rank]
        self.my_counts, self.my_ended, self.my_texts = self.ring["count"], self.ring["ended"], self.ring["text"]
        self.count = 0
        self.head["pid"], self.head["thread"] = os.getpid(), threading.get_ident()
        self.head["phase"] = 1
        self.shared = False

    @staticmethod
    def size_of(world: int) -> int:
        """Bytes of a board."""
        return world * _ROW.itemsize

    # What this rank does

    def post(self, group: int, number: int, text: str) -> None:
        """Write down a collective that starts now."""
        slot = _slot(group, number)
        self.count += 1
        # While the key is gone nobody compares the rest.
        self.my_keys[slot] = 0
        self.my_digests[slot] = zlib.crc32(text.encode())
        self.my_counts[slot], self.my_ended[slot] = self.count, 0
        self.my_texts[slot] = text.encode("ascii", "replace")
        self.my_keys[slot] = _key(group, number)
        self.head["count"] = self.count

    def ended(self, group: int, number: int) -> None:
        """Write down that it has ended."""
        slot = _slot(group, number)
        if self.my_keys[slot] == _key(group, number):
            self.my_ended[slot] = 1

    def leave(self, reason: str | None = None) -> None:
        """Write down that this rank takes part in nothing any more, and why if it failed."""
        if self.head["phase"] == 1:
            self.head["note"] = (reason or "").encode("ascii", "replace")
            self.head["phase"] = LEFT if reason is None else FAILED

    # What the others do

    def differs(self, group: int, number: int, members: Any) -> bool:
        """Whether a rank has another call for a collective of this rank's. One look at one column."""
        slot = _slot(group, number)
        keys, digests = self.keys[:, slot], self.digests[:, slot]
        unequal = (keys == _key(group, number)) & (digests != self.my_digests[slot])
        if not unequal.any():
            return False
        time.sleep(0.001)  # an entry that was being replaced during the look is gone by now
        again = (keys == _key(group, number)) & (digests != self.my_digests[slot])
        return bool(again[members].any())

    def entry(self, rank: int, group: int, number: int) -> Entry | None:
        """What a rank wrote down for a collective, None where it has not come to it."""
        found = self.rows[rank]["ring"][_slot(group, number)]
        return _entry(found) if found["key"] == _key(group, number) else None

    def last(self, rank: int, count: int = 1) -> list[Entry]:
        """The last collectives of a rank, the latest first."""
        ring = self.rows[rank]["ring"]
        order = np.argsort(-ring["count"].astype(np.int64), kind="stable")[:count]
        return [_entry(ring[i]) for i in order if ring[i]["count"]]

    def known(self, rank: int) -> bool:
        """Whether the rank writes on this board: it has joined, on this host."""
        return bool(self.rows[rank]["head"]["phase"])

    def gone(self, rank: int) -> str | None:
        """Why a rank takes part no more, as far as one can know without it; None where it still may."""
        head = self.rows[rank]["head"]
        if head["phase"] == LEFT:
            return "has ended its program, or left the group"
        if head["phase"] == FAILED:
            return f"gave up: {head['note'].decode()}"
        return None if not head["phase"] or _alive(int(head["pid"])) else f"is dead: {KILLED}"

    def failed(self, rank: int) -> bool:
        """Whether the rank gave up because of an error of its own or of another rank's."""
        return bool(self.rows[rank]["head"]["phase"] == FAILED)

    def place(self, rank: int, patience: float = 5.0) -> str:
        """What to say of where in its program a rank is: the innermost line last, or why that is not known."""
        head = self.rows[rank]["head"]
        if int(head["pid"]) == os.getpid():
            return _place(int(head["thread"]))
        head["place"], head["ask"] = b"", 1
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if head["place"]:
                return str(head["place"].decode())
            if _process_state(int(head["pid"])) in ("T", "t"):
                return "its process was stopped by a signal; SIGCONT lets it go on"
            time.sleep(0.01)
        return f"it has not answered within {patience:g} s: it is in a call outside Python"

    def answer(self) -> None:
        """Start the thread that tells the other processes, when they ask, where this one is."""
        thread = int(self.head["thread"])

        def run() -> None:
            while self.head["phase"] == 1:
                if self.head["ask"]:
                    self.head["ask"] = 0
                    self.head["place"] = _place(thread).encode("ascii", "replace")
                time.sleep(0.1)

        threading.Thread(target=run, name="tensorcore board", daemon=True).start()


def shared_file(size: int) -> tuple[Path, mmap.mmap]:
    """A new file in memory, where there is such a place, and its contents; unlink it once all have opened it."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    handle, name = tempfile.mkstemp(prefix=f"tensorcore-board-{os.getpid()}-", dir=folder)
    try:
        os.ftruncate(handle, size)
        return Path(name), mmap.mmap(handle, size)
    finally:
        os.close(handle)


def open_file(path: Path) -> mmap.mmap:
    """The contents of another rank's file."""
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def _key(group: int, number: int) -> int:
    return (group << 40) | number


def _slot(group: int, number: int) -> int:
    return (31 * group + number) % RING


def _entry(found: Any) -> Entry:
    key = int(found["key"])
    return Entry(key >> 40, key & ((1 << 40) - 1), found["text"].decode(), bool(found["ended"]))


def _process_state(pid: int) -> str:
    """The letter that Linux has for what a process does; empty where there is none, or no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    state = _process_state(pid)
    if state:
        return state != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _place(thread: int) -> str:
    """The innermost lines of a thread outside tensorcore and threading, innermost last."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "its thread has ended"
    lines = traceback.extract_stack(frame)
    own = os.path.dirname(os.path.dirname(__file__))
    theirs = [line for line in lines if not line.filename.startswith((own, threading.__file__, "<frozen"))] or list(
        lines
    )
    return (
        "it is at "
        + " > ".join(f"{os.path.basename(one.filename)}:{one.lineno} {one.name}: {one.line}" for one in theirs[-2:])[
            :590
        ]
    )
