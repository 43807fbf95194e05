"""Models that are exported and run again in onnxruntime: (name, model, inputs, inputs of other sizes, names of the sizes)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorcore as tc
from tensorcore import nn

__all__ = ["MODELS", "Case"]

Case = tuple[str, nn.Module, tuple[Any, ...], tuple[Any, ...] | None, dict[str, dict[int, str]] | None]

IMAGES = {
    "BatchNorm2d(4)", "GroupNorm(2, 4)", "InstanceNorm2d(4, affine=True)", "LayerNorm(6)", "RMSNorm(6)",
    "LocalResponseNorm(2)", "MaxPool2d(2, stride=2, padding=1)", "MaxPool2d(3, stride=2, ceil_mode=True)",
    "AvgPool2d(3, padding=1, count_include_pad=False)", "AvgPool2d(2, divisor_override=3)", "AdaptiveAvgPool2d(1)",
    "AdaptiveAvgPool2d(4)", "AdaptiveMaxPool2d(2)", "LPPool2d(2, 2)", "Conv2d(4, 2, 3, padding='same', padding_mode='reflect')",
    "Conv2d(4, 8, 3, stride=2, dilation=2, groups=4, bias=False)", "Upsample(scale_factor=2)",
    "ConvTranspose2d(4, 2, 3, stride=2, output_padding=1, padding=1)", "ConvTranspose2d(4, 4, 2, groups=2)",
    "Upsample(scale_factor=2, mode='bilinear')", "PixelShuffle(2)", "PixelUnshuffle(2)", "ChannelShuffle(2)", "Unfold(2)",
    "ZeroPad2d(1)", "ReflectionPad2d(1)", "ReplicationPad2d(1)", "CircularPad2d(1)", "ConstantPad2d(1, 2.5)", "Flatten()",
    "Unflatten(1, (2, 2))", "Dropout()", "Identity()", "Linear(6, 3)", "PReLU()", "RReLU()", "ELU()", "CELU()", "SELU()",
    "GELU()", "GELU('tanh')", "GLU(1)", "SiLU()", "Mish()", "ReLU()", "ReLU(inplace=True)", "ReLU6()", "LeakyReLU()", "Sigmoid()",
    "LogSigmoid()", "Hardsigmoid()", "Hardswish()", "Hardtanh()", "Hardshrink()", "Softshrink()", "Tanh()", "Tanhshrink()",
    "Threshold(0.1, 2.0)", "Softplus()", "Softsign()", "Softmax(1)", "Softmin(1)", "Softmax2d()", "LogSoftmax(1)",
}  # fmt: skip
RECURRENT = ["LSTM(6, 3, 2, bidirectional=True)", "GRU(6, 3, 2, bidirectional=True)", "RNN(6, 3, nonlinearity='relu')",
             "LSTM(6, 3, bias=False)", "LSTM(6, 4, proj_size=2)", "GRU(6, 3, bias=False)"]  # fmt: skip


class Attention(nn.Module):
    """A block of a language model: embeddings of places, a causal mask from a buffer, and the fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(11, 8), nn.Embedding(16, 8)
        self.inner, self.outer = nn.Linear(8, 24), nn.Linear(8, 11)
        self.register_buffer("mask", tc.tril(tc.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, tokens):
        batch, steps = tokens.shape
        x = self.token(tokens) + self.place(tc.arange(steps))
        query, key, value = [one.view(batch, steps, 2, 4).transpose(1, 2) for one in self.inner(x).split(8, 2)]
        fused = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = (query @ key.transpose(-2, -1)).masked_fill(self.mask[:, :, :steps, :steps] == 0, -float("inf"))
        both = fused + scores.softmax(-1) @ value
        return self.outer(both.transpose(1, 2).contiguous().view(batch, steps, 8))[:, [-1], :]


class Ops(nn.Module):
    """Every kernel that has a node and that no layer runs."""

    def forward(self, x):
        values, places = x.max(1)
        top, order = x.topk(2, -1)
        batch = x.shape[0]
        return [
            values, places, top, order, tc.cat([x, x.flip(0)], 1), x.argmax(), x.argmin(-1, keepdim=True), x.sum(), x.mean((1, 2)),
            x.norm(dim=1), x.norm(p=1), x.var(0), x.std(), x.cumsum(1), x.clamp(-0.5, 0.5), tc.where(x > 0, x, 0.0), x.abs().log2(),
            x.abs().log10(), (x > 0).any(1), (x > 0).all(), (x > 0) ^ (x < 1), ~(x > 0), x.long() // 2, x % 0.3, x.fmod(0.3),
            x.long() & 3, x.repeat(2, 1, 1), tc.stack([x, x], 1), x.tril(), x[:, 1:, ::2], x[..., None], x[:, [0, 2]], x[0, 1],
            x.gather(1, tc.zeros(batch, 1, 6, dtype=tc.int64)), x.logsumexp(1), x.prod(1), x.amax((0, 1)), x.min(2)[1], x.expm1(),
            x.square().add(1).rsqrt(), x.trunc(), x.sort(1)[0], x.roll(1, 1), x.roll(2), x.half().float(), x.sigmoid().logit(),
            x.new_zeros(batch, 2) + 1, tc.arange(batch) * 2, tc.ones_like(x).cumsum(0), x.unbind(1)[0], x.movedim(0, 1),
            tc.einsum("bij,bkj->bik", x, x), x.isnan(), x != x, x.erf(), x.sin().atan(), x.scatter(2, x.long().abs() % 6, 1.5),
        ]  # fmt: skip


def made() -> Iterator[Case]:
    small, large, batch = tc.randn(2, 4, 6, 6), tc.randn(5, 4, 6, 6), {"x": {0: "batch"}}
    for text in sorted(IMAGES):
        yield text, eval(f"nn.{text}", {"nn": nn}), (small,), (large,), batch
    for text in RECURRENT:
        steps = {"x": {0: "steps", 1: "batch"}} if "proj" not in text else {"x": {1: "batch"}}
        other = tc.randn(7, 5, 6) if "proj" not in text else tc.randn(4, 5, 6)
        yield text, eval(f"nn.{text}", {"nn": nn}), (tc.randn(4, 2, 6),), (other,), steps
    yield "LSTMCell", nn.LSTMCell(6, 3), (tc.randn(2, 6),), (tc.randn(3, 6),), batch
    yield "Conv1d", nn.Conv1d(6, 6, 3, groups=2), (tc.randn(2, 6, 6),), (tc.randn(3, 6, 6),), batch
    yield "Conv1d of any length", nn.Conv1d(6, 6, 3), (tc.randn(2, 6, 6),), (tc.randn(2, 6, 9),), {"x": {2: "length"}}
    yield "Conv3d", nn.Conv3d(1, 2, 2), (tc.randn(1, 1, 3, 4, 5),), None, None
    yield "Fold", nn.Fold((3, 4), (2, 2)), (tc.randn(2, 8, 6),), (tc.randn(3, 8, 6),), batch
    yield "Linear of rows", nn.Linear(6, 3), (tc.randn(2, 6),), (tc.randn(7, 6),), batch
    tokens = {"x": {0: "batch", 1: "steps"}}
    yield "Embedding", nn.Embedding(5, 3), (tc.tensor([[1, 2]]),), (tc.tensor([[1, 2, 3], [0, 0, 4]]),), tokens
    yield "EmbeddingBag", nn.EmbeddingBag(5, 3), (tc.tensor([[1, 2]]),), None, None
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    yield "TransformerEncoderLayer", layer, (tc.randn(2, 5, 6),), (tc.randn(3, 7, 6),), tokens
    yield "attention", Attention(), (tc.randint(0, 11, (2, 5)),), (tc.randint(0, 11, (3, 9)),), tokens
    yield "ops", Ops(), (tc.randn(4, 3, 6),), (tc.randn(6, 3, 6),), batch


MODELS = list(made())
