"""PowerSGD sends less and learns as well; parameters that are no longer the same on all ranks are found."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from tensorcore.nn.parallel import DistributedDataParallel

from .test_data_parallel import together
from .worlds import world


@pytest.mark.parametrize("rank", [1, 4])
def test_power_sgd(rank) -> None:
    """A matrix of that rank comes through whole, others after some steps thanks to what was lost being added again."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((16, 12)).astype(np.float32), rng.standard_normal((16, 8)).astype(np.float32)

    def act(hooked):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 8)))
        state = powerSGD_hook.PowerSGDState(None, rank, start_powerSGD_iter=2)
        if hooked:
            model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        losses = []
        part = slice(dist.get_rank(), None, 2)
        for _ in range(60):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(torch.tensor(x[part])), torch.tensor(y[part]))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        weights = [one.tolist() for one in model.parameters()]
        return together(losses), weights, state.compression_stats()[0]

    plain = world(2, act, False)[0][0]
    (losses, weights, rate), (_, others, _) = world(2, act, True)
    assert weights == others
    assert losses[:3] == plain[:3]
    assert losses[-1] < plain[0] * 0.7
    assert abs(losses[-1] - plain[-1]) < 0.1 * plain[0]
    assert rate > (4 if rank == 1 else 1.2)


def test_power_sgd_of_a_thin_gradient() -> None:
    """The gradient of one sample is a product of two vectors, of which nothing is lost."""

    def act():
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(8, 8))
        state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        for _ in range(4):
            model.zero_grad()
            (model(torch.arange(8.0)[None]) * torch.arange(8.0)).sum().backward()
        return model.module.weight.grad.tolist(), model.module.bias.grad.tolist()

    for weight, bias in world(2, act):
        np.testing.assert_allclose(weight, np.outer(np.arange(8.0), np.arange(8.0)), atol=1e-4)
        np.testing.assert_allclose(bias, np.arange(8.0), atol=1e-5)


def test_ranks_that_drift_apart() -> None:
    """verify_parameters names the first parameter that is not the same, and the ranks that have another."""

    def act():
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(2, 2))
        model.verify_parameters()
        if dist.get_rank() == 2:
            with torch.no_grad():
                model.module.bias[1] += 1e-6
        with pytest.raises(
            RuntimeError, match=r"expected the same parameters on all ranks, got another bias on rank 2"
        ):
            model.verify_parameters()

    world(3, act)


def test_a_check_every_few_steps(monkeypatch) -> None:
    """TENSORCORE_CHECK_PARAMETERS has every so many forwards look."""
    monkeypatch.setenv("TENSORCORE_CHECK_PARAMETERS", "2")

    def act():
        model = DistributedDataParallel(nn.Linear(2, 2))
        model(torch.ones(1, 2)).sum().backward()
        with torch.no_grad():
            model.module.weight += dist.get_rank()
        model(torch.ones(1, 2)).sum().backward()
        with pytest.raises(RuntimeError, match=r"got another weight on rank 1 .*after 2 forwards"):
            model(torch.ones(1, 2))

    world(2, act)
