"""Single ops at sizes from the first cache to memory: elementwise functions, casts, reductions, copies, picks."""

from __future__ import annotations

from ..harness import Row, Suite
from ..limits import Work

__all__ = ["ROWS", "Sizes"]

SIZES = {"1e3": 1_000, "1e5": 100_000, "1e7": 10_000_000}
TENSORS = """
torch.manual_seed(8)
size, side = {size}, {side}
x = torch.randn(size, device=device)
y = torch.rand(size, device=device) + 0.5
chosen = x > 0
whole = (x * 100).to(torch.int64)
m = x[: side * side].reshape(side, side)
row, column = m[0], m[:, :1]
spread = torch.cat([x, x])[::2]
places = torch.randperm(side, device=device)
picks = torch.randint(side, (side, side), device=device)
"""
ARRAYS = """
generator = numpy.random.default_rng(8)
size, side = {size}, {side}
x, y = generator.standard_normal(size, dtype="float32"), generator.random(size, dtype="float32") + 0.5
chosen = x > 0
m = x[: side * side].reshape(side, side)
row, column = m[0], m[:, :1]
spread = numpy.concatenate([x, x])[::2]
"""

# name, body, bytes read and written for each element; strided ones are read with what lies between them
ELEMENTWISE = [
    ("add", "x + y", 8, 4), ("mul number", "x * 2.5", 4, 4), ("exp", "x.exp()", 4, 4), ("log", "y.log()", 4, 4),
    ("tanh", "x.tanh()", 4, 4), ("sigmoid", "x.sigmoid()", 4, 4), ("gelu", "torch.nn.functional.gelu(x)", 4, 4),
    ("silu", "torch.nn.functional.silu(x)", 4, 4), ("relu", "x.relu()", 4, 4), ("sqrt", "y.sqrt()", 4, 4),
    ("clamp", "x.clamp(-1.0, 1.0)", 4, 4), ("where", "torch.where(chosen, x, y)", 9, 4), ("compare", "x < y", 8, 1),
    ("to float64", "x.to(torch.float64)", 4, 8), ("to bfloat16", "x.to(torch.bfloat16)", 4, 2),
    ("from int64", "whole.to(torch.float32)", 8, 4), ("add row", "m + row", 4, 4), ("add column", "m + column", 4, 4),
    ("add transposed", "m + m.T", 4, 4), ("strided mul", "spread * 2.0", 8, 4), ("strided exp", "spread.exp()", 8, 4),
]  # fmt: skip
REDUCTIONS = [
    ("sum", "x.sum()", 4, 0), ("sum dim 0", "m.sum(0)", 4, 0), ("sum dim 1", "m.sum(1)", 4, 0), ("mean", "x.mean()", 4, 0),
    ("max", "x.max()", 4, 0), ("max dim 0", "m.max(0)", 4, 0), ("amax dim 1", "m.amax(1)", 4, 0),
    ("argmax", "x.argmax()", 4, 0), ("argmax dim 1", "m.argmax(1)", 4, 0), ("var", "x.var()", 4, 0),
    ("var dim 0", "m.var(0)", 4, 0), ("var dim 1", "m.var(1)", 4, 0), ("any", "chosen.any()", 0, 0),
    ("cumsum", "x.cumsum(0)", 4, 4), ("cumsum dim 0", "m.cumsum(0)", 4, 4),
]  # fmt: skip
MOVES = [
    ("clone", "x.clone()", 4, 4), ("transposed copy", "m.T.contiguous()", 4, 4), ("cat", "torch.cat([x, y])", 8, 8),
    ("stack", "torch.stack([x, y], -1)", 8, 8), ("index_select", "m.index_select(0, places)", 4, 4),
    ("gather", "m.gather(1, picks)", 12, 4),
]  # fmt: skip


# What NumPy and JAX write the same way.
ALIKE = {"add", "mul number", "compare", "add row", "add column", "add transposed", "strided mul", "sum", "sum dim 0",
         "sum dim 1", "mean", "max", "argmax", "argmax dim 1", "any", "cumsum", "cumsum dim 0"}  # fmt: skip


def _rows(group: str, lines: list[tuple[str, str, int, int]], target: float, count: int, size: str) -> list[Row]:
    sizes = {"size": count, "side": int(count**0.5)}
    return [
        Row(
            f"{group} {name} {size}", TENSORS.format(**sizes), body, target, ARRAYS.format(**sizes) if name in ALIKE else None,
            (1, 2), f"{group}s" if group != "elementwise" else group, count >= 10**7, Work(read * count, written * count),
        )
        for name, body, read, written in lines
    ]  # fmt: skip


# Rows of one size stand together: they share what the setup makes, which takes longer than most rows.
ROWS = [
    row
    for size, count in SIZES.items()
    for group, lines, target in (
        ("elementwise", ELEMENTWISE, 0.9),
        ("reduction", REDUCTIONS, 1.0),
        ("move", MOVES, 0.8),
    )
    for row in _rows(group, lines, target, count, size)
]


class Sizes(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
