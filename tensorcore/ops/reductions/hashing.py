"""One number for all the bits of a tensor."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, UnsupportedDtype
from tensorcore.ops import rules, samples
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.reductions.extreme import filled
from tensorcore.ops.reductions.reduce import Dims, dims_of, over_dims, stored
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["hash_tensor"]


@over_dims(samples=samples.count, kind="reduction")
def hash_tensor(
    input: Tensor, dim: Dims = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None
) -> Tensor:
    """The exclusive or of the elements, or of those along ``dim``, as 64 bits: doubles, or signed integers.

    Args:
        mode: how elements are joined; 0, exclusive or, is the only one.
    """
    if type(input) is not Tensor:
        check_tensors("hash_tensor", input=input)
    if mode != 0:
        raise ArgumentError(f"hash_tensor: Unknown hash_tensor mode: {mode!r}, got it; pass 0")
    if input.dtype.is_complex:
        raise UnsupportedDtype(
            f'hash_tensor: "xor_sum" not implemented for {input.dtype.name}, got one; use view_as_real'
        )
    shape = tuple(input.native.shape)
    chosen = dims_of("hash_tensor", input, dim)
    if 0 in shape:
        filled("hash_tensor", input, chosen)
    dims = tuple(range(len(shape))) if chosen is None else chosen
    kind, device = dtypes.float64 if input.dtype.is_floating_point else dtypes.int64, input.device
    if kernel := device.kernels["xor_bits"]:
        native = input.native if input.dtype is kind else device.kernels["cast"](input.native, dtype=kind)
        made = new_tensor(kernel(native, dim=dims, keepdim=keepdim), dtypes.uint64, device)
        return stored("hash_tensor", made, out)
    wide: Any = input.detach().to(kind)
    rest = [i for i in range(len(shape)) if i not in dims]
    count = prod([shape[i] for i in dims])
    bits = wide.view(dtypes.uint64).permute(*dims, *rest).reshape(count, *[shape[i] for i in rest])
    while (size := bits.native.shape[0]) > 1:
        half = size // 2
        joined = bits[:half] ^ bits[half : 2 * half]
        if size % 2:
            joined[0] ^= bits[-1]
        bits = joined
    return stored("hash_tensor", bits.reshape(rules.reduced(shape, dims, keepdim)), out)
