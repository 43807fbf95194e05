"""C kernels that find no memory: each of their allocations fails once, alone and with all after it."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .native import needs_native

HERE = Path(__file__).parent


@needs_native
@pytest.mark.skipif(
    platform.machine() != "x86_64" or not sys.platform.startswith("linux") or "LD_PRELOAD" in os.environ,
    reason="stands before glibc's allocator on x86-64, alone",
)
def test_a_kernel_without_memory_says_so_or_takes_another_way(tmp_path):
    """What a family answers is right, or it raises a MemoryError; no process ends, and later calls are right."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    built = tmp_path / "shortage.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", built, HERE / "shortage.c"], check=True)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", HERE / "shortage.py", built],
        env=os.environ | {"LD_PRELOAD": str(built)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")
