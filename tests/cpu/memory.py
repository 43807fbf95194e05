"""What the tests of the CPU plugin's allocator share: sizes, addresses, and programs in a process of their own."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

BYTE = np.dtype(np.uint8)
FLOAT = np.dtype(np.float32)
FORTY_MB = (10_000_000,)  # of float32
MIB = 1 << 20

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, or counts page faults as Linux does")


def address(array):
    """Where the array's values begin."""
    return array.__array_interface__["data"][0]


def run(program):
    """Runs a program in a new interpreter that imports from where this one does; returns what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    lines = "import numpy as np\nfrom tensorcore_cpu.memory import Allocator\n" + textwrap.dedent(program)
    command = [sys.executable, "-W", "ignore", "-c", lines]  # Python 3.12 warns of a fork beside threads
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout
