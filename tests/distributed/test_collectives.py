"""Collectives on every transport, and what is refused before anything is sent."""

from __future__ import annotations

import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn

from .checks import CHECKS
from .worlds import world


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", list(CHECKS))
def test_collectives_over_threads(name, size) -> None:
    """Each check holds on ranks that are threads."""
    world(size, CHECKS[name])


@pytest.mark.parametrize(("size", "alone"), [(2, ""), (4, ""), (2, "1")])
def test_collectives_over_mpi(launched, size, alone) -> None:
    """All checks hold on ranks that are processes, which read one another's memory, or send all of it."""
    ended = launched(
        """
        import tensorcore.distributed as dist
        from tests.distributed.checks import CHECKS

        dist.init_process_group()
        assert dist.get_backend() == "mpi"
        for name, check in CHECKS.items():
            check()
        dist.destroy_process_group()
        print("done", len(CHECKS))
        """,
        size,
        **({"TENSORCORE_NO_SHARED_MEMORY": alone} if alone else {}),
    )
    assert ended.code == 0, ended.err
    assert ended.out.count(f"done {len(CHECKS)}") == size


def test_each_thread_has_its_own_random_numbers() -> None:
    """A rank's seed is its own, its numbers are those of a process with that seed, and the caller's are not touched."""

    def act():
        first = torch.rand(2).tolist()
        dist.barrier()
        torch.manual_seed(dist.get_rank())
        dist.barrier()
        drawn = []
        for _ in range(20):
            drawn += torch.rand(3).tolist()
            dist.barrier()
        order = torch.randperm(5).tolist()
        return first, drawn, order, torch.initial_seed(), nn.functional.dropout(torch.ones(8)).tolist()

    torch.manual_seed(11)
    found = world(2, act)
    assert torch.initial_seed() == 11
    here = torch.rand(2).tolist()
    for rank, (first, drawn, order, seed, dropped) in enumerate(found):
        assert first == here
        torch.manual_seed(rank)
        assert drawn == [value for _ in range(20) for value in torch.rand(3).tolist()]
        assert (order, seed) == (torch.randperm(5).tolist(), rank)
        assert dropped == nn.functional.dropout(torch.ones(8)).tolist()


def test_a_world_of_one() -> None:
    """One rank alone has all collectives."""

    def act():
        x = torch.ones(2)
        dist.all_reduce(x)
        out = [torch.zeros(2)]
        dist.all_gather(out, x)
        dist.barrier()
        return out[0].tolist(), dist.get_rank(), dist.get_world_size(), dist.get_backend()

    assert world(1, act) == [([1.0, 1.0], 0, 1, "threads")]


def test_torchruns_variables_are_read(monkeypatch) -> None:
    """RANK and WORLD_SIZE make a world; without them the error names the missing one."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("gloo")
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.is_initialized()) == (0, 1, True)
        with pytest.raises(RuntimeError, match="initialize the default process group twice"):
            dist.init_process_group("gloo")
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
    monkeypatch.delenv("RANK")
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(ValueError, match=r"start the program with python -m tensorcore.distributed.launch -n 4"):
        dist.init_process_group()


def test_threads_of_ones_own_may_be_ranks() -> None:
    """rank and world_size make a thread a rank, which leaves with destroy_process_group."""
    import threading

    found = {}

    def act(rank):
        dist.init_process_group("threads", rank=rank, world_size=2, group_name="mine")
        x = torch.tensor([rank + 1])
        dist.all_reduce(x)
        found[rank] = x.item()
        dist.destroy_process_group()

    threads = [threading.Thread(target=act, args=(rank,)) for rank in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert found == {0: 3, 1: 3}
    assert not dist.is_initialized()


def test_calls_before_init_are_refused() -> None:
    """The error says what is missing."""
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.all_reduce(torch.ones(1))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: dist.all_reduce(3), TypeError, "Expected parameter `tensor` of type torch.Tensor"),
        (lambda: dist.all_reduce(torch.ones(1), "sum"), TypeError, "expected op to be a ReduceOp, got 'sum'"),
        (lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND), RuntimeError, "Cannot use ReduceOp.BAND"),
        (lambda: dist.all_reduce(torch.ones(1, dtype=torch.complex64), dist.ReduceOp.MAX), RuntimeError, "SUM or AVG"),
        (lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.PREMUL_SUM), ValueError, "multiply the tensor first"),
        (lambda: dist.all_reduce(torch.ones(1, device="meta")), NotImplementedError, "got a meta tensor"),
        (lambda: dist.broadcast(torch.ones(1), 2), ValueError, "Global rank 2 is not part of group"),
        (lambda: dist.broadcast(torch.ones(1)), ValueError, "Must specify src or group_src"),
        (lambda: dist.broadcast(torch.ones(1), 0, group_src=0), ValueError, "Can't specify both group_src and src"),
        (lambda: dist.all_gather([torch.ones(1)], torch.ones(1)), RuntimeError, "one tensor for each of 2 ranks"),
        (lambda: dist.all_gather([torch.ones(1)] * 2, torch.ones(1).long()), TypeError, "different dtypes"),
        (lambda: dist.all_gather_into_tensor(torch.ones(3), torch.ones(2)), RuntimeError, "world_size times input"),
        (lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)), RuntimeError, "does not divide equally"),
        (
            lambda: dist.all_to_all_single(torch.ones(2), torch.ones(2), [2, 2]),
            RuntimeError,
            "Split sizes doesn't match",
        ),
        (
            lambda: dist.send(torch.ones(1), dist.get_rank()),
            ValueError,
            "expected another rank, got this process's own",
        ),
        (lambda: dist.new_group([0, 0]), ValueError, "expected different ranks from 0 to 1"),
        (lambda: dist.all_gather_object([None], 1), ValueError, "one entry for each of 2 ranks, got 1"),
        (lambda: dist.P2POp(dist.send, torch.ones(1), 0), ValueError, "torch.distributed.isend"),
        (lambda: dist.all_reduce(torch.ones(1), group="world"), TypeError, "expected a ProcessGroup or None"),
    ],
)
def test_wrong_arguments_are_refused_on_the_spot(call, error, text) -> None:
    """A wrong argument raises before anything is sent, and the group works on."""

    def act():
        with pytest.raises(error, match=text):
            call()
        x = torch.ones(1)
        dist.all_reduce(x)
        return x.item()

    assert world(2, act) == [2.0, 2.0]


def test_a_group_of_others_is_passed_over_with_a_warning() -> None:
    """A collective of a group that this rank is not in does nothing here."""

    def act():
        group = dist.new_group([0])
        if dist.get_rank() == 0:
            dist.all_reduce(torch.ones(1), group=group)
            return None
        with pytest.warns(UserWarning, match="does not belong to the given group"):
            return dist.all_reduce(torch.ones(1), group=group)

    assert world(2, act) == [None, None]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: dist.new_subgroups(), "Default group size only takes effect when CUDA is available"),
        (lambda: dist.new_subgroups(0), r"The arg 'group_size' \(0\) must be positive"),
        (lambda: dist.new_subgroups(3), r"'group_size' \(3\) must not exceed the world size \(2\)"),
        (lambda: dist.new_subgroups_by_enumeration([]), "'ranks_per_subgroup_list' cannot be empty"),
        (
            lambda: dist.new_subgroups_by_enumeration([[0], [0, 1]]),
            r"Rank 0 has appeared in both subgroup \[0\] and \[0, 1\]",
        ),
    ],
)
def test_subgroups_that_cannot_be(act, text) -> None:
    """Sizes and lists that cut the world into no groups are named before anything is made."""
    if "Default" in text and torch.cuda.device_count():
        pytest.skip("there is a GPU, which is the default")
    with pytest.raises(ValueError, match=text):
        world(2, act)


def test_several_at_once() -> None:
    """Within the context calls return None at once, and all results are there at its end, or after wait() of async ones."""

    def act():
        rank, size = dist.get_rank(), dist.get_world_size()
        given = [torch.full((n + 1,), float(rank + n)) for n in range(4)]
        with dist._coalescing_manager():
            assert [dist.all_reduce(one) for one in given] == [None] * 4
        whole, part = torch.zeros(size * 2), torch.zeros(1)
        with dist._coalescing_manager(async_ops=True) as under_way:
            dist.all_gather_single(whole, torch.full((2,), float(rank)))
            dist.reduce_scatter_single(part, torch.arange(float(size)))
        assert under_way.wait()
        assert under_way.is_completed()
        with (
            pytest.raises(RuntimeError, match="leave that one"),
            dist._coalescing_manager(),
            dist._coalescing_manager(),
        ):
            pass
        assert dist.all_reduce(part.clone()) is None
        return [one.tolist() for one in given], whole.tolist(), part.item()

    for rank, (sums, whole, part) in enumerate(world(3, act)):
        assert sums == [[3.0 * n + 3] * (n + 1) for n in range(4)]
        assert whole == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
        assert part == 3.0 * rank


def test_lists_of_tensors() -> None:
    """all_reduce_coalesced and all_gather_coalesced take several tensors; PyTorch's example of the second one."""

    def act():
        rank = dist.get_rank()
        given = [torch.full((2, 2), 1 + rank), torch.tensor([2 + rank])]
        outs = [[torch.zeros_like(one) for _ in range(2)] for one in given]
        assert dist.all_gather_coalesced(outs, given) is None
        work = dist.all_reduce_coalesced(given, dist.ReduceOp.MAX, async_op=True)
        assert work is not None
        assert work.wait()
        with pytest.raises(ValueError, match="at least one tensor"):
            dist.all_reduce_coalesced([])
        with pytest.raises(ValueError, match="a list of outputs for each of 2 inputs, got 1"):
            dist.all_gather_coalesced(outs[:1], given)
        return [[one.tolist() for one in each] for each in outs], [one.tolist() for one in given]

    assert world(2, act) == [([[[[1, 1], [1, 1]], [[2, 2], [2, 2]]], [[2], [3]]], [[[2, 2], [2, 2]], [3]])] * 2
