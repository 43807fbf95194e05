"""Sparse matrices of a few numbers and of many: products, both ways, orders, sums and changes of layout."""

from __future__ import annotations

from ..harness import Row, Suite

__all__ = ["ROWS", "Sparse"]

START = """
torch.manual_seed(8)
size, count, width = {size}
places, numbers = torch.randint(0, size, (2, count), device=device), torch.randn(count, device=device)
matrix = torch.sparse_coo_tensor(places, numbers, (size, size)).coalesce()
by_rows, dense = matrix.to_sparse_csr(), torch.randn(size, width, device=device)
at, held = matrix.indices(), matrix.values().clone().requires_grad_()
wide, vector, some = dense.clone().requires_grad_(), dense[:, 0].contiguous(), places[0, :10].contiguous()

def both():
    made = torch.sparse.mm(torch.sparse_coo_tensor(at, held, (size, size)), wide)
    made.backward(torch.ones_like(made))
"""
SIZES = {"64x64 of 200": (64, 200, 32), "5000x5000 of 50,000": (5000, 50_000, 64)}
LINES = [
    ("made, then a product", "torch.sparse_coo_tensor(places, numbers, (size, size)) @ dense"), ("product", "matrix @ dense"),
    ("product by rows", "by_rows @ dense"), ("by a vector", "matrix @ vector"), ("product, forward and backward", "both()"),
    ("product of two", "torch.sparse.mm(matrix, matrix)"),
    ("in order", "torch.sparse_coo_tensor(places, numbers, (size, size)).coalesce()"), ("by rows", "matrix.to_sparse_csr()"),
    ("transposed", "matrix.t()"), ("sum along rows", "torch.sparse.sum(matrix, 1)"),
    ("softmax along rows", "torch.sparse.softmax(matrix, 1)"),
    ("plus itself", "matrix + matrix"), ("times a number", "matrix * 2.0"), ("one row", "matrix[3]"),
    ("some rows", "matrix.index_select(0, some)"), ("at the places of another", "dense_whole.sparse_mask(matrix)"),
    ("whole", "matrix.to_dense()"), ("from whole", "dense_whole.to_sparse()"),
]  # fmt: skip
WHOLE = "dense_whole = matrix.to_dense()\n"

ROWS = [
    Row(f"sparse {title}, {name}", START.format(size=size) + (WHOLE if "dense_whole" in body else ""), body, 1.0, None, (1, 2), "sparse")
    for title, size in SIZES.items()
    for name, body in LINES
]  # fmt: skip


class Sparse(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
