"""Which ops autocast casts the inputs of, and to what: data, by the names of the ops.

The categories are those of PyTorch's autocast op reference: ``lower_precision`` (products), ``float32`` (where a narrow
dtype loses too much), ``float32_result`` (the same through the op's ``dtype``), ``promote`` (several inputs in the widest
of their dtypes), ``banned``, and ``as_is`` for every op that stands in none of the lists. ``shielded`` ones are as they
are too, and so is what they call: PyTorch has one kernel for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["ACCELERATOR", "CPU", "INHERITED", "category"]

Category = str | Callable[..., str]


def _pad_mode(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> str:
    """Reflections of two dims at most, and replications; a constant border changes no value."""
    return "float32" if mode == "replicate" or (mode == "reflect" and len(pad) <= 4) else "as_is"


def _interpolation(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", *_: Any, **__: Any
) -> str:
    """All modes but the one that is pooling."""
    return "as_is" if mode == "area" else "float32"


def _resampling(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", *_: Any, **__: Any
) -> str:
    """One kernel each in PyTorch, but for the mode that is pooling."""
    return "as_is" if mode == "area" else "shielded"


def _across_channels(input: Any, *_: Any, **__: Any) -> str:
    """Made of ``avg_pool3d`` where there are two dims behind the channels, or more."""
    return "float32" if input.ndim > 3 else "as_is"


def _inner(input: Any, other: Any, **_: Any) -> str:
    """A product of vectors is a ``dot``, all else is made of ``mm``."""
    return "shielded" if input.ndim == other.ndim == 1 else "as_is"


def _table(depends: Mapping[str, Category], **lists: str) -> dict[str, Category]:
    return {**{name: kind for kind, names in lists.items() for name in names.split()}, **depends}


_LOSSES = (
    "cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss "
    "multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss "
    "triplet_margin_loss binary_cross_entropy_with_logits"
)
_PRODUCTS = (
    "addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
    "linalg_vecdot linear matmul mm prelu scaled_dot_product_attention"
)

# Without a cast of their own for CPUs in PyTorch, where they are made of ops that have one.
INHERITED = frozenset(["inner", "interpolate", "local_response_norm", "lp_pool3d", "max_unpool1d"])

CPU = _table(
    {
        "pad": _pad_mode,
        "inner": _inner,
        "interpolate": _resampling,
        "local_response_norm": _across_channels,
        **dict.fromkeys(("lp_pool3d", "max_unpool1d"), "float32"),
    },
    lower_precision=_PRODUCTS,
    float32=f"{_LOSSES} adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky "
    "cholesky_inverse cholesky_solve cross_entropy ctc_loss fake_quantize_per_tensor_affine fft fft2 fftn "
    "hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn "
    "fractional_max_pool2d fractional_max_pool3d geqrf grid_sample grid_sampler grid_sampler_2d grid_sampler_3d inverse "
    "linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh "
    "linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve "
    "linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve lu lu_solve max_pool3d max_unpool2d max_unpool3d "
    "multilabel_margin_loss_forward nanquantile orgqr ormqr pinverse polar prod qr quantile stft svd trace "
    "triangular_solve view_as_complex",
    promote="cat index_copy stack",
    shielded="adaptive_avg_pool1d adaptive_avg_pool2d addmv addr bilinear cosine_similarity dot layer_norm mv norm outer "
    "pairwise_distance vdot",
)

ACCELERATOR = _table(
    {"interpolate": _interpolation, "upsample": _interpolation},
    lower_precision=f"{_PRODUCTS} addmv addr chain_matmul einsum gru_cell linalg_multi_dot lstm_cell mv rnn_relu_cell "
    "rnn_tanh_cell",
    float32=f"{_LOSSES} acos asin cdist cosh cosine_similarity dist erfinv exp expm1 frobenius_norm group_norm layer_norm log log10 "
    "log1p log2 logsumexp native_layer_norm nuclear_norm pdist pow reciprocal renorm rms_norm rsqrt sinh softplus tan",
    float32_result="cumprod cumsum linalg_matrix_norm linalg_vector_norm log_softmax norm prod softmax sum",
    promote="addcdiv addcmul atan2 bilinear cross dot grid_sample grid_sampler index_put scatter_add tensordot vdot",
    banned="binary_cross_entropy",
    shielded="adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d celu elu embedding_bag inner log_sigmoid logit mish selu "
    "xlog1py xlogy",
)


def category(name: str, device_type: str, *args: Any, **options: Any) -> str:
    """What autocast does with the inputs of an op; for some it depends on the arguments of the call.

    There are two lists, that of CPUs and that of all other devices.
    """
    found = (CPU if device_type == "cpu" else ACCELERATOR).get(name, "as_is")
    return found if isinstance(found, str) else found(*args, **options)
