"""Automatic differentiation, as programs use it; the tape itself is in ``tensorcore.tape``."""

from __future__ import annotations

from importlib import import_module

from tensorcore.autograd import anomaly_mode, function, grad_mode, graph
from tensorcore.autograd.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)  # fmt: skip
from tensorcore.autograd.function import Function
from tensorcore.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from tensorcore.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tensorcore.autograd.walks import backward, grad

__all__ = [
    "Function", "GradcheckError", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad",
    "forward_ad", "function", "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph",
    "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "no_grad", "profiler",
    "set_detect_anomaly", "set_grad_enabled", "variable",
]  # fmt: skip


def __getattr__(name: str) -> object:
    # Imported when a program first names them.
    if name in ("forward_ad", "functional", "profiler", "variable"):
        return import_module(f"tensorcore.autograd.{name}")
    if name == "Variable":
        return import_module("tensorcore.autograd.variable").Variable
    if name in ("_disable_profiler", "_profiler_enabled"):
        return getattr(__getattr__("profiler"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
