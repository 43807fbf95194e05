"""Kernels of layers as ONNX nodes: convolutions, pools, norms, recurrent steps, padding. Opset 18."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorcore.backend.windows import even_windows
from tensorcore.errors import UsageError
from tensorcore.onnx.kernels import shape_of
from tensorcore.onnx.tracer import Trace, handler

__all__: list[str] = []


@handler("conv")
def _conv(
    t: Trace,
    result: Any,
    x: Any,
    weight: Any,
    bias: Any,
    *,
    counts: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> str:
    return t.node("Conv", x, weight, bias, kernel_shape=list(weight.shape[2:]), strides=list(stride), pads=[*padding, *padding],
                  dilations=list(dilation), group=groups)  # fmt: skip


@handler("conv_input_gradient")
def _conv_transpose(
    t: Trace, result: Any, g: Any, weight: Any, *, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> str:
    kernel = weight.shape[2:]
    extra = [
        shape[2 + i] - ((g.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + 1)
        for i in range(len(kernel))
    ]
    return t.node("ConvTranspose", g, weight, kernel_shape=list(kernel), strides=list(stride), pads=[*padding, *padding],
                  dilations=list(dilation), group=groups, output_padding=extra)  # fmt: skip


@handler("max_pool")
def _max_pool(
    t: Trace, result: Any, x: Any, *, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> str:
    # Windows that reach over the end (ceil_mode) get the padding that they need; it is never the largest.
    ends = [
        max(padding[i], (counts[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - x.shape[2 + i] - padding[i])
        for i in range(len(kernel))
    ]
    return t.node("MaxPool", x, kernel_shape=list(kernel), strides=list(stride), pads=[*padding, *ends],
                  dilations=list(dilation))  # fmt: skip


@handler("adaptive_avg_pool")
def _adaptive_avg_pool(t: Trace, result: Any, x: Any, *, counts: Any) -> Any:
    # Windows of several lengths: along each dim the product with a matrix of their weights.
    made, ndim = x, len(counts) + 2
    for dim, count in enumerate(counts, 2):
        weights = np.zeros((x.shape[dim], count), x.dtype)
        for i, (start, stop) in enumerate(even_windows(x.shape[dim], count)):
            weights[start:stop, i] = 1 / (stop - start)
        turned = [*range(dim), ndim - 1, *range(dim + 1, ndim - 1), dim][:ndim]
        last = dim == ndim - 1
        made = t.node("MatMul", made if last else t.node("Transpose", made, perm=turned), weights)
        made = made if last else t.node("Transpose", made, perm=turned)
    return made


@handler("avg_pool")
def _avg_pool(
    t: Trace,
    result: Any,
    x: Any,
    *,
    counts: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    count_padding: bool,
    divisor: Any,
) -> str:
    for i, size in enumerate(kernel):
        if (counts[i] - 1) * stride[i] + size > x.shape[2 + i] + 2 * padding[i]:
            raise UsageError(
                "onnx.export: expected an average pool without ceil_mode, got one with it; pad the input instead"
            )
    count_padding = count_padding or bool(divisor)
    made = t.node("AveragePool", x, kernel_shape=list(kernel), strides=list(stride), pads=[*padding, *padding],
                  count_include_pad=int(count_padding))  # fmt: skip
    return made if not divisor else t.node("Mul", made, t.name(prod(kernel) / divisor, x))


@handler("unfold")
def _unfold(
    t: Trace, result: Any, x: Any, *, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> str:
    # A convolution whose kernels each pick one element of the window.
    channels, taps = x.shape[1], prod(kernel)
    weight = np.eye(channels * taps, dtype=x.dtype).reshape(channels * taps, channels, *kernel)
    made = t.node("Conv", x, weight, kernel_shape=list(kernel), strides=list(stride), pads=[*padding, *padding],
                  dilations=list(dilation))  # fmt: skip
    return t.node("Reshape", made, shape_of(t, result.shape))


@handler("fold")
def _fold(
    t: Trace, result: Any, x: Any, *, shape: Any, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> str:
    return t.node("Col2Im", x, t.sizes(*shape[2:]), t.name(np.asarray(kernel, np.int64)), strides=list(stride),
                  pads=[*padding, *padding], dilations=list(dilation))  # fmt: skip


@handler("constant_pad")
def _constant_pad(t: Trace, result: Any, x: Any, *, shape: Any, key: Any, value: Any) -> str:
    bounds = [(one.start or 0, n if one.stop is None else one.stop) for one, n in zip(key, shape, strict=True)]
    pads = [start for start, _ in bounds] + [n - stop for (_, stop), n in zip(bounds, shape, strict=True)]
    return t.node("Pad", x, t.name(np.asarray(pads, np.int64)), t.name(value, x))


@handler("standardize")
def _standardize(
    t: Trace,
    result: Any,
    x: Any,
    weight: Any,
    bias: Any,
    *,
    view: Any,
    dims: Any,
    affine: Any,
    eps: float,
    centre: bool,
) -> list[Any]:
    last = tuple(dims) == tuple(range(x.ndim - len(dims), x.ndim))
    if last and centre and weight is not None and tuple(view) == x.shape and weight.shape == x.shape[-len(dims) :]:
        return [t.node("LayerNormalization", x, weight, bias, axis=-len(dims), epsilon=eps), None, None]
    made = t.name(x) if tuple(view) == x.shape else t.node("Reshape", x, shape_of(t, view))
    axes = t.name(np.asarray(dims, np.int64))
    if centre:
        made = t.node("Sub", made, t.node("ReduceMean", made, axes, keepdims=1))
    variance = t.node("ReduceMean", t.node("Mul", made, made), axes, keepdims=1)
    made = t.node("Div", made, t.node("Sqrt", t.node("Add", variance, t.name(eps, x))))
    for one, kind in ((weight, "Mul"), (bias, "Add")):
        if one is not None:
            made = t.node(kind, made, t.node("Reshape", one, t.name(np.asarray(affine, np.int64))))
    return [made if tuple(view) == x.shape else t.node("Reshape", made, shape_of(t, x.shape)), None, None]


# Recurrent layers. The kernels get the input's part of the gates ready-made, by a product that the node has inside.


def _recurrent(
    t: Trace, kind: str, gates: Any, weight: Any, states: list[Any], sizes: Any, reverse: bool, order: list[int], more: Any,
    **attributes: Any,
) -> tuple[str, list[str]]:  # fmt: skip
    if len(set(sizes)) > 1:
        raise UsageError("onnx.export: expected sequences of one length, got packed ones; pad them")
    hidden, steps, batch = weight.shape[1], len(sizes), sizes[0]
    gemm = t.producers.get(t.name(gates))
    own = t.value_of(gemm.inputs[1]) if gemm is not None and gemm.kind == "Gemm" else None
    if gemm is not None and own is not None:
        source, into = gemm.inputs[0], own
        bias = t.value_of(gemm.inputs[2]) if len(gemm.inputs) > 2 else None
        bias = np.zeros(len(own), own.dtype) if bias is None else bias
    else:
        source, into, bias = (
            t.name(gates),
            np.eye(gates.shape[1], dtype=gates.dtype),
            np.zeros(gates.shape[1], gates.dtype),
        )
    recurrent = t.value_of(t.name(weight))
    if recurrent is None:
        raise UsageError(
            "onnx.export: expected recurrent weights that are parameters, got computed ones; export them as such"
        )

    def turned(rows: Any) -> Any:
        return np.concatenate([rows[i * hidden : (i + 1) * hidden] for i in order])

    inner = np.zeros(len(into), into.dtype) if more is None else more
    x = t.node("Reshape", source, t.sizes(steps, batch, into.shape[1]))
    first = [t.node("Unsqueeze", one, t.name(np.asarray([0], np.int64))) for one in states]
    made = t.node(kind, x, turned(into)[None], turned(recurrent)[None],
                  np.concatenate([turned(bias), turned(inner)])[None], None, *first, outputs=1 + len(states),
                  hidden_size=hidden, direction="reverse" if reverse else "forward", **attributes)  # fmt: skip
    rows = t.node("Reshape", made[0], t.sizes(steps * batch, hidden))
    return rows, [t.node("Squeeze", one, t.name(np.asarray([0], np.int64))) for one in made[1:]]


@handler("lstm_steps")
def _lstm(t: Trace, result: Any, gates: Any, weight: Any, h0: Any, c0: Any, *, sizes: Any, reverse: bool) -> list[Any]:
    rows, last = _recurrent(t, "LSTM", gates, weight, [h0, c0], sizes, reverse, [0, 3, 1, 2], None)
    return [rows, *last]


@handler("gru_steps")
def _gru(t: Trace, result: Any, gates: Any, weight: Any, bias: Any, h0: Any, *, sizes: Any, reverse: bool) -> list[Any]:
    inner = None
    if bias is not None:
        # Of the new gate alone, where it is a third of all.
        inner = np.zeros(weight.shape[0], weight.dtype)
        inner[-bias.size :] = bias.reshape(-1)
    rows, last = _recurrent(t, "GRU", gates, weight, [h0], sizes, reverse, [1, 0, 2], inner, linear_before_reset=1)
    return [rows, *last]


@handler("rnn_steps")
def _rnn(
    t: Trace, result: Any, gates: Any, weight: Any, h0: Any, *, sizes: Any, reverse: bool, nonlinearity: str
) -> list[Any]:
    activation = "Relu" if nonlinearity == "relu" else "Tanh"
    rows, last = _recurrent(t, "RNN", gates, weight, [h0], sizes, reverse, [0], None, activations=[activation])
    return [rows, *last]
