"""Where arrays lie, as the CPU is asked for it in C, and new arrays: as the reference backend has them."""

import gc
import itertools

import numpy as np
import pytest

import tensorcore
from tensorcore.backend.places import kept_strides
from tensorcore.plugin import XPBackend, dtypes

from .native import needs_native

pytestmark = needs_native

BLOCK = np.arange(120.0, dtype=np.float32).reshape(4, 6, 5)
ARRAYS = [
    np.float64(1), BLOCK, BLOCK.transpose(2, 0, 1), BLOCK[1:, ::2], BLOCK[:, :1], BLOCK[:0], BLOCK.astype(np.complex64),
    BLOCK.astype("O"), BLOCK[:, 2:], BLOCK[:, :, ::-1], np.zeros(()), np.zeros((3, 0, 2)), BLOCK.view(np.int32),
]  # fmt: skip


@pytest.mark.parametrize("method", ["strides", "layout", "is_contiguous"])
def test_layouts(method):
    """Strides in elements, the first element's place and row-major order are those that the reference backend finds."""
    ours, reference = getattr(tensorcore.device("cpu"), method), getattr(XPBackend(np), method)
    for x in ARRAYS:
        assert ours(x) == reference(x)
    with pytest.raises(TypeError, match="expected an array"):
        ours([1, 2])


@pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0, 2), (7,), [4, 5], (1,) * 12, (300, 41), (513, 512), (np.int64(2), 3)], ids=str
)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda one: one.name)
def test_new_arrays(shape, dtype):
    """Of any dtype, any number of dims and any size, in row-major order, and written without harm to one another."""
    made = [tensorcore.device("cpu").allocate(shape, dtype) for _ in range(2)]
    for i, one in enumerate(made):
        assert (one.shape, one.dtype) == (tuple(shape), dtype.numpy)
        assert one.flags.c_contiguous
        assert one.flags.writeable
        assert one.flags.owndata
        one[...] = i
    assert not made[0].size or (made[0] == 0).all()
    assert not made[1].size or (made[1] == 1).all()


def test_shapes_that_no_array_has():
    """Too many bytes are a MemoryError, a negative size and what is no dtype NumPy's errors; nothing stays allocated."""
    cpu = tensorcore.device("cpu")
    gc.collect()
    before = cpu.memory_stats()["allocated_bytes.current"]
    for shape in ((2**40,), (2**61,), (2**31, 2**31)):
        with pytest.raises(MemoryError):
            cpu.allocate(shape, dtypes.float64)
    with pytest.raises(ValueError, match="negative"):
        cpu.allocate((2, -1), dtypes.float32)
    with pytest.raises((AttributeError, TypeError)):
        cpu.allocate((2,), None)
    assert cpu.memory_stats()["allocated_bytes.current"] == before


@pytest.mark.parametrize("name, options", [("clone", {}), ("cast", {"dtype": dtypes.float64}), ("cast", {"dtype": dtypes.int64}),
                                           ("flip", {"dims": (0,)}),
                                           ("acosh", {}), ("digamma", {}), ("hypot", {}), ("logaddexp2", {})])  # fmt: skip
def test_results_lie_as_their_arguments_do(name, options):
    """In the order of the dims that a dense result keeps, whoever puts it in order; values are NumPy's."""
    cpu, kernel = tensorcore.device("cpu"), tensorcore.device("cpu").kernels[name]
    rng = np.random.default_rng(3)
    for shape in [(3,), (4, 3), (1, 5), (2, 3, 4), (2, 1, 3), (3, 2, 1, 2), (0, 3)]:
        for order in itertools.permutations(range(len(shape))):
            back = tuple(np.argsort(order))
            for step in (1, 2):
                x = rng.uniform(1, 2, [shape[i] * step for i in order]).astype(np.float32).transpose(back)
                x = x[tuple([slice(None, None, step)] * len(shape))]
                given = (x, x[..., :1]) if name in ("hypot", "logaddexp2") else (x,)
                made, expected = kernel(*given, **options), kernel.fallback(*given, **options)
                assert cpu.strides(made) == kept_strides(shape, [(one.shape, cpu.strides(one)) for one in given])
                np.testing.assert_allclose(made, expected, rtol=1e-5)


OPS = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(-1),
    "amax": lambda x: x.amax(0),
    "argmax": lambda x: x.argmax(),
    "max": lambda x: x.max(0),
    "var": lambda x: x.var(1, correction=0),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "norm": lambda x: x.norm(dim=0),
    "mode": lambda x: x.mode(),
    "tril": lambda x: x.tril(),
    "index_select": lambda x: x.index_select(0, tensorcore.tensor([1, 0])),
    "take": lambda x: x.take(tensorcore.tensor([[3, 1]]).t()),
    "cat": lambda x: tensorcore.cat([x, x + 1], -1),
    "stack": lambda x: tensorcore.stack([x, x], 1),
    "cdist": lambda x: tensorcore.cdist(x, x[:1]),
    "all": lambda x: x.isfinite().all(),
    "cat of floats and none": lambda x: tensorcore.cat([x[:0], x]),
}


ADDED = ("sum", "mean", "var", "norm")


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
def test_strided_arrays_give_what_dense_ones_give(name, dtype):
    """To the last bit and in row-major order: turned, with gaps, repeated, with dims of size 1, of none, and many; sums to rounding."""
    full = (tensorcore.arange(720) % 41 - 9).reshape(6, 10, 12).to(getattr(tensorcore, dtype)) / (
        1 if dtype == "int64" else 8
    )
    if dtype == "int64":
        full = full.long()
        if name in ("mean", "var", "logcumsumexp", "norm", "cdist"):
            pytest.skip("an op of floats")
    large = full.flatten().repeat(30)[:20736].view(144, 144).t()
    for x in (full.permute(2, 0, 1), full[0].t(), full[:, ::2, 3:7], full[0, :3, :3].t(), full[:3, :1].transpose(0, 2),
              full[0, 0, :6].expand(4, 6), full[:, 2], large):  # fmt: skip
        strided, dense = (OPS[name](one) for one in (x, x.contiguous()))
        pairs = zip(strided, dense, strict=True) if isinstance(strided, tuple) else [(strided, dense)]
        for one, other in pairs:
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            if name in ADDED and one.dtype.is_floating_point:  # where they lie, and so in another order
                assert tensorcore.allclose(
                    one.double(), other.double(), 1e-2 if dtype == "bfloat16" else 1e-5, equal_nan=True
                )
            else:
                assert tensorcore.equal(one, other)
