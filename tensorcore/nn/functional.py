"""The functions behind the layers, each imported from its family of ops when a program first names it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_FAMILIES = {
    "layers.activation": "celu celu_ elu elu_ gelu glu hardshrink hardsigmoid hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ "
    "logsigmoid mish prelu relu relu6 relu_ selu selu_ silu softplus softshrink softsign tanhshrink threshold threshold_",
    "layers.adaptive_pool": "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d",
    "linalg.affine": "bilinear linear",
    "layers.attention": "scaled_dot_product_attention",
    "layers.bags": "embedding_bag",
    "layers.conv": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    "layers.ctc": "ctc_loss",
    "layers.dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
    "layers.embedding": "embedding",
    "layers.entropy": "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy kl_div linear_cross_entropy nll_loss",
    "pointwise.explog": "sigmoid",
    "layers.fractional": "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
    "fractional_max_pool3d_with_indices",
    "layers.grid_sample": "affine_grid grid_sample",
    "creation.grids": "one_hot",
    "layers.heads": "multi_head_attention_forward",
    "layers.implicit": "log_softmax softmax softmin",
    "layers.loss": "cosine_embedding_loss cosine_similarity gaussian_nll_loss hinge_embedding_loss huber_loss l1_loss "
    "margin_ranking_loss mse_loss pairwise_distance poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss",
    "layers.margin": "multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss pdist triplet_margin_with_distance_loss",
    "layers.noisy": "gumbel_softmax rrelu rrelu_",
    "layers.norm": "batch_norm group_norm instance_norm layer_norm normalize rms_norm",
    "shapes.pad": "channel_shuffle native_channel_shuffle pad pixel_shuffle pixel_unshuffle",
    "layers.pool": "avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool2d max_pool3d "
    "max_unpool1d max_unpool2d max_unpool3d",
    "layers.pool_forms": "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices "
    "local_response_norm max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices",
    "layers.resample": "interpolate upsample upsample_bilinear upsample_nearest",
    "pointwise.trigonometry": "tanh",
    "layers.windows": "conv_tbc fold unfold",
}  # fmt: skip
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names.split()}

__all__ = sorted(_FAMILY_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _FAMILY_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"tensorcore.ops.{_FAMILY_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
