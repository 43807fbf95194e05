"""The ops, one family a file. Importing this package installs them on Tensor; rare families wait in ``late.py``."""

from __future__ import annotations

from tensorcore.ops import late
from tensorcore.ops.creation import create, random, random_fill
from tensorcore.ops.indexing import index
from tensorcore.ops.linalg import products as linalg
from tensorcore.ops.pointwise import added, arithmetic, choice, compare, complex, explog, rounding, trigonometry
from tensorcore.ops.reductions import extreme, reduce
from tensorcore.ops.shapes import convert, flat, join, order, replace, shape, split, views_part

__all__ = ["FAMILIES", "METHODS", "late"]

FAMILIES = (
    added, arithmetic, choice, compare, complex, convert, create, explog, extreme, flat, index, join, linalg, order, random,
    random_fill, reduce, replace, rounding, shape, split, trigonometry, views_part,
)  # fmt: skip

# Methods of Tensor that PyTorch has as functions too.
METHODS = frozenset([
    "abs_", "acos_", "acosh_", "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_",
    "asin_", "asinh_", "atan_", "atanh_", "ceil_", "clamp_", "clamp_max_", "clamp_min_", "clip_",
    "conj_physical_", "cos_", "cosh_", "deg2rad_", "detach", "detach_", "erf_", "erfc_", "exp2_", "exp_",
    "expm1_", "fill_", "fix_", "floor_", "frac_", "gcd_", "get_device", "i0_", "is_inference",
    "is_signed", "lcm_", "ldexp_", "log10_", "log1p_",
    "log2_", "log_", "logit_", "nan_to_num_", "neg_", "negative_", "rad2deg_", "reciprocal_", "relu", "round_",
    "rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_", "trunc_", "xlogy_",
    "zero_",
])  # fmt: skip
