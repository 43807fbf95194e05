"""Join: ranks that are done take part in what the others still call."""

from __future__ import annotations

import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorcore.distributed.optim import ZeroRedundancyOptimizer
from tensorcore.nn.parallel import DistributedDataParallel

from .worlds import world


class Counter(Joinable):
    """Counts the inputs of all ranks, as in PyTorch's tutorial on uneven inputs."""

    def __init__(self, group=None) -> None:
        super().__init__()
        self.group = dist.group.WORLD if group is None else group
        self.count = torch.zeros(1)
        self.largest = torch.zeros(1)
        self.told: list[tuple[float, bool]] = []

    def __call__(self) -> None:
        Join.notify_join_context(self)
        self.add(1.0)

    def add(self, mine: float) -> None:
        one = torch.full((1,), mine)
        dist.all_reduce(one, group=self.group)
        self.count += one

    def join_hook(self, **kwargs) -> JoinHook:
        return CounterHook(self, **kwargs)

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return self.group


class CounterHook(JoinHook):
    def __init__(self, counter: Counter, sync_max_count: bool = False) -> None:
        self.counter, self.sync = counter, sync_max_count
        self.before: float | None = None

    def main_hook(self) -> None:
        if self.before is None:
            self.before = self.counter.count.item()
        self.counter.add(0.0)

    def post_hook(self, is_last_joiner: bool) -> None:
        self.counter.told.append((self.counter.count.item() if self.before is None else self.before, is_last_joiner))
        if self.sync:
            self.counter.largest = self.counter.count.clone()


def test_a_counter_of_ones_own() -> None:
    """The tutorial's counter: ten inputs before rank 0 is done, eleven in all; keyword arguments reach the hooks."""

    def act():
        counter = Counter()
        with Join([counter], sync_max_count=True):
            for _ in range(5 + dist.get_rank()):
                counter()
        return counter.told, counter.largest.item()

    assert world(2, act) == [([(10.0, False)], 11.0), ([(11.0, True)], 11.0)]


def test_all_may_be_done_at_once() -> None:
    """Where the ranks make the same number of steps, none or some, no main hook runs and all are last."""

    def act(steps):
        counter = Counter()
        with Join([counter]):
            for _ in range(steps):
                counter()
        return counter.told

    assert world(3, act, 2) == [[(6.0, True)]] * 3
    assert world(3, act, 0) == [[(0.0, True)]] * 3


def trained(sharded: bool, momentum: float) -> list[list[float]]:
    """The parameters of every rank after uneven training, rank r with 1 + 2 r batches."""

    def act():
        rank = dist.get_rank()
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
        options = {"lr": 0.1, "momentum": momentum}
        if sharded:
            optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, **options)
        else:
            optimizer = torch.optim.SGD(model.parameters(), **options)
        torch.manual_seed(rank)
        with Join([model, optimizer]) if sharded else model.join():
            for _ in range(1 + 2 * rank):
                optimizer.zero_grad()
                model(torch.randn(5, 3)).square().mean().backward()
                optimizer.step()
        flat = torch.cat([one.detach().reshape(-1) for one in model.parameters()])
        # What follows is as it is without the context.
        model(torch.ones(1, 3)).sum().backward()
        return flat.tolist()

    return world(3, act)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_model_and_a_sharded_optimizer(momentum: float) -> None:
    """ZeroRedundancyOptimizer in the same context gives what each rank's own optimizer gives."""
    plain, sharded = trained(False, momentum), trained(True, momentum)
    assert plain[0] == plain[1] == plain[2]
    for one in sharded:
        assert one == pytest.approx(plain[0], abs=1e-6)


def test_early_termination() -> None:
    """The rank that is done and the one that is not raise at once, each with its reason."""

    def act():
        counter = Counter()

        def count():
            with Join([counter], throw_on_early_termination=True):
                for _ in range(2 + dist.get_rank()):
                    counter()

        with pytest.raises(RuntimeError) as caught:
            count()
        assert not counter._join_config.enable
        return str(caught.value)

    assert world(2, act) == [
        "Rank 0 exhausted all inputs.",
        "Detected at least one rank that exhausted inputs. Throwing across all ranks.",
    ]


def test_switched_off() -> None:
    """With enable=False nothing is sent, and no hook runs."""

    def act():
        counter = Counter()
        with Join([counter], enable=False):
            counter()
        return counter.told, counter.count.item()

    assert world(2, act) == [([], 2.0)] * 2


def test_what_it_does_not_take() -> None:
    """No joinables, those of two groups, and one whose constructor did not call Joinable's are refused in a sentence."""

    def act():
        with pytest.raises(ValueError, match="requires at least one joinable"):
            Join([])
        other = dist.new_group([0, 1])
        with pytest.raises(ValueError, match="multiple process groups"):
            Join([Counter(), Counter(other)])
        bare = Counter.__new__(Counter)
        for call in (lambda: Join([bare]), lambda: Join.notify_join_context(bare)):
            with pytest.raises(TypeError, match="expected a Joinable, got Counter"):
                call()

    world(2, act)
