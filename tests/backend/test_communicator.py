"""The collectives that the interface derives from a transport's required ones, over threads and queues."""

from __future__ import annotations

import math
import queue
import threading

import numpy as np
import pytest

from tensorcore.backend.communicator import Communicator, CommunicatorTimeout, Handle
from tensorcore.errors import ArgumentError, ShapeError
from tensorcore.plugin import Backend


class Host(Backend):
    """NumPy arrays, as much of a backend as a communicator needs."""

    def __init__(self):
        super().__init__("host")

    def from_host(self, array):
        return np.array(array)

    def as_strided(self, native, shape, strides, offset):
        flat = native if native.base is None else native.base
        return np.lib.stride_tricks.as_strided(
            flat.reshape(-1)[offset:], shape, [stride * native.itemsize for stride in strides]
        )

    def layout(self, native):
        base = native if native.base is None else native.base
        start = (self.data_pointer(native) - self.data_pointer(base)) // native.itemsize
        return tuple(stride // native.itemsize for stride in native.strides), start

    def data_pointer(self, native):
        return native.__array_interface__["data"][0]


class Queues(Communicator):
    """Ranks are threads; a message is a copy in a queue."""

    def __init__(self, rank, size, mail, timeout=5.0):
        super().__init__(Host(), rank, size, timeout=timeout)
        self.mail = mail
        self.sent = []
        self.aborted = None
        self.closed = False

    def send(self, native, dest, *, tag=0, timeout=None):
        self.sent.append(dest)
        self.mail[self.rank, dest, tag].put(native.copy())
        return Handle()

    def recv(self, native, source, *, tag=0, timeout=None):
        box = self.mail[source, self.rank, tag]

        def wait(seconds):
            try:
                native[...] = box.get(timeout=self.seconds(timeout if seconds is None else seconds))
            except queue.Empty:
                raise CommunicatorTimeout("recv: expected a message in time, got none; see the other ranks") from None

        return Handle(native, wait, lambda: not box.empty())

    def all_reduce(self, native, op="sum", *, out=None, timeout=None):
        for peer in range(self.size):
            self.mail[self.rank, peer, "reduce"].put(native.copy())
        values = [self.mail[peer, self.rank, "reduce"].get(timeout=5) for peer in range(self.size)]
        result = native if out is None else out
        result[...] = {"sum": np.sum, "max": np.max}[op](values, axis=0)
        return Handle(result)

    def abort(self, reason):
        self.aborted = reason

    def close(self):
        self.closed = True


class Mail(dict):
    """A queue for every (source, dest, tag)."""

    lock = threading.Lock()

    def __missing__(self, key):
        with self.lock:
            return self.setdefault(key, queue.Queue())


def world(size, act):
    """What ``act(communicator)`` returns on each of the ranks, which run at once."""
    mail, results = Mail(), [None] * size

    def run(rank):
        results[rank] = act(Queues(rank, size, mail))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    return results


def test_all_gather_gives_every_rank_all_blocks():
    """Block i of the result is the array of rank i."""

    def act(group):
        return group.all_gather(np.full(2, group.rank), np.zeros((3, 2), int)).wait().tolist()

    assert world(3, act) == [[[0, 0], [1, 1], [2, 2]]] * 3


def test_all_gather_in_place_sends_nothing_to_itself():
    """Where the input is its block of the result, it stays where it is."""

    def act(group):
        out = np.zeros((2, 2), int)
        out[group.rank] = group.rank + 5
        group.all_gather(out[group.rank], out).wait()
        return out.tolist(), group.sent

    assert world(2, act) == [([[5, 5], [6, 6]], [1]), ([[5, 5], [6, 6]], [0])]


def test_broadcast_overwrites_all_but_the_root():
    """Every rank ends with the root's values."""
    assert world(3, lambda group: group.broadcast(np.array([group.rank]), 1).wait().tolist()) == [[1]] * 3


def test_reduce_gives_the_result_to_the_root_alone():
    """The handles of the other ranks give None."""

    def act(group):
        result = group.reduce(np.array([group.rank + 1]), 2, "sum").wait()
        return None if result is None else result.tolist()

    assert world(3, act) == [None, None, [6]]


def test_gather_fills_the_root():
    """The root gets a block of each rank; the others pass no out."""

    def act(group):
        out = np.zeros((2, 1), int) if group.rank == 0 else None
        result = group.gather(np.array([group.rank + 7]), out, 0).wait()
        return None if result is None else result.tolist()

    assert world(2, act) == [[[7], [8]], None]


def test_scatter_hands_out_the_blocks():
    """Rank i gets block i of the root's array."""

    def act(group):
        blocks = np.arange(6).reshape(3, 2) if group.rank == 1 else None
        return group.scatter(blocks, np.zeros(2, int), 1).wait().tolist()

    assert world(3, act) == [[0, 1], [2, 3], [4, 5]]


def test_all_to_all_transposes_the_blocks():
    """Block j of rank i's result is block i of rank j's input."""

    def act(group):
        return group.all_to_all(np.array([10, 11, 12]) + 10 * group.rank, np.zeros(3, int)).wait().tolist()

    assert world(3, act) == [[10, 20, 30], [11, 21, 31], [12, 22, 32]]


def test_barrier_waits_for_all():
    """No rank leaves before the last has come."""
    arrived = []

    def act(group):
        if group.rank == 1:
            threading.Event().wait(0.05)
        arrived.append(group.rank)
        group.barrier()
        return len(arrived)

    assert world(2, act) == [2, 2]


def test_a_message_of_the_program_does_not_mix_with_a_collective():
    """Messages of tag 0 that are under way are not taken for those of an all_gather."""

    def act(group):
        other = 1 - group.rank
        group.send(np.array([99]), other)
        gathered = group.all_gather(np.array([group.rank]), np.zeros((2, 1), int)).wait().tolist()
        return gathered, group.recv(np.zeros(1, int), other).wait().tolist()

    assert world(2, act) == [([[0], [1]], [99])] * 2


def test_a_collective_times_out_as_a_whole():
    """The timeout holds for the collective, not for each of its messages."""
    alone = Queues(0, 4, Mail(), timeout=0.05)
    handle = alone.gather(np.zeros(1), np.zeros((4, 1)), 0)
    assert not handle.done()
    with pytest.raises(TimeoutError, match="recv: expected a message in time"):
        handle.wait()


def test_what_one_message_waited_the_next_cannot():
    """Each message of a collective is given what is left of its timeout."""
    given = []

    class Recording(Queues):
        def recv(self, native, source, *, tag=0, timeout=None):
            def wait(seconds):
                given.append(seconds)
                threading.Event().wait(0.03)

            return Handle(native, wait)

    Recording(0, 3, Mail()).gather(np.zeros(1), np.zeros((3, 1)), 0, timeout=0.05).wait()
    assert given[0] <= 0.05
    assert given[1] <= 0.02
    assert given[2] == 0.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda group: group.all_gather(np.zeros(2), np.zeros((3, 2))),
            ShapeError,
            "all_gather: expected an array of shape (2, 2), got (3, 2); put one block for each rank in the first dim",
        ),
        (
            lambda group: group.broadcast(np.zeros((2, 3)).T, 0),
            ShapeError,
            "broadcast: expected a contiguous array, got shape (3, 2) with strides (1, 3); call .contiguous() first",
        ),
        (
            lambda group: group.broadcast(np.zeros(2), 2),
            ArgumentError,
            "broadcast: expected root to be a rank from 0 to 1, got 2; ranks are those of this communicator",
        ),
        (
            lambda group: group.all_to_all(np.zeros((3, 1)), np.zeros((3, 1))),
            ShapeError,
            "all_to_all: expected two arrays of one shape (2, ...), got (3, 1) and (3, 1); "
            "put one block for each rank in the first dim",
        ),
        (
            lambda group: group.reduction("all_reduce", "mean"),
            ArgumentError,
            "all_reduce: expected a reduction among sum, product, min, max, got 'mean'; "
            "a mean is a sum divided by the size",
        ),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(call, error, text):
    """Shapes, contiguity, roots and reductions are checked first."""
    group = Queues(0, 2, Mail())
    with pytest.raises(error) as caught:
        call(group)
    assert str(caught.value) == text
    assert group.sent == []


@pytest.mark.parametrize("shape", [(0, 3), (1, 4), (4, 1), ()])
def test_arrays_that_are_contiguous_by_their_size_pass(shape):
    """Strides of dims of length 1, and of empty arrays, do not matter."""
    Queues(0, 1, Mail()).contiguous("send", np.zeros(shape[::-1]).T)


def test_the_timeout_is_finite_by_default():
    """A communicator waits five minutes unless told otherwise, and forever only for math.inf."""
    assert Communicator(Host(), 0, 1).timeout == 300.0
    assert Communicator(Host(), 0, 1, timeout=math.inf).timeout == math.inf
    with pytest.raises(ArgumentError, match="expected a timeout above 0 seconds, got 0"):
        Communicator(Host(), 0, 1, timeout=0)


def test_a_rank_beyond_the_size_is_refused():
    """Ranks are numbered from 0."""
    with pytest.raises(ArgumentError, match="expected a rank below the size, got rank 2 of 2"):
        Communicator(Host(), 2, 2)


def test_an_exception_in_a_with_block_aborts_the_group():
    """Leaving with an exception tells the others why; leaving without closes only."""
    failed, ended = Queues(0, 2, Mail()), Queues(1, 2, Mail())
    with pytest.raises(ZeroDivisionError), failed:
        raise ZeroDivisionError("by zero")
    with ended:
        pass
    assert (failed.aborted, failed.closed) == ("rank 0 left with ZeroDivisionError: by zero", True)
    assert (ended.aborted, ended.closed) == (None, True)
