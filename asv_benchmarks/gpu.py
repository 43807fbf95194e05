"""Tests and times the device cuda:0 in one command, ``python -m asv_benchmarks.gpu``, in under eight minutes.

Exit status: 0 all well, 1 a test failed, 3 no GPU, 4 no CUDA plugin that works, 5 out of time.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main"]

DEVICE = "cuda:0"
NO_GPU, NO_PLUGIN, OUT_OF_TIME = 3, 4, 5
MINUTES = 8
ROOT = Path(__file__).parents[1]


def main() -> int:
    """Say in one sentence what is missing, or run the device tests and the table on the GPU."""
    if not (names := gpus()):
        print("gpu: expected an NVIDIA GPU, got none; run it on a machine where `nvidia-smi` lists one")
        return NO_GPU
    import tensorcore

    try:
        tensorcore.device(DEVICE)
    except tensorcore.errors.DeviceError as reason:
        print(f"gpu: expected a CUDA plugin for {names[0]}, got none that works: {reason}")
        return NO_PLUGIN

    ends = time.monotonic() + MINUTES * 60
    peer = f"torch:{DEVICE}" if _torch_has_cuda() else "numpy"
    commands = [
        ["pytest", "--device", DEVICE, "-m", "not slow", "-q"],
        ["asv_benchmarks.table", "--ours", f"tensorcore:{DEVICE}", "--peer", peer, "--rounds", "9"],
    ]
    try:
        results = [
            subprocess.run([sys.executable, "-m", *command], cwd=ROOT, timeout=ends - time.monotonic()).returncode
            for command in commands
        ]
    except subprocess.TimeoutExpired as late:
        print(f"gpu: expected to end within {MINUTES} minutes, got no end of `{' '.join(late.cmd[2:])}`; run it alone")
        return OUT_OF_TIME
    return 1 if any(results) else 0


def gpus() -> list[str]:
    """The names of the machine's NVIDIA GPUs."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=60)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def _torch_has_cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


if __name__ == "__main__":
    raise SystemExit(main())
