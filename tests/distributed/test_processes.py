"""What the other tests show on threads holds on ranks that are processes: shards, tensors on a mesh, pipelines, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from . import test_dtensor as dtensor
from . import test_pipelining as pipelining
from . import test_sharding as sharding

PROGRAM = """
import sys
import tensorcore as torch, tensorcore.distributed as dist
from tensorcore.distributed import checkpoint
from tensorcore.distributed.checkpoint.state_dict import get_state_dict
from tensorcore.distributed.device_mesh import init_device_mesh
from tensorcore.distributed.fsdp import fully_shard
from tensorcore.distributed.tensor.parallel import parallelize_module
from tests.distributed import test_dtensor as d, test_pipelining as p, test_sharding as s

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

def told(name, losses):
    if rank == size - 1:
        print(name, *losses)

model = s.fresh("gpt")
for one in model.blocks:
    fully_shard(one)
fully_shard(model)
optimizer = s.OPTIMIZERS["adamw"](model.parameters())
told("shards", s.together(s.train(model, optimizer, s.words, rank, size)))
held, options = get_state_dict(model, optimizer)
future = checkpoint.async_save({"model": held, "optimizer": options}, checkpoint_id=sys.argv[1])

model = d.made()
parallelize_module(model, init_device_mesh("cpu", (size,)), d.PLAN)
told("tensors", d.losses(model))
future.result(20)

first, second, third = p.parts()
module = first if rank == 0 else torch.nn.Sequential(second, third)
schedule = p.Schedule1F1B(p.PipelineStage(module, rank, size), 3, p.cross_entropy)
optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
means = []
for _ in range(4):
    optimizer.zero_grad()
    losses = []
    schedule.step(*[torch.tensor(p.X)] * (rank == 0), target=torch.tensor(p.Y), losses=losses)
    optimizer.step()
    means.append(sum(one.item() for one in losses) / 3)
told("stages", means)
"""


@pytest.mark.slow
def test_everything_over_mpi(launched, tmp_path) -> None:
    """Two processes give the losses of one, each way of sharing a model out, and their checkpoint can be read by one."""
    ended = launched(PROGRAM, 2, str(tmp_path / "best"))
    assert ended.code == 0, ended.err
    found = {words[1]: [float(one) for one in words[2:]] for words in map(str.split, ended.out.splitlines())}
    model = sharding.fresh("gpt")
    wanted = sharding.train(model, sharding.OPTIMIZERS["adamw"](model.parameters()), sharding.words, 0, 1)
    np.testing.assert_allclose(found["shards"], wanted, atol=1e-5)
    np.testing.assert_allclose(found["tensors"], dtensor.losses(dtensor.made()), atol=1e-5)
    np.testing.assert_allclose(found["stages"], pipelining.alone(), atol=1e-5)

    from tensorcore.distributed import checkpoint

    other = sharding.fresh("gpt")
    checkpoint.load({"model": other.state_dict()}, checkpoint_id=tmp_path / "best")
    # Not the parameters themselves: Adam makes steps of noise where a gradient is none, as that of a key's bias.
    batch = np.arange(8)
    losses = [sharding.words(one, batch, batch, 1).item() for one in (model, other)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
