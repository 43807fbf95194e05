"""Messages from one rank to another, and any Python objects through the collectives."""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore.backend.communicator import Communicator, CommunicatorTimeout, Handle
from tensorcore.distributed.arguments import member, root_of
from tensorcore.distributed.group import ProcessGroup
from tensorcore.distributed.placing import check_tensor, describe, place
from tensorcore.distributed.work import Work
from tensorcore.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "P2POp", "all_gather_object", "batch_isend_irecv", "broadcast_object_list", "gather_object", "irecv", "isend", "recv",
    "recv_object_list", "scatter_object_list", "send", "send_object_list",
]  # fmt: skip

_PAUSE, _LOOK = 2e-4, 0.05  # seconds between two looks for a message, and for ranks that gave up


def isend(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Any:
    """Start to send a tensor to one rank; returns a Work."""
    pg = member("isend", group)
    check_tensor("isend", tensor)
    if pg is None:
        return None
    peer = _peer("isend", pg, "dst", dst, group_dst)
    source = place(tensor, pg.device)
    text = f"send(to rank {pg.members[peer]}, {describe(tensor)}, tag {tag})"
    return pg.message(text, lambda one: one.send(source.native, peer, tag=tag), None, tensor, pg.members[peer])


def irecv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Any:
    """Start to receive into a tensor like the one that is sent; returns a Work.

    ``src`` is a rank of the world, ``group_src`` of the group; without both, from whichever rank sends first.
    """
    pg = member("irecv", group)
    check_tensor("irecv", tensor)
    if pg is None:
        return None
    target = place(tensor, pg.device)
    if src is None and group_src is None:
        return _from_any(pg, target, tensor, tag)
    peer = _peer("irecv", pg, "src", src, group_src)
    text = f"recv(from rank {pg.members[peer]}, {describe(tensor)}, tag {tag})"
    return pg.message(
        text, lambda one: one.recv(target.native, peer, tag=tag), target.written, tensor, pg.members[peer]
    )


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to one rank."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive into a tensor like the one that is sent, from any rank where none is named; returns its rank in the world."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One message for ``batch_isend_irecv``: ``isend`` or ``irecv`` with its arguments."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ArgumentError(
                f"P2POp: Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                f"``torch.distributed.irecv``, got {op!r}."
            )
        check_tensor("P2POp", tensor)
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start all these messages; a Work for each."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ArgumentError(
            "batch_isend_irecv: Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``."
        )
    # Receives first: a transport without buffers then has a place for what comes.
    works: dict[int, Any] = {}
    for wanted in (irecv, isend):
        for i, one in enumerate(p2p_op_list):
            if one.op is wanted:
                works[i] = one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer)
    return [works[i] for i in range(len(p2p_op_list)) if works[i] is not None]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give every rank the objects of all, in the entries of a list by rank. They are pickled: trust the other ranks."""
    pg = member("all_gather_object", group)
    if pg is None:
        return
    _check_length("all_gather_object", "object_list", object_list, pg._size)
    data = _pickled(obj)
    sizes = _sizes(pg, len(data))
    whole = pg.device.from_host(np.zeros((pg._size, int(sizes.max())), np.uint8))
    mine = pg.device.from_host(_padded(data, int(sizes.max())))
    pg.start("all_gather_object(data)", lambda one: one.all_gather(mine, whole))
    for rank, row in enumerate(pg.device.to_host(whole)):
        object_list[rank] = _unpickled(row[: sizes[rank]])


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Give rank ``dst`` the objects of all, in the entries of a list that it alone passes."""
    pg = member("gather_object", group)
    if pg is None:
        return
    root = root_of("gather_object", pg, "dst", dst, group_dst, 0)
    if root == pg.rank:
        _check_length("gather_object", "object_gather_list", object_gather_list, pg._size)
    data = _pickled(obj)
    sizes = _sizes(pg, len(data))
    most = int(sizes.max())
    whole = pg.device.from_host(np.zeros((pg._size, most), np.uint8)) if root == pg.rank else None
    mine = pg.device.from_host(_padded(data, most))
    pg.start(f"gather_object(to {root})", lambda one: one.gather(mine, whole, root))
    if whole is not None:
        assert object_gather_list is not None
        for rank, row in enumerate(pg.device.to_host(whole)):
            object_gather_list[rank] = _unpickled(row[: sizes[rank]])


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Give every rank the entries of rank ``src``'s list, in place; all lists have one length."""
    pg = member("broadcast_object_list", group)
    if pg is None:
        return
    root = root_of("broadcast_object_list", pg, "src", src, group_src, 0)
    data = _pickled(list(object_list)) if root == pg.rank else b""
    found = _unpickled(_fromroot_of(pg, root, data, f"broadcast_object_list(from {root}, {len(object_list)} objects)"))
    object_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put entry ``i`` of the list that rank ``src`` alone passes into the first entry of rank ``i``'s output list."""
    pg = member("scatter_object_list", group)
    if pg is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ArgumentError(
            "scatter_object_list: Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = root_of("scatter_object_list", pg, "src", src, group_src, 0)
    whole, sizes = None, np.zeros(pg._size, np.int64)
    if root == pg.rank:
        _check_length("scatter_object_list", "scatter_object_input_list", scatter_object_input_list, pg._size)
        assert scatter_object_input_list is not None
        data = [_pickled(one) for one in scatter_object_input_list]
        sizes[:] = [len(one) for one in data]
        whole = pg.device.from_host(np.stack([_padded(one, int(sizes.max())) for one in data]))
    native = pg.device.from_host(sizes)
    pg.start(f"scatter_object_list(from {root})", lambda one: one.broadcast(native, root))
    sizes = pg.device.to_host(native)
    mine = pg.device.from_host(np.zeros(int(sizes.max()), np.uint8))
    pg.start(f"scatter_object_list(from {root}, data)", lambda one: one.scatter(whole, mine, root))
    scatter_object_output_list[0] = _unpickled(pg.device.to_host(mine)[: sizes[pg.rank]])


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None
) -> None:
    """Send the objects to one rank."""
    pg = member("send_object_list", group)
    if pg is None:
        return
    peer = _peer("send_object_list", pg, "dst", dst, group_dst)
    data = np.frombuffer(_pickled(list(object_list)), np.uint8)
    for array in (np.array([data.size]), data):
        native = pg.device.from_host(array)
        _message(pg, f"send_object_list(to rank {pg.members[peer]})", "send", native, peer)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> int:
    """Receive objects into the entries of a list of as many; returns the rank in the world that sent them."""
    pg = member("recv_object_list", group)
    if pg is None:
        return -1
    peer = _peer("recv_object_list", pg, "src", src, group_src)
    text = f"recv_object_list(from rank {pg.members[peer]})"
    size = pg.device.from_host(np.zeros(1, np.int64))
    _message(pg, text, "recv", size, peer)
    data = pg.device.from_host(np.zeros(int(pg.device.to_host(size)[0]), np.uint8))
    _message(pg, text, "recv", data, peer)
    object_list[:] = _unpickled(pg.device.to_host(data))
    return pg.members[peer]


def _peer(op: str, pg: ProcessGroup, name: str, world: int | None, inside: int | None) -> int:
    if world is None and inside is None:
        raise ArgumentError(f"{op}: expected {name} or group_{name}, got neither; name the rank")
    peer = root_of(op, pg, name, world, inside)
    if peer == pg.rank:
        raise ArgumentError(f"{op}: Invalid {name}: expected another rank, got this process's own, {pg.members[peer]}")
    return peer


class _FromAny(Handle):
    """A receive whose sender is the first rank that has a message."""

    def __init__(self, communicator: Communicator, native: Any, tag: int) -> None:
        super().__init__(native, self._run, self._look)
        self.communicator, self.native, self.tag = communicator, native, tag
        self.source: int | None = None
        self.begun: Handle | None = None

    def _look(self) -> bool:
        if self.begun is None:
            self.source = self.communicator.sender(self.tag)
            if self.source is None:
                return False
            self.begun = self.communicator.recv(self.native, self.source, tag=self.tag)
        return self.begun.done()

    def _run(self, timeout: float | None) -> None:
        seconds = self.communicator.seconds(timeout)
        end, looked = time.monotonic() + seconds, 0.0
        while not self._look() and self.begun is None:
            now = time.monotonic()
            if now > end:
                raise CommunicatorTimeout(
                    f"recv: expected a message within {seconds:g} s, got none; see what the others do"
                )
            if self.communicator.watch is not None and now > looked + _LOOK:
                looked = now
                self.communicator.watch()
            time.sleep(_PAUSE)
        assert self.begun is not None
        self.begun.wait(max(0.0, end - time.monotonic()))


def _from_any(pg: ProcessGroup, target: Any, tensor: Any, tag: int) -> Any:
    handle = _FromAny(pg.communicator, target.native, tag)
    handle.done()  # says at once where the transport cannot do it

    def finish() -> None:
        target.written()
        assert handle.source is not None
        work._source = pg.members[handle.source]

    work = pg.message(f"recv(from any rank, {describe(tensor)}, tag {tag})", lambda _: handle, finish, tensor, -1)
    return work


def _message(pg: ProcessGroup, text: str, kind: str, native: Any, peer: int) -> None:
    pg.message(text, lambda one: getattr(one, kind)(native, peer), None, None, peer).wait()


def _sizes(pg: ProcessGroup, size: int) -> np.ndarray:
    mine, whole = pg.device.from_host(np.array([size])), pg.device.from_host(np.zeros((pg._size, 1), np.int64))
    pg.start("object sizes()", lambda one: one.all_gather(mine, whole))
    return pg.device.to_host(whole)[:, 0]


def _fromroot_of(pg: ProcessGroup, root: int, data: bytes, text: str) -> np.ndarray:
    size = pg.device.from_host(np.array([len(data)]))
    pg.start(text, lambda one: one.broadcast(size, root))
    count = int(pg.device.to_host(size)[0])
    native = pg.device.from_host(_padded(data, count))
    pg.start(f"{text[:-1]}, data)", lambda one: one.broadcast(native, root))
    return pg.device.to_host(native)


def _check_length(op: str, name: str, given: Any, count: int) -> None:
    if not isinstance(given, list):
        raise ArgumentTypeError(f"{op}: expected {name} to be a list of {count} entries, got {given!r}")
    if len(given) != count:
        raise ArgumentError(f"{op}: expected {name} to have one entry for each of {count} ranks, got {len(given)}")


def _padded(data: bytes, size: int) -> np.ndarray:
    array = np.zeros(size, np.uint8)
    array[: len(data)] = np.frombuffer(data, np.uint8)
    return array


def _pickled(obj: Any) -> bytes:
    file = io.BytesIO()
    pickle.Pickler(file, pickle.HIGHEST_PROTOCOL).dump(obj)
    return file.getvalue()


def _unpickled(data: np.ndarray) -> Any:
    return pickle.loads(data.tobytes())
