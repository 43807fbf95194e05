"""What a backend may leave out: kernels that ops do without, and kernels that are made of other kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend

__all__ = ["EAGER", "OPTIONAL", "VIEWED", "decomposed", "viewed"]

Native = Any
Kernel = Callable[..., Any]

# The views that ``as_strided`` of a backend is enough for.
VIEWED = frozenset(["as_strided", "diagonal", "expand", "index", "permute", "unsqueeze", "view", "windows"])

# Kernels for calls one by one. Programs that are written down see the other ops instead, which they join to their neighbours.
EAGER = frozenset([
    "addcdiv", "addcmul", "block_diag", "equal", "frac", "frexp", "hardshrink", "hardsigmoid", "hardswish", "heaviside", "histc",
    "isin", "lerp", "logit", "nan_to_num", "pdist", "softshrink", "xor_bits",
])  # fmt: skip

# Where one of these is missing, the op that asks for it is computed in other ops, its gradient too.
OPTIONAL = EAGER | frozenset([
    "adam_step", "addmm", "airy_ai", "attention", "attention_backward", "bessel_j0", "bessel_j1", "bessel_y0",
    "bessel_y1", "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward", "celu",
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "conv",
    "conv_input_gradient", "conv_weight_gradient", "cross_entropy", "cross_entropy_backward", "ctc_loss",
    "ctc_loss_backward", "elu", "entr", "erfcx", "exponential_unit_backward", "fft_c2c", "fft_c2r", "fft_r2c",
    "gcd", "gelu", "gelu_backward", "gru_steps", "gru_steps_backward", "hermite_polynomial_h",
    "hermite_polynomial_he", "householder_product", "i0", "i0e", "i1", "i1e", "igamma", "igammac", "inverse",
    "laguerre_polynomial_l", "lcm", "leaky_relu", "legendre_polynomial_p", "linear", "log_ndtr", "log_sigmoid",
    "log_sigmoid_backward", "log_softmax", "log_softmax_backward", "lstm_steps", "lstm_steps_backward", "lstsq",
    "lu_solve", "matmul_nt", "matmul_tn", "mish", "mish_backward", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "mse_loss", "mse_loss_backward", "ndtr", "ndtri", "nll_loss",
    "nll_loss_backward", "norms", "ormqr", "rational", "rnn_steps", "rnn_steps_backward", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "selu", "sgd_step", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "silu",
    "silu_backward", "smooth_l1_loss", "smooth_l1_loss_backward", "softmax", "softmax_backward", "softplus", "softplus_backward", "sparse_matmul",
    "sparse_matmul_backward", "spread", "standardize", "standardize_backward", "standardize_by", "step",
    "track_statistics", "unpack_pivots", "unscale", "xlog1py", "xlogy", "zeta",
])  # fmt: skip


def decomposed(name: str, backend: Backend) -> Kernel | None:
    """The kernel ``name`` made of others of the backend; None where there is no way to make it.

    Each takes and answers what the backend's own would.
    """
    from tensorcore.backend.composed import composed

    return composed(name, backend)


def viewed(name: str, backend: Backend) -> Kernel | None:
    """The kernel of a view of the same dtype, made of ``as_strided``; None where it is no such view."""
    if name not in VIEWED or not backend.capabilities.views:
        return None
    from tensorcore.backend.shapes import VIEWS

    place = VIEWS[name].place

    def kernel(x: Native, **options: Any) -> Native | None:
        found = place(tuple(x.shape), *backend.layout(x), **options)
        return None if found is None else backend.as_strided(x, *found)

    return kernel
