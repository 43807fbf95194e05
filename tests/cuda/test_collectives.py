"""Collectives of tensors on a GPU: by NCCL in a world of one, and through the host's memory between two ranks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.backend.registry import communicator
from tensorcore.nn.parallel import DistributedDataParallel
from tensorcore.plugin import isolated_registry


class Control:
    """What mpi4py's communicators are asked for, for ranks that are threads."""

    def __init__(self, size: int) -> None:
        self.size, self.turn, self.local = size, threading.Barrier(size, timeout=60), threading.local()
        self.said = None

    def Get_rank(self) -> int:
        return self.local.rank

    def Get_size(self) -> int:
        return self.size

    def bcast(self, one, root):
        if self.local.rank == root:
            self.said = one
        self.turn.wait()
        return self.said


@pytest.fixture(autouse=True)
def transports() -> Iterator[None]:
    """The plugin of the transports beside those of the devices."""
    with isolated_registry(cpu="tensorcore_cpu", cuda="tensorcore_cuda", distributed="tensorcore_distributed"):
        yield


@pytest.fixture
def alone() -> Iterator[None]:
    """This process as the only rank of NCCL."""
    nccl = pytest.importorskip("cupy").cuda.nccl
    if not getattr(nccl, "available", True):
        pytest.skip("CuPy finds no NCCL: pip install nvidia-nccl-cu13")
    dist.init_process_group("nccl", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_each_collective_of_one_rank(alone, dtype) -> None:
    """A rank alone gets what it gave, in every dtype, by every collective."""
    x = torch.tensor([1, 0, 3], device="cuda").to(dtype)
    before = x.tolist()
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.reduce(x, 0)
    assert x.tolist() == before
    whole, part = torch.zeros_like(x), torch.zeros_like(x)
    dist.all_gather_into_tensor(whole, x)
    dist.reduce_scatter_tensor(part, x)
    assert (whole.tolist(), part.tolist()) == (before, before)
    parts, copy = [torch.zeros_like(x)], torch.zeros_like(x)
    dist.all_gather(parts, x)
    dist.all_to_all_single(copy, x)
    assert (parts[0].tolist(), copy.tolist()) == (before, before)
    assert whole.device == x.device


def test_a_mean_and_work_under_way(alone) -> None:
    """A mean is divided on the device; a collective that was started is waited for later."""
    x = torch.full((4,), 6.0, device="cuda")
    work = dist.all_reduce(x, dist.ReduceOp.AVG, async_op=True)
    work.wait()
    dist.barrier()
    assert work.is_completed()
    assert x.tolist() == [6.0] * 4


def test_a_model_trains_on_one_card(alone) -> None:
    """DistributedDataParallel over NCCL gives the gradients of the model alone."""
    torch.manual_seed(0)
    module = nn.Linear(3, 2).to("cuda")
    x = torch.arange(6.0, device="cuda").view(2, 3)
    module(x).square().sum().backward()
    wanted = [one.grad.tolist() for one in module.parameters()]
    module.zero_grad()
    DistributedDataParallel(module)(x).square().sum().backward()
    assert [one.grad.tolist() for one in module.parameters()] == wanted


def test_two_ranks_meet_in_the_hosts_memory() -> None:
    """NCCL takes no two ranks on one card: a transport of the host moves what is on it, and puts it back."""

    def act():
        dist.init_process_group()
        rank = dist.get_rank()
        x = torch.full((3,), rank + 1.0, device="cuda")
        dist.all_reduce(x)
        whole = torch.zeros(2, 3, device="cuda")
        dist.all_gather_into_tensor(whole, x * (rank + 1))
        return x.device.type, x.tolist(), whole.tolist()

    assert dist.run_threads(act, 2) == [("cuda", [3.0] * 3, [[3.0] * 3, [6.0] * 3])] * 2


def test_each_rank_works_on_its_own_card() -> None:
    """Ranks of NCCL that are threads open the card each has made current, and reduce what lies there, half types too."""
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    control, nccl = Control(2), pytest.importorskip("cupy").cuda.nccl
    if not getattr(nccl, "available", True):
        pytest.skip("CuPy finds no NCCL: pip install nvidia-nccl-cu13")

    def act(rank: int):
        control.local.rank = rank
        torch.cuda.set_device(rank)
        group = communicator("nccl", backend=torch.device("cuda"), control=control)
        torch.cuda.set_device(1 - rank)  # what is current does not matter any more
        found = []
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.full((3,), rank + 1.0, dtype=dtype, device=f"cuda:{rank}")
            whole = torch.empty(2, 3, dtype=dtype, device=f"cuda:{rank}")
            group.all_gather(x.native, whole.native).wait()
            group.all_reduce(x.native).wait()
            found += [x.tolist(), whole.tolist(), str(x.device)]
        group.close()
        return found

    with ThreadPoolExecutor(2) as ranks:
        results = list(ranks.map(act, range(2)))
    for rank, found in enumerate(results):
        assert found == [[3.0] * 3, [[1.0] * 3, [2.0] * 3], f"cuda:{rank}"] * 2
