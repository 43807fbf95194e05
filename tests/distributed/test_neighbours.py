"""Memory of other processes of one host, read and written: here of this process itself, which takes both ends."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from tensorcore.plugin import CommunicatorError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's")


@pytest.fixture
def both():
    """Rank 0 of two, whose other rank has its arrays in this process too."""
    from tensorcore_distributed.communicators.neighbours import Neighbours

    found = Neighbours([os.getpid(), os.getpid()], 0)
    try:
        found.read(1, np.ones(1).ctypes.data, np.zeros(1))
    except OSError as error:
        pytest.skip(f"this system grants no process another's memory: {error}")
    return found


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("op", ["sum", "mean", "max"])
def test_the_result_lands_on_both_ranks(both, op, dtype) -> None:
    """One rank combines its part, piece by piece, and the other has it in its own memory."""
    if op == "mean" and dtype == "int64":
        op = "product"
    size = 300_001  # several pieces, the last one odd
    mine, theirs = ((np.arange(size) % 7 + n).astype(dtype) for n in (1, 2))
    wanted = {"sum": mine + theirs, "mean": (mine + theirs) / 2, "max": theirs, "product": mine * theirs}[op].astype(
        dtype
    )
    sources, targets = [mine.ctypes.data, theirs.ctypes.data], [0, theirs.ctypes.data]
    both.combine(op, mine, mine, sources, targets, lambda: None)
    np.testing.assert_array_equal(mine, wanted)
    np.testing.assert_array_equal(theirs, wanted)


def test_nothing_is_written_once_somebody_gave_up(both) -> None:
    """Who gave up has its memory back: what a rank asks before each write raises, and nothing lands there any more."""
    from tensorcore_distributed.communicators.deadline import going

    mine, theirs = np.ones(200_000, np.float32), np.ones(200_000, np.float32)
    asked = []

    def check() -> None:
        asked.append(None)
        if len(asked) > 1:
            raise CommunicatorError("rank 1 gave up")

    with pytest.raises(CommunicatorError, match="gave up"):
        both.combine(
            "sum",
            mine,
            mine,
            [mine.ctypes.data, theirs.ctypes.data],
            [0, theirs.ctypes.data],
            going(check, lambda: None),
        )
    written = np.flatnonzero(theirs == 2)
    assert 0 < written.size < theirs.size
    assert (theirs[written.size :] == 1).all()


def test_memory_that_is_not_there(both) -> None:
    """An address that nothing is at is an error that names the rank, and no crash."""
    room = np.zeros(4)
    with pytest.raises(OSError, match="reading the memory of rank 1"):
        both.read(1, 8, room)
    with pytest.raises(OSError, match="writing the memory of rank 1"):
        both.combine("sum", room, room, [room.ctypes.data] * 2, [0, 8], lambda: None)
