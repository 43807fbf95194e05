"""CUDA C++ kernels compiled with g++ and executed on NumPy memory, for machines without a GPU.

Each CUDA thread is a fiber that runs until it waits (``__syncthreads``, a warp's shuffle or vote) or ends, one block
after the other, so results are the same in every run. Shared memory is filled with NaN before each block. What is found:
wrong results, deadlocks and divergence at barriers, wrong masks, packs at misaligned addresses, parameters that do not match;
with other orders of the threads (``thread_order``) many missing barriers too. What is not: races between blocks, memory
limits, speed.
"""

from __future__ import annotations

from tests.cuda_standin.emulation.compile import EmulationError, Function, Module, emulate, prepare, thread_order

__all__ = ["EmulationError", "Function", "Module", "emulate", "prepare", "thread_order"]
