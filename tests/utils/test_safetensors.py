"""Tensors in safetensors files: there and back, beside the format's own library, and broken files."""

import os

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import dtypes
from tensorcore.utils import safetensors

STORED = [one for one in dtypes.ALL if one.name != "complex128"]


def test_tensors_come_back(tmp_path):
    """Shapes, dtypes and values of every dtype survive, and so does the text."""
    tensors = {one.name: tc.arange(6).reshape(2, 3).to(one) for one in STORED}
    tensors.update(number=tc.tensor(2.5), nothing=tc.empty(0, 3), turned=tc.arange(6.0).reshape(2, 3).t())
    safetensors.save_file(tensors, tmp_path / "a", {"note": "ä"})
    back = safetensors.load_file(tmp_path / "a")
    assert sorted(back) == sorted(tensors)
    for name, one in tensors.items():
        assert (back[name].dtype, back[name].shape, back[name].tolist()) == (one.dtype, one.shape, one.tolist())
    assert safetensors.read_metadata(tmp_path / "a") == {"note": "ä"}


def test_loaded_tensors_can_be_written(tmp_path):
    """What is loaded is memory of its own."""
    safetensors.save_file({"a": tc.zeros(2)}, tmp_path / "a")
    one = safetensors.load_file(tmp_path / "a")["a"]
    one.add_(1)
    assert one.tolist() == [1, 1]


def test_the_formats_own_library_reads_and_writes_the_same(tmp_path):
    """A file from here is read by the safetensors package, and one from there is read here."""
    numpy = pytest.importorskip("safetensors.numpy")
    safetensors.save_file({"a": tc.arange(3), "b": tc.ones(2, 2)}, tmp_path / "ours")
    theirs = numpy.load_file(tmp_path / "ours")
    assert theirs["a"].tolist() == [0, 1, 2]
    assert theirs["b"].dtype == np.float32
    numpy.save_file({"c": np.arange(4.0)}, tmp_path / "theirs", {"x": "y"})
    assert safetensors.load_file(tmp_path / "theirs")["c"].tolist() == [0, 1, 2, 3]
    assert safetensors.read_metadata(tmp_path / "theirs") == {"x": "y"}


@pytest.mark.parametrize("keep", [0, 5, 8, 30, -1])
def test_a_file_cut_short_is_refused(tmp_path, keep):
    """Wherever it was cut, one sentence says that it is broken and names it."""
    path = tmp_path / "cut"
    safetensors.save_file({"a": tc.arange(100)}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:keep] if keep >= 0 else whole[:-1])
    with pytest.raises(tc.errors.LoadError) as caught:
        safetensors.load_file(path)
    assert "cut short" in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "header",
    [
        b"not json",
        b"[1, 2]",
        b'{"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}',
        b'{"a": 3}',
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, header):
    """Headers that are no JSON, or that do not fit the values, are refused."""
    path = tmp_path / "odd"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
    with pytest.raises(tc.errors.LoadError):
        safetensors.load_file(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """When the disk fails, the older file is whole and nothing else stays behind."""
    path = tmp_path / "a"
    safetensors.save_file({"a": tc.zeros(1)}, path)

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        safetensors.save_file({"a": tc.ones(1)}, path)
    assert safetensors.load_file(path)["a"].item() == 0
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    "tensors, metadata, error",
    [
        ({"a": 3}, None, TypeError),
        ({"a": tc.ones(1, dtype=tc.complex128)}, None, RuntimeError),
        ({"a": tc.ones(1)}, {"n": 3}, TypeError),
    ],
)
def test_what_the_format_lacks_is_refused(tmp_path, tensors, metadata, error):
    """Things that are no tensors, dtypes that the format lacks and metadata that is no text are refused."""
    with pytest.raises(error, match="save_file: expected"):
        safetensors.save_file(tensors, tmp_path / "a", metadata)
    assert list(tmp_path.iterdir()) == []


def test_tensors_are_read_when_asked_for(tmp_path):
    """An open file lists names, shapes and dtypes, and gives tensors and parts of them, on the device asked for."""
    safetensors.save_file(
        {"a": tc.arange(12.0).reshape(3, 4), "b": tc.ones(2, dtype=tc.bfloat16)}, tmp_path / "a", {"k": "v"}
    )
    with safetensors.safe_open(tmp_path / "a", framework="pt", device="cpu") as file:
        assert (file.keys(), file.offset_keys(), file.metadata()) == (["a", "b"], ["a", "b"], {"k": "v"})
        assert file.get_tensor("b").tolist() == [1, 1]
        part = file.get_slice("a")
        assert (part.get_shape(), part.get_dtype()) == ([3, 4], "F32")
        assert part[1:, ::2].tolist() == [[4, 6], [8, 10]]
        assert part[..., 0].tolist() == [0, 4, 8]
        assert part[2, 3].item() == 11
        with pytest.raises(IndexError, match="get_slice: expected an index"):
            part[5]
        with pytest.raises(KeyError, match="'c'"):
            file.get_tensor("c")
    with safetensors.safe_open(tmp_path / "a", device="meta") as file:
        assert file.get_tensor("a").is_meta


def test_bytes_instead_of_a_file(tmp_path):
    """``save`` gives what ``save_file`` writes, and ``load`` reads it."""
    tensors = {"a": tc.arange(3), "b": tc.tensor(1.5)}
    safetensors.save_file(tensors, tmp_path / "a")
    data = safetensors.save(tensors)
    assert data == (tmp_path / "a").read_bytes()
    assert {name: one.tolist() for name, one in safetensors.load(data).items()} == {"a": [0, 1, 2], "b": 1.5}


def test_tensors_that_overlap_are_refused():
    """Two tensors over one part of the file are nothing that a writer makes."""
    header = (
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    )
    with pytest.raises(tc.errors.LoadError, match="overlap"):
        safetensors.load(len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
