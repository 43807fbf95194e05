"""How files in C are compiled: for the extension by setup.py, and for generated ones by the plugin."""

import platform

__all__ = ["FLAGS", "INSTRUCTION_SETS"]

# The files under loops/ are compiled once for each of these, with the name as NATIVE_SUFFIX.
if platform.machine().lower() in ("x86_64", "amd64"):
    INSTRUCTION_SETS = {
        "plain": ["-O2"],  # for processors before 2013: compiled in half the time of -O3
        "avx2": ["-mavx2", "-mfma", "-mf16c", "-mtune=haswell"],
        "avx512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx2", "-mfma", "-mf16c", "-mprfchw",
                   "-mtune=skylake-avx512", "-mprefer-vector-width=512"],
    }  # fmt: skip
else:
    INSTRUCTION_SETS = {"plain": []}

# No -ffast-math: it would turn denormals off for the whole process, and NaN and infinities are results like any other.
# Aligned: where the linker put a loop of eight instructions made it half as long again (strided products, 60 us in place of 41).
FLAGS = ["-std=gnu11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fvisibility=hidden", "-falign-functions=64",
         "-falign-loops=32", "-Wall", "-Wno-unused-parameter", "-Wno-initializer-overrides", "-g0"]  # fmt: skip
