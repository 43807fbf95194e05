"""Storages: one object per memory, bytes and elements of it, and the device's counts."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tensorcore as tc


class TestIdentity:
    """A storage is the memory, whatever tensor it was asked of."""

    def test_views_have_the_storage_of_their_base(self) -> None:
        """A slice, a transpose and a detached tensor show one storage."""
        x = tc.arange(6.0)
        storage = x.untyped_storage()
        assert x.narrow(0, 2, 2).untyped_storage() is storage
        assert x.reshape(2, 3).t().untyped_storage() is storage
        assert x.detach().untyped_storage()._cdata == storage._cdata

    def test_a_copy_has_another_one(self) -> None:
        """A clone, and the memory of an equal tensor, are another storage."""
        x = tc.arange(6.0)
        assert x.clone().untyped_storage() is not x.untyped_storage()
        assert x.storage() == x.storage()
        assert x.storage() != x.clone().storage()

    def test_pointers_of_views(self) -> None:
        """A view begins at the base's address plus its offset in bytes."""
        x = tc.arange(6, dtype=tc.int16)
        part = x.narrow(0, 2, 3)
        assert part.data_ptr() - x.data_ptr() == 4
        assert part.storage_offset() == 2
        assert part.untyped_storage().data_ptr() == x.data_ptr()

    def test_is_set_to_wants_memory_and_layout(self) -> None:
        """The same elements in the same layout, and nothing less."""
        x = tc.arange(6.0)
        assert x.is_set_to(x.detach())
        assert x.is_set_to(x.reshape(6))
        assert not x.is_set_to(x.reshape(2, 3))
        assert not x.is_set_to(x.clone())
        with pytest.raises(TypeError, match="must be Tensor"):
            x.is_set_to(3)


class TestBytes:
    """``untyped_storage`` shows bytes."""

    def test_size_and_elements(self) -> None:
        """Sizes count bytes, indices read them, from the end too."""
        storage = tc.tensor([1, 258], dtype=tc.int16).untyped_storage()
        assert (len(storage), storage.nbytes(), storage.size(), storage.element_size()) == (4, 4, 4, 1)
        assert storage.tolist() == [1, 0, 2, 1]
        assert (storage[2], storage[-1]) == (2, 1)

    def test_writes_are_seen_by_tensors(self) -> None:
        """A byte, a slice and a fill go into the tensor's memory, and a slice shares it."""
        x = tc.zeros(2, dtype=tc.int16)
        storage = x.untyped_storage()
        storage[0] = 5
        storage[2:4].fill_(1)
        assert x.tolist() == [5, 257]
        storage.copy_(tc.tensor([7, 8], dtype=tc.int16).untyped_storage())
        assert x.tolist() == [7, 8]

    def test_made_from_a_size_or_from_bytes(self) -> None:
        """The constructor takes either."""
        assert tc.UntypedStorage(5).nbytes() == 5
        assert tc.UntypedStorage([1, 2, 255]).tolist() == [1, 2, 255]

    @pytest.mark.parametrize(
        "call, error",
        [
            (lambda s: s["a"], TypeError),
            (lambda s: s[4], IndexError),
            (lambda s: s[::2], RuntimeError),
            (lambda s: s.copy_(tc.UntypedStorage(3)), RuntimeError),
            (lambda s: s.resize_(8), RuntimeError),
            (lambda s: s.share_memory_(), RuntimeError),
            (lambda s: tc.UntypedStorage(-1), RuntimeError),
            (lambda s: tc.UntypedStorage("abc"), TypeError),
        ],
    )
    def test_refusals_leave_the_bytes(self, call: Any, error: type) -> None:
        """What is refused changes nothing."""
        storage = tc.UntypedStorage([1, 2, 3, 4])
        with pytest.raises(error):
            call(storage)
        assert storage.tolist() == [1, 2, 3, 4]


class TestElements:
    """``storage`` shows elements of the tensor's dtype."""

    def test_elements_of_the_whole_storage(self) -> None:
        """A view's storage has all elements of its base."""
        part = tc.arange(4.0).narrow(0, 1, 2).storage()
        assert part.tolist() == list(part) == [0.0, 1.0, 2.0, 3.0]
        assert (len(part), part.nbytes(), part.element_size(), part.dtype) == (4, 16, 4, tc.float32)
        assert (part[1], part[-1]) == (1.0, 3.0)

    def test_writes_convert(self) -> None:
        """Elements are written in the storage's dtype; a copy converts from another."""
        x = tc.zeros(3)
        x.storage()[1] = 2
        x.storage().copy_(tc.tensor([1, 2, 3]).storage())
        assert x.tolist() == [1.0, 2.0, 3.0]
        x.storage().fill_(4)
        assert x.tolist() == [4.0, 4.0, 4.0]

    def test_bfloat16(self) -> None:
        """Elements of bfloat16 come as Python floats."""
        values = tc.tensor([1.5, 2], dtype=tc.bfloat16).storage().tolist()
        assert values == [1.5, 2.0]
        assert type(values[0]) is float

    def test_slices_are_refused(self) -> None:
        """As in PyTorch, only bytes can be sliced."""
        with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
            tc.ones(3).storage()[1:]

    @pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
    def test_it_prints_as_in_pytorch(self, torch: Any) -> None:
        """Both kinds print as PyTorch's do."""
        for make in (lambda m: m.arange(3.0).untyped_storage(), lambda m: m.arange(3.0, dtype=m.float64).storage()):
            assert repr(make(tc)) == repr(make(torch))


class TestSet:
    """``set_`` shows other memory."""

    def test_a_part_of_a_storage(self) -> None:
        """Offset, sizes and strides count elements."""
        x = tc.arange(6.0)
        part = tc.tensor([]).set_(x.untyped_storage(), 1, (2,), (2,))
        assert part.tolist() == [1.0, 3.0]
        part.fill_(9)
        assert x.tolist() == [0.0, 9.0, 2.0, 9.0, 4.0, 5.0]
        assert tc.tensor([]).set_(x).is_set_to(x)
        assert tuple(tc.ones(3).set_().shape) == (0,)

    def test_out_of_bounds(self) -> None:
        """A part that does not lie in the storage is refused, and the tensor stays as it was."""
        x = tc.ones(2)
        with pytest.raises(RuntimeError, match="out of bounds"):
            x.set_(tc.arange(6.0).storage(), 1, (20,), (2,))
        assert x.tolist() == [1.0, 1.0]


class TestPinning:
    """Page-locked memory."""

    def test_a_pinned_copy(self) -> None:
        """The copy has the values; where the system locks no more memory it says so."""
        x = tc.arange(6.0)
        pinned = x.pin_memory()
        assert pinned.tolist() == x.tolist()
        assert not x.is_pinned()
        assert pinned.is_pinned() is pinned.untyped_storage().is_pinned()
        if pinned.is_pinned():
            assert pinned.pin_memory() is pinned
        assert tc.empty(3, pin_memory=True).is_pinned() is pinned.is_pinned()


def test_counts_of_the_allocator() -> None:
    """A live megabyte is counted, and its cache can be emptied; a device without an allocator says so."""
    before = tc.memory_stats()["allocated_bytes.current"]
    x = tc.empty(1 << 20, dtype=tc.uint8)
    assert tc.memory_stats("cpu")["allocated_bytes.current"] - before == x.nbytes
    del x
    assert tc.empty_cache() >= 1 << 20
    for call in (tc.memory_stats, tc.empty_cache):
        with pytest.raises(NotImplementedError, match="meta"):
            call("meta")


def test_an_array_of_someone_else_is_a_storage_of_its_own() -> None:
    """A tensor over a slice of an array begins at offset 0, whatever the slice is part of."""
    x = tc.from_numpy(np.arange(12.0).reshape(3, 4)[1:, 1::2])
    assert (x.storage_offset(), x.stride(), x.untyped_storage().nbytes()) == (0, (4, 2), 7 * 8)
    assert x.storage().tolist() == [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]


def test_a_storage_counts_its_memory() -> None:
    """``sys.getsizeof`` of a storage grows with its bytes, as summaries that add up sizes expect."""
    small, large = (sys.getsizeof(tc.zeros(count).untyped_storage()) for count in (8, 1024))
    assert large - small == 4 * 1016
