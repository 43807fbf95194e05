"""What it costs to bring numbers to a device, to fetch them, and to hand an array from one library to another."""

from __future__ import annotations

from ..harness import Row, Suite
from ..limits import Work

__all__ = ["ROWS", "Transfer"]

START = """
import numpy as np

array = np.random.default_rng(8).random({count}, dtype="float32")
numbers = array[:1000].tolist()
x = torch.from_numpy(array).to(device)
target = torch.zeros_like(x)
"""
# name, body, bytes copied for each element
ALWAYS = [
    ("from NumPy", "torch.from_numpy(array).to(device)", 0),
    ("from NumPy, copied", "torch.tensor(array, device=device)", 4),
    ("to NumPy", "x.cpu().numpy()", 0),
    ("copy_", "target.copy_(x)", 4),
]
TINY = [
    ("through DLPack", "torch.from_dlpack(x)", 0),
    ("from a list", "torch.tensor(numbers, device=device)", 0),
    ("to a list", "x.tolist()", 0),
    ("item", "x[7].item()", 0),
]

ROWS = [
    Row(
        f"transfer {name} {size}",
        START.format(count=count),
        body,
        threads=(1, 2),
        group="transfers",
        large=count >= 10**7,
        work=Work(copied * count, copied * count),
    )
    for size, count, lines in (("1e3", 1000, ALWAYS + TINY), ("1e7", 10**7, ALWAYS))
    for name, body, copied in lines
]


class Transfer(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
