"""Anomaly detection: backward errors and NaN gradients that name the line of the forward call."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore.errors import not_bool
from tensorcore.tape.mode import mode

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


def is_anomaly_enabled() -> bool:
    """Whether calls on this thread note where they were made."""
    return mode.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether backward looks for NaN in anomaly mode."""
    return mode.check_nan


class set_detect_anomaly:
    """Switch anomaly detection on or off, from this call on, or within a ``with``.

    Args:
        mode: while it is on, each recorded call notes its stack, and an error in its backward shows it.
        check_nan: raise where a backward makes NaN.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        if mode is not True and mode is not False:
            raise not_bool("set_detect_anomaly", "enabled", mode)
        self.before = _switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _switch(*self.before)


class detect_anomaly:
    """Within it, each recorded call notes its stack, and an error or a NaN in its backward shows it. Slow.

    Args:
        check_nan: raise where a backward makes NaN.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = _switch(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _switch(*self.before)


def _switch(anomaly: Any, check_nan: bool) -> tuple[bool, bool]:
    before = mode.anomaly, mode.check_nan
    mode.anomaly, mode.check_nan = bool(anomaly), check_nan
    mode.settle()
    return before
