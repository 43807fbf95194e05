"""``scatter`` and ``gather`` where PyTorch keeps them."""

from tensorcore.nn.parallel.replicas import gather, scatter

__all__ = ["gather", "scatter"]
