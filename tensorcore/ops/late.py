"""Families of ops that an ordinary training loop does not call: imported when one of their names is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tensorcore.tensor import Tensor

__all__ = ["FUNCTIONS", "LATE", "METHODS", "find", "import_all", "settle"]

# For each family the names that are functions and methods, functions alone, methods alone, those of ``nn.functional`` alone,
# and those of other rooms of the facade alone (``fft``, ``linalg``, ``special``, ``signal.windows``).
LATE: dict[str, dict[str, str]] = {
    "layers.activation": dict(
        both="hardshrink prelu relu relu_",
        functions="celu celu_ selu selu_ threshold threshold_",
        layers="elu elu_ gelu glu hardsigmoid hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ logsigmoid mish relu6 silu "
        "softplus softshrink softsign tanhshrink",
    ),
    "layers.adaptive_pool": dict(
        functions="adaptive_avg_pool1d adaptive_max_pool1d",
        layers="adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d",
    ),
    "linalg.affine": dict(
        both="addbmm addmm addmv addr baddbmm",
        functions="bilinear",
        layers="linear",
        methods="addbmm_ addmm_ addmv_ addr_ baddbmm_",
    ),
    "shapes.arrange": dict(
        both="diag diag_embed diagflat flip fliplr flipud roll rot90 tril triu",
        methods="tril_ triu_",
    ),
    "layers.attention": dict(
        layers="scaled_dot_product_attention",
    ),
    "layers.bags": dict(
        layers="embedding_bag",
    ),
    "special.bessel": dict(
        both="i0",
        methods="i0_",
        rooms="airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 i0e i1 i1e modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
        "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0",
    ),
    "indexing.buckets": dict(
        functions="bucketize searchsorted",
    ),
    "reductions.calculus": dict(
        both="diff",
        functions="cumulative_trapezoid gradient trapezoid trapz",
    ),
    "linalg.cholesky": dict(
        both="cholesky_inverse cholesky_solve",
        rooms="cholesky cholesky_ex ldl_factor ldl_factor_ex ldl_solve",
    ),
    "shapes.combine": dict(
        both="is_neg is_nonzero is_same_size",
        functions="block_diag broadcast_shapes combinations constant_pad_nd fill isin range unravel_index vander",
    ),
    "linalg.contract": dict(
        functions="einsum tensordot",
    ),
    "layers.conv": dict(
        functions="conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    ),
    "shapes.copies": dict(
        functions="alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy "
        "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy "
        "view_as_complex_copy view_as_real_copy view_copy",
    ),
    "reductions.covariance": dict(
        both="corrcoef cov",
    ),
    "layers.ctc": dict(
        layers="ctc_loss",
    ),
    "linalg.determinant": dict(
        both="det logdet slogdet",
    ),
    "reductions.distance": dict(
        both="dist renorm",
        functions="cdist",
        methods="renorm_",
    ),
    "creation.draws": dict(
        functions="_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial poisson",
    ),
    "layers.dropout": dict(
        functions="alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ "
        "feature_dropout feature_dropout_",
        layers="dropout1d dropout2d dropout3d",
    ),
    "linalg.eigen": dict(
        rooms="eig eigh eigvals eigvalsh",
    ),
    "layers.embedding": dict(
        layers="embedding",
    ),
    "layers.entropy": dict(
        layers="binary_cross_entropy binary_cross_entropy_with_logits cross_entropy kl_div linear_cross_entropy nll_loss",
    ),
    "layers.fake_quantize": dict(
        functions="fake_quantize_per_channel_affine fake_quantize_per_tensor_affine",
    ),
    "signals.fourier": dict(
        rooms="fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn",
    ),
    "layers.fractional": dict(
        layers="fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices",
    ),
    "signals.frequencies": dict(
        rooms="fftfreq fftshift ifftshift rfftfreq",
    ),
    "special.gamma": dict(
        both="igamma igammac",
        methods="igamma_ igammac_",
        rooms="zeta",
    ),
    "layers.grid_sample": dict(
        functions="grid_sampler grid_sampler_2d grid_sampler_3d",
        layers="affine_grid grid_sample",
    ),
    "creation.grids": dict(
        functions="cartesian_prod eye linspace logspace meshgrid scalar_tensor tril_indices triu_indices",
        layers="one_hot",
    ),
    "layers.heads": dict(
        layers="multi_head_attention_forward",
    ),
    "reductions.segments": dict(
        functions="segment_reduce",
    ),
    "reductions.hashing": dict(
        both="hash_tensor",
    ),
    "reductions.histogram": dict(
        both="histc histogram",
        functions="histogramdd",
    ),
    "linalg.older": dict(
        both="cholesky lu lu_solve norm pinverse qr svd triangular_solve",
    ),
    "layers.implicit": dict(
        layers="log_softmax softmax softmin",
    ),
    "creation.legacy": dict(
        functions="BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
        "ShortTensor set_default_tensor_type typename",
        methods="new type",
    ),
    "layers.loss": dict(
        functions="cosine_similarity pairwise_distance",
        layers="cosine_embedding_loss gaussian_nll_loss hinge_embedding_loss huber_loss l1_loss margin_ranking_loss mse_loss "
        "poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss",
    ),
    "linalg.lowrank": dict(
        functions="lobpcg pca_lowrank svd_lowrank",
    ),
    "linalg.lu": dict(
        functions="lu_unpack",
        rooms="lu lu_factor lu_factor_ex lu_solve",
    ),
    "layers.margin": dict(
        functions="pdist",
        layers="multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss triplet_margin_with_distance_loss",
    ),
    "indexing.masked": dict(
        both="argwhere bincount masked_fill masked_scatter masked_select nonzero put take",
        methods="masked_fill_ masked_scatter_ put_",
    ),
    "linalg.matrix_function": dict(
        both="matrix_exp matrix_power",
        rooms="cross diagonal multi_dot vander vecdot",
    ),
    "linalg.matrix_norm": dict(
        functions="frobenius_norm nuclear_norm",
        rooms="cond matrix_norm matrix_rank norm",
    ),
    "layers.noisy": dict(
        functions="rrelu rrelu_",
        layers="gumbel_softmax",
    ),
    "layers.norm": dict(
        both="log_softmax softmax",
        functions="rms_norm",
        layers="batch_norm group_norm instance_norm layer_norm normalize softmin",
    ),
    "shapes.pad": dict(
        functions="channel_shuffle native_channel_shuffle pixel_shuffle pixel_unshuffle",
        layers="pad",
    ),
    "pointwise.parts": dict(
        both="frexp gcd lcm ldexp",
        methods="gcd_ lcm_ ldexp_",
    ),
    "special.polynomials": dict(
        rooms="chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h "
        "hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w",
    ),
    "layers.pool": dict(
        functions="avg_pool1d max_pool1d max_pool2d max_pool3d",
        layers="avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_unpool1d max_unpool2d max_unpool3d",
    ),
    "layers.pool_forms": dict(
        functions="max_pool1d_with_indices",
        layers="adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices "
        "local_response_norm max_pool2d_with_indices max_pool3d_with_indices",
    ),
    "layers.positional": dict(
        functions="batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss embedding group_norm "
        "hinge_embedding_loss instance_norm kl_div layer_norm margin_ranking_loss poisson_nll_loss triplet_margin_loss",
    ),
    "special.probability": dict(
        rooms="entr erfcx log_ndtr ndtr ndtri",
    ),
    "linalg.qr": dict(
        both="geqrf orgqr ormqr",
        rooms="householder_product qr",
    ),
    "reductions.quantiles": dict(
        both="nanquantile quantile",
    ),
    "layers.recurrent": dict(
        functions="gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    ),
    "layers.resample": dict(
        layers="interpolate upsample upsample_bilinear upsample_nearest",
    ),
    "shapes.resize": dict(
        both="nonzero_static resize_as_",
        functions="empty_permuted",
        methods="apply_ const_data_ptr dim_order fill_diagonal_ map2_ map_ resize_ to_dense",
    ),
    "reductions.scan": dict(
        both="cummax cummin cumprod cumsum logcumsumexp",
        methods="cumprod_ cumsum_",
    ),
    "indexing.scatter": dict(
        both="gather scatter scatter_add scatter_reduce take_along_dim",
        methods="scatter_ scatter_add_ scatter_reduce_",
    ),
    "indexing.slices": dict(
        both="index_add index_copy index_fill index_reduce index_select",
        methods="index_add_ index_copy_ index_fill_ index_reduce_",
    ),
    "linalg.solve": dict(
        both="inverse",
        rooms="inv inv_ex solve solve_ex tensorinv tensorsolve",
    ),
    "reductions.sort": dict(
        both="argsort kthvalue median mode msort nanmedian sort topk unique unique_consecutive",
    ),
    "sparse.making": dict(
        both="resize_as_sparse_ smm sspaddmm",
        functions="ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy row_indices_copy saddmm "
        "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm "
        "values_copy",
        methods="ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced row_indices sparse_dim sparse_mask "
        "sparse_resize_ sparse_resize_and_clear_ to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr "
        "values",
    ),
    "signals.spectrogram": dict(
        both="istft stft",
    ),
    "reductions.statistics": dict(
        both="std var",
        functions="std_mean var_mean",
        rooms="vector_norm",
    ),
    "linalg.svd": dict(
        rooms="lstsq pinv svd svdvals",
    ),
    "signals.tapers": dict(
        functions="bartlett_window blackman_window hamming_window hann_window kaiser_window",
        rooms="bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser nuttall",
    ),
    "linalg.triangular": dict(
        rooms="solve_triangular",
    ),
    "layers.windows": dict(
        functions="conv_tbc",
        layers="fold unfold",
    ),
}  # fmt: skip

FUNCTIONS = {
    name: family
    for family, names in LATE.items()
    for name in f"{names.get('both', '')} {names.get('functions', '')}".split()
}
METHODS = {
    name: family
    for family, names in LATE.items()
    for name in f"{names.get('both', '')} {names.get('methods', '')}".split()
}


def find(name: str) -> Any:
    """The function of that name, its family imported; AttributeError where there is none."""
    family = FUNCTIONS.get(name)
    if family is None:
        raise AttributeError(name)
    return getattr(_import(family), name)


def settle(method: str) -> None:
    """Import the family that the method of that name comes from, if it is a late one."""
    if method in METHODS:
        _import(METHODS[method])


def import_all() -> None:
    """Import every family, for those who look at all ops."""
    for family in LATE:
        _import(family)


def _import(family: str) -> Any:
    return import_module(f"tensorcore.ops.{family}")


def _method(name: str, family: str) -> Callable[..., Any]:
    """Stands on Tensor until the family puts its own method there."""

    def call(self: Tensor, *arguments: Any, **options: Any) -> Any:
        _import(family)
        return getattr(self, name)(*arguments, **options)

    call.__name__ = call.__qualname__ = name
    return call


def _construct(cls: Any, *arguments: Any, **options: Any) -> Any:
    """``Tensor(2, 3)``; tensors that ops make come from ``object.__new__``."""
    return _import("creation.legacy").construct(cls, *arguments, **options)


for _name, _family in METHODS.items():
    setattr(Tensor, _name, _method(_name, _family))
Tensor.__new__ = _construct  # type: ignore[assignment, method-assign]
