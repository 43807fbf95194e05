"""Tensors without elements: they are recorded as others are, move no statistics, and warn of nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc

F = tc.nn.functional


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2, 2), (4, 3, 0, 2), (4, 0), (0, 0)])
def test_an_empty_batch_moves_no_running_statistics(shape: tuple[int, ...]) -> None:
    """``batch_norm`` of no elements leaves mean and variance alone, where they became NaN, and gives its weight a gradient of zeros."""
    channels = shape[1]
    mean, var = tc.zeros(channels), tc.ones(channels)
    x, weight, bias = (tc.ones(size, requires_grad=True) for size in (shape, channels, channels))
    made = F.batch_norm(x, mean, var, weight, bias, training=True)
    made.sum().backward()
    assert tuple(made.shape) == shape
    assert (mean.tolist(), var.tolist()) == ([0.0] * channels, [1.0] * channels)
    assert (weight.grad.tolist(), bias.grad.tolist(), x.grad.shape) == ([0.0] * channels, [0.0] * channels, x.shape)


@pytest.mark.parametrize("shape", [(4, 0, 3), (0, 3, 4), (4, 3, 0)])
def test_an_empty_instance_moves_no_running_statistics(shape: tuple[int, ...]) -> None:
    """``instance_norm`` of no elements has a result, and its statistics stay."""
    mean, var = tc.zeros(shape[1]), tc.ones(shape[1])
    assert tuple(F.instance_norm(tc.ones(shape), mean, var).shape) == shape
    assert (mean.tolist(), var.tolist()) == ([0.0] * shape[1], [1.0] * shape[1])


def test_one_value_per_channel_is_still_refused() -> None:
    """A batch of one has no variance, with channels and without."""
    for channels in (3, 0):
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            F.batch_norm(tc.ones(1, channels), None, None, training=True)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize(
    "query, key", [((2, 4, 0, 4), (2, 2, 3, 4)), ((2, 4, 3, 4), (2, 2, 0, 4)), ((0, 4, 3, 4), (0, 2, 3, 4))]
)
def test_attention_without_weights_is_recorded(query: Any, key: Any, dropout: float) -> None:
    """Attention over no rows, columns or samples gives zeros and gradients of zeros to all operands; it gave none at all."""
    q, k, v = (tc.ones(size, requires_grad=True) for size in (query, key, key))
    made = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, enable_gqa=True)
    made.sum().backward()
    assert tuple(made.shape) == query
    assert made.count_nonzero() == 0
    assert [tuple(one.grad.shape) for one in (q, k, v)] == [query, key, key]
    assert all(one.grad.count_nonzero() == 0 for one in (q, k, v))


def test_a_transformer_layer_over_nothing_has_all_its_gradients() -> None:
    """No parameter is left without a gradient, which other processes of a data-parallel step would wait for."""
    layer = tc.nn.TransformerEncoderLayer(4, 2, 8, 0.0)
    layer(tc.ones(0, 2, 4)).sum().backward()
    assert [name for name, one in layer.named_parameters() if one.grad is None] == []


@pytest.mark.parametrize("call", [tc.median, tc.nanmedian])
def test_the_median_of_nothing_is_recorded_and_put_in_its_place(call: Callable[..., Any]) -> None:
    """It is NaN, with a gradient, and in ``out`` where there is one."""
    x = tc.ones(0, 3, requires_grad=True)
    made = call(x)
    made.backward()
    assert made.isnan()
    assert x.grad.shape == x.shape
    out = tc.zeros(())
    assert call(x.detach(), out=out) is out
    assert out.isnan()


def test_distances_of_rows_without_columns_are_recorded() -> None:
    """They are zero, and both sides get gradients."""
    one, other = tc.ones(2, 0, requires_grad=True), tc.ones(3, 4, 0, requires_grad=True)
    made = tc.cdist(one, other)
    made.sum().backward()
    assert made.tolist() == tc.zeros(3, 2, 4).tolist()
    assert (one.grad.shape, other.grad.shape) == (one.shape, other.shape)


def test_running_log_sums_of_nothing_have_a_gradient() -> None:
    """Its walk asked for the largest of no elements."""
    x = tc.ones(2, 0, requires_grad=True)
    x.logcumsumexp(1).sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.multi_margin_loss(x, tc.zeros(0, dtype=tc.int64)),
        lambda x: F.multilabel_margin_loss(x, tc.zeros(0, 4, dtype=tc.int64)),
    ],
)
def test_the_mean_loss_of_no_samples_is_nan_without_a_warning(call: Callable[..., Any]) -> None:
    """As the other losses have it; NumPy's warning of a division came through, both ways."""
    x = tc.ones(0, 4, requires_grad=True)
    made = call(x)
    made.backward()
    assert made.isnan()
    assert x.grad.shape == x.shape
