"""What the tests of the CPU plugin can ask for: an allocator, each instruction set, each kind of products.

In CI (``CI``) a case that is there for each instruction set runs with the best one and with one of the others, another one each
day: all three take twice as long. ``TENSORCORE_INSTRUCTION_SETS=all`` asks for all of them, as ``.ci/nightly`` does.
"""

import os

import pytest

from tensorcore_cpu.memory import Allocator

from .native import instruction_sets, is_left_to_another_day, isa, products

__all__ = ["allocator", "isa", "products"]


def pytest_collection_modifyitems(config, items):
    others = instruction_sets()[:-1]
    if "CI" not in os.environ or os.environ.get("TENSORCORE_INSTRUCTION_SETS") == "all" or len(others) < 2:
        return
    left = [item for item in items if is_left_to_another_day(item, others)]
    config.hook.pytest_deselected(items=left)
    gone = set(left)
    items[:] = [item for item in items if item not in gone]


@pytest.fixture
def allocator():
    """An allocator of the test's own, with room for anything it does."""
    allocator = Allocator()
    allocator.limit(1 << 30)
    return allocator
