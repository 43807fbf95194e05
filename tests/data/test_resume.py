"""Going on in the middle of a pass, pinning, distributed samplers, and arguments that are refused."""

from __future__ import annotations

import io
import os
from typing import Any

import pytest

import tensorcore as tc
from tensorcore.utils import data
from tests.data import loading

POSIX = hasattr(os, "fork")
WORKERS = [0, 2] if POSIX else [0]


@pytest.fixture(autouse=True)
def few_processes_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines with one core would warn of two workers."""
    monkeypatch.setattr(data.dataloader, "_warn_of_crowd", lambda count: None)


def labels(batches: Any) -> list[Any]:
    return [y.tolist() for _, y in batches]


class TestResuming:
    """``state_dict`` and ``load_state_dict``."""

    @pytest.mark.parametrize("workers", WORKERS)
    @pytest.mark.parametrize("own", [False, True])
    @pytest.mark.parametrize("after", [0, 1, 3, 5])
    def test_the_rest_of_a_pass(self, workers: int, own: bool, after: int) -> None:
        """A new loader gives the batches that the old one had left, and then the passes that would have followed."""

        def loader() -> Any:
            generator = tc.Generator().manual_seed(5) if own else None
            return data.DataLoader(loading.Numbers(10), 2, shuffle=True, num_workers=workers, generator=generator)

        tc.manual_seed(1)
        first = loader()
        passing = iter(first)
        for _ in range(after):
            next(passing)
        file = io.BytesIO()
        tc.save({"loader": first.state_dict(), "random": tc.get_rng_state()}, file)
        rest = labels(passing)
        following = labels(first)
        tc.manual_seed(99)
        file.seek(0)
        state = tc.load(file)
        second = loader()
        second.load_state_dict(state["loader"])
        tc.set_rng_state(state["random"])
        assert second.state_dict()["batches"] == after
        assert labels(second) == rest
        assert labels(second) == following

    @pytest.mark.parametrize("workers", WORKERS)
    def test_after_a_pass(self, workers: int) -> None:
        """Between passes the state is the beginning of the next one."""
        first = data.DataLoader(loading.Numbers(6), 2, num_workers=workers)
        list(first)
        second = data.DataLoader(loading.Numbers(6), 2, num_workers=workers)
        second.load_state_dict(first.state_dict())
        assert labels(second) == [[0, 1], [2, 3], [4, 5]]

    @pytest.mark.skipif(not POSIX, reason="needs workers")
    @pytest.mark.parametrize("after", [0, 2])
    def test_a_later_pass_of_persistent_workers(self, after: int) -> None:
        """Their seed was drawn before the first pass: going on in the second one draws none."""

        def loader() -> Any:
            generator = tc.Generator().manual_seed(5)
            return data.DataLoader(
                loading.Numbers(10), 2, shuffle=True, num_workers=1, generator=generator, persistent_workers=True
            )

        first, second = loader(), loader()
        list(first)
        passing = iter(first) if after else None
        for _ in range(after):
            next(passing)
        second.load_state_dict(first.state_dict())
        rest = labels(passing or first)
        assert labels(second) == rest
        assert labels(second) == labels(first)

    def test_after_a_break(self) -> None:
        """A pass that was left counts where it was left."""
        loader = data.DataLoader(loading.Numbers(6), 2)
        for _ in loader:
            break
        assert loader.state_dict()["batches"] == 1

    @pytest.mark.parametrize("workers", WORKERS)
    def test_nothing_is_loaded_twice(self, workers: int) -> None:
        """What was given out before is left out without loading it."""

        class Fragile(loading.Numbers):
            def __getitem__(self, index: int) -> Any:
                assert index >= 4
                return super().__getitem__(index)

        state = {**data.DataLoader(loading.Numbers(8), 2).state_dict(), "batches": 2}
        loader = data.DataLoader(Fragile(8), 2, num_workers=workers)
        loader.load_state_dict(state)
        assert labels(loader) == [[4, 5], [6, 7]]

    @pytest.mark.parametrize("workers", WORKERS)
    def test_a_stream(self, workers: int) -> None:
        """A stream is run through to where it was."""
        loader = data.DataLoader(loading.Split(10), 2, num_workers=workers)
        whole = [x.tolist() for x in loader]
        loader.load_state_dict({**loader.state_dict(), "batches": 2})
        assert [x.tolist() for x in loader] == whole[2:]

    @pytest.mark.parametrize("workers", WORKERS)
    def test_seeds_of_items_go_on(self, workers: int) -> None:
        """With ``seed_items`` the random numbers after going on are those of the pass that was not cut off."""

        def loader() -> Any:
            return data.DataLoader(
                loading.Drawn(8), 2, num_workers=workers, seed_items=True, generator=tc.Generator().manual_seed(4)
            )

        first = loader()
        passing = iter(first)
        next(passing)
        state = first.state_dict()
        rest = [[x.tolist() for x in batch] for batch in passing]
        second = loader()
        second.load_state_dict(state)
        assert [[x.tolist() for x in batch] for batch in second] == rest

    @pytest.mark.parametrize(
        "state",
        [
            None,
            {},
            {"batches": 1},
            {"batches": -1, "generator": None, "base_seed": None},
            {"batches": "1", "generator": None, "base_seed": None},
        ],
    )
    def test_what_is_no_state(self, state: Any) -> None:
        """It is refused when it is loaded."""
        with pytest.raises(ValueError, match="load_state_dict: expected"):
            data.DataLoader(loading.Numbers()).load_state_dict(state)


class TestPinning:
    """``pin_memory``."""

    def test_without_an_accelerator(self) -> None:
        """A warning says that it is of no use, as PyTorch's does."""
        with pytest.warns(UserWarning, match="no accelerator is found"):
            assert len(list(data.DataLoader(loading.Numbers(4), 2, pin_memory=True))) == 2

    @pytest.mark.parametrize("workers", WORKERS)
    def test_batches_are_pinned(self, workers: int, monkeypatch: Any) -> None:
        """Tensors in any structure are, in order, and what has a ``pin_memory`` of its own is asked."""
        from tensorcore.utils.data import pinning

        monkeypatch.setattr(data.iterators, "_pin_device", lambda named: tc.device("cpu"))
        batches = list(data.DataLoader(loading.Numbers(8), 2, pin_memory=True, num_workers=workers))
        assert labels(batches) == [[0, 1], [2, 3], [4, 5], [6, 7]]
        expected = tc.ones(2).pin_memory().is_pinned()
        assert [x.is_pinned() for x, _ in batches] == [expected] * 4

        class Own:
            def pin_memory(self) -> str:
                return "pinned"

        made = pinning.pinned({"a": [tc.ones(1)], "b": (Own(), "text", b"bytes", 3)}, None)
        assert made["a"][0].is_pinned() is expected
        assert made["b"] == ["pinned", "text", b"bytes", 3]

    @pytest.mark.skipif(not POSIX, reason="needs workers")
    def test_the_thread_can_be_cancelled(self, monkeypatch: Any) -> None:
        """Leaving a pass ends the thread, even while the worker that it listens to is asleep."""
        import threading

        monkeypatch.setattr(data.iterators, "_pin_device", lambda named: tc.device("cpu"))
        before = threading.active_count()
        loader = iter(data.DataLoader(loading.Failing("sleep"), 5, num_workers=1, pin_memory=True))
        next(loader)
        assert threading.active_count() == before + 1
        loader._source.close()
        assert threading.active_count() == before
        loader.close()

    @pytest.mark.skipif(not POSIX, reason="needs workers")
    def test_errors_come_through(self, monkeypatch: Any) -> None:
        """What the thread hears of a worker's failure, the program is told."""
        monkeypatch.setattr(data.iterators, "_pin_device", lambda named: tc.device("cpu"))
        with pytest.raises(ValueError, match="It was loading sample 5"):
            list(data.DataLoader(loading.Failing("value"), 2, num_workers=2, pin_memory=True))


class TestArguments:
    """Wrong ones are refused when the loader is made."""

    @pytest.mark.parametrize(
        "options, error",
        [
            ({"num_workers": -1}, ValueError), ({"num_workers": "2"}, TypeError), ({"num_workers": True}, TypeError),
            ({"timeout": -1}, ValueError), ({"timeout": 5}, AssertionError), ({"timeout": "5"}, TypeError),
            ({"prefetch_factor": 2}, ValueError), ({"num_workers": 1, "prefetch_factor": -1}, ValueError),
            ({"num_workers": 1, "prefetch_factor": 0}, AssertionError), ({"persistent_workers": True}, ValueError),
            ({"multiprocessing_context": "fork"}, ValueError), ({"num_workers": 1, "multiprocessing_context": "knife"}, ValueError),
            ({"num_workers": 1, "multiprocessing_context": 3}, TypeError), ({"collate_fn": 3}, TypeError),
            ({"num_workers": 1, "worker_init_fn": 3}, TypeError), ({"generator": 3}, TypeError), ({"batch_size": 0}, ValueError),
            ({"batch_size": 1.5}, ValueError), ({"drop_last": 3}, ValueError),
        ],
    )  # fmt: skip
    def test_they_are_refused(self, options: Any, error: type) -> None:
        """Each with the type that PyTorch raises, there or later."""
        with pytest.raises(error):
            data.DataLoader(loading.Numbers(), **options)

    @pytest.mark.parametrize(
        "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
    )
    def test_what_cannot_be_changed(self, name: str) -> None:
        """What the loader was built from stays."""
        loader = data.DataLoader(loading.Numbers())
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, 1)

    @pytest.mark.oracle
    def test_a_crowd_of_workers_is_warned_of(self, torch: Any, monkeypatch: Any) -> None:
        """More workers than cores are, in PyTorch's words."""
        monkeypatch.undo()
        texts = []
        for library in (tc, torch):
            with pytest.warns(UserWarning, match="will create 1000 worker") as caught:
                library.utils.data.DataLoader([1], num_workers=1000)
            texts.append(str(caught[0].message))
        assert texts[0] == texts[1]


class TestDistributed:
    """DistributedSampler."""

    @pytest.mark.oracle
    @pytest.mark.parametrize("length", [0, 1, 5, 10, 11])
    @pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"drop_last": True}, {"seed": 5, "shuffle": True}])
    def test_the_parts_are_pytorchs(self, torch: Any, length: int, options: Any) -> None:
        """For every rank and two epochs."""
        found = []
        for library in (tc, torch):
            parts = []
            for rank in range(4):
                sampler = library.utils.data.DistributedSampler(range(length), 4, rank, **options)
                for epoch in range(2):
                    sampler.set_epoch(epoch)
                    try:
                        parts.append((len(sampler), list(sampler)))
                    except (ZeroDivisionError, AssertionError):
                        parts.append((len(sampler), []))
            found.append(parts)
        assert found[0] == found[1]

    def test_wrong_ranks(self) -> None:
        """A rank outside the group is refused, and so is no group."""
        with pytest.raises(ValueError, match="Invalid rank 2"):
            data.DistributedSampler(range(3), 2, 2)

    def test_by_its_module(self) -> None:
        """It is found where programs import it from, too."""
        from tensorcore.utils.data.distributed import DistributedSampler

        assert DistributedSampler is data.DistributedSampler
        assert [one for rank in range(2) for one in DistributedSampler(range(3), 2, rank, shuffle=False)] == [
            0,
            2,
            1,
            0,
        ]
