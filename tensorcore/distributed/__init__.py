"""Programs of several processes: groups of them, collectives on tensors, and the launcher."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "coalesced": "_coalescing_manager all_gather_coalesced all_reduce_coalesced",
    "collectives": "all_gather all_gather_into_tensor all_gather_single all_reduce all_to_all all_to_all_single broadcast "
    "reduce reduce_scatter reduce_scatter_single reduce_scatter_tensor",
    "constants": "default_pg_timeout",
    "device_mesh": "DeviceMesh init_device_mesh",
    "group": "CollectiveMismatch GroupMember ProcessGroup destroy_process_group group init_process_group new_group",
    "messages": "P2POp all_gather_object batch_isend_irecv broadcast_object_list gather_object irecv isend recv "
    "recv_object_list scatter_object_list send send_object_list",
    "offered": "Backend DistBackendError DistError DistNetworkError is_backend_available "
    "is_gloo_available is_mpi_available is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available",
    "ranks": "get_backend get_global_rank get_group_rank get_node_local_rank get_process_group_ranks get_rank "
    "get_world_size is_available is_initialized",
    "reductions": "ReduceOp",
    "rooted": "barrier gather monitored_barrier scatter",
    "stores": "DistStoreError FileStore HashStore PrefixStore QueueEmptyError Store TCPStore",
    "subgroups": "new_subgroups new_subgroups_by_enumeration",
    "threads": "run_threads",
    "work": "Work",
}
_FAMILY = {name: family for family, names in _NAMES.items() for name in names.split()}
_FAMILY["GradBucket"] = "nn.parallel.buckets"  # for hooks of DistributedDataParallel to name their argument by
# In PyTorch the package has these by importing it alone.
_ROOMS = ("_composable", "_tensor", "algorithms", "constants", "device_mesh", "launch", "nn")

__all__ = [name for name in _FAMILY if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"tensorcore.distributed.{name}")
    if name not in _FAMILY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _FAMILY[name]
    family = import_module(f"tensorcore.{place}" if "." in place else f"tensorcore.distributed.{place}")
    # A function may have the name of its module, which the import has put here.
    found = globals()[name] = getattr(family, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_FAMILY, *_ROOMS})
