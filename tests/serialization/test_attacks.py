"""Files that were made to do harm, or were damaged: refused with the reason, and nothing runs."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import serialization

REFUSED = (RuntimeError, pickle.UnpicklingError)


class Stranger:
    """A class that no file may build unasked."""

    def __init__(self, value: int = 0) -> None:
        self.value = value


def written(value: Any) -> bytes:
    file = io.BytesIO()
    tc.save(value, file)
    return file.getvalue()


def archive(records: dict[str, bytes], **options: Any) -> io.BytesIO:
    """A zip of these records in the folder ``a``."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as made:
        for name, data in records.items():
            made.writestr(f"a/{name}", data)
    file.seek(0)
    return file


def pickle_of(opcodes: bytes, values: bytes = bytes(16)) -> io.BytesIO:
    return archive({"data.pkl": b"\x80\x02" + opcodes + b".", "data/0": values})


def global_of(name: str) -> bytes:
    module, _, attribute = name.rpartition(".")
    return f"c{module}\n{attribute}\n".encode()


def storage(kind: str = "FloatStorage", key: str = "0", device: str = "cpu", numel: int = 4) -> bytes:
    parts = [pickle.BINUNICODE + struct.pack("<I", len(text)) + text.encode() for text in ("storage", key, device)]
    number = pickle.dumps(numel, 2)[2:-1]
    return b"(" + parts[0] + global_of(f"torch.{kind}") + parts[1] + parts[2] + number + b"tQ"


def tensor(offset: int, size: Any, stride: Any, **options: Any) -> bytes:
    rest = b"".join(pickle.dumps(one, 2)[2:-1].replace(b"q\x00", b"") for one in (offset, size, stride, False, None))
    return global_of("torch._utils._rebuild_tensor_v2") + b"(" + storage(**options) + rest + b"tR"


class TestCode:
    """``weights_only``, which is the default, calls nothing that is not on its list."""

    @pytest.mark.parametrize(
        "name",
        ["os.system", "builtins.eval", "builtins.exec", "builtins.getattr", "builtins.__import__", "subprocess.Popen",
                 "posix.system", "__builtin__.eval", "torch.load", "torch.jit.load", "torch.hub.load", "pickle.loads",
                 "operator.attrgetter",
                 "functools.partial", "numpy.core.multiarray.scalar", "collections.namedtuple", "builtins.open", "torch._utils.os.system"]
    )  # fmt: skip
    def test_functions_are_refused_by_name(self, name: str) -> None:
        """The error names what the file wanted called."""
        with pytest.raises(pickle.UnpicklingError, match=name.replace("__builtin__", "builtins").replace(".", r"\.")):
            tc.load(pickle_of(global_of(name) + b"X\x04\x00\x00\x00echo\x85R"))

    def test_code_does_not_run(self, tmp_path: Path) -> None:
        """A file that wants a function called is refused before the call."""

        class Attack:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "gone wrong"),)

        with pytest.raises(pickle.UnpicklingError, match="mkdir"):
            tc.load(io.BytesIO(written([Attack()])))
        assert os.listdir(tmp_path) == []

    def test_a_class_is_refused_by_name(self) -> None:
        """The error names the class, and the way to allow it."""
        with pytest.raises(pickle.UnpicklingError, match=rf"{__name__}.Stranger.*add_safe_globals"):
            tc.load(io.BytesIO(written([Stranger()])))
        assert type(tc.load(io.BytesIO(written([Stranger()])), weights_only=False)[0]) is Stranger

    def test_an_allowed_class(self) -> None:
        """Within ``safe_globals`` it is built with its state, and refused again after; a pair allows another name."""
        data = written(Stranger(3))
        with serialization.safe_globals([Stranger]):
            assert tc.load(io.BytesIO(data)).value == 3
            assert serialization.get_safe_globals() == [Stranger]
        with pytest.raises(pickle.UnpicklingError):
            tc.load(io.BytesIO(data))
        with serialization.safe_globals([(Stranger, f"{__name__}.Stranger")]):
            assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == []
        for wrong, error in (((Stranger,), ValueError), ((Stranger, 3), TypeError)):
            with pytest.raises(error, match="add_safe_globals"):
                serialization.add_safe_globals([wrong])
        assert serialization.get_safe_globals() == []

    def test_the_system_is_never_allowed(self) -> None:
        """Not even when the program allows it by mistake."""
        with (
            serialization.safe_globals([(os.system, "os.system")]),
            pytest.raises(pickle.UnpicklingError, match=r"os\.system"),
        ):
            tc.load(pickle_of(global_of("os.system") + b"X\x04\x00\x00\x00true\x85R"))

    @pytest.mark.parametrize(
        "name, state", [("torch._utils._rebuild_tensor_v2", b"}X\x05\x00\x00\x00extraK\x01s"), ("torch.Size", b"}X\x01\x00\x00\x00aK\x01s"),
                        ("torch.float32", b"}X\x04\x00\x00\x00nameK\x01s"), ("collections.Counter", b"}X\x06\x00\x00\x00updateK\x01s")]
    )  # fmt: skip
    def test_what_is_allowed_cannot_be_changed(self, name: str, state: bytes) -> None:
        """A file may call the functions that rebuild tensors, and not set their attributes."""
        with pytest.raises(REFUSED, match=r"expected no state for|expected attributes"):
            tc.load(pickle_of(global_of(name) + state + b"b"))

    @pytest.mark.parametrize(
        "opcodes", [b"\x82\x01", b"\x83\x01\x00", b"\x97", b"ios\nsystem\n", b"(S'true'\nios\nsystem\n", b"\x95", b"I01\n"]
    )  # fmt: skip
    def test_opcodes_that_data_does_not_need(self, opcodes: bytes) -> None:
        """Registries, buffers from outside, old ways to call and text that is parsed are refused."""
        with pytest.raises(REFUSED, match="load: "):
            tc.load(pickle_of(opcodes))

    @pytest.mark.parametrize(
        "opcodes",
        [
            global_of("builtins.bytearray") + b"\x8a\x06\xff\xff\xff\xff\xff\x00\x85R",  # a terabyte of zeros
            global_of("builtins.set") + global_of("builtins.range") + b"\x8a\x06\xff\xff\xff\xff\xff\x00\x85R\x85R",
            global_of("collections.Counter")
            + global_of("builtins.range")
            + b"\x8a\x06\xff\xff\xff\xff\xff\x00\x85R\x85R",
            global_of("torch.Tensor") + b")R",
            global_of("torch.Tensor") + b")\x81",
            global_of("torch.FloatStorage") + b"K\x05\x85R",
            global_of("torch.float32") + b")R",
            b"}" + b"K\x01a",  # append to a dict
            b"]K\x01K\x02s",
            b"\x8b\xff\xff\xff\x7f",
            b"K\x01R",
            b"Q",
            b"h\x07",
            b"K\x01Q",
            b"X\xff\xff\xff\x7fabc",
        ],
    )
    def test_nonsense(self, opcodes: bytes) -> None:
        """Calls with arguments that do not fit, that would fill the memory, or that are no calls are errors of the file."""
        with pytest.raises(REFUSED, match="load: "):
            tc.load(pickle_of(opcodes))


class TestMemory:
    """No file shows memory that is not its own, or takes much more than it has bytes."""

    @pytest.mark.parametrize(
        "offset, size, stride",
        [(0, (5,), (1,)), (1, (4,), (1,)), (0, (2, 3), (-1, 2)), (-1, (1,), (1,)), (0, (2,), (1 << 62,)), (0, (-1,), (1,)), (0, (2,), ()),
         (0, (1 << 40,), (1,)), (0, ("a",), (1,)), (1.5, (1,), (1,)), (0, 3, 1), (0, (0, 1 << 62, 1 << 62), (1, 1, 1)), (4, (1,), (1,))],
    )  # fmt: skip
    def test_out_of_bounds(self, offset: Any, size: Any, stride: Any) -> None:
        """A tensor outside its storage is refused."""
        with pytest.raises(REFUSED, match=r"load: |set_: "):
            tc.load(pickle_of(tensor(offset, size, stride)))

    def test_within_bounds(self) -> None:
        """The same file with honest numbers loads: the refusals above are about the numbers."""
        assert tc.load(pickle_of(tensor(0, (2, 2), (1, 2)))).tolist() == [[0, 0], [0, 0]]

    @pytest.mark.parametrize(
        "options", [{"numel": 5}, {"numel": 1 << 60}, {"numel": -1}, {"key": "1"}, {"key": "../data.pkl"}, {"key": "/etc/passwd"},
                    {"kind": "QInt8Storage"}, {"device": "no such device"}, {"device": ""}]
    )  # fmt: skip
    def test_storages_that_are_not_there(self, options: Any) -> None:
        """A storage larger than its record, in a record that is missing, or of another kind is refused."""
        with pytest.raises(REFUSED, match=r"load: |device: "):
            tc.load(pickle_of(tensor(0, (1,), (1,), **options)))

    def test_a_bomb(self) -> None:
        """A compressed record that unpacks to a thousand times its size, or to more than it says, is refused."""
        honest = archive({"data.pkl": b"\x80\x02N.", "data/0": bytes(300 << 20)}, compression=zipfile.ZIP_DEFLATED)
        with pytest.raises(RuntimeError, match="credible size"):
            tc.load(honest)
        liar = bytearray(
            archive({"data.pkl": b"\x80\x02" + b"N0" * 5000 + b"N."}, compression=zipfile.ZIP_DEFLATED).getvalue()
        )
        at = liar.rindex(b"PK\x01\x02")
        liar[at + 24 : at + 28] = struct.pack("<I", 10)
        with pytest.raises(RuntimeError, match="of 10 bytes, got more"):
            tc.load(io.BytesIO(bytes(liar)))

    def test_compressed_records_are_read(self) -> None:
        """A file that somebody packed again loads."""
        data = written(tc.arange(100))
        with zipfile.ZipFile(io.BytesIO(data)) as made:
            records = {info.filename.partition("/")[2]: made.read(info) for info in made.infolist()}
        assert tc.load(archive(records, compression=zipfile.ZIP_DEFLATED)).tolist() == list(range(100))

    def test_overlapping_records(self) -> None:
        """Records that share their bytes are refused: a small file would fill the memory."""
        data = bytearray(archive({"data.pkl": b"\x80\x02N.", "0": bytes(1000), "1": bytes(1000)}).getvalue())
        entry = data.rindex(b"PK\x01\x02")
        first = data.index(b"PK\x03\x04", 40)
        data[entry + 42 : entry + 46] = struct.pack("<I", first)
        del data[first + 1000 : first + 1500]
        end = data.rindex(b"PK\x05\x06")
        data[end + 16 : end + 20] = struct.pack("<I", struct.unpack("<I", data[end + 16 : end + 20])[0] - 500)
        with pytest.raises(RuntimeError, match="overlap"):
            tc.load(io.BytesIO(bytes(data)))

    def test_claims_of_the_old_format(self) -> None:
        """A storage of terabytes in a short file is refused before its memory is asked for."""
        file = io.BytesIO()
        tc.save(tc.zeros(4), file, _use_new_zipfile_serialization=False)
        data = file.getvalue()
        at = data.index(b"K\x04Ntq") if b"K\x04Ntq" in data else data.index(b"K\x04N")
        forged = data[:at] + b"\x8a\x06\xff\xff\xff\xff\xff\x00" + data[at + 2 :]
        with pytest.raises(RuntimeError, match="cut short"):
            tc.load(io.BytesIO(forged))


class TestArchives:
    """Directories that lie."""

    @pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "b\\..\\c", "b/../../c"])
    def test_names_that_lead_elsewhere(self, name: str) -> None:
        """Such names are refused, although nothing is ever unpacked."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made:
            made.writestr("a/data.pkl", b"\x80\x02N.")
            made.writestr(name, b"x")
        with pytest.raises(RuntimeError, match="within the archive"):
            tc.load(io.BytesIO(file.getvalue()))

    def test_one_name_twice(self) -> None:
        """Which of the two counts would be anybody's guess."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made:
            made.writestr("a/data.pkl", b"\x80\x02N.")
            with pytest.warns(UserWarning, match="Duplicate"):
                made.writestr("a/data.pkl", b"\x80\x02K\x01.")
        with pytest.raises(RuntimeError, match="twice"):
            tc.load(io.BytesIO(file.getvalue()))

    def test_a_wrong_checksum(self) -> None:
        """A flipped bit in the values is noticed."""
        data = bytearray(written(tc.arange(100.0)))
        at = bytes(data).index(struct.pack("<f", 50.0))
        data[at] ^= 1
        with pytest.raises(RuntimeError, match="checksum"):
            tc.load(io.BytesIO(bytes(data)))

    def test_no_pickle(self) -> None:
        """A zip of other things is named as such."""
        with pytest.raises(RuntimeError, match=r"'data\.pkl', got none"):
            tc.load(archive({"hello.txt": b"hello"}))

    def test_an_unknown_byte_order(self) -> None:
        """Bytes that are neither little nor big are refused; big ones are swapped."""
        records = {
            "data.pkl": b"\x80\x02" + tensor(0, (2,), (1,)) + b".",
            "data/0": struct.pack(">4f", 1, 2, 3, 4),
            "byteorder": b"big",
        }
        assert tc.load(archive(records)).tolist() == [1.0, 2.0]
        with pytest.raises(RuntimeError, match="byte order"):
            tc.load(archive({**records, "byteorder": b"middle"}))


VICTIM = {
    "x": tc.arange(6.0).reshape(2, 3),
    "p": tc.nn.Parameter(tc.ones(2)),
    "n": [1, "two", 3.0, None],
    "b": tc.ones(1, dtype=tc.bfloat16),
}


def victim(zipped: bool) -> bytes:
    file = io.BytesIO()
    tc.save(VICTIM, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def load_quietly(data: bytes) -> Any:
    """The object, or the refusal; anything else is a fault."""
    try:
        return tc.load(io.BytesIO(data))
    except (*REFUSED, OSError) as refusal:
        return refusal


@pytest.mark.parametrize("zipped", [True, False])
class TestFuzz:
    """Whatever happens to the bytes, ``load`` gives the object or a refusal."""

    def test_cut_anywhere(self, zipped: bool) -> None:
        """Every shorter file is refused."""
        data = victim(zipped)
        for kept in range(0, len(data), 7):
            assert isinstance(load_quietly(data[:kept]), REFUSED), kept

    def test_flipped_bytes(self, zipped: bool) -> None:
        """One or a few bytes changed."""
        data, chance = victim(zipped), random.Random(8)
        refused = 0
        for _ in range(400):
            changed = bytearray(data)
            for _ in range(chance.choice([1, 1, 2, 8])):
                changed[chance.randrange(len(data))] = chance.randrange(256)
            refused += isinstance(load_quietly(bytes(changed)), Exception)
        assert refused > 50

    def test_pieces_swapped(self, zipped: bool) -> None:
        """Blocks moved, doubled or left out."""
        data, chance = victim(zipped), random.Random(10)
        for _ in range(150):
            a, b = sorted(chance.randrange(len(data)) for _ in range(2))
            for changed in (data[:a] + data[b:], data[:b] + data[a:], data[b:] + data[:a]):
                load_quietly(changed)


def test_flipped_bytes_of_the_pickle() -> None:
    """Changes within the pickle, with a checksum that fits them."""
    with zipfile.ZipFile(io.BytesIO(victim(True))) as made:
        records = {info.filename.partition("/")[2]: made.read(info) for info in made.infolist()}
    text, chance = records["data.pkl"], random.Random(9)
    refused = 0
    for _ in range(600):
        changed = bytearray(text)
        for _ in range(chance.choice([1, 1, 2, 4])):
            at = chance.randrange(len(text))
            changed[at : at + chance.choice([0, 1, 1, 2])] = bytes([chance.randrange(256)])
        refused += isinstance(load_quietly(archive({**records, "data.pkl": bytes(changed)}).getvalue()), Exception)
    assert refused > 200


def test_checksums_are_crc32() -> None:
    """The sums in the directory are those of the records, so that every unzip agrees."""
    with zipfile.ZipFile(io.BytesIO(written([tc.arange(3)]))) as made:
        assert made.testzip() is None
        info = made.getinfo("archive/data/0")
        assert zlib.crc32(made.read(info)) == info.CRC
