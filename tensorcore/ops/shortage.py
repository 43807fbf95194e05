"""When a device has no room for a result: its caches are freed, the kernel runs again, and the error says who holds what."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.backend.base import Backend, Native
from tensorcore.errors import KernelMissing, OutOfMemoryError

__all__ = ["again"]


def again(
    device: Backend,
    name: str,
    natives: Sequence[Native],
    options: dict[str, Any],
    error: BaseException,
    run: Callable[..., Native] | None = None,
) -> Native:
    """What the kernel of that name, or ``run``, answers with the caches freed.

    Raises OutOfMemoryError, with the largest holders of the device's memory, where there is no room even then. What the
    kernel was given is as it was: a kernel without ``out=`` writes nothing before it has its memory.
    """
    if isinstance(error, OutOfMemoryError) and error.explained:
        try:
            raise error
        finally:
            del error
    gc.collect()  # graphs and tensors in cycles
    with contextlib.suppress(KernelMissing):  # it keeps none
        device.empty_cache()
    try:
        return (run or device.kernels[name])(*natives, **options)
    except MemoryError as second:
        from tensorcore.ops.holders import holders

        found = holders(device, limit=8, given={id(one): f"given to {name}" for one in natives})
        lines = "".join([f"\n  {one}" for one in found]) or " none that Python knows of"
        raised = OutOfMemoryError(
            f"{name}: expected room for its result on device '{device}', got none with the caches freed and a second try "
            f"({second or type(second).__name__}); drop one of the largest holders, or make smaller tensors. They are:{lines}"
        )
    raised.explained = True
    try:
        raise raised from error
    finally:
        # Their tracebacks lead to this frame: circles, which would keep what the failed call was given when all is forgotten.
        del raised, error
