"""Views in C beside those of NumPy: shape, strides, place and owner; what has no elements or reaches outside is left to it."""

import numpy as np
import pytest

import tensorcore
from tensorcore.plugin import XPBackend

from .native import kernel, needs_native

pytestmark = needs_native

BLOCK = np.arange(120.0, dtype=np.float32).reshape(4, 6, 5)
SHOWN = [
    BLOCK,
    BLOCK.transpose(2, 0, 1),
    BLOCK[1:, ::2],
    BLOCK[:, :1],
    BLOCK[:0],
    BLOCK.astype(np.complex64),
    BLOCK.astype("O"),
]
CALLS = [
    ("diagonal", {"offset": 0, "dim1": 0, "dim2": 1}),
    ("diagonal", {"offset": 1, "dim1": 2, "dim2": 0}), ("diagonal", {"offset": -2, "dim1": 1, "dim2": 2}),
    ("diagonal", {"offset": 9, "dim1": 0, "dim2": 1}), ("as_strided", {"shape": (2, 2), "strides": (3, 1), "offset": 1}),
    ("as_strided", {"shape": (), "strides": (), "offset": 0}), ("as_strided", {"shape": (2, 0), "strides": (1, 1), "offset": 0}),
]  # fmt: skip


def assert_shown_alike(got, expected):
    """The same elements of one memory, in the same order."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    if expected.size:
        assert got.strides == expected.strides
        assert got.__array_interface__["data"] == expected.__array_interface__["data"]
    assert got.flags.writeable == expected.flags.writeable


@pytest.mark.parametrize("name, options", CALLS)
def test_views(name, options):
    """Each of the ways an array may lie, elements of any kind."""
    native, fallback = kernel(name)
    for x in SHOWN:
        try:
            expected = fallback(x, **options)
        except Exception as error:
            with pytest.raises(type(error)):
                native(x, **options)
        else:
            assert_shown_alike(native(x, **options), expected)


@pytest.mark.parametrize("to", [(4, 6, 5), (3, 4, 6, 5), (1, 4, 6, 5), (2, 1, 4, 6, 5)])
def test_stretched_views(to):
    """New dims in front have a stride of 0, or reach over what is behind them where their size is 1."""
    native, fallback = kernel("expand")
    for x in (BLOCK, BLOCK[:, :1], BLOCK[:1, :, :1], BLOCK[0, 0]):
        assert_shown_alike(native(x, shape=to), fallback(x, shape=to))


def test_memory_is_not_left():
    """A view that would reach beyond the storage is refused, and one of memory that may not be written to neither."""
    native = kernel("as_strided")[0]
    with pytest.raises((TypeError, ValueError)):
        native(BLOCK, shape=(121,), strides=(1,), offset=0)
    with pytest.raises((TypeError, ValueError)):
        native(BLOCK, shape=(2,), strides=(1,), offset=119)
    fixed = BLOCK.copy()
    fixed.flags.writeable = False
    assert not native(fixed, shape=(2,), strides=(1,), offset=0).flags.writeable


def test_layouts():
    """Strides in elements and the first element's place are those that the reference backend finds."""
    cpu, reference = tensorcore.device("cpu"), XPBackend(np)
    for x in [
        np.float64(1),
        *SHOWN,
        BLOCK[:, 2:],
        BLOCK[:, :, ::-1],
        np.zeros(()),
        np.zeros((3, 0, 2)),
        BLOCK.view(np.int32),
    ]:
        assert cpu.strides(x) == reference.strides(x)
        assert cpu.layout(x) == reference.layout(x)
    with pytest.raises(TypeError, match="expected an array"):
        cpu.strides([1, 2])
