"""Collectives that gradients flow through."""

from tensorcore.distributed.nn import functional
from tensorcore.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)
