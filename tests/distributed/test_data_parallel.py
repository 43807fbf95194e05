"""DistributedDataParallel trains as one process on the joined batch does, whatever the ranks' parts are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed.algorithms.ddp_comm_hooks import default_hooks
from tensorcore.nn.functional import cross_entropy
from tensorcore.nn.parallel import DistributedDataParallel

from .worlds import world


class Scans(NamedTuple):
    """Handwritten digits (count, 1, 8, 8) and their labels."""

    x: np.ndarray
    y: np.ndarray


def load(count: int) -> Scans:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return Scans((x[:count].reshape(-1, 1, 8, 8) / 16).astype(np.float32), y[:count].astype(np.int64))


class Net(nn.Module):
    """A small convolutional net with a branch that only some batches use, and layers that none does."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.second = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.extra = nn.Linear(16, 16)
        self.never = nn.Linear(3, 3)
        self.last = nn.Linear(16 * 16, 10)
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x, extra=False):
        self.steps += 1
        x = self.second(self.first(x))
        if extra:
            x = x + self.extra(x.view(-1, 16, 16)).flatten(1)
        return self.last(x)


def make() -> Net:
    torch.manual_seed(8)
    return Net()


def steps_of(scans: Scans, size: int = 30, steps: int = 12) -> list[np.ndarray]:
    return [np.arange(i * size, (i + 1) * size) % len(scans.x) for i in range(steps)]


def share_of(batch: np.ndarray, rank: int, size: int) -> np.ndarray:
    """An uneven part of a batch: the first rank has twice as much as the others."""
    part = len(batch) // (size + 1)
    cuts = [0, *(len(batch) - part * (size - 1 - i) for i in range(size))]
    return batch[cuts[rank] : cuts[rank + 1]]


def train(
    model, scans: Scans, rank: int, size: int, extra: Callable[[int, int], bool], accumulate: int = 1
) -> list[float]:
    """Each step's loss, as far as this rank's part of the batch makes it; the sum over the ranks is the batch's."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    losses = []
    for step, batch in enumerate(steps_of(scans)):
        mine = share_of(batch, rank, size)
        optimizer.zero_grad()
        total = 0.0
        for turn, part in enumerate(np.array_split(mine, accumulate)):
            last = turn == accumulate - 1
            quiet = model.no_sync() if isinstance(model, DistributedDataParallel) and not last else None
            with quiet or torch.enable_grad():
                scores = model(torch.tensor(scans.x[part]), extra(step, rank))
                loss = cross_entropy(scores, torch.tensor(scans.y[part]), reduction="sum") / len(batch)
                (loss * size).backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def never(step: int, rank: int) -> bool:
    return False


def together(losses: list[float]) -> list[float]:
    total = torch.tensor(losses)
    dist.all_reduce(total)
    return total.tolist()


OPTIONS = {
    "plain": dict(find_unused_parameters=True),
    "small buckets": dict(find_unused_parameters=True, bucket_cap_mb=0.0001),
    "views": dict(find_unused_parameters=True, gradient_as_bucket_view=True),
    "static": dict(static_graph=True),
    "no buffers": dict(static_graph=True, broadcast_buffers=False),
}


@pytest.fixture(scope="module")
def scans() -> Scans:
    return load(240)


@pytest.fixture(scope="module")
def alone(scans) -> list[float]:
    """The losses of one process on whole batches."""
    losses = train(make(), scans, 0, 1, never)
    assert losses[-1] < losses[0] * 0.9
    return losses


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("size", [2, 4])
def test_the_losses_are_those_of_one_process(scans, alone, size, options) -> None:
    """With uneven parts and unused parameters, the losses of 2 and 4 ranks are the single process's to 1e-5."""
    start = make()

    def act():
        model = DistributedDataParallel(copy.deepcopy(start), **options)
        return together(train(model, scans, dist.get_rank(), size, never))

    for losses in world(size, act):
        np.testing.assert_allclose(losses, alone, atol=1e-5)


def test_accumulation_under_no_sync(scans, alone) -> None:
    """Three parts of each batch, of which only the last is sent, give the same losses."""
    start = make()

    def act():
        model = DistributedDataParallel(copy.deepcopy(start), find_unused_parameters=True)
        return together(train(model, scans, dist.get_rank(), 2, never, accumulate=3))

    np.testing.assert_allclose(world(2, act)[0], alone, atol=1e-5)


def test_parameters_that_one_rank_uses(scans) -> None:
    """A branch that one rank takes gets its gradient on both; one that none takes keeps None."""
    start = make()
    x = torch.tensor(scans.x[:4])

    def act():
        model = DistributedDataParallel(copy.deepcopy(start), find_unused_parameters=True)
        model(x, dist.get_rank() == 1).sum().backward()
        module = model.module
        return module.extra.weight.grad.tolist(), module.never.weight.grad, module.last.bias.grad.tolist()

    alone = copy.deepcopy(start)
    alone(x, True).sum().backward()
    for extra, unused, bias in world(2, act):
        np.testing.assert_allclose(extra, alone.extra.weight.grad.numpy() / 2, rtol=1e-5, atol=1e-6)
        assert unused is None
        assert bias == [4.0] * 10


def test_an_unused_parameter_is_named() -> None:
    """Without find_unused_parameters the next forward says which parameters got no gradient."""

    def act():
        model = DistributedDataParallel(make())
        x = torch.zeros(2, 1, 8, 8)
        model(x).sum().backward()
        with pytest.raises(
            RuntimeError, match=r"find_unused_parameters=True.*did not receive grad for rank .*extra[.]weight"
        ):
            model(x)

    world(2, act)


def test_ranks_start_with_the_model_of_rank_0() -> None:
    """Parameters and buffers are rank 0's after construction."""

    def act():
        rank = dist.get_rank()
        model = nn.BatchNorm1d(3)
        with torch.no_grad():
            model.weight.fill_(float(rank + 1))
            model.running_mean.fill_(float(rank + 5))
        DistributedDataParallel(model)
        return model.weight.tolist(), model.running_mean.tolist()

    assert world(2, act) == [([1.0] * 3, [5.0] * 3)] * 2


def test_models_that_differ_are_refused() -> None:
    """All ranks hear which parameter has another shape."""

    def act():
        with pytest.raises(
            RuntimeError, match=r"params\[0\] of rank 1 is weight of float32 with sizes \[3, 2\], which"
        ):
            DistributedDataParallel(nn.Linear(2, 2 + dist.get_rank()))

    world(2, act)


def test_buffers_follow_rank_0() -> None:
    """Before each forward all ranks get rank 0's buffers."""

    def act():
        model = DistributedDataParallel(nn.BatchNorm1d(2))
        x = torch.tensor([[1.0, 2.0], [3.0, 6.0]]) * (1 + dist.get_rank())
        model(x)
        model.eval()
        model(x)
        return model.module.running_mean.tolist()

    first, second = world(2, act)
    np.testing.assert_allclose(first, [0.2, 0.4], rtol=1e-6)
    assert first == second


def test_uneven_numbers_of_batches() -> None:
    """Under join the rank that is done takes part with zeros, and all end with the model of the last."""

    def act(initial):
        rank = dist.get_rank()
        model = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            model.weight.fill_(1.0)
        model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        with model.join(divide_by_initial_world_size=initial):
            for _ in range(1 + 2 * rank):
                optimizer.zero_grad()
                model(torch.ones(1, 1)).sum().backward()
                optimizer.step()
        return model.module.weight.item()

    # Rank 1 alone makes the last two steps, with half of its gradient or all of it.
    assert world(2, act, True) == [1 - 1 - 0.5 - 0.5] * 2
    assert world(2, act, False) == [1 - 1 - 1 - 1] * 2


def test_join_may_end_all() -> None:
    """throw_on_early_termination raises on all ranks as soon as one is done."""

    def act():
        model = DistributedDataParallel(nn.Linear(1, 1))

        def train():
            with model.join(throw_on_early_termination=True):
                for _ in range(1 + dist.get_rank()):
                    model(torch.ones(1, 1)).sum().backward()

        why = "Detected at least one rank that exhausted inputs" if dist.get_rank() else "Rank 0 exhausted all inputs"
        with pytest.raises(RuntimeError, match=why):
            train()

    world(2, act)


@pytest.mark.parametrize(
    ("hook", "tolerance"),
    [
        (default_hooks.allreduce_hook, 0),
        (default_hooks.fp16_compress_hook, 1e-3),
        (default_hooks.bf16_compress_hook, 1e-2),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 1e-3),
    ],
)
def test_communication_hooks(hook, tolerance) -> None:
    """A hook averages the buckets in place of the all_reduce."""

    def act():
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(3, 2))
        model.register_comm_hook(None, hook)
        with pytest.raises(RuntimeError, match="can only be called once"):
            model.register_comm_hook(None, hook)
        model(torch.full((1, 3), 0.1 + dist.get_rank())).sum().backward()
        return model.module.weight.grad.tolist()

    for grad in world(2, act):
        np.testing.assert_allclose(grad, [[0.6] * 3] * 2, rtol=tolerance or 1e-6)


def test_gradients_are_sent_during_backward() -> None:
    """The bucket of the last layer is on its way before the first layer's gradient is known."""

    def act():
        model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)), bucket_cap_mb=1e-5)
        order = []
        model.register_comm_hook(None, lambda state, bucket: order.append(bucket.index()) or noted(bucket))
        first = model.module[0].weight
        first.register_hook(lambda g: order.append("first layer"))
        model(torch.ones(1, 4)).sum().backward()
        return order

    def noted(bucket):
        return default_hooks.allreduce_hook(None, bucket)

    for order in world(2, act):
        assert order.index(0) < order.index("first layer")


def test_gradients_that_are_parts_of_the_bucket() -> None:
    """gradient_as_bucket_view makes grad share the bucket's memory, also after zero_grad(set_to_none=False)."""

    def act():
        model = DistributedDataParallel(nn.Linear(2, 2), gradient_as_bucket_view=True)
        values = []
        for scale in (1.0, 3.0):
            model.zero_grad(set_to_none=False)
            (model(torch.ones(1, 2)) * scale).sum().backward()
            values.append(model.module.bias.grad.tolist())
        weight, bias = model.module.weight.grad, model.module.bias.grad
        return values, abs(weight.data_ptr() - bias.data_ptr()) in (8, 16)

    assert world(2, act) == [([[1.0, 1.0], [3.0, 3.0]], True)] * 2


def test_a_module_without_training_is_refused() -> None:
    """There is nothing to average."""

    def act():
        with pytest.raises(RuntimeError, match="doesn't have any parameters that require a gradient"):
            DistributedDataParallel(nn.ReLU())

    world(1, act)


def test_training_over_mpi(launched, alone, scans) -> None:
    """Processes over MPI get the same losses too."""
    ended = launched(
        """
        import tensorcore.distributed as dist
        from tests.distributed import test_data_parallel as t

        dist.init_process_group()
        scans = t.load(240)
        model = t.DistributedDataParallel(t.make(), find_unused_parameters=True, bucket_cap_mb=0.001)
        losses = t.together(t.train(model, scans, dist.get_rank(), dist.get_world_size(), t.never, accumulate=2))
        if dist.get_rank() == 0:
            print("losses", *losses)
        """,
        4,
    )
    assert ended.code == 0, ended.err
    (line,) = [line for line in ended.out.splitlines() if "losses" in line]
    np.testing.assert_allclose([float(one) for one in line.split()[2:]], alone, atol=1e-5)


@pytest.mark.parametrize("size", [2, 3])
def test_a_small_gpt(size) -> None:
    """A transformer with a tied embedding gives the single process's losses, to 1e-5."""
    from .test_sharding import GPT, words
    from .test_sharding import train as steps

    torch.manual_seed(5)
    start = GPT()
    state = {name: one.clone() for name, one in start.state_dict().items()}
    wanted = steps(start, torch.optim.AdamW(start.parameters(), lr=0.01), words, 0, 1)

    def act():
        model = GPT()
        model.load_state_dict(state)
        model = DistributedDataParallel(model, bucket_cap_mb=0.002)
        return together(steps(model, torch.optim.AdamW(model.parameters(), lr=0.01), words, dist.get_rank(), size))

    for losses in world(size, act):
        np.testing.assert_allclose(losses, wanted, atol=1e-5)
