"""Batch normalisation over the batches of all ranks."""

from __future__ import annotations

from typing import Any

import tensorcore.distributed as dist
from tensorcore.distributed.group import current
from tensorcore.distributed.nn.functional import all_gather
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tape.mode import no_grad

__all__ = ["batch_norm", "shared"]


def shared(group: Any) -> bool:
    """Whether there are several ranks in the group."""
    return current().world is not None and dist.get_world_size(group) > 1


def batch_norm(layer: Any, input: Any, factor: float) -> Any:
    """Normalise by the mean and variance of all ranks' batches, which may be uneven, and move the running statistics.

    Each rank sends the mean and the variance of its own batch, which joined give those of the whole (Chan, Golub and
    LeVeque, 1983) without a loss of digits; gradients flow back through the exchange.
    """
    dims = [0, *range(2, input.dim())]
    wide = input.float() if input.dtype.itemsize == 2 else input
    count = input.numel() // input.shape[1]
    if count:
        mean, variance = wide.mean(dims), wide.var(dims, unbiased=False)
    else:
        mean = variance = wide.sum(dims)
    mine = cat([mean, variance, mean.new_full((1,), float(count))])
    rows = stack(list(all_gather(mine, layer.process_group)))
    means, variances, counts = rows.split([input.shape[1], input.shape[1], 1], 1)
    total = counts.detach().sum()
    share = counts.detach() / total
    mean = (share * means).sum(0)
    variance = (share * (variances + (means - mean) ** 2)).sum(0)
    if layer.track_running_stats and layer.running_mean is not None:
        with no_grad():
            # The mean of one value has no unbiased variance; PyTorch divides by zero there too.
            unbiased = variance * (total / (total - 1))
            layer.running_mean.mul_(1 - factor).add_(mean.to(layer.running_mean.dtype), alpha=factor)
            layer.running_var.mul_(1 - factor).add_(unbiased.to(layer.running_var.dtype), alpha=factor)
    shape = [1, -1, *[1] * (input.dim() - 2)]
    made = (wide - mean.view(shape)) * (variance + layer.eps).rsqrt().view(shape)
    if layer.weight is not None:
        made = made * layer.weight.view(shape)
    if layer.bias is not None:
        made = made + layer.bias.view(shape)
    return made.to(input.dtype)
