"""Softmax, norms, losses, pooling, picking, dropout and convolutions, forward and backward; steps of optimizers."""

from __future__ import annotations

from typing import NamedTuple

from ..harness import Row, Suite
from ..limits import Work

__all__ = ["ROWS", "Layers"]

START = """
torch.manual_seed(8)
nn, F = torch.nn, torch.nn.functional

def both(out):
    out.backward(torch.ones_like(out))
"""
NORMS = (
    START
    + """
scores, labels = torch.randn(128, 1000, device=device), torch.randint(1000, (128,), device=device)
wide, pictures = torch.randn(1024, 512, device=device), torch.randn(32, 64, 28, 28, device=device)
layer = nn.LayerNorm(512).to(device)
weight, bias = layer.weight.detach(), layer.bias.detach()
batch = nn.BatchNorm2d(64).to(device)
groups = nn.GroupNorm(8, 64).to(device)
recorded = [one.clone().requires_grad_() for one in (scores, wide, pictures)]
"""
)
POOLS = (
    START
    + """
pictures = torch.randn(32, 16, 32, 32, device=device)
recorded = pictures.clone().requires_grad_()
table = nn.Embedding(10_000, 128).to(device)
weight = table.weight.detach()
tokens = torch.randint(10_000, (32, 64), device=device)
m = torch.randn(1000, 1000, device=device)
leaf = m.clone().requires_grad_()
picks, rows = torch.randint(1000, (1000, 1000), device=device), torch.randperm(1000, device=device)
chosen = m > 0.5
"""
)
SORTS = (
    START
    + """
x, m = torch.randn(100_000, device=device), torch.randn(1000, 100, device=device)
near, far = (torch.randn(1_000_000, device=device) * 1000).long(), torch.randint(0, 2**60, (1_000_000,), device=device)
"""
)
DROPOUT = (
    START
    + """
x = torch.rand(1_000_000, device=device)
leaf = x.clone().requires_grad_()
"""
)
STEPS = (
    START
    + """
parameters = [nn.Parameter(torch.randn(100, 100, device=device)) for _ in range(100)]
for one in parameters:
    one.grad = torch.randn(100, 100, device=device)
optimizer = torch.optim.{optimizer}
"""
)
CONVOLUTION = (
    START
    + """
layer = nn.Conv2d({layer}).to(device)
x = torch.randn({shape}, device=device)
leaf = x.clone().requires_grad_()

def forward():
    with torch.no_grad():
        return layer(x)
"""
)


def _floats(read: int, written: int) -> Work:
    return Work(4 * read, 4 * written)


def _walk(x: int, y: int, again: int) -> Work:
    """Both ways in floats: x is read, y and the ones sent back are written; these are read, and ``again``, and x's gradient grows."""
    return Work(4 * (x + y + again), 4 * 2 * y, changed=4 * x)


WIDE, PICTURES, POOLED = 1024 * 512, 32 * 64 * 28 * 28, 32 * 16 * 32 * 32

# name, forward, forward and backward, and the work of each
NORM_LINES = [
    ("softmax 128x1000", "scores.softmax(1)", "recorded[0].softmax(1)", _floats(128_000, 128_000), _walk(128_000, 128_000, 128_000)),
    ("log_softmax 128x1000", "scores.log_softmax(1)", "recorded[0].log_softmax(1)", _floats(128_000, 128_000),
     _walk(128_000, 128_000, 128_000)),
    ("cross_entropy 128x1000", "F.cross_entropy(scores, labels)", "F.cross_entropy(recorded[0], labels)", _floats(128_000, 0),
     _walk(128_000, 0, 128_000)),
    ("layer_norm 1024x512", "F.layer_norm(wide, (512,), weight, bias)", "layer(recorded[1])", _floats(WIDE, WIDE),
     _walk(WIDE, WIDE, WIDE)),
    ("batch_norm 32x64x28x28", "F.batch_norm(pictures, None, None, training=True)", "batch(recorded[2])",
     _floats(PICTURES, PICTURES), _walk(PICTURES, PICTURES, PICTURES)),
    ("group_norm 32x64x28x28", "F.group_norm(pictures, 8)", "groups(recorded[2])", _floats(PICTURES, PICTURES),
     _walk(PICTURES, PICTURES, PICTURES)),
]  # fmt: skip
# Picks are int64: two floats each. Of what max_pool2d keeps only a place in its window is needed, which is next to nothing.
POOL_LINES = [
    ("max_pool2d 2", "F.max_pool2d(pictures, 2)", "F.max_pool2d(recorded, 2)", _floats(POOLED, POOLED // 4),
     _walk(POOLED, POOLED // 4, 0)),
    ("avg_pool2d 2", "F.avg_pool2d(pictures, 2)", "F.avg_pool2d(recorded, 2)", _floats(POOLED, POOLED // 4),
     _walk(POOLED, POOLED // 4, 0)),
    ("embedding 10000x128", "F.embedding(tokens, weight)", "table(tokens)", _floats(2048 * (128 + 2), 2048 * 128),
     _walk(2048 * 128, 2048 * 128, 2048 * 4)),
    ("gather 1000x1000", "m.gather(1, picks)", "leaf.gather(1, picks)", _floats(3_000_000, 1_000_000),
     _walk(1_000_000, 1_000_000, 4_000_000)),
    ("index rows", "m[rows]", "leaf[rows]", _floats(1_000_000, 1_000_000), _walk(1_000_000, 1_000_000, 0)),
    ("index pairs", "m[rows, rows]", "leaf[rows, rows]", None, None),
]  # fmt: skip
PICK_LINES = [
    ("index by mask", "m[chosen]", None),
    ("masked_fill", "m.masked_fill(chosen, 0.0)", Work(5_000_000, 4_000_000)),
    ("scatter", "m.scatter(1, picks, m)", _floats(3_000_000, 1_000_000)),
    ("scatter_add", "m.scatter_add(1, picks, m)", _floats(3_000_000, 1_000_000)),
    ("index_add", "m.index_add(0, rows, m)", _floats(1_000_000, 1_000_000)),
]
SORT_LINES = [
    ("sort 1e5", "x.sort()", None), ("sort rows of 100", "m.sort(1)", None), ("argsort 1e5", "x.argsort()", None),
    ("topk 100 of 1e5", "x.topk(100)", None), ("topk 5 of rows of 100", "m.topk(5)", None),
    ("sort 1e6 of int64", "far.sort()", None), ("unique 1e6 near each other", "near.unique()", None),
    ("unique 1e6 near each other, all three", "near.unique(return_inverse=True, return_counts=True)", None),
    ("unique 1e6 far apart", "far.unique()", None),
    ("unique 1e6 far apart, all three", "far.unique(return_inverse=True, return_counts=True)", None),
    ("unique_consecutive 1e6", "near.unique_consecutive()", None),
]  # fmt: skip
# made, floats that change for each one of a gradient: parameters and what the optimizer keeps
OPTIMIZERS = {
    "SGD": ("SGD(parameters, lr=0.01)", 1),
    "SGD with momentum": ("SGD(parameters, lr=0.01, momentum=0.9)", 2),
    "Adam": ("Adam(parameters, lr=1e-3)", 3),
    "AdamW": ("AdamW(parameters, lr=1e-3)", 3),
}


class Convolution(NamedTuple):
    """A layer with square windows, and what it is given: ``batch`` pictures of ``side`` x ``side``."""

    ins: int
    outs: int
    window: int
    batch: int
    side: int
    padding: int = 0
    stride: int = 1
    groups: int = 1

    def setup(self) -> str:
        """The layer and its input."""
        layer = f"{self.ins}, {self.outs}, {self.window}, padding={self.padding}, stride={self.stride}, groups={self.groups}"
        return CONVOLUTION.format(layer=layer, shape=f"{self.batch}, {self.ins}, {self.side}, {self.side}")

    def work(self, ways: int = 1) -> Work | None:
        """A multiplication for each window's elements; each way back has as many. There are ways with fewer for 3x3."""
        if self.window == 3 and self.groups == 1:
            return None
        out = self.batch * ((self.side + 2 * self.padding - self.window) // self.stride + 1) ** 2 * self.outs
        taps = self.ins // self.groups * self.window**2
        return Work(4 * (self.batch * self.ins * self.side**2 + self.outs * taps), 4 * out, products=ways * out * taps)


CONVOLUTIONS = {
    "3 to 64, 3x3 on 32x32": Convolution(3, 64, 3, 16, 32, padding=1),
    "64 to 128, 3x3 on 16x16": Convolution(64, 128, 3, 16, 16, padding=1),
    "1 to 6, 5x5 on 28x28": Convolution(1, 6, 5, 64, 28, padding=2),
    "6 to 16, 5x5 on 14x14": Convolution(6, 16, 5, 64, 14),
    "64 to 64, 1x1 on 32x32": Convolution(64, 64, 1, 16, 32),
    "64 to 128, 3x3 stride 2 on 32x32": Convolution(64, 128, 3, 16, 32, padding=1, stride=2),
    "64 depthwise, 3x3 on 32x32": Convolution(64, 64, 3, 16, 32, padding=1, groups=64),
}


def _pairs(
    group: str, lines: list[tuple[str, str, str, Work | None, Work | None]], setup: str, target: float
) -> list[Row]:
    return [
        Row(f"{name}, {what}", setup, body, target, None, (1, 2), group, work=work)
        for name, forward, recorded, one, both in lines
        for what, body, work in (("forward", forward, one), ("forward and backward", f"both({recorded})", both))
    ]


def _single(group: str, lines: list[tuple[str, str, Work | None]], setup: str, target: float) -> list[Row]:
    return [Row(name, setup, body, target, None, (1, 2), group, work=work) for name, body, work in lines]


ROWS = [
    *_pairs("softmax, norms and losses", NORM_LINES, NORMS, 0.8),
    *_pairs("pooling and picking", POOL_LINES, POOLS, 0.8),
    *_single("pooling and picking", PICK_LINES, POOLS, 0.8),
    *_single("sorting", SORT_LINES, SORTS, 1.0),
    *_pairs("dropout and optimizers", [("dropout of 1e6", "F.dropout(x)", "F.dropout(leaf)", _floats(10**6, 10**6),
                                        _walk(10**6, 10**6, 0))], DROPOUT, 0.4),
    *[
        Row(f"{name} step, 1e6 parameters in 100 tensors", STEPS.format(optimizer=made), "optimizer.step()", 0.4, None,
            (1, 2), "dropout and optimizers", work=Work(read=4 * 10**6, changed=changed * 4 * 10**6))
        for name, (made, changed) in OPTIMIZERS.items()
    ],
    *[
        row
        for name, made in CONVOLUTIONS.items()
        for row in _pairs("convolutions", [(f"convolution {name}", "forward()", "layer(leaf)", made.work(), made.work(3))],
                          made.setup(), 1.0)
    ],
]  # fmt: skip


class Layers(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
