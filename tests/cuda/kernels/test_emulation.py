"""The emulation itself: it runs CUDA C++ as CUDA would, and says what CUDA leaves undefined."""

import json

import numpy as np
import pytest

from tests.cuda_standin.emulation import EmulationError, emulate, listing, thread_order
from tests.cuda_standin.emulation.compile import _modules, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler is here")

SUMS = r"""
template <class T> __global__ void __launch_bounds__(256) row_sums(const T *x, T *y, int n) {
    __shared__ T parts[8];
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[(size_t)blockIdx.x * n + i];
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    BARRIER
    if (threadIdx.x == 0) {
        for (int i = 1; i < blockDim.x / 32; i++)
            sum += parts[i];
        y[blockIdx.x] = sum;
    }
}
"""


def row_sums(dtype, barrier="__syncthreads();"):
    name = f"row_sums<{dtype}>"
    return emulate(SUMS, [name], [f"-DBARRIER={barrier}"]).get_function(name)


@pytest.mark.parametrize("dtype", ["float", "double", "int"])
@pytest.mark.parametrize("order", [0, -1, 3])
def test_a_template_with_shuffles_and_shared_memory_computes(dtype, order):
    """Each row's sum is exact, in every order of the threads."""
    x = np.arange(5 * 77).reshape(5, 77).astype({"float": "f4", "double": "f8", "int": "i4"}[dtype])
    y = np.zeros(5, x.dtype)
    with thread_order(order):
        row_sums(dtype)((5,), (96,), (x, y, np.int32(77)))
    np.testing.assert_array_equal(y, x.sum(1))


def test_another_order_of_the_threads_finds_a_missing_barrier():
    """Without the barrier the last thread has nothing to add yet when it runs first."""
    x, y = np.ones((1, 64), "f4"), np.zeros(1, "f4")
    with thread_order(-1):
        row_sums("float")((1,), (64,), (x, y, np.int32(64)))
        assert y == 64
    row_sums("float", ";")((1,), (64,), (x, y, np.int32(64)))
    assert y != 64


def test_shared_memory_starts_undefined():
    """What was not written in a block reads as NaN, statically declared or asked for at the launch."""
    source = """
    __global__ void read(float *y) {
        extern __shared__ float asked[];
        __shared__ float declared[1];
        y[2 * blockIdx.x] = asked[0], y[2 * blockIdx.x + 1] = declared[0];
        asked[0] = declared[0] = 1;
    }"""
    y = np.zeros(4, "f4")
    emulate(source).get_function("read")((2,), (1,), (y,), shared_mem=4)
    assert np.isnan(y).all()


@pytest.mark.parametrize(
    "body, message",
    [
        ("if (threadIdx.x % 32 < 16) __syncthreads(); else __syncwarp();", "deadlock: of 64 threads 32 wait"),
        ("if (threadIdx.x % 32 < 8) __shfl_sync(0xffu, 1, 9);", "reads lane 9"),
        ("if (threadIdx.x % 32 == 1) return; __syncwarp();", "lane 1, which has ended"),
        ("__trap();", "__trap was called"),
    ],
)
def test_what_cuda_leaves_undefined_is_an_error(body, message):
    """The error names the kernel, the block and what is wrong."""
    with pytest.raises(EmulationError, match=f"(?s)wrong: block .*{message}"):
        emulate("__global__ void wrong() { " + body + " }").get_function("wrong")((1,), (64,), ())


def test_launches_are_checked():
    """Parameters, shapes and shared memory must fit, as a driver would or would not notice."""
    kernel = emulate("__global__ void one(float *y, int n) { y[0] = n; }").get_function("one")
    y = np.zeros(1, "f4")
    with pytest.raises(EmulationError, match="expected 2 arguments, got 1"):
        kernel((1,), (1,), (y,))
    with pytest.raises(EmulationError, match="expected 4 bytes for parameter 1, got 8 of int"):
        kernel((1,), (1,), (y, 3))
    with pytest.raises(EmulationError, match="grid"):
        kernel((0,), (1,), (y, np.int32(3)))
    with pytest.raises(EmulationError, match="1024 threads"):
        kernel((1,), (1024, 2), (y, np.int32(3)))
    with pytest.raises(EmulationError, match="shared memory"):
        kernel((1,), (1,), (y, np.int32(3)), shared_mem=50 << 10)
    kernel.launch((1,), (1,), y.ctypes.data.to_bytes(8, "little") + np.int32(7).tobytes())
    assert y == 7


def test_a_source_that_is_wrong_shows_its_line():
    """The message holds the line within the kernel's source."""
    with pytest.raises(EmulationError, match=r"kernel\.cu:2"):
        emulate("__global__ void one() {\n  nothing = 1;\n}")


def test_half_types_round_as_numpy_does():
    """Every float16 and bfloat16 survives; float32 between them rounds to the nearest, ties to even."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = """
    template <class T> __global__ void both(const float *x, unsigned short *y, float *back, int n) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) { T t = x[i]; y[i] = t.__x; back[i] = t; }
    }"""
    module = emulate(source, ["both<__half>", "both<__nv_bfloat16>"])
    for name, dtype in {"__half": np.dtype(np.float16), "__nv_bfloat16": np.dtype(ml_dtypes.bfloat16)}.items():
        every = np.arange(65536).astype(np.uint16).view(dtype).astype(np.float32)
        between = (
            every.view(np.uint32)[:, None] + np.array([0x7FFF, 0x8000, 0x8001, 0xFFF, 0x1000], np.uint32)
        ).ravel()
        x = np.concatenate([every, between.view(np.float32)])
        y, back = np.zeros(x.size, np.uint16), np.zeros(x.size, np.float32)
        module.get_function(f"both<{name}>")((1,), (32,), (x, y, back, np.int32(x.size)))
        with np.errstate(all="ignore"):
            expected = x.astype(dtype)
        number = ~np.isnan(x)
        np.testing.assert_array_equal(y[number], expected.view(np.uint16)[number])
        assert np.isnan(back[~number]).all()
        np.testing.assert_array_equal(back[: every.size], every)


def test_a_pack_at_a_misaligned_address_is_found():
    """Four floats load as one from a multiple of 16 bytes only, as on the device."""
    source = """
    __global__ void first(const float *x, float *y) {
        *y = reinterpret_cast<const float4 *>(x)->w;
    }"""
    memory, y = np.arange(32, dtype="f4"), np.zeros(1, "f4")
    start = -memory.ctypes.data % 16 // 4
    run = emulate(source).get_function("first")
    run((1,), (1,), (memory[start:], y))
    assert y == memory[start + 3]
    with pytest.raises(EmulationError, match="16 bytes is misaligned by 8"):
        run((1,), (1,), (memory[start + 2 :], y))


def test_the_list_of_kernels_is_read_as_it_was_written():
    """What the file says is what its entries say."""
    assert listing._listed(iter(listing._entries())) == json.loads(listing.LIST.read_text("utf-8"))


def test_listed_kernels_are_compiled_together(monkeypatch):
    """The first of a batch brings the others along; one that is not listed comes alone."""
    monkeypatch.setattr(listing, "BATCH", 3)
    monkeypatch.setattr(listing, "_all", [True])
    listing._places.cache_clear()
    try:
        whole = len(listing._entries()) // listing.BATCH * listing.BATCH
        first = listing._request(listing._entries()[whole - 1])
        batch = listing.beside(first)
        assert len(batch) == listing.BATCH
        emulate(*first)
        assert all(one in _modules for one in batch)
        assert listing.beside(("another", ("kernel",), ())) == [("another", ("kernel",), ())]
        monkeypatch.setattr(listing, "_all", [False])
        assert listing.beside(first) == [first]
    finally:
        listing._places.cache_clear()
