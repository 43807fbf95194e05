"""What it costs to bring numbers to a device, to fetch them, and to hand an array from one library to another."""

from __future__ import annotations

from ..harness import Row, Suite

__all__ = ["ROWS", "Transfer"]

START = """
import numpy as np

array = np.random.default_rng(8).random({count}, dtype="float32")
numbers = array[:1000].tolist()
x = torch.from_numpy(array).to(device)
target = torch.zeros_like(x)
"""
ALWAYS = [
    ("from NumPy", "torch.from_numpy(array).to(device)"),
    ("from NumPy, copied", "torch.tensor(array, device=device)"),
    ("to NumPy", "x.cpu().numpy()"),
    ("copy_", "target.copy_(x)"),
]
TINY = [
    ("through DLPack", "torch.from_dlpack(x)"),
    ("from a list", "torch.tensor(numbers, device=device)"),
    ("to a list", "x.tolist()"),
    ("item", "x[7].item()"),
]

ROWS = [
    Row(
        f"transfer {name} {size}",
        START.format(count=count),
        body,
        threads=(1, 2),
        group="transfers",
        large=count >= 10**7,
    )
    for size, count, lines in (("1e3", 1000, ALWAYS + TINY), ("1e7", 10**7, ALWAYS))
    for name, body in lines
]


class Transfer(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
