"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import (
    activation,
    affine,
    arithmetic,
    arrange,
    choice,
    compare,
    complex,
    contract,
    conv,
    convert,
    create,
    dropout,
    embedding,
    entropy,
    explog,
    extreme,
    grids,
    index,
    join,
    linalg,
    loss,
    masked,
    norm,
    pad,
    pool,
    random,
    reduce,
    replace,
    rounding,
    scan,
    scatter,
    shape,
    sort,
    statistics,
    trigonometry,
    views_part,
)  # fmt: skip

__all__ = ["FAMILIES", "METHODS"]

FAMILIES = (
    activation, affine, arithmetic, arrange, choice, compare, complex, contract, conv, convert, create, dropout,
    embedding, entropy, explog, extreme, grids, index, join, linalg, loss, masked, norm, pad, pool, random,
    reduce, replace, rounding, scan, scatter, shape, sort, statistics, trigonometry, views_part,
)  # fmt: skip

# Methods of Tensor that PyTorch has as functions too.
METHODS = (
    "abs_", "acos_", "acosh_", "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_",
    "asin_", "asinh_", "atan_", "atanh_", "ceil_", "clamp_", "clamp_max_", "clamp_min_", "clip_",
    "conj_physical_", "cos_", "cosh_", "deg2rad_", "detach", "detach_", "erf_", "erfc_", "exp2_", "exp_",
    "expm1_", "fill_", "fix_", "floor_", "frac_", "get_device", "is_inference", "is_signed", "log10_", "log1p_",
    "log2_", "log_", "logit_", "nan_to_num_", "neg_", "negative_", "rad2deg_", "reciprocal_", "round_",
    "rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_", "trunc_", "xlogy_",
    "zero_",
)  # fmt: skip
