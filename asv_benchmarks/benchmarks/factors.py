"""Factorisations of one matrix, and what is solved with them."""

from __future__ import annotations

from ..harness import Row, Suite

__all__ = ["ROWS", "Factors"]

START = """
torch.manual_seed(8)
size = {size}
a, tall, sides = torch.randn(size, size, device=device), torch.randn(4 * size, size, device=device), torch.randn(size, 8, device=device)
definite = a @ a.T / size + torch.eye(size, device=device)
upper, tall_sides = definite.triu(), torch.randn(4 * size, 8, device=device)
linalg = torch.linalg
"""
LINES = [
    ("cholesky", "linalg.cholesky(definite)"), ("lu", "linalg.lu_factor(a)"), ("qr", "linalg.qr(a)"),
    ("qr of a tall one", "linalg.qr(tall)"), ("solve", "linalg.solve(a, sides)"),
    ("solve with a triangle", "linalg.solve_triangular(upper, sides, upper=True)"), ("least squares", "linalg.lstsq(tall, tall_sides)"),
    ("inverse", "linalg.inv(a)"), ("determinant", "linalg.slogdet(a)"),
    ("eigenvalues and vectors, symmetric", "linalg.eigh(definite)"), ("eigenvalues, symmetric", "linalg.eigvalsh(definite)"),
    ("singular values and vectors", "linalg.svd(a)"), ("singular values", "linalg.svdvals(a)"),
    ("singular values and vectors of a tall one", "linalg.svd(tall, full_matrices=False)"),
    ("matrix exponential", "linalg.matrix_exp(a)"),
]  # fmt: skip

ROWS = [
    Row(f"factors {size}x{size}, {name}", START.format(size=size), body, 1.0, None, (1, 2), "factorisations")
    for size in (32, 128, 512)
    for name, body in LINES
]


class Factors(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
