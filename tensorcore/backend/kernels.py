"""What is known about each kernel, in one table: whether a backend needs it, and what it answers with, without a value.

A kernel is entered here by a name in the row of its kind, and written where the others of its family are: in
``backend/xp/`` for NumPy-like libraries, in a plugin for a device of its own. Whatever asks about kernels (shapes without
values, programs that are written down, examples side by side, shards, conformance, documentation) reads this table.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from tensorcore import dtypes
from tensorcore.backend import layouts as lies
from tensorcore.backend import shapes as like
from tensorcore.backend import shapes_linalg as linalg
from tensorcore.backend.layouts import Layout

__all__ = [
    "EAGER",
    "KERNELS",
    "LAYOUTS",
    "NEEDS_VALUES",
    "OPTIONAL",
    "POINTWISE",
    "RULES",
    "STOPPING",
    "WRITES",
    "Facts",
]


class Facts(NamedTuple):
    """What is known about one kernel.

    Attributes:
        shape: the rule of ``shapes.py`` that gives the results' shapes; None where they depend on values, where the kernel
            writes into its first array, or is for calls one by one alone.
        dtype: of the result where it is not the first array's: a dtype, ``option`` (the option ``dtype``, where it is
            not None), ``real`` or ``complex`` (the first's with that kind), ``last`` (the last array's), or a tuple of
            these for several results.
        columns: the positions of the results in which matrices lie column after column (0 where there is one result).
        layout: where results do not always lie in row-major order, the rule of ``layouts.py`` for their strides.
        each: elementwise: a result's element comes of the arrays' elements in its place.
        optional: where it is missing, the op that asks for it is computed in other ops, its gradient too.
        eager: optional, and for calls one by one: programs that are written down see the other ops instead, which they
            join to their neighbours.
        writes: into its first array, and answers with it.
        stops: values may stop it with an error: an index out of range, a matrix that is singular.
        by_value: the shape of what it answers with depends on values.
    """

    shape: Callable[..., Any] | None = None
    dtype: Any = None
    columns: tuple[int, ...] = ()
    layout: Layout | None = None
    each: bool = False
    optional: bool = False
    eager: bool = False
    writes: bool = False
    stops: bool = False
    by_value: bool = False


def _of(names: str, *known: Any, **more: Any) -> dict[str, Facts]:
    return dict.fromkeys(names.split(), Facts(*known, **more))


def _pointwise(names: str, shape: Any = like.broadcast, dtype: Any = None, **more: Any) -> dict[str, Facts]:
    return _of(names, shape, dtype, layout=lies.aligned, each=True, **more)


def _optional(names: str, *known: Any, **more: Any) -> dict[str, Facts]:
    return _of(names, *known, optional=True, **more)


def _eager(names: str, **more: Any) -> dict[str, Facts]:
    return _optional(names, eager=True, **more)


KERNELS: dict[str, Facts] = {
    # Elementwise, of numbers and arrays that broadcast
    **_pointwise(
        "acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min conj_physical copysign cos cosh digamma div erf "
        "erfc erfinv exp exp2 expm1 floor floor_divide fmax fmin fmod hypot lgamma log log10 log1p log2 logaddexp "
        "logaddexp2 maximum minimum mul neg nextafter polygamma positive pow reciprocal relu remainder round rsqrt sgn "
        "sigmoid sign sin sinh sqrt square sub tan tanh trigamma trunc trunc_divide"
    ),
    **_pointwise(
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u "
        "chebyshev_polynomial_v chebyshev_polynomial_w entr erfcx gcd gelu hermite_polynomial_h hermite_polynomial_he i0 "
        "i0e i1 i1e igamma igammac laguerre_polynomial_l lcm leaky_relu legendre_polynomial_p log_ndtr modified_bessel_i0 "
        "modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri prelu rational scaled_modified_bessel_k0 "
        "scaled_modified_bessel_k1 sinc spherical_bessel_j0 shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
        "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w silu xlog1py xlogy zeta",
        optional=True,
    ),
    **_pointwise("abs angle", dtype="real"),
    **_pointwise("complex", dtype="complex"),
    **_pointwise("eq ge gt isfinite isinf isnan le logical_and logical_not logical_or logical_xor lt ne signbit",
                 dtype=dtypes.bool_),
    **_pointwise("where", lambda condition, x, y: like.broadcast(condition, x, y), "last"),
    **_pointwise("cast", like.same, "option"),
    **_of("masked_fill", like.broadcast, layout=lies.row_major),
    # Activations, and their slopes times a gradient
    **_pointwise(
        "elu selu celu softplus mish log_sigmoid exponential_unit_backward softplus_backward mish_backward "
        "log_sigmoid_backward gelu_backward silu_backward",
        like.same, optional=True,
    ),
    **_eager("hardsigmoid_backward hardswish_backward leaky_relu_backward relu_backward sigmoid_backward tanh_backward"),
    **_eager(
        "add_scaled addcdiv addcmul frac frexp hardshrink hardsigmoid hardswish heaviside ldexp lerp logit nan_to_num softshrink "
        "threshold"
    ),
    # New arrays, copies, and other orders of elements
    **_of("full", like.full, "option"),
    **_of("arange", like.arange, "option"),
    **_of("linspace", lambda start, end, steps, **options: (steps,), "option"),
    **_of("eye", lambda rows, columns, **options: (rows, columns), "option"),
    **_of("triangle_indices", like.triangle_indices, "option"),
    **_of("clone", like.same, layout=lies.aligned),
    **_of("contiguous shared tri shifted ties", like.same),
    **_of("unindex undiagonal unwindows put_diagonal", like.given),
    **_of("regather", lambda x, *, own, wanted: tuple(wanted[0])),
    **_of("flip", like.same, layout=lies.aligned),
    **_of("roll", like.same, layout=lies.unless_flat),
    **_of("rot90", like.rot90, layout=lies.turned_layout),
    **_of("cat", lambda xs, *, dim, shape, out=None: shape, layout=lies.joined),
    **_of("stack", lambda xs, *, dim, out=None: (*xs[0][:dim], len(xs), *xs[0][dim:]), layout=lies.stacked),
    **_of("repeat", like.repeat),
    **_of("repeat_interleave", like.repeat_interleave),
    **_of("take_diagonal", like.diagonal),
    **_of("constant_pad", like.given, layout=lies.channels_last),
    **_optional("edge_pad", like.given, layout=lies.channels_last),
    **_optional("spread edge_pad_gradient", like.given),
    **_optional("renorm", like.same),
    **_optional("blend", lambda x, index, weights, *, dim: like.resized(x, dim, index[1])),
    **_optional("blend_gradient", lambda x, index, weights, *, dim, size: like.resized(x, dim, size)),
    **_eager("block_diag"),
    # Indices
    **_of("index_put index_fill", like.same, layout=lies.aligned, stops=True),
    **_of("scatter scatter_reduce index_add index_copy put", like.same, stops=True),
    **_of("masked_scatter", like.same),
    **_of("index_tensors", like.index_tensors, stops=True),
    **_of("gather", lambda x, index, *, dim: index, stops=True),
    **_of("index_select", lambda x, index, *, dim: like.resized(x, dim, prod(index)), stops=True),
    **_of("take", lambda x, index: index, stops=True),
    **_of("pick", like.pick, stops=True),
    **_of("put_picked", lambda x, at, *, dim, size, unique=True: like.resized(x, dim, size), stops=True),
    **_of("take_rows", lambda x, *, dim, index, size: like.resized(x, dim, len(index)), layout=lies.channels_last),
    **_of("add_rows", lambda x, *, dim, index, size: like.resized(x, dim, size)),
    **_of("embedding embedding_pick", like.embedding, stops=True),
    **_optional("bag", like.bag, stops=True),
    **_of("embedding_gradient", like.embedding_gradient, stops=True),
    **_of("searchsorted", lambda x, values, **options: values, dtypes.int64),
    # Reductions, and what goes along a dim
    **_of("sum prod", like.reduced, "option", layout=lies.row_major),
    **_of("logsumexp mean nansum", like.reduced, layout=lies.row_major),
    **_of("amax amin", like.extreme, layout=lies.row_major),
    **_of("norm var", like.reduced, "real", layout=lies.row_major),
    **_of("all any", like.reduced, dtypes.bool_, layout=lies.row_major),
    **_of("argmax argmin count_nonzero", like.reduced, dtypes.int64),
    **_of("var_mean", like.reduced_twice, ("real", None)),
    **_of("max_dim min_dim kthvalue median_dim mode_dim", like.kept_dim, (None, dtypes.int64)),
    **_of("cumsum cumprod", like.same, "option"),
    **_of("cumsum_back logcumsumexp", like.same),
    **_of("cummax cummin", like.twice, (None, dtypes.int64)),
    **_of("sort", like.twice, (None, dtypes.int64), layout=lies.aligned),
    **_of("topk", like.topk, (None, dtypes.int64)),
    **_optional("softmax log_softmax", like.same),
    **_optional("softmax_backward log_softmax_backward", like.same, layout=lies.aligned),
    **_eager("addr equal histc histogram isin polar segment_reduce xor_bits"),
    **_optional("pdist", lambda x, *, p: (x[0] * (x[0] - 1) // 2,)),
    **_optional("cdist", lambda x, y, *, p: (*x[:-1], y[-2])),
    **_optional("distances_gradient", lambda g, x, y, out, *, p: x),
    **_optional("cosine_similarity pairwise_distance", lambda x, y, **options: x[:-1]),
    # Matrices
    **_of("matmul", like.matmul),
    **_optional("matmul_nt", lambda a, b: like.matmul(a, like.turned(b))),
    **_optional("matmul_tn", lambda a, b: like.matmul(like.turned(a), b)),
    **_optional("linear", like.linear),
    **_eager("linear_int8"),
    **_optional("addmm", lambda input, x, y, **options: like.matmul(x, y)),
    **_of("cross", lambda x, y, *, dim: like.broadcast(x, y)),
    **_of("lu_factor ldl_factor", linalg.lu_factor, (None, dtypes.int32, dtypes.int32), (0,), stops=True),
    **_of("ldl_solve", linalg.lu_solve, None, (0,), stops=True),
    **_optional("lu_solve", linalg.lu_solve, None, (0,), stops=True),
    **_of("solve_triangular", linalg.solved, None, (0,), stops=True),
    **_optional("unpack_pivots", lambda pivots, *, rows: (*pivots[:-1], rows), dtypes.int64, stops=True),
    **_of("cholesky", linalg.with_answer, (None, dtypes.int32), (0,), stops=True),
    **_optional("inverse cholesky_inverse", linalg.with_answer, (None, dtypes.int32), (0,), stops=True),
    **_of("geqrf", lambda x: [x, (*x[:-2], min(x[-2:]))], None, (0,), stops=True),
    **_optional("householder_product", like.same, None, (0,), stops=True),
    **_optional("ormqr", lambda a, tau, c, **options: c, None, (0,), stops=True),
    **_of("svd", linalg.svd, ("real", dtypes.int32, None, None), (2, 3), stops=True),
    **_of("eigh", linalg.eigen, ("real", dtypes.int32, None), (2,), stops=True),
    **_of("eig", linalg.eigen, ("complex", dtypes.int32, "complex"), (2,), stops=True),
    **_optional("lstsq", linalg.lstsq, (None, dtypes.int64, "real", dtypes.int32), (0,), stops=True),
    **_optional("determinant", lambda lu, pivots: lu[:-2]),
    **_optional("log_determinant", lambda lu, pivots: [lu[:-2], lu[:-2]], (None, "real")),
    **_eager("qr qr_triangle unpack_lu"),
    **_optional("sparse_matmul", like.sparse_matmul, "last"),
    **_optional("line_starts", lambda line, *, count: (count + 1,)),
    **_optional("sparse_softmax", lambda values, line, **options: values),
    **_optional("fft_c2c", like.same, "complex"),
    **_optional("fft_r2c", lambda x, *, dims, **options: like.resized(x, dims[-1], x[dims[-1]] // 2 + 1), "complex"),
    **_optional("fft_c2r", lambda x, *, dims, size, **options: like.resized(x, dims[-1], size), "real"),
    # Windows
    **_optional("conv", like.conv, layout=lies.with_weight),
    **_optional("conv_input_gradient", like.given, layout=lies.with_weight),
    **_optional("conv_weight_gradient", like.given),
    **_of("unfold", like.unfold),
    **_of("fold avg_pool_gradient adaptive_avg_pool_gradient", like.given),
    **_of("max_pool", like.windows, layout=lies.channels_last),
    **_of("avg_pool adaptive_avg_pool", like.windows, layout=lies.pooled),
    **_of("max_pool_gradient", lambda g, x, made, **options: x),
    **_of("max_pool_pick", lambda x, source, made, **options: made),
    **_of("max_pool_indices", lambda x, made, **options: made, dtypes.int64, layout=lies.channels_last),
    **_optional("adaptive_max", like.windows_twice, (None, dtypes.int64), layout=lies.channels_last),
    **_optional("fractional_max", like.windows_twice, (None, dtypes.int64)),
    **_of("max_unpool", like.given, layout=lies.channels_last, stops=True),
    **_of("max_unpool_gradient", lambda g, indices: indices),
    # Layers and losses
    **_optional("standardize", like.standardize, layout=lies.normalised),
    **_optional("standardize_by", like.same, layout=lies.channels_last),
    **_optional("mse_loss smooth_l1_loss soft_margin_loss binary_cross_entropy", like.lost, layout=lies.aligned),
    **_optional("binary_cross_entropy_with_logits", like.lost, layout=lies.after_target),
    **_optional("multi_margin_loss multilabel_margin_loss", like.lost_by_row, stops=True),
    **_optional("nll_loss", like.nll_loss, stops=True),
    **_optional("cross_entropy", like.cross_entropy, stops=True),
    **_optional("ctc_loss", lambda x, labels, skips, **options: [x[1:2], (x[0], *labels)]),
    **_optional("grid_sample", like.grid_sample),
    **_optional("attention", like.attention),
    **_optional("lstm_steps", like.lstm_steps),
    **_optional("gru_steps", like.gru_steps),
    **_optional("rnn_steps", like.rnn_steps),
    **_optional(
        "standardize_backward mse_loss_backward smooth_l1_loss_backward soft_margin_loss_backward binary_cross_entropy_backward "
        "binary_cross_entropy_with_logits_backward nll_loss_backward "
        "cross_entropy_backward attention_backward ctc_loss_backward grid_sample_backward lstm_steps_backward gru_steps_backward "
        "multi_margin_loss_backward multilabel_margin_loss_backward rnn_steps_backward sparse_matmul_backward "
        "sparse_softmax_backward",
        like.gradients,
    ),
    # Writes, and values that decide what comes
    **_of("copy fill", writes=True),
    **_eager("compare_over keep_triangle", writes=True),
    **_optional("sgd_step adam_step step track_statistics", writes=True),
    **_optional("distinct norms sparse_coalesce sparse_product unscale", by_value=True),
    **_of("bincount count_true highest lowest masked_select nonzero nonzero_by_dim unique unique_consecutive",
          by_value=True),
}  # fmt: skip

RULES = {name: one for name, one in KERNELS.items() if one.shape is not None}
LAYOUTS: dict[str, Layout] = {name: one.layout for name, one in KERNELS.items() if one.layout is not None}
POINTWISE = frozenset([name for name, one in KERNELS.items() if one.each])
OPTIONAL = frozenset([name for name, one in KERNELS.items() if one.optional])
EAGER = frozenset([name for name, one in KERNELS.items() if one.eager])
STOPPING = frozenset([name for name, one in KERNELS.items() if one.stops])
WRITES = frozenset([name for name, one in KERNELS.items() if one.writes])
NEEDS_VALUES = frozenset([name for name, one in KERNELS.items() if one.by_value])
