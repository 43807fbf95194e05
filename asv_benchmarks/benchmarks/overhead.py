"""What a call costs when there is next to nothing to compute: 8 floats, views and numbers."""

from __future__ import annotations

from ..harness import Row, Suite

__all__ = ["ARRAYS", "RECORDED", "ROWS", "VECTORS", "Overhead"]

VECTORS = """
torch.manual_seed(8)
x = torch.rand(8, device=device)
y = torch.rand(8, device=device)
m = torch.rand(8, 8, device=device)
n = torch.rand(8, 8, device=device)
"""
RECORDED = VECTORS + "x.requires_grad_()\nm.requires_grad_()\n"
ARRAYS = """
generator = numpy.random.default_rng(8)
x, y = generator.random((2, 8), dtype="float32")
m, n = generator.random((2, 8, 8), dtype="float32")
"""

# name, body, whether NumPy writes it the same way
TINY = [
    ("add", "x + y", True),
    ("mul", "x * y", True),
    ("relu", "torch.relu(x)", False),
    ("sum", "x.sum()", True),
    ("matmul 8x8", "m @ n", True),
]
NUMBERS = [
    ("add number", "x + 1.0", True),
    ("mul number", "x * 2", True),
    ("rsub number", "1 - x", True),
]
VIEWS = [
    ("index int", "m[3]", True),
    ("index slice", "x[2:6]", True),
    ("index pair", "m[1:5, 3]", True),
    ("reshape", "x.reshape(4, 2)", True),
    ("view", "x.view(4, 2)", False),
    ("transpose", "m.T", True),
    ("unsqueeze", "x.unsqueeze(0)", False),
    ("setitem", "x[2] = 1.0", True),
    ("add_", "x.add_(y)", False),
    ("item", "x[0].item()", True),
    ("shape", "x.shape", True),
]


def _rows(group: str, lines: list[tuple[str, str, bool]], setup: str) -> list[Row]:
    return [
        Row(f"{group} {name}", setup, body, 0.75, ARRAYS if same and setup is VECTORS else None, (1, 2), "tiny ops")
        for name, body, same in lines
    ]


ROWS = [
    *_rows("tiny", TINY, VECTORS),
    *_rows("number", NUMBERS, VECTORS),
    *_rows("view", VIEWS, VECTORS),
    *_rows("tiny recorded", TINY, RECORDED),
    *_rows("number recorded", NUMBERS, RECORDED),
]


class Overhead(Suite):
    """Seconds of a hundred runs of each row."""

    rows = ROWS
    count = 100
