"""Data sets, the order in which their samples are drawn, and batches of them."""

from __future__ import annotations

from importlib import import_module

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
from tensorcore.utils.data.distributed import DistributedSampler
from tensorcore.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DevicePrefetcher", "DistributedSampler", "IterableDataset",
    "MappedDataset", "NpyDataset", "RandomSampler", "RawDataset", "SafetensorsDataset", "Sampler", "SequentialSampler",
    "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "collate",
    "default_collate", "default_collate_fn_map", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip

_LATE = ("MappedDataset", "NpyDataset", "RawDataset", "SafetensorsDataset")


def __getattr__(name: str) -> object:
    # What few programs use is imported when one first names it.
    if name == "DevicePrefetcher":
        from tensorcore.utils.data.prefetch import DevicePrefetcher

        return DevicePrefetcher
    if name == "_utils":
        return import_module("tensorcore.utils.data._utils")
    if name in _LATE:
        from tensorcore.utils.data import mapped

        return getattr(mapped, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
