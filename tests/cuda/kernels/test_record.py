"""The record of what NVRTC compiled is that of the sources as they are, for every architecture."""

import re

from tensorcore_cuda.kernels.launch import HERE
from tests.cuda.kernels.record import ARCHITECTURES, COMMAND, SPILLS, digests, read


def test_every_program_was_compiled_for_every_architecture():
    """The digests on record are those of the present texts: a kernel that was changed and not compiled again fails here."""
    record, present = read()["programs"], digests()
    held = {(program, name): one["digest"] for program, made in record.items() for name, one in made.items()}
    wanted = {(program, name): digest for program, digest in present.items() for name in ARCHITECTURES}
    other = [" for ".join(one) for one in {**held, **wanted} if held.get(one) != wanted.get(one)]
    assert not other, f"compile again with `{COMMAND}`, which takes all architectures: {', '.join(other)}"


def test_hardly_a_register_is_spilled():
    """No kernel on record keeps more in memory than what is saved once before a loop."""
    spilled = [
        count for one in read()["programs"].values() for made in one.values() for count in made["spills"].values()
    ]
    assert max(spilled, default=0) <= SPILLS


def test_every_kernel_is_on_record():
    """A kernel of a source file that no program has would be compiled by no test: it gets a case, and then a record."""
    sources = "".join([one.read_text("utf-8") for one in HERE.glob("*.cu*")])
    written = set(re.findall(r"__global__ void (?:__launch_bounds__\(\w+\) )?\s*(\w+)\(", sources))
    record = read()["programs"]
    held = {kernel for program in record.values() for one in program.values() for kernel in one["registers"]}
    assert len(written) > 30
    assert written - {kernel.split("<")[0] for kernel in held} == set()
