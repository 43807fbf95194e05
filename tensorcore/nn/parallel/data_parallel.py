"""``DataParallel`` where PyTorch keeps it."""

from tensorcore.nn.parallel.replicas import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
