"""Sequences of several lengths in one tensor: padded to the longest one, or packed without padding."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.ops.creation.create import arange, from_numpy, full, tensor
from tensorcore.ops.shapes.join import stack
from tensorcore.ops.shapes.pad import pad
from tensorcore.tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

_Packed = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """Sequences without padding: first the first step of all, then the second of those that have one, and so on.

    Attributes:
        data: the rows of all steps.
        batch_sizes: how many rows each step has, on the host.
        sorted_indices: in what order the batch was put, the longest sequence first; None if it was so already.
        unsorted_indices: the way back.
    """

    __slots__ = ()

    def __new__(
        cls, data: Tensor, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # made from the pair of the two
            data, batch_sizes = data[0], data[1]  # type: ignore[index]
        elif not _on_host(batch_sizes):
            raise ArgumentError(
                f"PackedSequence: batch_sizes should always be on CPU, got them on {batch_sizes.device}; "
                f"move them with .cpu()"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with ``data.to(...)`` of these arguments, the indices on its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order = [None if one is None else one.to(data.device) for one in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *order)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on the host."""
        return self.to(self.data.cpu(*args, **kwargs).device)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on a GPU."""
        return self.to(self.data.cuda(*args, **kwargs).device)

    def pin_memory(self) -> PackedSequence:
        """The same with its data in page-locked memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def double(self) -> PackedSequence:
        """The same in float64."""
        return self.to(dtypes.float64)

    def float(self) -> PackedSequence:
        """The same in float32."""
        return self.to(dtypes.float32)

    def half(self) -> PackedSequence:
        """The same in float16."""
        return self.to(dtypes.float16)

    def long(self) -> PackedSequence:
        """The same in int64."""
        return self.to(dtypes.int64)

    def int(self) -> PackedSequence:
        """The same in int32."""
        return self.to(dtypes.int32)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a GPU."""
        return bool(self.data.is_cuda)  # type: ignore[attr-defined]

    def is_pinned(self) -> bool:
        """Whether the data are in page-locked memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each element went: the permutation that undoes this one."""
    if permutation is None:
        return None
    found = arange(permutation.numel(), dtype=permutation.dtype, device=permutation.device)
    return found.index_copy(0, permutation, found)  # type: ignore[no-any-return, attr-defined]


def _on_host(counts: Tensor) -> bool:
    """Whether numbers are there without a copy from a device, or will be: lazy ones of the host's are."""
    return (counts.device.wraps or counts.device).capabilities.host


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """A padded batch without its padding.

    Args:
        input: (steps, batch, *), or (batch, steps, *) with ``batch_first``.
        lengths: of each sequence, on the host.
        enforce_sorted: raise where the longest does not come first, instead of sorting.
    """
    if isinstance(lengths, Tensor):
        if not _on_host(lengths):
            raise DtypeError(
                f"pack_padded_sequence: 'lengths' argument should be a 1D CPU int64 tensor, got one on {lengths.device}"
            )
        counts = np.asarray(lengths.tolist(), np.int64)
    else:
        counts = np.asarray([int(one) for one in lengths], np.int64)
    order = None
    if not enforce_sorted:
        places = np.argsort(-counts, kind="stable")
        order = from_numpy(places).to(input.device)
        counts = counts[places]
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch, *_ = input.shape
    if len(counts) != batch:
        raise ShapeError(
            f"pack_padded_sequence: Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} "
            f"(batch_size={batch})"
        )
    if not len(counts) or counts.min() <= 0:
        raise UsageError(
            f"pack_padded_sequence: Length of all samples has to be greater than 0, got {counts.tolist()}; drop the others"
        )
    if (np.diff(counts) > 0).any():
        raise UsageError(
            f"pack_padded_sequence: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True, "
            f"got {counts.tolist()}; pass `enforce_sorted=False`"
        )
    if counts[0] > steps:
        raise ShapeError(
            f"pack_padded_sequence: Expected lengths up to the {steps} steps of the input, got {counts.tolist()}"
        )
    sizes = (counts[None, :] > np.arange(counts[0])[:, None]).sum(1)
    rows = input.reshape(steps * batch, *input.shape[2:])
    if counts[-1] == steps:
        data = rows
    else:
        data = rows.index_select(0, from_numpy(_rows(sizes, batch)).to(input.device))
    return PackedSequence(data, from_numpy(sizes), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The batch that was packed, and the lengths of its sequences.

    Args:
        padding_value: what stands behind the shorter sequences.
        total_length: of the padded batch; that of the longest sequence where None.
    """
    data, sizes = sequence.data, np.asarray(sequence.batch_sizes.tolist(), np.int64)
    steps, batch = len(sizes), int(sizes[0])
    if total_length is not None:
        if total_length < steps:
            raise ArgumentError(
                f"Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    shape = (steps * batch, *data.shape[1:])
    made = full(shape, padding_value, dtype=data.dtype, device=data.device)
    made = made.index_copy(0, from_numpy(_rows(sizes, batch)).to(data.device), data)
    made = made.reshape(steps, batch, *data.shape[1:])
    lengths = from_numpy((sizes[:, None] > np.arange(batch)[None, :]).sum(0))
    if batch_first:
        made = made.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        # Row-major, as in PyTorch, and not a transposed view: what dropout draws for an element follows the memory.
        made = made.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices.cpu())  # type: ignore[attr-defined]
    return made, lengths


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Tensors (length, *) of several lengths as one: (longest, batch, *), or (batch, longest, *) with ``batch_first``.

    Args:
        padding_side: whether the padding stands to the "right" of the shorter ones, or to the "left".
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)  # type: ignore[attr-defined]
    elif not isinstance(sequences, Iterable):
        raise UsageError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = list(sequences)
    if padding_side not in ("right", "left"):
        raise UsageError(f"padding_side should be either 'right' or 'left', but got {padding_side}")
    if not sequences:
        raise UsageError("pad_sequence: received an empty list of sequences, got nothing to pad; pass at least one")
    longest = max(one.shape[0] for one in sequences)
    padded = []
    for one in sequences:
        missing = longest - one.shape[0]
        around = (missing, 0) if padding_side == "left" else (0, missing)
        one = one if one.dtype is sequences[0].dtype else one.to(sequences[0].dtype)
        padded.append(pad(one, (0, 0) * (one.dim() - 1) + around, value=padding_value) if missing else one)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The tensors that ``pad_sequence`` made one of, by their lengths."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    counts = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    return [row[:length] for row, length in zip(rows.unbind(0), counts, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Tensors (length, *) of several lengths, packed."""
    if not isinstance(sequences, (list, tuple)):
        raise ArgumentTypeError(
            f"pack_sequence: expected a list of Tensors, got {type(sequences).__name__}; pass a list"
        )
    lengths = tensor([one.shape[0] for one in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors that ``pack_sequence`` packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def _rows(sizes: np.ndarray, batch: int) -> np.ndarray:
    """Where the packed rows stand among those of the padded (steps, batch)."""
    return np.concatenate([step * batch + np.arange(count) for step, count in enumerate(sizes)])
