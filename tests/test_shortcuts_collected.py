"""Short ways in C within which garbage is collected, whose finalizers change what is looked at, and within which memory ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tensorcore.ops.calls import apply

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")

PROGRAM = """
import gc
import sys
import tensorcore as torch
import tensorcore.nn.functional as F

class Garbage:
    def __init__(self):
        self.itself = self

    def __del__(self):
        change()

def fill():
    global leaf
    x.data = torch.ones(2, 8, 4, 6)
    leaf = torch.ones(2, 8, 4, 6, requires_grad=True)
    joined[:] = [x, x, x]

def change():
    global leaf
    x.data = torch.ones(2, 8, 2, 2)
    view._base
    leaf.detach_()
    joined.clear()
    views.extend(x[1:] for _ in range(40))

calls = {
    "shape": lambda: (x.shape, x.ndim),
    "views": lambda: (x[1:], x.view(-1), x.t_view()),
    "views of views": lambda: (view[1:], view.permute(1, 0, 2, 3)),
    "recorded": lambda: (leaf[1:], leaf.permute(1, 0, 2, 3), leaf + 1, leaf * leaf),
    "parts": lambda: (x.split(2), x.unbind(), leaf.chunk(2)),
    "many parts": lambda: [one[0] for one in x.unbind(1)] + [one.t_view() for one in x.split(1, 1)],
    "join": lambda: (torch.cat(joined), torch.cat((x, x), 1)),
    "strides": lambda: (x.as_strided((2, 2), (1, 2)), x.as_strided((3,), (1,), 2)),
    "pools": lambda: F.avg_pool2d(x, 2),
    "dealt": lambda: (F.pixel_shuffle(x, 2), F.channel_shuffle(x, 2), F.pixel_unshuffle(x, 2)),
    "arithmetic": lambda: (x + x, x * 2, x.exp()),
}
torch.Tensor.t_view = lambda self: self.transpose(0, 1)
x, joined, views = torch.ones(2, 8, 4, 6), [], []
kept = [[()] * 500, [{} for _ in range(500)]]
gc.disable()
gc.freeze()  # what there is by now need not be looked through again
for name, call in calls.items():
    for threshold in range(1, 60):
        fill()
        views.clear()
        view = x[0:]
        view = view[0:]
        gc.collect()
        Garbage()
        gc.set_threshold(threshold, 1000, 1000)
        gc.enable()
        try:
            made = call()
        except Exception:
            made = None
        gc.disable()
        del made
print("right")
"""


def test_finalizers_may_change_what_a_short_way_looks_at():
    """Whatever allocation collects the garbage whose finalizer replaces arrays, nodes and origins, the process lives on."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


SHORTAGE = """
import _testcapi
import tensorcore as torch

x, leaf = torch.ones(2, 8, 4, 6), torch.ones(2, 8, 4, 6, requires_grad=True)
calls = {
    "shape": lambda: x.shape,
    "views": lambda: leaf[1:].shape,
    "views of other sizes": lambda: leaf.view(-1).shape,
    "orders": lambda: leaf.permute(3, 2, 1, 0).shape,
    "parts": lambda: len(leaf.split(1)),
    "many parts": lambda: [len(x.split(1, 1)), *[one[0].shape for one in x.unbind(1)]],
    "sums": lambda: (leaf + 1).shape,
    "products": lambda: (leaf * leaf).shape,
    "joined": lambda: torch.cat((x, x)).shape,
}
for name, call in calls.items():
    expected = call()
    for number in range(60):
        made = failed = None
        _testcapi.set_nomemory(number, number + 1)
        try:
            made = call()
        except BaseException as error:
            failed = error
        finally:
            _testcapi.remove_mem_hooks()
        if not isinstance(failed, MemoryError) and (failed or made != expected):
            print(name, number, repr(failed), made)
print("done")
"""


def test_a_short_way_without_memory_answers_or_raises_a_memory_error():
    """Each allocation of Python's fails once: no call goes on with an error that is set, none answers wrongly."""
    pytest.importorskip("_testcapi")
    done = subprocess.run([sys.executable, "-c", SHORTAGE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
