"""The device holds bronze."""

import subprocess
import sys


def test_bronze():
    command = [sys.executable, "-m", "tensorcore", "check", "mine", "--level", "bronze"]
    assert subprocess.run(command).returncode == 0
