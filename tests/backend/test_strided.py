"""A backend for libraries without views: what StridedBackend makes of five functions and a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.strided import StridedBackend, flat_index
from tensorcore.plugin import Capabilities, dtypes


class Frozen(StridedBackend):
    """NumPy with arrays that nobody may write to."""

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL))

    def __init__(self) -> None:
        super().__init__("frozen")
        self.writes = 0
        self.dense_kernels = {
            "add": lambda x, y: self.dense(np.add(x, y)),
            "mul": lambda x, y: self.dense(np.multiply(x, y)) if x.dtype.kind == "f" else NotImplemented,
            "cast": lambda x, *, dtype: self.dense(x.astype(dtype.numpy)),
            "contiguous": lambda x: x,
            "clone": lambda x: x,
            "full": lambda shape, value, *, dtype: self.dense(np.full(shape, value, dtype.numpy)),
            "sum": lambda x, *, dim=None, keepdim=False, dtype=None: self.dense(np.sum(x, dim, keepdims=keepdim)),
        }

    def dense(self, array: Any) -> Any:
        made = np.array(array, order="C")
        made.flags.writeable = False
        return made

    def host(self, dense: Any) -> Any:
        return np.array(dense)

    def read(self, data: Any, shape: Any, strides: Any, offset: int) -> Any:
        return self.dense(data[flat_index(shape, strides, offset)])

    def write(self, data: Any, shape: Any, strides: Any, offset: int, values: Any) -> Any:
        self.writes += 1
        made = np.array(data)
        made[flat_index(shape, strides, offset)] = values
        return self.dense(made)


@pytest.fixture
def frozen() -> Frozen:
    """The device."""
    return Frozen()


def test_views_of_immutable_arrays_are_written_through(frozen) -> None:
    """A write to a view shows in its base and in other views, though the library's arrays never change."""
    x = tc.zeros(2, 3, device=frozen)
    column = x.t()[1]
    column += 2
    x[0, 0] = 5
    assert x.tolist() == [[5, 2, 0], [0, 2, 0]]
    assert column.tolist() == [2, 2]
    assert frozen.writes > 0


def test_views_know_their_place(frozen) -> None:
    """Strides, offset, storage and addresses are those of memory."""
    x = tc.zeros(4, 6, device=frozen)
    y = x[1:, ::2].t()
    assert (y.stride(), y.storage_offset(), tuple(y.shape)) == ((2, 6), 6, (3, 3))
    assert y.data_ptr() - x.data_ptr() == 24
    assert frozen.storage_key(y.native) == frozen.storage_key(x.native)
    assert y.untyped_storage().nbytes() == 96


def test_results_lie_as_their_arguments(frozen) -> None:
    """An elementwise result of a transposed tensor is transposed."""
    x = tc.ones(2, 3, device=frozen).t()
    assert (x + x).stride() == (1, 3)
    assert (x + x).tolist() == [[2, 2]] * 3


def test_other_bits_of_the_same_memory(frozen) -> None:
    """A view of another dtype reads and writes the same bytes."""
    x = tc.zeros(2, dtype=tc.complex64, device=frozen)
    tc.view_as_real(x)[:, 1] = 3
    assert x.tolist() == [3j, 3j]
    assert x.imag.tolist() == [3, 3]
    assert tc.ones(1, device=frozen).view(tc.int32).item() == 0x3F800000


class Few(Frozen):
    """The same without the integers that have the bits of its floats."""

    capabilities = Capabilities(("bool", "int64", "float32"))

    def __init__(self) -> None:
        super().__init__()
        self.dense_kernels |= {"lt": np.less, "eq": np.equal, "div": np.divide, "bitwise_and": np.bitwise_and}
        self.dense_kernels |= {"bitwise_xor": np.bitwise_xor}

    def dense(self, array: Any) -> Any:
        assert np.asarray(array).dtype.name in self.capabilities.dtypes
        return super().dense(array)


def test_signs_where_there_are_no_integers_of_that_size() -> None:
    """Signs, of zeros too, are found without a dtype that the device does not store."""
    x = tc.tensor([-2.0, -0.0, 0.0, 3.0, -np.inf, np.inf, -1e-45], device=Few())
    with np.errstate(divide="ignore"):
        assert tc.signbit(x).tolist() == [True, True, False, False, True, False, True]


def test_a_kernel_may_leave_dtypes_to_others(frozen) -> None:
    """NotImplemented asks for the decomposition, or falls back."""
    x = tc.ones(2, dtype=tc.int64, device=frozen)
    with pytest.raises(tc.errors.KernelMissing, match="mul"):
        x * x
    with tc.fallback("cpu") as ledger:
        assert (x * x).tolist() == [1, 1]
    assert ledger.calls == 1


def test_places_of_a_view() -> None:
    """``flat_index`` counts the elements of flat memory."""
    assert flat_index((2, 2), (1, 3), 4).tolist() == [[4, 7], [5, 8]]
    assert flat_index((), (), 2).tolist() == 2
    assert flat_index((0, 3), (3, 1), 0).shape == (0, 3)
