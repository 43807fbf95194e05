"""Ops along short rows: points, boxes, classes, batches of small matrices, small planes, and long sums of few rows. What a row, a
matrix or a plane costs beside its bytes shows here."""

from __future__ import annotations

from ..harness import Row, Suite

__all__ = ["ROWS", "Short"]

COUNT = 100_000  # elements, in rows of so many
WIDTHS = (3, 4, 10, 33)
TENSORS = """
torch.manual_seed(8)
F = torch.nn.functional
m = torch.randn({rows}, {width}, device=device)
column, mask = torch.randn({rows}, 1, device=device), torch.rand({rows}, 1, device=device) > 0.5
labels = torch.randint({width}, ({rows},), device=device)
picked = labels.unsqueeze(1)
gamma, beta = torch.rand({width}, device=device), torch.rand({width}, device=device)
"""
MATRICES = """
torch.manual_seed(8)
a = torch.randn(10_000, {width}, {width}, device=device)
b = torch.randn(10_000, {width}, {width}, device=device)
v = torch.randn(10_000, {width}, device=device)
definite = a @ a.mT + torch.eye({width}, device=device)
"""
LINES = [
    ("minus column", "m - column"), ("where column", "torch.where(mask, m, column)"), ("slice times slice", "m[:, 1:] * m[:, :-1]"),
    ("slice copy", "m[:, 1:].contiguous()"), ("transposed copy", "m.T.contiguous()"), ("cat dim 1", "torch.cat([m, column], 1)"),
    ("stack dim 1", "torch.stack([m, m], 1)"), ("flip dim 1", "m.flip(1)"), ("roll dim 1", "m.roll(1, 1)"),
    ("gather", "m.gather(1, picked)"),
    ("sum dim 0", "m.sum(0)"), ("sum dim 1", "m.sum(1)"), ("sum of transposed", "m.T.sum(0)"), ("amax dim 1", "m.amax(1)"),
    ("max dim 1", "m.max(1)"), ("argmax dim 1", "m.argmax(1)"), ("norm dim 1", "m.norm(dim=1)"), ("var dim 1", "m.var(1)"),
    ("any dim 1", "(m > 0).any(1)"), ("cumsum dim 1", "m.cumsum(1)"), ("sort dim 1", "m.sort(1)"), ("median dim 1", "m.median(1)"),
    ("softmax", "m.softmax(1)"), ("logsumexp", "m.logsumexp(1)"), ("cross_entropy", "F.cross_entropy(m, labels)"),
    ("layer_norm", "F.layer_norm(m, m.shape[1:], gamma, beta)"), ("normalize", "F.normalize(m, dim=1)"),
]  # fmt: skip
OF_MATRICES = [
    ("product", "a @ b"), ("product with transposed", "a @ b.mT"), ("matrix by vector", "(a @ v.unsqueeze(2)).squeeze(2)"),
    ("inverse", "torch.linalg.inv(a)"), ("determinant", "torch.linalg.det(a)"), ("solve", "torch.linalg.solve(a, b)"),
    ("cholesky", "torch.linalg.cholesky(definite)"), ("qr", "torch.linalg.qr(a)"), ("diagonal", "a.diagonal(dim1=1, dim2=2).sum(1)"),
]  # fmt: skip

PLANES = """
torch.manual_seed(8)
F = torch.nn.functional
x = torch.randn({planes}, 64, {width}, {width}, device=device)
r = x.clone().requires_grad_()

def both(function):
    r.grad = None
    function(r).sum().backward()
"""
OF_PLANES = [
    (f"{name} {title}", f"F.{name}(x, {options})", f"both(lambda r: F.{name}(r, {options}))")
    for name in ("max_pool2d", "avg_pool2d")
    for title, options in (("2x2", "2"), ("3x3 stride 2", "3, 2, 1"))
] + [("adaptive_avg_pool2d 3x3", "F.adaptive_avg_pool2d(x, 3)", "both(lambda r: F.adaptive_avg_pool2d(r, 3))")]
LONG = """
torch.manual_seed(8)
x, y, z = torch.randn(3, 30_000, device=device), torch.randn(2, 30_000, device=device), torch.randn(30_000, 8, device=device)
a, b = torch.randn(20, 4, 2000, device=device), torch.randn(20, 2000, 4, device=device)
"""
OF_LONG = [
    ("rows by themselves", "x @ x.T"), ("cov", "torch.cov(x)"), ("rows by columns", "y @ z"), ("columns by themselves", "z.T @ z"),
    ("batch", "a @ b"),
]  # fmt: skip

ROWS = (
    [
        Row(
            f"rows of {width}, {name}",
            TENSORS.format(rows=COUNT // width, width=width),
            body,
            1.0,
            None,
            (1, 2),
            "short rows",
        )
        for width in WIDTHS
        for name, body in LINES
    ]
    + [
        Row(f"matrices {width}x{width}, {name}", MATRICES.format(width=width), body, 1.0, None, (1, 2), "short rows")
        for width in (2, 3, 4)
        for name, body in OF_MATRICES
    ]
    + [
        Row(
            f"planes {width}x{width}, {name}{way}",
            PLANES.format(planes=planes, width=width),
            body,
            1.0,
            None,
            (1, 2),
            "short rows",
        )
        for planes, width in ((128, 4), (64, 7), (16, 14))
        for name, forward, both in OF_PLANES
        for way, body in (("", forward), (", forward and backward", both))
    ]
    + [Row(f"long sums, {name}", LONG, body, 1.0, None, (1, 2), "short rows") for name, body in OF_LONG]
)


class Short(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
