"""Stages on several ranks train as the whole model on one does."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from tensorcore.nn.functional import cross_entropy

from .worlds import world

X = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
Y = np.arange(12) % 3


def parts():
    torch.manual_seed(2)
    return [
        nn.Sequential(nn.Linear(4, 8), nn.Tanh()),
        nn.Sequential(nn.Linear(8, 8), nn.ReLU()),
        nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 3)),
    ]


def alone(steps: int = 4) -> list[float]:
    model = nn.Sequential(*parts())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(model(torch.tensor(X)), torch.tensor(Y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("kind", [ScheduleGPipe, Schedule1F1B])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_losses_are_those_of_one_process(kind, count) -> None:
    """Three stages give the losses of the whole model, to 1e-5, for any number of small batches."""
    stages = [one.state_dict() for one in parts()]

    def act():
        rank = dist.get_rank()
        module = [nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 8), nn.ReLU()),
                  nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 3))][rank]  # fmt: skip
        module.load_state_dict(stages[rank])
        schedule = kind(PipelineStage(module, rank, 3), count, cross_entropy)
        optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
        means = []
        for _ in range(4):
            optimizer.zero_grad()
            losses: list = []
            if rank == 0:
                assert schedule.step(torch.tensor(X)) is None
            elif rank == 2:
                made = schedule.step(target=torch.tensor(Y), losses=losses)
                assert made.shape == (12, 3)
                means.append(sum(one.item() for one in losses) / count)
            else:
                schedule.step()
            optimizer.step()
        return means

    np.testing.assert_allclose(world(3, act)[2], alone(), atol=1e-5)


def test_few_small_batches_are_kept() -> None:
    """One forward, one backward: the last stage never keeps more than one small batch's values."""

    def most(kind):
        def act():
            rank, held = dist.get_rank(), []
            module = nn.Linear(2, 2)
            stage = PipelineStage(module, rank, 2)
            module.register_forward_hook(lambda layer, inputs, made: held.append(len(stage.held) + 1))
            kind(stage, 6, nn.functional.mse_loss).step(*[torch.ones(6, 2)] * (rank == 0), target=torch.ones(6, 2))
            return max(held)

        return world(2, act)

    assert most(Schedule1F1B) == [2, 1]
    assert most(ScheduleGPipe) == [6, 6]


def test_without_a_loss() -> None:
    """Only forward, with several tensors between the stages."""

    class Two(nn.Module):
        def forward(self, x):
            return x, x.long()

    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    def act():
        rank = dist.get_rank()
        schedule = ScheduleGPipe(PipelineStage((Two(), Sum())[rank], rank, 2), 2)
        made = schedule.step(torch.tensor([[1.5], [2.5]])) if rank == 0 else schedule.step()
        return None if made is None else made.tolist()

    assert world(2, act) == [None, [[2.5], [4.5]]]


def test_what_does_not_fit() -> None:
    """Stages without ranks, batches that do not divide, and a step without its batch or target are refused."""

    def act():
        rank = dist.get_rank()
        with pytest.raises(ValueError, match="expected one stage for each of 2 ranks, got stage 0 of 3"):
            PipelineStage(nn.Identity(), 0, 3)
        schedule = ScheduleGPipe(PipelineStage(nn.Identity(), rank, 2), 2, nn.functional.mse_loss)
        with pytest.raises(
            RuntimeError, match="expected the batch on the first" if rank == 0 else "expected target on the last"
        ):
            schedule.step()
        with pytest.raises(ValueError, match="expected a batch that 2 equal parts make up, got one of 3"):
            schedule.step(torch.ones(3), target=torch.ones(3))

    world(2, act)
