"""Copies and files: what deepcopy, pickle, save and load keep, and what they refuse."""

from __future__ import annotations

import copy
import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import serialization
from tensorcore.parameter import Parameter


class Stranger:
    """A class that no file may build unasked."""


def pickled(value: Any, protocol: int = 4) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def saved(value: Any, **options: Any) -> Any:
    return tc.load(io.BytesIO(written(value)), **options)


def written(value: Any) -> bytes:
    file = io.BytesIO()
    tc.save(value, file)
    return file.getvalue()


ROUND_TRIPS = [pickled, lambda x: pickled(x, 2), lambda x: pickled(x, 5), copy.deepcopy, saved]
ALL_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
              "complex64", "complex128")  # fmt: skip


@pytest.mark.parametrize("trip", ROUND_TRIPS)
class TestEveryRoundTrip:
    """What all ways of copying keep."""

    @pytest.mark.parametrize("name", ALL_DTYPES)
    def test_values_and_dtype(self, trip: Any, name: str) -> None:
        """Every dtype comes back with its values."""
        x = tc.tensor([0, 1, 2], dtype=getattr(tc, name))
        back = trip(x)
        assert (back.tolist(), back.dtype, back.device) == (x.tolist(), x.dtype, x.device)
        assert back.data_ptr() != x.data_ptr()

    def test_strides_and_offset(self, trip: Any) -> None:
        """A view comes back as the same part of a storage of the same size."""
        x = tc.arange(12.0).reshape(3, 4).t().narrow(0, 1, 2)
        back = trip(x)
        assert (back.stride(), back.storage_offset(), back.tolist()) == ((1, 4), 1, x.tolist())
        assert back.untyped_storage().nbytes() == 48

    def test_views_stay_views(self, trip: Any) -> None:
        """Two tensors of one storage share one again, and a write to one is seen by the other."""
        x = tc.arange(6.0)
        whole, part = trip([x, x.narrow(0, 2, 2)])
        assert whole.untyped_storage() is part.untyped_storage()
        whole.fill_(7)
        assert part.tolist() == [7.0, 7.0]
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

    def test_one_tensor_twice_stays_one(self, trip: Any) -> None:
        """A tensor that appears twice is one object again."""
        x = tc.ones(2)
        first, second = trip((x, x))
        assert first is second

    def test_requires_grad_and_no_history(self, trip: Any) -> None:
        """A leaf that requires grad comes back as one; so does a parameter, as a parameter."""
        leaf, parameter = trip([tc.ones(2, requires_grad=True), Parameter(tc.ones(2), requires_grad=False)])
        assert (leaf.requires_grad, leaf.is_leaf, isinstance(leaf, Parameter)) == (True, True, False)
        assert (parameter.requires_grad, isinstance(parameter, Parameter)) == (False, True)

    def test_empty_and_0d(self, trip: Any) -> None:
        """Tensors without elements and without dims come back."""
        empty, zero_d = trip((tc.zeros(0, 3), tc.tensor(5)))
        assert (tuple(empty.shape), zero_d.item()) == ((0, 3), 5)

    def test_meta(self, trip: Any) -> None:
        """A tensor without values comes back without."""
        back = trip(tc.empty(2, 3, device="meta", dtype=tc.int8))
        assert (back.is_meta, tuple(back.shape), back.dtype) == (True, (2, 3), tc.int8)

    def test_shapes_dtypes_and_devices(self, trip: Any) -> None:
        """What surrounds tensors comes back, dtypes and devices as the same objects."""
        x = tc.ones(2, 3)
        value = OrderedDict(a=[x.shape, x.dtype, x.device, None, 1.5, "text", b"bytes", {1, 2}, (True, 1j)])
        assert trip(value) == value
        assert trip(x.dtype) is x.dtype


class TestCopies:
    """What copy and deepcopy do beside."""

    def test_copy_shares_memory(self) -> None:
        """``copy.copy`` gives another tensor over the same memory, a leaf with the attributes."""
        x = tc.ones(2, requires_grad=True)
        x.note = 3
        made = copy.copy(x)
        assert made is not x
        assert (made.data_ptr(), made.requires_grad, made.note) == (x.data_ptr(), True, 3)

    def test_deepcopy_of_a_result_is_refused(self) -> None:
        """As in PyTorch, only leaves are copied; pickle makes a leaf of a result."""
        y = tc.ones(2, requires_grad=True) * 2.0
        with pytest.raises(RuntimeError, match="graph leaves"):
            copy.deepcopy(y)
        assert pickled(y).is_leaf

    def test_gradients(self) -> None:
        """deepcopy copies the gradient of a tensor and leaves out that of a parameter; pickle leaves out both."""
        x, p = tc.ones(2, requires_grad=True), Parameter(tc.ones(2))
        x.grad, p.grad = tc.tensor([1.0, 2.0]), tc.ones(2)
        made = copy.deepcopy(x)
        assert made.grad.tolist() == [1.0, 2.0]
        assert made.grad.data_ptr() != x.grad.data_ptr()
        assert copy.deepcopy(p).grad is None
        assert pickled(x).grad is None

    def test_hooks_are_left_out_with_a_warning(self) -> None:
        """A copy has no hooks, and pickle says so."""
        x = tc.ones(2, requires_grad=True)
        called = []
        x.register_hook(called.append)
        with pytest.warns(UserWarning, match="hooks will not be serialized"):
            made = pickled(x)
        for one in (made, copy.deepcopy(x)):
            (one * 2.0).sum().backward()
        assert called == []

    @pytest.mark.parametrize("what", ["shared", "parameter", "result", "attributes"])
    def test_copies_are_pytorchs(self, torch: Any, what: str) -> None:
        """copy and deepcopy keep and drop what PyTorch's do."""

        def described(m: Any) -> Any:
            x = m.arange(4.0)
            if what == "shared":
                a, b = copy.deepcopy((x, x[1:3] if m is torch else x.narrow(0, 1, 2)))
                return b.data_ptr() - a.data_ptr(), b.storage_offset(), b._is_view(), b.untyped_storage().nbytes()
            if what == "parameter":
                p = (m.nn.Parameter if m is torch else Parameter)(x)
                p.note = 1
                return hasattr(copy.deepcopy(p), "note"), copy.copy(p).note, copy.deepcopy(p).requires_grad
            if what == "result":
                made = copy.copy(x.requires_grad_() * 2.0)
                return made.requires_grad, made.is_leaf
            x.note = [1]
            made = copy.deepcopy(x)
            return made.note, made.note is x.note, copy.copy(x).note is x.note

        assert described(tc) == described(torch)

    def test_buffers_out_of_band(self) -> None:
        """Protocol 5 hands the bytes over without a copy into the pickle."""
        buffers: list[Any] = []
        x = tc.arange(1000.0)
        data = pickle.dumps(x, 5, buffer_callback=buffers.append)
        assert len(data) < 1000
        assert pickle.loads(data, buffers=buffers).tolist() == x.tolist()


class TestFiles:
    """``save`` and ``load``."""

    def test_a_path(self, tmp_path: Path) -> None:
        """A path is written and read, and nothing is left beside it."""
        path = tmp_path / "x.pt"
        tc.save({"x": tc.arange(3)}, path)
        assert tc.load(path)["x"].tolist() == [0, 1, 2]
        assert tc.load(str(path), weights_only=False)["x"].tolist() == [0, 1, 2]
        assert os.listdir(tmp_path) == ["x.pt"]

    def test_a_failed_save_leaves_the_old_file(self, tmp_path: Path) -> None:
        """What cannot be pickled does not harm the file that is there."""
        path = tmp_path / "x.pt"
        tc.save(tc.ones(2), path)
        with pytest.raises(Exception, match="lambda"):
            tc.save([tc.ones(3), lambda: 0], path)
        assert tc.load(path).tolist() == [1.0, 1.0]
        assert os.listdir(tmp_path) == ["x.pt"]

    def test_a_save_cut_off_by_the_disk_leaves_the_old_file(self, tmp_path: Path, monkeypatch: Any) -> None:
        """An error while the bytes are written leaves neither a half file nor a temporary one."""
        path = tmp_path / "x.pt"
        tc.save(tc.ones(2), path)

        def full(*args: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            tc.save(tc.ones(3), path)
        assert tc.load(path).tolist() == [1.0, 1.0]
        assert os.listdir(tmp_path) == ["x.pt"]

    def test_several_in_one_file(self) -> None:
        """An open file is read from where it is, to the object's end."""
        file = io.BytesIO(written(1) + written(tc.ones(2)) + b"rest")
        assert (tc.load(file), tc.load(file).tolist(), file.read()) == (1, [1.0, 1.0], b"rest")

    def test_each_storage_once(self) -> None:
        """A storage of a megabyte with ten views takes a megabyte."""
        x = tc.zeros(1 << 18)
        assert len(written([x.narrow(0, i, 5) for i in range(10)])) < 1.1 * (1 << 20)

    @pytest.mark.parametrize("kept", [3, 20, 40, 200, -1])
    def test_a_file_that_was_cut_short(self, kept: int) -> None:
        """One sentence says so, wherever the cut is, with a file that can seek and one that cannot."""
        data = written({"x": tc.arange(100.0)})[:kept]

        class Stream:
            def __init__(self) -> None:
                self.read = io.BytesIO(data).read

        for file in (io.BytesIO(data), Stream()):
            with pytest.raises(RuntimeError, match="the file was cut short"):
                tc.load(file)

    @pytest.mark.parametrize("data", [b"", b"PK\x03\x04 a zip", b"\x80\x04N."])
    def test_a_file_of_another_kind(self, data: bytes) -> None:
        """What save() did not write is refused by its first bytes."""
        with pytest.raises(RuntimeError, match=r"expected a file that save\(\) of tensorcore wrote"):
            tc.load(io.BytesIO(data))

    def test_a_damaged_file(self) -> None:
        """Bytes changed within the pickle give one error, of the kind for files."""
        data = bytearray(written([1, 2, 3]))
        data[34] = 0xFF
        with pytest.raises(RuntimeError, match="load: "):
            tc.load(io.BytesIO(bytes(data)))

    def test_wrong_arguments(self, tmp_path: Path) -> None:
        """What is no file, no map and no directory is named."""
        with pytest.raises(TypeError, match="load: expected a path"):
            tc.load(3)
        with pytest.raises(TypeError, match="save: expected 'f'"):
            tc.save(1, 3)
        with pytest.raises(TypeError, match="map_location"):
            tc.load(io.BytesIO(written(1)), map_location=3)
        with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
            tc.save(1, tmp_path / "missing" / "x.pt")
        with pytest.raises(FileNotFoundError):
            tc.load(tmp_path / "missing.pt")


class TestMapLocation:
    """Where storages go."""

    @pytest.mark.parametrize("where", ["meta", {"cpu": "meta"}, lambda storage, name: storage.to("meta")])
    def test_to_another_device(self, where: Any) -> None:
        """A name, a dict, and a function of storage and name move everything, shared storages as one."""
        x = tc.arange(6.0)
        whole, part = saved([x, x.narrow(0, 2, 2)], map_location=where)
        assert whole.is_meta
        assert part.untyped_storage() is whole.untyped_storage()

    def test_a_function_that_gives_nothing_leaves_the_storage(self) -> None:
        """None means the saved device."""
        seen = []
        assert saved(tc.ones(2), map_location=lambda storage, name: seen.append((len(storage), name))).tolist() == [
            1.0,
            1.0,
        ]
        assert seen == [(8, "cpu")]

    def test_a_device_that_is_not_here(self) -> None:
        """A file from a machine with another device says how to load it."""
        data = written(tc.ones(2)).replace(b"cpu", b"gpx")
        with pytest.raises(RuntimeError, match="pass map_location"):
            tc.load(io.BytesIO(data))
        assert tc.load(io.BytesIO(data), map_location="cpu").tolist() == [1.0, 1.0]


class TestSafety:
    """``weights_only``, which is the default."""

    def test_a_class_is_refused_by_name(self) -> None:
        """The error names what the file wanted, and the way to allow it."""
        with pytest.raises(pickle.UnpicklingError, match=rf"{__name__}.Stranger.*add_safe_globals"):
            saved([Stranger()])
        assert type(saved([Stranger()], weights_only=False)[0]) is Stranger

    def test_an_allowed_class(self) -> None:
        """Within ``safe_globals`` it is built, and refused again after."""
        with serialization.safe_globals([Stranger]):
            assert type(saved(Stranger())) is Stranger
            assert serialization.get_safe_globals() == [Stranger]
        with pytest.raises(pickle.UnpicklingError):
            saved(Stranger())

    def test_code_does_not_run(self, tmp_path: Path) -> None:
        """A file that wants a function called is refused before the call."""

        class Attack:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "gone wrong"),)

        with pytest.raises(pickle.UnpicklingError, match="mkdir"):
            saved(Attack())
        assert os.listdir(tmp_path) == []

    def test_what_is_allowed_cannot_be_changed(self) -> None:
        """A file may call the functions that rebuild tensors, and not set their attributes."""
        name = f"c{serialization.__name__}\nrebuild_tensor\n".encode()
        pickled = b"\x80\x04" + name + b"}X\x05\x00\x00\x00extraK\x01sb."
        data = serialization._HEADER.pack(serialization._MAGIC, 1, 128, len(pickled)) + pickled.ljust(96, b"\0")
        with pytest.raises(pickle.UnpicklingError, match="expected no state for a function"):
            tc.load(io.BytesIO(data))
        assert not hasattr(serialization.rebuild_tensor, "extra")
