"""How many threads a kernel on the host may use."""

from __future__ import annotations

from tensorcore.errors import ConversionError
from tensorcore.ops.placement import host_device
from tensorcore.tape.mode import mode

__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"]

_interop: list[int] = []


def get_num_threads() -> int:
    """How many threads one kernel on the host may use: ``OMP_NUM_THREADS``, or the cores this process may run on."""
    if mode.tracer is not None:
        mode.tracer.fail_unless_paused("asks for the number of threads")
    return host_device().threads()


def set_num_threads(count: int) -> None:
    """Let one kernel on the host use up to ``count`` threads, those of its BLAS included.

    Raises:
        ConversionError: where ``count`` is no int or under 1; a RuntimeError, as PyTorch's is in both places.
    """
    if type(count) is not int:
        raise ConversionError(
            f"set_num_threads: expects an int, but got {type(count).__name__}; convert it with int(...)"
        )
    if count < 1:
        raise ConversionError(f"set_num_threads: expects a positive integer, got {count}; pass 1 for no other threads")
    host_device().threads(count)


def get_num_interop_threads() -> int:
    """What ``set_num_interop_threads`` was told, else 1: ops run one after the other, each on ``get_num_threads()``."""
    return _interop[0] if _interop else 1


def set_num_interop_threads(count: int, /) -> None:
    """Accepted once, for programs that set it: ops never run beside one another, so it changes nothing.

    Raises:
        ConversionError: where ``count`` is no int or under 1, or at a second call; a RuntimeError, as PyTorch's is.
    """
    name = "set_num_interop_threads"
    if type(count) is not int:
        raise ConversionError(f"{name}: expects an int, but got {type(count).__name__}; convert it with int(...)")
    if count < 1:
        raise ConversionError(f"{name}: expects a positive integer, got {count}; pass 1 for no other threads")
    if _interop:
        raise ConversionError(
            f"{name}: cannot set number of interop threads after it was called, got {count}; call it once"
        )
    _interop.append(count)
