"""Softmax and log_softmax, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family, vector_of
from tensorcore_cuda.kernels.rows import dense, spans, teams

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "softmax.cu")
    contiguous = table["contiguous"]

    def run(operation: str, arrays: tuple[Native, ...], made: Native, dim: int) -> None:
        outer, n, inner = spans(made.shape, dim)
        c_type, back = C_TYPES[made.dtype], "_backward" if len(arrays) == 2 else ""
        pointers = [one.data.ptr for one in (*arrays, made)]
        if inner == 1:
            pack = vector_of(made.dtype.itemsize, n, *pointers)
            team, grid, block = teams(driver, outer, n // pack)
            kernel = find(f"rows{back}<{operation}, {c_type}, {pack}, {team}>", f"{'P' * len(pointers)}qq")
            kernel(grid, block, 0, *pointers, outer, n)
        else:
            count = outer * inner
            kernel = find(f"columns{back}<{operation}, {c_type}>", f"{'P' * len(pointers)}qqq")
            kernel((driver.blocks(-(-count // 256)), 1, 1), (256, 1, 1), 0, *pointers, count, n, inner)

    def forward(name: str) -> Run:
        fallback = table[name]

        def kernel(x: Native, *, dim: int) -> Native:
            if x.dtype not in WIDE or not x.size or not x.ndim:
                return fallback(x, dim=dim)
            x = dense(x, contiguous)
            made = driver.empty(x.shape, x.dtype)
            run(name.upper(), (x,), made, dim)
            return made

        kernel.__name__ = name
        return kernel

    def backward(name: str) -> Run:
        fallback = table[f"{name}_backward"]

        def kernel(g: Native, out: Native, *, dim: int) -> Native:
            if out.dtype not in WIDE or g.dtype != out.dtype or not out.size or not out.ndim or g.shape != out.shape:
                return fallback(g, out, dim=dim)
            g, out = dense(g, contiguous), dense(out, contiguous)
            made = driver.empty(out.shape, out.dtype)
            run(name.upper(), (g, out), made, dim)
            return made

        kernel.__name__ = f"{name}_backward"
        return kernel

    return {
        "softmax": forward("softmax"),
        "log_softmax": forward("log_softmax"),
        "softmax_backward": backward("softmax"),
        "log_softmax_backward": backward("log_softmax"),
    }
