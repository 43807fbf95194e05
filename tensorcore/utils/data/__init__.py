"""Data sets, the order in which their samples are drawn, and batches of them."""

from __future__ import annotations

from tensorcore.utils.data.collate import collate, default_collate, default_collate_fn_map, default_convert
from tensorcore.utils.data.dataloader import DataLoader, get_worker_info
from tensorcore.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tensorcore.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler",
    "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "collate", "default_collate", "default_collate_fn_map", "default_convert",
    "get_worker_info", "random_split",
]  # fmt: skip
