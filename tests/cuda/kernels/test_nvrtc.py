"""CUDA kernels compile for an architecture without a warning, in the registers that are on record.

That takes four minutes of a core for all. Each test run has every program for one architecture and in two dtypes, others each
day; ``TENSORCORE_ARCHITECTURES=all`` asks for all of them, as ``.ci/nightly`` does. What a run leaves out is held to the record
by ``test_record.py``.
"""

import datetime
import os

import pytest

from tests.cuda.kernels.nvrtc import needs, version
from tests.cuda.kernels.record import ARCHITECTURES, PROGRAMS, SPILLS, has, read

# Dtypes that share neither their instructions nor their size; each run has the first, and one of the others.
DTYPES = ("float32", "bfloat16", "float64", "int64", "bool")
DAY = datetime.datetime.now(datetime.UTC).toordinal()


def share(place: int, program: str) -> tuple[str, tuple[str, ...] | None]:
    """What today's run compiles a program for, all of it where it has neither dtype; over the days each meets each."""
    shift, day = divmod(DAY, len(ARCHITECTURES))
    dtypes = (DTYPES[0], DTYPES[1 + (place + shift) % (len(DTYPES) - 1)])
    return ARCHITECTURES[(place + day) % len(ARCHITECTURES)], dtypes if has(program, dtypes) else None


if os.environ.get("TENSORCORE_ARCHITECTURES") == "all":
    ASKED = [(program, architecture, None) for program in PROGRAMS for architecture in ARCHITECTURES]
else:
    ASKED = [(program, *share(place, program)) for place, program in enumerate(PROGRAMS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "program, architecture, dtypes", [pytest.param(*one, id=f"{one[0]}-{one[1]}") for one in ASKED]
)
def test_a_kernel_compiles_as_recorded(program, architecture, dtypes):
    """No warning, hardly a spilled register; the registers on record where the compiler is the one on record."""
    found_version = version()
    found = needs(program, architecture, dtypes)
    assert {kernel: one for kernel, one in found.items() if one.spills > SPILLS} == {}
    record = read()
    if record["nvrtc"] == found_version:
        held = record["programs"][program][architecture]["registers"]
        registers = {kernel: one.registers for kernel, one in found.items()}
        if dtypes is not None:
            # One number stands for all that are generated, some of which were left out.
            assert registers.pop("generated", 0) <= held.get("generated", 0)
            held = {kernel: held.get(kernel) for kernel in registers}
        assert registers == held
