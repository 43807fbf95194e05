"""Gradients in buckets: the order in which they are sent, where each has its place, and when a bucket is complete."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tensorcore.ops.creation.create import empty
from tensorcore.tensor import Tensor

__all__ = ["Bucket", "GradBucket", "make_buckets"]

_MB = 1 << 20
_LARGE = 1 * _MB  # bytes of a gradient that is worth a message of its own, and no copy
_FIRST = 1 * _MB  # bytes of the first bucket, which is small so that sending begins early


class Bucket:
    """Some parameters whose gradients are sent together.

    Attributes:
        buffer: the gradients, one after the other.
        views: each parameter's part of it, in the parameter's shape.
        parts: what is sent at once where no hook needs the whole: first and last position of what ``parameters`` has, a large
            one by itself, small ones that are neighbours together.
        stayed: of which parameters the gradient was averaged where it is, and not in the buffer.
        missing: of which parameters the gradient is still to come.
        sent: the Future of what comes back, None while the bucket is not complete.
    """

    def __init__(self, index: int, parameters: Sequence[tuple[int, Tensor]], dtype: Any = None) -> None:
        self.index = index
        self.numbers = [number for number, _ in parameters]
        self.parameters = [one for _, one in parameters]
        first = self.parameters[0]
        self.ends = list(accumulate((one.numel() for one in self.parameters), initial=0))
        self.parts: list[tuple[int, int]] = []
        for position, one in enumerate(self.parameters):
            if self.parts and max(one.nbytes, self.parameters[position - 1].nbytes) < _LARGE:
                self.parts[-1] = self.parts[-1][0], position
            else:
                self.parts.append((position, position))
        self.buffer: Any = empty(self.ends[-1], dtype=dtype or first.dtype, device=first.device)
        self.views = [self.between(i, i).view(one.shape) for i, one in enumerate(self.parameters)]
        self.missing: set[int] = set()
        self.stayed: set[int] = set()
        self.sent: Any = None

    def between(self, first: int, last: int) -> Any:
        """The part of the buffer for these positions of ``parameters``."""
        return self.buffer[self.ends[first] : self.ends[last + 1]]

    def reset(self) -> None:
        """Expect the gradients of all parameters."""
        self.missing = set(self.numbers)
        self.stayed = set()
        self.sent = None


class GradBucket:
    """A bucket as communication hooks see it."""

    def __init__(self, bucket: Bucket, last: bool) -> None:
        self._bucket, self._last = bucket, last
        self._buffer = bucket.buffer

    def index(self) -> int:
        """The bucket's number, in the order of sending."""
        return self._bucket.index

    def buffer(self) -> Any:
        """All its gradients in one dim."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Have ``buffer`` answer with this tensor from now on."""
        self._buffer = buffer

    def gradients(self) -> list[Any]:
        """The gradients in their parameters' shapes."""
        return list(self._bucket.views)

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Whether no other one is sent after it."""
        return self._last


def make_buckets(parameters: Sequence[Tensor], cap: float, sent_in: Any = None) -> list[Bucket]:
    """Buckets of at most ``cap`` MB, of one dtype and device each, the last parameters first: backward reaches them first.

    ``sent_in``: the dtype of floating gradients in the buckets, that of their parameters where None.
    """
    groups: list[list[tuple[int, Tensor]]] = []
    open_ones: dict[Any, tuple[list[tuple[int, Tensor]], int]] = {}
    for number in reversed(range(len(parameters))):
        one = parameters[number]
        key = (one.dtype, one.device)
        group, size = open_ones.get(key, ([], 0))
        limit = min(_FIRST, cap * _MB) if groups and group is groups[0] else cap * _MB
        if not group or size + one.nbytes > limit:
            group, size = [], 0
            groups.append(group)
        group.append((number, one))
        open_ones[key] = group, size + one.nbytes
    floating = [group[0][1].dtype.is_floating_point for group in groups]
    return [Bucket(index, group, sent_in if floating[index] else None) for index, group in enumerate(groups)]
