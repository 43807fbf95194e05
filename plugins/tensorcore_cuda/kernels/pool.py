"""Max and average pools over one to three dims, both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family
from tensorcore_cuda.kernels.rows import dense
from tensorcore_cuda.kernels.windows import WINDOWS_BYTES, windows_of

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

_INT64 = np.dtype(np.int64)
_W = f"{WINDOWS_BYTES}s"


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "pool.cu")
    contiguous, empty = table["contiguous"], driver.empty

    def launch(name: str, format: str, count: int, *parameters: Any) -> None:
        if count:
            find(name, format)((driver.blocks(-(-count // 256)), 1, 1), (256, 1, 1), 0, *parameters)

    def takes(x: Native, kinds: Any, sizes: Any) -> bool:
        return x.dtype in kinds and len(sizes) <= 3 and prod(sizes) < 1 << 31

    def max_pool(x: Native, **options: Any) -> Native:
        if not takes(x, C_TYPES, x.shape[2:]):
            return table["max_pool"](x, **options)
        x = dense(x, contiguous)
        made = empty((*x.shape[:2], *options["counts"]), x.dtype)
        of = windows_of(x.shape[2:], **options)
        launch(
            f"max_pool<{C_TYPES[x.dtype]}, true>", f"PPPq{_W}", made.size, x.data.ptr, made.data.ptr, 0, made.size, of
        )
        return made

    def places(x: Native, shape: tuple[int, ...], of: bytes) -> Native:
        x = dense(x, contiguous)
        made = empty(shape, _INT64)
        launch(
            f"max_pool<{C_TYPES[x.dtype]}, false>", f"PPPq{_W}", made.size, x.data.ptr, 0, made.data.ptr, made.size, of
        )
        return made

    def max_pool_indices(x: Native, made: Native, **options: Any) -> Native:
        if not takes(x, C_TYPES, x.shape[2:]):
            return table["max_pool_indices"](x, made, **options)
        return places(x, made.shape, windows_of(x.shape[2:], **options))

    def max_pool_gradient(g: Native, x: Native, made: Native, **options: Any) -> Native:
        if not takes(x, C_TYPES, x.shape[2:]) or g.dtype not in WIDE:
            return table["max_pool_gradient"](g, x, made, **options)
        g, of = dense(g, contiguous), windows_of(x.shape[2:], **options)
        where, back = places(x, made.shape, of), empty(x.shape, g.dtype)
        pointers = g.data.ptr, where.data.ptr, back.data.ptr
        launch(f"max_pool_gradient<{C_TYPES[g.dtype]}>", f"PPPq{_W}", back.size, *pointers, back.size, of)
        return back

    def max_pool_pick(x: Native, source: Native, made: Native, **options: Any) -> Native:
        if not takes(source, C_TYPES, x.shape[2:]) or x.dtype not in WIDE:
            return table["max_pool_pick"](x, source, made, **options)
        x, of = dense(x, contiguous), windows_of(x.shape[2:], **options)
        where, picked = places(source, made.shape, of), empty(made.shape, x.dtype)
        pointers = x.data.ptr, where.data.ptr, picked.data.ptr
        launch(f"max_pool_pick<{C_TYPES[x.dtype]}>", f"PPPq{_W}", picked.size, *pointers, picked.size, of)
        return picked

    def avg_pool(x: Native, *, count_padding: bool, divisor: Any, **options: Any) -> Native:
        if not takes(x, WIDE, x.shape[2:]):
            return table["avg_pool"](x, count_padding=count_padding, divisor=divisor, **options)
        x = dense(x, contiguous)
        made = empty((*x.shape[:2], *options["counts"]), x.dtype)
        rest = (
            x.data.ptr,
            made.data.ptr,
            made.size,
            count_padding,
            float(divisor or 0),
            windows_of(x.shape[2:], **options),
        )
        launch(f"avg_pool<{C_TYPES[x.dtype]}>", f"PPqid{_W}", made.size, *rest)
        return made

    def avg_pool_gradient(g: Native, *, shape: Any, count_padding: bool, divisor: Any, **options: Any) -> Native:
        if not takes(g, WIDE, shape[2:]):
            return table["avg_pool_gradient"](g, shape=shape, count_padding=count_padding, divisor=divisor, **options)
        g = dense(g, contiguous)
        back = empty(tuple(shape), g.dtype)
        rest = (
            g.data.ptr,
            back.data.ptr,
            back.size,
            count_padding,
            float(divisor or 0),
            windows_of(shape[2:], **options),
        )
        launch(f"avg_pool_gradient<{C_TYPES[g.dtype]}>", f"PPqid{_W}", back.size, *rest)
        return back

    return {function.__name__: function for function in (
        max_pool, max_pool_indices, max_pool_gradient, max_pool_pick, avg_pool, avg_pool_gradient,
    )}  # fmt: skip
