"""Memory shared with NumPy and PyTorch: numpy(), from_numpy, NumPy's functions, DLPack, buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc


class TestNumpy:
    """Arrays from tensors and tensors from arrays."""

    def test_both_ways_share_memory(self) -> None:
        """A write through one is seen through the other, also in a transposed view."""
        array = np.arange(6.0).reshape(2, 3)
        x = tc.from_numpy(array)
        x.fill_(7)
        assert array.tolist() == [[7.0] * 3] * 2
        view = x.t().numpy()
        view[0, 1] = 1
        assert x.tolist() == [[7.0, 7.0, 7.0], [1.0, 7.0, 7.0]]
        assert tc.as_tensor(array).data_ptr() == array.ctypes.data

    def test_array_protocol(self) -> None:
        """``np.asarray`` shares, converts and copies as asked, and refuses to share what it must convert."""
        x = tc.arange(3.0)
        assert np.asarray(x).ctypes.data == x.data_ptr()
        assert np.array(x, copy=False).ctypes.data == x.data_ptr()
        assert np.array(x).ctypes.data != x.data_ptr()
        assert np.asarray(x, dtype=np.float64).dtype == np.float64
        with pytest.raises(ValueError, match="copy=False"):
            np.array(x, dtype=np.float64, copy=False)

    def test_a_read_only_array_warns(self) -> None:
        """The tensor shares the memory, a write is refused, and the warning says so before."""
        array = np.arange(3.0)
        array.flags.writeable = False
        with pytest.warns(UserWarning, match="writable"):
            x = tc.from_numpy(array)
        assert x.data_ptr() == array.ctypes.data
        with pytest.raises(ValueError, match="read-only"):
            x.fill_(1)

    @pytest.mark.filterwarnings("ignore:from_numpy")
    @pytest.mark.parametrize("size", [3, 3000])
    @pytest.mark.parametrize(
        "write",
        [
            lambda x, at, values: x.index_add_(0, at, values),
            lambda x, at, values: x.index_put_((at,), values, accumulate=True),
            lambda x, at, values: x.index_copy_(0, at, values),
            lambda x, at, values: x.scatter_add_(0, at, values),
            lambda x, at, values: x.scatter_(0, at, values, reduce="multiply"),
            lambda x, at, values: x.scatter_reduce_(0, at, values, "mean"),
            lambda x, at, values: x.put_(at, values, accumulate=True),
            lambda x, at, values: x.masked_scatter_(x == 0, values),
            lambda x, at, values: tc.exp(values, out=x),
        ],
    )
    def test_a_read_only_array_keeps_its_values(self, write, size) -> None:
        """Every way to write at places is refused too, whatever the number of elements."""
        array = np.zeros(size)
        array.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            write(tc.from_numpy(array), tc.arange(size), tc.ones(size, dtype=tc.float64))
        assert not array.any()

    @pytest.mark.parametrize(
        "make, error",
        [
            (lambda: [1], TypeError),
            (lambda: np.float32(3), TypeError),
            (lambda: np.array(["a"]), TypeError),
            (lambda: np.arange(3)[::-1], ValueError),
            (lambda: np.arange(3.0).astype(">f4"), ValueError),
            (lambda: np.zeros(5, dtype=[("a", "i1"), ("b", "f4")])["b"], ValueError),
        ],
    )
    def test_arrays_that_cannot_be_shared(self, torch: Any, make: Any, error: type) -> None:
        """Each is refused with the error that PyTorch raises."""
        with pytest.raises(error):
            torch.from_numpy(make())
        with pytest.raises(error, match=r"from_numpy|dtype"):
            tc.from_numpy(make())

    def test_bfloat16_and_gradients_are_refused(self) -> None:
        """NumPy has no bfloat16, and a tensor on the tape is not handed out unless forced."""
        x = tc.ones(2, requires_grad=True)
        with pytest.raises(TypeError, match="BFloat16"):
            tc.ones(2, dtype=tc.bfloat16).numpy()
        for call in (x.numpy, lambda: np.asarray(x), lambda: np.modf(x)):
            with pytest.raises(RuntimeError, match="requires grad"):
                call()
        assert x.numpy(force=True).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("off", [tc.no_grad, tc.inference_mode])
    def test_where_nothing_is_recorded_all_are_handed_out(self, off: Any) -> None:
        """In ``no_grad`` a parameter's memory is NumPy's as it is, as in PyTorch; what is written there is the parameter."""
        x = tc.nn.Parameter(tc.ones(2))
        with off():
            for made in (x.numpy(), np.asarray(x), x.cpu().numpy()):
                made[0] += 1
        assert x.tolist() == [4.0, 1.0]


class TestFunctions:
    """NumPy's operators and functions on tensors."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda a, x: a * x,
            lambda a, x: x * a,
            lambda a, x: a - x,
            lambda a, x: a / (x + 1),
            lambda a, x: np.add(a, x),
            lambda a, x: np.sin(x),
            lambda a, x: a < x,
            lambda a, x: a == x,
            lambda a, x: np.float64(2) * x,
            lambda a, x: np.float32(2) - x,
            lambda a, x: np.array(3.0) * x,
            lambda a, x: np.logaddexp(a, x),
        ],
    )
    def test_results_are_tensors(self, call: Any) -> None:
        """Whichever side the array stands on, the result is a tensor with NumPy's numbers."""
        a, x = np.array([2.0, 1.0, 0.0]), tc.arange(3, dtype=tc.float64)
        found = call(a, x)
        assert type(found) is tc.Tensor
        assert found.tolist() == pytest.approx(call(a, np.arange(3.0)).tolist(), rel=1e-12)

    def test_dtypes_follow_the_tensors_rules(self, torch: Any) -> None:
        """A float32 tensor times a float64 array is float64, times a NumPy number float32, as in PyTorch."""
        for value in (np.ones(2), np.ones(2, np.int64), np.float64(2), np.int64(2)):
            assert str((tc.ones(2) * value).dtype) == str((torch.ones(2) * torch.as_tensor(value)).dtype)

    def test_gradients_go_through_functions_that_are_ops(self) -> None:
        """``np.sin`` of a tensor is ``sin``: it records."""
        x = tc.tensor([0.0, 1.0], requires_grad=True)
        (np.array([2.0, 3.0], np.float32) * np.exp(x)).sum().backward()
        assert x.grad.tolist() == pytest.approx([2.0, 3.0 * np.e], rel=1e-6)

    def test_arrays_to_write_to(self) -> None:
        """``out=`` and in-place operators of an array write into it; a tensor as ``out`` is written too."""
        a, x = np.ones(3), tc.arange(3, dtype=tc.float64)
        assert np.add(a, x, out=a) is a
        a += x
        assert a.tolist() == [1.0, 3.0, 5.0]
        assert np.add(a, 1, out=x) is x
        assert x.tolist() == [2.0, 4.0, 6.0]
        assert x._version == 1

    def test_several_results_and_reductions(self) -> None:
        """Functions with two results give two tensors, functions of arrays give arrays."""
        x = tc.tensor([1.5, 2.25])
        assert [one.tolist() for one in np.modf(x)] == [[0.5, 0.25], [1.0, 2.0]]
        assert np.stack([x, x]).shape == (2, 2)
        assert np.add.reduce(x).item() == 3.75


def test_array_namespace() -> None:
    """The array API's namespace is that of the package, in every version that it knows."""
    assert tc.ones(1).__array_namespace__() is tc.array_api
    assert tc.ones(1).__array_namespace__(api_version="2023.12").ones(2).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"2024\.12.*got '1999\.01'"):
        tc.ones(1).__array_namespace__(api_version="1999.01")


DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


class TestCapsules:
    """DLPack capsules themselves, as older programs pass them."""

    def test_capsules_share_memory(self) -> None:
        """A tensor from another one's capsule writes to the same memory; a capsule serves once."""
        x = tc.arange(3.0)
        capsule = tc.to_dlpack(x)
        tc.utils.dlpack.from_dlpack(capsule)[1] = 5
        assert x.tolist() == [0.0, 5.0, 2.0]
        with pytest.raises(BufferError, match="each can be used once"):
            tc.from_dlpack(capsule)

    def test_capsules_of_pytorch(self, torch: Any) -> None:
        """Capsules go to PyTorch and come from there, those of bfloat16 too."""
        theirs = torch.ones(2, dtype=torch.bfloat16)
        tc.from_dlpack(torch.utils.dlpack.to_dlpack(theirs)).mul_(3)
        assert theirs.tolist() == [3.0, 3.0]
        assert torch.from_dlpack(tc.to_dlpack(tc.arange(3))).tolist() == [0, 1, 2]


class TestDLPack:
    """Capsules."""

    @pytest.mark.parametrize("name", DTYPES)
    def test_numpy_both_ways(self, name: str) -> None:
        """Values, dtype and memory are the same on both sides."""
        x = tc.tensor([[0, 1], [1, 0]], dtype=getattr(tc, name))
        array = np.from_dlpack(x)
        assert (array.tolist(), array.dtype, array.ctypes.data) == (x.tolist(), x.dtype.numpy, x.data_ptr())
        back = tc.from_dlpack(array)
        assert (back.tolist(), back.dtype, back.data_ptr()) == (x.tolist(), x.dtype, x.data_ptr())

    @pytest.mark.parametrize("name", [*DTYPES, "bfloat16"])
    def test_pytorch_both_ways(self, torch: Any, name: str) -> None:
        """PyTorch and tensorcore write into one memory, bfloat16 included."""
        x = tc.tensor([[0, 1], [1, 0]], dtype=getattr(tc, name)).t()
        theirs = torch.from_dlpack(x)
        assert (theirs.stride(), str(theirs.dtype)) == (x.stride(), str(x.dtype))
        theirs.fill_(1)
        assert x.tolist() == theirs.tolist()
        mine = tc.from_dlpack(torch.zeros(3, dtype=getattr(torch, name))[1:])
        assert (mine.tolist(), mine.dtype, mine.storage_offset()) == ([0, 0], x.dtype, 0)

    def test_memory_outlives_the_exporter(self) -> None:
        """The array keeps the memory when the tensor is gone, and the other way round."""
        array = np.from_dlpack(tc.arange(1000))
        x = tc.from_dlpack(np.arange(1000))
        filler = [tc.zeros(1000, dtype=tc.int64) for _ in range(10)]
        assert (array[999], x.tolist()[999], len(filler)) == (999, 999, 10)

    def test_copies(self) -> None:
        """``copy=True`` gives memory of its own, ``copy=False`` shares, and another device is a copy."""
        x = tc.arange(3)
        assert tc.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
        assert tc.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
        assert tc.from_dlpack(x, device="meta").is_meta
        with pytest.raises(ValueError, match="copy=False"):
            tc.from_dlpack(x, device="meta", copy=False)

    def test_refusals(self, torch: Any) -> None:
        """Gradients, strangers and used capsules are refused with PyTorch's types of error."""
        for m in (torch, tc):
            with pytest.raises(BufferError, match="require gradient"):
                m.ones(2, requires_grad=True).__dlpack__()
        with pytest.raises(TypeError, match="from_dlpack"):
            tc.from_dlpack(3)
        assert tc.ones(2).__dlpack_device__() == (1, 0)

    def test_an_exporter_from_before_version_1(self) -> None:
        """An object whose ``__dlpack__`` knows no keywords is taken."""

        class Old:
            def __dlpack__(self, stream: Any = None) -> Any:
                return np.arange(3).__dlpack__()

            def __dlpack_device__(self) -> tuple[int, int]:
                return 1, 0

        assert tc.from_dlpack(Old()).tolist() == [0, 1, 2]


class TestBuffers:
    """``frombuffer`` and ``asarray``."""

    def test_a_buffer_is_shared(self) -> None:
        """Writes go into the bytearray."""
        data = bytearray(8)
        tc.frombuffer(data, dtype=tc.int16, offset=2, count=2).fill_(257)
        assert data == bytearray([0, 0, 1, 1, 1, 1, 0, 0])

    @pytest.mark.parametrize(
        "call",
        [
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32),
            lambda m: m.frombuffer(bytearray(8), dtype=m.bfloat16, count=3),
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32, requires_grad=True),
            lambda m: m.frombuffer(bytearray(8), dtype=m.int32, requires_grad=True),
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32, count=-2),
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32, count=3),
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32, count=0),
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32, offset=2),
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32, offset=9),
            lambda m: m.frombuffer(bytearray(8), dtype=m.float32, offset=-1),
            lambda m: m.frombuffer(bytearray(9), dtype=m.float32),
            lambda m: m.frombuffer(bytearray(0), dtype=m.float32),
            lambda m: m.frombuffer([1], dtype=m.float32),
            lambda m: m.frombuffer(bytearray(8)),
            lambda m: m.asarray([1, 2]),
            lambda m: m.asarray(3.5),
            lambda m: m.asarray(np.float64(3)),
            lambda m: m.asarray(np.arange(3)),
            lambda m: m.asarray(bytearray(b"1234")),
            lambda m: m.asarray(bytearray(b"12345678"), dtype=m.int32),
            lambda m: m.asarray("text"),
            lambda m: m.asarray([1.0], requires_grad=True),
            lambda m: m.asarray([1], requires_grad=True),
            lambda m: m.asarray([1], copy=False),
            lambda m: m.asarray(m.ones(2), copy=False, dtype=m.float64),
            lambda m: m.asarray(m.ones(2, requires_grad=True), requires_grad=False),
            lambda m: m.asarray(m.ones(2), requires_grad=True),
        ],
    )
    def test_as_in_pytorch(self, torch: Any, call: Any) -> None:
        """The same tensor, or an error that the same clause catches."""
        try:
            expected = call(torch)
        except Exception as error:
            with pytest.raises(type(error)):
                call(tc)
            return
        found = call(tc)
        assert (found.tolist(), str(found.dtype), found.requires_grad) == (
            expected.tolist(),
            str(expected.dtype),
            expected.requires_grad,
        )

    def test_asarray_shares_where_it_can(self) -> None:
        """A tensor is given back itself, an array is shared; with ``copy`` neither is."""
        x, array = tc.ones(2), np.ones(2)
        assert tc.asarray(x) is x
        assert tc.asarray(array).data_ptr() == array.ctypes.data
        assert tc.asarray(x, copy=True).data_ptr() != x.data_ptr()
        assert tc.asarray(array, copy=True).data_ptr() != array.ctypes.data

    def test_a_read_only_buffer_warns(self) -> None:
        """Bytes are shared, with a warning."""
        with pytest.warns(UserWarning, match="writable"):
            assert tc.frombuffer(b"\x01\x00", dtype=tc.int16).item() == 1


@pytest.mark.oracle
@pytest.mark.parametrize("call", [
    lambda T, p: T.from_file(p, size=2, dtype=T.float64),
    lambda T, p: T.from_file(p, False, 4),
    lambda T, p: T.from_file(p),
    lambda T, p: T.from_file(p, True, 5, dtype=T.int64),
    lambda T, p: T.from_file(p, size=9),
    lambda T, p: T.from_file(p, size=-1),
    lambda T, p: T.from_file(p, 1, size=2),
    lambda T, p: T.from_file(f"{p}x", size=2),
])  # fmt: skip
def test_from_file(call, tmp_path, torch):
    """The elements of a file, or an error of PyTorch's type."""
    found = []
    for library in (tc, torch):
        path = tmp_path / library.__name__
        path.write_bytes(np.arange(2.0).tobytes())
        try:
            made = call(library, str(path))
            found.append((made.tolist(), str(made.dtype), path.stat().st_size))
        except (RuntimeError, TypeError) as error:
            found.append(TypeError if isinstance(error, TypeError) else RuntimeError)
    assert found[0] == found[1]


def test_writes_to_a_file_that_is_shared(tmp_path):
    """They go to the file, which is made; without ``shared`` they stay in memory."""
    path = str(tmp_path / "numbers")
    tc.from_file(path, shared=True, size=3)[1] = 5.0
    tc.from_file(path, size=3).fill_(7.0)
    assert tc.from_file(path, size=3).tolist() == [0.0, 5.0, 0.0]
