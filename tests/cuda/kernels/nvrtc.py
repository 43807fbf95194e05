"""NVRTC without CuPy and without a GPU: what compiles for which architecture, and what its kernels need there.

``python -m tests.cuda.kernels.nvrtc`` compiles for all architectures what is not on record as it is now, and writes
the record after each program, so that it can be cut off and called again.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from tests.cuda.kernels.record import ARCHITECTURES, FLAGS, RECORD, digests, read, wanted

nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not here; pip install 'tensorcore[cuda-compile]'")

__all__ = ["Needs", "compiled", "needs", "version", "write"]


class Needs(NamedTuple):
    """What one thread of a kernel needs.

    Attributes:
        registers: 32-bit ones.
        spills: bytes of registers that did not fit and are stored in memory.
    """

    registers: int
    spills: int


def version() -> str:
    """NVRTC's, to the last digit; skips the test where the library is missing."""
    try:
        _checked(nvrtc.nvrtcVersion())
        return importlib.metadata.version("nvidia-cuda-nvrtc")
    except Exception as error:  # the bindings raise what the loader raised
        pytest.skip(f"NVRTC is not here: {error}")


def needs(program: str, architecture: str, dtypes: tuple[str, ...] | None = None) -> dict[str, Needs]:
    """Registers and spills of each kernel of a program; the most of those that share a name, as generated ones do."""
    found: dict[str, Needs] = {}
    for source, names in wanted(program, dtypes):
        made = compiled(source, names, architecture)
        if names[0].startswith("pointwise_"):
            made = {"generated": Needs(*map(max, zip(*made.values(), strict=True)))}
        for kernel, one in made.items():
            found[kernel] = Needs(*map(max, one, found.get(kernel, one)))
    return found


def compiled(source: str, names: Sequence[str], architecture: str) -> dict[str, Needs]:
    """The kernels of a source, compiled to machine code with all warnings as errors."""
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None))
    try:
        for name in names:
            _checked(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        encoded = [one.encode() for one in (f"--gpu-architecture={architecture}", *FLAGS)]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        log = bytearray(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
        nvrtc.nvrtcGetProgramLog(program, log)
        text = log.decode()
        assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS, text
        assert "warning" not in text, text
        needed = _needs(text)
        lowered = {name: _checked(nvrtc.nvrtcGetLoweredName(program, name.encode())).decode() for name in names}
        return {name: needed[mangled] for name, mangled in lowered.items()}
    finally:
        nvrtc.nvrtcDestroyProgram(program)


_ENTRY = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
    re.DOTALL,
)


def _needs(log: str) -> dict[str, Needs]:
    """From what ptxas says of each entry."""
    return {
        name: Needs(int(registers), int(stores) + int(loads)) for name, stores, loads, registers in _ENTRY.findall(log)
    }


def _checked(answer: Any) -> Any:
    status, *values = answer
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
    return values[0] if len(values) == 1 else tuple(values)


def write() -> None:
    """Bring the record up to what the sources are now; all of it where another NVRTC wrote it."""
    present = digests()
    held = read()["programs"] if RECORD.exists() and read()["nvrtc"] == version() else {}
    programs = {
        program: {name: one for name, one in held.get(program, {}).items() if one["digest"] == digest}
        for program, digest in present.items()
    }
    for program, digest in present.items():
        missing = [one for one in ARCHITECTURES if one not in programs[program]]
        for architecture in missing:
            found = needs(program, architecture)
            programs[program][architecture] = {
                "digest": digest,
                "registers": {kernel: one.registers for kernel, one in found.items()},
                "spills": {kernel: one.spills for kernel, one in found.items() if one.spills},
            }
        if missing:
            made = json.dumps({"nvrtc": version(), "programs": programs}, indent=1, sort_keys=True)
            RECORD.write_text(made + "\n", "utf-8")
            print(f"{program}: compiled for {', '.join(missing)}", flush=True)


if __name__ == "__main__":
    sys.exit(write())
