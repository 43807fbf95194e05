"""Matrix products, linear layers, attention and recurrent layers, forward and backward."""

from __future__ import annotations

from ..harness import Row, Suite
from ..limits import Work

__all__ = ["ROWS", "Products"]

MATRICES = """
torch.manual_seed(8)
x = torch.rand({shape}, dtype=torch.{dtype}, device=device)
y = torch.rand({shape}, dtype=torch.{dtype}, device=device)
"""
ARRAYS = """
x, y = numpy.random.default_rng(8).random({shape}, dtype="{dtype}")
"""
HEADS = """
torch.manual_seed(8)
x = torch.rand(64, 64, 32, device=device)
y = torch.rand(64, 64, 32, device=device)
"""
ZEROS = """
torch.manual_seed(8)
x = torch.rand(256, 128, device=device) * (torch.rand(256, {columns}, device=device) >= {share})
y = torch.rand(128, 784, device=device)
"""
LINEAR = """
torch.manual_seed(8)
x = torch.rand({rows}, {inner}, device=device)
weight, bias = torch.rand({outs}, {inner}, device=device), torch.rand({outs}, device=device)
"""
ATTENTION = """
torch.manual_seed(8)
q, k, v = [torch.rand(1, 8, 1024, 64, device=device, requires_grad=True) for _ in range(3)]
attend = torch.nn.functional.scaled_dot_product_attention
ones = torch.ones(1, 8, 1024, 64, device=device)

def forward(**options):
    with torch.no_grad():
        return attend(q, k, v, **options)
"""
RECURRENT = """
torch.manual_seed(8)
layer = torch.nn.{name}(200, 200).to(device)
x = torch.rand(35, 20, 200, device=device)
ones = torch.ones(35, 20, 200, device=device)

def forward():
    with torch.no_grad():
        return layer(x)
"""


def _product(rows: int, inner: int, outs: int, count: int = 1, dtype: str = "float32") -> Work:
    """That of ``count`` products of matrices: each element is read once, or written."""
    width = {"float32": 4, "float64": 8}[dtype] * count
    return Work(width * inner * (rows + outs), width * rows * outs, products=count * rows * inner * outs, dtype=dtype)


def _square(dtype: str, size: int) -> list[Row]:
    setup = MATRICES.format(shape=f"{size}, {size}", dtype=dtype)
    arrays = ARRAYS.format(shape=(2, size, size), dtype=dtype)
    bodies = {"": "x @ y"} | ({" right transposed": "x @ y.T", " left transposed": "x.T @ y"} if size <= 512 else {})
    return [
        Row(
            f"product {dtype} {size}{name}", setup, body, 1.0 if size >= 64 else None, arrays, (1, 2), "products",
            work=_product(size, size, size, dtype=dtype),
        )
        for name, body in bodies.items()
    ]  # fmt: skip


ROWS = [
    *[row for dtype in ("float32", "float64") for size in (8, 64, 256, 1024, 2048) for row in _square(dtype, size)],
    Row("product 32x12 of 64x64", MATRICES.format(shape="32, 12, 64, 64", dtype="float32"), "x @ y", 1.0, threads=(1, 2), group="products",
        work=_product(64, 64, 64, 32 * 12)),
    *[
        Row(f"product 256x128 by 128x784, {what}", ZEROS.format(columns=columns, share=share), "x @ y", 1.0, group="products",
            work=None if share else _product(256, 128, 784))
        for what, columns, share in (("no zeros", 128, 0.0), ("half zeros on the left", 128, 0.5),
                                     ("half of the left rows zeros", 1, 0.5), ("seven tenths zeros on the left", 128, 0.7))
    ],
    Row("product 64 of 64x32 by 32x64", HEADS, "x @ y.transpose(1, 2)", 1.0, threads=(1, 2), group="products",
        work=_product(64, 32, 64, 64)),
    *[
        Row(f"linear {rows}x{inner} to {outs}", LINEAR.format(rows=rows, inner=inner, outs=outs),
            "torch.nn.functional.linear(x, weight, bias)", 1.0, threads=(1, 2), group="products", work=_product(rows, inner, outs))
        for rows, inner, outs in ((1, 784, 256), (8, 256, 256), (128, 784, 256), (1024, 512, 128))
    ],
    *[
        Row(f"attention 8 heads 1024 long{what}", ATTENTION, body, 1.0, threads=(1, 2), group="attention",
            work=Work(products=products * 8 * 1024 * 1024 * 64))
        for what, body, products in (("", "forward()", 2), (", causal", "forward(is_causal=True)", 1),
                                     (", forward and backward", "attend(q, k, v).backward(ones)", 6))
    ],
    *[
        Row(f"{name} layer, 200 units, 35 long, batch 20, {what}", RECURRENT.format(name=name), body, target,
            threads=(1, 2), group="recurrent layers", work=Work(products=ways * gates * 35 * 20 * 200 * (200 + 200)))
        for name, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
        for what, body, target, ways in (("forward", "forward()", None, 1),
                                         ("forward and backward", "layer(x)[0].backward(ones)", 0.85, 3))
    ],
]  # fmt: skip


class Products(Suite):
    """Seconds of one run."""

    rows = ROWS
