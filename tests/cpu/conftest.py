"""What the tests of the CPU plugin can ask for: an allocator, each instruction set."""

import pytest

from tensorcore_cpu.memory import Allocator

from .native import isa

__all__ = ["allocator", "isa"]


@pytest.fixture
def allocator():
    """An allocator of the test's own, with room for anything it does."""
    allocator = Allocator()
    allocator.limit(1 << 30)
    return allocator
