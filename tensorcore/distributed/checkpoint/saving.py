"""Saving and loading a state dict on all ranks together, at once or while the program goes on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from concurrent.futures import Future
from typing import Any

import numpy as np

import tensorcore.distributed as dist
from tensorcore.backend.communicator import CommunicatorError
from tensorcore.distributed.checkpoint.files import FileSystemReader, FileSystemWriter, TensorEntry
from tensorcore.distributed.group import current, enter
from tensorcore.distributed.tensor.api import DTensor
from tensorcore.distributed.tensor.placement_types import part_of
from tensorcore.errors import ArgumentError, TensorcoreError
from tensorcore.ops.creation.create import from_numpy
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["CheckpointException", "async_save", "load", "save"]


class CheckpointException(TensorcoreError, RuntimeError):
    """A checkpoint could not be written or read; ``failures`` says by rank why."""

    def __init__(self, text: str, failures: Mapping[int, str]) -> None:
        super().__init__(text)
        self.failures = dict(failures)


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    process_group: Any = None,
) -> None:
    """Write a checkpoint, all ranks together.

    Every rank writes its parts of tensors that lie on a mesh; of what is the same on all ranks each rank writes some.
    Whatever is not a tensor is taken from rank 0. It is there once all of it is on the disk, and not before: where it
    cannot be written, all ranks raise, and a checkpoint that was there is as it was.

    Args:
        state_dict: dicts and lists of tensors and plain values, within one another.
        checkpoint_id: the path of a folder.
        storage_writer: in the place of that.

    Raises:
        CheckpointException: on all ranks, where one could not write.
    """
    _write(_Snapshot(state_dict, copy=False), _writer(checkpoint_id, storage_writer), process_group)


def async_save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    process_group: Any = None,
) -> Future[None]:
    """Write a checkpoint of what the values are now, while the program goes on; the Future is done when it is written.

    All ranks call it. ``process_group`` must be one that nothing else uses meanwhile: made here where None.
    """
    writer, snapshot = _writer(checkpoint_id, storage_writer), _Snapshot(state_dict, copy=True)
    state = current()
    if process_group is None and state.world is not None:
        found = state.__dict__.get("_checkpoints")
        if found is None or found.failure is not None:
            found = state.__dict__["_checkpoints"] = dist.new_group()
        process_group = found
    future: Future[None] = Future()

    def run() -> None:
        if state.launch is not None or state.world is not None:
            enter(state)
        try:
            _write(snapshot, writer, process_group)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)

    # Not a daemon: a program that ends first waits for its checkpoint.
    threading.Thread(target=run, name="tensorcore checkpoint").start()
    return future


def load(
    state_dict: MutableMapping[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: FileSystemReader | None = None,
    process_group: Any = None,
) -> None:
    """Read a checkpoint into the tensors of ``state_dict``, in place; plain values are replaced.

    Each rank reads its own parts, whatever number of ranks wrote them.

    Raises:
        CheckpointException: on all ranks, where one could not read, or the checkpoint has no such tensor.
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise ArgumentError("load: expected checkpoint_id or storage_reader, got neither; name the folder")
        storage_reader = FileSystemReader(checkpoint_id)
    failure = None
    try:
        entries, objects = storage_reader.tensors(), storage_reader.objects()
        for key, one, holder, name in list(_flat(state_dict)):
            if isinstance(one, Tensor):
                if key not in entries:
                    raise KeyError(f"Missing key in checkpoint state_dict: {key}.")
                _fill(key, one, entries[key], storage_reader)
            elif key in objects:
                holder[name] = objects[key]
            else:
                raise KeyError(f"Missing key in checkpoint state_dict: {key}.")
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    _agree("load", storage_reader.path, failure, process_group)


class _Snapshot:
    """What a rank has to write."""

    def __init__(self, state_dict: Mapping[str, Any], *, copy: bool) -> None:
        self.objects: dict[str, Any] = {}
        self.known: dict[str, tuple[tuple[int, ...], str]] = {}
        self.mine: list[tuple[str, tuple[int, ...], Any]] = []
        rank, size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        with no_grad():
            for number, (key, one, _, _) in enumerate(_flat(state_dict)):
                if not isinstance(one, Tensor):
                    self.objects[key] = one
                    continue
                self.known[key] = tuple(one.shape), one.dtype.name
                if isinstance(one, DTensor):
                    self._take_part(key, one, copy)
                elif number % size == rank:
                    self.mine.append((key, (0,) * one.ndim, _host(one.detach(), copy)))

    def _take_part(self, key: str, tensor: Any, copy: bool) -> None:
        mesh = tensor.device_mesh
        if any(one.is_partial() for one in tensor.placements):
            tensor = tensor.redistribute(placements=tensor.device.everywhere)
        at = mesh.get_coordinate()
        if any(one.is_replicate() and i for one, i in zip(tensor.placements, at, strict=True)):
            return
        starts = part_of(tensor.shape, mesh.shape, at, tensor.placements)[1]
        local = tensor._local_tensor
        if local.numel():
            self.mine.append((key, starts, _host(local, copy)))


def _write(snapshot: _Snapshot, writer: FileSystemWriter, group: Any) -> None:
    first = not dist.is_initialized() or dist.get_rank(group) == 0
    rank = dist.get_rank() if dist.is_initialized() else 0
    _agree("save", writer.path, _tried(writer.begin) if first else None, group)
    made: Any = None

    def write() -> None:
        nonlocal made
        made = writer.write(rank, snapshot.mine)

    failure = _tried(write)
    try:
        chunks = _agree("save", writer.path, failure, group, made)
        failure = None
        if first:
            tensors = {
                key: TensorEntry(shape, dtype, [one[key] for one in chunks if key in one])
                for key, (shape, dtype) in snapshot.known.items()
            }
            failure = _tried(lambda: writer.finish(tensors, snapshot.objects))
        _agree("save", writer.path, failure, group)
    except CheckpointException:
        if first:
            writer.abandon()
        if dist.is_initialized():
            with contextlib.suppress(
                CommunicatorError
            ):  # whoever raises now may end the job, and the first rank with it
                dist.barrier(group)
        raise


def _tried(action: Any) -> str | None:
    """What went wrong, for the others to hear too."""
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _agree(what: str, path: Any, failure: str | None, group: Any, given: Any = None) -> list[Any]:
    """What the ranks have, or an error on all of them if one failed."""
    found: list[Any] = [(failure, given)]
    if dist.is_initialized():
        found = found * dist.get_world_size(group)
        dist.all_gather_object(found, (failure, given), group)
    failures = {rank: one[0] for rank, one in enumerate(found) if one[0] is not None}
    if failures:
        told = "; ".join(f"rank {rank}: {text}" for rank, text in failures.items())
        rest = "what was there before is as it was" if what == "save" else "tensors may have been read in part"
        raise CheckpointException(f"{what}: expected a checkpoint at {path}, got {told}; {rest}", failures)
    return [one[1] for one in found]


def _writer(path: Any, given: FileSystemWriter | None) -> FileSystemWriter:
    if given is None and path is None:
        raise ArgumentError("save: expected checkpoint_id or storage_writer, got neither; name the folder")
    return FileSystemWriter(path) if given is None else given


def _flat(state: Any, before: str = "") -> Iterator[tuple[str, Any, Any, Any]]:
    """The tensors and plain values within, with their keys, and where they can be replaced."""
    for name, one in state.items() if isinstance(state, Mapping) else enumerate(state):
        key = f"{before}{name}"
        if isinstance(one, Mapping | list) and one:
            yield from _flat(one, f"{key}.")
        else:
            yield key, one, state, name


def _host(tensor: Any, copy: bool) -> np.ndarray:
    array = tensor.device.to_host(tensor.native)
    return np.array(array) if copy else np.asarray(array)


def _fill(key: str, tensor: Any, entry: TensorEntry, reader: FileSystemReader) -> None:
    if tuple(tensor.shape) != entry.shape:
        raise ValueError(f"{key} has shape {list(entry.shape)} there and {list(tensor.shape)} here")
    with no_grad():
        if not isinstance(tensor, DTensor):
            tensor.copy_(_tensor(reader.read(entry, (0,) * len(entry.shape), entry.shape), entry))
            return
        mesh = tensor.device_mesh  # type: ignore[attr-defined]
        sizes, starts = part_of(entry.shape, mesh.shape, mesh.get_coordinate(), tensor.placements)  # type: ignore[attr-defined]
        tensor._local_tensor.copy_(_tensor(reader.read(entry, starts, sizes), entry))  # type: ignore[attr-defined]


def _tensor(array: np.ndarray, entry: TensorEntry) -> Any:
    return from_numpy(array)
