"""What was compiled for which architecture, and in how many registers: the programs, and ``registers.json`` beside this file.

A program is all that a case runs. The record has a digest of its text for each architecture (sources with the files that they
include, names, options), so that a text that was not compiled for one of them is found without compiling it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from tensorcore_cuda.kernels.launch import C_TYPES, OPTIONS, source_of
from tests.cuda.kernels.cases import CASES
from tests.cuda.kernels.device import recorded

__all__ = ["ARCHITECTURES", "COMMAND", "FLAGS", "PROGRAMS", "RECORD", "SPILLS", "digests", "has", "read", "wanted"]

RECORD = Path(__file__).with_name("registers.json")
COMMAND = "python -m tests.cuda.kernels.nvrtc"
FLAGS = (*OPTIONS, "--ptxas-options=-v")
# ptxas saves a few bytes once before a loop to keep more threads at work: columns<sum_of<double>>, 16 on sm_90, 80 on sm_100.
SPILLS = 128

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")

_FLOATS = ("float", "double", "float16", "bfloat16")
# What no case runs: what ``random.py`` draws with, and what sparse products in a fixed order use, which sort by CuPy first.
_OTHERS = {
    "random_numbers": (
        "random.cu",
        ["philox_words", *[f"draw<{one}, {kind}>" for one in _FLOATS for kind in ("uniform", "normal")],
         *[f"bernoulli<{one}>" for one in C_TYPES.values()]],
    ),
    "rows_in_order": ("sparse.cu", ["begin<int>", "begin<int64>"]),
}  # fmt: skip
_CASES = {case.name: case for case in CASES}
PROGRAMS = (*_CASES, *_OTHERS)

Wanted = list[tuple[str, list[str]]]


def has(program: str, dtypes: tuple[str, ...] | None) -> bool:
    """Whether a program has kernels of any of these dtypes; None are all."""
    return program in _OTHERS or dtypes is None or any([one.name in dtypes for one in _CASES[program].dtypes])


@functools.cache
def wanted(program: str, dtypes: tuple[str, ...] | None = None) -> Wanted:
    """The kernels of a program in some dtypes or in all, by source; generated ones are one source, in which each has a number."""
    if program in _OTHERS:
        file, names = _OTHERS[program]
        return [(source_of(file), names)]
    case = _CASES[program]
    sources: dict[str, dict[str, None]] = {}
    generated: dict[str, None] = {}
    for dtype in case.dtypes if dtypes is None else [one for one in case.dtypes if one.name in dtypes]:
        for source, expressions, _ in recorded(case.run, dtype):
            if expressions is None:
                generated.setdefault(source)
            else:
                sources.setdefault(source, {}).update(dict.fromkeys(expressions))
    found = [(source, list(expressions)) for source, expressions in sources.items()]
    if generated:
        found.append(_joined(list(generated)))
    return found


def _joined(generated: list[str]) -> tuple[str, list[str]]:
    """Generated sources as one: the functions that all share once, the rest of each under names of its own."""
    common = generated[0][: generated[0].index("struct where")]
    text, names = [common], []
    for i, source in enumerate(generated):
        assert source.startswith(common)
        text.append(re.sub(r"\b(where|body|pointwise)\b", rf"\1_{i}", source[len(common) :]))
        names.append(f"pointwise_{i}")
    return "".join(text), names


def digests() -> dict[str, str]:
    """Of what is to be compiled now, by program; of each the same text for every architecture."""
    texts = {program: json.dumps([wanted(program), FLAGS]) for program in PROGRAMS}
    return {program: hashlib.sha256(text.encode()).hexdigest()[:16] for program, text in texts.items()}


def read() -> dict[str, Any]:
    """The record: NVRTC's version, and for each program and architecture its digest, registers and spilled bytes."""
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return found
