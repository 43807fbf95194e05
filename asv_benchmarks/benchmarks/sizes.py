"""Single ops at sizes from the first cache to memory: elementwise functions, casts, reductions, copies, picks."""

from __future__ import annotations

from ..harness import Row, Suite

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

ELEMENTWISE = [
    ("add", "x + y"), ("mul number", "x * 2.5"), ("exp", "x.exp()"), ("log", "y.log()"), ("tanh", "x.tanh()"),
    ("sigmoid", "x.sigmoid()"), ("gelu", "torch.nn.functional.gelu(x)"), ("silu", "torch.nn.functional.silu(x)"),
    ("relu", "x.relu()"), ("sqrt", "y.sqrt()"), ("clamp", "x.clamp(-1.0, 1.0)"), ("where", "torch.where(chosen, x, y)"),
    ("compare", "x < y"), ("to float64", "x.to(torch.float64)"), ("to bfloat16", "x.to(torch.bfloat16)"),
    ("from int64", "whole.to(torch.float32)"), ("add row", "m + row"), ("add column", "m + column"),
    ("add transposed", "m + m.T"), ("strided mul", "spread * 2.0"), ("strided exp", "spread.exp()"),
]  # fmt: skip
REDUCTIONS = [
    ("sum", "x.sum()"), ("sum dim 0", "m.sum(0)"), ("sum dim 1", "m.sum(1)"), ("mean", "x.mean()"), ("max", "x.max()"),
    ("max dim 0", "m.max(0)"), ("amax dim 1", "m.amax(1)"), ("argmax", "x.argmax()"), ("argmax dim 1", "m.argmax(1)"),
    ("var", "x.var()"), ("var dim 0", "m.var(0)"), ("var dim 1", "m.var(1)"), ("any", "chosen.any()"),
    ("cumsum", "x.cumsum(0)"), ("cumsum dim 0", "m.cumsum(0)"),
]  # fmt: skip
MOVES = [
    ("clone", "x.clone()"), ("transposed copy", "m.T.contiguous()"), ("cat", "torch.cat([x, y])"),
    ("stack", "torch.stack([x, y], -1)"), ("index_select", "m.index_select(0, places)"), ("gather", "m.gather(1, picks)"),
]  # fmt: skip


# What NumPy and JAX write the same way.
ALIKE = {"add", "mul number", "compare", "add row", "add column", "add transposed", "strided mul", "sum", "sum dim 0",
         "sum dim 1", "mean", "max", "argmax", "argmax dim 1", "any", "cumsum", "cumsum dim 0"}  # fmt: skip


def _rows(group: str, lines: list[tuple[str, str]], target: float, count: int, size: str) -> list[Row]:
    sizes = {"size": count, "side": int(count**0.5)}
    return [
        Row(
            f"{group} {name} {size}", TENSORS.format(**sizes), body, target, ARRAYS.format(**sizes) if name in ALIKE else None,
            (1, 2), f"{group}s" if group != "elementwise" else group, count >= 10**7,
        )
        for name, body in lines
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
