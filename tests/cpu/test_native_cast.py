"""Casts and copies in C beside NumPy's."""

import numpy as np
import pytest

from tensorcore import dtypes
from tensorcore_cpu.native import threads

from .native import assert_same, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

KINDS = {one.name: one for one in dtypes.ALL if not one.is_complex}


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_casts(source, target):
    """Every pair of dtypes gives NumPy's values, of repeated rows and columns too; what an integer cannot hold is left out."""
    native, fallback = kernel("cast")
    values = awkward(KINDS[source].numpy, 100)
    if "float" in source and "int" in target:
        values = np.clip(np.nan_to_num(values.astype(np.float64), posinf=100, neginf=0), 0, 100).astype(values.dtype)
    repeated = [np.broadcast_to(values[:60], (7, 60)), np.broadcast_to(values[:60, None], (60, 9))]
    for one in [*layouts(values).values(), *repeated]:
        got, expected = native(one, dtype=KINDS[target]), fallback(one, dtype=KINDS[target])
        if expected.dtype.kind == "V":
            assert got.dtype == expected.dtype
            got, expected = got.astype(np.float32), expected.astype(np.float32)
        assert_same(got, expected)


def test_every_half_is_read_right():
    """All 65536 patterns of both half types."""
    native, _ = kernel("cast")
    for name in ("float16", "bfloat16"):
        values = np.arange(65536, dtype=np.uint16).view(KINDS[name].numpy)
        assert_same(native(values, dtype=dtypes.float32), values.astype(np.float32))


def test_halves_are_rounded_to_even():
    """Between any two neighbours: a little under, at and over the middle, in both directions."""
    native, _ = kernel("cast")
    for name in ("float16", "bfloat16"):
        dtype = KINDS[name].numpy
        halves = np.arange(0x7C00 if name == "float16" else 0x7F80, dtype=np.uint16).view(dtype).astype(np.float64)
        middle = ((halves[1:] + halves[:-1]) / 2).astype(np.float32)
        values = np.concatenate([np.nextafter(middle, np.float32(0)), middle, np.nextafter(middle, np.float32(np.inf))])
        values = np.concatenate([values, -values, np.float32([65519.9, 65520, 1e9, 3.4e38, np.inf, np.nan, 1e-45])])
        got, expected = native(values, dtype=KINDS[name]), values.astype(dtype)
        np.testing.assert_array_equal(got.view(np.uint16)[:-2], expected.view(np.uint16)[:-2])
        assert np.isnan(got[-2].astype(np.float32))


@pytest.mark.parametrize("name", ["clone", "contiguous"])
def test_copies(name):
    """Same values and NumPy's strides in memory of their own."""
    native, fallback = kernel(name)
    for dtype in KINDS.values():
        values = awkward(dtype.numpy, 100)
        for one in [*layouts(values).values(), np.broadcast_to(values[:10], (3, 10))]:
            got, expected = native(one), fallback(one)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            assert got.strides == expected.strides or not got.size
            assert got.tobytes() == expected.tobytes()
            assert not np.shares_memory(got, one)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_copies_of_any_count_and_step(dtype):
    """Elements evenly apart are all there, whatever vectors they fill."""
    native, _ = kernel("contiguous")
    line = (np.arange(400) % 127).astype(dtype)
    for step in (2, 3, 5, -2):
        for count in (1, 3, 4, 5, 31, 64, 67):
            apart = line[::step][:count]
            assert native(apart).tolist() == apart.tolist()


def test_a_copy_into_place_is_broadcast_and_cast():
    """The target keeps its layout; overlapping memory is copied as if through a buffer."""
    native, _ = kernel("copy")
    target = np.zeros((4, 3), np.float32).T
    assert native(target, np.arange(4)) is target
    assert target.tolist() == [[0, 1, 2, 3]] * 3
    line = np.arange(10.0)
    native(line[1:], line[:-1])
    assert line.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(ValueError, match="broadcast"):
        native(np.zeros(3), np.zeros(4))


def test_a_large_transposed_copy():
    """Tiles and threads leave nothing out."""
    native, fallback = kernel("contiguous")
    for shape in ((513, 257), (3, 130, 70), (2, 3, 65, 66)):
        values = np.random.default_rng(8).random(shape, np.float32)
        for view in (values.swapaxes(-1, -2), values.swapaxes(0, -1), values[..., ::-1]):
            assert_same(native(view), fallback(view))


ANY = {one.name: one for one in dtypes.ALL}
ORDERS = ["float32", "float64", "float16", "int8", "int64", "uint8", "bool"]


def same(native, expected):
    """Value, dtype, shape and strides."""
    assert (native.dtype, native.shape, native.strides) == (expected.dtype, expected.shape, expected.strides)
    np.testing.assert_array_equal(native, expected)


@pytest.mark.parametrize("dtype", ORDERS)
def test_flip_and_rot90(dtype):
    """The elements of any layout in reverse along any dims, laid out as NumPy's kernel lays them out."""
    flip, rot90 = kernel("flip"), kernel("rot90")
    for x in layouts(awkward(dtype, 400)).values():
        every = tuple(range(x.ndim))
        for dims in {(), every[:1], every[-1:], every, every[::-1]}:
            same(flip[0](x, dims=dims), flip[1](x, dims=dims))
        for k in range(4) if x.ndim == 2 else ():
            for dims in ((0, 1), (1, 0)):
                same(rot90[0](x, k=k, dims=dims), rot90[1](x, k=k, dims=dims))


@pytest.mark.parametrize("dtype", ORDERS)
def test_rows_of_any_length_backwards(dtype):
    """Shorter than a vector, and of several and a part; on threads too; of rows that lie apart and run backwards themselves."""
    native, fallback = kernel("flip")
    for count in (*range(1, 70), 127, 200):
        x = awkward(dtype, 12 * count).reshape(2, 6, count)
        for one, dims in ((x, (2,)), (x, (0, 2)), (x, (1, 2)), (x[:, ::2], (2,)), (x[:, 1:4], (0, 1, 2))):
            same(native(one, dims=dims), fallback(one, dims=dims))
    large = awkward(dtype, 300 * 301).reshape(300, 301)
    same(native(large, dims=(1,)), fallback(large, dims=(1,)))


@pytest.mark.parametrize("dtype", ORDERS)
@pytest.mark.parametrize("shift", [0, 1, -1, 7, -1000, 10**6])
def test_roll(shift, dtype):
    """Around the end once or many times, along one dim, several, the same one twice, or of all elements in a row."""
    native, fallback = kernel("roll")
    for x in layouts(awkward(dtype, 400)).values():
        every = tuple(range(x.ndim))
        for dims in {every[:1], every[-1:], every, (*every, *every[:1])} - {()}:
            shifts = tuple(shift + 3 * k for k in range(len(dims)))
            same(native(x, shifts=shifts, dims=dims), fallback(x, shifts=shifts, dims=dims))
        same(native(x, shifts=shift, dims=None), fallback(x, shifts=shift, dims=None))


def test_roll_on_threads():
    """Pieces that begin and end anywhere in a row make the same whole."""
    native, fallback = kernel("roll")
    x = awkward("float32", 300 * 1000).reshape(300, 10, 100)
    for dims, shifts in (((0,), (299,)), ((1, 2), (3, -37)), ((0, 1, 2), (1, 1, 99)), (None, 12345)):
        same(native(x, shifts=shifts, dims=dims), fallback(x, shifts=shifts, dims=dims))


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bfloat16", "float16", "int8", "int64", "uint8", "bool", "complex64"]
)
@pytest.mark.parametrize("value", [0, 1, -0.0, 2.5, True, float("nan"), -float("inf"), 1e-320, np.float32(3)])
def test_full_and_fill(value, dtype):
    """One value, bit for bit what NumPy stores; what NumPy refuses is its error."""
    kind = ANY[dtype]
    for shape in ((), (3,), (0, 4), (7, 11), (300, 1000)):
        full, fallback = kernel("full")
        try:
            expected = fallback(shape, value, dtype=kind)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                full(shape, value, dtype=kind)
            continue
        made = full(shape, value, dtype=kind)
        assert (made.dtype, made.shape, made.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
        target, strided = np.ones(shape, made.dtype), np.ones((*shape, 2), made.dtype)[..., 0]
        assert kernel("fill")[0](target, value) is target
        assert target.tobytes() == expected.tobytes()
        kernel("fill")[0](strided, value)
        assert strided.tobytes() == expected.tobytes()


def test_full_of_a_number_that_does_not_fit():
    """As NumPy has it: an error of an integer, infinity of a float."""
    full, fallback = kernel("full")
    for value, dtype in ((300, "uint8"), (-1, "uint8"), (2**63, "int64"), (1e39, "float32"), (10**400, "float64")):
        kind, results = ANY[dtype], []
        for run in (full, fallback):
            try:
                results.append(run((3,), value, dtype=kind).tolist())
            except (OverflowError, ValueError) as error:
                results.append(type(error))
        assert results[0] == results[1]


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_too_large_for_the_caches_is_copied_whole(count):
    """From 16 MiB on copies go past the caches: from and to any address, to the last byte, and not a byte further."""
    size = (16 << 20) + 77
    values = np.random.default_rng(0).integers(0, 255, size + 3, np.uint8)
    before = threads()
    try:
        threads(count)
        for source in (values[3:], values[: size // 4 * 4].view(np.int32)):
            assert_same(kernel("clone")[0](source), source)
        made = np.full(size + 64, 7, np.uint8)
        for start in (0, 1, 63):
            kernel("copy")[0](made[start : start + size], values[:size])
            assert_same(made[start : start + size], values[:size])
            assert (made[:start] == 7).all()
            assert (made[start + size :] == 7).all()
            made[:] = 7
    finally:
        threads(before)


@pytest.mark.parametrize("target", ["float64", "bfloat16", "int32"])
def test_what_is_too_large_for_the_caches_is_converted_whole(target):
    """From 16 MiB on conversions go past the caches: in rows that begin anywhere in a line, to the last element, and no further."""
    kind = KINDS[target]
    count = (16 << 20) // kind.numpy.itemsize + 77
    values = np.random.default_rng(0).integers(-100, 100, count).astype(np.float32)
    assert_same(kernel("cast")[0](values, dtype=kind).astype(np.float32), values)
    made = np.full(count + 64, 7, kind.numpy)
    for start in (0, 1, 31):
        kernel("copy")[0](made[start : start + count], values)
        assert_same(made[start : start + count].astype(np.float32), values)
        assert (made[:start].astype(np.float32) == 7).all()
        assert (made[start + count :].astype(np.float32) == 7).all()
        made[:] = 7


def test_joined_arrays_that_are_too_large_for_the_caches():
    """Parts one after the other, rows of them in turn too, where the result is over 16 MiB."""
    cat, fallback = kernel("cat")
    one, other = (np.random.default_rng(seed).random((1001, 2111 + seed), np.float32) for seed in (0, 1))
    assert_same(cat([one, other], dim=1, shape=(1001, 4223)), fallback([one, other], dim=1, shape=(1001, 4223)))
    assert_same(cat([one, one], dim=0, shape=(2002, 2111)), fallback([one, one], dim=0, shape=(2002, 2111)))


def test_a_copy_of_a_large_array_onto_itself():
    """It keeps its values."""
    x = np.random.default_rng(0).random(5 << 20, np.float32)
    before = x.copy()
    kernel("copy")[0](x, x)
    assert_same(x, before)
