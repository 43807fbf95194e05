"""Files: what ``save`` and ``load`` do with paths, open files, devices, and what went wrong."""

from __future__ import annotations

import errno
import io
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import serialization
from tensorcore.parameter import Parameter
from tensorcore.serialization import files
from tensorcore.utils import safetensors


class Stranger:
    """A class that no file may build unasked."""


def saved(value: Any, **options: Any) -> Any:
    return tc.load(io.BytesIO(written(value)), **options)


def written(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    tc.save(value, file, **options)
    return file.getvalue()


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
            with pytest.raises(RuntimeError, match="cut short"):
                tc.load(file)

    @pytest.mark.parametrize("data", [b"", b"P", b"hello", b"\x80\x04N.", b"\x89PNG\r\n\x1a\n" + bytes(300)])
    def test_a_file_of_another_kind(self, data: bytes) -> None:
        """What save() did not write is refused by its first bytes."""
        with pytest.raises(RuntimeError, match=r"expected a file that save\(\)"):
            tc.load(io.BytesIO(data))

    def test_old_and_foreign_archives(self) -> None:
        """The tar of PyTorch 0.1 and the program of TorchScript are named."""
        import tarfile
        import zipfile

        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("pickle"))
        with pytest.raises(RuntimeError, match="the tar archive that older ones wrote"):
            tc.load(io.BytesIO(file.getvalue()))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("m/data.pkl", b"")
            archive.writestr("m/constants.pkl", b"")
        with pytest.raises(RuntimeError, match="TorchScript"):
            tc.load(io.BytesIO(file.getvalue()))

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

    def test_a_function_that_gives_no_storage(self) -> None:
        """What is neither a storage nor None is named, and not blamed on the file."""
        with pytest.raises(TypeError, match="map_location to give a storage or None, got 3"):
            tc.load(io.BytesIO(written(tc.ones(1))), map_location=lambda storage, place: 3)

    def test_restoring_by_name(self) -> None:
        """``default_restore_location`` inside a function puts a storage where files call a device so, or says there is none."""
        restore = serialization.default_restore_location
        assert saved(tc.ones(2), map_location=lambda storage, name: restore(storage, name)).tolist() == [1.0, 1.0]
        assert serialization.location_tag(tc.ones(2).untyped_storage()) == "cpu"
        with pytest.raises(RuntimeError, match="the device 'gpx'"):
            restore(tc.ones(2).untyped_storage(), "gpx")

    def test_a_device_that_is_not_here(self) -> None:
        """A file from a machine with another device says how to load it."""
        serialization.set_crc32_options(False)
        try:
            data = written(tc.ones(2)).replace(b"cpu", b"gpx")
        finally:
            serialization.set_crc32_options(True)
        with pytest.raises(RuntimeError, match="pass map_location"):
            tc.load(io.BytesIO(data))
        assert tc.load(io.BytesIO(data), map_location="cpu").tolist() == [1.0, 1.0]


class TestOptions:
    """The arguments beside object and file."""

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5, -1])
    def test_every_protocol(self, protocol: int) -> None:
        """Pickles of every binary protocol are written and read safely."""
        value = {
            "x": tc.arange(3),
            "text": "ä" * 300,
            "big": 1 << 70,
            "bytes": b"b" * 300,
            "set": {1},
            "p": Parameter(tc.ones(1)),
        }
        back = tc.load(io.BytesIO(written(value, pickle_protocol=protocol)))
        assert back.pop("x").tolist() == [0, 1, 2]
        assert isinstance(back.pop("p"), Parameter)
        assert back == {"text": "ä" * 300, "big": 1 << 70, "bytes": b"b" * 300, "set": {1}}

    def test_the_format_before_zip(self) -> None:
        """It is written when asked for, and read, several in a file, with shared storages."""
        x = tc.arange(6.0)
        text = written([x, x[2:4], tc.ones(1, dtype=tc.bfloat16)], _use_new_zipfile_serialization=False)
        file = io.BytesIO(text + written(5, _use_new_zipfile_serialization=False))
        whole, part, half = tc.load(file)
        assert part.untyped_storage() is whole.untyped_storage()
        assert (part.tolist(), half.tolist(), tc.load(file)) == ([2.0, 3.0], [1.0], 5)
        with pytest.raises(RuntimeError, match="cut short"):
            tc.load(io.BytesIO(text[:-1]))

    def test_views_of_other_dtypes(self) -> None:
        """One storage seen as two dtypes stays one storage."""
        x = tc.arange(2.0)
        a, b = saved([x, x.view(tc.int32)])
        assert b.tolist() == [0, 1065353216]
        assert a.untyped_storage() is b.untyped_storage()

    def test_storages(self) -> None:
        """Storages by themselves come back, typed and untyped."""
        x = tc.arange(2.0)
        typed, untyped = saved([x.storage(), x.untyped_storage()])
        assert (typed.tolist(), untyped.nbytes()) == ([0.0, 1.0], 8)

    def test_whole_objects(self) -> None:
        """Without ``weights_only`` modules and optimizers come back as they were, with their links."""
        model = tc.nn.Sequential(tc.nn.Linear(2, 2), tc.nn.ReLU())
        optimizer = tc.optim.Adam(model.parameters(), lr=0.1)
        model(tc.ones(1, 2)).sum().backward()
        optimizer.step()
        again, other = saved((model, optimizer), weights_only=False)
        assert again(tc.ones(1, 2)).tolist() == model(tc.ones(1, 2)).tolist()
        assert other.param_groups[0]["params"][0] is again[0].weight
        with pytest.raises(pickle.UnpicklingError, match="Sequential"):
            saved(model)

    def test_pickle_module(self) -> None:
        """A module whose Pickler is written in Python is used; another is refused, and so is one beside weights_only."""
        import types

        module = types.SimpleNamespace(Pickler=pickle._Pickler, Unpickler=pickle._Unpickler)
        data = written([tc.ones(1)], pickle_module=module)
        assert tc.load(io.BytesIO(data), pickle_module=module)[0].tolist() == [1.0]
        with pytest.raises(RuntimeError, match="pickle_module"):
            tc.load(io.BytesIO(data), pickle_module=module, weights_only=True)
        with pytest.raises(ValueError, match="written in Python"):
            written(1, pickle_module=types.SimpleNamespace(Pickler=pickle.Pickler))

    def test_a_safetensors_file(self, tmp_path: Path) -> None:
        """A path of that ending is read as one, as PyTorch does."""
        from tensorcore.utils import safetensors

        safetensors.save_file({"a": tc.arange(3)}, tmp_path / "a.safetensors")
        assert tc.load(tmp_path / "a.safetensors", "cpu")["a"].tolist() == [0, 1, 2]
        with pytest.raises(RuntimeError, match="a device or its name"):
            tc.load(tmp_path / "a.safetensors", {"cpu": "cpu"})


class TestMapping:
    """``load(mmap=True)``."""

    def test_values_are_the_files(self, tmp_path: Path) -> None:
        """Tensors show the file, each storage by itself; what is written to them stays in memory."""
        tc.save([tc.arange(1000.0), tc.ones(3)], tmp_path / "x.pt")
        before = (tmp_path / "x.pt").read_bytes()
        x, y = tc.load(tmp_path / "x.pt", mmap=True)
        assert (x.untyped_storage().nbytes(), y.untyped_storage().nbytes()) == (4000, 12)
        assert x.data_ptr() % 64 == y.data_ptr() % 64 == 0
        x.add_(1)
        assert x[:2].tolist() == [1.0, 2.0]
        assert (tmp_path / "x.pt").read_bytes() == before

    def test_shared_with_the_file(self, tmp_path: Path) -> None:
        """With MAP_SHARED a write reaches the file."""
        import mmap

        tc.save(tc.zeros(2), tmp_path / "x.pt")
        with serialization.set_default_mmap_options(mmap.MAP_SHARED):
            tc.load(tmp_path / "x.pt", mmap=True).fill_(3)
        serialization.set_crc32_options(False)  # the file's checksum is that of the old values
        try:
            assert tc.load(tmp_path / "x.pt").tolist() == [3.0, 3.0]
        finally:
            serialization.set_crc32_options(True)
        assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE

    def test_only_what_is_touched_is_read(self, tmp_path: Path) -> None:
        """A mapped file of 64 MiB costs a process next to no memory until it is used."""
        tc.save(tc.zeros(16 << 20), tmp_path / "x.pt")
        code = (
            "import sys, tensorcore as tc\n"
            "def rss(): return int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20\n"
            "tc.ones(1); tc.load(sys.argv[1], mmap=True); before = rss()\n"
            "x = tc.load(sys.argv[1], mmap=True); x[5].item(); print(rss() - before)"
        )
        if not Path("/proc/self/statm").exists():
            pytest.skip("needs /proc")
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "x.pt"], capture_output=True, text=True, check=True
        )
        assert int(done.stdout) < 8

    def test_open_files_and_old_ones_are_refused(self, tmp_path: Path) -> None:
        """Only a path of a zip file can be mapped."""
        with pytest.raises(ValueError, match="must be a file path"):
            tc.load(io.BytesIO(written(1)), mmap=True)
        tc.save(1, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
        with pytest.raises(RuntimeError, match="mmap can only be used"):
            tc.load(tmp_path / "x.pt", mmap=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB in memory; skipped where this user may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the mount command")
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a file system: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


class TestInterrupted:
    """A save that is cut off leaves the previous file, and nothing else."""

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
    def test_whatever_cuts_it_off(self, tmp_path: Path, monkeypatch: Any, error: type) -> None:
        """Ctrl-C between two records, as everything else, leaves the old file."""
        path = tmp_path / "x.pt"
        tc.save(tc.ones(2), path)
        add = files.ArchiveWriter.add

        def stopped(self: Any, name: str, data: Any) -> None:
            if name == "data/1":
                raise error
            add(self, name, data)

        monkeypatch.setattr(files.ArchiveWriter, "add", stopped)
        with pytest.raises(error):
            tc.save([tc.zeros(1 << 20), tc.zeros(2)], path)
        assert os.listdir(tmp_path) == ["x.pt"]
        assert tc.load(path).tolist() == [1.0, 1.0]

    @pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")
    def test_a_full_disk(self, tmp_path: Path) -> None:
        """Where no more can be written, the error names the path, and the old file is whole."""
        path = tmp_path / "x.pt"
        tc.save(tc.ones(2), path)
        code = (
            "import resource, sys, tensorcore as tc\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
            "try: tc.save(tc.zeros(1 << 20), sys.argv[1])\n"
            "except OSError as error: print(error.filename)"
        )
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(path)
        assert os.listdir(tmp_path) == ["x.pt"]
        assert tc.load(path).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("old", [False, True])
    def test_a_full_file_system(self, small_disk: Path, old: bool) -> None:
        """On a real file system of 1 MiB, a save that does not fit leaves what was there, and the room that it had."""
        if old:
            tc.save(tc.ones(2), small_disk / "x.pt")
        before = os.listdir(small_disk), shutil.disk_usage(small_disk).free
        with pytest.raises(OSError, match="No space left") as caught:
            tc.save({"weight": tc.zeros(1 << 20)}, small_disk / "x.pt")
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(small_disk / "x.pt"))
        with pytest.raises(OSError, match="No space left"):
            safetensors.save_file({"weight": tc.zeros(1 << 20)}, small_disk / "x.safetensors")
        assert (os.listdir(small_disk), shutil.disk_usage(small_disk).free) == before
        if old:
            assert tc.load(small_disk / "x.pt").tolist() == [1.0, 1.0]

    @pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
    def test_control_c_amid_a_save(self, tmp_path: Path) -> None:
        """A real Ctrl-C while the bytes are being written leaves the whole file of the save before, and nothing else."""
        path = tmp_path / "x.pt"
        code = (
            "import itertools, signal, sys, tensorcore as tc\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "for i in itertools.count():\n"
            "    x = [tc.full((1 << 18,), float(i)) for _ in range(8)]\n"
            "    if i == 1: print('saving', flush=True)\n"
            "    tc.save(x, sys.argv[1])\n"
        )
        for wait in (0.0, 0.003, 0.01, 0.03):
            program = subprocess.Popen(
                [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            assert program.stdout is not None
            program.stdout.readline()
            time.sleep(wait)
            program.send_signal(signal.SIGINT)
            try:
                _, errors = program.communicate(timeout=10)
            except subprocess.TimeoutExpired:  # Python drops an interrupt that comes while an object is let go
                program.send_signal(signal.SIGINT)
                _, errors = program.communicate(timeout=60)
            assert errors.strip().endswith("KeyboardInterrupt")
            assert os.listdir(tmp_path) == ["x.pt"]
            first, *rest = (one.unique().tolist() for one in tc.load(path))
            assert len(first) == 1
            assert rest == [first] * 7

    @pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
    def test_a_killed_process(self, tmp_path: Path) -> None:
        """A process that is killed while it writes leaves the old file whole."""
        path = tmp_path / "x.pt"
        tc.save(tc.ones(2), path)
        code = (
            "import os, signal, sys, tensorcore as tc\n"
            "from tensorcore.serialization import files\n"
            "add = files.ArchiveWriter.add\n"
            "def killed(self, name, data):\n"
            "    add(self, name, data)\n"
            "    if name == 'data/0': self.file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
            "files.ArchiveWriter.add = killed\n"
            "tc.save(tc.zeros(1 << 20), sys.argv[1])"
        )
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=False)
        assert done.returncode == -9
        assert tc.load(path).tolist() == [1.0, 1.0]

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        """What a link leads to is replaced, with its permissions."""
        tc.save(1, tmp_path / "x.pt")
        os.chmod(tmp_path / "x.pt", 0o600)
        os.symlink("x.pt", tmp_path / "link")
        tc.save(2, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert tc.load(tmp_path / "x.pt") == 2
        assert os.stat(tmp_path / "x.pt").st_mode & 0o777 == 0o600
