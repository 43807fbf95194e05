"""Where DistributedDataParallel keeps gradients, what it sends of them, and in which dtype."""

from __future__ import annotations

import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed.algorithms.ddp_comm_hooks import default_hooks
from tensorcore.nn.parallel import DistributedDataParallel
from tensorcore.nn.parallel.distributed import _MixedPrecision

from .worlds import world


@pytest.mark.parametrize("sent_in", [None, torch.float32])
def test_mixed_precision(sent_in) -> None:
    """Computing is in bfloat16; parameters, and the means of the ranks' gradients, are as they would be made by hand."""
    policy = _MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=sent_in, buffer_dtype=torch.float16)

    def model():
        torch.manual_seed(4)
        made = nn.Sequential(nn.Linear(600, 600), nn.ReLU(), nn.Linear(600, 3))
        made.register_buffer("kept", torch.ones(1))
        return made

    def batch(rank):
        return torch.linspace(0, 1 + rank, 4 * 600).view(4, 600)

    def act():
        made = DistributedDataParallel(model(), mixed_precision=policy)
        seen = made(batch(dist.get_rank()))
        seen.float().square().mean().backward()
        dtypes = {one.dtype for part in made.parameters() for one in (part, part.grad)}
        return seen.dtype, dtypes, made.module.kept.dtype, [one.grad.tolist() for one in made.parameters()]

    grads = []
    for rank in range(2):
        low = model().to(torch.bfloat16)
        low(batch(rank).to(torch.bfloat16)).float().square().mean().backward()
        grads.append([one.grad.float() for one in low.parameters()])
    wanted = [((a + b) / 2).to(sent_in or torch.bfloat16).tolist() for a, b in zip(*grads, strict=True)]
    for seen, dtypes, kept, found in world(2, act):
        assert (seen, dtypes, kept) == (torch.bfloat16, {torch.float32}, torch.float16)
        assert found == wanted


def test_mixed_precision_wants_floats() -> None:
    """A dtype that cannot be computed in is named."""
    with pytest.raises(ValueError, match=r"expected floating dtypes in mixed_precision, got torch.int8"):
        world(1, lambda: DistributedDataParallel(nn.Linear(1, 1), mixed_precision=_MixedPrecision(torch.int8)))


def test_one_rank_alone() -> None:
    """On one rank the gradients are backward's own; a communication hook runs all the same."""

    def act():
        model = DistributedDataParallel(nn.Linear(600, 600), find_unused_parameters=True)
        model(torch.ones(2, 600)).sum().backward()
        grads = [one.grad.unique().tolist() for one in model.parameters()]
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        model.zero_grad()
        model(torch.full((1, 600), 1 + 2**-12)).sum().backward()
        return grads, model.module.weight.grad.unique().tolist()

    assert world(1, act) == [([[2.0], [2.0]], [1.0])]


def test_gradients_of_before_stay() -> None:
    """What a program kept of an iteration's gradients is not overwritten by the next, of large and of small parameters."""

    def act():
        torch.manual_seed(1)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(600, 600), nn.Linear(600, 2)))
        kept = []
        for step in range(3):
            model.zero_grad()
            model(torch.full((1, 600), float(dist.get_rank() + step))).sum().backward()
            kept.append([(one.grad, one.grad.sum().item()) for one in model.parameters()])
        model(torch.zeros(1, 600)).sum().backward()  # adds to the last ones
        again = [one.grad is grad for one, (grad, _) in zip(model.parameters(), kept[-1], strict=True)]
        return [grad.sum().item() == value for step in kept[:2] for grad, value in step], again

    for same, again in world(2, act):
        assert same == [True] * 8
        assert again == [True] * 4


def test_a_large_gradient_that_one_rank_lacks() -> None:
    """A large parameter that only one rank used, and one whose gradient is strided, are averaged with the others."""

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(600, 600)), nn.Parameter(torch.ones(600, 500))

        def forward(self, x, both):
            return (x @ self.a).sum() + (self.b.t() * x[0, 0]).sum() * both if both else (x @ self.a).sum()

    def act():
        model = DistributedDataParallel(Wide(), find_unused_parameters=True)
        model(torch.ones(1, 600), dist.get_rank() == 0).backward()
        return model.module.a.grad.unique().tolist(), model.module.b.grad.unique().tolist()

    assert world(2, act) == [([1.0], [0.5])] * 2
