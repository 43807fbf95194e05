"""Checkpoints: written by some ranks and read by others, whole or not there at all."""

from __future__ import annotations

import os
import subprocess
import threading

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed import checkpoint
from tensorcore.distributed.checkpoint import CheckpointException, FileSystemWriter
from tensorcore.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from tensorcore.distributed.device_mesh import init_device_mesh
from tensorcore.distributed.fsdp import fully_shard
from tensorcore.distributed.tensor import Replicate, Shard, distribute_tensor

from .conftest import HANGS
from .test_sharding import OPTIMIZERS, SCANS, copy_of, fresh, share_of, steps_of, together, words
from .worlds import world


def some_steps(model, optimizer, batches) -> list[float]:
    rank, size, losses = dist.get_rank(), dist.get_world_size(), []
    for batch in batches:
        optimizer.zero_grad()
        loss = words(model, batch, share_of(batch, rank, size), size)
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / size)
    return together(losses)


def sharded(state):
    model = copy_of("gpt", state)
    for one in model.blocks:
        fully_shard(one)
    fully_shard(model)
    return model, OPTIMIZERS["adamw"](model.parameters())


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 1), (1, 4)])
def test_another_number_of_ranks(tmp_path, before, after) -> None:
    """Training goes on, on more ranks or fewer, with the losses of one process that never stopped, to 1e-5."""
    start, path = fresh("gpt").state_dict(), tmp_path / "step-3"
    batches = steps_of(SCANS, 24, 6)

    def first():
        model, optimizer = sharded(start)
        losses = some_steps(model, optimizer, batches[:3])
        held, options = get_state_dict(model, optimizer)
        checkpoint.save({"model": held, "optimizer": options, "step": 3}, checkpoint_id=path)
        return losses

    def second():
        model, optimizer = sharded(fresh("gpt").state_dict())
        held, options = get_state_dict(model, optimizer)
        state = {"model": held, "optimizer": options, "step": 0}
        checkpoint.load(state, checkpoint_id=path)
        assert state["step"] == 3
        set_state_dict(model, optimizer, model_state_dict=held, optim_state_dict=options)
        return some_steps(model, optimizer, batches[3:])

    model = fresh("gpt")
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    wanted = world(1, lambda: some_steps(model, optimizer, batches))[0]
    found = world(before, first)[0] + world(after, second)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_layouts_change_on_the_way(tmp_path) -> None:
    """A tensor that was written in rows on one mesh is read in columns on another, whole, or in bfloat16 and empty."""
    whole = torch.arange(35.0).reshape(7, 5)
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)

    def write():
        mesh = init_device_mesh("cpu", (3,))
        state = {"x": distribute_tensor(whole, mesh, [Shard(0)]), "half": half, "flags": torch.tensor([True, False]),
                 "none": torch.zeros(0, 3), "more": [torch.tensor(2), "text"]}  # fmt: skip
        checkpoint.save(state, checkpoint_id=tmp_path / "a")

    def read():
        mesh = init_device_mesh("cpu", (2, 2))
        x = distribute_tensor(torch.zeros(7, 5), mesh, [Shard(1), Replicate()])
        state = {"x": x, "half": torch.zeros(2, dtype=torch.bfloat16), "flags": torch.zeros(2, dtype=torch.bool),
                 "none": torch.ones(0, 3), "more": [torch.tensor(0), ""]}  # fmt: skip
        checkpoint.load(state, checkpoint_id=tmp_path / "a")
        assert x.full_tensor().tolist() == whole.tolist()
        return state["half"].tolist(), state["flags"].tolist(), state["more"][0].item(), state["more"][1]

    world(3, write)
    assert world(4, read) == [([1.5, -2.0], [True, False], 2, "text")] * 4
    assert sum(one.stat().st_size for one in (tmp_path / "a").glob("*.distcp")) == 35 * 4 + 4 + 2 + 8


def test_without_a_group(tmp_path) -> None:
    """One process alone saves and loads too."""
    layer = nn.Linear(2, 2)
    checkpoint.save(layer.state_dict(), checkpoint_id=tmp_path / "alone")
    other = nn.Linear(2, 2)
    checkpoint.load(other.state_dict(), checkpoint_id=tmp_path / "alone")
    assert other.weight.tolist() == layer.weight.tolist()


def test_while_the_program_goes_on(tmp_path) -> None:
    """An asynchronous checkpoint holds the values from when it was asked for, beside collectives of the program."""

    def act():
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(torch.ones(4), mesh, [Shard(0)])
        y = torch.ones(3)
        future = checkpoint.async_save({"x": x, "y": y}, checkpoint_id=tmp_path / "later")
        for _ in range(20):
            x += 1
            dist.all_reduce(y)
        future.result(20)
        found = {"x": distribute_tensor(torch.zeros(4), mesh, [Shard(0)]), "y": torch.zeros(3)}
        checkpoint.load(found, checkpoint_id=tmp_path / "later")
        return found["x"].full_tensor().tolist(), found["y"].tolist()

    assert world(2, act) == [([1.0] * 4, [1.0] * 3)] * 2


class Failing(FileSystemWriter):
    """One rank's disk fails."""

    def __init__(self, path, rank: int) -> None:
        super().__init__(path)
        self.bad = rank

    def write(self, rank, parts):
        if rank == self.bad:
            raise OSError(28, "No space left on device")
        return super().write(rank, parts)


def test_one_rank_cannot_write(tmp_path) -> None:
    """All ranks raise with the rank and its reason, and the checkpoint that was there is whole."""
    path = tmp_path / "best"

    def act():
        checkpoint.save({"x": torch.ones(2)}, checkpoint_id=path)
        with pytest.raises(
            CheckpointException, match=r"got rank 1: OSError: \[Errno 28\] No space left on device"
        ) as caught:
            checkpoint.save({"x": torch.zeros(2)}, storage_writer=Failing(path, 1))
        found = {"x": torch.zeros(2)}
        checkpoint.load(found, checkpoint_id=path)
        return found["x"].tolist(), list(caught.value.failures)

    assert world(2, act) == [([1.0, 1.0], [1])] * 2
    assert [one.name for one in tmp_path.iterdir()] == ["best"]


def test_a_full_disk(tmp_path) -> None:
    """On a disk that is really full the checkpoint before stays, and what was begun is removed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(disk)], check=False, capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"a small disk needs the right to mount one: {made.stderr.strip()}")

    def act():
        checkpoint.save({"x": torch.ones(1000)}, checkpoint_id=disk / "best")
        with pytest.raises(CheckpointException, match="No space left on device"):
            checkpoint.save({"x": torch.ones(200_000)}, checkpoint_id=disk / "best")
        found = {"x": torch.zeros(1000)}
        checkpoint.load(found, checkpoint_id=disk / "best")
        return found["x"].sum().item()

    try:
        assert world(2, act) == [1000.0] * 2
        assert os.listdir(disk) == ["best"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_between_the_renames(tmp_path) -> None:
    """A writer that was stopped just before the last rename has left the checkpoint before, which is found."""
    checkpoint.save({"x": torch.ones(1)}, checkpoint_id=tmp_path / "best")
    (tmp_path / "best").rename(tmp_path / ".best.before")
    found = {"x": torch.zeros(1)}
    checkpoint.load(found, checkpoint_id=tmp_path / "best")
    assert found["x"].item() == 1
    checkpoint.save({"x": torch.full((1,), 2.0)}, checkpoint_id=tmp_path / "best")
    checkpoint.load(found, checkpoint_id=tmp_path / "best")
    assert found["x"].item() == 2
    assert [one.name for one in tmp_path.iterdir()] == ["best"]


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"y": torch.ones(1)}, "Missing key in checkpoint state_dict: y"),
        ({"x": torch.ones(3)}, r"x has shape \[2\] there and \[3\] here"),
        ({"x": torch.ones(2), "epoch": 1}, "Missing key in checkpoint state_dict: epoch"),
    ],
)
def test_what_does_not_fit(tmp_path, state, text) -> None:
    """A key that is not there, or a tensor of another shape, is named."""
    checkpoint.save({"x": torch.ones(2)}, checkpoint_id=tmp_path / "a")
    with pytest.raises(CheckpointException, match=text):
        checkpoint.load(state, checkpoint_id=tmp_path / "a")


def test_a_writer_that_is_killed(tmp_path, started) -> None:
    """A job that is killed while it writes leaves the checkpoint that was there."""
    path = tmp_path / "best"
    process = started(
        f"""
        import os, signal
        import tensorcore as torch, tensorcore.distributed as dist
        from tensorcore.distributed import checkpoint
        from tensorcore.distributed.checkpoint import FileSystemWriter

        class Dying(FileSystemWriter):
            def finish(self, tensors, objects):
                os.kill(os.getpid(), signal.SIGKILL)

        dist.init_process_group()
        checkpoint.save({{"x": torch.ones(2)}}, checkpoint_id={str(path)!r})
        checkpoint.save({{"x": torch.zeros(2)}}, storage_writer=Dying({str(path)!r}))
        """
    )
    process.communicate(timeout=HANGS)
    assert process.returncode == 137
    found = {"x": torch.zeros(2)}
    checkpoint.load(found, checkpoint_id=path)
    assert found["x"].tolist() == [1.0, 1.0]


def test_threads_end() -> None:
    """Nothing of an asynchronous checkpoint stays."""
    for one in [one for one in threading.enumerate() if one.name == "tensorcore checkpoint"]:
        one.join(HANGS)
        assert not one.is_alive()
