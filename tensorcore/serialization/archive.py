"""The zip archives that PyTorch's files are: written record by record, and read with every claim checked."""

from __future__ import annotations

import os
import struct
import zlib
from typing import Any, NamedTuple

from tensorcore.errors import LoadError

__all__ = ["Archive", "ArchiveWriter", "cut_short", "damaged"]

ALIGNMENT = 64
_PIECE = 1 << 18

# Layouts by https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, each after its four-byte signature.
_LOCAL = struct.Struct("<HHHHHIIIHH")
_CENTRAL = struct.Struct("<HHHHHHIIIHHHHHII")
_END = struct.Struct("<HHHHIIH")
_END64 = struct.Struct("<QHHIIQQQQ")
_LOCATOR = struct.Struct("<IQI")
_LOCAL_SIGN, _CENTRAL_SIGN, _END_SIGN = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64_SIGN, _LOCATOR_SIGN, _SIZES_SIGN = b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08"
_END_SIZE, _ENDS64_SIZE = 4 + _END.size, 4 + _END64.size + 4 + _LOCATOR.size
_FULL = 0xFFFFFFFF  # "see the 64-bit field"
_UTF8, _SIZES_FOLLOW, _ENCRYPTED = 0x800, 0x8, 0x1

# A compressed record larger than this must not be more than so many times as large as its compressed form.
_SUSPICIOUS_SIZE, _SUSPICIOUS_RATIO = 256 << 20, 100


class ArchiveWriter:
    """Appends records to a file; each record's bytes begin at a multiple of 64 from the archive's start.

    The layout is the one that PyTorch's writer makes, down to the sizes behind each record: its reader can be told to
    compute the places of records instead of looking them up.

    Args:
        file: an object with ``write``.
        root: the folder that all records are in.
        checksums: whether to compute CRC-32s; 0 stands in their place otherwise.
    """

    def __init__(self, file: Any, root: str, checksums: bool) -> None:
        self.file, self.root, self.checksums = file, root, checksums
        self.at = 0
        self.directory: list[bytes] = []
        self.digest = 0

    def add(self, name: str, data: Any) -> None:
        """Append a record of bytes-like data."""
        data = memoryview(data).cast("B")
        path = f"{self.root}/{name}".encode()
        crc = zlib.crc32(data) if self.checksums else 0
        self.digest = zlib.crc32(path, self.digest ^ crc)
        size, start = data.nbytes, self.at
        flags = _UTF8 | (_SIZES_FOLLOW if size else 0)
        wide = b"".join([struct.pack("<Q", size) * 2 if size >= _FULL else b"",
                         struct.pack("<Q", start) if start >= _FULL else b""])  # fmt: skip
        wide = struct.pack("<HH", 1, len(wide)) + wide if wide else b""
        head = 4 + _LOCAL.size + len(path) + len(wide) + 4
        padding = -(start + head) % ALIGNMENT
        extra = wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        self._write(_LOCAL_SIGN + _LOCAL.pack(0, flags, 0, 0, 0, 0, 0, 0, len(path), len(extra)) + path + extra)
        self._write(data)
        if size:
            self._write(
                _SIZES_SIGN + struct.pack("<IQQ" if size >= _FULL or start >= _FULL else "<III", crc, size, size)
            )
        short = min(size, _FULL)
        fields = (0, 0, flags, 0, 0, 0, crc, short, short, len(path), len(wide), 0, 0, 0, 0, min(start, _FULL))
        self.directory.append(_CENTRAL_SIGN + _CENTRAL.pack(*fields) + path + wide)

    def close(self) -> None:
        """Append the directory; without it the archive counts as cut short."""
        start, size, count = self.at, sum(map(len, self.directory)), len(self.directory)
        self._write(b"".join(self.directory))
        self._write(_END64_SIGN + _END64.pack(_END64.size - 8, 0x031E, 0x2D, 0, 0, count, count, size, start))
        self._write(_LOCATOR_SIGN + _LOCATOR.pack(0, start + size, 1))
        few = min(count, 0xFFFF)
        self._write(_END_SIGN + _END.pack(0, 0, few, few, min(size, _FULL), min(start, _FULL), 0))

    def _write(self, data: Any) -> None:
        self.at += len(data)
        data = memoryview(data)
        while len(data):
            written = self.file.write(data)
            if not isinstance(written, int) or written >= len(data):
                break
            data = data[written:]  # an unbuffered file takes what it can


class _Record(NamedTuple):
    method: int
    crc: int
    packed: int
    size: int
    header: int


class Archive:
    """The records of an archive that starts where ``file`` stands.

    Nothing is unpacked to disk, and no name leads anywhere but into the archive's own directory. Raises LoadError
    with the reason where the directory does not add up.
    """

    def __init__(self, file: Any) -> None:
        self.file = file
        self.start = file.tell()
        self.total = file.seek(0, os.SEEK_END) - self.start
        directory, size, count, self.end = self._find_directory()
        self.limit = directory
        self.records: dict[str, _Record] = {}
        self._read_directory(self._pread(directory, size), count)
        if sum(record.packed for record in self.records.values()) > self.limit:
            raise damaged("records that lie apart, got some that overlap")
        self.root = next(iter(self.records), "").partition("/")[0]
        # PyTorch writes no checksums when told so, and zeros in their place.
        pickled = self.records.get(f"{self.root}/data.pkl")
        self.summed = any(record.crc for record in self.records.values()) or (pickled is not None and not pickled.size)

    def __contains__(self, name: str) -> bool:
        return f"{self.root}/{name}" in self.records

    def size(self, name: str) -> int:
        """The bytes of a record, unpacked."""
        return self._record(name).size

    def read(self, name: str, check: bool = True) -> bytes:
        """A record's bytes."""
        record = self._record(name)
        found = self._pread(self._place(name, record), record.packed)
        if record.method:
            found = _inflated(found, record.size, name)
        if check:
            self._check(name, record, found)
        return found

    def read_into(self, name: str, target: memoryview, check: bool = True) -> None:
        """Fill ``target``, which is as long as the record, with its bytes."""
        record = self._record(name)
        if record.method:
            target[:] = self.read(name, check)
            return
        self.file.seek(self.start + self._place(name, record))
        done, crc, check = 0, 0, check and self.summed
        while done < len(target):
            # In pieces that are still in the cache when they are summed.
            piece = target[done : done + _PIECE] if check else target[done:]
            got = self._readinto(piece)
            if not got:
                raise cut_short(len(target), done)
            crc = zlib.crc32(piece[:got], crc) if check else crc
            done += got
        if check:
            self._compare(name, record, crc)

    def _readinto(self, piece: memoryview) -> int:
        if hasattr(self.file, "readinto"):
            return self.file.readinto(piece) or 0
        data = self.file.read(len(piece))
        piece[: len(data)] = data
        return len(data)

    def place(self, name: str) -> int | None:
        """Where a record's bytes begin in the file, None where they are compressed."""
        record = self._record(name)
        return None if record.method else self.start + self._place(name, record)

    def _record(self, name: str) -> _Record:
        try:
            return self.records[f"{self.root}/{name}"]
        except KeyError:
            raise damaged(f"a record '{name}', got none") from None

    def _place(self, name: str, record: _Record) -> int:
        path = f"{self.root}/{name}".encode()
        head = self._pread(record.header, 4 + _LOCAL.size)
        fields = _LOCAL.unpack(head[4:])
        found = self._pread(record.header + len(head), fields[-2])
        begin = record.header + len(head) + fields[-2] + fields[-1]
        if head[:4] != _LOCAL_SIGN or found != path or begin + record.packed > self.limit:
            raise damaged(f"record '{name}' where the directory says, got something else")
        return begin

    def _check(self, name: str, record: _Record, found: Any) -> None:
        if self.summed:
            self._compare(name, record, zlib.crc32(found))

    def _compare(self, name: str, record: _Record, crc: int) -> None:
        if crc != record.crc:
            raise damaged(f"the checksum {record.crc:08x} for record '{name}', got {crc:08x}")

    def _pread(self, at: int, size: int) -> bytes:
        if at < 0 or at + size > self.total:
            raise cut_short(at + size, self.total)
        self.file.seek(self.start + at)
        found: bytes = self.file.read(size)
        if len(found) < size:
            raise cut_short(size, len(found))
        return found

    # The directory

    def _find_directory(self) -> tuple[int, int, int, int]:
        """Where it begins, its bytes, its entries, and where the archive ends."""
        tail = max(self.total - _END_SIZE - 0xFFFF, 0)
        text = self._pread(tail, self.total - tail)
        found = text.rfind(_END_SIGN)
        while found >= 0:
            if (ends := self._ends_at(tail + found)) is not None:
                return ends
            found = text.rfind(_END_SIGN, 0, found)
        # Other things may follow in the same file: the first end that fits this archive's start is its own.
        step, at = 1 << 20, 0
        while at < self.total:
            text = self._pread(at, min(step + len(_END_SIGN), self.total - at))
            found = text.find(_END_SIGN)
            while found >= 0:
                if (ends := self._ends_at(at + found)) is not None:
                    return ends
                found = text.find(_END_SIGN, found + 1)
            at += step
        raise LoadError(
            f"load: expected a directory at the end of the archive, got none in {self.total} bytes; "
            "the file was cut short, copy or save it again"
        )

    def _ends_at(self, at: int) -> tuple[int, int, int, int] | None:
        if at + _END_SIZE > self.total:
            return None
        _, _, _, count, size, begin, comment = _END.unpack(self._pread(at, _END_SIZE)[4:])
        end = at
        if at >= _ENDS64_SIZE:
            ends = self._pread(at - _ENDS64_SIZE, _ENDS64_SIZE)
            if ends.startswith(_END64_SIGN) and ends[4 + _END64.size :].startswith(_LOCATOR_SIGN):
                count, size, begin = _END64.unpack(ends[4 : 4 + _END64.size])[-3:]
                end = at - _ENDS64_SIZE
        if begin + size != end or at + _END_SIZE + comment > self.total:
            return None
        return begin, size, count, at + _END_SIZE + comment

    def _read_directory(self, text: bytes, count: int) -> None:
        at, step = 0, 4 + _CENTRAL.size
        while at < len(text):
            if text[at : at + 4] != _CENTRAL_SIGN or at + step > len(text):
                raise damaged("a directory of records, got something else in it")
            fields = _CENTRAL.unpack_from(text, at + 4)
            _, _, flags, method, _, _, crc, packed, size, named, extras, noted, _, _, _, header = fields
            at += step
            path, extra = text[at : at + named], text[at + named : at + named + extras]
            at += named + extras + noted
            size, packed, header = _widened(extra, size, packed, header)
            try:
                name = path.decode()
            except UnicodeDecodeError:
                raise damaged(f"names in UTF-8, got {path!r}") from None
            if not name or name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
                raise damaged(f"names of records within the archive, got {name!r}")
            if name in self.records:
                raise damaged(f"one record of each name, got '{name}' twice")
            if flags & _ENCRYPTED or method not in (0, 8):
                raise damaged(f"record '{name}' in plain bytes or deflated, got method {method}, flags {flags:#x}")
            if (not method and packed != size) or header + packed > self.limit:
                raise damaged(f"record '{name}' within the file, got {size} bytes at {header}")
            if method and size > max(_SUSPICIOUS_SIZE, packed * _SUSPICIOUS_RATIO):
                raise damaged(f"record '{name}' of a credible size, got {packed} bytes that claim to unpack to {size}")
            self.records[name] = _Record(method, crc, packed, size, header)
        if len(self.records) != count:
            raise damaged(f"{count} records, got {len(self.records)}")


def damaged(reason: str) -> LoadError:
    """The error for a file whose parts do not fit together."""
    return LoadError(f"load: expected {reason}; the file is damaged or was made to do harm, get it again")


def cut_short(expected: int, got: int) -> LoadError:
    """The error for a file that ends too early."""
    return LoadError(f"load: expected {expected} bytes, got {got}; the file was cut short, copy or save it again")


def _widened(extra: bytes, *values: int) -> tuple[int, ...]:
    """Sizes and place with the 64-bit field's values where 32 bits did not do."""
    at = 0
    while _FULL in values and at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{min(size, len(extra) - at - 4) // 8}Q", extra, at + 4))
            return tuple([next(wide, value) if value == _FULL else value for value in values])
        at += 4 + size
    return values


def _inflated(packed: bytes, size: int, name: str) -> bytes:
    unpacker = zlib.decompressobj(-15)
    try:
        found = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise damaged(f"record '{name}' deflated, got {error}") from None
    if len(found) != size:
        raise damaged(f"record '{name}' of {size} bytes, got {'more' if len(found) > size else len(found)}")
    return found
