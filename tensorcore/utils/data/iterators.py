"""One pass through a loader: in this process, or by workers that run ahead."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

from tensorcore.backend.registry import accelerator
from tensorcore.ops.creation.random import default_generator
from tensorcore.utils.data.fetch import Fetcher, Recipe
from tensorcore.utils.data.sampler import drawn_seed

__all__ = [
    "Borrowed",
    "DatasetKind",
    "HostIterator",
    "LoaderIterator",
    "Progress",
    "WorkersIterator",
    "generator_state",
]


class Progress:
    """How far an epoch is.

    Attributes:
        batches: how many were given out.
        generator: the state of the generator that the epoch draws from, when it began.
        base_seed: of the workers, where they have theirs from an epoch before; None where this one drew it.
        finished: whether there are no more.
    """

    __slots__ = ("base_seed", "batches", "finished", "generator")

    def __init__(self, generator: Any, base_seed: int | None) -> None:
        self.batches, self.generator, self.base_seed, self.finished = 0, generator, base_seed, False


class LoaderIterator:
    """The batches of one epoch."""

    def __init__(self, loader: Any) -> None:
        if not hasattr(loader, "_resume"):
            loader = Borrowed(loader)
        self._loader = loader
        self._recipe = Recipe(
            loader.dataset, loader.collate_fn, loader.batch_sampler is not None, loader._iterable, loader.drop_last,
            loader.seed_items,
        )  # fmt: skip
        self._pin: Any = None
        if loader.pin_memory:
            self._pin = _pin_device(loader.pin_memory_device)
        self._begin(loader, None)

    def _begin(self, loader: Any, base_seed: int | None) -> None:
        """Start an epoch, or go on in the one that a state was loaded of; ``base_seed`` is that of living workers."""
        self._samples = self._skip = 0
        self._promised = loader._promised
        resumed, loader._resume = loader._resume, None
        state = resumed or {"batches": 0, "generator": None, "base_seed": base_seed}
        generator, batches, base_seed = loader.generator or default_generator, state["batches"], state["base_seed"]
        now = generator.get_state()
        back = state["generator"] is not None
        if back:
            generator.set_state(state["generator"])
        self._progress = loader._progress = Progress(state["generator"] if back else now, base_seed)
        # In this order, as PyTorch does: both may draw from one generator.
        self._indices: Iterator[Any] = iter(loader._index_sampler)
        self._base_seed = drawn_seed(loader.generator) if base_seed is None else base_seed
        if loader.num_workers:
            # PyTorch asks the sampler twice here, which is seen where one draws as soon as it is asked.
            self._indices = iter(loader._index_sampler)
        if resumed is not None:
            self._leave_out(batches)
        if back and batches and loader.generator is None:
            generator.set_state(now)  # it is everybody's, and has drawn this pass's numbers: only this loader goes back

    def _leave_out(self, batches: int) -> None:
        self._progress.batches = batches
        if self._recipe.iterable:
            self._skip = batches
            return
        for indices in itertools.islice(self._indices, batches):
            self._samples += self._size(indices)
        # A sampler draws when it is first asked: that must happen while the generator is where it was.
        self._indices = itertools.chain(list(itertools.islice(self._indices, 1)), self._indices)

    def __iter__(self) -> LoaderIterator:
        return self

    def __next__(self) -> Any:
        progress = self._progress
        try:
            while self._skip:
                self._next()
                self._skip -= 1
            made = self._next()
        except StopIteration:
            progress.finished = True
            raise
        progress.batches += 1
        if self._promised is not None and progress.batches > self._promised:
            self._warn_of_length()
        return made

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled; pickle the DataLoader's state_dict()")

    def _next(self) -> Any:
        raise NotImplementedError

    def _size(self, indices: Any) -> int:
        return len(indices) if self._recipe.batched else 1

    def _warn_of_length(self) -> None:
        text = (
            f"Length of IterableDataset {self._recipe.dataset} was reported to be {self._promised} (when accessing "
            f"len(dataloader)), but {self._progress.batches} samples have been fetched. "
        )
        if self._loader.num_workers:
            text += "Each worker has a copy of it: let each give its own part, by get_worker_info()."
        warnings.warn(text, stacklevel=3)


class DatasetKind:
    """How PyTorch's loaders say in ``_dataset_kind`` whether their data set gives samples by index or one after another."""

    Map, Iterable = 0, 1


class Borrowed:
    """A loader of another library, that has the attributes which PyTorch's iterators read, with those that these read."""

    seed_items = False
    in_order = True  # where the loader is older than the setting
    _promised = _resume = None

    def __init__(self, loader: Any) -> None:
        self._given = loader
        self._iterable = loader._dataset_kind == DatasetKind.Iterable
        self.batch_sampler = loader._index_sampler if loader._auto_collation else None
        if hasattr(loader, "in_order"):
            self.in_order = loader.in_order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


class HostIterator(LoaderIterator):
    """Batches made in this process when they are asked for."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._fetcher: Any = None

    def _next(self) -> Any:
        indices = next(self._indices)
        if self._fetcher is None:
            self._fetcher = Fetcher(self._recipe, self._base_seed)
        made = self._fetcher.fetch(indices, self._samples)
        self._samples += self._size(indices)
        return made if self._pin is None else self._pinned(made)

    def _pinned(self, made: Any) -> Any:
        from tensorcore.utils.data.pinning import pinned

        return pinned(made, self._pin)


class WorkersIterator(LoaderIterator):
    """Batches made by worker processes, ``prefetch_factor`` of each ahead of the one that is asked for."""

    def __init__(self, loader: Any) -> None:
        from tensorcore.utils.data.crew import Crew, context_for

        super().__init__(loader)
        loader = self._loader
        self._count, self._prefetch = loader.num_workers, loader.prefetch_factor
        context = context_for(loader.multiprocessing_context)
        self._crew = Crew(context, self._recipe, loader.worker_init_fn, self._base_seed, self._count, self._prefetch)
        self._source: Any = self._crew
        self._end = weakref.finalize(self, self._crew.close)
        if self._pin is not None:
            from tensorcore.utils.data.pinning import Pinner

            self._source = Pinner(self._crew, self._pin)
            self._end.detach()
            self._end = weakref.finalize(self, _close, self._source, self._crew)
        self._epoch = -1
        self._prime()

    def restart(self, loader: Any) -> None:
        """The next epoch with the same workers."""
        self._begin(loader, self._base_seed)
        self._prime()

    def _prime(self) -> None:
        self._epoch += 1
        self._sent = self._expected = 0
        self._tasks: dict[int, int] = {}  # who does what was sent
        self._kept: dict[int, Any] = {}  # what came before its turn
        self._active = [True] * self._count
        self._busy = [0] * self._count
        self._turns = itertools.cycle(range(self._count))
        for _ in range(self._prefetch * self._count):
            self._give()

    def _next(self) -> Any:
        while True:
            while self._expected < self._sent:
                worker = self._tasks.get(self._expected)
                if worker is not None and (self._active[worker] or self._expected in self._kept):
                    break
                self._tasks.pop(self._expected, None)  # its worker has nothing left
                self._expected += 1
            else:
                if not self._loader.persistent_workers:
                    self.close()
                raise StopIteration
            if self._expected in self._kept:
                task, answer = self._expected, self._kept.pop(self._expected)
                self._expected += 1
                return self._taken(task, answer)
            worker, task, answer = self._heard()
            if answer is StopIteration:
                self._active[worker] = False
                self._give()
            elif task == self._expected or not self._loader.in_order:
                self._expected += task == self._expected
                return self._taken(task, answer)
            else:
                self._kept[task] = answer

    def _heard(self) -> tuple[int, int, Any]:
        timeout = self._loader.timeout or None
        while True:
            try:
                heard = self._source.hear(timeout)
            except RuntimeError:
                self.close()
                raise
            if heard is None:
                raise RuntimeError(
                    f"DataLoader timed out after {timeout} seconds; expected batch {self._expected} by then, raise "
                    "timeout or look what the workers wait for"
                )
            worker, epoch, task, answer = heard
            if epoch == self._epoch:  # else it is left over from an epoch that was not finished
                return worker, task, answer

    def _give(self) -> None:
        """Send the next indices to the next worker that has time."""
        for _ in range(self._count):
            worker = next(self._turns)
            room = self._prefetch * self._count // max(sum(self._active), 1)
            if self._active[worker] and (self._loader.in_order or self._busy[worker] < room):
                break
        else:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        self._crew.give(worker, self._epoch, self._sent, indices, self._samples)
        self._samples += self._size(indices)
        self._tasks[self._sent] = worker
        self._busy[worker] += 1
        self._sent += 1

    def _taken(self, task: int, answer: Any) -> Any:
        from tensorcore.utils.data.worker import Failure

        self._busy[self._tasks.pop(task)] -= 1
        self._give()
        if isinstance(answer, Failure):
            answer.raise_again()
        return answer

    @property
    def alive(self) -> bool:
        """Whether the workers can go on with another epoch."""
        return self._end.alive

    def close(self) -> None:
        """End the workers."""
        self._end()


def _close(pinner: Any, crew: Any) -> None:
    pinner.close()
    crew.close()


def _pin_device(named: str) -> Any:
    if named:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device, "
            f"ignore pin_memory_device='{named}'.",
            stacklevel=5,
        )
    found = accelerator()
    if found is None:
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
            stacklevel=5,
        )
    return found


def generator_state(loader: Any) -> Any:
    """Where the generator that an epoch draws from is."""
    return (loader.generator or default_generator).get_state()
