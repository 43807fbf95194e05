"""Algorithms that give the same bits each time: the switch for those who ask for them, and what it changes."""

from __future__ import annotations

import threading
import warnings
from typing import Any, ClassVar

from tensorcore.backend.base import Backend, Kernel, Native
from tensorcore.backend.registry import made_devices
from tensorcore.backend.watch import Replaced, arrivals, unwatch, watch
from tensorcore.dtypes import dtype, iinfo
from tensorcore.errors import ArgumentTypeError, UsageError, not_bool
from tensorcore.tape.aside import SWITCH, tells

__all__ = [
    "are_deterministic_algorithms_enabled", "fills_memory", "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled", "set_deterministic_debug_mode", "set_fills_memory",
    "use_deterministic_algorithms",
]  # fmt: skip

_MODES = {"default": 0, "warn": 1, "error": 2}


class _Asked:
    """What the program asked for. Nobody looks here when a kernel runs: tables are exchanged instead."""

    deterministic: ClassVar[bool] = False
    warn_only: ClassVar[bool] = False
    fill: ClassVar[bool] = True
    filled: ClassVar[Replaced] = Replaced()  # how devices allocated
    changing: ClassVar[Any] = threading.Lock()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for ops that give the same bits each time on the same input, or not.

    A kernel that its device names as not deterministic gives way to its deterministic form, or else raises UsageError
    (a RuntimeError) when it is called. The host's kernels are deterministic for a given number of threads. Tensors
    made without values, as by ``empty``, are filled with NaN, or the largest value of their dtype, while
    ``torch.utils.deterministic.fill_uninitialized_memory`` is set, which it is.

    Args:
        warn_only: a kernel that is not deterministic warns and runs.
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise not_bool("use_deterministic_algorithms", name, value)
    _settle(mode, mode and warn_only, _Asked.fill)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether they are asked for."""
    return _Asked.deterministic


@tells(SWITCH)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether a kernel that is not deterministic warns instead of raising."""
    return _Asked.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same switch by number or name: 0 ``default``, 1 ``warn``, 2 ``error``."""
    if not isinstance(debug_mode, (int, str)):
        raise ArgumentTypeError(
            f"set_deterministic_debug_mode: debug_mode must be str or int, but got {type(debug_mode)}; pass 0, 1 or 2"
        )
    number = _MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if number not in (0, 1, 2):
        raise UsageError(
            f"set_deterministic_debug_mode: invalid value of debug_mode, expected one of `default`, `warn`, `error` or 0, 1, "
            f"2, but got {debug_mode!r}; pass one of them"
        )
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


@tells(SWITCH)
def get_deterministic_debug_mode() -> int:
    """0 where deterministic algorithms are not asked for, 1 where a warning is enough, 2 else."""
    return 0 if not _Asked.deterministic else 1 if _Asked.warn_only else 2


def fills_memory() -> bool:
    """Whether tensors made without values are filled while deterministic algorithms are asked for."""
    return _Asked.fill


def set_fills_memory(fill: bool) -> None:
    """Let them be filled, or not."""
    if not isinstance(fill, bool):
        raise ArgumentTypeError(
            f"fill_uninitialized_memory: expected type bool, but got {type(fill)}; pass True or False"
        )
    _settle(_Asked.deterministic, _Asked.warn_only, fill)


def _settle(deterministic: bool, warn_only: bool, fill: bool) -> None:
    with _Asked.changing:
        before = _Asked.deterministic
        if before:
            unwatch(_checked)
            arrivals.remove(_fill)
            _Asked.filled.give_back()
        _Asked.deterministic, _Asked.warn_only, _Asked.fill = deterministic, warn_only, fill
        if deterministic:
            watch(_checked)
            arrivals.append(_fill)
            for device in made_devices():
                _fill(device)


def _checked(device: Backend, name: str, kernel: Kernel) -> Kernel:
    """The kernel, what takes its place, or what refuses a call of it."""
    if name not in device.nondeterministic:
        return kernel
    other = device.nondeterministic[name]
    if other is not None:
        replacement: Kernel = device.kernels[other]
        return replacement
    text = (
        f"{name}: expected a deterministic kernel on device '{device}', got one that does not have a deterministic "
        f"implementation, but you set 'torch.use_deterministic_algorithms(True)'; turn it off for this operation, or pass "
        f"'warn_only=True' if that is acceptable for your application"
    )
    warn_only = _Asked.warn_only

    def call(*natives: Native, **options: Any) -> Native:
        if not warn_only:
            raise UsageError(text)
        warnings.warn(text, stacklevel=2)
        return kernel(*natives, **options)

    return call


def _fill(device: Backend) -> None:
    """Let what the device allocates begin with values that show."""
    if not _Asked.fill or not device.capabilities.values:
        return
    allocate = device.allocate

    def filled(shape: tuple[int, ...], dtype: dtype) -> Native:
        native = allocate(shape, dtype)
        if dtype.kind == "bool":
            value: Any = True
        else:
            value = iinfo(dtype).max if dtype.kind == "integer" else float("nan")
        device.kernels["fill"](native, value)
        return native

    _Asked.filled.put(device, "allocate", filled)
