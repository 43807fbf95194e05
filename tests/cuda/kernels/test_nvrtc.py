"""CUDA kernels compile for an architecture without a warning, in the registers that are on record.

That takes four minutes of a core for all. Each test run has every kernel for sm_90 and one of the other architectures, another
each day; ``TENSORCORE_ARCHITECTURES=all`` asks for all of them, and for all dtypes, as ``.ci/nightly`` does. What a run leaves out
is held to the record by ``test_record.py``.
"""

import datetime
import os

import pytest

from tests.cuda.kernels.nvrtc import needs, version
from tests.cuda.kernels.record import ARCHITECTURES, PROGRAMS, SPILLS, has, read

# What a run has: dtypes that share neither their instructions nor their size, and for the other architecture the one that has
# instructions of its own from sm_80 on and the common one.
_OTHERS = [one for one in ARCHITECTURES if one != "sm_90"]
TODAY = {
    "sm_90": ("bfloat16", "float32", "float64", "int64", "bool"),
    _OTHERS[datetime.datetime.now(datetime.UTC).toordinal() % len(_OTHERS)]: ("bfloat16", "float32"),
}
ASKED = dict.fromkeys(ARCHITECTURES) if os.environ.get("TENSORCORE_ARCHITECTURES") == "all" else TODAY


@pytest.mark.parametrize(
    "program, architecture",
    [
        pytest.param(program, architecture, marks=[pytest.mark.slow] if architecture == "sm_90" else [])
        for program in PROGRAMS
        for architecture, dtypes in ASKED.items()
        if has(program, dtypes)
    ],
)
def test_a_kernel_compiles_as_recorded(program, architecture):
    """No warning, hardly a spilled register; the registers on record where the compiler is the one on record."""
    found_version = version()
    found = needs(program, architecture, ASKED[architecture])
    assert {kernel: one for kernel, one in found.items() if one.spills > SPILLS} == {}
    record = read()
    if record["nvrtc"] == found_version:
        held = record["programs"][program][architecture]["registers"]
        registers = {kernel: one.registers for kernel, one in found.items()}
        if ASKED[architecture] is not None:
            # One number stands for all that are generated, some of which were left out.
            assert registers.pop("generated", 0) <= held.get("generated", 0)
            held = {kernel: held.get(kernel) for kernel in registers}
        assert registers == held
