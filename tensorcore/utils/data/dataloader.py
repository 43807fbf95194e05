"""DataLoader: batches of a data set, in the order of a sampler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.random import Generator
from tensorcore.utils.data.collate import default_collate, default_convert
from tensorcore.utils.data.dataset import IterableDataset, collated
from tensorcore.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler, drawn_seed

__all__ = ["DataLoader", "get_worker_info"]


def get_worker_info() -> None:
    """None: samples are loaded in the main process."""
    return None


class DataLoader:
    """Batches of a data set.

    Args:
        dataset: with ``__getitem__`` and ``__len__``, or an IterableDataset.
        batch_size: how many samples in a batch; None gives single samples as they are.
        shuffle: draw the samples in random order, anew for each pass.
        sampler: gives the indices, instead of ``shuffle``.
        batch_sampler: gives lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: processes that PyTorch would load in; here the samples are the same and come from the main
            process, which is said once as a warning.
        collate_fn: makes a batch of a list of samples.
        drop_last: leave out a last batch that is smaller.
        generator: draws the order, and moves with each pass.
        pin_memory, timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers,
            pin_memory_device, in_order: checked as PyTorch checks them; they are about workers and transfers.
    """

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
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
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
        if sampler is None and not iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler if sampler is not None else (), batch_size, drop_last)
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
        self._iterable = iterable
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        if num_workers and not _Told.workers:
            _Told.workers = True
            warnings.warn(
                f"DataLoader: expected num_workers=0, got {num_workers}; samples are loaded in the main "
                "process, in the same "
                f"order, and worker_init_fn is not called",
                stacklevel=2,
            )

    def __iter__(self) -> Iterator[Any]:
        # PyTorch draws a seed for its workers here, also where there are none; later draws must be the same as its.
        indices = iter(self._index_sampler) if not self._iterable else None
        drawn_seed(self.generator)
        return self._streamed() if indices is None else self._fetched(indices)

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)  # type: ignore[arg-type]
        length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _fetched(self, indices: Iterator[Any]) -> Iterator[Any]:
        dataset, collate = self.dataset, self.collate_fn
        if self.batch_sampler is None:
            for index in indices:
                yield collate(dataset[index])
            return
        several = getattr(dataset, "__getitems__", None)
        for batch in indices:
            made = collated(dataset, batch) if collate is default_collate else None
            if made is None:
                made = collate(several(batch) if callable(several) else [dataset[i] for i in batch])
            yield made

    def _streamed(self) -> Iterator[Any]:
        samples, collate, size = iter(self.dataset), self.collate_fn, self.batch_size
        if size is None:
            for sample in samples:
                yield collate(sample)
            return
        while batch := list(islice(samples, size)):
            if len(batch) < size and self.drop_last:
                return
            yield collate(batch)


class _Told:
    workers = False


def _check_workers(num_workers: Any, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if not isinstance(num_workers, int):
        raise ArgumentTypeError(
            f"DataLoader: expected num_workers to be an int, got {num_workers!r}; use num_workers=0"
        )
    if num_workers < 0:
        raise ArgumentError(
            f"num_workers option should be non-negative, got {num_workers}; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ArgumentError(f"timeout option should be non-negative, got {timeout}; use 0 for no limit")
    if num_workers == 0 and prefetch_factor is not None:
        raise ArgumentError(
            f"prefetch_factor option could only be specified in multiprocessing, got {prefetch_factor}; leave it out"
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ArgumentError(f"prefetch_factor option should be non-negative, got {prefetch_factor}; use 2")
    if persistent_workers and num_workers == 0:
        raise ArgumentError("persistent_workers option needs num_workers > 0, got 0; leave it out")
