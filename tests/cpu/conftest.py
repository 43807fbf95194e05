"""What the tests of the CPU plugin can ask for: an allocator, each instruction set, each kind of products."""

import pytest

from tensorcore_cpu.memory import Allocator

from .native import isa, products

__all__ = ["allocator", "isa", "products"]


@pytest.fixture
def allocator():
    """An allocator of the test's own, with room for anything it does."""
    allocator = Allocator()
    allocator.limit(1 << 30)
    return allocator
