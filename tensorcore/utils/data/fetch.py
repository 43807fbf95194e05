"""Batches from a data set: what the main process and the workers do alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorcore.ops.creation.random import default_generator
from tensorcore.utils.data.collate import default_collate
from tensorcore.utils.data.dataset import collated

__all__ = ["Fetcher", "Recipe", "WorkerInfo", "get_worker_info", "seed_everything", "set_worker_info"]


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker process knows of itself.

    Attributes:
        id: its number, from 0 on.
        num_workers: how many there are.
        seed: what its random numbers started from.
        dataset: the data set as this process has it.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What is known of the worker process that asks; None in the main process."""
    return _info


def set_worker_info(info: WorkerInfo) -> None:
    """Say that this process is a worker."""
    global _info
    _info = info


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a loader makes batches.

    Attributes:
        dataset, collate, drop_last: the loader's own.
        batched: whether samples are collated; single ones are converted.
        iterable: whether the data set gives samples one after the other.
        seed_items: whether each sample starts from a seed of its own.
    """

    dataset: Any
    collate: Callable[[Any], Any]
    batched: bool
    iterable: bool
    drop_last: bool
    seed_items: bool = False


class Fetcher:
    """Makes batches of the samples that it is asked for; raises StopIteration at the end of an iterable data set.

    Args:
        base_seed: what the seeds of samples are counted from, where they have seeds of their own.
        note: called with each sample's place in its batch before it is loaded.
    """

    def __init__(self, recipe: Recipe, base_seed: int, note: Callable[[int], None] | None = None) -> None:
        self.recipe = recipe
        self.base_seed = base_seed
        self.note = note
        self.item: Any = None  # the index of the sample that is being loaded, or how many an iterable gave before
        self.count = 0
        self.stream = iter(recipe.dataset) if recipe.iterable else None

    def fetch(self, indices: Any, start: int = 0) -> Any:
        """The batch of these indices, of which the first is the ``start``th of the epoch."""
        recipe = self.recipe
        if not recipe.seed_items:
            return self._made(indices, None)
        with _restored_randomness():
            return self._made(indices, self.base_seed + start)

    def _made(self, indices: Any, seed: int | None) -> Any:
        recipe = self.recipe
        if recipe.iterable:
            return recipe.collate(self._streamed(indices, seed))
        dataset = recipe.dataset
        if not recipe.batched:
            self._begin(indices, 0, seed)
            return recipe.collate(dataset[indices])
        if seed is None:
            self.item = indices
            made = collated(dataset, indices) if recipe.collate is default_collate else None
            if made is not None:
                return made
            several = getattr(dataset, "__getitems__", None)
            if callable(several):
                return recipe.collate(several(indices))
        samples = []
        for place, index in enumerate(indices):
            self._begin(index, place, seed)
            samples.append(dataset[index])
        self.item = indices
        return recipe.collate(samples)

    def _streamed(self, indices: Any, seed: int | None) -> Any:
        stream, recipe = self.stream, self.recipe
        assert stream is not None
        if not recipe.batched:
            self._begin(self.count, 0, seed)
            self.count += 1
            return next(stream)
        samples = []
        for place, _ in enumerate(indices):
            self._begin(self.count, place, seed)
            try:
                samples.append(next(stream))
            except StopIteration:
                break
            self.count += 1
        if not samples or (recipe.drop_last and len(samples) < len(indices)):
            raise StopIteration
        return samples

    def _begin(self, item: Any, place: int, seed: int | None) -> None:
        self.item = item
        if self.note is not None:
            self.note(place)
        if seed is not None:
            seed_everything(seed + place)


def seed_everything(seed: int, numpy: Any = None) -> None:
    """Start Python's, NumPy's and this library's random numbers from a seed.

    Args:
        numpy: the words to seed NumPy with, where they are not to follow from ``seed``.
    """
    random.seed(seed)
    default_generator.manual_seed(seed)
    np.random.seed(seed & 0xFFFFFFFF if numpy is None else numpy)


@contextmanager
def _restored_randomness() -> Iterator[None]:
    """Leave the process's random numbers where they were."""
    before = random.getstate(), default_generator.get_state(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        default_generator.set_state(before[1])
        np.random.set_state(before[2])
