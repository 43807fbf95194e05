"""Samplers: in which order the samples of a data set are drawn. The same seed draws PyTorch's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.creation.create import as_tensor
from tensorcore.ops.creation.random import Generator, default_generator

__all__ = [
    "BatchSampler", "EndlessSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
    "drawn_seed",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)


def drawn_seed(generator: Generator | None) -> int:
    """A number from a generator to seed another one with."""
    return int((_checked(generator) or default_generator).host.random((), dtypes.int64))


class Sampler(Generic[T_co]):
    """The base of samplers; a subclass writes ``__iter__``, which yields indices, and may write ``__len__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """All samples in their own order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class EndlessSampler(Sampler[None]):
    """None for ever: an iterable data set ends when it wants."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class RandomSampler(Sampler[int]):
    """Samples in random order.

    Args:
        data_source: the data set.
        replacement: draw each sample anew from all of them.
        num_samples: how many to draw; the data set's length where None.
        generator: draws the order; where None, one that is seeded from the default generator at each start.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = _checked(generator)
        if not isinstance(replacement, bool):
            raise ArgumentTypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many samples one pass draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        generator = (self.generator or Generator().manual_seed(drawn_seed(None))).host
        if self.replacement:
            for _ in range(wanted // 32):
                yield from generator.integers((32,), dtypes.int64, 0, n).tolist()
            yield from generator.integers((wanted % 32,), dtypes.int64, 0, n).tolist()
            return
        for _ in range(wanted // n):
            yield from generator.permutation(n).tolist()
        # Drawn even where nothing of it is used: a generator that is shared must move as far as PyTorch's.
        yield from generator.permutation(n).tolist()[: wanted % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = _checked(generator)

    def __iter__(self) -> Iterator[int]:
        for i in (self.generator or default_generator).host.permutation(len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn by weight.

    Args:
        weights: one for each sample; they need not sum to 1.
        num_samples: how many to draw.
        replacement: whether an index may be drawn again.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ArgumentError(f"replacement should be a boolean value, but got replacement={replacement}")
        values = as_tensor(weights, dtype=dtypes.float64)
        if values.dim() != 1:
            raise ArgumentError(
                f"weights should be a 1d sequence but given weights have shape {tuple(values.shape)}; flatten them"
            )
        self.weights = values
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = _checked(generator)

    def __iter__(self) -> Iterator[int]:
        generator = (self.generator or default_generator).host
        yield from generator.multinomial(self.weights.numpy(force=True), (self.num_samples,), self.replacement).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices from another sampler.

    Args:
        sampler: gives the indices.
        batch_size: how many in each list.
        drop_last: leave out a last list that is shorter.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ArgumentError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _checked(generator: Any) -> Any:
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentTypeError(f"generator should be a torch.Generator, but got {generator!r}; make one, or pass None")
    return generator


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ArgumentError(f"{name} should be a positive integer value, but got {name}={value!r}")
