"""Names for annotations in programs, as ``torch.types`` has them."""

from __future__ import annotations

from collections.abc import Sequence

from tensorcore.backend.base import Backend
from tensorcore.dtypes import dtype
from tensorcore.formats import Size, layout
from tensorcore.storage import TypedStorage, UntypedStorage
from tensorcore.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

Device = Backend | str | int | None
FileLike = str | bytes | object
Number = int | float | bool
Storage = TypedStorage | UntypedStorage

_bool, _complex, _float, _int = bool, complex, float, int
_device, _dtype, _layout = Backend, dtype, layout
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
