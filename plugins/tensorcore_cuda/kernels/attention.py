"""Scaled dot product attention by cuDNN, for the half types; other calls go to the kernels behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorcore.plugin import dtypes
from tensorcore_cuda.kernels.cudnn import ALIGNMENT, Cudnn
from tensorcore_cuda.kernels.launch import Driver
from tensorcore_cuda.kernels.rows import dense

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

_HALF = (np.dtype(np.float16), dtypes.bfloat16.numpy)
_FLOAT32 = np.dtype(np.float32)


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """Both ways."""
    contiguous, empty = table["contiguous"], driver.empty

    def takes(q: Native, k: Native, v: Native, mask: Any) -> bool:
        return (
            mask is None
            and q.dtype in _HALF
            and q.dtype == k.dtype == v.dtype
            and q.ndim == k.ndim == v.ndim == 4
            and q.shape[:2] == k.shape[:2] == v.shape[:2]
            and all([one.size and one.shape[3] % 8 == 0 and one.strides[3] == 2 for one in (q, k, v)])
            and not any([step % ALIGNMENT for one in (q, k, v) for step in (one.data.ptr, *one.strides[:3])])
        )

    def attention(query: Native, key: Native, value: Native, mask: Any, *, causal: bool, scale: float) -> Any:
        library = Cudnn.of(driver) if takes(query, key, value, mask) else None
        if library is not None:
            made, sums = empty((*query.shape[:3], value.shape[3]), query.dtype), empty(query.shape[:3], _FLOAT32)
            if library.attention(query, key, value, made, sums, causal=causal, scale=scale):
                return made, sums, made
        return table["attention"](query, key, value, mask, causal=causal, scale=scale)

    def attention_backward(
        g: Native, query: Native, key: Native, value: Native, mask: Any, sums: Native, *rest: Native, needs: Any,
        causal: bool, scale: float,
    ) -> Any:  # fmt: skip
        library = Cudnn.of(driver) if rest else None
        if library is not None:
            made = [empty(one.shape, one.dtype) for one in (query, key, value)]
            given = query, key, value, rest[0], dense(g, contiguous, ALIGNMENT), sums
            if library.attention_gradient([*given, *made], causal=causal, scale=scale):
                return *[one if need else None for one, need in zip(made, needs, strict=False)], None
        return table["attention_backward"](g, query, key, value, mask, sums, needs=needs, causal=causal, scale=scale)

    return {"attention": attention, "attention_backward": attention_backward}
