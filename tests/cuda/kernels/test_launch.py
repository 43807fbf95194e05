"""Around the kernels: compiled once, launched on packed parameters, faults that are told later, layouts."""

from types import SimpleNamespace

import numpy as np
import pytest

from tensorcore_cuda.kernels import Driver
from tensorcore_cuda.kernels.launch import family, layout_of, merged, packing_of, source_of, vector_of
from tests.cuda.kernels.device import Array, driver, dry, kernels, put, xp
from tests.cuda_standin.emulation import EmulationError
from tests.cuda_standin.emulation.compile import compiler

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C++ compiler is here")


def test_parameters_lie_as_in_a_c_struct():
    """Each at a multiple of its size; structs as bytes at a multiple of 8."""
    packing = packing_of("Piq?3sd")
    assert packing.size == 8 + 4 + 4 + 8 + 1 + 7 + 3 + 5 + 8
    assert packing.unpack(packing.pack(1, 2, 3, True, b"abc", 4.0)) == (1, 2, 3, True, b"abc", 4.0)


@needs_compiler
def test_a_kernel_is_compiled_once_for_a_device():
    """The second request for a name expression is the first one's kernel."""
    mine = Driver(xp)
    assert family(mine, "softmax.cu")("rows<SOFTMAX, float, 1, 32>", "PPqq") is family(mine, "softmax.cu")(
        "rows<SOFTMAX, float, 1, 32>", "PPqq"
    )


@needs_compiler
def test_a_wrong_format_of_parameters_is_found():
    """A buffer that is shorter than the kernel's parameters does not reach it."""
    kernel = family(Driver(xp), "softmax.cu")("rows<SOFTMAX, float, 1, 32>", "PPq")
    with pytest.raises(EmulationError, match="expected 32 bytes of parameters, got 24"):
        kernel((1, 1, 1), (32, 1, 1), 0, 0, 0, 0)


@needs_compiler
@pytest.mark.parametrize("wrong", [-1, 5])
def test_an_index_outside_is_told_when_the_device_was_waited_for(wrong):
    """Nothing is read there; the next check raises, once."""
    x = put(np.arange(15.0).reshape(5, 3))
    made = kernels["index_select"](x, put(np.array([0, wrong, 4])), dim=0)
    with pytest.raises(IndexError, match=f"expected indices from 0 to 4, got {wrong}"):
        driver.faults.check()
    driver.faults.check()
    np.testing.assert_array_equal(made[[0, 2]], [[0, 1, 2], [12, 13, 14]])


@needs_compiler
def test_writing_outside_touches_nothing():
    """The array stays as it was but for the indices that are inside."""
    x = put(np.zeros((2, 3), "f4"))
    made = kernels["scatter"](x, put(np.array([[0, 7, -3]])), put(np.ones((1, 3), "f4")), dim=0)
    with pytest.raises(IndexError):
        driver.faults.check()
    np.testing.assert_array_equal(made, [[1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    "shape, strides, expected",
    [
        ((2, 3, 4), [(12, 4, 1), (12, 4, 1)], ([24], [[1], [1]])),
        ((2, 3, 4), [(12, 4, 1), (0, 0, 1)], ([6, 4], [[4, 1], [0, 1]])),
        ((2, 1, 4), [(4, 9, 1), (1, 7, 2)], ([2, 4], [[4, 1], [1, 2]])),
        ((), [()], ([], [[]])),
        ((5, 0), [(0, 1)], ([0], [[1]])),
    ],
)
def test_dims_that_lie_behind_one_another_are_one(shape, strides, expected):
    """In all arrays at once; sizes of 1 are left out."""
    assert merged(shape, *strides) == expected


def test_a_layout_is_a_struct_of_types_cuh():
    """The number of dims, six sizes, six strides."""
    words = np.frombuffer(layout_of([3, 4], [40, 1]), np.int32)
    assert list(words[:4]) == [2, 3, 4, 0]
    assert list(words[8:].view(np.int64)) == [40, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "itemsize, count, addresses, expected",
    [
        (4, 64, [256, 512], 4),
        (2, 64, [256], 8),
        (4, 6, [256], 2),
        (4, 64, [256, 264], 2),
        (4, 64, [4], 1),
        (8, 3, [16], 1),
    ],
)
def test_packs_are_as_wide_as_addresses_and_counts_allow(itemsize, count, addresses, expected):
    """At most 16 bytes."""
    assert vector_of(itemsize, count, *addresses) == expected


def test_a_source_holds_each_file_once():
    """What two of its files include is there one time."""
    text = source_of("softmax.cu")
    assert text.count("struct bfloat16 {") == 1
    assert "#include" not in text


class Endless(Array):
    """An array of any size that no memory is behind."""

    def __new__(cls, shape, dtype):
        dtype = np.dtype(dtype)
        steps = [dtype.itemsize * int(np.prod(shape[i + 1 :], dtype=object)) for i in range(len(shape))]
        return np.lib.stride_tricks.as_strided(np.zeros(1, dtype).view(cls), shape, steps, subok=True)

    def __repr__(self):
        return f"endless {self.shape}"


@pytest.mark.parametrize(
    "shape, call",
    [
        ((1 << 33,), lambda k, x: k["add"](x, x)),
        ((1 << 33,), lambda k, x: k["cast"](x, dtype=SimpleNamespace(numpy=np.dtype("f4")))),
        ((3, 1 << 33), lambda k, x: k["contiguous"](x[:, 1:])),
        ((1 << 17, 1 << 16), lambda k, x: k["contiguous"](x.T)),
        ((1 << 16, 1 << 16, 2), lambda k, x: k["sum"](x, dim=(2,))),
        ((1 << 16, 1 << 16, 2), lambda k, x: k["sum"](x, dim=(0, 1))),
        ((3, 1 << 17, 1 << 16), lambda k, x: k["amax"](x[:, :-1], dim=(1, 2))),
        ((1 << 33,), lambda k, x: k["norm"](x.view("f2"), p=2)),
        ((1 << 16, 1 << 17), lambda k, x: k["softmax"](x.view("f2"), dim=1)),
        ((1 << 16, 1 << 17), lambda k, x: k["cumsum"](x, dim=0)),
        ((1 << 17, 1 << 16), lambda k, x: k["index_select"](x, put(np.array([1, 0])), dim=1)),
        ((1 << 30, 8), lambda k, x: k["topk"](x.reshape(1 << 20, -1), k=3, dim=0)),
    ],
)
def test_arrays_of_more_than_four_billion_elements_are_described(shape, call):
    """Sizes that 32 bits do not hold are either not read by the kernel or given in 64; grids stay within CUDA's limits."""
    grids = []
    call(dry(lambda f, *rest: grids.append(rest[:6]), Endless), Endless(shape, np.int8))
    assert grids
    for x, y, z, *block in grids:
        assert 0 < x < 1 << 31
        assert 0 < y < 1 << 16 > z > 0
        assert np.prod(block) <= 1024


@needs_compiler
def test_sizes_in_64_bits_reach_the_kernel():
    """The form for large arrays computes what the usual one does."""
    from tensorcore_cuda.kernels.elementwise import cast_of
    from tensorcore_cuda.kernels.pointwise import Pointwise, broadcast

    x, made = put(np.arange(24.0).reshape(2, 3, 4)), put(np.zeros((4, 3, 2)))
    pointwise, body = Pointwise(driver), cast_of(x.dtype, x.dtype)
    turned = x.transpose(2, 1, 0)
    kernel = pointwise.kernel(body, "s1", 3, 1, True)
    where = (4, 3, 2, *broadcast(turned, turned.shape), *broadcast(made, made.shape))
    packed = np.array(where, np.int64).tobytes()
    kernel((1, 1, 1), (256, 1, 1), 0, 24, x.data.ptr, made.data.ptr, packed)
    np.testing.assert_array_equal(made, turned)
