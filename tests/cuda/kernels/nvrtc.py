"""NVRTC without CuPy and without a GPU: what compiles for which architecture, and what its kernels need there."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not here; pip install 'tensorcore[cuda-compile]'")

__all__ = ["Needs", "compiled", "version"]


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


def compiled(source: str, names: Sequence[str], architecture: str) -> dict[str, Needs]:
    """The kernels of a source, compiled to machine code with all warnings as errors."""
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None))
    try:
        for name in names:
            _checked(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        options = [f"--gpu-architecture={architecture}", "--std=c++17", "--ptxas-options=-v"]
        encoded = [one.encode() for one in options]
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
