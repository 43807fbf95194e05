"""SyncBatchNorm and DistributedSampler know the ranks; DataParallel runs on several devices of one process."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.nn.parallel import DistributedDataParallel
from tensorcore.utils.data import DistributedSampler

from .worlds import world


@pytest.mark.parametrize("cuts", [(0, 4, 6), (0, 6, 6), (0, 1, 6)])
def test_sync_batch_norm_is_batch_norm_of_the_whole_batch(cuts) -> None:
    """Results, running statistics and gradients are those of one process, for uneven and empty parts."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((6, 3, 2, 2)) + 100).astype(np.float32)
    g = rng.standard_normal(x.shape).astype(np.float32)
    alone = nn.BatchNorm2d(3)
    whole = torch.tensor(x, requires_grad=True)
    wanted = alone(whole)
    wanted.backward(torch.tensor(g))

    def act():
        rank = dist.get_rank()
        part = slice(cuts[rank], cuts[rank + 1])
        layer = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3)))[0]
        mine = torch.tensor(x[part], requires_grad=True)
        made = layer(mine)
        made.backward(torch.tensor(g[part]))
        total = layer.weight.grad.clone()
        dist.all_reduce(total)
        return (
            part,
            made.numpy(force=True),
            mine.grad.numpy(),
            layer.running_mean.numpy(),
            layer.running_var.numpy(),
            total,
        )

    for part, made, grad, mean, var, weight in world(2, act):
        np.testing.assert_allclose(made, wanted.numpy(force=True)[part], atol=2e-4)
        np.testing.assert_allclose(grad, whole.grad.numpy()[part], atol=2e-4)
        np.testing.assert_allclose(mean, alone.running_mean.numpy(), rtol=1e-5)
        np.testing.assert_allclose(var, alone.running_var.numpy(), rtol=1e-3)
        np.testing.assert_allclose(weight.numpy(), alone.weight.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_sync_batch_norm_in_a_distributed_model() -> None:
    """Under DistributedDataParallel the averaged gradients are those of one process on the mean of the whole batch."""
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)

    def net():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1))

    start = net()
    state = {name: one.clone() for name, one in start.state_dict().items()}
    (start(torch.tensor(x)) ** 2).mean().backward()
    wanted = [one.grad.numpy() for one in start.parameters()]

    def act():
        model = net()
        model.load_state_dict(state)
        model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model))
        (model(torch.tensor(x[dist.get_rank() :: 2])) ** 2).mean().backward()
        return [one.grad.numpy() for one in model.parameters()]

    for grads in world(2, act):
        for one, other in zip(grads, wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_sync_batch_norm_in_evaluation_asks_nobody() -> None:
    """In evaluation the running statistics are used, on one rank alone if need be."""

    def act():
        layer = nn.SyncBatchNorm(2).eval()
        return layer(torch.ones(1, 2)).shape if dist.get_rank() == 0 else None

    assert world(2, act) == [(1, 2), None]


def test_the_sampler_asks_the_group() -> None:
    """Each rank gets its part of the data without being told which."""
    parts = world(3, lambda: list(DistributedSampler(range(7), shuffle=False)))
    assert parts == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]


def test_the_sampler_without_a_group_says_what_is_missing() -> None:
    """Outside a group num_replicas and rank have to be passed."""
    with pytest.raises(RuntimeError, match="make sure to call init_process_group, or pass num_replicas and rank"):
        DistributedSampler(range(7))


def test_data_parallel_on_several_devices() -> None:
    """The batch is split over devices and joined again; gradients come back to the one module."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x = torch.randn(5, 3)
    devices = [torch.device("cpu", i) for i in range(3)]
    wanted = module(x)
    wanted.sum().backward()
    grads = [one.grad.clone() for one in module.parameters()]
    module.zero_grad()
    made = nn.DataParallel(module, devices)(x)
    assert made.device is devices[0]
    made.sum().backward()
    np.testing.assert_allclose(made.numpy(force=True), wanted.numpy(force=True), rtol=1e-6)
    for one, grad in zip(module.parameters(), grads, strict=True):
        np.testing.assert_allclose(one.grad.numpy(), grad.numpy(), rtol=1e-5)


def test_data_parallel_without_accelerators_is_the_module() -> None:
    """No devices to split over: the module runs as it is."""
    module = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    assert nn.DataParallel(module, [])(x).tolist() == module(x).tolist()


def test_data_parallel_hands_on_an_error() -> None:
    """What one copy raises comes out."""

    class Odd(nn.Module):
        def forward(self, x):
            if x.device.index == 1:
                raise ValueError("on the second device")
            return x

    with pytest.raises(ValueError, match="on the second device"):
        nn.DataParallel(Odd(), [torch.device("cpu", i) for i in range(2)])(torch.ones(4, 1))


def test_the_parts_of_data_parallel() -> None:
    """A batch is cut, copies of a module compute, and their results are joined, step by step."""
    devices = ["cpu:0", "cpu:1"]
    module = nn.Linear(2, 2)
    parts = nn.parallel.scatter((torch.ones(3, 2), {"keep": 5}), devices)
    assert [(tuple(x.shape), x.device.index or 0, given) for x, given in parts] == [
        ((2, 2), 0, {"keep": 5}),
        ((1, 2), 1, {"keep": 5}),
    ]
    copies = nn.parallel.replicate(module, devices)
    made = nn.parallel.parallel_apply(copies, [x for x, _ in parts])
    whole = nn.parallel.gather(made, "cpu:0")
    assert whole.tolist() == module(torch.ones(3, 2)).tolist()
    whole.sum().backward()
    assert module.bias.grad.tolist() == [3.0, 3.0]
    assert not any(one.requires_grad for one in nn.parallel.replicate(module, devices, detach=True)[1].parameters())
    with pytest.raises(AssertionError, match="The number of modules 2 is not equal to the number of inputs 1"):
        nn.parallel.parallel_apply(copies, [torch.ones(1, 2)])


def test_data_parallel_within_autocast() -> None:
    """Each copy computes in the dtype of the region that is around the call."""
    model = nn.DataParallel(nn.Linear(2, 2), ["cpu:0", "cpu:1"])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(torch.ones(4, 2)).dtype is torch.bfloat16
    assert model(torch.ones(4, 2)).dtype is torch.float32
