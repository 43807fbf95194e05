"""Every layer by construction: how it is made, and what it is called with. See test_layers.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["LOSSES", "ROWS", "Row", "numbers"]


class Row(NamedTuple):
    """One construction.

    Attributes:
        make: given a library's ``nn``, the layer.
        inputs: the arguments: a shape stands for an array of normal numbers that asks for gradients, a list for a tuple
            of arguments, an array or anything else for itself.
        kwargs: likewise, by name.
        call: how the layer is called, given the library, the layer and its arguments, where not simply so.
    """

    make: Any
    inputs: tuple[Any, ...]
    kwargs: dict[str, Any] = {}  # noqa: RUF012
    call: Any = None


def numbers(*shape: int, seed: int = 8) -> np.ndarray:
    """Normal numbers in single precision."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _packed(lib: Any, layer: Any, data: Any, *state: Any) -> Any:
    """A recurrent layer called with a packed batch whose lengths are out of order."""
    rnn = lib.nn.utils.rnn
    given = rnn.pack_padded_sequence(data, lib.tensor([2, 4, 3]), enforce_sorted=False)
    made, last = layer(given, *state)
    padded, lengths = rnn.pad_packed_sequence(made, padding_value=-1.0)
    return padded, lengths, made.data, made.batch_sizes, last


def _unpool(lib: Any, layer: Any, x: Any) -> Any:
    """Max pooling and its turn round."""
    pool = getattr(lib.nn, f"MaxPool{x.dim() - 2}d")(2, return_indices=True)
    return layer(*pool(x), output_size=x.shape[2:])


def _method(name: str) -> Any:
    return lambda lib, layer, *args: getattr(layer, name)(*args)


CAUSAL = np.triu(np.ones((4, 4), bool), 1)
PADDED = np.array([[False, False, False, True], [False, False, True, True]])
ROWS: dict[str, Row] = {
    # Linear
    "Identity": Row(lambda nn: nn.Identity(7, key=1), ((3, 4),)),
    "Linear": Row(lambda nn: nn.Linear(5, 3), ((4, 5),)),
    "Linear without bias": Row(lambda nn: nn.Linear(5, 3, bias=False), ((2, 4, 5),)),
    "Bilinear": Row(lambda nn: nn.Bilinear(3, 4, 2), ((5, 3), (5, 4))),
    "LazyLinear": Row(lambda nn: nn.LazyLinear(3), ((4, 5),)),
    # Convolutions
    "Conv1d": Row(lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), ((2, 4, 9),)),
    "Conv1d circular": Row(lambda nn: nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"), ((2, 2, 9),)),
    "Conv2d": Row(lambda nn: nn.Conv2d(3, 4, (3, 2), padding=(1, 0), dilation=(1, 2)), ((2, 3, 7, 8),)),
    "Conv2d same": Row(lambda nn: nn.Conv2d(3, 4, (3, 5), padding="same", bias=False), ((2, 3, 7, 8),)),
    "Conv2d reflect": Row(lambda nn: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), ((2, 3, 7, 8),)),
    "Conv2d replicate": Row(lambda nn: nn.Conv2d(3, 4, 4, padding="same", padding_mode="replicate"), ((2, 3, 7, 8),)),
    "Conv3d": Row(lambda nn: nn.Conv3d(2, 3, 2), ((1, 2, 4, 5, 3),)),
    "ConvTranspose1d": Row(lambda nn: nn.ConvTranspose1d(4, 2, 3, stride=2, groups=2), ((2, 4, 5),)),
    "ConvTranspose2d": Row(
        lambda nn: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), ((2, 3, 4, 5),)
    ),
    "ConvTranspose2d of a size": Row(
        lambda nn: nn.ConvTranspose2d(3, 4, 3, stride=2), ((2, 3, 4, 5),), {"output_size": [10, 11]}
    ),
    "ConvTranspose3d": Row(lambda nn: nn.ConvTranspose3d(2, 3, 2, bias=False), ((1, 2, 3, 3, 2),)),
    "LazyConv1d": Row(lambda nn: nn.LazyConv1d(6, 3, 2, groups=2), ((2, 4, 9),)),
    "LazyConv2d": Row(lambda nn: nn.LazyConv2d(4, 3, padding=1, bias=False), ((2, 3, 5, 5),)),
    "LazyConv3d": Row(lambda nn: nn.LazyConv3d(2, (1, 2, 2)), ((1, 2, 3, 4, 3),)),
    "LazyConvTranspose1d": Row(lambda nn: nn.LazyConvTranspose1d(3, 3, stride=2), ((2, 4, 5),)),
    "LazyConvTranspose2d": Row(lambda nn: nn.LazyConvTranspose2d(4, 3, bias=False), ((2, 3, 4, 4),)),
    "LazyConvTranspose3d": Row(lambda nn: nn.LazyConvTranspose3d(2, 2), ((1, 2, 3, 3, 2),)),
    # Windows
    "Unfold": Row(lambda nn: nn.Unfold((2, 3), padding=1), ((2, 3, 4, 5),)),
    "Fold": Row(lambda nn: nn.Fold((4, 5), (2, 2), stride=(2, 1)), ((2, 12, 8),)),
    "MaxPool1d": Row(lambda nn: nn.MaxPool1d(2), ((2, 3, 8),)),
    "MaxPool2d": Row(lambda nn: nn.MaxPool2d(3, stride=2, padding=1, return_indices=True), ((2, 3, 8, 9),)),
    "MaxPool3d": Row(lambda nn: nn.MaxPool3d(2, ceil_mode=True), ((1, 2, 4, 5, 4),)),
    "MaxUnpool1d": Row(lambda nn: nn.MaxUnpool1d(2), ((2, 3, 8),), call=_unpool),
    "MaxUnpool2d": Row(lambda nn: nn.MaxUnpool2d(2, stride=2), ((2, 3, 6, 5),), call=_unpool),
    "MaxUnpool3d": Row(lambda nn: nn.MaxUnpool3d(2), ((1, 2, 4, 4, 4),), call=_unpool),
    "AvgPool1d": Row(lambda nn: nn.AvgPool1d(3, 2, 1), ((2, 3, 8),)),
    "AvgPool2d": Row(lambda nn: nn.AvgPool2d(2, ceil_mode=True), ((2, 3, 7, 9),)),
    "AvgPool3d": Row(lambda nn: nn.AvgPool3d(2, divisor_override=3), ((1, 2, 4, 5, 4),)),
    "LPPool1d": Row(lambda nn: nn.LPPool1d(2, 3, stride=2), ((2, 3, 8),)),
    "LPPool2d": Row(lambda nn: nn.LPPool2d(2, (2, 3)), ((2, 3, 6, 7),)),
    "LPPool3d": Row(lambda nn: nn.LPPool3d(2, 2), ((1, 2, 4, 4, 4),)),
    "FractionalMaxPool2d": Row(lambda nn: nn.FractionalMaxPool2d(2, output_size=(3, 4)), ((2, 3, 7, 8),)),
    "FractionalMaxPool3d": Row(lambda nn: nn.FractionalMaxPool3d(2, output_ratio=0.5), ((2, 3, 6, 7, 8),)),
    "AdaptiveAvgPool1d": Row(lambda nn: nn.AdaptiveAvgPool1d(3), ((2, 3, 7),)),
    "AdaptiveAvgPool2d": Row(lambda nn: nn.AdaptiveAvgPool2d((3, None)), ((2, 3, 7, 9),)),
    "AdaptiveAvgPool3d": Row(lambda nn: nn.AdaptiveAvgPool3d(2), ((1, 2, 4, 5, 3),)),
    "AdaptiveMaxPool1d": Row(lambda nn: nn.AdaptiveMaxPool1d(3, return_indices=True), ((2, 3, 7),)),
    "AdaptiveMaxPool2d": Row(lambda nn: nn.AdaptiveMaxPool2d(2), ((2, 3, 7, 9),)),
    "AdaptiveMaxPool3d": Row(lambda nn: nn.AdaptiveMaxPool3d((1, 2, 3)), ((1, 2, 4, 5, 6),)),
    # Padding
    **{
        f"{kind}Pad{dims}d": Row(
            lambda nn, kind=kind, dims=dims: getattr(nn, f"{kind}Pad{dims}d")(
                (1, 2) * dims, *([0.5] if kind == "Constant" else [])
            ),
            ((2, 3, 5, 4, 3)[: dims + 2],),
        )
        for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular")
        for dims in (1, 2, 3)
    },
    "ReflectionPad2d all round": Row(lambda nn: nn.ReflectionPad2d(1), ((2, 3, 4, 5),)),
    # Normalisation
    "BatchNorm1d": Row(lambda nn: nn.BatchNorm1d(4), ((6, 4),)),
    "BatchNorm2d": Row(lambda nn: nn.BatchNorm2d(3, momentum=None), ((4, 3, 5, 5),)),
    "BatchNorm2d of the batch": Row(
        lambda nn: nn.BatchNorm2d(3, affine=False, track_running_stats=False), ((4, 3, 5, 5),)
    ),
    "BatchNorm3d": Row(lambda nn: nn.BatchNorm3d(2), ((3, 2, 2, 3, 2),)),
    "LazyBatchNorm1d": Row(lambda nn: nn.LazyBatchNorm1d(), ((6, 4),)),
    "LazyBatchNorm2d": Row(lambda nn: nn.LazyBatchNorm2d(affine=False), ((4, 3, 5, 5),)),
    "LazyBatchNorm3d": Row(lambda nn: nn.LazyBatchNorm3d(track_running_stats=False), ((3, 2, 2, 3, 2),)),
    "SyncBatchNorm": Row(lambda nn: nn.SyncBatchNorm(3), ((4, 3, 5),)),
    "InstanceNorm1d": Row(lambda nn: nn.InstanceNorm1d(3), ((4, 3, 5),)),
    "InstanceNorm2d": Row(lambda nn: nn.InstanceNorm2d(3, affine=True), ((4, 3, 5, 5),)),
    "InstanceNorm2d tracked": Row(lambda nn: nn.InstanceNorm2d(3, track_running_stats=True), ((4, 3, 5, 5),)),
    "InstanceNorm2d single": Row(lambda nn: nn.InstanceNorm2d(3), ((3, 5, 5),)),
    "InstanceNorm3d": Row(lambda nn: nn.InstanceNorm3d(2), ((3, 2, 2, 3, 2),)),
    "LazyInstanceNorm1d": Row(lambda nn: nn.LazyInstanceNorm1d(), ((4, 3, 5),)),
    "LazyInstanceNorm2d": Row(lambda nn: nn.LazyInstanceNorm2d(affine=False), ((4, 3, 5, 5),)),
    "LazyInstanceNorm3d": Row(lambda nn: nn.LazyInstanceNorm3d(bias=False), ((3, 2, 2, 3, 2),)),
    "LayerNorm": Row(lambda nn: nn.LayerNorm((4, 5)), ((3, 4, 5),)),
    "LayerNorm without bias": Row(lambda nn: nn.LayerNorm(5, bias=False), ((3, 4, 5),)),
    "RMSNorm": Row(lambda nn: nn.RMSNorm(5), ((3, 4, 5),)),
    "GroupNorm": Row(lambda nn: nn.GroupNorm(2, 4), ((3, 4, 5),)),
    "LocalResponseNorm": Row(lambda nn: nn.LocalResponseNorm(3, alpha=0.1), ((2, 5, 3, 3),)),
    # Of its result alone: what PyTorch gives as its gradient is none, and beyond ``size`` channels it sums too many.
    "CrossMapLRN2d": Row(lambda nn: nn.CrossMapLRN2d(5, alpha=0.1), (numbers(2, 3, 3, 3),)),
    # Activations
    "ReLU": Row(lambda nn: nn.ReLU(), ((3, 4),)),
    "LeakyReLU": Row(lambda nn: nn.LeakyReLU(0.1), ((3, 4),)),
    "PReLU": Row(lambda nn: nn.PReLU(4), ((3, 4),)),
    "RReLU": Row(lambda nn: nn.RReLU(0.1, 0.3), ((30, 4),)),
    "GELU": Row(lambda nn: nn.GELU(), ((3, 4),)),
    "GELU by tanh": Row(lambda nn: nn.GELU("tanh"), ((3, 4),)),
    "SiLU": Row(lambda nn: nn.SiLU(), ((3, 4),)),
    "Mish": Row(lambda nn: nn.Mish(), ((3, 4),)),
    "ELU": Row(lambda nn: nn.ELU(0.7), ((3, 4),)),
    "CELU": Row(lambda nn: nn.CELU(0.7), ((3, 4),)),
    "SELU": Row(lambda nn: nn.SELU(), ((3, 4),)),
    "Hardtanh": Row(lambda nn: nn.Hardtanh(-0.5, 0.5), ((3, 4),)),
    "ReLU6": Row(lambda nn: nn.ReLU6(), ((3, 4),)),
    "Hardsigmoid": Row(lambda nn: nn.Hardsigmoid(), ((3, 4),)),
    "Hardswish": Row(lambda nn: nn.Hardswish(), ((3, 4),)),
    "Hardshrink": Row(lambda nn: nn.Hardshrink(), ((3, 4),)),
    "Softshrink": Row(lambda nn: nn.Softshrink(), ((3, 4),)),
    "Softplus": Row(lambda nn: nn.Softplus(2.0), ((3, 4),)),
    "Softsign": Row(lambda nn: nn.Softsign(), ((3, 4),)),
    "Tanhshrink": Row(lambda nn: nn.Tanhshrink(), ((3, 4),)),
    "Threshold": Row(lambda nn: nn.Threshold(0.1, 20.0), ((3, 4),)),
    "LogSigmoid": Row(lambda nn: nn.LogSigmoid(), ((3, 4),)),
    "Sigmoid": Row(lambda nn: nn.Sigmoid(), ((3, 4),)),
    "Tanh": Row(lambda nn: nn.Tanh(), ((3, 4),)),
    "Softmax": Row(lambda nn: nn.Softmax(dim=-1), ((3, 4),)),
    "Softmax2d": Row(lambda nn: nn.Softmax2d(), ((2, 3, 4, 2),)),
    "Softmin": Row(lambda nn: nn.Softmin(dim=0), ((3, 4),)),
    "LogSoftmax": Row(lambda nn: nn.LogSoftmax(dim=1), ((3, 4),)),
    "GLU": Row(lambda nn: nn.GLU(), ((3, 4),)),
    "ReLU in place": Row(lambda nn: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), ((3, 4),)),
    "AdaptiveLogSoftmaxWithLoss": Row(
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0), ((5, 8), np.array([0, 4, 11, 2, 8]))
    ),
    "AdaptiveLogSoftmaxWithLoss, all": Row(
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], 2.0, True), ((5, 8),), call=_method("log_prob")
    ),
    "AdaptiveLogSoftmaxWithLoss, best": Row(
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], 1.5), ((50, 8),), call=_method("predict")
    ),
    # Shapes
    "Flatten": Row(lambda nn: nn.Flatten(), ((3, 4, 2),)),
    "Unflatten": Row(lambda nn: nn.Unflatten(1, (2, 2)), ((3, 4),)),
    "PixelShuffle": Row(lambda nn: nn.PixelShuffle(2), ((2, 8, 3, 2),)),
    "PixelUnshuffle": Row(lambda nn: nn.PixelUnshuffle(2), ((2, 2, 4, 6),)),
    "ChannelShuffle": Row(lambda nn: nn.ChannelShuffle(2), ((2, 6, 3, 2),)),
    "Upsample": Row(lambda nn: nn.Upsample(scale_factor=2), ((2, 3, 4, 5),)),
    "Upsample bicubic": Row(lambda nn: nn.Upsample((7, 6), mode="bicubic", align_corners=True), ((2, 3, 4, 5),)),
    "Upsample linear": Row(lambda nn: nn.Upsample(scale_factor=1.5, mode="linear"), ((2, 3, 5),)),
    "UpsamplingNearest2d": Row(lambda nn: nn.UpsamplingNearest2d(size=(6, 5)), ((2, 3, 4, 5),)),
    "UpsamplingBilinear2d": Row(lambda nn: nn.UpsamplingBilinear2d(scale_factor=2), ((2, 3, 4, 5),)),
    # Dropout
    "Dropout": Row(lambda nn: nn.Dropout(0.4), ((30, 4),)),
    "Dropout1d": Row(lambda nn: nn.Dropout1d(0.4), ((3, 8, 2),)),
    "Dropout2d": Row(lambda nn: nn.Dropout2d(0.4), ((3, 8, 2, 2),)),
    "Dropout3d": Row(lambda nn: nn.Dropout3d(0.4), ((3, 8, 2, 1, 2),)),
    "AlphaDropout": Row(lambda nn: nn.AlphaDropout(0.4), ((30, 4),)),
    "FeatureAlphaDropout": Row(lambda nn: nn.FeatureAlphaDropout(0.4), ((3, 8, 2, 2),)),
    # Tables
    "Embedding": Row(lambda nn: nn.Embedding(7, 3, padding_idx=-1), (np.array([[1, 6, 2], [1, 0, 5]]),)),
    "Embedding of bounded rows": Row(
        lambda nn: nn.Embedding(7, 3, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True), (np.array([1, 1, 2]),)
    ),
    "EmbeddingBag": Row(lambda nn: nn.EmbeddingBag(7, 3, padding_idx=2), (np.array([[1, 6, 2], [1, 0, 5]]),)),
    "EmbeddingBag of sums": Row(
        lambda nn: nn.EmbeddingBag(7, 3, mode="sum", include_last_offset=True),
        (np.array([1, 6, 2, 1, 0]), np.array([0, 2, 5]), (5,)),
    ),
    "EmbeddingBag of maxima": Row(lambda nn: nn.EmbeddingBag(7, 3, mode="max"), (np.array([[1, 6], [1, 0]]),)),
    # Distances
    "CosineSimilarity": Row(lambda nn: nn.CosineSimilarity(dim=0), ((3, 4), (3, 4))),
    "PairwiseDistance": Row(lambda nn: nn.PairwiseDistance(p=1.0, keepdim=True), ((3, 4), (3, 4))),
    # Recurrent
    "RNN": Row(lambda nn: nn.RNN(3, 5), ((4, 2, 3),)),
    "RNN of relu": Row(lambda nn: nn.RNN(3, 5, 2, "relu", False), ((4, 2, 3), (2, 2, 5))),
    "RNN packed": Row(lambda nn: nn.RNN(3, 5, bidirectional=True), ((4, 3, 3),), call=_packed),
    "LSTM": Row(lambda nn: nn.LSTM(3, 5), ((4, 2, 3),)),
    "LSTM deep": Row(
        lambda nn: nn.LSTM(3, 5, 2, bidirectional=True, batch_first=True, dropout=0.3),
        ((2, 4, 3), [(4, 2, 5), (4, 2, 5)]),
    ),
    "LSTM projected": Row(lambda nn: nn.LSTM(3, 5, 2, proj_size=2, bias=False, bidirectional=True), ((4, 2, 3),)),
    "LSTM of one sequence": Row(lambda nn: nn.LSTM(3, 5), ((4, 3), [(1, 5), (1, 5)])),
    "LSTM packed": Row(
        lambda nn: nn.LSTM(3, 5, 2, bidirectional=True), ((4, 3, 3), [(4, 3, 5), (4, 3, 5)]), call=_packed
    ),
    "LSTM packed and projected": Row(
        lambda nn: nn.LSTM(3, 5, proj_size=2, bidirectional=True), ((4, 3, 3),), call=_packed
    ),
    "GRU": Row(lambda nn: nn.GRU(3, 5), ((4, 2, 3),)),
    "GRU deep": Row(lambda nn: nn.GRU(3, 5, 2, bias=False, bidirectional=True), ((4, 2, 3), (4, 2, 5))),
    "GRU packed": Row(lambda nn: nn.GRU(3, 5, bidirectional=True), ((4, 3, 3), (2, 3, 5)), call=_packed),
    "RNNCell": Row(lambda nn: nn.RNNCell(3, 5), ((2, 3), (2, 5))),
    "RNNCell of relu": Row(lambda nn: nn.RNNCell(3, 5, bias=False, nonlinearity="relu"), ((2, 3),)),
    "LSTMCell": Row(lambda nn: nn.LSTMCell(3, 5), ((2, 3), [(2, 5), (2, 5)])),
    "LSTMCell of one": Row(lambda nn: nn.LSTMCell(3, 5), ((3,), [(5,), (5,)])),
    "GRUCell": Row(lambda nn: nn.GRUCell(3, 5), ((2, 3), (2, 5))),
    # Attention
    "MultiheadAttention": Row(lambda nn: nn.MultiheadAttention(4, 2), ((3, 2, 4), (5, 2, 4), (5, 2, 4))),
    "MultiheadAttention of itself": Row(
        lambda nn: nn.MultiheadAttention(4, 2, batch_first=True, dropout=0.2),
        ((2, 4, 4),),
        {"attn_mask": CAUSAL, "key_padding_mask": PADDED, "average_attn_weights": False},
        call=lambda lib, layer, x, **options: layer(x, x, x, **options),
    ),
    "MultiheadAttention of other sizes": Row(
        lambda nn: nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True, bias=False),
        ((3, 2, 4), (5, 2, 3), (5, 2, 5)),
        {"need_weights": False},
    ),
    "TransformerEncoderLayer": Row(
        lambda nn: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2), ((4, 2, 4),), {"src_mask": CAUSAL}
    ),
    "TransformerEncoderLayer, norm first": Row(
        lambda nn: nn.TransformerEncoderLayer(4, 2, 8, 0.1, "gelu", batch_first=True, norm_first=True, bias=False),
        ((2, 4, 4),),
        {"src_key_padding_mask": PADDED},
    ),
    "TransformerDecoderLayer": Row(
        lambda nn: nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), ((2, 3, 4), (2, 5, 4))
    ),
    "TransformerDecoderLayer, norm first": Row(
        lambda nn: nn.TransformerDecoderLayer(4, 2, 8, norm_first=True, activation=nn.functional.silu),
        ((4, 2, 4), (5, 2, 4)),
        {"tgt_mask": CAUSAL, "tgt_is_causal": True},
    ),
    "TransformerEncoder": Row(
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, nn.LayerNorm(4), enable_nested_tensor=False
        ),
        ((2, 4, 4),),
        {"mask": CAUSAL},
    ),
    "TransformerEncoder of padded": Row(
        lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, nn.LayerNorm(4)),
        ((2, 4, 4),),
        {"src_key_padding_mask": PADDED},
    ),
    "TransformerDecoder": Row(
        lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2),
        ((4, 2, 4), (5, 2, 4)),
        {"tgt_mask": CAUSAL},
    ),
    "Transformer": Row(
        lambda nn: nn.Transformer(4, 2, 1, 2, 8, batch_first=True, bias=False, norm_first=True),
        ((2, 4, 4), (2, 4, 4)),
        {"tgt_mask": CAUSAL, "src_key_padding_mask": PADDED, "memory_key_padding_mask": PADDED},
    ),
    # Containers
    "Sequential": Row(lambda nn: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), ((3, 4),)),
    "ModuleList": Row(
        lambda nn: nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU()]),
        ((3, 4),),
        call=lambda lib, layer, x: layer[2](layer[1](x)),
    ),
    "ModuleDict": Row(
        lambda nn: nn.ModuleDict({"b": nn.Linear(4, 4), "a": nn.ReLU()}),
        ((3, 4),),
        call=lambda lib, layer, x: layer["a"](layer["b"](x)),
    ),
    "ParameterList": Row(
        lambda nn: nn.ParameterList([nn.Parameter(nn.Linear(4, 2).weight), nn.Linear(4, 3).bias]),
        ((3, 4),),
        call=lambda lib, layer, x: x @ layer[0].t(),
    ),
    "ParameterDict": Row(
        lambda nn: nn.ParameterDict({"w": nn.Linear(4, 2).weight, "b": nn.Linear(4, 2).bias}),
        ((3, 4),),
        call=lambda lib, layer, x: x @ layer["w"].t() + layer["b"],
    ),
    # Parametrizations
    "weight_norm": Row(lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), ((2, 4),)),
    "weight_norm of all": Row(
        lambda nn: nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 3, 2), dim=None), ((2, 4, 5),)
    ),
    "spectral_norm": Row(lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), ((2, 4),)),
    "spectral_norm of a transpose": Row(
        lambda nn: nn.utils.parametrizations.spectral_norm(nn.ConvTranspose2d(2, 3, 2), n_power_iterations=2),
        ((2, 2, 3, 3),),
    ),
    "orthogonal": Row(lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)), ((2, 4),)),
    "orthogonal by cayley": Row(
        lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 3), "weight", "cayley"), ((2, 4),)
    ),
    "orthogonal by reflections": Row(
        lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(3, 4), use_trivialization=False), ((2, 3),)
    ),
    "spectral_norm by hook": Row(lambda nn: nn.utils.spectral_norm(nn.Conv2d(2, 3, 2)), ((2, 2, 3, 3),)),
}

CLASSES = np.array([1, 0, 3, 2, 1])
SIGNS = np.array([1.0, -1.0, 1.0, 1.0, -1.0], np.float32)
HALVES = (SIGNS > 0).astype(np.float32)
PROBABILITIES = 1 / (1 + np.exp(-numbers(5, seed=11)))
LOSSES: dict[str, Row] = {
    "L1Loss": Row(lambda nn: nn.L1Loss(), ((5, 4), (5, 4))),
    "MSELoss": Row(lambda nn: nn.MSELoss(reduction="sum"), ((5, 4), (5, 4))),
    "SmoothL1Loss": Row(lambda nn: nn.SmoothL1Loss(beta=0.5), ((5, 4), (5, 4))),
    "HuberLoss": Row(lambda nn: nn.HuberLoss(delta=0.5), ((5, 4), (5, 4))),
    "CrossEntropyLoss": Row(lambda nn: nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=3), ((5, 4), CLASSES)),
    "NLLLoss": Row(lambda nn: nn.NLLLoss(), ((5, 4), CLASSES)),
    "BCELoss": Row(lambda nn: nn.BCELoss(), (PROBABILITIES, HALVES)),
    "BCEWithLogitsLoss": Row(lambda nn: nn.BCEWithLogitsLoss(), ((5,), HALVES)),
    "KLDivLoss": Row(lambda nn: nn.KLDivLoss(reduction="batchmean"), ((5, 4), np.abs(numbers(5, 4, seed=14)))),
    "PoissonNLLLoss": Row(lambda nn: nn.PoissonNLLLoss(), ((5,), np.abs(numbers(5, seed=16)))),
    "GaussianNLLLoss": Row(lambda nn: nn.GaussianNLLLoss(), ((5, 2), (5, 2), np.abs(numbers(5, 2, seed=19)) + 0.5)),
    "HingeEmbeddingLoss": Row(lambda nn: nn.HingeEmbeddingLoss(), ((5,), SIGNS)),
    "SoftMarginLoss": Row(lambda nn: nn.SoftMarginLoss(), ((5,), SIGNS)),
    "MarginRankingLoss": Row(lambda nn: nn.MarginRankingLoss(0.1), ((5,), (5,), SIGNS)),
    "CosineEmbeddingLoss": Row(lambda nn: nn.CosineEmbeddingLoss(0.1), ((5, 3), (5, 3), SIGNS)),
    "TripletMarginLoss": Row(lambda nn: nn.TripletMarginLoss(), ((5, 3), (5, 3), (5, 3))),
    "TripletMarginWithDistanceLoss": Row(
        lambda nn: nn.TripletMarginWithDistanceLoss(margin=2.0, swap=True), ((5, 3), (5, 3), (5, 3))
    ),
    "TripletMarginWithDistanceLoss of one's own": Row(
        lambda nn: nn.TripletMarginWithDistanceLoss(distance_function=nn.CosineSimilarity()), ((5, 3), (5, 3), (5, 3))
    ),
    "MultiMarginLoss": Row(lambda nn: nn.MultiMarginLoss(p=2, margin=0.5), ((5, 4), CLASSES)),
    "MultiLabelMarginLoss": Row(
        lambda nn: nn.MultiLabelMarginLoss(), ((2, 4), np.array([[3, 0, -1, 1], [1, -1, 2, 0]]))
    ),
    "MultiLabelSoftMarginLoss": Row(
        lambda nn: nn.MultiLabelSoftMarginLoss(reduction="none"),
        ((5, 4), (numbers(5, 4, seed=9) > 0).astype(np.float32)),
    ),
    "CTCLoss": Row(
        lambda nn: nn.CTCLoss(blank=1, zero_infinity=True),
        ((6, 2, 4), np.array([[2, 3, 2], [0, 2, 0]]), np.array([6, 5]), np.array([3, 2])),
        call=lambda lib, layer, x, *rest: layer(x.log_softmax(-1), *rest),
    ),
    "LinearCrossEntropyLoss": Row(
        lambda nn: nn.LinearCrossEntropyLoss(3, 4, bias=True, options=None), ((5, 3), CLASSES)
    ),
}
