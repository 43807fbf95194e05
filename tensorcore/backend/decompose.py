"""What a backend may leave out: kernels that ops do without, and kernels that are made of other kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend

__all__ = ["OPTIONAL", "VIEWED", "decomposed", "viewed"]

Native = Any
Kernel = Callable[..., Any]

# The views that ``as_strided`` of a backend is enough for.
VIEWED = frozenset(["as_strided", "diagonal", "expand", "index", "permute", "unsqueeze", "view", "windows"])

# Where one of these is missing, the op that asks for it is computed in other ops, its gradient too.
OPTIONAL = frozenset([
    "adam_step", "addmm", "attention", "attention_backward", "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits_backward", "celu", "conv", "conv_input_gradient", "conv_weight_gradient",
    "cross_entropy", "cross_entropy_backward", "ctc_loss", "ctc_loss_backward", "elu", "exponential_unit_backward",
    "fft_c2c", "fft_c2r", "fft_r2c", "gcd", "gelu", "gelu_backward", "gru_steps", "gru_steps_backward",
    "householder_product", "inverse", "lcm", "leaky_relu", "linear", "log_sigmoid", "log_sigmoid_backward",
    "log_softmax", "log_softmax_backward", "lstm_steps", "lstm_steps_backward", "lstsq", "lu_solve", "matmul_nt",
    "matmul_tn", "mish", "mish_backward", "mse_loss", "mse_loss_backward", "nll_loss", "nll_loss_backward", "ormqr",
    "rational", "rnn_steps", "rnn_steps_backward", "selu", "sgd_step", "silu", "silu_backward", "softmax",
    "softmax_backward", "softplus", "softplus_backward", "sparse_matmul", "sparse_matmul_backward", "spread",
    "standardize", "standardize_backward", "standardize_by", "step", "track_statistics", "unpack_pivots", "unscale",
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
