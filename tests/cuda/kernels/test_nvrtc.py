"""Every CUDA kernel compiles for each architecture without a warning, in no more registers than are on record.

That takes four minutes of a core. Each test run has every kernel for sm_90 and one of the other architectures, another each
day; ``TENSORCORE_ARCHITECTURES=all`` asks for all of them, and for all dtypes, as ``.ci/nightly`` does.
``python -m tests.cuda.kernels.test_nvrtc`` writes the record again.
"""

import datetime
import functools
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tensorcore_cuda.kernels.launch import C_TYPES, HERE, source_of
from tests.cuda.kernels.cases import CASES
from tests.cuda.kernels.device import recorded
from tests.cuda.kernels.nvrtc import Needs, compiled, version

# All dtypes for one; for the others the one that has instructions of its own from sm_80 on, and the common one.
ARCHITECTURES = {
    "sm_75": ("bfloat16", "float32"),
    "sm_80": ("bfloat16", "float32"),
    "sm_90": None,
    "sm_100": ("bfloat16", "float32"),
}
# What a run has of those: dtypes that share neither their instructions nor their size.
_OTHERS = [one for one in ARCHITECTURES if one != "sm_90"]
TODAY = {
    "sm_90": ("bfloat16", "float32", "float64", "int64", "bool"),
    (other := _OTHERS[datetime.datetime.now(datetime.UTC).toordinal() % len(_OTHERS)]): ARCHITECTURES[other],
}
ASKED = ARCHITECTURES if os.environ.get("TENSORCORE_ARCHITECTURES") == "all" else TODAY
# ptxas saves a few bytes once before a loop to keep more threads at work: columns<sum_of<double>>, 16 on sm_90, 80 on sm_100.
SPILLS = 128
RECORD = Path(__file__).with_name("registers.json")


@functools.cache
def wanted(name, dtypes):
    """The kernels that a case runs, by source file; generated ones are one source, in which each has a number."""
    case = next(one for one in CASES if one.name == name)
    sources, generated = {}, {}
    for dtype in case.dtypes if dtypes is None else [one for one in case.dtypes if one.name in dtypes]:
        for source, names, _ in recorded(case.run, dtype):
            if names is None:
                generated.setdefault(source)
            else:
                sources.setdefault(source, {}).update(dict.fromkeys(names))
    found = [(source, list(names)) for source, names in sources.items()]
    if generated:
        found.append(joined(list(generated)))
    return found


def joined(generated):
    """Generated sources as one: the functions that all share once, the rest of each under names of its own."""
    common = generated[0][: generated[0].index("struct where")]
    text, names = [common], []
    for i, source in enumerate(generated):
        assert source.startswith(common)
        text.append(re.sub(r"\b(where|body|pointwise)\b", rf"\1_{i}", source[len(common) :]))
        names.append(f"pointwise_{i}")
    return "".join(text), names


def needs(name, architecture, dtypes):
    """Registers and spills of each kernel of a case; the most of those that share a name, as generated ones do."""
    found = {}
    for source, names in wanted(name, dtypes):
        made = compiled(source, names, architecture)
        if names[0].startswith("pointwise_"):
            made = {"generated": Needs(*map(max, *made.values())) if len(made) > 1 else next(iter(made.values()))}
        for kernel, one in made.items():
            found[kernel] = Needs(*map(max, one, found.get(kernel, one)))
    return found


@pytest.mark.parametrize(
    "name, architecture",
    [
        pytest.param(case.name, architecture, marks=[pytest.mark.slow] if architecture == "sm_90" else [])
        for case in CASES
        for architecture, dtypes in ASKED.items()
        if dtypes is None or any(one.name in dtypes for one in case.dtypes)
    ],
)
def test_a_kernel_compiles_as_recorded(name, architecture):
    """No warning, hardly a spilled register; the registers on record where the compiler is the one on record."""
    found_version = version()
    found = needs(name, architecture, ASKED[architecture])
    assert {kernel: one for kernel, one in found.items() if one.spills > SPILLS} == {}
    record = json.loads(RECORD.read_text())
    if record["nvrtc"] == found_version:
        registers = {kernel: one.registers for kernel, one in found.items()}
        held = record["registers"][name].get(architecture, {})
        if ASKED[architecture] != ARCHITECTURES[architecture]:
            # One number stands for all that are generated, some of which were left out.
            assert registers.pop("generated", 0) <= held.get("generated", 0)
            held = {kernel: held.get(kernel) for kernel in registers}
        assert registers == held


_FLOATS = ("float", "double", "float16", "bfloat16")
RANDOM = ["philox_words", *[f"draw<{one}, {kind}>" for one in _FLOATS for kind in ("uniform", "normal")],
          *[f"bernoulli<{one}>" for one in C_TYPES.values()]]  # fmt: skip


@pytest.mark.parametrize("architecture", ASKED)
def test_random_numbers_compile(architecture):
    """What ``random.py`` draws with compiles for each architecture, and spills nothing."""
    found = compiled(source_of("random.cu"), RANDOM, architecture)
    # Sines of large angles have a table in local memory, which a turn never reaches.
    assert {name: one.spills for name, one in found.items() if one.spills} == {}
    assert max([one.registers for one in found.values()]) <= 64


# What only sparse products in a fixed order use, which sort by CuPy first.
ORDERED = ["begin<int>", "begin<int64>"]


@pytest.mark.parametrize("architecture", ASKED)
def test_products_in_a_fixed_order_compile(architecture):
    """The kernel that finds where rows begin compiles for each architecture, and spills nothing."""
    found = compiled(source_of("sparse.cu"), ORDERED, architecture)
    assert sum([one.spills for one in found.values()]) == 0


def test_every_kernel_is_on_record():
    """A kernel of a source file that no case runs would be compiled by no test: it gets a case, and then a record."""
    sources = "".join([one.read_text("utf-8") for one in HERE.glob("*.cu*")])
    written = set(re.findall(r"__global__ void (?:__launch_bounds__\(\w+\) )?\s*(\w+)\(", sources))
    record = json.loads(RECORD.read_text())["registers"]
    held = {name for one in record.values() for kernels in one.values() for name in kernels}
    assert len(written) > 30
    assert written - {name.split("<")[0] for name in (*held, *RANDOM, *ORDERED)} == set()


def write():
    """Write the record."""
    registers = {case.name: {} for case in CASES}
    for case in CASES:
        for architecture in ARCHITECTURES:
            found = needs(case.name, architecture, ARCHITECTURES[architecture])
            if found:
                registers[case.name][architecture] = {kernel: need.registers for kernel, need in found.items()}
    RECORD.write_text(json.dumps({"nvrtc": version(), "registers": registers}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(write())
