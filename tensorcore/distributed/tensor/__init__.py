"""Tensors of which each rank of a mesh has a part."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "api": "DTensor distribute_module distribute_tensor empty full ones rand randn zeros",
    "placement_types": "Partial Placement Replicate Shard",
}
_FAMILY = {name: family for family, names in _NAMES.items() for name in names.split()}
_MESH = ("DeviceMesh", "init_device_mesh")

__all__ = list(_FAMILY)


def __getattr__(name: str) -> Any:
    if name == "parallel":
        return import_module("tensorcore.distributed.tensor.parallel")
    if name in _MESH:
        return getattr(import_module("tensorcore.distributed.device_mesh"), name)
    if name not in _FAMILY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"tensorcore.distributed.tensor.{_FAMILY[name]}"), name)
    return found
