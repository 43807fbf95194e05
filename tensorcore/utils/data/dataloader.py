"""DataLoader: batches of a data set in the order of a sampler, made here or by worker processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.creation.random import Generator
from tensorcore.utils.data import iterators
from tensorcore.utils.data.collate import default_collate, default_convert
from tensorcore.utils.data.dataset import IterableDataset
from tensorcore.utils.data.fetch import get_worker_info
from tensorcore.utils.data.iterators import DatasetKind, HostIterator, generator_state
from tensorcore.utils.data.sampler import BatchSampler, EndlessSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info"]

# PyTorch's names of the iterators and of what they read, which loaders of other libraries derive from or ask for.
_ITERATORS = {
    "_DatasetKind": "DatasetKind",
    "_BaseDataLoaderIter": "LoaderIterator",
    "_SingleProcessDataLoaderIter": "HostIterator",
    "_MultiProcessingDataLoaderIter": "WorkersIterator",
}


def __getattr__(name: str) -> Any:
    if name not in _ITERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(iterators, _ITERATORS[name])


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader:
    """Batches of a data set.

    With workers, batches are made by processes that run ahead and cross in shared memory. A worker that raises makes
    the loader raise the same exception with the worker's traceback and the sample; one that dies makes it raise
    RuntimeError with the exit code. Workers start from PyTorch's seeds: ``base_seed + worker_id`` for Python's and this
    library's random numbers, where ``base_seed`` is drawn from the generator, and NumPy's from both.

    Args:
        dataset: with ``__getitem__`` and ``__len__``, or an IterableDataset, of which each worker has a copy.
        batch_size: how many samples in a batch; None gives single samples as they are.
        shuffle: draw the samples in random order, anew for each pass.
        sampler: gives the indices, instead of ``shuffle``.
        batch_sampler: gives lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: how many processes load ahead; 0 loads in this one.
        collate_fn: makes a batch of a list of samples.
        pin_memory: copy batches to page-locked memory, by a thread where there are workers; without a device other
            than the host, a warning says that this is of no use.
        drop_last: leave out a last batch that is smaller.
        timeout: seconds after which waiting for a worker raises RuntimeError; 0 waits for ever.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: how workers start: ``"fork"``, ``"forkserver"``, ``"spawn"`` or a context; where None,
            Python's own way, and never by a fork once a device other than the host is in use.
        generator: draws the order and the workers' seeds, and moves with each pass.
        prefetch_factor: how many batches each worker makes ahead; 2 where None.
        persistent_workers: keep the workers for the next pass.
        pin_memory_device: ignored, as in PyTorch.
        in_order: give batches in the sampler's order; else in the order in which they are ready.
        seed_items: start the random numbers of each sample from its place in the epoch, so that they do not depend on
            the number of workers, nor on where an epoch was resumed. For data sets with ``__getitem__``.
    """

    _fixed = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed_items: bool = False,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_callable("collate_fn", collate_fn)
        _check_callable("worker_init_fn", worker_init_fn)
        if generator is not None and not isinstance(generator, Generator):
            raise ArgumentTypeError(
                f"DataLoader: expected generator to be a torch.Generator, got {generator!r}; make one"
            )
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            for name, value, free in (
                ("shuffle", shuffle, (None, False)), ("sampler", sampler, (None,)),
                ("batch_sampler", batch_sampler, (None,)),
            ):  # fmt: skip
                if not any(value is one for one in free):
                    raise ArgumentError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ArgumentError("sampler option is mutually exclusive with shuffle, got both; pass one of them")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ArgumentError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                    "drop_last, got both; "
                    "pass batch_sampler alone"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ArgumentError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last, got both"
            )
        if iterable:
            sampler = EndlessSampler()
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.seed_items = seed_items
        self._iterable = iterable
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._iterator: Any = None
        self._promised: int | None = None
        self._progress: Any = None
        self._resume: dict[str, Any] | None = None
        self._alone = not num_workers or not _workers_possible()
        self._fixed = True
        if not self._alone:
            _warn_of_crowd(num_workers)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers start: a context of multiprocessing, or None for Python's own way."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self._context = None if context is None else _context(context, self.num_workers)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and name in _FIXED:
            raise ArgumentError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized, got {value!r}; "
                "make another loader"
            )
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self._alone:
            return HostIterator(self)
        from tensorcore.utils.data.iterators import WorkersIterator

        if not self.persistent_workers:
            return WorkersIterator(self)
        if self._iterator is None or not self._iterator.alive:
            self._iterator = WorkersIterator(self)
        else:
            self._iterator.restart(self)
        return self._iterator  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """Where the pass is: the batches given out so far, and the state that its order was drawn from.

        ``load_state_dict`` of a loader made in the same way goes on after the last batch that was given out, whatever
        the workers had made ahead. Between passes, the next pass is the same. The samples left out are not loaded,
        but for an IterableDataset, which cannot do without. A loader without a generator of its own draws
        from the default one, whose state is the program's to save.
        """
        progress = self._progress
        if self._resume is not None:
            return dict(self._resume)
        if progress is None or progress.finished:
            kept = self._iterator if self._iterator is not None and self._iterator.alive else None
            generator = None if self.generator is None else generator_state(self)
            return {"batches": 0, "generator": generator, "base_seed": None if kept is None else kept._base_seed}
        return {"batches": progress.batches, "generator": progress.generator, "base_seed": progress.base_seed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass go on where ``state_dict`` was called."""
        if not isinstance(state_dict, dict) or set(state_dict) != {"batches", "generator", "base_seed"}:
            raise ArgumentError(
                f"load_state_dict: expected what state_dict() of a DataLoader gave, got {str(state_dict)[:200]}; pass that"
            )
        if not isinstance(state_dict["batches"], int) or state_dict["batches"] < 0:
            raise ArgumentError(
                f"load_state_dict: expected batches to be a number of 0 or more, got {state_dict['batches']!r}; "
                "pass what state_dict() gave"
            )
        self._resume = dict(state_dict)

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)  # type: ignore[arg-type]
        # As in PyTorch, what was promised once is compared with what comes.
        length = self._promised = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _dataset_kind(self) -> int:
        return DatasetKind.Iterable if self._iterable else DatasetKind.Map


def _check_workers(num_workers: Any, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if not isinstance(num_workers, int) or isinstance(num_workers, bool):
        raise ArgumentTypeError(
            f"DataLoader: expected num_workers to be an int, got {num_workers!r}; use num_workers=0"
        )
    if num_workers < 0:
        raise ArgumentError(
            f"num_workers option should be non-negative, got {num_workers}; use num_workers=0 to disable "
            "multiprocessing."
        )
    if not isinstance(timeout, (int, float)):
        raise ArgumentTypeError(f"DataLoader: expected timeout to be seconds, got {timeout!r}; use 0 for no limit")
    if timeout < 0:
        raise ArgumentError(f"timeout option should be non-negative, got {timeout}; use 0 for no limit")
    if num_workers == 0 and prefetch_factor is not None:
        raise ArgumentError(
            f"prefetch_factor option could only be specified in multiprocessing, got {prefetch_factor}; leave it out"
        )
    if timeout and num_workers == 0:
        raise AssertionError(f"DataLoader: expected no timeout without workers, got {timeout}; leave it out")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ArgumentError(f"prefetch_factor option should be non-negative, got {prefetch_factor}; use 2")
    if prefetch_factor == 0:
        raise AssertionError("prefetch_factor must be greater than 0, got 0; use 2")
    if persistent_workers and num_workers == 0:
        raise ArgumentError("persistent_workers option needs num_workers > 0, got 0; leave it out")


def _check_callable(name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise ArgumentTypeError(f"DataLoader: expected {name} to be a function, got {value!r}; pass one or None")


def _context(context: Any, num_workers: int) -> Any:
    import multiprocessing
    from multiprocessing.context import BaseContext

    if not num_workers:
        raise ArgumentError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ArgumentError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        context = multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise ArgumentTypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context


def _workers_possible() -> bool:
    from tensorcore.utils.data.crew import supported

    if supported():
        return True
    warnings.warn(
        "DataLoader: expected a system whose processes can share memory by file handle, got another; samples are loaded "
        "in the main process",
        stacklevel=3,
    )
    return False


def _warn_of_crowd(num_workers: int) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or num_workers
    if num_workers > cores:
        warnings.warn(
            f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker in "
            f"current system is {cores}, which is smaller than what this DataLoader is going to create. Please be aware "
            "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to "
            "avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )
