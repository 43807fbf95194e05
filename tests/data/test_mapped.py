"""Data sets in files: what a sample and a batch read, what they cost, and files that do not fit."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.utils import data, safetensors


def npy(folder: Path) -> Any:
    np.save(folder / "x.npy", np.arange(40, dtype=np.float32).reshape(10, 2, 2))
    np.save(folder / "y.npy", np.arange(10))
    return data.NpyDataset(folder / "x.npy", folder / "y.npy")


def raw(folder: Path) -> Any:
    np.arange(40, dtype=np.float32).tofile(folder / "x.bin")
    (folder / "y.bin").write_bytes(b"head" + np.arange(10).tobytes())
    x = data.RawDataset(folder / "x.bin", tc.float32, (2, 2))
    return data.MappedDataset(*x.columns, *data.RawDataset(folder / "y.bin", tc.int64, offset=4).columns)


def safe(folder: Path) -> Any:
    tensors = {"x": tc.arange(40.0).reshape(10, 2, 2), "y": tc.arange(10), "z": tc.ones(3)}
    safetensors.save_file(tensors, folder / "a.safetensors")
    return data.SafetensorsDataset(folder / "a.safetensors", "x", "y")


@pytest.mark.parametrize("make", [npy, raw, safe])
class TestEveryFormat:
    """What all files have in common."""

    def test_samples(self, make: Any, tmp_path: Path) -> None:
        """A sample is a row of each array, counted from either end; a slice is several rows."""
        dataset = make(tmp_path)
        assert len(dataset) == 10
        assert [one.tolist() for one in dataset[2]] == [[[8.0, 9.0], [10.0, 11.0]], 2]
        assert dataset[-1][1].item() == 9
        assert dataset[3:5][1].tolist() == [3, 4]

    @pytest.mark.parametrize("workers", [0, 2] if hasattr(os, "fork") else [0])
    def test_batches(self, make: Any, tmp_path: Path, workers: int, monkeypatch: Any) -> None:
        """A loader gathers a batch at once, in any order, behind a Subset and without; the same as sample by sample."""
        monkeypatch.setattr(data.dataloader, "_warn_of_crowd", lambda count: None)
        dataset = make(tmp_path)
        for wrapped in (dataset, data.Subset(dataset, [7, 3, 5, 1])):
            loader = data.DataLoader(
                wrapped, 3, shuffle=True, num_workers=workers, generator=tc.Generator().manual_seed(1)
            )
            for x, y in loader:
                assert x[:, 0, 0].tolist() == [4.0 * i for i in y.tolist()]
        assert [len(one) for one in data.DataLoader(dataset, 4, collate_fn=list)] == [4, 4, 2]

    def test_only_the_rows_are_read(self, make: Any, tmp_path: Path) -> None:
        """A batch of 3 samples asks for 3 rows of 24 bytes."""
        dataset = make(tmp_path)
        dataset.gathered([1, 5, 9])
        assert dataset.bytes_read == 3 * 24

    def test_samples_are_copies(self, make: Any, tmp_path: Path) -> None:
        """A write to a sample does not reach the file."""
        dataset = make(tmp_path)
        dataset[0][0].fill_(7)
        assert dataset[0][0].tolist() == [[0.0, 1.0], [2.0, 3.0]]

    def test_pickles(self, make: Any, tmp_path: Path) -> None:
        """Another process gets the path, not the values."""
        dataset = make(tmp_path)
        dataset[0]
        again = pickle.loads(pickle.dumps(dataset))
        assert again[1][1].item() == 1

    @pytest.mark.parametrize("index, error", [(10, IndexError), (-11, IndexError), ("a", TypeError), (1.5, TypeError)])
    def test_wrong_indices(self, make: Any, tmp_path: Path, index: Any, error: type) -> None:
        """They are refused as a list refuses them."""
        with pytest.raises(error, match="MappedDataset: "):
            make(tmp_path)[index]


def test_bytes_in_another_order(tmp_path: Path) -> None:
    """Big-endian values are turned, and bfloat16 is read from raw files."""
    np.save(tmp_path / "x.npy", np.arange(3, dtype=">f4"))
    assert data.NpyDataset(tmp_path / "x.npy")[0:3][0].tolist() == [0.0, 1.0, 2.0]
    (tmp_path / "x.bin").write_bytes(b"\x80\x3f\x00\x40")
    assert data.RawDataset(tmp_path / "x.bin", tc.bfloat16)[0:2][0].tolist() == [1.0, 2.0]


def test_no_rows(tmp_path: Path) -> None:
    """An empty array is an empty data set."""
    np.save(tmp_path / "x.npy", np.zeros((0, 3)))
    assert len(data.NpyDataset(tmp_path / "x.npy")) == 0
    assert list(data.DataLoader(data.NpyDataset(tmp_path / "x.npy"))) == []


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    """Cut, turned, of objects, of other lengths or of another kind: refused when the data set is made."""
    np.save(tmp_path / "x.npy", np.zeros((4, 3)))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-1])
    np.save(tmp_path / "turned.npy", np.asfortranarray(np.zeros((4, 3))))
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "number.npy", np.array(1))
    np.save(tmp_path / "long.npy", np.zeros(5))
    (tmp_path / "odd.npy").write_bytes(b"hello, world")
    (tmp_path / "header.npy").write_bytes(whole.replace(b"}", b"(", 1))
    for name, text in (("cut", "cut short"), ("turned", "Fortran order"), ("objects", "dtype"), ("text", "dtype"), ("odd", "numpy.save"),
                       ("number", "one number"), ("header", "numpy.save")):  # fmt: skip
        with pytest.raises((RuntimeError, ValueError), match=text):
            data.NpyDataset(tmp_path / f"{name}.npy")
    with pytest.raises(ValueError, match="equally many rows"):
        data.NpyDataset(tmp_path / "x.npy", tmp_path / "long.npy")
    with pytest.raises(RuntimeError, match="whole rows of 9 bytes"):
        data.RawDataset(tmp_path / "x.npy", tc.uint8, (9,))
    safetensors.save_file({"a": tc.ones(1)}, tmp_path / "a.safetensors")
    with pytest.raises(KeyError, match="missing"):
        data.SafetensorsDataset(tmp_path / "a.safetensors", "missing")
    with pytest.raises(FileNotFoundError):
        data.NpyDataset(tmp_path / "missing.npy")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("shuffle", [False, True])
def test_memory_of_an_epoch_is_bounded(tmp_path: Path, shuffle: bool) -> None:
    """An epoch over a file of 512 MiB takes less than 160 MiB more than the process had, whatever the order."""
    with open(tmp_path / "x.bin", "wb") as file:
        file.truncate(512 << 20)
    code = """
import sys, tensorcore as tc
from tensorcore.utils import data
def peak(): return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) >> 10
dataset = data.RawDataset(sys.argv[1], tc.float32, (16, 1024))
loader = data.DataLoader(dataset, 64, shuffle=sys.argv[2] == "True")
next(iter(loader)); before = peak(); count = 0
for x, in loader: count += len(x)
print(count, dataset.bytes_read >> 20, peak() - before)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "x.bin"), str(shuffle)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, read, grown = map(int, done.stdout.split())
    assert (count, read) == (8192, 512 + 4)
    assert grown < 160
